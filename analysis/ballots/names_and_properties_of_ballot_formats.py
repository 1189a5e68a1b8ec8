"""The ballot formats as the analysis takes them, each declared once.

    form = FORMATS["approval"]
    form.valid(masses, budget)         # which ballots, as an array, are of the format
    form.fault(ballot, budget)         # what is wrong with one that is not
    form.widest(m, budget, top)        # by how much a ballot can put a candidate before another
    names_of(lambda form: form.budget) # the formats with a property

No other module of the analysis asks whether a format has some name: it asks for a property that is
declared here. `analysis.identify` takes from here what a ballot says of its voter's preferences:
whether it is a vote of its own under its own rule, and whether candidates that it puts equal are
equal.
`tutorsim.ballot_reading_and_decisions` has what a study needs besides: an example, the reading of
replies, and masses.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple

import numpy as np

from tutorsim.analysis.ballots.reading_options_and_column_words import named_in
from tutorsim.analysis.ballots.vote_arrays_and_profiles import (
    LEFT_OUT,
    count,
    fitting,
    fold,
    summed,
)
from tutorsim.analysis.statistics.array_types import Bools, Ints

_BITS: Final = 62
"""Bits of a number that can be told apart."""


class Fault(NamedTuple):
    """What is wrong with a ballot."""

    reason: str
    """A sentence with `{voter!r}` for whose ballot it is."""
    place: int | None = None
    """Position of the candidate to blame; `None` where it is the whole ballot."""


@dataclass(frozen=True)
class BallotForm:
    """What the analysis knows of one format."""

    valid: Callable[[Ints, int], Bools]
    """Which ballots are of the format, given masses of shape (ballots, m) and the points of a
    cumulative ballot. No mass is negative, but `LEFT_OUT`."""
    fault: Callable[[Sequence[int], int], Fault] | None
    """What is wrong with a ballot that `valid` refuses; `None`: it refuses none."""
    widest: Callable[[int, int, int], int]
    """By how much a ballot of m candidates can put one before another, given the points of a
    cumulative ballot and the end of the scale of scores."""
    words: tuple[str, ...] = ()
    """Names that files give to the format, the likeliest first."""
    colours: tuple[str, str] | None = None
    """Colours of its marks in charts, on paper and on a dark screen; `None`: the plain one."""
    must_give: bool = False
    """Whether a ballot that gives nothing is an abstention."""
    may_give_nothing: bool = False
    """Whether a ballot can say that nobody deserves anything, which is easily taken for an
    abstention."""
    listed: Literal["order", "set"] | None = None
    """What a list of candidates in a file is; `None` where a list makes no ballot."""
    left_out: Literal["last", "anywhere"] | None = None
    """Where candidates stand of whom a ballot from elsewhere says nothing: below those that it
    names, or anywhere; `None` where it has to name all."""
    budget: bool = False
    """Whether the numbers of a ballot sum to a budget."""
    scale: bool = False
    """Whether the numbers of a ballot stand on a scale with two ends."""
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
        one = fitting(1 << m).type(1)
        held = fold(np.bitwise_or, np.where(masses < 0, 0, one << np.clip(masses, 0, m)), 1)
        return np.asarray(held == (1 << m) - (one << unnamed))
    places = np.arange(m)
    expected = np.where(places < unnamed[:, None], LEFT_OUT, places)
    return fold(np.logical_and, np.sort(masses, axis=1) == expected, 1)


def _simple(masses: Ints, _: int) -> Bools:
    return np.asarray((summed(masses, 1) == 1) & (fold(np.maximum, masses, 1) == 1))


def _ranked(masses: Ints, _: int) -> Bools:
    m = masses.shape[1]
    return np.asarray((fold(np.maximum, masses, 1) < m) & _each_once(masses, m))


def _not_approval(masses: Sequence[int], _: int) -> Fault:
    place, mass = next((i, mass) for i, mass in enumerate(masses) if mass > 1)
    return Fault(f"the approval of {{voter!r}} has the mass {mass}, not 0 or 1", place)


def _not_ranked(masses: Sequence[int], _: int) -> Fault:
    m, last = len(masses), masses.count(LEFT_OUT)
    reason = f"has a hole: its masses are not {m - 1} to {last}, each once"
    return Fault(f"the ranking of {{voter!r}} {reason}")


FORMATS: Final[Mapping[str, BallotForm]] = {
    "simple": BallotForm(
        _simple,
        lambda masses, _: Fault(
            f"the simple ballot of {{voter!r}} sums to {sum(masses)}, not to one 1"
        ),
        lambda m, budget, top: 1,
        ("plurality", "single", "single_choice", "one_choice", "fptp", "majority"),
        ("#4b3b8f", "#9a8cf0"),
        must_give=True,
        equals=False,
    ),
    "ranked": BallotForm(
        _ranked,
        _not_ranked,
        lambda m, budget, top: m - 1,
        ("borda", "ranking", "rank", "ranks", "ordinal", "rcv", "irv", "preferential"),
        ("#a8362a", "#f0786b"),
        listed="order",
        left_out="last",
        equals=False,
    ),
    "cumulative": BallotForm(
        lambda masses, budget: np.asarray(summed(masses, 1) == budget),
        lambda masses, budget: Fault(
            f"the points of {{voter!r}} sum to {sum(masses)}, not to {budget}"
        ),
        lambda m, budget, top: budget,
        ("points", "point", "budget", "distribution"),
        ("#a87c0c", "#e8c257"),
        must_give=True,
        budget=True,
        numbers=True,
    ),
    "approval": BallotForm(
        lambda masses, _: np.asarray(fold(np.maximum, masses, 1) <= 1),
        _not_approval,
        lambda m, budget, top: 1,
        ("approve", "approvals", "multiple_choice", "multi"),
        ("#1f7f86", "#5fcdd4"),
        may_give_nothing=True,
        listed="set",
        numbers=True,
    ),
    "score": BallotForm(
        lambda masses, _: np.ones(len(masses), dtype=np.bool_),
        None,
        lambda m, budget, top: top,
        ("scores", "rating", "ratings", "range", "grades", "likert", "stars"),
        ("#5c4a00", "#c9a300"),
        left_out="anywhere",
        scale=True,
        numbers=True,
    ),
}
"""What a ballot of each format is. A format of one's own is an entry here, a projection in
`analysis.counting.ballot_format_conversion`, and, if it has a rule, that rule's consistent ballots
in `analysis.identify.ballots_voters_may_cast_and_best_per_candidate`."""

CHOICES: Final = " or ".join((", ".join([*FORMATS][:-1]), [*FORMATS][-1]))
"""The formats' names as a hint lists them."""


def names_of(holds: Callable[[BallotForm], object]) -> list[str]:
    """Names of the formats for which something holds."""
    return [name for name, form in FORMATS.items() if holds(form)]


MUST_GIVE: Final = names_of(lambda form: form.must_give)
"""Formats in which a ballot that gives nothing is an abstention."""

MAY_LEAVE_OUT: Final = names_of(lambda form: form.left_out)
"""Formats whose ballots from elsewhere may say nothing of some candidates."""

WITH_BUDGET: Final = names_of(lambda form: form.budget)
"""Formats whose numbers sum to a budget."""

ON_A_SCALE: Final = names_of(lambda form: form.scale)
"""Formats whose numbers stand on a scale."""


def leaving_out(where: Literal["last", "anywhere"]) -> list[str]:
    """Formats whose ballots put those whom they leave out last, or anywhere."""
    return names_of(lambda form: form.left_out == where)


def protocol_named(word: str) -> str | None:
    """Our name of a format, or of a rich ballot; `None` for an unknown word."""
    return named_in(word, {"rich": (), **{name: form.words for name, form in FORMATS.items()}})
