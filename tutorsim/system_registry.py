"""Which systems there are: those of this package by a line each, others by an entry point.

A system of another package is an entry point of the group `tutorsim.systems`; its value is a
`tutorsim.kernel.system.System`. What is named here is imported when it is needed, so that a
panel's study loads nothing of a debate.
"""

from dataclasses import dataclass
from functools import cache
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Final

from tutorsim.errors import UsageError

GROUP: Final = "tutorsim.systems"
"""The entry-point group of systems that other packages bring."""
DEFAULT_SYSTEM: Final = "panel"
"""The system of a study file that names none."""

AUDITOR: Final = "oversight"
"""The system in whose studies `tutorsim audit` labels the replies of a run."""


@dataclass(frozen=True)
class Shipped:
    """Where the parts of a system of this package are, each as `module:name`."""

    system: str
    """The `System`."""
    record: str
    """The class of its episode records."""
    view: str
    """Its tables, summary and report."""


_SHIPPED: Final = {
    "panel": Shipped(
        "tutorsim.systems.panel:PANEL",
        "tutorsim.records:EpisodeRecord",
        "tutorsim.analysis.systems.panel:VIEW",
    ),
    "debate": Shipped(
        "tutorsim.systems.debate:DEBATE",
        "tutorsim.records.debate:DebateRecord",
        "tutorsim.analysis.systems.debate:VIEW",
    ),
    "oversight": Shipped(
        "tutorsim.systems.oversight:OVERSIGHT",
        "tutorsim.records.oversight:OversightRecord",
        "tutorsim.analysis.systems.oversight:VIEW",
    ),
    "group": Shipped(
        "tutorsim.systems.group:GROUP",
        "tutorsim.records.group:GroupRecord",
        "tutorsim.analysis.systems.group:VIEW",
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
    """A part of a system: `system`, `record` or `view`.

    Of another package's system the entry point gives the `System`, whose attributes `record` and
    `view` are the other parts; `view` is a text `module:name` there too.

    Raises `UsageError` if there is no system of this name.
    """
    own = shipped(name)
    if own is not None:
        return named(getattr(own, part))
    value = _others()[name].load()
    found = value if part == "system" else getattr(value, part)
    return named(found) if isinstance(found, str) else found


@cache
def named(place: str) -> Any:
    """What stands at a place `module:name`."""
    module, _, name = place.partition(":")
    return getattr(import_module(module), name)


def _others() -> dict[str, EntryPoint]:
    return {point.name: point for point in entry_points(group=GROUP)}
