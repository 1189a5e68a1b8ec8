"""What the commands show, on a console or in a file: prose, headings, tables, numbers in words.

A console prints elements one after another:

    out().print(heading("Votes", "20 turns"))
    out().print(Prose("Nobody won a turn.", indent=2))
"""

import io
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, JustifyMethod, RenderableType, RenderResult
from rich.text import Text

from tutorsim.cli.console_progress_and_safe_text import console_for, emit_json, json_text, out, safe
from tutorsim.errors import FolderError

# --- Output elements -----------------------------------------------------------------------------


@dataclass(frozen=True)
class Prose:
    """Running text with an indent.

    On a terminal it is wrapped at words; elsewhere each line stays in one piece, so that what
    reads the output can search it.
    """

    text: Text | str
    indent: int = 0

    @property
    def plain(self) -> str:
        """The text without its style."""
        return self.text if isinstance(self.text, str) else self.text.plain

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        text = safe(self.text) if isinstance(self.text, str) else self.text
        if console.is_terminal:
            from rich.padding import Padding

            yield Padding(text, (0, 0, 0, self.indent))
            return
        for line in text.split("\n", allow_blank=True):
            line.pad_left(self.indent)
            line.no_wrap, line.overflow = True, "ignore"
            yield line


def styled(text: str, style: str) -> Text:
    """Text of any origin in one style."""
    shown = safe(text)
    shown.stylize(style)
    return shown


def heading(title: str, note: str = "") -> Prose:
    """A section's title, and what to know of it at a glance."""
    text = styled(title, "bold") + styled(f"  {note}" if note else "", "dim")
    return Prose(text)


def caption(text: str) -> Prose:
    """What a table holds, and what it leaves out."""
    return Prose(styled(text, "dim"))


Cell = str | Text


@dataclass(frozen=True)
class _Grid:
    """A plain table; one word in its place where there is no row."""

    headers: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    left: int
    """How many leading columns hold words; the others hold figures."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        if not self.rows:
            yield Prose("(none)")
            return
        from rich.box import SIMPLE_HEAD
        from rich.table import Table

        shown = Table(
            box=SIMPLE_HEAD,
            padding=(0, 1, 0, 0),
            pad_edge=False,
            show_edge=False,
            header_style="bold",
        )
        widths = self._widths(options.max_width)
        for place, header in enumerate(self.headers):
            justify: JustifyMethod = "left" if place < self.left else "right"
            width = None if widths is None else widths[place]
            shown.add_column(safe(header), justify=justify, overflow="fold", width=width)
        for row in self.rows:
            shown.add_row(*(safe(cell) if isinstance(cell, str) else cell for cell in row))
        yield shown

    def _widths(self, room: int) -> list[int] | None:
        """Widths with which headers break and cells do not; `None` where that is not possible."""
        least = [self._width(place) for place in range(len(self.headers))]
        spare = room - sum(least) - 2 * (len(least) - 1)
        if spare < 0:
            return None
        for place, header in enumerate(self.headers):
            more = min(spare, max(len(header) - least[place], 0))
            least[place] += more
            spare -= more
        return least

    def _width(self, place: int) -> int:
        """Columns that the longest line of a cell takes, or the longest word of the header."""
        cells = (row[place] for row in self.rows)
        texts = (safe(c).plain if isinstance(c, str) else c.plain for c in cells)
        lines = (line for text in texts for line in text.split("\n"))
        return max(map(cell_len, (*lines, *safe(self.headers[place]).plain.split(" "))))


def table(headers: Sequence[str], rows: Iterable[Sequence[Cell]], *, left: int = 1) -> _Grid:
    """A table of cells of any origin; a `Text` keeps its style."""
    return _Grid(headers, tuple(rows), left)


def number(value: float | None, digits: int = 2) -> str:
    """A figure, or a dash where it is not estimable."""
    return "–" if value is None else f"{value:.{digits}f}"


def publish(
    shown: Iterable[RenderableType], value: Callable[[], Any], *, as_json: bool, output: Path | None
) -> None:
    """Give a result where it was asked for.

    `value`: gives the result as JSON; not asked where readers get it. `output`: write here instead:
    `.json`, or `.txt` for readers.
    """
    if output is None:
        if as_json:
            emit_json(value())
        else:
            print_all(out(), shown)
        return
    text = json_text(value()) if output.suffix == ".json" else _plain(shown)
    try:
        output.write_text(text, encoding="utf-8", newline="\n")
    except OSError as error:
        raise FolderError(
            f"{output} cannot be written.", why=str(error.strerror or error)
        ) from error


def print_all(console: Console, shown: Iterable[RenderableType]) -> None:
    """Print one after the other; lines longer than the console are not cut."""
    for part in shown:
        console.print(part, crop=False)


def _plain(shown: Iterable[RenderableType]) -> str:
    text = io.StringIO()
    print_all(console_for(text), shown)
    return text.getvalue()
