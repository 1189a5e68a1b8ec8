"""The view of a system, a run opened for it, and how the replies of the run ended."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from tutorsim.analysis.pages.document import (
    Answer,
    Dialogue,
    Document,
    Section,
    answered_words,
    warning_of_run,
)
from tutorsim.analysis.pages.words import counted
from tutorsim.analysis.ratings.items import Passage
from tutorsim.analysis.runs.exported_tables import (
    SHARED_TABLES,
    CountedTable,
    Gathered,
    Table,
    ballots_table,
)
from tutorsim.analysis.systems.panel.student_outcomes import stops_table
from tutorsim.records import (
    Retest,
    RunRecord,
    odd_stops,
    read_lines,
    read_retest,
    read_run,
    stop_counts,
    uncollected,
)
from tutorsim.records.ratings import RatedSheet, Subject, read_ratings
from tutorsim.system_registry import load

if TYPE_CHECKING:
    from tutorsim.analysis.metrics.text_similarity import Embedding


# --- System view ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class SystemRun:
    """A run folder of any system."""

    name: str
    """The folder's name, never a path."""
    head: RunRecord
    episodes: Sequence[Any] = field(repr=False)
    """The system's records, in grid order; failed ones among them."""
    retest: Retest | None = field(default=None, repr=False)
    """Votes asked again; `None` where the run has none."""
    with_messages: bool = False
    """A report may quote what a person wrote."""
    ratings: tuple[RatedSheet, ...] = field(default=(), repr=False)
    """What people said of it; empty where nobody was asked."""
    embedding: "Embedding | None" = None
    """The model of sentences for a report; `None`: texts are compared by their words alone."""

    @property
    def provenance(self) -> str:
        """What answered the calls, for captions; of an audit, also what gave the replies."""
        return answered_words(self.head)

    @property
    def ballots(self) -> pl.DataFrame:
        """The ballots of every vote that decided; see `ballots_table`."""
        if isinstance(self.episodes, _OnDisk):
            return self.episodes.ballots
        return ballots_table(self.episodes, run=self.head)


@dataclass(frozen=True)
class View:
    """What a system shows of its runs."""

    tables: Mapping[str, Table | CountedTable]
    """Name → table for `export`; `SHARED_TABLES` among them."""
    document: Callable[[SystemRun, bool], Document] | None = None
    """From a run, and whether it is to be brief, to a summary (brief) or a report (whole);
    `None` for a system whose commands have views of their own."""
    trace: Callable[[SystemRun, Any], Dialogue] | None = None
    """From a run and one of its records to the episode, message by message."""
    recount: Callable[[SystemRun, Mapping[str, tuple[str, ...]]], Document] | None = None
    """From a run and settings (`--set KEY=VALUE,…`) to what whole episodes would have been under
    them; `None` where a recount asks of votes only."""
    outcomes_under: Callable[[Mapping[str, tuple[str, ...]]], CountedTable] | None = None
    """From the settings of such a recount to the table of what came of each episode, event or item
    under them; the table `outcomes` of the settings that a recount without any has."""
    recount_in_one_pass: bool = False
    """The recount goes through the records once, so that they need not all be held."""
    recount_without: Callable[[RunRecord], frozenset[str]] = lambda head: frozenset()
    """From a run's head to the fields of its records that the recount does not look at, so that
    they are not read."""
    outcomes: Mapping[str, Callable[[Any], float | None]] = field(default_factory=dict)
    """Name → outcome of a record; `None` where it has none. What `compare` is over."""
    clusters: Callable[[Sequence[Any]], Mapping[str, str]] | None = None
    """From records to episode → what it is taken together with, where that is more than its
    task."""
    over: str = "tasks"
    """What that, or a task, is called in this system."""

    def cluster_of(self, run: SystemRun) -> Callable[[Any], str] | None:
        """What each record of a run is taken together with; `None`: with its task."""
        if self.clusters is None:
            return None
        found = self.clusters(run.episodes)
        return lambda record: found[record.episode_id]

    embeds: bool = False
    """The report compares texts, and takes a model of sentences for it."""
    published: str = ""
    """Data file of printed figures, as `package:file`; empty for none."""
    passages: Mapping[Subject, Callable[[SystemRun], Iterable[Passage]]] = field(
        default_factory=dict
    )
    """What people can rate → the texts of a run; empty for a system without a student."""
    judged: frozenset[str] = frozenset({"answers"})
    """What the run's own judge or labels score: `answers`, or `replies`, people rate too."""
    rubric: str = ""
    """Name of the prompt whose anchors people rate by; empty where raters need their own."""


def framed(
    run: SystemRun,
    *,
    summary: str,
    answers: tuple[Answer, ...],
    sections: tuple[Section, ...],
    dialogues: tuple[Dialogue, ...] = (),
    facts: tuple[tuple[str, str], ...] = (),
) -> Document:
    """A document with the run's provenance, its warning and its record around a system's parts.

    Args:
        run: The run.
        summary: What was run, in one sentence.
        answers: Questions of the first screen.
        sections: The parts.
        dialogues: Episodes message by message.
        facts: Settings of the system, name → value.
    """
    head = run.head
    stated = head.provenance
    return Document(
        title=f"Report of {head.study.name}",
        summary=summary,
        provenance=run.provenance,
        warning=warning_of_run(head),
        answers=answers,
        sections=sections,
        trace=(),
        no_trace="" if dialogues else "No episode is shown here; see `tutorsim show`.",
        facts=(
            ("Study", head.study.name),
            ("System", head.system),
            ("Seed", str(head.study.seed)),
            *facts,
            *(
                (
                    ("Texts from the run", given.run),
                    ("What gave them", f"{given.provenance.kind}: {given.provenance.name}"),
                    ("Recording digest of that run", given.recording_digest),
                )
                if (given := head.inputs)
                else ()
            ),
            ("What answered", f"{stated.kind}: {stated.name}"),
            ("Models that replied", ", ".join(stated.models) or "none"),
            ("Recorded", f"{stated.recorded_from or 'no day'} to {stated.recorded_to or 'no day'}"),
            ("Study digest", head.study_digest),
            ("Recording digest", head.recording_digest),
            *((f"Package {name}", version) for name, version in head.packages.items()),
        ),
        dialogues=dialogues,
        digest=head.recording_digest,
    )


def view_of(system: str) -> View:
    """The view of a system.

    Raises:
        UsageError: If there is no such system.
    """
    view: View = load(system, "view")
    return view


class _OnDisk(Sequence[Any]):
    """The records of a run folder, read again by whoever goes through them, and never held.

    Whoever goes through all of them leaves their ballots behind, so that votes can be counted
    without a second reading.

    Args:
        folder: The run folder.
        head: The run's head.
        without: Fields of the records that are not read.
    """

    def __init__(self, folder: Path, head: RunRecord, without: frozenset[str]) -> None:
        self._folder, self._head, self._without = folder, head, without
        self._ballots: pl.DataFrame | None = None

    def __iter__(self) -> Iterator[Any]:
        record = load(self._head.system, "record")
        gathered = Gathered(SHARED_TABLES["ballots"], self._head)
        yield from gathered.passing(read_lines(self._folder, record, without=self._without))
        self._ballots = gathered.frame()

    @property
    def ballots(self) -> pl.DataFrame:
        """The ballots of every vote that decided."""
        if self._ballots is None:
            deque(self, maxlen=0)
        assert self._ballots is not None
        return self._ballots

    def __len__(self) -> int:
        return self._head.episodes

    def __getitem__(self, place: Any) -> Any:
        return tuple(self)[place]


def open_run(folder: Path, head: RunRecord | None = None, *, to_recount: bool = False) -> SystemRun:
    """Open a run folder of any system.

    Args:
        folder: The run folder.
        head: Its head, where it was read before; a second reading would go through the log again.
        to_recount: Leave the records on disk if the system's recount needs each of them once.

    Raises:
        LogError: If the folder, or the retest or the ratings in it, are damaged.
        UsageError: If the run's system is not installed.
    """
    head = head or read_run(folder)
    return SystemRun(
        name=folder.resolve().name,
        head=head,
        episodes=_records(folder, head, to_recount=to_recount),
        retest=read_retest(folder),
        ratings=read_ratings(folder, head),
    )


def _records(folder: Path, head: RunRecord, *, to_recount: bool) -> Sequence[Any]:
    view = view_of(head.system) if to_recount else None
    unread = view.recount_without(head) if view else frozenset[str]()
    if view and view.recount_in_one_pass:
        return _OnDisk(folder, head, unread)
    with uncollected():
        return tuple(read_lines(folder, load(head.system, "record"), without=unread))


# --- Reply endings -------------------------------------------------------------------------------


def with_reply_endings(document: Document, run: SystemRun) -> Document:
    """The document, and how many replies were empty, refused or cut off; unchanged if none was."""
    counts = stop_counts(run.episodes)
    odd = odd_stops(counts)
    stops = stops_table(odd)
    if stops is None:
        return document
    calls, taken = sum(count.calls for count in odd), sum(count.taken for count in odd)
    replies = counted(sum(count.calls for count in counts), "reply", plural="replies")
    answer = Answer(
        "Does every reply say something, to its own end?",
        f"not {calls:,} of {replies}",
        f"They had no text, were refused, or cut off at their limit of length; {taken:,} were "
        "taken as they are.",
        "replies",
    )
    section = Section("replies", "Replies", "How replies ended.", tables=(stops,))
    return replace(
        document,
        answers=(*document.answers, answer),
        sections=(*document.sections, section),
    )
