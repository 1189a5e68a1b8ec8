"""The ballot formats as the analysis takes them, each declared once.

    form = FORMATS["approval"]
    form.valid(masses, budget)         # which ballots, as an array, are of the format
    form.fault(ballot, budget)         # what is wrong with one of them
    form.widest(m, budget, top)        # by how much a ballot can put a candidate before another

`analysis.identify` takes from here what a ballot says of its voter's preferences: whether it is a
vote of its own under its own rule, and whether candidates that it puts equal are equal.
`tutorsim.voting` has what a study needs besides: an example, the reading of replies, and masses.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple

import numpy as np

from tutorsim.analysis.ballots.vote_arrays import LEFT_OUT, count, fold, summed
from tutorsim.analysis.statistics.array_types import Bools, Ints
from tutorsim.vocabularies import Protocol

_BITS: Final = 62
"""Bits of a number that can be told apart."""


class Fault(NamedTuple):
    """What is wrong with a ballot."""

    place: int
    """Position of the candidate to blame; 0 where it is the whole ballot."""
    reason: str
    """A sentence about the ballot of `{voter}`."""


@dataclass(frozen=True)
class BallotForm:
    """What the analysis knows of one format."""

    valid: Callable[[Ints, int], Bools]
    """Which ballots are of the format, given masses of shape (ballots, m) and the points of a
    cumulative ballot. No mass is negative, but `LEFT_OUT`."""
    fault: Callable[[Sequence[int], int], Fault | None]
    """What is wrong with one ballot; `None` where nothing is."""
    widest: Callable[[int, int, int], int]
    """By how much a ballot of m candidates can put one before another, given the points of a
    cumulative ballot and the end of the scale of scores."""
    must_give: bool = False
    """Whether a ballot that gives nothing is an abstention."""
    left_out: Literal["last", "anywhere"] | None = None
    """Where candidates stand of whom a ballot from elsewhere says nothing: below those that it
    names, or anywhere; `None` where it has to name all."""
    numbers: bool = False
    """Whether its own rules count the numbers of a ballot, which an order of candidates leaves
    open. Of other formats the order that a ballot shows is all that counts."""
    equals: bool = True
    """Whether candidates that a ballot puts equal are equal to its voter. A choice or a ranking
    does not say so of those whom it leaves below."""


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


def _simple(masses: Ints, _: int) -> Bools:
    return np.asarray((summed(masses, 1) == 1) & (fold(np.maximum, masses, 1) == 1))


def _ranked(masses: Ints, _: int) -> Bools:
    m = masses.shape[1]
    return np.asarray((fold(np.maximum, masses, 1) < m) & _each_once(masses, m))


def _not_simple(masses: Sequence[int], _: int) -> Fault | None:
    if sorted(masses)[-1:] == [1] and sum(masses) == 1:
        return None
    return Fault(0, f"the simple ballot of {{voter}} sums to {sum(masses)}, not to one 1")


def _not_approval(masses: Sequence[int], _: int) -> Fault | None:
    place = next((i for i, mass in enumerate(masses) if mass > 1), None)
    if place is None:
        return None
    return Fault(place, f"the approval of {{voter}} has the mass {masses[place]}, not 0 or 1")


def _not_cumulative(masses: Sequence[int], budget: int) -> Fault | None:
    if sum(masses) == budget:
        return None
    return Fault(0, f"the points of {{voter}} sum to {sum(masses)}, not to {budget}")


def _not_ranked(masses: Sequence[int], _: int) -> Fault | None:
    top, named = len(masses) - 1, [mass for mass in masses if mass != LEFT_OUT]
    if Counter(named) == Counter(range(top, top - len(named), -1)):
        return None
    last = len(masses) - len(named)
    return Fault(
        0, f"the ranking of {{voter}} has a hole: its masses are not {top} to {last}, each once"
    )


FORMATS: Final[Mapping[Protocol, BallotForm]] = {
    "simple": BallotForm(
        _simple, _not_simple, lambda m, budget, top: 1, must_give=True, equals=False
    ),
    "ranked": BallotForm(
        _ranked, _not_ranked, lambda m, budget, top: m - 1, left_out="last", equals=False
    ),
    "cumulative": BallotForm(
        lambda masses, budget: np.asarray(summed(masses, 1) == budget),
        _not_cumulative,
        lambda m, budget, top: budget,
        must_give=True,
        numbers=True,
    ),
    "approval": BallotForm(
        lambda masses, _: np.asarray(fold(np.maximum, masses, 1) <= 1),
        _not_approval,
        lambda m, budget, top: 1,
        numbers=True,
    ),
    "score": BallotForm(
        lambda masses, _: np.ones(len(masses), dtype=np.bool_),
        lambda masses, _: None,
        lambda m, budget, top: top,
        left_out="anywhere",
        numbers=True,
    ),
}
"""What a ballot of each format is. A format of one's own is an entry here, a projection in
`analysis.counting.format_conversion`, and, if it has a rule, the consistent ballots of that rule in
`analysis.identify.ballots_consistent_with_logged`."""

MUST_GIVE: Final = tuple(name for name, form in FORMATS.items() if form.must_give)
"""Formats in which a ballot that gives nothing is an abstention."""

MAY_LEAVE_OUT: Final = tuple(name for name, form in FORMATS.items() if form.left_out)
"""Formats whose ballots from elsewhere may say nothing of some candidates."""


def leaving_out(where: Literal["last", "anywhere"]) -> list[str]:
    """Formats whose ballots put those whom they leave out last, or anywhere."""
    return [name for name, form in FORMATS.items() if form.left_out == where]
