"""A report as a Markdown text with its tables; charts stand as their data."""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

import polars as pl

from tutorsim.analysis.pages.cells_and_tables import cell, heading
from tutorsim.analysis.pages.document import Document, Section
from tutorsim.analysis.pages.shown_episodes import Episode, Grid, Message
from tutorsim.analysis.pages.words_and_safe_text import ended, shown

if TYPE_CHECKING:  # it loads a library that draws
    from tutorsim.analysis.charts.figures_forms_and_colours import Figure


_SPECIAL = re.compile(r"([\\`*_{}\[\]<>#|~$]|&(?=#?\w+;))")
_OPENS = re.compile(r"^(\d{0,9})((?<!\d)[-+=]|(?<=\d)[.)])")
"""What makes a list or a heading of a line that begins with it, such as the sign of a number."""
_MOST_ROWS = 60
"""Rows of a chart's data; more would bury the text."""


def to_markdown(document: Document) -> str:
    """The text of a report. The same document gives the same text."""
    return "\n\n".join(block for block in _blocks(document)) + "\n"


def _blocks(document: Document) -> Iterator[str]:
    yield f"# {_plain(document.title)}"
    yield _plain(document.summary)
    yield (f"**{document.told_of}: {_plain(document.provenance)}.** {_plain(document.warning)}")
    for answer in document.answers:
        yield (f"**{_plain(answer.question)}** {_plain(answer.headline)}. {_plain(answer.detail)}")
    for section in document.sections:
        yield from _section(section, document)
    if document.episodes or document.without_episodes:
        yield f"## {document.unit.capitalize()}s"
    if not document.episodes and document.without_episodes:
        yield _plain(document.without_episodes)
    for episode in document.episodes.told():  # the page has the others too
        yield from _episode(episode)
    yield "## Settings and record"
    yield "\n".join(f"- {_plain(name)}: {_plain(str(value))}" for name, value in document.facts)


def _section(section: Section, document: Document) -> Iterator[str]:
    yield f"## {_plain(section.title)}"
    yield _plain(section.lead)
    if document.answered:
        yield f"Answered by: {_plain(document.answered)}."
    for figure in section.figures:
        yield from _figure(figure)
    for table in section.tables:
        yield f"### {_plain(table.title)}"
        yield _grid(table.data)
        yield _plain(table.caption)


def _figure(figure: "Figure") -> Iterator[str]:
    if figure.chart is None:
        yield f"{_plain(figure.finding)} {_plain(figure.method)}".strip()
        return
    yield f"### {_plain(figure.finding)}"
    yield _plain(figure.caption)
    yield _grid(figure.data.head(_MOST_ROWS))
    left = figure.data.height - _MOST_ROWS
    if left > 0:
        yield f"{left:,} more rows: `tutorsim report RUN -o {figure.name}.json`."
    yield f"Method: {_plain(figure.method)}"


def _grid(data: pl.DataFrame) -> str:
    rows = (tuple(map(cell, row)) for row in data.iter_rows())
    return _rows(map(heading, data.columns), rows, [kind.is_numeric() for kind in data.dtypes])


def _rows(heads: Iterable[str], rows: Iterable[Sequence[str]], right: Sequence[bool]) -> str:
    """A table; which columns are set to the right."""
    lines = [heads, *rows]
    cells = ["| " + " | ".join(map(_plain, line)) + " |" for line in lines]
    cells.insert(1, "|" + "|".join("---:" if number else "---" for number in right) + "|")
    return "\n".join(cells)


def _episode(episode: Episode) -> Iterator[str]:
    yield f"### {_plain(episode.id)}"
    if episode.outcome:
        yield f"{ended(_plain(episode.outcome))} {_plain(episode.line)}".strip()
    if episode.why:
        yield ended(f"Shown because {_plain(episode.why)}")
    if episode.facts:
        yield "\n".join(f"- {_plain(name)}: {_plain(value)}" for name, value in episode.facts)
    for part in episode.parts:
        if isinstance(part, Message):
            yield _message(part)
        elif isinstance(part, Grid):
            yield f"{_plain(part.title)}:"
            yield _rows(part.columns, part.rows, [False] * len(part.columns))
            yield from map(_plain, part.notes)
        else:
            yield f"#### {_plain(part.title)}" + _noted(part.note)
            yield from map(_message, part.messages)


def _message(message: Message) -> str:
    said = f"{_plain(message.speaker)}{_noted(message.note)}:\n\n{_quoted(message.text)}"
    return said + (f"\n\n{_plain(message.aside)}" if message.aside else "")


def _noted(note: str) -> str:
    return f" ({_plain(note)})" if note else ""


def _quoted(text: str) -> str:
    """A text line for line as it was written; no line of it is a list, a heading or a formula."""
    plain = map(_plain, shown(text).splitlines() or ["(no text)"])
    lines = [_OPENS.sub(lambda found: found[1] + "\\" + found[2], line) for line in plain]
    broken = [
        f"> {line}\\" if line and after else f"> {line}"
        for line, after in zip(lines, [*lines[1:], ""], strict=True)
    ]
    return "\n".join(broken)


def _plain(text: str) -> str:
    """Text of any origin on one line, with every character of Markdown's own escaped."""
    return _SPECIAL.sub(r"\\\1", " ".join(shown(text).split("\n"))).strip()
