"""What makes a ballot of the four protocols: one rule, over arrays and over one ballot.

`are_valid` says which of many ballots are sound, `why_not` says of one what is wrong with it;
a property test holds the two to one answer. Both take masses of the candidates of the vote; an
abstention is neither's business.
"""

from collections import Counter
from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np

from tutorsim.analysis.ballots.short_axis_sums import count, fold, summed
from tutorsim.analysis.ballots.turn_profiles import LEFT_OUT
from tutorsim.analysis.ballots.vote_arrays import Bools, Ints

__all__ = ["MAY_LEAVE_OUT", "MUST_GIVE", "Fault", "are_valid", "why_not"]

MUST_GIVE: Final = ("simple", "cumulative")
"""Protocols under which a ballot that gives nothing is an abstention."""

MAY_LEAVE_OUT: Final = ("ranked", "score")
"""Protocols whose ballots from elsewhere may say nothing of some candidates."""

_BITS: Final = 62
"""Bits of a number that can be told apart."""


class Fault(NamedTuple):
    """What is wrong with a ballot."""

    place: int
    """Position of the candidate to blame; 0 where it is the whole ballot."""
    reason: str
    """A sentence about the ballot of `{voter}`."""


def are_valid(masses: Ints, protocol: str, budget: int) -> Bools:
    """Which ballots are what a protocol asks for.

    Args:
        masses: Shape (ballots, m); none negative, but `LEFT_OUT` in a ranking.
        protocol: One of the four.
        budget: Points of a cumulative ballot.

    Returns:
        Shape (ballots,).
    """
    total, most, m = summed(masses, 1), fold(np.maximum, masses, 1), masses.shape[1]
    match protocol:
        case "simple":
            valid = (total == 1) & (most == 1)
        case "approval":
            valid = most <= 1
        case "cumulative":
            valid = total == budget
        case _:
            valid = most < m
            valid &= _each_once(masses, m)
    return np.asarray(valid)


def _each_once(masses: Ints, m: int) -> Bools:
    """Which rows hold each of m - 1, m - 2, … once, down to 0 or to the last that is named.

    A set of bits is faster than sorting, if it fits.
    """
    unnamed = count(masses < 0, 1)
    if m <= _BITS:
        held = fold(np.bitwise_or, np.where(masses < 0, 0, 1 << np.clip(masses, 0, _BITS)), 1)
        return np.asarray(held == (1 << m) - (1 << unnamed))
    places = np.arange(m)
    expected = np.where(places < unnamed[:, None], LEFT_OUT, places)
    return fold(np.logical_and, np.sort(masses, axis=1) == expected, 1)


def why_not(masses: Sequence[int], protocol: str, budget: int) -> Fault | None:
    """What is wrong with one ballot; `None` where nothing is.

    Args:
        masses: One for each candidate of the vote, as for `are_valid`.
        protocol: One of the four.
        budget: Points of a cumulative ballot.
    """
    match protocol:
        case "simple":
            return _not_simple(masses)
        case "approval":
            return _not_approval(masses)
        case "cumulative":
            return _not_cumulative(masses, budget)
        case _:
            return _not_ranked(masses)


def _not_simple(masses: Sequence[int]) -> Fault | None:
    if sorted(masses)[-1:] == [1] and sum(masses) == 1:
        return None
    return Fault(0, f"the simple ballot of {{voter}} sums to {sum(masses)}, not to one 1")


def _not_approval(masses: Sequence[int]) -> Fault | None:
    place = next((i for i, mass in enumerate(masses) if mass > 1), None)
    if place is None:
        return None
    return Fault(place, f"the approval of {{voter}} has the mass {masses[place]}, not 0 or 1")


def _not_cumulative(masses: Sequence[int], budget: int) -> Fault | None:
    if sum(masses) == budget:
        return None
    return Fault(0, f"the points of {{voter}} sum to {sum(masses)}, not to {budget}")


def _not_ranked(masses: Sequence[int]) -> Fault | None:
    top, named = len(masses) - 1, [mass for mass in masses if mass != LEFT_OUT]
    if Counter(named) == Counter(range(top, top - len(named), -1)):
        return None
    last = len(masses) - len(named)
    return Fault(
        0, f"the ranking of {{voter}} has a hole: its masses are not {top} to {last}, each once"
    )
