"""Every definition is reached from a command, a fixture, a documented function or another one."""

import ast
import re
from pathlib import Path
from typing import Final

import pytest
import vulture

from tests.test_house import MODULES, _base, imported
from tutorsim.cli.print_guide_pages_and_doctor import TOPICS, page

ROOT: Final = Path(__file__).parents[2]
CALLED_BY_LIBRARIES: Final = {
    "_Pandas",  # a type whose name is a text, in an annotation
    "__getattr__",  # Python, for names of a module
    "capture_signals",  # uvicorn
    "should_exit",
    "model_post_init",  # pydantic
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
    "@*.command", "@*.group", "@click.*", "@pytest.*", "@*_validator", "@*_serializer",
]  # fmt: skip
PLAIN: Final = {"cache", "contextmanager", "asynccontextmanager", "dataclass", "lru_cache"}
"""Decorators that hand a definition to nobody: others make a command of it, or register it."""


@pytest.mark.costly
def test_no_definition_is_unreached():
    found = vulture.Vulture(ignore_decorators=DECORATED)
    for room in ("tutorsim", "analysis"):
        for path in sorted((ROOT / room).rglob("*.py")):
            text = path.read_text(encoding="utf-8")
            found.scan(_without_all(text), filename=path)
            found.used_names |= set(re.findall(r'chart\("(\w+)"\)', text))  # a section's, by name
            found.used_names |= set(re.findall(r"\{(\w+)\}", text))  # places of a caption
    for template in (ROOT / "analysis").rglob("*.j2"):
        found.used_names |= _words(template.read_text(encoding="utf-8"))
    reached = CALLED_BY_LIBRARIES | _documented() | _named_in_texts()
    unreached = {
        f"{Path(one.filename).relative_to(ROOT)}: {one.name}"
        for one in found.get_unused_code()
        if one.typ in ("function", "class", "method", "attribute", "property")
        and one.name not in reached
    }
    assert unreached == set()


@pytest.mark.costly
def test_no_definition_is_there_for_tests_alone():
    """A name of a module is imported from it by the product, used in it, or documented."""
    reached = CALLED_BY_LIBRARIES | _documented() | _named_in_texts()
    users: dict[str, set[str]] = {}
    for module in MODULES:
        names = set(imported(module))
        inside = {
            alias.asname or alias.name: f"{_base(module, node)}.{alias.name}"
            for node in module.nodes
            if isinstance(node, ast.ImportFrom)
            for alias in node.names
        }
        names |= {
            f"{inside[node.value.id]}.{node.attr}"
            for node in module.nodes
            if isinstance(node, ast.Attribute)
            and isinstance(node.value, ast.Name)
            and node.value.id in inside
        }
        for name in names:
            users.setdefault(name, set()).add(module.name)
    code = {module.name: module.tree for module in MODULES}

    def is_imported(module, name):
        """By others than its package, which may do so only to hand it on."""
        package = module.rpartition(".")[0]
        by = users.get(f"{module}.{name}", set())
        handed_on = f"{package}.{name}" in users or _names(code.get(package, ast.Pass()), name)
        return bool(by - {package}) or (package in by and handed_on)

    alone = {
        f"{module.name}.{node.name}"
        for module in MODULES
        for node in module.tree.body
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
        and {ast.unparse(d).partition("(")[0] for d in node.decorator_list} <= PLAIN
        and not is_imported(module.name, node.name)
        and not any(_names(other, node.name) for other in module.tree.body if other is not node)
        and node.name not in reached
    }
    assert alone == set()


def _names(node, name):
    """Whether code, an annotation among it, uses a name; a list of public names does not."""
    if isinstance(node, ast.Module):
        return any(_names(part, name) for part in node.body)
    if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
        return False
    return any(
        (isinstance(part, ast.Name) and part.id == name)
        or (isinstance(part, ast.Constant) and part.value == name)
        for part in ast.walk(node)
    )


def _without_all(text):
    """A module without its list of public names, which reaches nothing."""
    tree = ast.parse(text)
    tree.body = [
        node
        for node in tree.body
        if not (isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__")
    ]
    return ast.unparse(tree)


def _documented():
    return {word for topic in TOPICS for word in _words(page(topic))}


def _named_in_texts():
    """Names of functions that are loaded when they are asked for, by a text `module:name`."""
    texts = [
        node.value
        for module in MODULES
        for node in ast.walk(module.tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    ]
    return {found[1] for text in texts if (found := re.fullmatch(r"[\w.]+:([a-z_]\w+)", text))}


def _words(text):
    return set(re.findall(r"\w+", text))
