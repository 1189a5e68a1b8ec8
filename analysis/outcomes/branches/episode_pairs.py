"""Each episode of the parent with what the branch made of it."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from math import fsum

from tutorsim.analysis.ballots.recount_source import Source
from tutorsim.analysis.outcomes.branches.result import BranchedPath, Move
from tutorsim.analysis.outcomes.student_scores import Outcome, outcome_of
from tutorsim.analysis.outcomes.where_other_rules_diverge import Divergence
from tutorsim.analysis.statistics.intervals_and_tests import NotEstimable
from tutorsim.analysis.statistics.partly_known_means import UNKNOWN, Unit, known_draw
from tutorsim.records import Branch, EpisodeRecord

__all__ = ["Pair", "mean", "moves", "pairs_of", "path_of"]

_SINGLE = NotEstimable("a single draw is not what would have happened")


@dataclass(frozen=True)
class Pair:
    """A parent's episode and its draws."""

    logged: EpisodeRecord
    covered: bool
    draws: tuple[EpisodeRecord, ...]
    """Complete continuations, in order."""
    failed: tuple[EpisodeRecord, ...]
    """Continuations cut short by a failed call."""

    def unit(self, outcome: Outcome, continuations: int) -> Unit:
        """Its outcome: logged where it is covered, else its draws, missing ones unknown.

        Args:
            outcome: Which.
            continuations: Draws asked for.
        """
        task = self.logged.task_id
        if self.covered:
            return Unit(task, (known_draw(self.value(outcome)),))
        if not self.draws:
            return Unit(task, (UNKNOWN,))
        draws = [known_draw(outcome_of(draw, outcome)) for draw in self.draws]
        missing = [UNKNOWN] * (continuations - len(draws))
        return Unit(task, (*draws, *missing))

    def gap(self, outcome: Outcome) -> Unit | None:
        """Draws − logged; `None` where the branch or the log does not say."""
        logged, known = self.value(outcome), self.known(outcome)
        if self.covered or logged is None or not known:
            return None
        gaps = tuple((value - logged, value - logged) for value in known)
        return Unit(self.logged.task_id, gaps)

    def value(self, outcome: Outcome) -> float | None:
        """The logged outcome."""
        return outcome_of(self.logged, outcome)

    def known(self, outcome: Outcome) -> list[float]:
        """The outcome of every draw that has one."""
        values = (outcome_of(draw, outcome) for draw in self.draws)
        return [value for value in values if value is not None]

    @property
    def left(self) -> tuple[int | None, ...]:
        """The turn at which each draw left the logged path."""
        return tuple(draw.branch.left if draw.branch else None for draw in self.draws)


def pairs_of(found: Divergence, parent: Source, child: Source) -> list[Pair]:
    """The parent's episodes with a panel, in their order.

    Args:
        found: Which of them are covered.
        parent: The run that was continued.
        child: The branch.
    """
    logged = {e.episode_id: e for e in parent.episodes}
    draws: dict[str, list[EpisodeRecord]] = {}
    for e in child.episodes:
        if e.branch is not None:
            draws.setdefault(e.branch.parent_episode, []).append(e)
    return [
        Pair(
            logged[name],
            path == "covered",
            tuple(e for e in draws.get(name, []) if e.status == "complete"),
            tuple(e for e in draws.get(name, []) if e.status == "failed"),
        )
        for name, path in found.episodes.select("episode_id", "path").iter_rows()
    ]


def moves(pairs: Sequence[Pair]) -> tuple[Move, ...]:
    """Where the draws left the path and for which role, most frequent first."""
    counts = Counter(
        (left, _winner(pair.logged, left), _winner(draw, left))
        for pair in pairs
        for draw, left in zip(pair.draws, pair.left, strict=True)
        if left is not None
    )
    ordered = sorted(counts.items(), key=lambda found: (-found[1], found[0]))
    return tuple(Move(*move, draws) for move, draws in ordered)


def path_of(pair: Pair, branch: Branch, outcomes: Sequence[Outcome]) -> BranchedPath:
    """One episode that the alternative may change, draw by draw."""
    e = pair.logged
    taken_up = branch.episodes.get(e.episode_id)
    return BranchedPath(
        episode_id=e.episode_id,
        benchmark=e.benchmark,
        condition=e.condition,
        turn=taken_up.turn if taken_up else None,
        continuations=tuple(draw.episode_id for draw in pair.draws),
        left=pair.left,
        logged={name: outcome_of(e, name) for name in outcomes},
        draws={name: tuple(outcome_of(d, name) for d in pair.draws) for name in outcomes},
        resimulated={name: _mean_draw(pair.known(name)) for name in outcomes},
    )


def mean(values: Sequence[float]) -> float | NotEstimable:
    """The mean; not estimable without a value."""
    return fsum(values) / len(values) if values else NotEstimable("no continued episode")


def _mean_draw(known: Sequence[float]) -> float | NotEstimable:
    if len(known) == 1:
        return _SINGLE
    return mean(known) if known else NotEstimable("no draw with this outcome")


def _winner(episode: EpisodeRecord, turn: int) -> str:
    """Whom a turn delivered; empty where the episode had ended before."""
    found = [t.decision.winner for t in episode.turns if t.turn == turn and t.decision]
    return found[0] if found else ""
