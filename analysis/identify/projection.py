"""Named projections: one ballot in the target's format for each ballot cast.

A projection is a convention, not a finding; its winner is only ever reported beside the
possible winners. Shares are exact: masses are scaled to integers, nothing is rounded but a
cumulative ballot's points, by largest remainder with equal remainders to the candidate that
stands first in the order.
"""

from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache
from math import lcm
from typing import Final, NamedTuple

from analysis.identify.domains import levels_of
from analysis.profiles import Masses, Profile
from analysis.rules import RANKING_RULES, Ranking, Target, ballot_format, winners
from tutorsim.types import BallotFormat, Protocol

__all__ = [
    "AS_CAST",
    "Projected",
    "apportioned",
    "project",
    "projected_masses",
    "projected_winners",
    "projection_name",
]

AS_CAST: Final = "as cast"

_KEPT: Final = 1 << 14
"""Different ballots whose projection is kept: turns cast the same few."""

_NAMES: Final[dict[tuple[Protocol, Protocol], str]] = {
    ("simple", "ranked"): "all mass on the choice",
    ("simple", "cumulative"): "all mass on the choice",
    ("simple", "approval"): "all mass on the choice",
    ("ranked", "simple"): "first place",
    ("ranked", "cumulative"): "points in proportion to Borda points",
    ("ranked", "approval"): "more than the average of the Borda points",
    ("cumulative", "simple"): "equal split of the vote among the largest",
    ("cumulative", "ranked"): "average rank",
    ("cumulative", "approval"): "more than an equal share of the points",
    ("approval", "simple"): "equal split of the vote",
    ("approval", "ranked"): "average rank",
    ("approval", "cumulative"): "equal split of the points",
}


class Projected(NamedTuple):
    """A profile's ballots in a target's format."""

    masses: tuple[Masses, ...]
    """Scaled to integers by one common factor."""
    rankings: tuple[Ranking, ...]
    """Weak orders of candidate numbers as text, for the rules that read rankings."""


def projection_name(protocol: BallotFormat, target: Target) -> str:
    """The projection's name, as tables show it."""
    form = ballot_format(target)
    return AS_CAST if protocol == "rich" or protocol == form else _NAMES[protocol, form]


def project(profile: Profile, target: Target, *, budget: int) -> Projected:
    """Project every ballot cast; abstentions stay out.

    For the rules that read rankings the weak order that a ballot shows stands for a ranking;
    such a rule counts a level as the average over its orders.
    """
    form = ballot_format(target)
    plain = profile.under(form)
    masses = tuple(projected_masses(b, plain.rule, form, budget) for b in plain.cast)
    return Projected(masses, tuple(_ranking(b) for b in plain.cast))


@lru_cache(maxsize=_KEPT)
def _ranking(ballot: Masses) -> Ranking:
    """The weak order that a ballot shows, candidates by number."""
    return tuple(tuple(str(c) for c in level) for level in levels_of(ballot))


def projected_winners(
    projected: Projected, target: Target, among: Sequence[int]
) -> tuple[int, ...]:
    """The target's tied winners when only some candidates stand."""
    names = [str(c) for c in among]
    if target in RANKING_RULES:
        rankings = [_restricted(ranking, names) for ranking in projected.rankings]
        found = winners(target, rankings=rankings, candidates=names)
    else:
        ballots = [{str(c): ballot[c] for c in among} for ballot in projected.masses]
        found = winners(target, ballots=ballots, candidates=names)
    return tuple(int(c) for c in found)


def _restricted(ranking: Ranking, names: Sequence[str]) -> Ranking:
    kept = (tuple(c for c in level if c in names) for level in ranking)
    return tuple(level for level in kept if level)


@lru_cache(maxsize=_KEPT)
def projected_masses(ballot: Masses, protocol: Protocol, form: Protocol, budget: int) -> Masses:
    """One ballot in another format; scaled to integers by one factor for all ballots."""
    if form == protocol:
        return ballot
    if form == "simple":
        return _equal_split(ballot)
    if form == "ranked":
        return _average_ranks(ballot)
    if form == "approval":
        return tuple(int(mass * len(ballot) > sum(ballot)) for mass in ballot)
    return apportioned(ballot, budget)


def _equal_split(ballot: Masses) -> Masses:
    """One vote among the candidates with the largest mass, times lcm(1, …, m)."""
    top = max(ballot)
    share = lcm(*range(1, len(ballot) + 1)) // ballot.count(top)
    return tuple(share if mass == top else 0 for mass in ballot)


def _average_ranks(ballot: Masses) -> Masses:
    """Borda points, a level sharing those of its places; doubled.

    Twice the points of a candidate: those it is above, less those above it, plus m - 1.
    """
    m = len(ballot)
    return tuple(
        m - 1 + sum((mass > other) - (mass < other) for other in ballot) for mass in ballot
    )


def apportioned(weights: Masses, budget: int) -> Masses:
    """Points in proportion to weights by largest remainder; equal weights where all are 0.

    Equal remainders go to the candidate that stands first.
    """
    if not any(weights):
        weights = (1,) * len(weights)
    shares = [Fraction(weight * budget, sum(weights)) for weight in weights]
    points = [int(share) for share in shares]
    by_remainder = sorted(range(len(points)), key=lambda c: points[c] - shares[c])
    for c in by_remainder[: budget - sum(points)]:
        points[c] += 1
    return tuple(points)
