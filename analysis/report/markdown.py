"""A report as a Markdown text with its tables; charts stand as their data."""

import re
from collections.abc import Iterator

import polars as pl

from analysis.charts import Figure
from analysis.charts.shown import shown
from analysis.report.document import Document, Section, Table, cell, heading
from analysis.report.trace import Chosen, step_sentence
from tutorsim.records import Turn

__all__ = ["to_markdown"]

_SPECIAL = re.compile(r"([\\`*_{}\[\]<>#|~$])")
_MOST_ROWS = 60
"""Rows of a chart's data; more would bury the text."""


def to_markdown(document: Document) -> str:
    """The text of a report. The same document gives the same text."""
    return "\n\n".join(block for block in _blocks(document)) + "\n"


def _blocks(document: Document) -> Iterator[str]:
    yield f"# {_plain(document.title)}"
    yield _plain(document.summary)
    yield (
        f"**What answered the calls: {_plain(document.provenance)}.** {_plain(document.warning)}"
    )
    for answer in document.answers:
        yield (f"**{_plain(answer.question)}** {_plain(answer.headline)}. {_plain(answer.detail)}")
    for section in document.sections:
        yield from _section(section, document)
    yield "## Episodes"
    if document.no_trace:
        yield _plain(document.no_trace)
    for chosen in document.trace:
        yield from _episode(chosen)
    yield "## Settings and record"
    yield "\n".join(f"- {_plain(name)}: {_plain(value)}" for name, value in document.facts)


def _section(section: Section, document: Document) -> Iterator[str]:
    yield f"## {_plain(section.title)}"
    yield _plain(section.lead)
    for figure in section.figures:
        yield from _figure(figure, document)
    for table in section.tables:
        yield from _table(table, document)


def _figure(figure: Figure, document: Document) -> Iterator[str]:
    if figure.chart is None:
        yield f"{_plain(figure.finding)} {_plain(figure.method)}".strip()
        return
    yield f"### {_plain(figure.finding)}"
    yield f"{_plain(figure.caption)} Answered by: {_plain(document.provenance)}."
    yield _grid(figure.data.head(_MOST_ROWS))
    left = figure.data.height - _MOST_ROWS
    if left > 0:
        yield f"{left:,} more rows: `tutorsim report RUN -o {figure.name}.json`."
    yield f"Method: {_plain(figure.method)}"


def _table(table: Table, document: Document) -> Iterator[str]:
    yield f"### {_plain(table.title)}"
    yield _grid(table.data)
    yield f"{_plain(table.caption)} Answered by: {_plain(document.provenance)}."


def _grid(data: pl.DataFrame) -> str:
    right = [kind.is_numeric() for kind in data.dtypes]
    lines = [
        "| " + " | ".join(_plain(heading(name)) for name in data.columns) + " |",
        "|" + "|".join("---:" if number else "---" for number in right) + "|",
    ]
    lines += ["| " + " | ".join(_plain(cell(v)) for v in row) + " |" for row in data.iter_rows()]
    return "\n".join(lines)


def _episode(chosen: Chosen) -> Iterator[str]:
    episode = chosen.episode
    yield f"### {_plain(episode.episode_id)}"
    if chosen.why:
        yield f"Shown because {_plain('; '.join(chosen.why))}."
    if chosen.draw:
        yield _plain(chosen.draw)
    if episode.question:
        yield f"The student was asked:\n\n{_quoted(episode.question)}"
    for attempt in episode.attempts:
        yield (
            f"Student, attempt {attempt.turn}, judge score {_plain(cell(attempt.score))}:\n\n"
            f"{_quoted(attempt.text)}"
        )
        for turn in episode.turns:
            if turn.turn == attempt.turn + 1:
                yield from _turn(turn)


def _turn(turn: Turn) -> Iterator[str]:
    if turn.decision is None:
        yield f"Tutor, turn {turn.turn}:\n\n{_quoted(turn.delivered)}"
        return
    steps = "\n".join(
        f"{i}. {_plain(step_sentence(s))}" for i, s in enumerate(turn.decision.steps, 1)
    )
    yield f"Turn {turn.turn}, the draft of {_plain(turn.decision.winner)} is delivered:"
    yield _quoted(turn.delivered)
    yield steps


def _quoted(text: str) -> str:
    return "\n".join(f"> {_plain(line)}" for line in shown(text).splitlines() or ["(no text)"])


def _plain(text: str) -> str:
    """Text of any origin on one line, with every character of Markdown's own escaped."""
    return _SPECIAL.sub(r"\\\1", " ".join(shown(text).split("\n"))).strip()
