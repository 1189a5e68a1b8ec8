"""Table cells: estimates with their intervals, bounds, shares; what is missing is said."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

import polars as pl

from tutorsim.analysis.statistics.intervals_and_tests import Bounds, Estimate, NotEstimable

__all__ = [
    "BENCHMARKS",
    "DASH",
    "Part",
    "Table",
    "absent",
    "bar",
    "bounds",
    "bounds_of",
    "estimate",
    "p_value",
    "part_of",
    "plain",
    "present",
    "table",
]


BENCHMARKS: Final = {"sciq": "science questions", "humaneval": "programs"}
"""Benchmarks by what their tasks are."""

DASH: Final = "not estimable"


@dataclass(frozen=True)
class Table:
    """A table with its title, in the order of the frame."""

    name: str
    title: str
    caption: str
    data: pl.DataFrame = field(repr=False)
    secondary: tuple[str, ...] = ()
    """Columns left out where there is no room for all, in the order in which they go."""


Part = str | Table
"""A text or a table of a view, one below the other."""


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
    name: str,
    title: str,
    caption: str,
    columns: Sequence[str],
    rows: Iterable[Sequence[object]],
    *,
    secondary: tuple[str, ...] = (),
) -> Table | None:
    """A table, or `None` without rows."""
    found = list(rows)
    if not found:
        return None
    return Table(name, title, caption, _frame(found, columns), secondary)


def present(*tables: Table | None) -> tuple[Table, ...]:
    """The tables that have rows."""
    return tuple(one for one in tables if one is not None)


def _frame(rows: list[Sequence[object]], columns: Sequence[str]) -> pl.DataFrame:
    return pl.DataFrame(rows, schema=list(columns), orient="row", infer_schema_length=None)


def estimate(found: Estimate | NotEstimable, *, signed: bool = False) -> str:
    """A number with its interval in brackets; said where tasks are too few for one."""
    if isinstance(found, NotEstimable):
        return DASH
    number = ("{:+.2f}" if signed else "{:.2f}").format
    text = number(found.value)
    if found.low is not None and found.high is not None:
        text += f" [{number(found.low)}, {number(found.high)}]"
    elif isinstance(found.interval, NotEstimable) and found.interval.reason.startswith("too few"):
        text += " [too few tasks]"
    return _unsigned_zero(text.replace("-", "−"))


def absent(figures: Iterable[object]) -> str:
    """Why figures are not estimable, as the end of a caption; empty if all are."""
    reasons = dict.fromkeys(f.reason for f in figures if isinstance(f, NotEstimable))
    return f" {DASH.capitalize()}: {'; '.join(reasons)}." if reasons else ""


def bar(found: Estimate | NotEstimable) -> str:
    """A share drawn in ten characters; nothing where it is not estimable."""
    if isinstance(found, NotEstimable):
        return ""
    full, half = divmod(round(20 * found.value), 2)
    return ("█" * full + "▌" * half).ljust(10, "░")


def _unsigned_zero(text: str) -> str:
    """What rounds to zero has no sign."""
    return text.replace("−0.00", "0.00").replace("+0.00", "0.00")


def p_value(p: float) -> str:
    """Three digits, and no zero for what is only small."""
    return "< 0.001" if p < 0.001 else f"{p:.3f}"


def plain(found: float | NotEstimable) -> str:
    """A number without an interval."""
    return DASH if isinstance(found, NotEstimable) else f"{found:.2f}".replace("-", "−")
