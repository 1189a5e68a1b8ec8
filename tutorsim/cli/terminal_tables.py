"""Tables and texts that are values of the analysis, drawn on a terminal."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.text import Text

from tutorsim.analysis.report.document import Table, cell
from tutorsim.analysis.report.document import heading as column_heading
from tutorsim.analysis.views.cells import Part
from tutorsim.cli.console import safe
from tutorsim.cli.output_elements import Prose, caption, heading, table

__all__ = ["MOST_ROWS", "TableShown", "parts_shown", "table_shown"]

GAP = 2
"""Columns between two columns of a table."""
MOST_ROWS = 40
"""Rows of a table on a terminal; the report and `--json` have them all."""
_BRACKETS: Final = re.compile(r" (?=[\[(][^\[(]*$)")
"""Before what qualifies a figure, which may stand below it."""
_REMARK: Final = re.compile(r" \[([^\d\[\]]+)\]$")
"""What says in words why a figure has no interval."""
_MARKS: Final = "†‡§¶"
_FIGURE: Final = re.compile(r"[~<+−]?\d|–$|not estimable|$")
"""How a figure begins, or what stands in its place."""

Rows = Sequence[Sequence[str]]


def parts_shown(
    parts: Iterable[Part | None], *, every_row: bool = False
) -> Iterator[RenderableType]:
    """Texts and tables, one below the other.

    Args:
        parts: What to show; nothing for `None`. A text that begins with spaces is indented.
        every_row: Show all rows of tables, however many.
    """
    below_table = False
    for part in (part for part in parts if part is not None):
        if below_table or not isinstance(part, str):
            yield Text()
        below_table = not isinstance(part, str)
        if isinstance(part, str):
            text = part.lstrip(" ")
            yield Prose(text, indent=len(part) - len(text))
        else:
            yield from table_shown(part, every_row=every_row)


def table_shown(made: Table, *, every_row: bool = False) -> Iterator[RenderableType]:
    """A table with its title and caption.

    Args:
        made: The table.
        every_row: Show all rows, however many.
    """
    data = made.data if every_row else made.data.head(MOST_ROWS)
    texts = [[safe(cell(value)).plain for value in row] for row in data.iter_rows()]
    rows, notes = _noted(texts)
    yield heading(made.title)
    yield TableShown(
        [safe(column_heading(name)).plain for name in data.columns],
        rows,
        _words(rows),
        [data.columns.index(name) for name in made.secondary],
        replace(made, data=data),
    )
    for note in notes:
        yield caption(note)
    left = made.data.height - data.height
    if left > 0:
        yield caption(f"{left:,} more rows: see --json, or `tutorsim report`.")
    if made.caption:
        yield caption(made.caption)


def _noted(rows: Rows) -> tuple[Rows, list[str]]:
    """Cells with a mark for what stands in brackets without a number, and what the marks mean."""
    marks: dict[str, str] = {}

    def marked(found: re.Match[str]) -> str:
        return marks.setdefault(found[1], _MARKS[min(len(marks), len(_MARKS) - 1)])

    noted = [[_REMARK.sub(marked, text) for text in row] for row in rows]
    if len(marks) > len(_MARKS):
        return rows, []
    return noted, [f"{mark}: {remark}" for remark, mark in marks.items()]


def _words(rows: Rows) -> int:
    """How many leading columns hold words, the first one whatever it holds."""
    columns = list(zip(*rows, strict=True))
    figures = (p for p, c in enumerate(columns) if p and all(map(_FIGURE.match, c)))
    return next(figures, len(columns))


@dataclass(frozen=True)
class TableShown:
    """A table that fits its width.

    Where it is too wide, what stands in brackets goes below its figure, then columns that matter
    less are left out, and then it comes in parts, each with the leading columns of words.
    """

    headers: Sequence[str]
    rows: Rows
    left: int
    """How many leading columns hold words."""
    secondary: Sequence[int]
    made: Table
    """The same with the names of its columns, and its values."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        broken = [[_BRACKETS.sub("\n", text) for text in row] for row in self.rows]
        attempts = [(self.rows, 0), *((broken, n) for n in range(len(self.secondary) + 1))]
        for rows, n in attempts:
            left_out = self.secondary[:n]
            places = [place for place in range(len(self.headers)) if place not in left_out]
            if sum(self._width(rows, place) for place in places) - GAP <= options.max_width:
                yield self._drawn(rows, places)
                break
        else:
            yield from self._parted(broken, places, options.max_width)
        if left_out:
            names = ", ".join(self.headers[place] for place in left_out)
            yield caption(f"Left out, for want of room: {names}.")

    def _parted(self, rows: Rows, places: Sequence[int], room: int) -> RenderResult:
        widths = {place: self._width(rows, place) for place in places}
        head = list(places[: self.left])
        while head and sum(widths[place] for place in head) > room // 2:
            head.pop()
        parts: list[list[int]] = [[]]
        room -= sum(widths[place] for place in head)
        for place in places[len(head) :]:
            if parts[-1] and sum(widths[p] for p in parts[-1]) + widths[place] > room:
                parts.append([])
            parts[-1].append(place)
        for part in parts:
            yield self._drawn(rows, [*head, *part])

    def _drawn(self, rows: Rows, places: Sequence[int]) -> RenderableType:
        left = sum(place < self.left for place in places)
        shown = [[row[place] for place in places] for row in rows]
        return table([self.headers[place] for place in places], shown, left=left)

    def _width(self, rows: Rows, place: int) -> int:
        """Columns that a column takes: headers may break between words, cells at line ends."""
        lines = (line for row in rows for line in row[place].split("\n"))
        return max(map(cell_len, (*self.headers[place].split(" "), *lines))) + GAP
