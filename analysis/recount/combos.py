"""What turns have in common, counted: the mergeable part of a recount.

Every table of a recount is a sum over turns of what a turn's *combination* adds: who could have
won, who did, how a tie was broken. There are few combinations, however many turns there are. A
`Summary` counts them, and two summaries add up. What names single turns, the per-turn table, is
not in it, nor is what needs the logs of a run: raw replies and stated confidences.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple, TypeVar

from analysis.identify import Possible, TieReading
from analysis.recount.answers import Answer, Projection
from analysis.recount.cases import Outcome
from analysis.rules import Target
from analysis.tally import TiedSets
from tutorsim.types import BallotFormat

__all__ = [
    "LISTED_VOTERS",
    "AnyVoter",
    "Electorate",
    "Policy",
    "RuleCombo",
    "RuleKey",
    "Summary",
    "few",
]

LISTED_VOTERS: Final = 12
"""Voters that get a row each in `leave_one_out`; with more there is only the row of any one."""


K = TypeVar("K")


class Policy(NamedTuple):
    """How a turn ended, and who won it as logged."""

    protocol: BallotFormat
    outcome: Outcome
    logged: str


class Electorate(NamedTuple):
    """How a turn ends under another electorate."""

    protocol: BallotFormat
    scenario: str
    voter: str | None
    outcome: Outcome
    """Only who may have won, and who does under the order."""
    logged: str


class AnyVoter(NamedTuple):
    """What the absence of some one voter does to a turn."""

    protocol: BallotFormat
    open: bool
    lower: bool
    point: bool
    upper: bool


class RuleKey(NamedTuple):
    """One row of the rules' table."""

    protocol: BallotFormat
    target: Target
    reading: TieReading
    exempt: int


class RuleCombo(NamedTuple):
    """What a turn adds to such a row."""

    candidates: tuple[str, ...]
    logged: str
    answer: Answer
    first: tuple[Possible, Projection] | None
    """Of the first vote; `None` without one."""


@dataclass(frozen=True)
class Summary:
    """Counts of combinations; the sum of two is that of their turns together."""

    tied: TiedSets
    policies: Mapping[Policy, int] = field(repr=False)
    electorates: Mapping[Electorate, int] = field(repr=False)
    any_voter: Mapping[AnyVoter, int] = field(repr=False)
    voters: Mapping[BallotFormat, frozenset[str]] = field(repr=False)
    """Who voted, up to one more than get a row each."""
    rules: Mapping[RuleKey, Mapping[RuleCombo, int]] = field(repr=False)
    notes: tuple[str, ...] = ()

    def __add__(self, other: "Summary") -> "Summary":
        return Summary(
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
            {
                key: _sum(self.rules.get(key, {}), other.rules.get(key, {}))
                for key in {**self.rules, **other.rules}
            },
            (*self.notes, *other.notes),
        )

    @staticmethod
    def empty() -> "Summary":
        """Of no turns."""
        return Summary(TiedSets({}), {}, {}, {}, {}, {})

    @staticmethod
    def of_notes(notes: tuple[str, ...]) -> "Summary":
        """Of no turns, with what reading them took."""
        return Summary(TiedSets({}), {}, {}, {}, {}, {}, notes)

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
