"""The view of a system; what it is of, a run opened or ballots from elsewhere; and what it cost."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, Protocol

import polars as pl

from tutorsim.analysis.ballots.reading_options_and_column_words import NO_HINTS, Hints
from tutorsim.analysis.ballots.recount_source import (
    Source,
    check_panel,
    of_panel,
    open_source,
    refuse_hints,
    source_of,
)
from tutorsim.analysis.pages.document import Document, Fact
from tutorsim.analysis.pages.numbers_printed_in_studies import Printed, refuse_published
from tutorsim.analysis.pages.shown_episodes import NO_EPISODES, Episodes, Run, Telling
from tutorsim.analysis.pages.words_and_safe_text import answered_words, odd_replies, warning_of_run
from tutorsim.analysis.ratings.texts_to_rate_as_raters_see import Passage
from tutorsim.analysis.runs.exported_tables import SHARED_TABLES, Gathered, Table, ballots_table
from tutorsim.analysis.statistics import by_key
from tutorsim.records import (
    RUN_FILE,
    CallRecord,
    Retest,
    RunRecord,
    StopCount,
    StopCounter,
    read_lines,
    read_retest,
    read_run,
    stop_counts,
    uncollected,
)
from tutorsim.records.ratings import RatedSheet, Subject, read_ratings
from tutorsim.system_registry import BALLOTS_VIEW, load, named

if TYPE_CHECKING:
    from tutorsim.analysis.statistics.text_similarity_by_words_or_embeddings import Embedding


# --- System view ---------------------------------------------------------------------------------


Use = Literal["recount", "document"]
"""What a run is opened for: a recount, or its summary or report."""


class Prices(Protocol):
    """List prices of models."""

    @property
    def as_of(self) -> str:
        """The day that they are of."""

    def cost(self, model: str, input_tokens: int, output_tokens: int) -> float | None:
        """US$; `None` for a model without a price."""


class Spent(NamedTuple):
    """Calls and their tokens."""

    calls: int
    input_tokens: int
    output_tokens: int


def spent_by(calls: Iterable[tuple[str, CallRecord]]) -> dict[str, Spent]:
    """What calls are of → how many there are, and their tokens, in order of first appearance."""
    return {
        name: Spent(
            len(own), sum(one.input_tokens for one in own), sum(one.output_tokens for one in own)
        )
        for name, own in by_key(calls).items()
    }


def usage(calls: Iterable[CallRecord], prices: Prices | None) -> dict[str, Any]:
    """Sum calls and tokens by model, those of failed episodes among them.

    Returns `models`: name → calls, input_tokens, output_tokens and cost_usd, which is `None` for a
    model without a price; their sums beside it, where `cost_usd` is `None` when one of the prices
    is unknown; and `prices_as_of`.
    """
    models = {
        model: {
            **one._asdict(),
            "cost_usd": prices and prices.cost(model, one.input_tokens, one.output_tokens),
        }
        for model, one in sorted(spent_by((call.model, call) for call in calls).items())
    }
    costs = [row["cost_usd"] for row in models.values()]
    known = [cost for cost in costs if cost is not None]
    return {
        "models": models,
        **{name: sum(row[name] for row in models.values()) for name in Spent._fields},
        "cost_usd": sum(known) if len(known) == len(costs) else None,
        "prices_as_of": prices and prices.as_of,
    }


@dataclass(frozen=True)
class Asked:
    """What a reader asks of a summary or report besides the run."""

    prices: Prices | None = None
    """What calls cost; `None`: nothing is said of money."""
    published: tuple[Printed, ...] | None = None
    """Printed figures to stand beside the run's; `None`: those of the package."""
    episodes: tuple[str, ...] = ()
    """Episodes to show message by message; the system chooses where none is named."""


NOTHING_ASKED: Final = Asked()


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
    asked: Asked = field(default=NOTHING_ASKED, repr=False)
    """What a summary or report of it is asked for."""

    @cached_property
    def source(self) -> Source:
        """The run's votes, as everything that counts them takes them.

        Raises `UsageError` if nobody votes in it.
        """
        return source_of(
            self.name,
            self.head,
            self.episodes,
            ballots=self.ballots if isinstance(self.episodes, _OnDisk) else None,
            retest=self.retest,
            ratings=self.ratings,
        )

    @property
    def provenance(self) -> str:
        """What answered the calls, for captions; of an audit, also what gave the replies."""
        return answered_words(self.head)

    @property
    def ballots(self) -> pl.DataFrame:
        """The ballots of every vote that decided; see `ballots_table`."""
        if isinstance(self.episodes, _OnDisk):
            return self.episodes.tallied[0]
        return ballots_table(self.episodes, run=self.head)

    @property
    def stops(self) -> list[StopCount]:
        """How many replies of each stage ended in which way."""
        if isinstance(self.episodes, _OnDisk):
            return self.episodes.tallied[1]
        return stop_counts(self.episodes)


@dataclass(frozen=True)
class Ballots:
    """Ballots from elsewhere, opened."""

    source: Source
    asked: Asked = field(default=NOTHING_ASKED, repr=False)
    """What a summary or report of them is asked for."""

    @property
    def name(self) -> str:
        """Name of the file or folder."""
        return self.source.name

    @property
    def provenance(self) -> str:
        """What the file says answered the calls, if it says so."""
        return self.source.provenance


Opened = SystemRun | Ballots


class Leaving(NamedTuple):
    """One alternative under which episodes may leave their logged path."""

    rule: str | None = None
    order: tuple[str, ...] | None = None
    policy: str | None = None
    """`no_tie_round` or `random`."""
    ties: str = "set"
    """Reading of a tie under a rule: `set` or `fallback`."""
    exempt: int = 0
    """Voters that may have cast any ballot at all, under a rule."""
    progress: Callable[[int, int], None] | None = None


class Left(NamedTuple):
    """Where episodes leave their logged path."""

    question: str
    episodes: pl.DataFrame
    """`episode_id`, `path`, `first_possible` and more."""
    document: Callable[[], Document]


def _listing(run: SystemRun) -> list[dict[str, Any]]:
    rows = []
    for record in run.episodes:
        failed = [] if record.failure is None else [f"failed at {record.failure.key}"]
        special = (*failed, *odd_replies(stop_counts([record])))
        rows.append({"episode_id": record.episode_id, "special": special})
    return rows


@dataclass(frozen=True)
class View:
    """What a system shows of its runs.

    episodes = table_of(status=text())
    ended = lambda record: float(record.status == "complete")
    View({**SHARED_TABLES, "episodes": episodes}, outcomes={"ended": ended})
    """

    tables: Mapping[str, Table]
    """Name → table for `export`; `SHARED_TABLES` among them."""
    document: Callable[[Any, bool], Document] | None = None
    """From a run, and whether it is to be brief, to a summary (brief) or a report (whole)."""
    recount: Callable[[SystemRun, Mapping[str, tuple[str, ...]]], Document] | None = None
    """From a run and settings (`--set KEY=VALUE,…`) to what whole episodes would have been under
    them; `None` where a recount asks of votes only."""
    outcomes_under: Callable[[Mapping[str, tuple[str, ...]]], Table] | None = None
    """From the settings of such a recount to the table of what came of each episode, event or item
    under them; the table `outcomes` of the settings that a recount without any has."""
    recount_in_one_pass: bool = False
    """The recount goes through the records once, so that they need not all be held."""
    unread: Callable[[RunRecord, Use], frozenset[str]] = lambda head, use: frozenset()
    """From a run's head to the fields of its records that a use of them does not look at, so that
    they are not read; of a document those of a run without a retest."""
    outcomes: Mapping[str, Callable[[Any], float | None]] = field(default_factory=dict)
    """Name → outcome of a record; `None` where it has none. What `compare` is over."""
    listing: Callable[[SystemRun], list[dict[str, Any]]] = _listing
    """Every episode as a row: `episode_id`, `special`, what few others have, and where an episode
    has them, `turns`, `first_score` and `last_score`."""
    diverge: Callable[[Any, Leaving], Left] | None = None
    """Where episodes leave their logged path under an alternative; `None`: they have none."""
    contrasts: Callable[[SystemRun, Sequence[str]], pl.DataFrame] | None = None
    """Conditions against one another on some outcomes, as `Run.contrasts` gives them."""
    compare: Callable[[SystemRun, SystemRun | None], Document] | None = None
    """Two runs, or the conditions of one, beside one another; `None`: over `outcomes`."""
    clusters: Callable[[Sequence[Any]], Mapping[str, str]] | None = None
    """From records to episode → what it is taken together with, where that is more than its
    task."""

    def cluster_of(self, run: SystemRun) -> Callable[[Any], str]:
        """What each record of a run is taken together with; its task where nothing else is said."""
        found = {} if self.clusters is None else self.clusters(run.episodes)
        return lambda record: found.get(record.episode_id, f"{record.benchmark}.{record.task_id}")

    embeds: bool = False
    """The report compares texts, and takes a model of sentences for it."""
    passages: Mapping[Subject, Callable[[SystemRun], Iterable[Passage]]] = field(
        default_factory=dict
    )
    """What people can rate → the texts of a run; empty for a system without a student."""
    judged: frozenset[str] = frozenset({"answers"})
    """What the run's own judge or labels score: `answers`, or `replies`, people rate too."""
    rubric: str = ""
    """Name of the prompt whose anchors people rate by; empty where raters need their own."""


def framed(run: SystemRun, *, facts: tuple[Fact, ...] = (), **parts: Any) -> Document:
    """A document with the run's provenance, its warning and its record around a system's parts.

    `facts`: settings of the system, name → value. `parts`: other fields of a `Document`; `summary`,
    `answers` and `sections` at least.
    """
    head = run.head
    stated = head.provenance
    return Document(
        title=f"Report of {head.study.name}",
        provenance=run.provenance,
        warning=warning_of_run(head),
        facts=(
            ("Study", head.study.name),
            ("System", head.system),
            ("Seed", head.study.seed),
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
        digest=head.recording_digest,
        **parts,
    )


def view_for(opened: Opened) -> View:
    """The view of what was opened."""
    if isinstance(opened, Ballots):
        view: View = named(BALLOTS_VIEW)
        return view
    return view_of(opened.head.system)


def episodes_of(run: SystemRun, telling: Telling) -> Episodes:
    """The episodes of a run for its report.

    `telling`: why an episode is worth a look → whether a record is one.
    """
    trace = load(run.head.system, "trace")
    if not trace:
        return NO_EPISODES
    told = partial(trace, Run(run.head, run.with_messages))
    return Episodes(run.episodes, told, telling, run.asked.episodes)


def view_of(system: str) -> View:
    """The view of a system; refused if there is no such system."""
    view: View = load(system, "view")
    return view


class _OnDisk(Sequence[Any]):
    """The records of a run folder, read again by whoever goes through them, and never held.

    Whoever goes through all of them leaves their ballots behind, and how their replies ended, so
    that both can be counted without a second reading.

    `without`: fields of the records that are not read.
    """

    def __init__(self, folder: Path, head: RunRecord, without: frozenset[str]) -> None:
        self._folder, self._head, self._without = folder, head, without
        self._tallied: tuple[pl.DataFrame, list[StopCount]] | None = None

    def __iter__(self) -> Iterator[Any]:
        record = load(self._head.system, "record")
        gathered, stops = Gathered(SHARED_TABLES["ballots"], self._head), StopCounter()
        for one in read_lines(self._folder, record, without=self._without):
            gathered.take(one)
            stops.take(one)
            yield one
        self._tallied = gathered.frame(), stops.counts()

    @property
    def tallied(self) -> tuple[pl.DataFrame, list[StopCount]]:
        """The ballots of every vote that decided, and how the replies of every episode ended."""
        if self._tallied is None:
            deque(self, maxlen=0)
        assert self._tallied is not None
        return self._tallied

    def __len__(self) -> int:
        return self._head.episodes

    def __getitem__(self, place: Any) -> Any:
        return tuple(self)[place]


def open_run(folder: Path, head: RunRecord | None = None, *, use: Use | None = None) -> SystemRun:
    """Open a run folder of any system.

    Args:
        folder: The run folder.
        head: Its head, where it was read before; a second reading would go through the log again.
        use: What for, if that is known: fields that it does not look at are not read, and records
            that a recount goes through once stay on disk.

    Raises:
        LogError: If the folder, or the retest or the ratings in it, are damaged.
        UsageError: If the run's system is not installed.
    """
    head, retest = head or read_run(folder), read_retest(folder)
    unread = frozenset[str]()
    if use and not (retest and use == "document"):
        unread = view_of(head.system).unread(head, use)
    if use == "recount" and view_of(head.system).recount_in_one_pass:
        episodes: Sequence[Any] = _OnDisk(folder, head, unread)
    else:
        with uncollected():
            episodes = tuple(read_lines(folder, load(head.system, "record"), without=unread))
    ratings = read_ratings(folder, head)
    return SystemRun(folder.resolve().name, head, episodes, retest, ratings=ratings)


def opened(
    path: Path,
    *,
    hints: Hints = NO_HINTS,
    panel: str | None = None,
    asked: Asked = NOTHING_ASKED,
    use: Use | None = None,
) -> Opened:
    """Open a run folder of any system, or ballots from elsewhere.

    Args:
        path: A run folder, a file of ballots, or a folder of such files.
        hints: What the user says of ballots from elsewhere.
        panel: The one panel that is meant, of a run that compares several.
        asked: What a summary or report is to say.
        use: As `open_run`.

    Raises:
        LogError: If a run folder, or the retest or the ratings in it, are damaged.
        BallotFileError: If there are no ballots, or rows that make none.
        UsageError: If hints are given of a run, or name a column or candidate that is not there; if
            there is no such panel; if printed figures are to stand beside the scripted stand-in's.
    """
    if not (path / RUN_FILE).is_file():
        source = open_source(path, hints=hints)
        refuse_published(source.name, source, asked.published)
        return Ballots(source if panel is None else of_panel(source, panel), asked)
    refuse_hints(path, hints)
    run = replace(open_run(path, use=use), asked=asked)
    refuse_published(run.name, run.head, asked.published)
    return run if panel is None else _one_panel(run, panel)


def _one_panel(run: SystemRun, panel: str) -> SystemRun:
    """The run as far as one of its panels, and the single tutor beside them, go."""
    check_panel(run.name, run.head, panel)  # first: the run may hold no votes
    own = of_panel(run.source, panel)
    assert own.run is not None
    return replace(run, name=own.name, head=own.run, episodes=own.episodes, retest=own.retest)
