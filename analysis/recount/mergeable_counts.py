"""What turns have in common, counted: the mergeable part of a recount.

Every table of a recount is a sum over turns of what a turn adds: who could have won, who did,
how a tie was broken. Few such additions differ, however many turns there are. `RecountCounts`
counts them, and two of them add up. What names single turns, the per-turn table, is not in it,
nor is what needs the logs of a run: raw replies and stated confidences.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple, TypeVar

from tutorsim.analysis.identify import Possible, TieReading
from tutorsim.analysis.recount.result_models import Agreed, Interval
from tutorsim.vocabularies import BallotFormat

__all__ = [
    "LISTED_VOTERS",
    "Answer",
    "AnswerCount",
    "AnyVoter",
    "Electorate",
    "FlipCount",
    "Outcome",
    "OutcomeTables",
    "Policy",
    "Projection",
    "RecountCounts",
    "RuleKey",
    "TiedSet",
    "TiedSets",
    "few",
    "outcome_tables",
]

LISTED_VOTERS: Final = 12
"""Voters that get a row each in `leave_one_out`; with more there is only the row of any one."""

K = TypeVar("K")


class TiedSet(NamedTuple):
    """What turns have in common that a fallback order can tell apart.

    The winner under any order is the first of what counting left, so the counts of such sets are
    all that a sweep over orders needs.
    """

    protocol: str
    decided_by: str
    undecided: tuple[str, ...]
    """Sorted by name; one candidate unless the order decided."""


@dataclass(frozen=True)
class TiedSets:
    """How often each tied set occurred; the sum of two is that of their turns together."""

    counts: Mapping[TiedSet, int]

    def __add__(self, other: "TiedSets") -> "TiedSets":
        total = Counter(self.counts)
        total.update(other.counts)
        return TiedSets(dict(sorted(total.items())))

    @property
    def turns(self) -> int:
        """Turns counted."""
        return sum(self.counts.values())

    @property
    def candidates(self) -> tuple[str, ...]:
        """Everybody who is in some undecided set, by name."""
        return tuple(sorted({c for tied in self.counts for c in tied.undecided}))

    def of(self, protocol: str) -> "TiedSets":
        """The turns of one protocol."""
        return TiedSets({t: n for t, n in self.counts.items() if t.protocol == protocol})

    def __iter__(self) -> Iterator[tuple[TiedSet, int]]:
        return iter(self.counts.items())


class Outcome(NamedTuple):
    """How a recount of one turn ends."""

    standing: tuple[str, ...]
    """Who may have won: several only where a tie was never put to a tie round."""
    winner: str
    """The first of those in the order."""
    led: tuple[str, ...] = ()
    """Who led the final vote; several where it was tied."""
    undecided: tuple[str, ...] = ()
    """What counting left, after a tie round where it applies."""


class Policy(NamedTuple):
    """How a turn ended, and who won it as logged: nobody, without an order that decides ties."""

    protocol: BallotFormat
    outcome: Outcome
    logged: str | None


class Electorate(NamedTuple):
    """How a turn ends under another electorate."""

    protocol: BallotFormat
    scenario: str
    voter: str | None
    outcome: Outcome
    """Only who may have won, and who does under the order."""
    logged: str | None


class AnyVoter(NamedTuple):
    """What the absence of some one voter does to a turn."""

    protocol: BallotFormat
    compared: bool
    """It has a logged winner, so the next but one are of it."""
    open: bool
    lower: bool
    point: bool
    upper: bool


class RuleKey(NamedTuple):
    """One row of the rules' table."""

    protocol: BallotFormat
    target: str
    """Name of a target, or of an own rule."""
    reading: TieReading
    exempt: int


class Projection(NamedTuple):
    """What the named projection says; candidates by position."""

    tied: tuple[int, ...]
    """The tied set under it; empty when one leads alone, or nobody."""
    outcome: tuple[int, ...]
    """The point winner, or the tie that stays one."""
    impossible: bool
    """No sincere ballots that agree with those cast give this outcome, so there is no point."""

    @property
    def winner(self) -> int | None:
        """The point winner; `None` for a tie that stays one, and where it is impossible."""
        return self.outcome[0] if len(self.outcome) == 1 and not self.impossible else None


class Answer(NamedTuple):
    """What is said of a turn under one target, reading and number of exempt voters."""

    possible: Possible
    projected: Projection
    breakdown: int
    """`NEVER`, `NOT_SETTLED` and `NO_BOUNDS` stand for what is no number."""


class AnswerCount(NamedTuple):
    """What the final vote of a turn adds to a row of the rules' table."""

    candidates: tuple[str, ...]
    logged: str | None
    answer: Answer


class FlipCount(NamedTuple):
    """Whether the leader of a turn's first vote is not its winner."""

    lower: bool
    """For certain."""
    point: bool
    """By the points of both votes; for certain where one of them has none."""
    upper: bool
    """Possibly."""


@dataclass(frozen=True)
class RecountCounts:
    """Counts of what turns add; the sum of two is that of their turns together."""

    tied: TiedSets
    policies: Mapping[Policy, int] = field(repr=False)
    electorates: Mapping[Electorate, int] = field(repr=False)
    any_voter: Mapping[AnyVoter, int] = field(repr=False)
    voters: Mapping[BallotFormat, frozenset[str]] = field(repr=False)
    """Who voted, up to one more than get a row each."""
    rules: Mapping[RuleKey, Mapping[AnswerCount, int]] = field(repr=False)
    flips: Mapping[RuleKey, Mapping[FlipCount, int]] = field(repr=False)
    """Turns with a first vote."""
    agreed: Mapping[Agreed, int] = field(repr=False)
    """Turns with a logged winner."""
    notes: tuple[str, ...] = ()

    def __add__(self, other: "RecountCounts") -> "RecountCounts":
        return RecountCounts(
            self.tied + other.tied,
            _sum(self.policies, other.policies),
            _sum(self.electorates, other.electorates),
            _sum(self.any_voter, other.any_voter),
            {
                protocol: few(
                    self.voters.get(protocol, frozenset()) | other.voters.get(protocol, frozenset())
                )
                for protocol in {**self.voters, **other.voters}
            },
            _sums(self.rules, other.rules),
            _sums(self.flips, other.flips),
            _sum(self.agreed, other.agreed),
            (*self.notes, *other.notes),
        )

    @staticmethod
    def empty(notes: tuple[str, ...] = ()) -> "RecountCounts":
        """Of no turns, with what reading them took."""
        return RecountCounts(TiedSets({}), {}, {}, {}, {}, {}, {}, {}, notes)

    @property
    def turns(self) -> int:
        """Turns counted."""
        return self.tied.turns


def few(names: Iterable[str]) -> frozenset[str]:
    """As many names as tell whether they are too many to list."""
    return frozenset(sorted(names)[: LISTED_VOTERS + 1])


def _sum(one: Mapping[K, int], other: Mapping[K, int]) -> Mapping[K, int]:
    total = Counter(one)
    total.update(other)
    return total


def _sums(
    one: Mapping[RuleKey, Mapping[K, int]], other: Mapping[RuleKey, Mapping[K, int]]
) -> Mapping[RuleKey, Mapping[K, int]]:
    return {key: _sum(one.get(key, {}), other.get(key, {})) for key in {**one, **other}}


class OutcomeTables(NamedTuple):
    """Counts of outcomes against the logged winners."""

    turns: int
    compared: int
    """Turns that have a logged winner."""
    open_ties: int
    wins: dict[str, Interval]
    changed: Interval


def outcome_tables(
    outcomes: Iterable[tuple[Outcome, str | None, int]], candidates: Iterable[str]
) -> OutcomeTables:
    """Aggregate outcomes.

    Args:
        outcomes: Outcome, logged winner if there is one, number of turns.
        candidates: Who has a row.
    """
    rows = list(outcomes)

    def total(counts: Callable[[Outcome], bool]) -> int:
        return sum(n for outcome, _, n in rows if counts(outcome))

    def differ(counts: Callable[[Outcome, str], bool]) -> int:
        return sum(n for o, logged, n in rows if logged is not None and counts(o, logged))

    wins = {
        c: Interval(
            lower=total(lambda o, c=c: o.standing == (c,)),  # type: ignore[misc]
            point=total(lambda o, c=c: o.winner == c),  # type: ignore[misc]
            upper=total(lambda o, c=c: c in o.standing),  # type: ignore[misc]
        )
        for c in candidates
    }
    changed = Interval(
        lower=differ(lambda o, logged: logged not in o.standing),
        point=differ(lambda o, logged: o.winner != logged),
        upper=differ(lambda o, logged: o.standing != (logged,)),
    )
    open_ties = total(lambda o: len(o.standing) > 1)
    compared = differ(lambda *_: True)
    return OutcomeTables(total(lambda _: True), compared, open_ties, wins, changed)
