"""`tutorsim chat`: a person takes part in a group lesson."""

from pathlib import Path
from typing import Any

import click

from tutorsim.cli.console import err, safe
from tutorsim.cli.recording import (
    check_may_record,
    recording_options,
    recording_progress,
    sending,
    spending,
)
from tutorsim.errors import UsageError


@click.command()
@click.argument("study", type=click.Path(path_type=Path))
@click.option("--log-dir", type=click.Path(path_type=Path), required=True, help="Run folder.")
@click.option("--cassette-dir", type=click.Path(path_type=Path), required=True, help="Recording.")
@click.option("--port", type=click.IntRange(0, 65535), default=0, help="0 takes a free one.")
@click.option("--name", help="What the person is called in the chat.")
@click.option(
    "--stay/--no-stay",
    "stays",
    default=True,
    help="Serve the page after the lesson, until Ctrl-C.  [default: stay]",
)
@recording_options
def chat(
    study: Path,
    log_dir: Path,
    cassette_dir: Path,
    port: int,
    name: str | None,
    stays: bool,
    prices: Path | None,
    **options: Any,
) -> None:
    """Serve the next unfinished lesson of STUDY to a person, on a page of this machine.

    STUDY has the learner `person`, as studies of group lessons can. The page's address, which no
    other page can guess, is the only line on stdout. Every word is on disk before it is shown as
    sent: after a crash the same command goes on with the lesson, and nothing is asked twice.

    Exit codes: as `tutorsim run`.
    """
    from tutorsim.chat.serve_and_record_lesson import ChatOptions, chat_of, serve_lesson
    from tutorsim.kernel.cost_plan import load_prices
    from tutorsim.kernel.load import load_study
    from tutorsim.runner.stops import Budget
    from tutorsim.sandbox import Sandbox

    check_may_record(options["record_in_ci"])
    if options["batch"]:
        raise UsageError(
            "--batch does not go with a person.",
            why="A batch can take a day, and somebody is waiting.",
            hint="Leave --batch out.",
        )
    loaded = load_study(study)
    table, setting = chat_of(loaded).name
    if name is not None:
        loaded = load_study(study, overrides={table: {setting: name}})
    budget = Budget(load_prices(prices), options["max_usd"])
    with (
        Sandbox(options["level"]) as sandbox,
        recording_progress(budget) as (on_progress, on_warning),
    ):
        episode_id = serve_lesson(
            loaded,
            cassette_dir=cassette_dir,
            log_dir=log_dir,
            sandbox=sandbox,
            budget=budget,
            options=sending(options, on_progress, on_warning),
            chat=ChatOptions(port, stays, click.echo),
        )
    err().print(safe(f"{episode_id}: {spending(budget)}."))
    err().print(safe(f"Recording: {cassette_dir}   Log: {log_dir}"), soft_wrap=True)
