"""Documents, tables and texts of the analysis, drawn on a terminal: answers come first."""

import gc
import io
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.text import Text

from tutorsim.analysis.pages.cells_and_tables import Part, Table, cell
from tutorsim.analysis.pages.cells_and_tables import heading as column_heading
from tutorsim.analysis.pages.document import Document, Section, section_ids
from tutorsim.analysis.systems.system_view_opened_run_and_cost import (
    Opened,
    SystemRun,
    Use,
    open_run,
)
from tutorsim.cli.console_progress_and_safe_text import safe
from tutorsim.cli.options_that_commands_share import check_sections
from tutorsim.cli.printed_prose_and_tables_and_published_files import (
    Prose,
    caption,
    heading,
    styled,
    table,
)
from tutorsim.records import RUN_FILE, read_run

# --- Terminal tables -----------------------------------------------------------------------------

GAP = 2
"""Columns between two columns of a table."""
MOST_ROWS = 40
"""Rows of a table on a terminal; the report and `--json` have them all."""
_BRACKETS: Final = re.compile(r" (?=[\[(][^\[(]*$)")
"""Before what qualifies a figure, which may stand below it."""
_FIGURE: Final = re.compile(r"[~<+−]?\d|–$|not estimable|$")
"""How a figure begins, or what stands in its place."""

Rows = Sequence[Sequence[str]]


def parts_shown(
    parts: Iterable[Part | None], *, every_row: bool = False
) -> Iterator[RenderableType]:
    """Texts and tables, one below the other.

    `parts`: what to show; nothing for `None`. A text that begins with spaces is indented.
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
    """A table with its title and caption."""
    data = made.data if every_row else made.data.head(MOST_ROWS)
    rows = [[safe(cell(value)).plain for value in row] for row in data.iter_rows()]
    yield heading(made.title)
    yield TableShown(
        [safe(column_heading(name)).plain for name in data.columns],
        rows,
        _words(rows),
        [data.columns.index(name) for name in made.secondary],
        replace(made, data=data),
    )
    left = made.data.height - data.height
    if left > 0:
        yield caption(f"{left:,} more rows: see --json, or `tutorsim report`.")
    if made.caption:
        yield caption(made.caption)


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
    """The table as made, with the names of its columns, and its values."""

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
            yield caption(f"Left out for lack of room: {names}.")

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


# --- Terminal documents --------------------------------------------------------------------------

Shown = Iterator[RenderableType]

SCREEN = (80, 40)
"""Columns and lines that the sections below the answers may fill when none is asked for."""


def system_run(path: Path, *, use: Use | None = None) -> SystemRun | None:
    """A run of any system, opened; `None` for ballots from elsewhere.

    Raises `LogError` if it is a damaged run folder.
    """
    if not (path / RUN_FILE).is_file():
        return None
    run = open_run(path, use=use)
    gc.freeze()  # its records stay to the end of the command: no search for cycles among them
    return run


def check_applies(path: Path, command: str) -> None:
    """Refuse a command that does not apply to the system of a run.

    Raises `UsageError` naming system and command.
    """
    if (path / RUN_FILE).is_file():
        from tutorsim.kernel.load_and_check_study_file import system_named

        system_named(read_run(path).system).check_command(command)


def document_asked(opened: Opened, *, brief: bool, command: str) -> Document:
    """The summary (brief) or the report (whole) of what was opened.

    Raises `UsageError` if the run's system has none.
    """
    from tutorsim.analysis.systems.any_summary_or_report_reply_endings_noise_floor import (
        document_of,
    )

    found = document_of(opened, brief=brief)
    if found is None:
        assert isinstance(opened, SystemRun)
        from tutorsim.kernel.load_and_check_study_file import system_named

        raise system_named(opened.head.system).refusal(command)
    return found


def document_shown(
    document: Document, sections: Sequence[str] | None = None, *, full: bool = False
) -> Shown:
    """A document for readers: whole, or the sections named, or its answers and one screen.

    `sections`: ids of sections; without any, what fits on a screen. `None` for a command that lets
    nobody choose. Raises `UsageError` if the document has no such section.
    """
    if full or sections:
        known = section_ids(document)
        names = known if full else check_sections(sections or (), known)
        chosen = [document.sections[at] for at, name in enumerate(known) if name in names]
        return sections_shown(document, chosen, every=full)
    return brief_shown(document, choice=sections is not None)


def brief_shown(document: Document, *, choice: bool) -> Shown:
    """The answers, and below them what fits on a screen of the sections that they rest on.

    A screen is counted in lines of 80 columns, whatever the terminal, so that the same run shows
    the same tables everywhere. A table that does not fit is left to `--section`.
    """
    yield from _head(document)
    if document.brief:
        yield from parts_shown(document.brief)
    else:
        yield from _fitting(document)
    ids = section_ids(document)
    if ids:
        yield Prose("")
        named = f", or --section {', '.join(ids)}" if choice else ""
        yield caption(f"More: --full{named}.")


def _fitting(document: Document) -> Shown:
    """Tables of the sections that the answers rest on, as far as they fit on a screen."""
    rests_on = [answer.section for answer in document.answers]
    ordered = sorted(
        document.sections, key=lambda s: rests_on.index(s.id) if s.id in rests_on else len(rests_on)
    )
    left = SCREEN[1] - 3
    for section in ordered:
        kept: list[Table] = []
        for made in section.tables:
            shortened = replace(section, figures=(), tables=(*kept, made))
            if _lines(_section(shortened)) <= left:
                kept.append(made)
        if kept:
            fitting = replace(section, figures=(), tables=tuple(kept))
            left -= _lines(_section(fitting))
            yield from _section(fitting)


def _lines(shown: Iterable[RenderableType]) -> int:
    console = Console(width=SCREEN[0], file=io.StringIO(), force_terminal=True)
    return sum(len(console.render_lines(part)) for part in shown)


def sections_shown(document: Document, sections: Iterable[Section], *, every: bool) -> Shown:
    """The head of a document and some of its sections."""
    yield from _head(document)
    for section in sections:
        if section.tables or section.figures or section.lead:
            yield from _section(section, every_row=True)
        elif not every:
            yield caption(f"Section {section.id}: there is nothing for it.")


def _head(document: Document) -> Shown:
    yield heading(document.title)
    yield Prose(document.summary)
    yield Prose(styled(f"Answered by: {document.provenance}.", "bold"))
    yield Prose(styled(document.warning, "yellow"))
    for answer in document.answers:
        yield Prose("")
        yield Prose(styled(answer.question, "bold"))
        yield Prose(f"{answer.headline}. {answer.detail}".strip(), indent=2)


def _section(section: Section, *, every_row: bool = False) -> Shown:
    yield Prose("")
    yield heading(section.title)
    if section.lead:
        yield caption(section.lead)
    for figure in section.figures:
        yield Prose(figure.finding, indent=2)
    for part in section.tables:
        yield Prose("")
        yield from table_shown(part, every_row=every_row)
