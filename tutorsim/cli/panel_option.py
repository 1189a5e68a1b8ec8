"""`--panel NAME`: one panel of a run that compares several."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import click

from tutorsim.errors import UsageError

if TYPE_CHECKING:
    from tutorsim.analysis.ballots.recount_source import Source
    from tutorsim.analysis.systems.system_view import SystemRun

__all__ = ["of_panel_asked", "panel_option", "refuse_panel"]


def panel_option(command: Callable[..., None]) -> Callable[..., None]:
    """Adds `--panel`."""
    return click.option(
        "--panel", metavar="NAME", help="Only this panel of a run that compares several."
    )(command)


def of_panel_asked(source: Source, panel: str | None) -> Source:
    """The panel that is asked for; the source as it is where none is.

    Raises:
        UsageError: If the source has no such panel.
    """
    from tutorsim.analysis.ballots.one_panel_of_a_run import of_panel

    return source if panel is None else of_panel(source, panel)


def refuse_panel(run: SystemRun | None, panel: str | None) -> None:
    """Refuse `--panel` for a run of a system without panels.

    Raises:
        UsageError: Naming the system.
    """
    if run is not None and panel is not None:
        raise UsageError(
            f"{run.name} has no panel {panel!r}.",
            why=f"It is a run of the system {run.head.system!r}, which compares no panels.",
            hint="Leave --panel out.",
        )
