"""What every counterfactual shows alike: its caption, exact numbers, and what is left open."""

from collections.abc import Sequence

from analysis.recount import (
    HELD_FIXED,
    ElectorateRow,
    Exact,
    Interval,
    OrderTable,
    PolicyRow,
    ReadingRow,
    RuleRow,
)
from tutorsim.cli.render import HELD, NOT_ESTIMABLE, Pair

__all__ = ["captions", "exact", "interval", "open_interval"]


def captions(rows: Sequence[OrderTable | PolicyRow | RuleRow | ElectorateRow | ReadingRow]) -> str:
    """What the rows say of themselves, once; the head of the page has the long warning."""
    return " ".join(dict.fromkeys(row.caption for row in rows)).replace(HELD_FIXED, HELD)


def exact(found: Exact) -> str:
    """An exact number, whole where it is one."""
    return str(int(found.value)) if found.value.is_integer() else f"{found.value:.1f}"


def interval(found: Interval | None) -> Pair:
    """The point, and what the ballots leave open around it."""
    if found is None:
        return Pair(NOT_ESTIMABLE, why_not="no first votes")
    point = NOT_ESTIMABLE if found.point is None else str(found.point)
    return Pair(point, "" if found.lower == found.upper else open_interval(found))


def open_interval(found: Interval) -> str:
    """Turns where it is certain, to turns where it is possible."""
    return f"{found.lower} to {found.upper}"
