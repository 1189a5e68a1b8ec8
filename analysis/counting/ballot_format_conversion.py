"""Named conventions: one ballot in the target's format for each ballot cast."""

from fractions import Fraction
from functools import lru_cache
from math import lcm
from typing import Final, Literal

from tutorsim.analysis.ballots.vote_arrays_and_profiles import LEFT_OUT, Masses, levels_of
from tutorsim.analysis.counting.names_and_parameters_of_rules import (
    Approvals,
    RankVector,
    Rule,
    Target,
    ballot_format,
)
from tutorsim.vocabularies import BallotFormat, Protocol

AS_CAST: Final = "as cast"
SHARED_SCORES: Final = "equal places share their scores"
"""How scores by rank are given to a ballot that is no ranking."""

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
    ("simple", "score"): "all of the scale on the choice",
    ("ranked", "score"): "evenly spaced by rank",
    ("cumulative", "score"): "points as scores",
    ("approval", "score"): "the ends of the scale",
    ("score", "simple"): "equal split of the vote among the largest",
    ("score", "ranked"): "average rank",
    ("score", "cumulative"): "points in proportion to scores",
    ("score", "approval"): "more than the mean of its scores",
}


def projection_name(protocol: BallotFormat, target: Target | Approvals) -> str:
    """The projection's name, as tables show it."""
    form = ballot_format(target)
    if (protocol, form) == ("rich", "score"):
        protocol = "ranked"
    if protocol in ("rich", form):
        return AS_CAST
    number = f", {target.words}" if isinstance(target, Approvals) else ""
    return _NAMES[protocol, form] + number  # type: ignore[index]


Form = Protocol | RankVector | Approvals | Literal["mean_position"]


def counted_form(rule: Rule) -> Form:
    """What ballots are projected into under a rule: a format, the scores of their ranks, or, where
    it counts who is named, themselves."""
    if isinstance(rule, (RankVector, Approvals)) or rule == "mean_position":
        return rule
    return ballot_format(rule)


@lru_cache(maxsize=_KEPT)
def projected_masses(ballot: Masses, protocol: Protocol, form: Form, budget: int) -> Masses:
    """One ballot in another format; scaled to integers by one factor for all ballots.

    Candidates that a ranking leaves out share what is left for them; a score that is left out
    counts as the mean of its ballot's scores, and under rules over scores not at all.
    """
    if form == "mean_position" or (form == "score" and protocol == "score"):
        return ballot
    if protocol == "score" and min(ballot) < 0:
        ballot = _filled(ballot)
    borda = tuple(range(len(ballot) - 1, -1, -1))
    if protocol == "ranked" and min(ballot) < 0:
        ballot = _shared_scores(ballot, borda)
    if isinstance(form, RankVector):
        return _shared_scores(ballot, form.scores)
    if isinstance(form, Approvals):
        return ballot if protocol == "approval" else _approvals(ballot, form)
    if form in (protocol, "score"):
        return ballot
    if form == "simple":
        return _equal_split(ballot)
    if form == "ranked":
        return _shared_scores(ballot, borda)
    if form == "approval":
        return _above_average(ballot)
    return _shared_points(ballot, budget)


def _filled(ballot: Masses) -> Masses:
    """Scores times how many are given, those left out as the mean of the ballot's own."""
    given = [mass for mass in ballot if mass != LEFT_OUT]
    return tuple(sum(given) if mass == LEFT_OUT else len(given) * mass for mass in ballot)


def _above_average(ballot: Masses) -> Masses:
    return tuple(int(mass * len(ballot) > sum(ballot)) for mass in ballot)


def _approvals(ballot: Masses, number: Approvals) -> Masses:
    """Approvals of those above the average, fewer or more of them if so many are too many or too
    few; the last level shares what is left for it. Times lcm(1, …, m)."""
    least, most = number.of(len(ballot))
    left = min(max(sum(_above_average(ballot)), least), most)
    found, unit = [0] * len(ballot), lcm(*range(1, len(ballot) + 1))
    for level in levels_of(ballot):
        for c in level:
            found[c] = unit // len(level) * min(left, len(level))
        left -= min(left, len(level))
    return tuple(found)


def _equal_split(ballot: Masses) -> Masses:
    """One vote among the candidates with the largest mass, times lcm(1, …, m)."""
    top = max(ballot)
    share = lcm(*range(1, len(ballot) + 1)) // ballot.count(top)
    return tuple(share if mass == top else 0 for mass in ballot)


def _shared_scores(ballot: Masses, scores: tuple[int, ...]) -> Masses:
    """The scores of a ballot's ranks, a level sharing those of its places; Borda's are doubled."""
    found, above = [0] * len(ballot), 0
    for level in levels_of(ballot):
        for c in level:
            found[c] = _means(scores)[above, len(level)]
        above += len(level)
    return tuple(found)


@lru_cache(maxsize=1 << 8)
def _means(scores: tuple[int, ...]) -> dict[tuple[int, int], int]:
    """First place and size of a level → the mean of its scores, all times their denominator."""
    means = {
        (first, size): Fraction(sum(scores[first : first + size]), size)
        for first in range(len(scores))
        for size in range(1, len(scores) - first + 1)
    }
    scale = lcm(*(mean.denominator for mean in means.values()))
    return {level: int(mean * scale) for level, mean in means.items()}


def _shared_points(weights: Masses, budget: int) -> Masses:
    """Points in proportion to weights by largest remainder, times lcm(1, …, m).

    Candidates of equal remainder share what is left for them. So no candidate gets a point more
    for standing earlier in the order.
    """
    if not any(weights):
        weights = (1,) * len(weights)
    total, parts = sum(weights), lcm(*range(1, len(weights) + 1))
    points = [weight * budget // total for weight in weights]
    rest = [weight * budget % total for weight in weights]
    left = budget - sum(points)
    shared = [mass * parts for mass in points]
    for size in sorted(set(rest), reverse=True):
        group = [c for c, remainder in enumerate(rest) if remainder == size]
        extra = min(left, len(group)) * parts // len(group)
        left = max(left - len(group), 0)
        for c in group:
            shared[c] += extra
    return tuple(shared)
