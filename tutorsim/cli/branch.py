"""`tutorsim branch`: continue a recording where another rule would have turned."""

import re
from collections.abc import Iterator, Mapping, Set
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, cast

import click

from tutorsim.analysis.ballots.recount_source import Source, open_source
from tutorsim.analysis.outcomes.where_other_rules_diverge import diverge
from tutorsim.cli.branch_planned import branch_plan_shown, calls_to_pay_shown
from tutorsim.cli.console import err, safe, working
from tutorsim.cli.diverge import alternatives_under
from tutorsim.cli.options import json_option, names, order_option
from tutorsim.cli.output_elements import publish
from tutorsim.cli.progress import Count, counted
from tutorsim.cli.recording import check_may_record, record_study, recording_options
from tutorsim.cost_plan import PriceTable, load_prices
from tutorsim.errors import UsageError
from tutorsim.records import RUN_FILE, Branch
from tutorsim.replay import MANIFEST_FILE
from tutorsim.runner.branching import Alternative, Branching, BranchPlan, Parent
from tutorsim.runner.find_recording import find_recording
from tutorsim.runner.log_digest_check import check_log_of
from tutorsim.runner.open_recording import Recording, open_recording
from tutorsim.system_registry import named
from tutorsim.systems import LoadedStudy, load_recorded_study
from tutorsim.vocabularies import PROTOCOLS, Protocol, TiePolicy

__all__ = ["branch"]


@click.command()
@click.argument("source", metavar="RUN", type=click.Path(path_type=Path))
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
@click.option(
    "-o", "--output", type=click.Path(path_type=Path), metavar="NEW", help="Folder of the branch."
)
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
@click.option(
    "--cassette-dir",
    type=click.Path(path_type=Path),
    help="The recording of RUN, where it is not found by itself.",
)
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
    Voters are asked again only where their ballots do not determine the alternative's.

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
    err().print(f"Calls to pay: {calls_to_pay_shown(planned.calls)}.{there}")
    record_study(loaded, output, output, prices, options, parent=parent)
    err().print(safe(f"Then: tutorsim compare {source} {output}"), soft_wrap=True)


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
    """What a folder holds; `None` where it holds no study.

    Raises:
        StudyError, TaskFileError, CatalogError: If it cannot be read.
    """
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
    """Refuse a folder that holds something else, and say how it differs.

    Raises:
        UsageError: If it does.
    """
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
    """The run, held against its recording; a recording without a log is replayed first.

    Raises:
        LogError: If the log is not the one that the recording gives.
    """
    if (path / RUN_FILE).exists():
        check_log_of(path, recording)
        yield open_source(path)
        return
    from tutorsim.runner.replaying import replay

    with TemporaryDirectory() as folder:
        with counted("episodes replayed") as count:
            replay(path, log_dir=Path(folder), on_progress=count)
        yield open_source(Path(folder))


def _first_turns(
    run: Source, rule: str | None, order: tuple[str, ...] | None, policy: str | None
) -> tuple[str, dict[str, int]]:
    """The question in words, and the first turn of every episode that may have another winner."""
    question, alternatives = alternatives_under(run, rule, order, policy)
    rows = diverge(run, alternatives, question=question).episodes.to_dicts()
    return question, {
        row["episode_id"]: row["first_possible"] for row in rows if row["path"] != "covered"
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
