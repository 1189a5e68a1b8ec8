"""Rules of somebody's own, which a recount takes beside its targets.

Scores by rank are counted as any target is: possible winners, exempt voters, breakdown points. Of
a function from ballots to scores nothing is known but what it gives for the ballots cast: a point.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from numbers import Real
from typing import Final, NamedTuple

import numpy as np
import polars as pl

from tutorsim.analysis.ballots.distinct_rows import distinct_rows
from tutorsim.analysis.ballots.vote_arrays import Bools, Ints, Rounds
from tutorsim.analysis.counting.rule_definitions import TARGETS
from tutorsim.analysis.counting.scores import RankScores, RankVector
from tutorsim.analysis.recount.turns_by_size import TurnGroup
from tutorsim.errors import UsageError
from tutorsim.vocabularies import BallotFormat

__all__ = [
    "CastBallots",
    "FunctionRule",
    "NamedVotes",
    "OwnRule",
    "ScoreFunction",
    "check_sizes",
    "checked_rules",
    "convention_words",
    "named_votes",
    "vector_of",
]


@dataclass(frozen=True)
class CastBallots:
    """The valid ballots of one vote, as a function that scores candidates gets them."""

    cast: dict[str, dict[str, int]]
    """Voter → candidate → mass; who abstained is not in it. Masses are votes, approvals (0 or 1),
    points, or Borda points from 0 for the last rank; of rich ballots those under the protocol that
    the study counts."""
    format: BallotFormat
    """`simple`, `ranked`, `cumulative`, `approval` or `rich`."""
    candidates: tuple[str, ...]
    """Everybody who can win, in the order that decides ties."""


ScoreFunction = Callable[[CastBallots], Mapping[str, float | Fraction]]
"""Gives every candidate a score; the largest wins, and equal largest scores are a tie."""

_Leaders = dict[tuple[object, ...], tuple[bool, ...]]
"""Everything that a function is told of a vote → who has the largest score."""


@dataclass(frozen=True, eq=False)
class FunctionRule:
    """A function from ballots to scores, asked once about each different vote."""

    name: str
    function: ScoreFunction
    _leaders: _Leaders = field(default_factory=dict, repr=False)

    def leaders(self, ballots: CastBallots, turn: str) -> tuple[bool, ...]:
        """Who has the largest score, candidate by candidate.

        Args:
            ballots: Of one vote.
            turn: Names an example of it, for errors.

        Raises:
            UsageError: If the function fails, or its scores are none.
        """
        cast = (*((voter, *ballot.values()) for voter, ballot in ballots.cast.items()),)
        key = (ballots.format, ballots.candidates, cast)
        if key not in self._leaders:
            self._leaders[key] = self._asked(ballots, turn)
        return self._leaders[key]

    def _asked(self, ballots: CastBallots, turn: str) -> tuple[bool, ...]:
        candidates = ballots.candidates
        try:
            scores = self.function(ballots)
        except Exception as error:
            raise UsageError(
                f"The rule {self.name!r} fails for {turn}.",
                why=f"{type(error).__name__}: {error}",
                hint="Call the function with tutorsim.CastBallots of your own to find the cause.",
            ) from error
        fault = _fault(scores, candidates)
        if fault:
            raise UsageError(
                f"The rule {self.name!r} gives no scores for {turn}.",
                why=fault,
                hint="A rule returns a number for each candidate, as {candidate: score}; here for "
                f"{', '.join(candidates)}.",
            )
        best = max(scores[c] for c in candidates)
        return tuple(bool(scores[c] == best) for c in candidates)


def _fault(scores: object, candidates: Sequence[str]) -> str:
    """What keeps a result from being scores; empty if nothing does."""
    if not isinstance(scores, Mapping):
        return f"It returned {scores!r}, which is no mapping of candidates to scores."
    for candidate in candidates:
        if candidate not in scores:
            return f"It gave no score for {candidate!r}."
        score = scores[candidate]
        if not isinstance(score, Real):
            return f"The score of {candidate!r} is {score!r}, which is no number."
        if score != score:
            return f"The score of {candidate!r} is not a number (NaN)."
    strangers = [name for name in scores if name not in candidates]
    return f"It gave a score to {strangers[0]!r}, who is no candidate." if strangers else ""


OwnRule = RankScores | FunctionRule


def checked_rules(rules: Mapping[str, RankScores | ScoreFunction]) -> dict[str, OwnRule]:
    """Rules as they are asked.

    Raises:
        UsageError: If a name is a target's or none, or a rule is neither scores nor a function.
    """
    return {_checked_name(name): _checked_rule(name, rule) for name, rule in rules.items()}


def _checked_name(name: str) -> str:
    if not isinstance(name, str) or not name.strip() or name in TARGETS:
        raise UsageError(
            f"An own rule cannot be called {name!r}.",
            why="That is the name of a rule that is always there."
            if name in TARGETS
            else "A name is a text that is not empty.",
            hint=f"Take a name that is none of {', '.join(TARGETS)}.",
        )
    return name


def _checked_rule(name: str, rule: RankScores | ScoreFunction) -> OwnRule:
    if isinstance(rule, RankScores):
        return rule
    if not callable(rule):
        raise UsageError(
            f"The rule {name!r} is {rule!r}.",
            why="An own rule is scores by rank, or a function from ballots to scores.",
            hint="For example tutorsim.RankScores([3, 1, 0, 0]).",
        )
    return FunctionRule(name, rule)


def vector_of(name: str, rule: RankScores, m: int, turn: str = "") -> RankVector:
    """Scores by rank for a number of candidates.

    Raises:
        UsageError: If it has none, with an example of a turn.
    """
    try:
        return _vector(rule, m)
    except UsageError as error:
        raise UsageError(
            f"The rule {name!r} does not fit {turn or f'a vote of {m} candidates'}.",
            why=" ".join(filter(None, (error.what, error.why))),
            hint=error.hint,
        ) from error


@lru_cache(maxsize=1 << 8)  # asked for by every group, stage and table
def _vector(rule: RankScores, m: int) -> RankVector:
    return RankVector.of(rule.at(m))


class NamedVotes(NamedTuple):
    """Rounds with the names that a function is told."""

    rounds: Rounds
    format: BallotFormat
    order: tuple[str, ...]
    """Candidates by place."""
    names: tuple[str, ...]
    """Voters by number."""
    turns: pl.DataFrame
    """Episode and turn by row."""

    def leaders(self, rule: FunctionRule) -> tuple[Bools, Ints]:
        """Who leads the different votes, shape (votes, m), and the vote of each round."""
        part = self.rounds
        rounds, _, m = part.masses.shape
        columns = [*part.candidates.T, *part.voters.T, *part.cast.T]
        first, of = distinct_rows([*columns, *part.masses.reshape(rounds, -1).T])
        led = [rule.leaders(self._ballots(row), self._turn(row)) for row in first.tolist()]
        return np.array(led, dtype=np.bool_).reshape(len(first), m), of

    def _ballots(self, row: int) -> CastBallots:
        part = self.rounds
        candidates = tuple(self.order[place] for place in part.candidates[row].tolist())
        rows = zip(
            part.voters[row].tolist(), part.masses[row].tolist(), part.cast[row], strict=True
        )
        cast = {
            self.names[voter]: dict(zip(candidates, masses, strict=True))
            for voter, masses, valid in rows
            if valid
        }
        return CastBallots(cast, self.format, candidates)

    def _turn(self, row: int) -> str:
        return _turn(self.turns, self.rounds, row)


def named_votes(group: TurnGroup) -> list[NamedVotes]:
    """The final votes of a group, then the first votes of each size."""
    return [
        NamedVotes(rounds, group.protocol, group.order, group.voters, group.turns)
        for rounds in (group.decided.final, *(first.rounds for first in group.firsts))
    ]


def check_sizes(groups: Iterable[TurnGroup], rules: Mapping[str, RankScores]) -> None:
    """Hold scores by rank to the numbers of candidates that there are.

    Raises:
        UsageError: If a rule has no scores for one, naming a turn.
    """
    for group in groups if rules else ():
        for rounds in (group.decided.final, *(first.rounds for first in group.firsts)):
            for name, rule in rules.items():
                vector_of(name, rule, rounds.masses.shape[2], _turn(group.turns, rounds, 0))


def _turn(turns: pl.DataFrame, rounds: Rounds, row: int) -> str:
    """A turn by its names."""
    episode, turn = turns.row(int(rounds.turn[row]))[:2]
    return f"turn {turn} of {episode}"


_LISTED: Final = 6
"""Scores that are listed whole."""


def convention_words(name: str, rule: OwnRule, sizes: Iterable[int]) -> str:
    """How an own rule counts, for captions.

    Args:
        name: Of the rule.
        rule: The rule.
        sizes: Numbers of candidates that it was asked about.
    """
    if isinstance(rule, FunctionRule):
        return f"{name}: a function of the ballots as cast; a point only, which nothing bounds."
    several = [(m, _listed([str(score) for score in rule.at(m)])) for m in sorted(set(sizes))]
    if len(several) == 1:
        return f"{name}: {several[0][1]} by rank."
    return f"{name}: " + "; ".join(f"{scores} by rank of {m}" for m, scores in several) + "."


def _listed(scores: Sequence[str]) -> str:
    if len(scores) > _LISTED:
        scores = [*scores[: _LISTED - 2], "…", scores[-1]]
    return ", ".join(scores)
