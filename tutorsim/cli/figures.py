"""Figures of the analysis as cells of a table."""

from collections.abc import Callable

from analysis.statistics import Bounds, Estimate, NotEstimable
from tutorsim.cli.render import NOT_ESTIMABLE, Pair, number

__all__ = ["bounds", "estimate", "plain_figure"]


def estimate(found: Estimate | NotEstimable, *, unit: Callable[[float], str] = number) -> Pair:
    """A figure with its interval; a dash for what is not estimable."""
    if isinstance(found, NotEstimable):
        return Pair(NOT_ESTIMABLE, "")
    if found.low is None or found.high is None:
        return Pair(unit(found.value), "")
    return Pair(unit(found.value), f"{unit(found.low)} to {unit(found.high)}")


def plain_figure(found: float | NotEstimable, *, unit: Callable[[float], str] = number) -> str:
    """A figure without an interval; a dash for what is not estimable."""
    return NOT_ESTIMABLE if isinstance(found, NotEstimable) else unit(found)


def bounds(found: Bounds | NotEstimable, *, unit: Callable[[float], str] = number) -> str:
    """What a mean lies between; one figure where the bounds meet."""
    if isinstance(found, NotEstimable):
        return NOT_ESTIMABLE
    low, high = unit(found.low), unit(found.high)
    return low if low == high else f"{low} to {high}"
