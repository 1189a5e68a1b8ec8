"""`tutorsim demo`: the bundled study, replayed and summarised."""

import tempfile
import time
from pathlib import Path

import click

from tutorsim.bundled import bundled_recording
from tutorsim.cli.console import err, safe
from tutorsim.errors import RecordingError

__all__ = ["demo"]


@click.command()
@click.option(
    "--log-dir",
    type=click.Path(path_type=Path),
    help="Run folder to write; a temporary one that stays is used when left out.",
)
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Report to write; in the run folder when left out.",
)
def demo(log_dir: Path | None, output: Path | None) -> None:
    """Replay the bundled study and summarise it; no key and no network needed.

    The study was recorded from the scripted stand-in model: its figures say nothing about any
    language model.
    """
    from tutorsim.cli.report import report
    from tutorsim.cli.summary import summary
    from tutorsim.runner.replaying import replay

    recording = bundled_recording()
    if recording is None:
        raise RecordingError(
            "The bundled recording is not here.",
            why="Neither the checkout nor the installed package has cassettes/demo.",
            hint="Install tutorsim from its repository.",
        )
    if log_dir is None:
        log_dir = Path(tempfile.mkdtemp(prefix="tutorsim-demo-"))
    started = time.perf_counter()
    run, _ = replay(recording, log_dir=log_dir)
    seconds = time.perf_counter() - started
    err().print(safe(f"{run.episodes} episodes replayed in {seconds:.1f} s, with no network."))
    context = click.get_current_context()
    context.invoke(summary, run=log_dir)
    output = output or log_dir / "report.html"
    context.invoke(report, run=log_dir, output=output)
    err().print(safe(f"Report:  {output}"), soft_wrap=True)
    following = f"tutorsim show {log_dir} EPISODE · tutorsim recount {log_dir}"
    err().print(safe(f"Next:    {following}"), soft_wrap=True)
