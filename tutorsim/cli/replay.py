"""`tutorsim replay`: a recording played again, without a network or a key."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from tutorsim.cli.console import counted, tell
from tutorsim.cli.options import FOLDER, PLACE
from tutorsim.errors import CheckFailed

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from tutorsim.sandbox import Sandbox
    from tutorsim.sandbox.protection_levels import Setting


@click.command()
@click.argument("cassette_dir", type=FOLDER)
@click.option("--log-dir", type=PLACE, required=True, help="Run folder to write.")
@click.option(
    "--workers",
    type=click.IntRange(1, 256),
    help="Processes; as many as pay off by default. The bytes written are the same.",
)
@click.option("--reexecute", is_flag=True, help="Run the recorded programs again and compare.")
@click.option(
    "--sandbox", "level", default="auto", show_default=True, help="Sandbox level for --reexecute."
)
def replay(
    cassette_dir: Path, log_dir: Path, workers: int | None, reexecute: bool, level: Setting
) -> None:
    """Replay the recording in CASSETTE_DIR without a network or a key.

    Exit codes: 0 done · 1 a verdict or a call differs · 3 a call is missing or changed · 4 the
    recording or a log is damaged.
    """
    from contextlib import nullcontext

    from tutorsim.runner.replay import replay as play

    judge: AbstractContextManager[Sandbox | None] = nullcontext()
    if reexecute:
        from tutorsim.sandbox import Sandbox

        judge = Sandbox(level)
    with judge as sandbox, counted("episodes") as count:
        run, changes = play(
            cassette_dir, log_dir=log_dir, workers=workers, sandbox=sandbox, on_progress=count
        )
    provenance = run.provenance
    tell(
        f"{run.episodes:,} episodes replayed into {log_dir} "
        f"(recorded from {provenance.kind}: {provenance.name})."
    )
    if changes:
        first = changes[0]
        raise CheckFailed(
            f"Verdicts that differ when run again: {len(changes)}, the first in "
            f"{first.episode_id}, turn {first.turn}: recorded {first.recorded}, now {first.now}.",
            why="The log keeps the recorded verdicts.",
            hint="Another interpreter or other limits can do this; `tutorsim doctor` shows yours.",
        )
