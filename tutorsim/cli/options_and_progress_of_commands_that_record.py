"""Recording from the command line: the options that every recording command has, and its end."""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from tutorsim.cli.console_progress_and_safe_text import counted, err, safe, tell
from tutorsim.cli.options_that_commands_share import FILE, sandbox_option
from tutorsim.errors import BudgetReached, Interrupted, RecordingRefused
from tutorsim.kernel.cost_plan import PriceTable
from tutorsim.kernel.system_and_loaded_study import LoadedStudy
from tutorsim.model import CUT_OFF

if TYPE_CHECKING:
    from tutorsim.records import EpisodeLine, StopCount
    from tutorsim.runner.branch_plan_and_answers_from_parent import Parent
    from tutorsim.runner.early_stops_by_signal_cost_cap_or_outage import Budget
    from tutorsim.runner.recording_options_and_queue_of_episodes_and_calls import RecordingOptions


_SENDING: Final = (
    click.option(
        "--max-connections",
        type=click.IntRange(1, 1000),
        default=16,
        show_default=True,
        help="Calls that wait for their replies at the same time.",
    ),
    click.option(
        "--max-retries",
        type=click.IntRange(0, 100),
        default=4,
        show_default=True,
        help="Further attempts at a call that fails.",
    ),
    click.option(
        "--timeout",
        type=click.FloatRange(min=0.001),
        default=120.0,
        show_default=True,
        help="Seconds that one attempt at a call may take.",
    ),
    click.option(
        "--max-outage",
        type=click.FloatRange(min=0),
        default=600.0,
        show_default=True,
        help="Seconds to try on while the endpoint is away or overloaded; 0 marks calls failed.",
    ),
    click.option(
        "--max-usd",
        type=click.FloatRange(min=0),
        help="Stop before the recording costs more, at list prices.",
    ),
    click.option("--prices", type=FILE, help="Price table to use."),
    click.option("--retry-errors", is_flag=True, help="Try failed episodes again."),
    click.option(
        "--relay", metavar="NAME", help="Name what answers behind a base URL of your own."
    ),
    click.option("--record-in-ci", is_flag=True, help="Record although CI is set."),
)

_BATCH: Final = click.option(
    "--batch",
    is_flag=True,
    help="Record in waves through the batch endpoint, at half the list price.",
)

_ANEW: Final = click.option(
    "--anew",
    is_flag=True,
    help="Record again, into an empty folder, the study whose log is in --log-dir.",
)


def recording_options(command: Callable[..., None]) -> Callable[..., None]:
    """Adds the options of a command that records episodes."""
    return sending_options(_episode_options(command))


def live_recording_options(command: Callable[..., None]) -> Callable[..., None]:
    """Adds those of a command that records while a person waits: no batch, which can take a day."""
    return _added(_SENDING, _episode_options(command))


def sending_options(command: Callable[..., None]) -> Callable[..., None]:
    """Adds the options of a command that sends calls and records them."""
    return _added(_SENDING, _BATCH(command))


def _episode_options(command: Callable[..., None]) -> Callable[..., None]:
    return _ANEW(sandbox_option("Sandbox level for code.")(command))


def _added(
    options: Sequence[Callable[..., Callable[..., None]]], command: Callable[..., None]
) -> Callable[..., None]:
    for option in reversed(options):
        command = option(command)
    return command


def sending(
    options: Mapping[str, Any],
    on_progress: Callable[[int, int], None],
    on_warning: Callable[[str], None],
) -> "RecordingOptions":
    """The values of `sending_options`, and where progress is told."""
    from tutorsim.runner.recording_options_and_queue_of_episodes_and_calls import RecordingOptions

    given = {name: options[name] for name in options.keys() & RecordingOptions.__annotations__}
    named = {"relay_name": options["relay"], "on_warning": on_warning, "on_progress": on_progress}
    return RecordingOptions(**given, **named)


def check_may_record(record_in_ci: bool) -> None:
    """Refuse to record where `CI` is set; `RecordingRefused` unless the user asked for it."""
    if os.environ.get("CI") and not record_in_ci:
        raise RecordingRefused(
            "Recording is refused because CI is set.",
            why="A CI job should replay; recording there spends money on every push.",
            hint="Use `tutorsim replay` or `verify`, or add --record-in-ci.",
        )


def say_remarks(loaded: LoadedStudy) -> None:
    """Say on stderr what whoever records a study should know of its settings and tasks."""
    for remark in loaded.remarks():
        tell(f"Note: {remark}")


def record_study(
    loaded: LoadedStudy,
    log_dir: Path,
    cassette_dir: Path,
    table: PriceTable,
    options: Mapping[str, Any],
    *,
    parent: "Parent | None" = None,
) -> None:
    """Record a study and say how it went.

    `parent`: the recording that a branch continues. Raises `Exit` with code 1, if episodes failed.
    """
    from tutorsim.records import odd_stops, read_lines, stop_counts
    from tutorsim.runner.early_stops_by_signal_cost_cap_or_outage import Budget
    from tutorsim.runner.record import record
    from tutorsim.sandbox import Sandbox

    say_remarks(loaded)
    budget = Budget(table, options["max_usd"])
    with (
        Sandbox(options["level"]) as sandbox,
        recording_progress(budget) as (on_progress, on_warning),
    ):
        record(
            loaded,
            cassette_dir=cassette_dir,
            log_dir=log_dir,
            sandbox=sandbox,
            budget=budget,
            options=sending(options, on_progress, on_warning),
            parent=parent,
        )
    failed: list[EpisodeLine] = []
    records = read_lines(log_dir, loaded.system.record)
    stops = stop_counts(_noting_failed(records, failed))
    _show_end(budget, log_dir, cassette_dir)
    _warn_of_odd_stops(odd_stops(stops))
    for one in failed[:5]:
        assert one.failure is not None
        tell(f"Failed: {one.episode_id}: {one.failure.error}")
    if failed:
        tell(
            f"Episodes that failed: {len(failed)}. The same command with --retry-errors takes "
            "them up again; without it, only those that an outage failed."
        )
        raise click.exceptions.Exit(1)


def _show_end(budget: "Budget", log_dir: Path, cassette_dir: Path) -> None:
    console = err()
    if budget.reused:
        console.print(f"{budget.reused:,} calls taken over from the parent at no cost.")
    console.print(safe(f"{spending(budget)}."))
    console.print(safe(f"Recording: {cassette_dir}   Log: {log_dir}"), soft_wrap=True)
    console.print(safe(f"Next: tutorsim summary {log_dir}"), soft_wrap=True)


def _noting_failed(
    episodes: "Iterator[EpisodeLine]", failed: "list[EpisodeLine]"
) -> "Iterator[EpisodeLine]":
    for one in episodes:
        if one.status == "failed":
            failed.append(one)
        yield one


def _warn_of_odd_stops(odd: "Sequence[StopCount]") -> None:
    """Say how many replies had no text or no end of their own, by reason and stage."""
    for reason in dict.fromkeys(count.stop_reason for count in odd):
        counts = [count for count in odd if count.stop_reason == reason]
        calls, taken = (
            sum(column) for column in zip(*((c.calls, c.taken) for c in counts), strict=True)
        )
        stages = ", ".join(f"{count.stage} {count.calls:,}" for count in counts)
        tell(
            f"Warning: {calls:,} replies were {counts[0].words} ({stages}); "
            f"{taken:,} of them were taken as they are."
        )
        if reason == CUT_OFF:
            tell("A larger `max_tokens` in [models] makes room; it is another study then.")


def _money(budget: "Budget") -> str:
    spent = f"{budget.spent:,.2f} US dollars at list prices"
    return f"{spent}, without {', '.join(sorted(budget.unpriced))}" if budget.unpriced else spent


@contextmanager
def recording_progress(
    budget: "Budget",
) -> Iterator[tuple[Callable[[int, int], None], Callable[[str], None]]]:
    """A bar with episodes, calls, tokens and cost on a terminal, and notes above it.

    Elsewhere only the notes are written. What was reached is said when the recording stops early.
    """
    console = err()
    with counted("episodes") as bar:

        def update(done: int, total: int) -> None:
            cost = f"US$ {budget.spent:,.2f}" + (" + unpriced" if budget.unpriced else "")
            bar(done, total, f"episodes · {_amount(budget)} · {cost}")

        def note(text: str) -> None:
            console.print(safe(f"Note: {text}"))

        try:
            yield update, note
        except (BudgetReached, Interrupted):
            console.print(safe(f"So far: {spending(budget)}."))
            raise


def spending(budget: "Budget") -> str:
    """Calls, tokens and cost so far."""
    return f"{_amount(budget)} · {_money(budget)}"


def _amount(budget: "Budget") -> str:
    return f"{budget.calls:,} calls · {budget.input_tokens + budget.output_tokens:,} tokens"
