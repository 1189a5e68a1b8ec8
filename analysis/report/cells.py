"""Table cells: estimates with their intervals, bounds, shares; what is missing is said."""

from collections.abc import Iterable, Sequence
from typing import Final

import polars as pl

from analysis.report.document import Table
from analysis.statistics import Bounds, Estimate, NotEstimable

__all__ = [
    "BENCHMARKS",
    "DASH",
    "bounds",
    "bounds_of",
    "estimate",
    "p_value",
    "part_of",
    "plain",
    "table",
]


BENCHMARKS: Final = {"sciq": "science questions", "humaneval": "programs"}
"""Benchmarks by what their tasks are."""

DASH: Final = "not estimable"


def part_of(part: int, whole: int) -> str:
    """`3 of 47`."""
    return f"{part} of {whole}"


def bounds(found: Bounds) -> str:
    """Where a mean lies whatever the unknown values are; one number where nothing is unknown."""
    if found.low == found.high:
        return f"{found.low:.2f}"
    return f"{found.low:.2f} to {found.high:.2f}"


def bounds_of(low: int, high: int) -> str:
    """Where a count lies; one number where the two are equal."""
    return str(low) if low == high else f"{low} to {high}"


def table(
    name: str, title: str, caption: str, columns: Sequence[str], rows: Iterable[Sequence[object]]
) -> Table | None:
    """A table, or `None` without rows."""
    found = list(rows)
    if not found:
        return None
    return Table(name, title, caption, _frame(found, columns))


def _frame(rows: list[Sequence[object]], columns: Sequence[str]) -> pl.DataFrame:
    return pl.DataFrame(rows, schema=list(columns), orient="row", infer_schema_length=None)


def estimate(found: Estimate | NotEstimable, *, signed: bool = False) -> str:
    """A number with its interval in brackets, where it has one."""
    if isinstance(found, NotEstimable):
        return DASH
    number = ("{:+.2f}" if signed else "{:.2f}").format
    text = number(found.value)
    if found.low is not None and found.high is not None:
        text += f" [{number(found.low)}, {number(found.high)}]"
    return text.replace("-", "−")


def p_value(p: float) -> str:
    """Three digits, and no zero for what is only small."""
    return "< 0.001" if p < 0.001 else f"{p:.3f}"


def plain(found: float | NotEstimable) -> str:
    """A number without an interval."""
    return DASH if isinstance(found, NotEstimable) else f"{found:.2f}".replace("-", "−")
