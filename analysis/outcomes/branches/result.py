"""What setting a branch beside its parent gives."""

from collections.abc import Mapping
from dataclasses import dataclass

from tutorsim.analysis.outcomes.branches.extra_calls import PaidCalls
from tutorsim.analysis.outcomes.student_scores import Outcome
from tutorsim.analysis.statistics.intervals_and_tests import (
    Bounds,
    Estimate,
    Interval,
    NotEstimable,
    PermutationTest,
    to_json,
)

__all__ = ["BranchCell", "BranchComparison", "BranchOutcome", "BranchedPath", "Move"]


@dataclass(frozen=True)
class BranchOutcome:
    """One outcome of one benchmark and condition."""

    outcome: Outcome
    logged: float | NotEstimable
    """Mean in the parent, all episodes."""
    before: Bounds | NotEstimable
    """The parent's worst-case bounds: every uncovered outcome is 0 or 1."""
    after: Bounds | NotEstimable
    """With continued episodes at the mean of their draws, what is still open at 0 or 1."""
    interval: Interval | NotEstimable
    """Of `after`, at 95 %, over tasks."""
    estimate: Estimate | NotEstimable
    """The re-simulated mean; only where nothing is open."""
    continued_logged: float | NotEstimable
    """Mean in the parent of the episodes that the difference rests on."""
    continued_resimulated: float | NotEstimable
    """Mean over the same episodes of the mean of their draws."""
    difference: Estimate | NotEstimable
    """Re-simulated − logged, paired by episode."""
    test: PermutationTest | NotEstimable
    p_holm: float | None
    """Corrected over all rows of the comparison; `None` without a test."""

    def to_json(self) -> dict[str, object]:
        return {name: to_json(value) for name, value in vars(self).items()}


@dataclass(frozen=True)
class Move:
    """How often draws of a cell left the path in one way."""

    turn: int
    before: str
    """The parent's winner of that turn."""
    after: str
    draws: int

    def to_json(self) -> dict[str, object]:
        return dict(vars(self))


@dataclass(frozen=True)
class BranchCell:
    """One benchmark and condition."""

    benchmark: str
    condition: str
    episodes: int
    """With a panel and complete in the parent."""
    covered: int
    """The alternative cannot change them."""
    continued: int
    """With at least one complete draw."""
    left_out: int
    """Neither covered nor continued: left out of the branch, or every draw failed."""
    draws: int
    """Complete draws."""
    failed: int
    """Draws cut short by a failed call."""
    left: float | NotEstimable
    """Share of continued episodes that left the logged path: mean of the shares of their draws."""
    moves: tuple[Move, ...]
    """Where the draws left it, and for which role; most frequent first."""
    calls: PaidCalls
    outcomes: tuple[BranchOutcome, ...]

    def to_json(self) -> dict[str, object]:
        return {name: to_json(value) for name, value in vars(self).items()}


@dataclass(frozen=True)
class BranchedPath:
    """One logged episode that the alternative may change."""

    episode_id: str
    benchmark: str
    condition: str
    turn: int | None
    """The first turn that the alternative decides; `None` where it was left out."""
    continuations: tuple[str, ...]
    """Complete ones."""
    left: tuple[int | None, ...]
    """Turn at which each left the logged path; `None` where it never did."""
    logged: Mapping[Outcome, float | None]
    draws: Mapping[Outcome, tuple[float | None, ...]]
    """One per continuation; `None` where it was not scored."""
    resimulated: Mapping[Outcome, float | NotEstimable]
    """Mean of the draws, from two draws on."""

    def to_json(self) -> dict[str, object]:
        return {name: to_json(value) for name, value in vars(self).items()}


@dataclass(frozen=True)
class BranchComparison:
    """A branch and its parent."""

    parent: str
    child: str
    changes: str
    """What the branch changes, in words."""
    continuations: int
    """Draws asked for, of each episode."""
    cells: tuple[BranchCell, ...]
    paths: tuple[BranchedPath, ...]
    caption: str

    def to_json(self) -> dict[str, object]:
        return {name: to_json(value) for name, value in vars(self).items()}
