"""The house's rules, read from the source of every module: imports, names, output, paths."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[1]

ROOMS = (
    *("types", "errors", "engine", "catalog", "tasks", "voting", "records", "study", "model"),
    *(
        "agents",
        "mechanisms",
        "drivers",
        "episode",
        "estimate",
        "plan",
        "replay",
        "sandbox",
        "bundled",
        "runner",
    ),
    *("standin", "pytest_plugin", "cli"),
)
"""A room imports only rooms that stand before it."""

FOR_ANALYSIS = {"voting", "records", "types", "errors"}
"""What `analysis` may import of `tutorsim`."""

ONLY_IN = {
    "anthropic": "tutorsim.model",
    "vcr": "tutorsim.replay",
    "polars": "analysis",
    "altair": "analysis",
    "distributed": "tutorsim.engine",
    "click": "tutorsim.cli",
    "rich": "tutorsim.cli",
}
"""Packages that one room keeps to itself."""

PURE = ("voting", "mechanisms", "agents", "episode", "drivers", "types", "errors")
IMPURE = {"os", "socket", "subprocess", "random", "time", "datetime", "threading", "secrets"}


class Module(NamedTuple):
    name: str
    path: Path
    text: str
    tree: ast.Module

    @property
    def room(self) -> str:
        """`analysis`, or the first part of the name inside `tutorsim`; "" for its `__init__`."""
        package, _, rest = self.name.partition(".")
        return package if package == "analysis" else rest.split(".")[0]


def _module(path: Path) -> Module:
    parts = path.relative_to(ROOT).with_suffix("").parts
    name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
    text = path.read_text(encoding="utf-8")
    return Module(name, path, text, ast.parse(text))


MODULES = [
    _module(path)
    for package in ("tutorsim", "analysis")
    for path in sorted((ROOT / package).rglob("*.py"))
]
NAMES = {module.name for module in MODULES}
every_module = pytest.mark.parametrize("module", MODULES, ids=lambda module: module.name)


def imported(module: Module) -> Iterator[str]:
    """Modules and names imported anywhere in a module, inside functions too."""
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = _base(module, node)
            yield from (f"{base}.{alias.name}" for alias in node.names)


def _base(module: Module, node: ast.ImportFrom) -> str:
    if not node.level:
        return node.module or ""
    is_package = module.path.name == "__init__.py"
    above = module.name.split(".")
    above = above[: len(above) - node.level + is_package]
    return ".".join([*above, *filter(None, [node.module])])


def rooms_imported(module: Module) -> set[str]:
    names = (name.split(".") for name in imported(module))
    return {parts[1] for parts in names if parts[0] == "tutorsim" and len(parts) > 1} - {
        "__version__"
    }


def test_there_are_modules_to_look_at():
    assert len(MODULES) > 40
    assert {module.room for module in MODULES} <= {"", "analysis", *ROOMS}


@every_module
def test_a_room_imports_only_rooms_before_it(module):
    found = rooms_imported(module)
    if module.room == "analysis":
        assert found <= FOR_ANALYSIS
    elif module.room == "":
        assert found == set()
    else:
        before = ROOMS[: ROOMS.index(module.room) + 1]
        assert sorted(found - set(before)) == []


@every_module
def test_of_tutorsim_only_the_command_line_imports_analysis(module):
    uses = any(name.split(".")[0] == "analysis" for name in imported(module))
    assert not uses or module.room in ("analysis", "cli")


@every_module
def test_heavy_packages_stay_in_their_room(module):
    packages = {name.split(".")[0] for name in imported(module)}
    outside = {
        package
        for package, home in ONLY_IN.items()
        if package in packages and not f"{module.name}.".startswith(f"{home}.")
    }
    assert outside == set()


@pytest.mark.parametrize(
    "module", [m for m in MODULES if m.room in PURE], ids=lambda module: module.name
)
def test_pure_rooms_ask_nothing_of_the_machine(module):
    assert {name.split(".")[0] for name in imported(module)} & IMPURE == set()


@every_module
def test_only_the_command_line_prints(module):
    prints = [
        node.lineno
        for node in ast.walk(module.tree)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id == "print"
    ]
    assert not prints or module.room == "cli"


def _declared(module: Module) -> list[str] | None:
    for node in module.tree.body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            return list(ast.literal_eval(node.value))
    return None


def _kind_then_name(name: str) -> tuple[int, str]:
    """Constants, then classes, then functions, each by name."""
    kind = 0 if name.isupper() and len(name) > 1 else 1 if name[:1].isupper() else 2
    return kind, name


@every_module
def test_public_names_are_listed_in_order_and_completely(module):
    """Commands and pytest's hooks need no listing: they are found in another way."""
    declared = _declared(module)
    if declared is None:
        return
    assert declared == sorted(set(declared), key=_kind_then_name)
    public = {
        node.name
        for node in module.tree.body
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
        and not node.name.startswith(("_", "pytest_"))
        and not any(re.search(r"\.(command|group)\(", ast.unparse(d)) for d in node.decorator_list)
    }
    assert sorted(public - set(declared)) == []


@every_module
def test_only_listed_names_are_imported_from_a_module(module):
    listed = {other.name: _declared(other) for other in MODULES}
    for node in ast.walk(module.tree):
        if isinstance(node, ast.ImportFrom):
            base = _base(module, node)
            names = {alias.name for alias in node.names}
            submodules = {name for name in names if f"{base}.{name}" in NAMES}
            if (known := listed.get(base)) is not None:
                assert sorted(names - submodules - set(known)) == []


MACHINE = re.compile(r"(?<![\w.])/(?:home|root|Users|work|mnt|opt)/\w")


@pytest.mark.parametrize(
    "path",
    sorted(
        path
        for folder in ("tutorsim", "analysis", "tests")
        for path in (ROOT / folder).rglob("*")
        if path.suffix in (".py", ".toml", ".jsonl", ".json", ".html", ".j2", ".css", ".txt")
        and path != Path(__file__)
    ),
    ids=lambda path: str(path.relative_to(ROOT)),
)
def test_no_file_mentions_a_path_of_a_machine(path):
    assert MACHINE.findall(path.read_text(encoding="utf-8")) == []
