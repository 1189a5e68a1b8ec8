"""Words for numbers and lists, and how text that a stranger wrote may stand on a page."""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from tutorsim.voting import Step

# --- Number words --------------------------------------------------------------------------------

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


def step_sentence(step: Step, order: Sequence[str] = ()) -> str:
    """What one step of a decision did.

    Args:
        step: The step.
        order: The fallback order, to be named where it decided.
    """
    left = ", ".join(step.remaining)
    if step.tallies is None:
        named = f" ({' > '.join(order)})" if order else ""
        return f"Fallback order{named}: the first of the tied candidates is {left}."
    count = "Final vote" if step.step == "vote_final" else "Tie round"
    totals = ", ".join(f"{name} {total}" for name, total in step.tallies.items())
    end = f"{left} leads" if len(step.remaining) == 1 else f"tied: {left}"
    return f"{count}: {totals} — {end}."


# --- Safe text -----------------------------------------------------------------------------------

_DIRECTIONS: Final = "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"
_HIDDEN = re.compile(f"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\ufeff\ud800-\udfff{_DIRECTIONS}]")


def shown(text: str) -> str:
    """The text with characters that nobody can see made visible.

    Controls, half surrogates and marks that turn the direction of text become `\\xNN` or
    `\\uNNNN`, so that a page reads as it was written; line ends, tabs and the joiners inside
    letters and emoji stay. Markup is the template's business, which escapes everything.
    """
    return _HIDDEN.sub(_code, text.replace("\r\n", "\n"))


def _code(found: re.Match[str]) -> str:
    code = ord(found[0])
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"
