"""Figures of the analysis as cells of a table."""

from collections.abc import Callable

from rich.text import Text

from analysis.statistics import Bounds, Estimate, NotEstimable, PermutationTest
from tutorsim.cli.render import NOT_ESTIMABLE, Pair, number

__all__ = ["bar", "bounds", "estimate", "p_value", "plain_figure", "signed"]

Unit = Callable[[float], str]

BAR = 10
"""Columns of a full bar."""


def estimate(found: Estimate | NotEstimable, *, unit: Unit = number) -> Pair:
    """A figure with its interval; a dash for what is not estimable."""
    if isinstance(found, NotEstimable):
        return _dash(found)
    if found.low is None or found.high is None:
        return Pair(unit(found.value))
    return Pair(unit(found.value), f"{unit(found.low)} to {unit(found.high)}")


def plain_figure(found: float | NotEstimable, *, unit: Unit = number) -> Pair:
    """A figure without an interval; a dash for what is not estimable."""
    return _dash(found) if isinstance(found, NotEstimable) else Pair(unit(found))


def bounds(found: Bounds | NotEstimable, *, unit: Unit = number) -> Pair:
    """What a mean lies between; one figure where the bounds meet."""
    if isinstance(found, NotEstimable):
        return _dash(found)
    low, high = unit(found.low), unit(found.high)
    return Pair(low if low == high else f"{low} to {high}")


def bar(found: Estimate | NotEstimable) -> Text:
    """A share as a bar; nothing where it is not estimable."""
    if isinstance(found, NotEstimable):
        return Text()
    full, half = divmod(round(2 * BAR * found.value), 2)
    filled = "█" * full + "▌" * half
    return Text(filled, style="cyan") + Text("░" * (BAR - len(filled)), style="dim")


def signed(value: float) -> str:
    """A difference with its sign."""
    return f"{value:+.2f}"


def p_value(test: PermutationTest | NotEstimable, corrected: float | None) -> Pair:
    """A corrected p-value; a dash where there is no test."""
    if isinstance(test, NotEstimable):
        return _dash(test)
    return Pair("<0.001" if (corrected or 0) < 0.001 else number(corrected, 3))


def _dash(found: NotEstimable) -> Pair:
    return Pair(NOT_ESTIMABLE, why_not=found.reason)
