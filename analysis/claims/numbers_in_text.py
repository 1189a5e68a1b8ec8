"""The numbers of a text that is printed.

What has digits and is a name is no number: a word with a letter in it (`claude-haiku-4-5`, a
digest), a day, a version of three parts, and a table or section of a study that is cited.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

__all__ = ["NAMES", "Number", "Written", "numbers_in", "numbers_written", "span_of"]

NAMES: Final = {
    "day": r"(?<![0-9])[0-9]{4}-[0-9]{2}-[0-9]{2}(?![0-9])",
    "reference": r"(?:Tables?|Figures?|Sections?) [0-9]+(?:\.[0-9]+)*",
    "word": r"(?![0-9]+e[+-][0-9]{2}(?![0-9]))[0-9]*[^\W0-9]\w*(?:[.\-/]\w+)*",
    "version": r"[0-9]+(?:\.[0-9]+){2,}",
}
"""What has digits and is no number, by name; the first that fits says what it is."""

_DIGITS: Final = r"(?:[0-9]{1,3}(?:,[0-9]{3})+|[0-9]+)(?:\.[0-9]+)?(?:e[+-][0-9]{2})?"
_SIGNED: Final = rf"(?:(?<![\w)\]])[+−-])?{_DIGITS}"
_UNIT: Final = r"(?: ?%)?"
_TOKEN: Final = re.compile(
    rf"(?P<name>{'|'.join(NAMES.values())})"
    rf"|(?P<printed>(?:(?:[<>≤≥±~]|~<) ?)?(?P<value>{_SIGNED}){_UNIT}"
    rf"(?: \[(?P<low>{_SIGNED}){_UNIT}, (?P<high>{_SIGNED}){_UNIT}\])?)"
)
_SPAN: Final = re.compile(rf"({_SIGNED}){_UNIT} to ({_SIGNED}){_UNIT}")


Written = tuple[float | int | None, tuple[float, float] | None]
"""A value that a cell writes, and its interval."""


class Number(NamedTuple):
    """One number of a text, with its interval where one stands behind it in brackets."""

    start: int
    end: int
    """Where it is printed, as a half-open range of the text's characters."""
    printed: str
    """As it is printed: with sign, unit, what qualifies it (`<`, `~`, `±`), and interval."""
    value: float | int | None
    """`None` for a span, which has an interval alone."""
    interval: tuple[float, float] | None


def numbers_in(text: str) -> Iterator[Number]:
    """Every number of a text, in order."""
    for found in _TOKEN.finditer(text):
        if found["name"] is not None:
            continue
        low, high = found["low"], found["high"]
        interval = None if low is None else (_parsed(low), _parsed(high))
        yield Number(
            found.start(), found.end(), found["printed"], _parsed(found["value"]), interval
        )


def numbers_written(text: str, values: Sequence[Written]) -> list[Number]:
    """The numbers of a cell: the text is what is printed, the values are the cell's.

    One value is written by the whole text, several by a number of the text each.
    """
    if len(values) == 1:
        return [Number(0, len(text), text, *values[0])]
    return [
        found._replace(value=value, interval=interval)
        for found, (value, interval) in zip(numbers_in(text), values, strict=True)
    ]


def span_of(text: str) -> Number | None:
    """The number of a text that is nothing but a span, `0.25 to 0.33`; else `None`."""
    found = _SPAN.fullmatch(text)
    if found is None:
        return None
    ends = (_parsed(found[1]), _parsed(found[2]))
    return Number(0, len(text), text, None, ends)


def _parsed(text: str) -> float | int:
    plain = text.replace(",", "").replace("−", "-")
    return float(plain) if "." in plain or "e" in plain else int(plain)
