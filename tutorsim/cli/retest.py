"""`tutorsim retest`: ask recorded vote prompts again."""

from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich.console import RenderableType

from tutorsim.cli.console import err, safe
from tutorsim.cli.options import json_option, names
from tutorsim.cli.output_elements import Prose, heading, publish
from tutorsim.cli.progress import counted
from tutorsim.cli.recording import (
    check_may_record,
    recording_progress,
    sending,
    sending_options,
    spending,
)
from tutorsim.kernel.cost_plan import load_prices
from tutorsim.kernel.retest_flow import Design
from tutorsim.records import RUN_FILE

if TYPE_CHECKING:
    from tutorsim.runner.retest_of_recording import Retested, RetestPlan, Survey
    from tutorsim.runner.stops import Budget


@click.command()
@click.argument("source", metavar="RUN", type=click.Path(path_type=Path))
@click.option(
    "--repeats", type=click.IntRange(1, 999), required=True, help="Further askings of each prompt."
)
@click.option(
    "--stages",
    callback=names,
    metavar="STAGE,STAGE,…",
    help="Stages to ask again; all that the system of RUN can ask again when left out.",
)
@click.option(
    "--sample", type=click.IntRange(min=1), help="Ask again in so many turns, drawn by --seed."
)
@click.option("--seed", type=int, default=0, show_default=True, help="What --sample draws by.")
@click.option(
    "--cassette-dir",
    type=click.Path(path_type=Path),
    help="The recording of RUN, where it is not found by itself.",
)
@click.option(
    "--plan", "--dry-run", "only_plan", is_flag=True, help="Show what it takes; send nothing."
)
@json_option
@sending_options
def retest(
    source: Path,
    repeats: int,
    stages: tuple[str, ...] | None,
    sample: int | None,
    seed: int,
    cassette_dir: Path | None,
    only_plan: bool,
    as_json: bool,
    **options: Any,
) -> None:
    """Ask recorded prompts of RUN again, byte for byte, and record the answers.

    RUN is a run folder or a recording. What is asked again its system says: the votes of a panel,
    a debate or a vote on labels, and in a group lesson the evaluation of who speaks. All voters of
    a turn are asked, each --repeats times, and what cannot be read, or was cut off, is asked once
    more, as in the run. The answers are kept in the recording's
    folder `retest`, which `tutorsim replay` and `verify` play too; the recording itself stays as
    it is. A run folder gets retest.json and retest.jsonl, which `tutorsim summary` reads.

    The same command given again goes on where the last one stopped, and with more --repeats, more
    stages or a larger sample it pays for what is missing. --max-usd caps the retest, not the run.

    \b
    --plan --json gives:
      study, episodes, turns, prompts, repeats, recorded, calls, most_calls,
      tokens: {model: [in, out]}, prices_as_of, cost (of calls), expected_cost,
      most_cost (of most_calls), unknown_prices
    --json gives:
      study, episodes, turns, prompts, repeats, stages, sample, seed, ask_cut_off_again, paid,
      calls, failures, provenance
    Exit codes: 0 done · 1 done, but calls failed · 2 usage · 3 a call of the recording is missing
    or changed · 4 a folder holds a damaged recording · 5 the cap is reached · 130 interrupted.
    """
    from tutorsim.runner.open_recording import find_recording
    from tutorsim.runner.retest_of_recording import plan_retest, survey
    from tutorsim.runner.stops import Budget

    if stages == ():
        raise click.UsageError("--stages names no stage.")
    design = Design(repeats, stages or (), sample, seed)
    prices = load_prices(options["prices"])
    folder = find_recording(source, cassette_dir=cassette_dir)
    with counted("episodes replayed") as count:
        found = survey(folder, design, on_progress=count)
    if only_plan:
        retry = options["retry_errors"]
        with counted("episodes planned") as count:
            planned = plan_retest(found, prices, retry_errors=retry, on_progress=count)
        publish(_plan(planned), lambda: asdict(planned), as_json=as_json, output=None)
        return
    check_may_record(options["record_in_ci"])
    log_dir = source if (source / RUN_FILE).exists() else None
    budget = Budget(prices, options["max_usd"])
    done = _asked(found, log_dir, budget, options)
    _show_end(found, done, budget, log_dir, as_json=as_json)


def _plan(planned: "RetestPlan") -> Iterator[RenderableType]:
    yield heading(f"Retest of {planned.study}, {planned.repeats} ×")
    yield Prose(
        f"Prompts: {planned.prompts:,}, in {planned.turns:,} turns of {planned.episodes:,} "
        "episodes",
        indent=2,
    )
    yield Prose(
        f"Calls to pay: {planned.calls:,}; at most {planned.most_calls:,} if every reply had to "
        f"be asked for twice ({planned.recorded:,} askings are there already)",
        indent=2,
    )
    for model, (asked, answered) in planned.tokens.items():
        yield Prose(f"Estimated of {model}: {asked:,} tokens in, {answered:,} out", indent=2)
    yield Prose(f"Estimated cost (prices of {planned.prices_as_of}): {_cost(planned)}", indent=2)


def _cost(planned: "RetestPlan") -> str:
    if planned.cost is None or planned.expected_cost is None or planned.most_cost is None:
        return f"unknown: no price for {', '.join(planned.unknown_prices)}"
    return (
        f"{planned.cost:,.2f} to {planned.most_cost:,.2f} US dollars, expected "
        f"{planned.expected_cost:,.2f}: a prompt is asked for twice where it was in the recording"
    )


def _asked(
    found: "Survey", log_dir: Path | None, budget: "Budget", options: dict[str, Any]
) -> "Retested":
    from tutorsim.runner.retest_of_recording import retest as ask

    with recording_progress(budget) as (on_progress, on_warning):
        return ask(
            found,
            log_dir=log_dir,
            budget=budget,
            options=sending(options, on_progress, on_warning),
        )


def _show_end(
    found: "Survey", done: "Retested", budget: "Budget", log_dir: Path | None, *, as_json: bool
) -> None:
    from tutorsim.replay.manifest import retest_folder

    folder, console = found.recording.folder, err()
    failures = [failure for entry in done.manifest.episodes for failure in entry.failures]
    if as_json:
        publish((), lambda: _value(found, done), as_json=True, output=None)
    console.print(safe(f"{spending(budget)}, {done.paid:,} calls paid for now."))
    logged = "" if log_dir is None else f"   Log: {log_dir}"
    console.print(safe(f"Retest: {retest_folder(folder)}{logged}"), soft_wrap=True)
    follow = f"replay {folder} --log-dir DIR" if log_dir is None else f"summary {log_dir}"
    console.print(safe(f"Next: tutorsim {follow}"), soft_wrap=True)
    for failure in failures[:5]:
        console.print(safe(f"Failed: {failure.key}: {failure.error}"), soft_wrap=True)
    if failures:
        console.print(
            f"{len(failures)} call(s) failed. The same command with --retry-errors asks for them "
            "again; without it, only for those that an outage failed."
        )
        raise click.exceptions.Exit(1)


def _value(found: "Survey", done: "Retested") -> dict[str, Any]:
    manifest = done.manifest
    failures = [
        {"episode_id": entry.episode_id, **failure.model_dump(mode="json")}
        for entry in manifest.episodes
        for failure in entry.failures
    ]
    return {
        "study": manifest.study_name,
        "episodes": len(manifest.episodes),
        "turns": found.turns,
        "prompts": found.prompts,
        **asdict(found.design),
        "paid": done.paid,
        "calls": sum(entry.calls for entry in manifest.episodes),
        "failures": failures,
        "provenance": manifest.provenance.model_dump(mode="json"),
    }
