"""`tutorsim demo`: the bundled study, replayed and summarised."""

import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import click

from tutorsim.cli.console_progress_and_safe_text import tell
from tutorsim.cli.options_that_commands_share import FILE, FOLDER, PLACE
from tutorsim.errors import RecordingError
from tutorsim.kernel.load_and_check_study_file import system_named
from tutorsim.runner.find_and_check_recording import bundled_recording, bundled_recordings
from tutorsim.system_registry import DEFAULT_SYSTEM


@click.command()
@click.option(
    "--log-dir",
    type=PLACE,
    help="Run folder to write; a temporary one that stays is used when left out.",
)
@click.option("-o", "--output", type=FILE, help="Report to write; in the run folder when left out.")
@click.option(
    "--system",
    default=DEFAULT_SYSTEM,
    show_default=True,
    help="The system whose bundled study is replayed.",
)
@click.option(
    "--recording",
    metavar="NAME",
    help="The bundled recording to replay; the demonstration of --system when left out.",
)
@click.option(
    "--cassette-dir",
    type=FOLDER,
    help="Copy the recording into this folder first, to verify, replay or retest it there.",
)
def demo(
    log_dir: Path | None,
    output: Path | None,
    system: str,
    recording: str | None,
    cassette_dir: Path | None,
) -> None:
    """Replay a bundled study and summarise it; no key and no network needed.

    The bundled studies were recorded from the scripted stand-in model, unless their summary says
    otherwise: the stand-in's figures say nothing about any language model.
    """
    from tutorsim.analysis.pages.words_and_safe_text import counted
    from tutorsim.cli.report import report
    from tutorsim.cli.summary import summary
    from tutorsim.replay.convert_recording_to_other_form import convert
    from tutorsim.runner.replay_into_run_folder_in_several_processes import replay

    folder = bundled = _bundled(recording or system_named(system).demo or system)
    if cassette_dir is not None:
        convert(bundled, cassette_dir, "text")
        folder = cassette_dir
    if log_dir is None:
        log_dir = Path(tempfile.mkdtemp(prefix="tutorsim-demo-"))
    started = time.perf_counter()
    run, _ = replay(folder, log_dir=log_dir)
    seconds = time.perf_counter() - started
    tell(f"{counted(run.episodes, 'episode')} replayed in {seconds:.1f} s, with no network.")
    context = click.get_current_context()
    context.invoke(summary, run=log_dir)
    output = output or log_dir / "report.html"
    context.invoke(report, run=log_dir, output=output)
    tell(f"Report:  {output}")
    following = f"tutorsim show {log_dir} {_telling(log_dir)}"
    tell(f"Next:    {following}")
    tell(f"         tutorsim recount {log_dir}")
    tell("Bundled recordings:")
    for line in _listed(bundled):
        tell(f"  {line}")
    tell("Another one: tutorsim demo --recording NAME")


def _bundled(name: str) -> Path:
    """The folder of a bundled recording; `RecordingError` if there is none of the name."""
    folder = bundled_recording(name)
    if folder is None:
        raise RecordingError(
            f"The bundled recording {name!r} is not here.",
            why=f"Bundled are {', '.join(sorted(bundled_recordings())) or 'none'}.",
            hint="Name one of these; without any, install tutorsim from its repository.",
        )
    return folder


def _listed(shown: Path) -> Iterator[str]:
    """A line for each bundled recording: what answered its calls; the one shown comes first."""
    from tutorsim.replay import read_manifest

    found = {name: read_manifest(path) for name, path in bundled_recordings().items()}
    names = sorted(found, key=lambda name: (name != shown.name, name))
    for name in names:
        stated = found[name].provenance
        yield f"{name} ({stated.kind}: {stated.name})"


def _telling(run: Path) -> str:
    """An episode that is worth looking at: one with something special, else the first."""
    from tutorsim.analysis.systems.system_view_opened_run_and_cost import open_run, view_for

    opened = open_run(run)
    rows = view_for(opened).listing(opened)
    ordered = sorted(rows, key=lambda row: -len(row["special"]))
    return next((str(row["episode_id"]) for row in ordered), "EPISODE")
