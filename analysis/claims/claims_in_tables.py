"""From texts and tables that are printed to claims."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Final

from tutorsim.analysis.claims.claim_ids import cell_names, column_names, key_columns
from tutorsim.analysis.claims.claims_file import Claim
from tutorsim.analysis.claims.numbers_in_text import (
    Number,
    Written,
    numbers_in,
    numbers_written,
    span_of,
)

__all__ = ["ELSEWHERE", "Cells", "Printed", "Words", "claims_in"]

ELSEWHERE: Final = "printed elsewhere"
"""Provenance of a figure that stands beside the run's and that no recording gives."""

_ELSEWHERE_COLUMNS: Final = re.compile(
    r"published$|printed\b|public files$|best (?:accuracy|macro f1)$"
)
"""Heads of columns whose figures are of a study or a leader board."""
_HERE: Final = "this run"
_HEAD: Final = "~heads"
"""Stands in the place of a row's name, which begins with a letter or a digit."""
_LOW: Final = ("low", "lower")
_HIGH: Final = ("high", "upper")
_SENTENCE: Final = re.compile(r"(?<=[.!?;])\s+")


@dataclass(frozen=True)
class Words:
    """A text that is printed at a place."""

    place: str
    """Id of the place; ids of its numbers are this and their count."""
    about: str
    """What the text is about: the title above it."""
    text: str

    def cited(self) -> list[tuple[str, Number]]:
        """The numbers of the text, each with its id."""
        return [(f"{self.place}.{n}", found) for n, found in enumerate(numbers_in(self.text), 1)]

    def claims(self, provenance: str) -> Iterator[Claim]:
        """A claim for each number of the text."""
        for id_, found in self.cited():
            yield Claim(
                id=id_,
                question=self._about() + self._asked(found),
                printed=found.printed,
                value=found.value,
                interval=found.interval,
                provenance=provenance,
            )

    def _about(self) -> str:
        if not self.about:
            return ""
        return f"{self.about} " if self.about.endswith(("?", ".", ":")) else f"{self.about}: "

    def _asked(self, asked: Number) -> str:
        """The sentence of a number, with `[?]` in its place and `…` in that of others."""
        ends = [found.end() for found in _SENTENCE.finditer(self.text)]
        start = max((end for end in ends if end <= asked.start), default=0)
        later = _SENTENCE.search(self.text, asked.end)
        end = later.start() if later else len(self.text)
        said, at = "", start
        for found in numbers_in(self.text):
            if start <= found.start < end:
                said += self.text[at : found.start] + ("[?]" if found == asked else "…")
                at = found.end
        return (said + self.text[at:end]).strip()


@dataclass(frozen=True)
class Cells:
    """A table that is printed at a place, every cell as it is printed."""

    place: str
    title: str
    headers: Sequence[str]
    rows: Sequence[Sequence[str]] = field(repr=False)
    written: Mapping[str, Mapping[int, Sequence[Written]]] = field(default_factory=dict, repr=False)
    """Column → row → what the cell writes; of other cells the text is read."""

    def cited(self) -> list[list[list[tuple[str, Number]]]]:
        """For each row and column the numbers of the cell, each with its id.

        The first number of a cell has the cell's id, others have their count behind it.
        """
        names = cell_names(self.headers, self.rows)
        return [
            [
                [
                    (name if n == 1 else f"{name}.{n}", found)
                    for name, (n, found) in (
                        (f"{self.place}.{cell}", numbered)
                        for numbered in enumerate(self._numbers(at, header, text), 1)
                    )
                ]
                for cell, header, text in zip(named, self.headers, row, strict=True)
            ]
            for at, (named, row) in enumerate(zip(names, self.rows, strict=True))
        ]

    def _numbers(self, at: int, header: str, text: str) -> list[Number]:
        """The number that a cell writes, or those of its text where it is text alone."""
        values = self.written.get(header, {})
        return numbers_written(text, values[at]) if at in values else _numbers_of(text)

    def heads(self) -> list[Words]:
        """The heads of the columns, as they are printed."""
        about = f"{self.title}, a column" if self.title else ""
        return [
            Words(f"{self.place}.{_HEAD}.{name}", about, _heading(header))
            for name, header in zip(column_names(self.headers), self.headers, strict=True)
        ]

    def claims(self, provenance: str) -> Iterator[Claim]:
        """A claim for each number of each head and each cell."""
        for head in self.heads():
            yield from head.claims(provenance)
        keys = key_columns(self.headers, self.rows)
        intervals = dict(self._intervals())
        for row, cells in zip(self.rows, self.cited(), strict=True):
            source = self._source(row, provenance)
            for place, numbers in enumerate(cells):
                header = self.headers[place]
                beside = _beside(row, intervals.get(place))
                given = ELSEWHERE if _ELSEWHERE_COLUMNS.match(_heading(header)) else source
                for n, (id_, found) in enumerate(numbers, 1):
                    yield Claim(
                        id=id_,
                        question=self._asked(row, [k for k in keys if k != place], header, n),
                        printed=found.printed,
                        value=found.value,
                        interval=found.interval or (beside if n == 1 else None),
                        provenance=given,
                    )

    def _asked(self, row: Sequence[str], keys: Sequence[int], header: str, n: int) -> str:
        of = "; ".join(f"{_heading(self.headers[k])}: {row[k]}" for k in keys if row[k])
        more = f", number {n} of the cell" if n > 1 else ""
        return f"{self.title}: {_heading(header)}{more}" + (f" ({of})" if of else "")

    def _source(self, row: Sequence[str], provenance: str) -> str:
        """What gave a row, where a column says that it is this run or something else."""
        if "source" not in self.headers:
            return provenance
        place = self.headers.index("source")
        told = any(other[place] == _HERE for other in self.rows)
        return ELSEWHERE if told and row[place] != _HERE else provenance

    def _intervals(self) -> Iterator[tuple[int, tuple[int, int]]]:
        """The column of an estimate → those of its ends: `low` and `high` right behind it."""
        for place, (low, high) in enumerate(pairwise(self.headers)):
            measured = place > 0 and any("." in row[place - 1] for row in self.rows)
            if low in _LOW and high in _HIGH and measured:
                yield place - 1, (place, place + 1)


Printed = Words | Cells


def claims_in(parts: Iterable[Printed], provenance: str) -> tuple[Claim, ...]:
    """A claim for every number that is printed.

    Args:
        parts: Everything that is printed, each part at a place of its own.
        provenance: What answered the calls of the run.
    """
    return tuple(claim for part in parts for claim in part.claims(provenance))


def _numbers_of(text: str) -> list[Number]:
    span = span_of(text)
    return [span] if span is not None else list(numbers_in(text))


def _heading(name: str) -> str:
    return name.replace("_", " ")


def _beside(row: Sequence[str], ends: tuple[int, int] | None) -> tuple[float, float] | None:
    """The interval that stands in columns of its own."""
    if ends is None:
        return None
    found = [[number.value for number in numbers_in(row[place])] for place in ends]
    match found:
        case [[int() | float() as low], [int() | float() as high]]:
            return low, high
    return None
