"""Table cells: estimates with their intervals, bounds, shares; what is missing is said.

A cell is a value and the text that writes it:

    cell = estimate(Estimate(0.72, 20, Interval(0.5, 0.9, "BCa")))   # reads "0.72 [0.50, 0.90]"
    cell.value.low                                                   # 0.5

Readers get the text; JSON and claims get the value.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Self

import polars as pl

from tutorsim.analysis.statistics.intervals_and_tests import Bounds, Estimate, NotEstimable

BENCHMARKS: Final = {"sciq": "science questions", "humaneval": "programs"}
"""Benchmarks by what their tasks are."""

DASH: Final = "not estimable"


class Written(str):
    """A cell: the text that readers see, and the value that it writes."""

    value: Any
    """A number, `Estimate`, `Bounds`, `Share`, `NotEstimable`, `None` for what is missing, or
    several counts by name, in the order in which the text has them."""
    __slots__ = ("value",)

    def __new__(cls, text: str, value: Any) -> Self:
        made = super().__new__(cls, text)
        made.value = value
        return made


@dataclass(frozen=True)
class Share:
    """A part of a whole."""

    part: float
    """No whole number where an episode counts by the mean of its draws."""
    whole: int


@dataclass(frozen=True)
class Table:
    """A table with its title, in the order of the frame."""

    name: str
    title: str
    caption: str
    data: pl.DataFrame = field(repr=False)
    secondary: tuple[str, ...] = ()
    """Columns left out where there is no room for all, in the order in which they go."""
    written: Mapping[str, Mapping[int, Any]] = field(default_factory=dict, repr=False)
    """Column → row → value, of the cells that are a text and its value."""
    folded: bool = False
    """A page shows the title alone until somebody opens it, as a chart says the same."""


Part = str | Table
"""A text or a table of a view, one below the other."""


def part_of(part: int, whole: int) -> Written:
    """`3 of 47`."""
    return Written(f"{part} of {whole}", Share(part, whole))


def sum_of(**counts: int) -> Written:
    """`3 + 2`, by what each count is of."""
    return Written(" + ".join(map(str, counts.values())), counts)


def number(value: float | None, *, digits: int = 1, unit: str = "") -> Written:
    """A number with so many digits; a dash if there is none."""
    if value is None:
        return Written("–", None)
    return Written(f"{value:.{digits}f}{unit}".replace("-", "−"), value)


def dollars(cost: float | None) -> Written:
    """What calls cost; `unknown` where a model has no price."""
    return Written("unknown", None) if cost is None else number(float(cost), digits=2)


def bounds(found: Bounds | NotEstimable, *, digits: int = 2) -> Written:
    """Where a mean lies whatever the unknown values are; one number where nothing is unknown."""
    if isinstance(found, NotEstimable):
        return Written(DASH, found)
    low, high = f"{found.low:.{digits}f}", f"{found.high:.{digits}f}"
    return Written(low if found.low == found.high else f"{low} to {high}", found)


def bounds_of(low: int, high: int) -> Written:
    """Where a count lies; one number where the two are equal."""
    return Written(str(low) if low == high else f"{low} to {high}", Bounds(low, high, 1))


def without_interval(figures: Iterable[object]) -> str:
    """Why figures have no interval, as the end of a caption: said once for all that have too few
    tasks."""
    intervals = (value.interval for value in figures if isinstance(value, Estimate))
    reasons = (one.reason for one in intervals if isinstance(one, NotEstimable))
    few = dict.fromkeys(one.partition(" for ")[0] for one in reasons if one.startswith("too few"))
    return f" Without an interval: {', '.join(few)}." if few else ""


def present(*tables: Table | None) -> tuple[Table, ...]:
    """The tables that have rows."""
    return tuple(one for one in tables if one is not None)


def estimate(found: Estimate | NotEstimable, *, signed: bool = False) -> Written:
    """A number with its interval in brackets, if there is one."""
    if isinstance(found, NotEstimable):
        return Written(DASH, found)
    number = ("{:+.2f}" if signed else "{:.2f}").format
    text = number(found.value)
    if found.low is not None and found.high is not None:
        text += f" [{number(found.low)}, {number(found.high)}]"
    text = text.replace("-", "−").replace("−0.00", "0.00").replace("+0.00", "0.00")
    return Written(text, found)  # what rounds to zero has no sign


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


def p_value(p: float) -> Written:
    """Three digits, no zero for what is only small, and 1 for what rounds to it."""
    return Written("< 0.001" if p < 0.001 else f"{p:.3f}".replace("1.000", "1"), p)


def plain(found: float | NotEstimable) -> Written:
    """A number without an interval."""
    return Written(DASH, found) if isinstance(found, NotEstimable) else number(found, digits=2)


def cell(value: object) -> str:
    """A table cell as text; what is missing is a dash, and never a zero."""
    if value is None or value != value:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}".replace("-", "−")
    if isinstance(value, float):
        return f"{value:.3f}".replace("-", "−")
    if isinstance(value, list | tuple):
        return ", ".join(map(cell, value)) or "none"
    return str(value)


def heading(name: str) -> str:
    """A column's name as a table head."""
    return name.replace("_", " ")
