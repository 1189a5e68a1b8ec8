"""`tutorsim import`: a run folder made of the logs of another program."""

from collections.abc import Sequence
from pathlib import Path
from typing import Final, Literal

import click

from tutorsim.cli.console_progress_and_safe_text import (
    counted,
    emit_json,
    err,
    out,
    safe,
    show_error,
)
from tutorsim.cli.options_that_commands_share import PLACE, folder_option, json_option
from tutorsim.errors import UsageError
from tutorsim.kernel.load_and_check_study_file import system_named
from tutorsim.kernel.system_and_loaded_study import LogFormat, System
from tutorsim.system_registry import system_names


@click.command("import")
@click.argument("program")
@click.argument("files", nargs=-1, type=PLACE)
@folder_option("Run folder to write.")
@click.option(
    "--spelling",
    type=click.Choice(["one", "apart"]),
    help="Members named otherwise in one step than in another: one member, or two.",
)
@json_option
def import_logs(
    program: str,
    files: tuple[Path, ...],
    output: Path,
    spelling: Literal["one", "apart"] | None,
    as_json: bool,
) -> None:
    """Make a run folder of the logs of PROGRAM in FILES, or in folders of them.

    PROGRAM is `mallm`, or `council` for several models that answer, rank one another's answers and
    have one of them write the reply; without FILES it takes the rankings that come with tutorsim.
    Summary, report, show, recount, compare and export then work
    on the run. A file that is no log, a second copy of a file or of a vote in it, or a vote that is
    garbled is named and left out; the exit code is then 1.

    \b
    --json gives:
      written, episodes, skipped: [path and reason]
      notes: {fault of the program: [file, and vote in it]}
    """
    from tutorsim.runner import import_logs_of_other_programs as log_import

    system, form = _format(program)
    if spelling is not None and not form.asks_spelling:
        raise UsageError(
            f"--spelling says nothing of logs of {form.program}.", hint="Leave it out."
        )
    files = _present(files) or _bundled(program)
    with counted("files read") as count:
        found = log_import.import_logs(
            system, form, log_import.log_files(files), output, spelling=spelling, on_progress=count
        )
    for note, places in found.notes.items():
        of = f"in {len(places)} of {found.episodes}"
        console = err()
        told = safe(f"Note: {note}: {of}: {_first(places)}.")
        console.print(told, soft_wrap=not console.is_terminal)
    for error in found.skipped:
        show_error(error)
    if as_json:
        skipped = [" ".join(filter(None, (e.what, e.why))) for e in found.skipped]
        value = {"written": str(output), "episodes": found.episodes, "skipped": skipped}
        emit_json({**value, "notes": found.notes})
    else:
        written = f"{found.episodes} episode{'' if found.episodes == 1 else 's'}"
        out().print(safe(f"{written} written to {output}."), soft_wrap=True)
    if found.skipped:
        raise click.exceptions.Exit(1)


def _bundled(program: str) -> tuple[Path, ...]:
    """The logs of a program that come with tutorsim; `UsageError` without any."""
    from tutorsim.runner.find_and_check_recording import bundled_logs

    found = bundled_logs(program)
    if not found:
        raise UsageError(
            f"No logs of {program} are named.",
            why="None come with tutorsim.",
            hint=f"Name files or folders: `tutorsim import {program} FILE… -o RUN`.",
        )
    return found


def _present(files: tuple[Path, ...]) -> tuple[Path, ...]:
    """The files and folders named; `UsageError` for one that does not exist."""
    for file in files:
        if not file.exists():
            raise UsageError(f"{file} does not exist.", hint="Name a file or a folder of logs.")
    return files


_NAMED: Final = 3
"""Places that a note names; `--json` and `show` have the others."""


def _first(places: Sequence[str]) -> str:
    """Where a fault stands, the first places by name."""
    more = len(places) - _NAMED
    named = "; ".join(places[:_NAMED])
    return named if more <= 0 else f"{named}; and {more:,} more"


def _format(program: str) -> tuple[System, LogFormat]:
    systems = [system_named(name) for name in system_names()]
    known = {name: (system, form) for system in systems for name, form in system.logs.items()}
    if program not in known:
        raise UsageError(
            f"There is no import of {program!r}.",
            hint=f"Logs of these programs can be imported: {', '.join(sorted(known))}.",
        )
    return known[program]
