"""A document on a terminal: its answers first, then the sections that they rest on."""

import gc
import io
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from rich.console import Console, RenderableType

from tutorsim.analysis.report.document import Document, Section, Table
from tutorsim.analysis.report.episode_dialogue import Dialogue
from tutorsim.analysis.systems import SystemRun, open_run, view_of
from tutorsim.cli.options import check_sections
from tutorsim.cli.output_elements import Prose, caption, heading, styled
from tutorsim.cli.terminal_tables import table_shown
from tutorsim.records import RUN_FILE, read_run
from tutorsim.system_registry import DEFAULT_SYSTEM

__all__ = [
    "brief_shown",
    "check_applies",
    "dialogue_shown",
    "document_of",
    "document_shown",
    "section_names",
    "sections_shown",
    "system_run",
]

Shown = Iterator[RenderableType]

SCREEN = (80, 40)
"""Columns and lines that the sections below the answers may fill when none is asked for."""


def system_run(path: Path, *, to_recount: bool = False) -> SystemRun | None:
    """A run of a system other than the panel, opened; `None` for anything else.

    Args:
        path: A run folder, or a file.
        to_recount: As `open_run`.

    Raises:
        LogError: If it is a damaged run folder.
    """
    if not (path / RUN_FILE).is_file():
        return None
    head = read_run(path)
    if head.system == DEFAULT_SYSTEM:
        return None
    run = open_run(path, head, to_recount=to_recount)
    gc.freeze()  # its records stay to the end of the command: no search for cycles among them
    return run


def check_applies(path: Path, command: str) -> None:
    """Refuse a command that does not apply to the system of a run.

    Raises:
        UsageError: Naming system and command.
    """
    if (path / RUN_FILE).is_file():
        from tutorsim.systems import system_named  # a file of ballots needs none

        system_named(read_run(path).system).check_command(command)


def document_of(run: SystemRun, *, brief: bool, command: str) -> Document:
    """The summary (brief) or the report (whole) of a run.

    Raises:
        UsageError: If the run's system has none.
    """
    make = view_of(run.head.system).document
    if make is None:
        from tutorsim.systems import system_named

        raise system_named(run.head.system).refusal(command)
    from tutorsim.analysis.ratings.ratings_section import with_ratings  # of runs alone
    from tutorsim.analysis.systems.reply_endings import with_reply_endings

    return with_ratings(with_reply_endings(make(run, brief), run), run)


def document_shown(
    document: Document, sections: Sequence[str] | None = None, *, full: bool = False
) -> Shown:
    """A document for readers: whole, or the sections named, or its answers and one screen.

    Args:
        document: What to show.
        sections: Ids of sections; without any, what fits on a screen. `None` for a command
            that lets nobody choose.
        full: Show all sections.

    Raises:
        UsageError: If the document has no such section.
    """
    if full or sections:
        known = section_names(document)
        names = known if full else check_sections(sections or (), known)
        return sections_shown(document, [s for s in document.sections if s.id in names])
    return brief_shown(document, choice=sections is not None)


def section_names(document: Document) -> tuple[str, ...]:
    """Ids of the sections of a document."""
    return tuple(section.id for section in document.sections)


def brief_shown(document: Document, *, choice: bool) -> Shown:
    """The answers, and below them what fits on a screen of the sections that they rest on.

    A screen is counted in lines of 80 columns, whatever the terminal, so that the same run shows
    the same tables everywhere. A table that does not fit is left to `--section`.
    """
    yield from _head(document)
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
    if document.sections:
        yield Prose("")
        named = f", or --section {', '.join(section_names(document))}" if choice else ""
        yield caption(f"More: --full{named}.")


def _lines(shown: Iterable[RenderableType]) -> int:
    console = Console(width=SCREEN[0], file=io.StringIO(), force_terminal=True)
    return sum(len(console.render_lines(part)) for part in shown)


def sections_shown(document: Document, sections: Iterable[Section]) -> Shown:
    """The head of a document and some of its sections, with every episode that it shows."""
    yield from _head(document)
    for section in sections:
        yield from _section(section)
    for dialogue in document.dialogues:
        yield from dialogue_shown(dialogue)


def _head(document: Document) -> Shown:
    yield heading(document.title)
    yield Prose(document.summary)
    yield Prose(styled(f"Answered by: {document.provenance}.", "bold"))
    yield Prose(styled(document.warning, "yellow"))
    for answer in document.answers:
        yield Prose("")
        yield Prose(styled(answer.question, "bold"))
        yield Prose(f"{answer.headline}. {answer.detail}".strip(), indent=2)


def _section(section: Section) -> Shown:
    yield Prose("")
    yield heading(section.title)
    if section.lead:
        yield caption(section.lead)
    for figure in section.figures:
        yield Prose(figure.finding, indent=2)
    for part in section.tables:
        yield Prose("")
        yield from table_shown(part)


def dialogue_shown(dialogue: Dialogue) -> Shown:
    """One episode, message by message."""
    yield Prose("")
    yield heading(dialogue.id, dialogue.why)
    for name, value in dialogue.facts:
        yield Prose(f"{name}: {value}", indent=2)
    for message in dialogue.messages:
        yield Prose("")
        note = f"  ({message.note})" if message.note else ""
        yield Prose(styled(message.speaker, "bold") + styled(note, "dim"))
        yield Prose(styled(message.text, "dim") if message.quiet else message.text, indent=2)
