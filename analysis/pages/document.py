"""What a report consists of, before it is a page or a text: answers, sections, dialogues."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from tutorsim.analysis.pages.cells import Table
from tutorsim.analysis.systems.panel.episodes import Chosen
from tutorsim.records import Provenance, RunRecord
from tutorsim.vocabularies import ProvenanceKind

if TYPE_CHECKING:
    from tutorsim.analysis.charts.figure import Figure  # which loads a library that draws


# --- Episode dialogue ----------------------------------------------------------------------------


@dataclass(frozen=True)
class Message:
    """One message, ballot or decision."""

    speaker: str
    text: str
    note: str = ""
    """What else is known of it: when, to whom, how it was read. Empty for nothing."""
    quiet: bool = False
    """Something that was not said aloud, such as a thought or a ballot."""


@dataclass(frozen=True)
class Dialogue:
    """One episode, message by message."""

    id: str
    """The episode's id."""
    why: str
    """Why it is shown."""
    messages: tuple[Message, ...]
    facts: tuple[tuple[str, str], ...] = ()
    """Name → value: what came of it."""


# --- Document ------------------------------------------------------------------------------------


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


# --- Provenance warning --------------------------------------------------------------------------

WARNINGS: Final[dict[ProvenanceKind, str]] = {
    "api": "The real endpoint, with the models named.",
    "stand-in": (
        "A scripted model gave the replies. The figures show what the methods do; they say "
        "nothing about any language model, and must not be set beside published ones without "
        "this label."
    ),
    "relay": (
        "Something else than the real endpoint answered, under the name that the user gave it. "
        "What it was rests on the user's word."
    ),
    "imported": (
        "Another program made these logs; its own settings and faults are in them, and what it did "
        "not log is absent."
    ),
}


def warning_of(stated: Provenance) -> str:
    """What to know of a recording's figures: what answered, and what it cannot tell."""
    return f"{WARNINGS[stated.kind]} {stated.limits}".strip()


def answered_words(run: RunRecord) -> str:
    """What answered a run's calls; if it labels another run's texts, what gave those too."""
    labels, given = _words(run.provenance), run.inputs
    return f"texts by {_words(given.provenance)}, labels by {labels}" if given else labels


def warning_of_run(run: RunRecord) -> str:
    """What to know of a run's figures; if it labels another run's texts, of both."""
    own, given = warning_of(run.provenance), run.inputs
    if given is None:
        return own
    theirs = warning_of(given.provenance)
    return (
        f"The texts that are labelled, by {_words(given.provenance)}: {theirs} "
        f"Their labels, by {_words(run.provenance)}: {own}"
    )


def _words(stated: Provenance) -> str:
    return f"{stated.kind} ({stated.name})"
