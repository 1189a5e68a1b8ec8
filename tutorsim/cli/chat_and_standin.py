"""`tutorsim chat` and `tutorsim standin`: a page of a lesson, and a scripted model as a server."""

import asyncio
import signal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tutorsim.cli import console_progress_and_safe_text
from tutorsim.cli.console_progress_and_safe_text import tell
from tutorsim.cli.options_and_progress_of_commands_that_record import (
    check_may_record,
    live_recording_options,
    recording_progress,
    sending,
    spending,
)
from tutorsim.cli.options_that_commands_share import PLACE

if TYPE_CHECKING:
    from tutorsim.standin import Endpoint


@click.command()
@click.argument("study", type=PLACE)
@click.option("--log-dir", type=PLACE, required=True, help="Run folder.")
@click.option("--cassette-dir", type=PLACE, required=True, help="Recording.")
@click.option("--port", type=click.IntRange(0, 65535), default=0, help="0 takes a free one.")
@click.option("--name", help="What the person is called in the chat.")
@click.option(
    "--stay/--no-stay",
    "stays",
    default=True,
    help="Serve the page after the lesson, until Ctrl-C.  [default: stay]",
)
@live_recording_options
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
    from tutorsim.kernel.load_and_check_study_file import load_study
    from tutorsim.runner.early_stops_by_signal_cost_cap_or_outage import Budget
    from tutorsim.sandbox import Sandbox

    check_may_record(options["record_in_ci"])
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
    tell(f"{episode_id}: {spending(budget)}.")
    tell(f"Recording: {cassette_dir}   Log: {log_dir}")


# --- Standin -------------------------------------------------------------------------------------

_LOOPBACK = ("127.0.0.1", "::1", "localhost")


@click.group()
def standin() -> None:
    """Serve a scripted model for recordings without the real one.

    It speaks the Messages API, batches included, and plays students, judges and tutors. What is
    recorded from it says nothing about any language model.
    """


@standin.command("serve")
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option(
    "--port",
    default=0,
    type=click.IntRange(0, 65535),
    help="Port to listen on; 0 takes a free one.  [default: 0]",
)
@click.option("--seed", default=0, show_default=True, help="Another seed is another model.")
@click.option(
    "--fault",
    "faults",
    multiple=True,
    metavar="SPEC",
    help="Something to go wrong, as KIND[:HOW_OFTEN][:SECONDS][:persist]; may be given again.",
)
@click.option(
    "--steady",
    is_flag=True,
    help="Voters prefer the same under every ballot format, and write every ballot well.",
)
def serve_command(host: str, port: int, seed: int, faults: tuple[str, ...], steady: bool) -> None:
    """Serve until interrupted. The URL is the only line on stdout.

    \b
    Faults, for example --fault 429:0.1:2 --fault drop:20:
      429        rate limit error, with retry-after SECONDS
      529, 500   overloaded, internal error
      slow       a reply that waits SECONDS
      drop, cut  the connection closes before the answer, or in its middle
      garbage    a body that is not JSON
      refusal    a message without text
      empty      a message without text that ends as usual
      truncated  half a reply, as if max_tokens had been reached
      expired    an entry of a batch that was not reached in time
      errored    an entry of a batch that met an internal error
      pending    a batch that takes SECONDS to end
    HOW_OFTEN is a share (0.05, the default) or every so many requests (20).
    A request that is sent again is answered, unless `persist` is added.
    """
    from tutorsim.standin import STANDIN_VERSION, Endpoint, parse_fault

    endpoint = Endpoint(
        seed=seed,
        faults=[parse_fault(spec) for spec in faults],
        steady=steady,
        on_unknown=_warn_of_unknown,
    )
    err = console_progress_and_safe_text.err()
    if host not in _LOOPBACK:
        err.print(f"Listening on {host}: anyone who reaches this machine can use it.")
    err.print(f"Stand-in version {STANDIN_VERSION}, seed {seed}. Ctrl-C ends it.")
    asyncio.run(_until_signal(endpoint, host, port))
    unknown = endpoint.unknown.total()
    known_by_none = (
        f", {unknown:,} of them with prompts of no system that it knows" if unknown else ""
    )
    err.print(f"Answered {endpoint.requests:,} requests{known_by_none}.")


def _warn_of_unknown(begins: str) -> None:
    tell(
        f"Warning: this stand-in knows no system with the prompt “{begins}”; its reply means "
        "nothing. If the system was installed after the start, start the stand-in again."
    )


async def _until_signal(endpoint: "Endpoint", host: str, port: int) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    from tutorsim.standin import serve

    await serve(endpoint, host=host, port=port, ready=lambda url: click.echo(url), stop=stop)
