"""What every counterfactual says alike: its caption, exact numbers, and what is left open."""

from collections.abc import Sequence
from typing import Final

from tutorsim.analysis.recount import (
    ElectorateRow,
    Exact,
    Interval,
    OrderTable,
    PolicyRow,
    ReadingRow,
    RuleRow,
)
from tutorsim.analysis.views.cells import DASH, Written, number

__all__ = ["HELD", "captions", "exact", "interval"]

HELD: Final = "The logged dialogue is held fixed."
"""Ends the caption of every counterfactual; the head of a recount says it in full."""


def captions(rows: Sequence[OrderTable | PolicyRow | RuleRow | ElectorateRow | ReadingRow]) -> str:
    """What the rows say of themselves, once; the head of the page has the long warning."""
    return " ".join((*dict.fromkeys(row.asks for row in rows), HELD))


def exact(found: Exact) -> Written:
    """An exact number, whole where it is one."""
    return number(found.value, digits=0 if found.value.is_integer() else 1)


def interval(found: Interval | None) -> Written:
    """Turns by the named convention, and in brackets what the ballots leave open around them."""
    if found is None:
        return Written(DASH, None)
    point = "–" if found.point is None else f"{found.point:,}"
    if found.lower == found.upper:
        return Written(point, found.point)
    return Written(f"{point} [{found.lower:,}, {found.upper:,}]", found.model_dump())
