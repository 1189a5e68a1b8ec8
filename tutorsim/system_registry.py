"""Which systems there are: those of this package by a line each, others by an entry point.

A system of another package is an entry point of the group `tutorsim.systems`; its value is a
`tutorsim.kernel.system_and_loaded_study.System`. What is named here is imported when it is needed,
so that a panel's study loads nothing of a debate.
"""

import sys
from collections.abc import Callable
from functools import cache
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from sysconfig import get_paths
from typing import Any, Final, NamedTuple

from tutorsim.errors import UsageError

GROUP: Final = "tutorsim.systems"
"""The entry-point group of systems that other packages bring."""
RULES: Final = "tutorsim.rules"
"""The entry-point group of rules that other packages bring: scores by rank, or functions."""
DEFAULT_SYSTEM: Final = "panel"
"""The system of a study file that names none."""

BALLOTS_VIEW: Final = "tutorsim.analysis.systems.panel.view_list_of_episodes_texts_to_rate:BALLOTS"
"""Where the view of ballots from elsewhere is."""


class Shipped(NamedTuple):
    """Where the parts of a system of this package are, each as `module:name`."""

    system: str
    """The `System`."""
    record: str
    """The class of its episode records."""
    view: str
    """Tables, summary and report of its runs."""
    trace: str
    """The function that tells an episode: see `System.trace` in the kernel."""


_SHIPPED: Final = {
    "panel": Shipped(
        "tutorsim.systems.panel:PANEL",
        "tutorsim.records:EpisodeRecord",
        "tutorsim.analysis.systems.panel.view_list_of_episodes_texts_to_rate:VIEW",
        "tutorsim.analysis.systems.panel.episode_messages_and_telling_episodes:trace",
    ),
    "debate": Shipped(
        "tutorsim.systems.debate:DEBATE",
        "tutorsim.records.debate:DebateRecord",
        "tutorsim.analysis.systems.debate:VIEW",
        "tutorsim.analysis.systems.debate.episode_messages_and_telling_episodes:trace",
    ),
    "oversight": Shipped(
        "tutorsim.systems.oversight:OVERSIGHT",
        "tutorsim.records.oversight:OversightRecord",
        "tutorsim.analysis.systems.oversight:VIEW",
        "tutorsim.analysis.systems.oversight.episode_messages_and_telling_episodes:trace",
    ),
    "group": Shipped(
        "tutorsim.systems.group:GROUP",
        "tutorsim.records.group:GroupRecord",
        "tutorsim.analysis.systems.group:VIEW",
        "tutorsim.analysis.systems.group.episode_messages_and_telling_episodes:trace",
    ),
}


def system_names() -> tuple[str, ...]:
    """Every system that a study can name: those of this package first."""
    return (*_SHIPPED, *sorted(set(_others()) - set(_SHIPPED)))


def shipped(name: str) -> Shipped | None:
    """Where a system's parts are; `None` for a system of another package.

    Raises `UsageError` if there is no system of this name.
    """
    if name not in _SHIPPED and name not in _others():
        raise UsageError(
            f"There is no system {name!r}.",
            why=f"This installation has {', '.join(system_names())}.",
            hint=f"Install the package that brings it (entry point {GROUP!r}), "
            "or correct `system` in the study file.",
        )
    return _SHIPPED.get(name)


def load(name: str, part: str) -> Any:
    """A part of a system: `system`, `record`, `view` or `trace`.

    Of another package's system the entry point gives the `System`, whose attributes of these names
    are the other parts; all but `record` are a text `module:name` there too. A part that the system
    does not have is an empty text.

    Raises `UsageError` if there is no system of this name, or another package gives something else.
    """
    own = shipped(name)
    if own is not None:
        return _at(getattr(own, part))
    point = _others()[name]
    value = loaded(point)
    if getattr(value, "name", None) != name:
        kind = f"a {type(value).__name__} called {getattr(value, 'name', None)!r}"
        raise UsageError(
            f"The entry point {name!r} of the group {GROUP!r} gives no system {name!r}.",
            why=f"{point.value} is {kind}.",
            hint="Let it name a tutorsim.kernel.system_and_loaded_study.System of the same name.",
        )
    found = value if part == "system" else getattr(value, part)
    return _at(found)


def _at(place: Any) -> Any:
    return named(place) if isinstance(place, str) and place else place


def refuse_shadowed(name: str) -> None:
    """Refuse a system of this package that another package brings by the same name too."""
    other = _others().get(name)
    if other is not None and name in _SHIPPED:
        raise UsageError(
            f"{other.value} brings a system called {name!r}.",
            why="That is the name of a system that is always there, so its package's is never run.",
            hint=f"Give the system, and its entry point of the group {GROUP!r}, another name, and "
            "install its package again.",
        )


@cache
def named(place: str) -> Any:
    """What stands at a place `module:name`."""
    module, _, name = place.partition(":")
    return getattr(import_module(module), name)


def later(place: str) -> Callable[..., Any]:
    """The function at a place `module:name`, which is imported when it is called."""
    return lambda *given: named(place)(*given)


def loaded(point: EntryPoint) -> Any:
    """What an entry point of another package names; a `UsageError` if it cannot be loaded."""
    try:
        return point.load()
    except Exception as error:
        raise UsageError(
            f"{point.value}, the entry point {point.name!r} of the group {point.group!r}, "
            "cannot be loaded.",
            why=f"{place_of(error)}: {type(error).__name__}: {error}",
            hint=f"`python -c 'import {point.module}'` shows the whole traceback; a package whose "
            "pyproject.toml changed is installed again.",
        ) from error


def _others() -> dict[str, EntryPoint]:
    return {point.name: point for point in entry_points(group=GROUP)}


# --- Faults in other packages' code ---------------------------------------------------------------


def place_of(error: BaseException) -> str:
    """File, line and function in which an error arose.

    Of the call chain that place is named which is neither tutorsim's nor a library's; the last one
    where there is none.
    """
    from traceback import walk_tb

    frames = [(frame.f_code, line) for frame, line in walk_tb(error.__traceback__)]
    theirs = [found for found in frames if not _is_library(found[0].co_filename)]
    code, line = (theirs or frames)[-1]
    return f"{Path(code.co_filename).name}, line {line}, in {code.co_name}"


def _is_library(file: str) -> bool:
    """Whether a file belongs to tutorsim, to Python or to what is installed beside it, unless it
    brings a system or a rule."""
    path = Path(file).resolve()
    if not path.is_absolute() or not path.exists():  # such as <frozen importlib._bootstrap>
        return True
    if path in _extensions():
        return False
    ours = (Path(__file__).parent, Path(import_module("tutorsim.analysis").__file__ or "").parent)
    installed = (get_paths()[name] for name in ("stdlib", "platstdlib", "purelib", "platlib"))
    return any(path.is_relative_to(Path(str(folder)).resolve()) for folder in (*ours, *installed))


def _extensions() -> set[Path]:
    """Files of the loaded modules that entry points of other packages name."""
    points = [*entry_points(group=GROUP), *entry_points(group=RULES)]
    files: list[Any] = [getattr(sys.modules.get(one.module), "__file__", None) for one in points]
    return {Path(file).resolve() for file in files if file}


def fault_of_extension(error: Exception) -> UsageError | None:
    """An unexpected error as a fault of the code that another package brings.

    `None` where no such code was loaded, so that the fault is tutorsim's.
    """
    files = sorted(path.name for path in _extensions())
    if not files:
        return None
    return UsageError(
        f"{place_of(error)}: {type(error).__name__}: {error}",
        why=f"It happened while code of another package was used: {', '.join(files)}.",
        hint="`tutorsim guide extending` says what each part gets and gives; "
        "`python -X dev -m tutorsim …` shows the whole traceback.",
    )
