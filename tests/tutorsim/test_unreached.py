"""Every definition is reached from a command, a fixture, a documented function or another one."""

import ast
import re
from pathlib import Path
from typing import Final

import pytest
import vulture

from tutorsim.guide import TOPICS, page

ROOT: Final = Path(__file__).parents[2]
CALLED_BY_LIBRARIES: Final = {
    "__getattr__",  # Python, for names of a module
    "capture_signals",  # uvicorn
    "should_exit",
    "list_commands",  # click
    "get_command",
    "format_commands",
    "no_wrap",  # rich
    "overflow",
    "pytest_addoption",  # pytest
    "pytest_configure",
    "save_cassette",  # vcrpy
    "load_cassette",
    "_responses",
    "connection_made",  # asyncio
    "connection_lost",
    "data_received",
    "argtypes",  # ctypes
    "restype",
    "preload",  # named in the text that starts a sandboxed process
    "load_tzdata",  # the standard library, closed or faked in that process
    "_selector",
    "_process_events",
    "_write_to_self",
    "_loop_factory",
    "on_broken_pipe",  # rich
}
DECORATED: Final = [
    "@*.command",
    "@*.group",
    "@click.*",
    "@pytest.*",
    "@*_validator",
    "@*_serializer",
]


@pytest.mark.costly
def test_no_definition_is_unreached() -> None:
    found = vulture.Vulture(ignore_decorators=DECORATED)
    for room in ("tutorsim", "analysis"):
        for path in sorted((ROOT / room).rglob("*.py")):
            found.scan(_without_all(path.read_text(encoding="utf-8")), filename=path)
    for template in (ROOT / "analysis").rglob("*.j2"):
        found.used_names |= _words(template.read_text(encoding="utf-8"))
    documented = {word for topic in TOPICS for word in _words(page(topic))}
    unreached = {
        f"{Path(one.filename).relative_to(ROOT)}: {one.name}"
        for one in found.get_unused_code()
        if one.typ in ("function", "class", "method", "attribute", "property")
        and one.name not in CALLED_BY_LIBRARIES | documented
    }
    assert unreached == set()


def _without_all(text: str) -> str:
    """A module without its list of public names, which reaches nothing."""
    tree = ast.parse(text)
    tree.body = [
        node
        for node in tree.body
        if not (isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__")
    ]
    return ast.unparse(tree)


def _words(text: str) -> set[str]:
    return set(re.findall(r"\w+", text))
