"""What the commands show: prose, headings, tables, provenance, and numbers in words."""

import io
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich import box
from rich.console import Console, ConsoleOptions, JustifyMethod, RenderableType, RenderResult
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from tutorsim.cli.console import console_for, emit_json, json_text, out, safe
from tutorsim.errors import FolderError
from tutorsim.records import Provenance

__all__ = [
    "HELD",
    "NOT_ESTIMABLE",
    "Cell",
    "Grid",
    "Pair",
    "Prose",
    "caption",
    "heading",
    "listing",
    "number",
    "percent",
    "print_all",
    "provenance",
    "publish",
    "styled",
    "table",
]

HELD = "The logged dialogue is held fixed."
"""Ends the caption of every counterfactual; the head of a recount says it in full."""
NOT_ESTIMABLE = "–"
REASONS = 2
"""Reasons told below a table for its dashes."""
ROOMY = 110
"""Columns from which intervals stand beside their figures instead of below."""

LABELS_OF_KIND = {
    "api": "",
    "stand-in": " A scripted model: its figures say nothing about any language model.",
    "relay": " Not the Messages API itself: the user's word for what answered.",
}


@dataclass(frozen=True)
class Prose:
    """Running text with an indent.

    On a terminal it is wrapped at words; elsewhere each line stays in one piece, so that what
    reads the output can search it.
    """

    text: Text | str
    indent: int = 0

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        text = safe(self.text) if isinstance(self.text, str) else self.text
        if console.is_terminal:
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
    return Prose(styled(title, "bold") + styled(f"  {note}" if note else "", "dim"))


def caption(text: str) -> Prose:
    """What a table holds, and what it leaves out."""
    return Prose(styled(text, "dim"))


@dataclass(frozen=True)
class Pair:
    """A figure and what qualifies it: on one line where there is room, else on two."""

    figure: str
    detail: str = ""
    why_not: str = ""
    """Why there is no figure, where there is none."""


Cell = str | Text | Pair


@dataclass(frozen=True)
class Grid:
    """A plain table; one word in its place where there is no row."""

    headers: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    left: int
    """How many leading columns hold words; the others hold figures."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        if not self.rows:
            yield Prose("(none)")
            return
        shown = Table(
            box=box.SIMPLE_HEAD,
            padding=(0, 1, 0, 0),
            pad_edge=False,
            show_edge=False,
            header_style="bold",
        )
        for place, header in enumerate(self.headers):
            justify: JustifyMethod = "left" if place < self.left else "right"
            shown.add_column(safe(header), justify=justify, overflow="fold")
        form = " ({})" if options.max_width >= ROOMY else "\n{}"
        for row in self.rows:
            shown.add_row(*(_cell(cell, form) for cell in row))
        yield shown
        reasons = [cell.why_not for row in self.rows for cell in row if isinstance(cell, Pair)]
        told = list(dict.fromkeys(filter(None, reasons)))
        if told:
            more = "; …" if len(told) > REASONS else ""
            yield caption(f"{NOT_ESTIMABLE}: not estimable ({'; '.join(told[:REASONS])}{more})")


def _cell(cell: Cell, form: str) -> Text:
    if isinstance(cell, Pair):
        detail = form.format(cell.detail) if cell.detail else ""
        return safe(cell.figure) + styled(detail, "dim")
    return safe(cell) if isinstance(cell, str) else cell


def table(headers: Sequence[str], rows: Iterable[Sequence[Cell]], *, left: int = 1) -> Grid:
    """A table of cells of any origin; a `Text` keeps its style."""
    return Grid(headers, tuple(rows), left)


def listing(names: Sequence[str], *, last: str = "and") -> str:
    """`a`, `a and b`, `a, b and c`."""
    return f" {last} ".join(filter(None, (", ".join(names[:-1]), *names[-1:])))


def number(value: float | None, digits: int = 2) -> str:
    """A figure, or a dash where it is not estimable."""
    return NOT_ESTIMABLE if value is None else f"{value:.{digits}f}"


def percent(value: float | None) -> str:
    """A share in percent without the sign; a decimal where it would hide that it is not 0 or 1."""
    if value is None:
        return NOT_ESTIMABLE
    return f"{100 * value:.{int(0 < min(value, 1 - value) < 0.01)}f}"


def provenance(stated: Provenance) -> Prose:
    """What answered the calls of a recording; the first thing that every view says."""
    models = ", ".join(stated.models) or "no model named"
    days = stated.recorded_from or "no reply recorded"
    if stated.recorded_to and stated.recorded_to != stated.recorded_from:
        days = f"{days} to {stated.recorded_to}"
    line = styled(f"Answered by: {stated.kind}", "bold") + safe(
        f" ({stated.name}), {models}, {days}."
    )
    return Prose(line + styled(LABELS_OF_KIND[stated.kind], "yellow"))


def publish(
    shown: Iterable[RenderableType], value: Any, *, as_json: bool, output: Path | None
) -> None:
    """Give a result where it was asked for.

    Args:
        shown: The result for readers.
        value: The result as JSON.
        as_json: Print JSON instead.
        output: Write here instead: `.json`, or `.txt` for readers.
    """
    if output is None:
        if as_json:
            emit_json(value)
        else:
            print_all(out(), shown)
        return
    text = json_text(value) if output.suffix == ".json" else _plain(shown)
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
