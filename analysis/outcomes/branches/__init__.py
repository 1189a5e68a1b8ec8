"""A branch beside the recording that it continues: what was logged, bounded and re-simulated.

Three kinds of figures stand side by side and are never added up without saying so:

* *logged*: the parent's outcomes;
* *bounds*: the parent's worst case under the alternative, every uncovered outcome 0 or 1;
* *re-simulated*: covered outcomes as logged, and for each continued episode the mean of its
  draws. What is still open (an episode left out, a draw that failed or was not scored) is 0 or 1.

A continuation is one draw of what might have followed, not what would have happened. Episodes
with a panel only: the single tutor has no votes to decide otherwise.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

import polars as pl

from tutorsim.analysis.ballots.recount_source import Source
from tutorsim.analysis.metrics.turn_table import turn_table
from tutorsim.analysis.outcomes.branches.episode_pairs import Pair, mean, moves, pairs_of, path_of
from tutorsim.analysis.outcomes.branches.extra_calls import PaidCalls, Tokens, paid_calls
from tutorsim.analysis.outcomes.branches.result import (
    BranchCell,
    BranchComparison,
    BranchedPath,
    BranchOutcome,
    Move,
)
from tutorsim.analysis.outcomes.student_scores import Outcome
from tutorsim.analysis.outcomes.where_other_rules_diverge import Alternatives, Coverage, diverge
from tutorsim.analysis.runs.branch_continuations import branch_changes
from tutorsim.analysis.statistics.intervals_and_tests import (
    Estimate,
    NotEstimable,
    PermutationTest,
    flips_by_task,
    holm,
)
from tutorsim.analysis.statistics.partly_known_means import Unit, interval_of_mean, mean_bounds
from tutorsim.errors import UsageError
from tutorsim.records import Branch

__all__ = [
    "BranchCell",
    "BranchComparison",
    "BranchOutcome",
    "BranchedPath",
    "Move",
    "PaidCalls",
    "Tokens",
    "compare_branch",
    "is_branch_of",
    "paid_calls",
]

_OUTCOMES: Final[tuple[Outcome, ...]] = ("success", "final_score", "final_code")

_NOTHING: Final = NotEstimable("no episode with a logged outcome")


def is_branch_of(parent: Source, child: Source) -> bool:
    """Whether one run is a branch of the other's recording."""
    branch = child.run.branch if child.run else None
    if branch is None or parent.run is None:
        return False
    return branch.parent_recording == parent.run.recording_digest


def compare_branch(parent: Source, child: Source, *, seed: int = 0) -> BranchComparison:
    """Set a branch beside its parent, outcome by outcome and episode by episode.

    Args:
        parent: The run that was continued.
        child: The branch.
        seed: Of the draws of tests.

    Raises:
        UsageError: If the second is no branch of the first's recording.
    """
    branch = _branch(parent, child)
    found = diverge(parent, _covered_winners(parent, branch), question="The branch")
    pairs = pairs_of(found, parent, child)
    cells = [_cell(coverage, pairs, branch, seed) for coverage in found.coverage]
    return BranchComparison(
        parent=parent.name,
        child=child.name,
        changes=branch_changes(branch),
        continuations=branch.continuations,
        cells=_corrected(cells),
        paths=tuple(
            path_of(pair, branch, _names(pair.logged.benchmark))
            for pair in pairs
            if not pair.covered
        ),
        caption=(
            f"Parent: {parent.provenance}. Branch: {child.provenance}. Logged: as the parent has "
            "it. Bounds: every uncovered outcome 0 or 1. Re-simulated: covered outcomes as "
            "logged, and the mean draw of each continued episode."
        ),
    )


def _branch(parent: Source, child: Source) -> Branch:
    branch = child.run.branch if child.run else None
    if branch is None:
        raise UsageError(
            f"{child.name} is no branch.",
            why="Its log names no recording that it continues.",
            hint="`tutorsim branch` continues a recording; `tutorsim compare` takes any two runs.",
        )
    if not is_branch_of(parent, child):
        digest = parent.run.recording_digest[:12] if parent.run else ""
        raise UsageError(
            f"{child.name} is no branch of {parent.name}.",
            why=f"It continues {branch.parent}, recording {branch.parent_recording[:12]}; "
            f"{parent.name} is recording {digest or 'unknown'}.",
            hint="Give the run of the recording that was continued.",
        )
    return branch


def _names(benchmark: str) -> tuple[Outcome, ...]:
    return _OUTCOMES if benchmark == "humaneval" else _OUTCOMES[:2]


def _covered_winners(parent: Source, branch: Branch) -> Alternatives:
    """The logged winner where nothing can change it; elsewhere nothing is settled."""
    covered = turn_table(parent).winners().filter(pl.col("episode_id").is_in(branch.covered))
    return covered.select("episode_id", "turn", winners=pl.concat_list("winner"))


def _cell(coverage: Coverage, pairs: Sequence[Pair], branch: Branch, seed: int) -> BranchCell:
    benchmark, condition = str(coverage.benchmark), str(coverage.condition)
    mine = [p for p in pairs if (p.logged.benchmark, p.logged.condition) == (benchmark, condition)]
    continued = [p for p in mine if p.draws and not p.covered]
    costs = [paid_calls(p.logged, draw) for p in mine for draw in (*p.draws, *p.failed)]
    return BranchCell(
        benchmark=benchmark,
        condition=condition,
        episodes=coverage.episodes,
        covered=coverage.covered,
        continued=len(continued),
        left_out=coverage.episodes - coverage.covered - len(continued),
        draws=sum(len(p.draws) for p in continued),
        failed=sum(len(p.failed) for p in mine),
        left=mean([sum(turn is not None for turn in p.left) / len(p.left) for p in continued]),
        moves=moves(continued),
        calls=sum(costs, PaidCalls()),
        outcomes=tuple(_outcome(o, coverage, mine, branch, seed) for o in _names(benchmark)),
    )


def _outcome(
    name: Outcome, coverage: Coverage, pairs: Sequence[Pair], branch: Branch, seed: int
) -> BranchOutcome:
    paired = [(pair, gap) for pair in pairs if (gap := pair.gap(name)) is not None]
    logged = [value for pair, _ in paired if (value := pair.value(name)) is not None]
    gaps = [gap for _, gap in paired]
    row = BranchOutcome(
        outcome=name,
        logged=coverage.logged[name],
        before=coverage.bounds[name],
        after=_NOTHING,
        interval=_NOTHING,
        estimate=_NOTHING,
        continued_logged=mean(logged),
        continued_resimulated=mean(
            [first + gap.low for first, gap in zip(logged, gaps, strict=True)]
        ),
        difference=_mean_gap(gaps),
        test=flips_by_task([gap.low for gap in gaps], [gap.task for gap in gaps], seed=seed),
        p_holm=None,
    )
    if isinstance(row.before, NotEstimable):
        return row
    return _resimulated(row, [pair.unit(name, branch.continuations) for pair in pairs])


def _resimulated(row: BranchOutcome, units: Sequence[Unit]) -> BranchOutcome:
    after, interval = mean_bounds(units), interval_of_mean(units)
    open_ = sum(unit.is_open for unit in units)
    estimate: Estimate | NotEstimable = Estimate(after.low, after.n, interval)
    if open_:
        estimate = NotEstimable(f"{open_} of {after.n} episodes are still open")
    return replace(row, after=after, interval=interval, estimate=estimate)


def _mean_gap(gaps: Sequence[Unit]) -> Estimate | NotEstimable:
    if not gaps:
        return NotEstimable("no continued episode with this outcome in both")
    return Estimate(mean_bounds(gaps).low, len(gaps), interval_of_mean(gaps, ends=(-1, 1)))


def _corrected(cells: Sequence[BranchCell]) -> tuple[BranchCell, ...]:
    """Holm's correction over all rows."""
    tested = {
        (i, row.outcome): row.test.p_value
        for i, cell in enumerate(cells)
        for row in cell.outcomes
        if isinstance(row.test, PermutationTest)
    }
    corrected = holm(tested)
    found = []
    for i, cell in enumerate(cells):
        rows = (replace(row, p_holm=corrected.get((i, row.outcome))) for row in cell.outcomes)
        found.append(replace(cell, outcomes=tuple(rows)))
    return tuple(found)
