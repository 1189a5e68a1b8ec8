"""Scoring rules over ranks: each rank has a score, and the largest sum wins.

Borda (3, 2, 1, 0), plurality (1, 0, 0, 0) and veto (1, 1, 1, 0) are such rules. Scores may be any
numbers; sums are exact, since scores are counted as whole numbers.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise
from math import gcd, lcm
from numbers import Rational, Real
from typing import Final, NamedTuple

from tutorsim.errors import UsageError

__all__ = ["RankScores", "RankVector", "Score"]

Score = int | float | Fraction | Decimal | str
"""A number. A float stands for the decimal that it prints: 0.1 is a tenth. A text is a whole
number, a decimal, or a fraction such as 1/3."""

_TEXT: Final = re.compile(r"\s*[+-]?\d+(\.\d+|/\d+)?\s*")


class RankVector(NamedTuple):
    """Scores by rank for one number of candidates, in the form in which they are counted.

    Vectors that elect the same candidates whatever the ballots, since one is the other times a
    factor and plus a constant, have one form.
    """

    scores: tuple[int, ...]
    """Best rank first: whole numbers that never rise; the last is 0, and they share no divisor."""

    @staticmethod
    def of(scores: Sequence[Fraction | int]) -> "RankVector":
        """The form of scores that never rise."""
        above = [Fraction(score) - scores[-1] for score in scores]
        scale = lcm(*(score.denominator for score in above))
        whole = [int(score * scale) for score in above]
        common = gcd(*whole) or 1
        return RankVector(tuple(score // common for score in whole))


@dataclass(frozen=True)
class RankScores:
    """A rule that gives each rank of a ballot a score; the largest sum of scores wins.

    `RankScores([3, 1, 0, 0])` is for votes with four candidates. For any number of candidates give
    a function of that number: `RankScores(lambda m: [m - 1, *[0] * (m - 1)])`.

    Args:
        scores: Scores, best rank first, that never rise from a rank to the next. Whole numbers,
            fractions and decimals, below 0 too; a float stands for the decimal that it prints.
            Or a function that gives them for a number of candidates.

    Raises:
        UsageError: If scores are no numbers, or rise.
    """

    scores: Sequence[Score] | Callable[[int], Sequence[Score]]

    def __post_init__(self) -> None:
        if not callable(self.scores):
            object.__setattr__(self, "scores", _fractions(self.scores))

    def at(self, m: int) -> tuple[Fraction, ...]:
        """The scores for a number of candidates.

        Raises:
            UsageError: If there is not one score for each candidate, or the function fails.
        """
        found = _fractions(_called(self.scores, m)) if callable(self.scores) else self.scores
        if len(found) != m:
            raise UsageError(
                f"There are {len(found)} scores for {m} candidates.",
                why="A rule over ranks needs one score for each candidate of every vote.",
                hint="Give a score for each candidate, or, in Python, a function of their number: "
                "tutorsim.RankScores(lambda m: …).",
            )
        return found  # type: ignore[return-value]  # fractions since __post_init__


def _called(function: Callable[[int], Sequence[Score]], m: int) -> Sequence[Score]:
    try:
        return function(m)
    except Exception as error:
        raise UsageError(
            f"The function of scores fails for {m} candidates.",
            why=f"{type(error).__name__}: {error}",
            hint="Let it give one score for each of so many candidates, best rank first.",
        ) from error


def _fractions(scores: Sequence[Score]) -> tuple[Fraction, ...]:
    """Scores as exact numbers.

    Raises:
        UsageError: If they are none, or rise.
    """
    if isinstance(scores, str) or not isinstance(scores, Iterable):
        raise UsageError(
            f"{scores!r} is no list of scores.",
            why="A rule over ranks needs one score for each rank, best rank first.",
            hint="For example RankScores([3, 1, 0, 0]), or RankScores(function of the number of "
            "candidates).",
        )
    found = tuple(map(_fraction, scores))
    if not found:
        raise UsageError(
            "There are no scores.",
            why="A rule over ranks needs one score for each rank, best rank first.",
            hint="For example RankScores([3, 1, 0, 0]).",
        )
    for rank, (score, following) in enumerate(pairwise(found), start=1):
        if following > score:
            raise UsageError(
                f"The scores {', '.join(map(str, found))} rise from rank {rank} to {rank + 1}.",
                why="Possible winners are sought where a better rank is never worth less.",
                hint="Give scores that never rise, best rank first; in Python a function of the "
                "ballots may score as it likes, and gets a point without bounds.",
            )
    return found


def _fraction(score: Score) -> Fraction:
    try:
        if isinstance(score, Rational):
            return Fraction(int(score.numerator), int(score.denominator))
        text = str(score) if isinstance(score, Real) else score
        if isinstance(score, str) and not _TEXT.fullmatch(score):
            raise ValueError(score)
        return Fraction(text)
    except (TypeError, ValueError, ArithmeticError) as error:
        raise UsageError(
            f"{score!r} is no score.",
            why="A score is a whole number, a decimal or a fraction.",
            hint="For example 1, 0.5 or 1/3.",
        ) from error
