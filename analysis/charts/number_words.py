"""Words for numbers: shares with their n, lists of names, ties named as ties."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

__all__ = ["SMALL", "counted", "extremes", "listed", "percent", "share", "short_names", "top"]

SMALL: Final = 20
"""Below this n a sentence gives counts and no percentage."""


def percent(value: float) -> str:
    """A share as a whole percentage; never 0 % or 100 % for a share that is not."""
    rounded = round(100 * value)
    if rounded == 0 and value > 0:
        return "under 1 %"
    if rounded == 100 and value < 1:
        return "over 99 %"
    return f"{rounded} %"


def counted(n: int, noun: str, *, plural: str | None = None) -> str:
    """`1 turn`, `2 turns`, `1,204 turns`."""
    return f"{n:,} {noun if n == 1 else plural or noun + 's'}"


def share(part: int, whole: int, noun: str) -> str:
    """`31 % of 219 turns`, or `3 of 7 turns` where n is small."""
    if whole < SMALL:
        return f"{part} of {counted(whole, noun)}"
    return f"{percent(part / whole)} of {counted(whole, noun)}"


def listed(names: Sequence[str]) -> str:
    """`a`, `a and b`, `a, b and c`; `none` for no name."""
    if not names:
        return "none"
    if len(names) == 1:
        return names[0]
    return f"{', '.join(names[:-1])} and {names[-1]}"


def top(values: Mapping[str, float]) -> list[str]:
    """Every name with the largest value, in the mapping's order; nothing leads among zeros."""
    best = max(values.values(), default=0)
    return [name for name, value in values.items() if value == best] if best > 0 else []


def short_names(names: Sequence[str], *, least: int = 4) -> dict[str, str]:
    """Name → its shortest beginning that no other name shares, of at least `least` letters."""
    longest = max(map(len, names), default=0)
    for length in range(least, longest):
        cut = {name: name[:length] for name in names}
        if len(set(cut.values())) == len(names):
            return cut
    return {name: name for name in names}


def extremes(values: Iterable[float | None]) -> tuple[float, float]:
    """The least and the greatest of the values that are there; at least one is."""
    known = [value for value in values if value is not None]
    return min(known), max(known)
