"""What every counterfactual says alike: its caption, exact numbers, and what is left open."""

from collections.abc import Mapping, Sequence
from typing import Final

from tutorsim.analysis.recount import (
    HELD_FIXED,
    ElectorateRow,
    Exact,
    Interval,
    OrderTable,
    PolicyRow,
    ReadingRow,
    RuleRow,
)
from tutorsim.analysis.views.cells import DASH, Written, number

__all__ = ["HELD", "captions", "exact", "interval", "without_order"]

HELD: Final = "The logged dialogue is held fixed."
"""Ends the caption of every counterfactual; the head of a recount says it in full."""


def captions(rows: Sequence[OrderTable | PolicyRow | RuleRow | ElectorateRow | ReadingRow]) -> str:
    """What the rows say of themselves, once; the head of the page has the long warning."""
    return " ".join(dict.fromkeys(row.caption for row in rows)).replace(HELD_FIXED, HELD)


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


_OPEN_TIES: Final[Mapping[str, str]] = {
    "A tied first lead goes to the first in the role-priority order.": (
        "Turns with several first leaders, or left tied, are left out."
    ),
    "ties going to the role-priority order": "a tie staying a tie",
    "A tie goes to the role-priority order": "A tie stays a tie",
    "; a tie that this leaves goes to the role-priority order": ", and no tie is left",
    "the last column lets the role-priority order decide them": (
        "the last column has a figure where they meet"
    ),
}
"""What a caption says of ties → what it says where no order is logged."""


def without_order(caption: str) -> str:
    """A caption as it holds where no order is logged."""
    for said, instead in _OPEN_TIES.items():
        caption = caption.replace(said, instead)
    return caption
