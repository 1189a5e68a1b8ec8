"""What a report consists of, before it is a page or a text: answers, sections, episodes.

Answers name the section that has their evidence:

    answer = Answer("Who won?", "Alice", "In 12 of 20 turns.", section="votes")
    section = Section("votes", "Votes", "How the votes went.")
    document = Document("Report", "One run.", "a script", "", (answer,), [section], facts=())
    to_markdown(document)  # of `document_as_markdown`
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import TYPE_CHECKING, Any, overload

from tutorsim.analysis.pages.cells_and_tables import Table
from tutorsim.analysis.pages.shown_episodes import NO_EPISODES, Episodes

if TYPE_CHECKING:  # it loads a library that draws
    from tutorsim.analysis.charts.figures_forms_and_colours import Figure


Fact = tuple[str, str | float]
"""A setting, digest or version by its name."""


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


class Sections(Sequence[Section]):
    """Sections of a document, each made when somebody first looks at it."""

    def __init__(self, makers: Mapping[str, Callable[[], Section]]) -> None:
        self.makers = {id_: cache(make) for id_, make in makers.items()}

    def __len__(self) -> int:
        return len(self.makers)

    @overload
    def __getitem__(self, at: int) -> Section: ...
    @overload
    def __getitem__(self, at: slice) -> Sequence[Section]: ...
    def __getitem__(self, at: int | slice) -> Section | Sequence[Section]:
        makers = [*self.makers.values()]
        return [make() for make in makers[at]] if isinstance(at, slice) else makers[at]()


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
    sections: Sequence[Section]
    facts: tuple[Fact, ...]
    """Name → value: settings, digests, versions of the recording."""
    episodes: Episodes = field(default=NO_EPISODES, repr=False)
    """The episodes, message by message."""
    unit: str = "episode"
    """What an episode is called."""
    without_episodes: str = "No episode is shown here; see `tutorsim show`."
    """Why there is none, where there is none."""
    told_of: str = "What answered the calls"
    """What `provenance` and `warning` tell of."""
    unknown: bool = False
    """Nobody knows what answered; it is said at the top, and not again at each chart."""
    lead: str = ""
    """Name of the chart that answers the title: it stands on the first screen."""
    digest: str = ""
    """What a citation of a number names: the recording's digest, or that of the log or file;
    "" where nothing can be cited."""
    brief: tuple[Table, ...] = field(default=(), repr=False)
    """Tables of a terminal's first screen; where there is none, those of the sections that fit."""
    values: Callable[[], Mapping[str, Any]] = field(default=dict, repr=False)
    """What tables leave out or say in words, as values for JSON: name → rows."""

    @property
    def answered(self) -> str:
        """What answered, for sections and charts; empty if nobody knows."""
        return "" if self.unknown else self.provenance

    def figures(self) -> tuple[Figure, ...]:
        """Every figure, in order, those without a chart among them."""
        return tuple(figure for section in self.sections for figure in section.figures)


def section_ids(document: Document) -> tuple[str, ...]:
    """Ids of the sections of a document, none of which is made."""
    return tuple(_makers(document))


def with_section(document: Document, id_: str, make: Callable[[], Section]) -> Document:
    """The document with one more section, made when it is looked at."""
    return replace(document, sections=Sections({**_makers(document), id_: make}))


def _makers(document: Document) -> Mapping[str, Callable[[], Section]]:
    found = document.sections
    return found.makers if isinstance(found, Sections) else {s.id: lambda s=s: s for s in found}  # type: ignore[misc]
