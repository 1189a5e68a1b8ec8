"""`tutorsim run`: record a study."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tutorsim.cli.console import err, safe
from tutorsim.errors import BudgetReached, Interrupted, RecordingRefused, StudyError
from tutorsim.plan import Plan, PriceTable, load_prices, plan
from tutorsim.sandbox.levels import SETTINGS
from tutorsim.study import LoadedStudy, load_study
from tutorsim.types import BLINDINGS, CONDITIONS

if TYPE_CHECKING:
    from tutorsim.runner.budget import Budget

__all__ = ["run"]


@click.command()
@click.argument("study", type=click.Path(path_type=Path))
@click.option("--log-dir", type=click.Path(path_type=Path), help="Run folder to write.")
@click.option("--cassette-dir", type=click.Path(path_type=Path), help="Recording to write.")
@click.option("--max-connections", type=click.IntRange(1, 1000), default=16, show_default=True)
@click.option("--max-retries", type=click.IntRange(0, 100), default=4, show_default=True)
@click.option(
    "--timeout",
    type=click.FloatRange(min=0.001),
    default=120.0,
    show_default=True,
    help="Seconds that one attempt at a call may take.",
)
@click.option(
    "--max-usd",
    type=click.FloatRange(min=0),
    help="Stop before the recording costs more, at list prices.",
)
@click.option(
    "--prices", type=click.Path(path_type=Path, dir_okay=False), help="Price table to use."
)
@click.option("--dry-run", is_flag=True, help="Show calls, tokens and cost; send nothing.")
@click.option("--json", "as_json", is_flag=True, help="With --dry-run: report as JSON.")
@click.option(
    "--batch",
    is_flag=True,
    help="Record in waves through the batch endpoint, at half the list price.",
)
@click.option("--retry-errors", is_flag=True, help="Take failed episodes up again.")
@click.option("--relay", metavar="NAME", help="Name what answers behind a base URL of your own.")
@click.option(
    "--sandbox",
    "level",
    type=click.Choice(SETTINGS),
    default="auto",
    show_default=True,
    help="Sandbox level for code.",
)
@click.option("--record-in-ci", is_flag=True, help="Record although CI is set.")
@click.option("--seed", type=int, help="Override the study's seed.")
@click.option(
    "--condition",
    "conditions",
    type=click.Choice(CONDITIONS),
    multiple=True,
    help="Override the study's conditions.",
)
@click.option("--persona", "personas", multiple=True, help="Override the study's personas.")
@click.option("--limit", type=click.IntRange(min=1), help="Override the tasks per benchmark.")
@click.option("--max-turns", type=click.IntRange(min=0), help="Override the tutoring turns.")
@click.option("--repeats", type=click.IntRange(min=1), help="Override the repeats.")
@click.option("--blinding", type=click.Choice(BLINDINGS), help="Override how labels are drawn.")
@click.option(
    "--set",
    "settings",
    metavar="KEY=VALUE",
    multiple=True,
    help="Override any setting, e.g. --set models.tutor='\"my-model\"' (TOML values).",
)
def run(
    study: Path,
    log_dir: Path | None,
    cassette_dir: Path | None,
    dry_run: bool,
    as_json: bool,
    prices: Path | None,
    record_in_ci: bool,
    **options: Any,
) -> None:
    """Record STUDY, a TOML file or the name of a shipped study.

    Every model call goes to the endpoint that the SDK's environment names and is recorded. The
    same command given again goes on where the last one stopped; nothing is paid for twice.

    Exit codes: 0 done · 1 done, but episodes failed · 2 usage · 4 a folder holds a damaged or
    other recording · 5 the cap is reached · 6 the sandbox failed · 130 interrupted.
    """
    if as_json and not dry_run:
        raise click.UsageError("--json goes with --dry-run.")
    loaded = load_study(study, overrides=_overrides(options, study))
    table = load_prices(prices)
    if dry_run:
        show = _emit_plan if as_json else _show_plan
        show(loaded, plan(loaded, table))
        return
    if log_dir is None or cassette_dir is None:
        raise click.UsageError("Give --log-dir and --cassette-dir, or --dry-run.")
    if os.environ.get("CI") and not record_in_ci:
        raise RecordingRefused(
            "Recording is refused because CI is set.",
            why="A CI job should replay; recording there spends money on every push.",
            hint="Use `tutorsim replay` or `verify`, or add --record-in-ci.",
        )
    _record(loaded, log_dir, cassette_dir, table, options)


def _overrides(options: dict[str, Any], study: Path) -> dict[str, Any]:
    """Settings that the command line overrides, as nested tables."""
    import tomllib

    direct = ("seed", "max_turns", "repeats", "blinding")
    found: dict[str, Any] = {k: options[k] for k in direct if options[k] is not None}
    found |= {k: list(options[k]) for k in ("conditions", "personas") if options[k]}
    for text in options["settings"]:
        try:
            _merge(found, tomllib.loads(text))
        except tomllib.TOMLDecodeError as error:
            raise StudyError(
                f"--set {text!r} is no TOML assignment.",
                why=str(error),
                hint="Texts need quotes: --set 'name=\"pilot\"'.",
            ) from error
    if options["limit"] is not None:
        tables = load_study(study, overrides=found).study.benchmarks
        _merge(found, {"benchmarks": {name: {"limit": options["limit"]} for name in tables}})
    return found


def _merge(into: dict[str, Any], more: dict[str, Any]) -> None:
    for key, value in more.items():
        if isinstance(value, dict) and isinstance(into.get(key), dict):
            _merge(into[key], value)
        else:
            into[key] = value


def _show_plan(loaded: LoadedStudy, planned: Plan) -> None:
    from tutorsim.cli.console import out

    calls, console = planned.calls, out()
    console.print(f"Study {loaded.study.name}: {planned.episodes:,} episodes", style="bold")
    console.print(
        f"Calls: {calls.least:,} (every first attempt succeeds) to {calls.most:,} "
        "(none does, and every final vote ties)"
    )
    console.print(f"       at most {calls.ceiling:,} if every reply had to be asked for twice")
    console.print("Estimated tokens of the longest path:")
    for model, (asked, answered) in planned.tokens.items():
        known = "" if model not in planned.unknown_prices else "  (price unknown)"
        console.print(f"  {model}: {asked:,} in, {answered:,} out{known}")
    console.print(f"Estimated cost: {_cost(planned)} (prices of {planned.prices_as_of})")


def _emit_plan(loaded: LoadedStudy, planned: Plan) -> None:
    from tutorsim.cli.console import emit_json

    emit_json({"study": loaded.study.name, **asdict(planned)})


def _cost(planned: Plan) -> str:
    if planned.cost is None or planned.least_cost is None:
        return f"unknown: no price for {', '.join(planned.unknown_prices)}"
    return f"{planned.least_cost:,.2f} to {planned.cost:,.2f} US dollars"


def _record(
    loaded: LoadedStudy,
    log_dir: Path,
    cassette_dir: Path,
    table: PriceTable,
    options: dict[str, Any],
) -> None:
    from tutorsim.records import read_episodes
    from tutorsim.runner.budget import Budget
    from tutorsim.runner.recorder import RecordingOptions, record
    from tutorsim.sandbox import Sandbox

    budget = Budget(table, options["max_usd"])
    with Sandbox(options["level"]) as sandbox, _progress(budget) as (on_progress, on_warning):
        record(
            loaded,
            cassette_dir=cassette_dir,
            log_dir=log_dir,
            sandbox=sandbox,
            budget=budget,
            options=RecordingOptions(
                max_connections=options["max_connections"],
                max_retries=options["max_retries"],
                timeout=options["timeout"],
                batch=options["batch"],
                retry_errors=options["retry_errors"],
                relay_name=options["relay"],
                on_warning=on_warning,
                on_progress=on_progress,
            ),
        )
    failed = [one for one in read_episodes(log_dir) if one.status == "failed"]
    _show_end(budget, log_dir, cassette_dir)
    for one in failed[:5]:
        assert one.failure is not None
        err().print(safe(f"Failed: {one.episode_id}: {one.failure.error}"), soft_wrap=True)
    if failed:
        err().print(f"{len(failed)} episode(s) failed; --retry-errors takes them up again.")
        raise click.exceptions.Exit(1)


def _show_end(budget: "Budget", log_dir: Path, cassette_dir: Path) -> None:
    console = err()
    console.print(safe(f"{_sum(budget)}."))
    console.print(safe(f"Recording: {cassette_dir}   Log: {log_dir}"), soft_wrap=True)
    console.print(safe(f"Next: tutorsim summary {log_dir}"), soft_wrap=True)


def _money(budget: "Budget") -> str:
    spent = f"{budget.spent:,.2f} US dollars at list prices"
    return f"{spent}, without {', '.join(sorted(budget.unpriced))}" if budget.unpriced else spent


@contextmanager
def _progress(
    budget: "Budget",
) -> Iterator[tuple[Callable[[int, int], None], Callable[[str], None]]]:
    """A bar with episodes, calls, tokens and cost on a terminal, and notes above it.

    Elsewhere only the notes are written. What was reached is said when the recording stops early.
    """
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    console = err()
    columns = (BarColumn(), MofNCompleteColumn(), TextColumn("{task.description}", markup=False))
    with Progress(*columns, console=console, disable=not console.is_terminal) as bar:
        task = bar.add_task("episodes", total=None)

        def update(done: int, total: int) -> None:
            cost = f"US$ {budget.spent:,.2f}" + (" + unpriced" if budget.unpriced else "")
            text = f"episodes · {_amount(budget)} · {cost}"
            bar.update(task, completed=done, total=total, description=text)

        def note(text: str) -> None:
            console.print(safe(f"Note: {text}"))

        try:
            yield update, note
        except (BudgetReached, Interrupted):
            console.print(safe(f"So far: {_sum(budget)}."))
            raise


def _sum(budget: "Budget") -> str:
    return f"{_amount(budget)} · {_money(budget)}"


def _amount(budget: "Budget") -> str:
    return f"{budget.calls:,} calls · {budget.input_tokens + budget.output_tokens:,} tokens"
