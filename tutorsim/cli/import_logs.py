"""`tutorsim import`: a run of another program's logs."""

from pathlib import Path

import click

from tutorsim.cli.console import emit_json, err, out, safe, show_error
from tutorsim.cli.options import json_option
from tutorsim.cli.progress import counted
from tutorsim.errors import UsageError
from tutorsim.kernel.load import system_named
from tutorsim.kernel.system import LogFormat, System
from tutorsim.system_registry import system_names


@click.command("import")
@click.argument("program")
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option(
    "-o",
    "--output",
    required=True,
    type=click.Path(path_type=Path, file_okay=False),
    help="Run folder to write.",
)
@json_option
def import_logs(program: str, files: tuple[Path, ...], output: Path, as_json: bool) -> None:
    """Make a run folder of the logs of PROGRAM in FILES, or in folders of them.

    PROGRAM is `mallm`, or `council` for several models that answer, rank one another's answers and
    have one of them write the reply. Summary, report, show, recount, compare and export then work
    on the run. A file that is no log, a second copy of one, or a vote that is garbled is named and
    left out; the exit code is then 1.

    \b
    --json gives:
      written, episodes, skipped: [path and reason], notes: {fault of the program: episodes}
    """
    from tutorsim.runner import run_log as log_import

    system, form = _format(program)
    with counted("files read") as count:
        found = log_import.import_logs(
            system, form, log_import.log_files(files), output, on_progress=count
        )
    for note, votes in found.notes.items():
        err().print(safe(f"Note: {note}: in {votes} of {found.episodes}."), soft_wrap=True)
    for error in found.skipped:
        show_error(error)
    if as_json:
        skipped = [" ".join(filter(None, (e.what, e.why))) for e in found.skipped]
        told = {"written": str(output), "episodes": found.episodes, "skipped": skipped}
        emit_json({**told, "notes": found.notes})
    else:
        written = f"{found.episodes} episode{'' if found.episodes == 1 else 's'}"
        out().print(safe(f"{written} written to {output}."), soft_wrap=True)
    if found.skipped:
        raise click.exceptions.Exit(1)


def _format(program: str) -> tuple[System, LogFormat]:
    systems = [system_named(name) for name in system_names()]
    known = {name: (system, form) for system in systems for name, form in system.logs.items()}
    if program not in known:
        raise UsageError(
            f"There is no import of {program!r}.",
            hint=f"Logs of these programs can be imported: {', '.join(sorted(known))}.",
        )
    return known[program]
