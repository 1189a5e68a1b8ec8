"""`tutorsim branch` and `tutorsim retest`: a recording continued, and its votes asked again."""

import re
from collections.abc import Iterator, Mapping, Set
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, cast

import click
from rich.console import RenderableType
from rich.text import Text

from tutorsim.analysis.ballots.recount_source import Source, open_source
from tutorsim.analysis.systems.system_view_opened_run_and_cost import Ballots, Leaving, view_of
from tutorsim.cli.console_progress_and_safe_text import Count, counted, err, safe, tell, working
from tutorsim.cli.options_and_progress_of_commands_that_record import (
    check_may_record,
    record_study,
    recording_options,
    recording_progress,
    sending,
    sending_options,
    spending,
)
from tutorsim.cli.options_that_commands_share import (
    PLACE,
    json_option,
    names,
    order_option,
    recording_option,
)
from tutorsim.cli.printed_prose_and_tables_and_published_files import (
    Prose,
    caption,
    heading,
    number,
    publish,
    table,
)
from tutorsim.errors import UsageError
from tutorsim.kernel.cost_plan import PriceTable, load_prices
from tutorsim.kernel.load_and_check_study_file import load_recorded_study
from tutorsim.kernel.retest_flow_and_drawn_turns import Design
from tutorsim.kernel.system_and_loaded_study import CallRange, LoadedStudy
from tutorsim.records import RUN_FILE, Branch
from tutorsim.replay import MANIFEST_FILE
from tutorsim.runner.branch_plan_and_answers_from_parent import (
    Alternative,
    Branching,
    BranchPlan,
    EpisodePlan,
    Parent,
)
from tutorsim.runner.find_and_check_recording import (
    Recording,
    check_log_of,
    find_recording,
    open_recording,
)
from tutorsim.system_registry import named
from tutorsim.vocabularies import PROTOCOLS, Protocol, TiePolicy

if TYPE_CHECKING:
    from tutorsim.runner.early_stops_by_signal_cost_cap_or_outage import Budget
    from tutorsim.runner.retest_plan_cost_and_recording import Retested, RetestPlan, Survey


@click.command()
@click.argument("source", metavar="RUN", type=PLACE)
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
@click.option("--seed", type=int, default=0, show_default=True, help="Seed of --sample.")
@recording_option
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

    RUN is a run folder or a recording. The command asks again for the votes of a panel or a debate,
    for votes on labels, and in a group lesson for the evaluation of who speaks. All voters of a
    turn are asked, each --repeats times; what cannot be read, or was cut off, is asked for once
    more, as in the run. The answers are kept in the recording's folder `retest`, which `tutorsim
    replay` and `verify` play too; the recording itself stays as it is. A run folder gets
    retest.json and retest.jsonl, which `tutorsim summary` reads.

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
    from tutorsim.runner.early_stops_by_signal_cost_cap_or_outage import Budget
    from tutorsim.runner.find_and_check_recording import find_recording
    from tutorsim.runner.retest_plan_cost_and_recording import plan_retest, survey

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
    from tutorsim.runner.retest_plan_cost_and_recording import retest as ask

    with recording_progress(budget) as (on_progress, on_warning):
        return ask(
            found, log_dir=log_dir, budget=budget, options=sending(options, on_progress, on_warning)
        )


def _show_end(
    found: "Survey", done: "Retested", budget: "Budget", log_dir: Path | None, *, as_json: bool
) -> None:
    from tutorsim.replay.manifests_of_recordings_and_retests_provenance import retest_folder

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
            f"Calls that failed: {len(failures)}. The same command with --retry-errors asks for "
            "them again; without it, only for those that an outage failed."
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


# --- Branch planned ------------------------------------------------------------------------------

LISTED = 12
"""Episodes of a plan listed in the terminal; JSON has them all."""


def branch_plan_shown(
    question: str, planned: BranchPlan, left_open: int
) -> Iterator[RenderableType]:
    """A plan for the terminal. `left_open`: episodes that it does not take up."""
    yield heading(f"Branch: {question}")
    taken_up = len(planned.episodes)
    yield Prose(
        f"Episodes: {planned.covered:,} cannot change and are kept as logged, {taken_up:,} are "
        f"taken up again" + (f", {left_open:,} are left open." if left_open else "."),
        indent=2,
    )
    yield Prose(f"Calls taken over from the recording: {planned.reused:,}, at no cost", indent=2)
    yield Prose(f"Calls to pay: {calls_to_pay_shown(planned.calls)}", indent=2)
    asked, answered = planned.tokens
    yield Prose(
        f"Estimated: at most {asked:,} tokens in, {answered:,} out; "
        f"{_money(planned.least_cost, planned.cost)} (prices of {planned.prices_as_of})",
        indent=2,
    )
    if planned.expected_cost is not None:
        length = "halfway" if planned.share is None else f"{100 * planned.share:.0f} % of the way"
        yield Prose(
            f"Expected: {planned.expected_cost:,.3f} US dollars, {length} from the shortest to the "
            "longest path, as the recorded episodes are",
            indent=2,
        )
    if not planned.episodes:
        return
    yield Text()
    yield heading("Episodes", "those first that shrink the outcome bounds most per dollar")
    yield table(
        ("episode", "from turn", "first paid call", "taken over", "to pay", "US $", "bounds −"),
        [_row(plan) for plan in planned.episodes[:LISTED]],
    )
    if taken_up > LISTED:
        yield Prose(f"and {taken_up - LISTED} more; --json has them all", indent=2)
    yield caption(
        "To pay: fewest to most calls, every reply read at the first asking. Bounds −: by how "
        "much the worst-case bounds of the episode's benchmark and condition can shrink, in "
        "percentage points. Tokens and cost: estimates from the recorded calls."
    )


def _row(plan: EpisodePlan) -> tuple[str, ...]:
    return (
        plan.episode_id,
        str(plan.turn),
        plan.first_paid or "none",
        f"{plan.reused:,}",
        f"{plan.calls.least:,} to {plan.calls.most:,}",
        _amounts(plan.least_cost, plan.cost),
        number(100 * plan.shrinks, 1),
    )


def calls_to_pay_shown(calls: CallRange) -> str:
    """A range of calls in words."""
    exact = (
        f"{calls.least:,}" if calls.least == calls.most else f"{calls.least:,} to {calls.most:,}"
    )
    return f"{exact}; at most {calls.ceiling:,} if every reply had to be asked for twice"


def _money(least: float | None, most: float | None) -> str:
    known = least is not None and most is not None
    return f"{_amounts(least, most)} US dollars" if known else "cost unknown: no price for a model"


def _amounts(least: float | None, most: float | None) -> str:
    return "unknown" if least is None or most is None else f"{least:,.3f} to {most:,.3f}"


# --- Branch --------------------------------------------------------------------------------------


@click.command()
@click.argument("source", metavar="RUN", type=PLACE)
@click.option("--rule", type=click.Choice(PROTOCOLS), help="Decide under this rule.")
@order_option
@click.option("--tie-policy", type=click.Choice(["no_tie_round"]), help="Leave the tie round out.")
@click.option(
    "--roles",
    callback=names,
    metavar="ROLE,ROLE,…",
    help="The panel that goes on once another winner was delivered.",
)
@click.option("--model", help="The tutors' model once another winner was delivered.")
@click.option("-o", "--output", type=PLACE, metavar="NEW", help="Folder of the branch.")
@click.option("--plan", "only_plan", is_flag=True, help="Show what it takes; send nothing.")
@json_option
@click.option(
    "--continuations",
    type=click.IntRange(1, 99),
    default=1,
    show_default=True,
    help="Draws of each episode's future; one draw is not what would have happened.",
)
@click.option(
    "--limit",
    type=click.IntRange(min=1),
    help="Take up so many episodes, those first that shrink the bounds most per dollar.",
)
@recording_option
@recording_options
def branch(
    source: Path,
    rule: str | None,
    fallback_order: tuple[str, ...] | None,
    tie_policy: str | None,
    roles: tuple[str, ...] | None,
    model: str | None,
    output: Path | None,
    only_plan: bool,
    as_json: bool,
    continuations: int,
    limit: int | None,
    cassette_dir: Path | None,
    **options: Any,
) -> None:
    """Continue the recording of RUN under another rule, where that would have changed a winner.

    Name one alternative: --rule, --fallback-order or --tie-policy. Every episode that it may
    change goes on from the first turn where it does; what comes before is taken over from the
    recording and costs nothing, and episodes that it cannot change are kept as they were logged.
    Voters are asked again only where their ballots do not determine those under the alternative.

    NEW becomes a recording and a run in one: `tutorsim verify NEW`, `tutorsim compare RUN NEW`.
    The same command given again goes on where the last one stopped; with more --continuations
    or a higher --limit it adds to what is there.

    \b
    --plan --json gives:
      question, covered, open, reused, calls: {least most ceiling}, tokens, least_cost, cost,
      expected_cost (as long as the recording's episodes: share, from 0, shortest, to 1),
      prices_as_of, episodes: [{episode_id benchmark condition turn first_paid reused calls
                                tokens least_cost cost shrinks}], best first
    Exit codes: as for `tutorsim run`.
    """
    if as_json and not only_plan:
        raise click.UsageError("--json goes with --plan.")
    if output is None and not only_plan:
        raise click.UsageError("Give -o NEW, or --plan.")
    prices = load_prices(options["prices"])
    folder = find_recording(source, cassette_dir=cassette_dir)
    _check_output(output, folder, source)
    recording = open_recording(folder)
    recording.loaded.system.check_command("branch")
    begun = None if output is None or only_plan else _begun(output)
    with _opened(recording, source) as run, counted("episodes planned") as count:
        with working("Counting under the alternative …"):
            question, first_turns = _first_turns(run, rule, fallback_order, tie_policy)
        changed = Alternative(
            rule=cast("Protocol | None", rule),
            fallback_order=_whole(run, fallback_order),
            tie_policy=cast("TiePolicy | None", tie_policy),
            roles=roles,
            model=model,
        )
        loaded, parent, planned = _planned(
            recording, run, changed, first_turns, continuations, limit, prices, begun, count
        )
    if only_plan:
        left_open = len(first_turns) - len(planned.episodes)
        value = {
            "question": question,
            "open": left_open,
            **asdict(planned),
            "expected_cost": planned.expected_cost,
        }
        publish(
            branch_plan_shown(question, planned, left_open),
            lambda: value,
            as_json=as_json,
            output=None,
        )
        return
    check_may_record(options["record_in_ci"])
    assert output is not None
    if begun is not None:
        _check_same_branch(output, begun.study, loaded)
    there = "" if begun is None else " What is there already is not paid for again."
    tell(f"Calls to pay: {calls_to_pay_shown(planned.calls)}.{there}")
    record_study(loaded, output, output, prices, options, parent=parent)
    tell(f"Then: tutorsim compare {source} {output}")


def _check_output(output: Path | None, recording: Path, run: Path) -> None:
    if output is not None and output.resolve() in (recording.resolve(), run.resolve()):
        raise UsageError(
            f"{output} is the recording or run that is continued.",
            why="A branch leaves its parent as it is.",
            hint="Choose another folder for -o.",
        )


@dataclass(frozen=True)
class _Begun:
    """What a folder holds of a branch already."""

    study: LoadedStudy
    continuations: int
    episodes: Set[str]
    """Episodes of the parent that are kept: all of a finished branch, otherwise those begun."""


def _begun(output: Path) -> _Begun | None:
    """What a folder holds; `None` where it holds no study; refused if it cannot be read."""
    path = output / "study.toml"
    if not path.exists():
        return None
    loaded = load_recorded_study(output)
    loaded.system.check_command("branch")
    here = loaded.branch
    if here is None:
        return _Begun(loaded, 1, frozenset())
    found = (re.match(r"(.+)\.c[0-9]{2}\.", one.name) for one in output.iterdir())
    begun = {match[1] for match in found if match}
    kept = here.episodes.keys() if (output / MANIFEST_FILE).exists() else begun
    return _Begun(loaded, here.continuations, frozenset(kept))


def _check_same_branch(output: Path, study: LoadedStudy, loaded: LoadedStudy) -> None:
    """Refuse a folder that holds something else, and say how it differs."""
    here, wanted = study.branch, loaded.branch
    if here is None or wanted is None or here.parent_recording != wanted.parent_recording:
        raise UsageError(
            f"{output} holds another recording ({study.study.name}).",
            why="It does not continue this parent.",
            hint="Choose another folder for -o.",
        )
    moved = any(wanted.episodes.get(name, one) != one for name, one in here.episodes.items())
    if study.digest() == loaded.digest() and not moved:
        return
    fixed = [name for name in Branch.model_fields if name not in ("continuations", "episodes")]
    differ = [name for name in fixed if getattr(here, name) != getattr(wanted, name)]
    raise UsageError(
        f"{output} holds another branch of this parent.",
        why=f"They differ in {', '.join(differ) or 'prompts or cursors'}.",
        hint="Choose another folder for -o, or give the options that it was begun with.",
    )


@contextmanager
def _opened(recording: Recording, path: Path) -> Iterator[Source]:
    """The run, held against its recording; a recording without a log is replayed first."""
    if (path / RUN_FILE).exists():
        check_log_of(path, recording)
        yield open_source(path)
        return
    from tutorsim.runner.replay_into_run_folder_in_several_processes import replay

    with TemporaryDirectory() as folder:
        with counted("episodes replayed") as count:
            replay(path, log_dir=Path(folder), on_progress=count)
        yield open_source(Path(folder))


def _first_turns(
    run: Source, rule: str | None, order: tuple[str, ...] | None, policy: str | None
) -> tuple[str, dict[str, int]]:
    """The question in words, and the first turn of every episode that may have another winner."""
    assert run.run is not None
    leave = view_of(run.run.system).diverge
    assert leave is not None  # a system whose episodes can be branched says where they leave
    found = leave(Ballots(run), Leaving(rule, order, policy))
    return found.question, {
        row["episode_id"]: row["first_possible"]
        for row in found.episodes.to_dicts()
        if row["path"] != "covered"
    }


def _whole(run: Source, order: tuple[str, ...] | None) -> tuple[str, ...] | None:
    """An order with the roles that it leaves out behind it."""
    logged = run.fallback_order or ()
    return None if order is None else (*order, *(role for role in logged if role not in order))


def _planned(
    recording: Recording,
    run: Source,
    changed: Alternative,
    first_turns: Mapping[str, int],
    continuations: int,
    limit: int | None,
    prices: PriceTable,
    begun: _Begun | None,
    count: Count,
) -> tuple[LoadedStudy, Parent, BranchPlan]:
    """The branch's study, its parent and its plan, with a limit those of its best episodes.

    What was begun may grow: it keeps its episodes, and has no fewer continuations.
    """
    draws = max(continuations, begun.continuations if begun else 1)
    branching: Branching = named(recording.loaded.system.branching)

    def study(only: set[str] | None) -> tuple[LoadedStudy, Parent]:
        loaded = branching.study(
            recording, run.episodes, changed, first_turns, continuations=draws, only=only
        )
        assert loaded.branch is not None
        return loaded, Parent(recording, loaded.branch)

    loaded, parent = study(None)
    planned = branching.plan(loaded, parent, run.episodes, prices, on_progress=count)
    if limit is None or len(planned.episodes) <= limit:
        return loaded, parent, planned
    planned = planned.limited(limit, also=begun.episodes if begun else frozenset())
    return *study({plan.episode_id for plan in planned.episodes}), planned
