"""What a report consists of, before it is a page or a text."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tutorsim.analysis.report.episode_dialogue import Dialogue
from tutorsim.analysis.report.example_episodes import Chosen
from tutorsim.analysis.views.cells import Table

if TYPE_CHECKING:
    from tutorsim.analysis.charts.figure import Figure  # which loads a library that draws

__all__ = ["Answer", "Document", "Section", "Table", "cell", "heading", "two"]


@dataclass(frozen=True)
class Answer:
    """One question of the first screen."""

    question: str
    headline: str
    """The answer in a few words or one number with its unit."""
    detail: str
    """One or two sentences; says why where there is no answer."""
    section: str
    """Id of the section that has the evidence."""


@dataclass(frozen=True)
class Section:
    """A part of the report."""

    id: str
    title: str
    lead: str
    """What the section asks, and what it can and cannot say."""
    figures: tuple[Figure, ...] = ()
    tables: tuple[Table, ...] = ()


@dataclass(frozen=True)
class Document:
    """A whole report."""

    title: str
    summary: str
    """What was run, in one sentence."""
    provenance: str
    """What answered the calls, for captions."""
    warning: str
    """What that means for the figures."""
    answers: tuple[Answer, ...]
    sections: tuple[Section, ...]
    trace: tuple[Chosen, ...] = field(repr=False)
    no_trace: str
    """Why there is no trace; empty when there is one."""
    facts: tuple[tuple[str, str], ...]
    """Name → value: settings, digests, versions of the recording."""
    dialogues: tuple[Dialogue, ...] = field(default=(), repr=False)
    """Episodes message by message, of systems other than the panel."""
    digest: str = ""
    """What a citation of a number names: the recording's digest, or that of the log or file;
    "" where nothing can be cited."""

    def figures(self) -> tuple[Figure, ...]:
        """Every figure, in order, those without a chart among them."""
        return tuple(figure for section in self.sections for figure in section.figures)


def cell(value: object) -> str:
    """A table cell as text; what is missing is a dash, and never a zero."""
    if value is None or value != value:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}".replace("-", "−")
    if isinstance(value, float):
        return f"{value:.3f}".replace("-", "−")
    if isinstance(value, list | tuple):
        return ", ".join(map(cell, value)) or "none"
    return str(value)


def heading(name: str) -> str:
    """A column's name as a table head."""
    return name.replace("_", " ")


def two(value: float | None) -> str:
    """A score with two digits; a dash where it is missing."""
    return "–" if value is None else f"{value:.2f}"
