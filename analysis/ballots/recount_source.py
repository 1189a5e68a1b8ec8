"""What can be recounted: a run, one panel of a run, or ballots from elsewhere, in one shape.

A file is opened, and its votes are read when they are asked for:

    source = open_source(Path("votes.csv"))
    source.ballots         # one row a ballot and candidate
    source.votes           # the same ballots as arrays
    source.fallback_order  # `None`: a tie stays a tie
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property, partial
from itertools import accumulate
from pathlib import Path
from typing import Any, NamedTuple, get_args

import polars as pl

from tutorsim.analysis.ballots.malformed_rows import (
    EXAMPLE,
    FileRows,
    Places,
    approving_nobody,
    check_ballots,
    one_budget,
    only_one,
)
from tutorsim.analysis.ballots.names_and_properties_of_ballot_formats import WITH_BUDGET
from tutorsim.analysis.ballots.parquet_batches import (
    TOGETHER,
    ParquetBatches,
    Part,
    Runner,
    batched,
)
from tutorsim.analysis.ballots.reading_options_and_column_words import NO_HINTS, Hints
from tutorsim.analysis.ballots.table_to_arrays import read_votes, turn_starts
from tutorsim.analysis.ballots.vote_arrays_and_profiles import (
    BALLOT,
    TURN,
    Place,
    Votes,
    statuses_of,
)
from tutorsim.analysis.runs.branch_counts_turns_siblings_share import (
    branch_words,
    without_shared_turns,
)
from tutorsim.analysis.runs.exported_tables import BALLOTS_SCHEMA, ballots_table
from tutorsim.errors import BallotFileError, UsageError
from tutorsim.records import (
    RUN_FILE,
    EpisodeRecord,
    Provenance,
    Retest,
    RunRecord,
    VotingSettings,
    read_lines,
    read_retest,
    read_run,
)
from tutorsim.records.ratings import RatedSheet, read_ratings
from tutorsim.records.run_head_and_reading_run_folders_and_retests import of_one_panel, panels_of
from tutorsim.system_registry import load
from tutorsim.vocabularies import BALLOT_STATUSES, CUMULATIVE_BUDGET, TOP_SCORE, ProvenanceKind

# --- Recount source ------------------------------------------------------------------------------


class FileShape(NamedTuple):
    """How one file was read."""

    name: str
    shape: str
    """Name of its shape, one of `wide_rows_list_cells_raw_replies.Rows`."""
    columns: dict[str, str]
    """Our column → the file's."""
    rows: int
    """Rows in the long shape: one a ballot and candidate."""
    assumed: list[str]


@dataclass(frozen=True, eq=False)
class Source:
    """Ballots, and what is known about them. Two sources are equal when they are one object."""

    name: str
    """The run folder's or file's name, never a path."""
    rows: "pl.DataFrame | Callable[[], Source]" = field(repr=False)
    """The ballots table, or how to read it with what is told of it."""
    fallback_order: tuple[str, ...] | None
    """What decides a tie; `None` for ballots from elsewhere without one: then none does."""
    budget: int
    """Points of a cumulative ballot."""
    run: RunRecord | None = field(default=None, repr=False)
    """`None` for ballots from elsewhere."""
    episodes: tuple[EpisodeRecord, ...] = field(default=(), repr=False)
    """Records of a run in which a student is taught up to a score; empty for all others, and for
    ballots from elsewhere."""
    told: tuple[str, ...] | None = ()
    """See `notes`; `None`: not known until the votes are read."""
    retest: Retest | None = field(default=None, repr=False)
    """Votes asked again; `None` where the run has none."""
    ratings: tuple[RatedSheet, ...] = field(default=(), repr=False)
    """What people said of the run; empty where nobody was asked."""
    batches: ParquetBatches | None = field(default=None, repr=False)
    """How files are read whose rows need not be held; `None` for a run, and for files of other
    shapes."""
    own: Mapping[str, Mapping[str, str]] | None = field(default=None, repr=False)
    """Vote → voter → the candidate that is its own; `None`: the one of its name."""
    top: int = TOP_SCORE
    """The end of the scale of scores, which begins at 0."""
    low_is_best: bool = False
    """Whether the smallest of the scores as they were written is the best."""
    stated: tuple[str, ...] = ()
    """What ballots from elsewhere say answered the calls, as `tutorsim export` wrote it."""
    shapes: tuple[FileShape, ...] = ()
    """See `files`."""

    @cached_property
    def ballots(self) -> pl.DataFrame:
        """`analysis.runs.exported_tables.BALLOTS_SCHEMA`, complete episodes only.

        A vote that continuations of one episode share is in it once, under the first of them.
        """
        return self.rows if isinstance(self.rows, pl.DataFrame) else self.rows().ballots

    @property
    def files(self) -> tuple[FileShape, ...]:
        """How each file of ballots from elsewhere was read."""
        return self.shapes if isinstance(self.rows, pl.DataFrame) else self.rows().shapes

    @cached_property
    def votes(self) -> Votes:
        """Every vote as arrays."""
        if self._sound is not None:
            return self._sound
        votes = read_votes(self.ballots, fallback_order=self.fallback_order)
        return votes if self.own is None else replace(votes, own=self.own)

    @cached_property
    def _sound(self) -> Votes | None:
        """The votes of files in which every row belongs to a valid ballot; `None` for others."""
        if self.batches is None:
            return None
        part = next(self.batches.parts(together=self.turns + 1, shown=True))
        if part.looked_at:
            return None
        rows = part.votes.turns.with_row_index("at").sort(TURN).get_column("at").to_numpy()
        episodes = _places(part.votes.episodes).sort("episode_id")
        votes = replace(part.votes.of_turns(rows), episodes=episodes)
        return votes if turn_starts(votes.turns).all() else None

    @property
    def notes(self) -> tuple[str, ...]:
        """What the reader assumed or did that the file does not say, one sentence each."""
        if self.told is not None:
            return self.told
        if self._sound is not None:
            return approving_nobody(self._sound)
        return () if isinstance(self.rows, pl.DataFrame) else self.rows().notes

    @property
    def statuses(self) -> pl.DataFrame:
        """Ballots by `protocol` and `stage`, in the table's order: how many have each status."""
        if self._sound is not None:
            return statuses_of(self._sound)
        each = self.ballots.unique(BALLOT, keep="first", maintain_order=True)
        return each.group_by("protocol", "stage", maintain_order=True).agg(
            (pl.col("ballot_status") == status).sum().alias(status) for status in BALLOT_STATUSES
        )

    @property
    def rich(self) -> pl.DataFrame | None:
        """The ballots table, if there are rich ballots in it."""
        if self.batches is not None and not self.batches.rich:
            return None
        return self.ballots if (self.ballots["protocol"] == "rich").any() else None

    def parts(self, together: int = TOGETHER) -> Iterator[Part]:
        """The votes in parts of whole turns: all at once, or as their files are read.

        `together`: turns of a part, of files that are read in batches.
        """
        if self.batches is None or "votes" in vars(self):
            yield self._whole
        else:
            yield from self.batches.parts(together=together)

    def by_file(self) -> list[ParquetBatches]:
        """The files one by one, to be read in different places.

        Raises `UsageError` if they cannot be read in batches.
        """
        if self.batches is None:
            raise _not_by_file(self.name)
        return self.batches.by_file()

    @property
    def turns(self) -> int:
        """How many turns there are to count."""
        return self.votes.turns.height if self.batches is None else sum(self.batches.turns)

    @cached_property
    def _whole(self) -> Part:
        return Part(self.votes, self.rich, self.notes)

    @property
    def order(self) -> tuple[str, ...]:
        """Every candidate, those of the fallback order first."""
        return self.votes.order if self.batches is None else self.batches.order

    @property
    def ordered(self) -> bool:
        """Whether an order decides ties: a run's own, or one that the user gave."""
        return self.fallback_order is not None

    @property
    def provenance(self) -> str:
        """What answered the calls, in a few words for a caption; of a branch, what it is."""
        if self.run is not None:
            return provenance_words(self.run)
        told = f", exported from a recording answered by {'; '.join(self.stated)}"
        return f"ballots from elsewhere ({self.name}{told if self.stated else ''})"

    @property
    def kinds(self) -> tuple[ProvenanceKind, ...]:
        """Kinds of what answered, as far as it is known: api, stand-in or relay, each once."""
        if self.run is not None:
            return self.run.kinds
        said = dict.fromkeys(text.partition(":")[0] for text in self.stated)
        return tuple(kind for kind in get_args(ProvenanceKind) if kind in said)

    @property
    def answered_by(self) -> tuple[str, ...]:
        """What travels with an export of it; empty where nothing is known."""
        return self.stated if self.run is None else (provenance_words(self.run),)


def _not_by_file(name: str) -> UsageError:
    return UsageError(
        "--engine is for ballots in Parquet.",
        why=f"{name} is a run, or holds other files than Parquet in the ballots table's shape, or "
        "turns with rows in two places.",
        hint="Write a run's ballots with `tutorsim export`, or leave --engine out.",
    )


def provenance_words(run: RunRecord) -> str:
    """What answered a run's calls, in a few words; of a branch, what it is."""
    what = f"; {branch_words(run.branch)}" if run.branch else ""
    if run.inputs:
        given = run.inputs.provenance
        what += f"; of texts by {given.kind}: {given.name}"
    return f"{answered_by(run.provenance)}{what}"


def answered_by(stated: Provenance) -> str:
    """What answered some calls, in a few words."""
    models = f", {', '.join(stated.models)}" if stated.models else ""
    return f"{stated.kind}: {stated.name}{models}"


def open_frame(frame: pl.DataFrame, *, hints: Hints = NO_HINTS) -> Source:
    """Open a frame of ballots from elsewhere, in any shape that a file may have.

    Raises `BallotFileError` if rows make no ballots; `UsageError` if a hint names a column or
    candidate that is not there.
    """
    return _read_ballots("frame", [Path("frame")], hints=hints, frame=frame)


def open_source(
    path: Path,
    *,
    hints: Hints = NO_HINTS,
    run: Runner | None = None,
) -> Source:
    """Open a run folder, a file of ballots, or a folder of such files.

    `path`: a run folder; a Parquet, CSV, TSV, JSONL or JSON file of ballots, in the ballots table's
    shape or another that `ballots.convert_to_long_format` names; a PrefLib `.soc`, `.soi`, `.toc`,
    `.toi` or `.cat` file; or a folder of files of ballots, of which `ballots.*` alone is read where
    there is one (an export); or a folder of folders of Parquet files. `run`: looks at
    Parquet files before they are read, where it counts them; by default here.

    Raises `LogError` if a run folder, or the retest or the ratings in it, are damaged;
    `BallotFileError` if there are no ballots, or rows that make none; `UsageError` if hints are
    given of a run, or name a column or candidate that is not there, or if there is `run`, and the
    ballots cannot be read file by file.
    """
    path = Path(path)
    name = path.resolve().name
    if (path / RUN_FILE).is_file():
        refuse_hints(path, hints)
        if run is not None:
            raise _not_by_file(name)
        head, retest = read_run(path), read_retest(path)
        check_votes(name, head)
        ratings, lines = read_ratings(path, head), read_lines(path, load(head.system, "record"))
        return source_of(name, head, lines, retest=retest, ratings=ratings)
    files = _ballot_files(path)
    tables = all(file.suffix.lower() == ".parquet" for file in files)
    batches = batched(files, hints, run or map) if tables else None
    if run is not None and batches is None:
        raise _not_by_file(name)
    rows = cache(partial(_read_ballots, name, files, hints=hints))
    if batches is None:  # rows are looked at now
        return rows()
    order = None if hints.fallback_order is None else batches.order
    points, stated = batches.points, batches.stated
    return Source(name, rows, order, points, told=None, batches=batches, stated=stated)


def _read_ballots(
    name: str,
    files: Sequence[Path],
    *,
    hints: Hints,
    frame: pl.DataFrame | None = None,
) -> Source:
    """Read files of ballots, and check them together.

    `frame`: rows that are held already, of the one file. Raises `BallotFileError` with file, row
    and reason, where rows make no ballot, where a file cannot be read, and where files disagree
    about the budget; `UsageError` if a hint names a column or candidate that a file has not.
    """
    # A run needs no reader.
    from tutorsim.analysis.ballots.read_ballot_files_into_typed_columns import by_name, read_file

    read = [read_file(file, hints, frame) for file in files]
    heights = [one.frame.select(pl.col("row").max()).item() or 0 for one in read]
    places = Places(tuple(files), tuple(accumulate([0, *heights[:-1]])))
    rows = [
        one.frame.with_columns(pl.col("row") + start)
        for one, start in zip(read, places.starts, strict=True)
    ]
    stated = one_budget(one.budget for one in read)
    checked, budget = check_ballots(
        FileRows(pl.concat(rows), files[0] if len(files) == 1 else places),
        budget=hints.budget if stated is None else stated,
        namesakes=hints.namesakes,
    )
    ballots = by_name(checked.frame.select(BALLOTS_SCHEMA.names()))
    with_points = ballots["protocol"].is_in([*WITH_BUDGET, "rich"]).any()
    top = only_one(
        (one.top for one in read),
        "The scores of these files end at",
        why="One recount works with one scale, and none is stated.",
        hint="Say which: --scale WORST,BEST.",
    )
    shapes = [
        FileShape(file.name, one.shape, {**one.columns}, one.frame.height, [*one.assumed])
        for file, one in zip(files, read, strict=True)
    ]
    told = [f"{one.name} was read as: {'; '.join(one.assumed)}." for one in shapes if one.assumed]
    own = {**hints.own_of}
    for vote, of in (said for one in read for said in one.own.items()):
        own[vote] = {**own.get(vote, {}), **of}
    return Source(
        name,
        ballots,
        hints.order_of(ballots["candidate"].unique().sort()),
        budget if with_points else hints.budget or CUMULATIVE_BUDGET,
        told=(*told, *checked.assumed),
        shapes=tuple(shapes),
        own=None if hints.own is None and not own else own,
        top=TOP_SCORE if top is None else top,
        low_is_best=hints.scale is not None and hints.scale[0] > hints.scale[1],
        stated=tuple(sorted({text for one in read for text in one.provenance})),
    )


def refuse_hints(path: Path, hints: Hints) -> None:
    """Refuse hints for a run, which says itself what its ballots are."""
    if replace(hints, fallback_order=None) != NO_HINTS:
        raise UsageError(
            "--map, --stage, --protocol, --candidates, --own, --namesakes and --budget are for "
            "ballots from elsewhere.",
            why=f"{path} is a run, and its study says what its ballots are.",
            hint="Leave them out.",
        )


def _places(episodes: pl.DataFrame) -> pl.DataFrame:
    """Every column of a place, null where it is blank."""
    absent = [pl.lit(None, pl.String).alias(n) for n in Place._fields if n not in episodes.columns]
    text = pl.col(Place._fields).cast(pl.String)
    every = episodes.with_columns(absent).select("episode_id", *Place._fields)
    return every.with_columns(pl.when(text.str.strip_chars() != "").then(text))


def source_of(
    name: str,
    run: RunRecord,
    episodes: Iterable[Any],
    *,
    ballots: pl.DataFrame | None = None,
    retest: Retest | None = None,
    ratings: tuple[RatedSheet, ...] = (),
) -> Source:
    """The votes of a run of any system that was read already.

    `ballots`: its ballots table, if there is one already. Raises `UsageError` if nobody votes in
    it.
    """
    voting = check_votes(name, run)
    order, budget = voting.fallback_order or None, voting.cumulative_budget or CUMULATIVE_BUDGET
    held = () if run.success is None else tuple(episodes)
    if ballots is None:
        own = held or episodes if run.branch is None else without_shared_turns(held)
        ballots = ballots_table(own, run=run)
    return Source(name, ballots, order, budget, run, held, retest=retest, ratings=ratings)


def check_votes(name: str, run: RunRecord) -> VotingSettings:
    """How a run's votes are counted; `UsageError` if nobody votes in it."""
    if run.voting is None:
        raise UsageError(
            f"{name} is a run of the system {run.system!r}, in which nobody votes.",
            why="There are no ballots to count.",
            hint="See `tutorsim summary`, `report` and `export` for the run.",
        )
    return run.voting


def _ballot_files(path: Path) -> list[Path]:
    if path.exists() and not path.is_dir():
        return [path]
    from tutorsim.analysis.ballots.read_ballot_files_into_typed_columns import BALLOT_SUFFIXES

    files = sorted(p for p in path.glob("*") if p.suffix.lower() in BALLOT_SUFFIXES)
    exported = [p for p in files if p.stem == "ballots"]
    files = files or sorted(p for p in path.rglob("*") if p.suffix.lower() == ".parquet")
    if not files:
        raise BallotFileError(
            f"{path} holds neither a run nor ballots.",
            why=f"There is no {RUN_FILE} and no file ending in {', '.join(BALLOT_SUFFIXES)}.",
            hint=f"Point at a run folder or at a file of ballots. {EXAMPLE}",
        )
    return exported[:1] or files


# --- One panel of a run --------------------------------------------------------------------------


def check_panel(name: str, run: RunRecord | None, panel: str) -> None:
    """Raise `UsageError` unless a run, called by `name`, compares a panel of that name."""
    panels = panels_of(run)
    if panel not in panels:
        raise UsageError(
            f"{name} has no panel {panel!r}.",
            why=f"Its panels are {', '.join(panels)}." if panels else "It compares no panels.",
            hint="Leave --panel out, or name one of them." if panels else "Leave --panel out.",
        )


def of_panel(source: Source, name: str) -> Source:
    """The episodes of one panel, under its own order, and those of the single tutor beside them."""
    check_panel(source.name, source.run, name)
    assert source.run is not None
    run = of_one_panel(source.run, name)
    episodes = tuple(e for e in source.episodes if e.panel in (None, name))
    ids = [e.episode_id for e in episodes]
    retest = source.retest
    if retest is not None:
        retest = retest._replace(episodes=tuple(r for r in retest.episodes if r.episode_id in ids))
    return replace(
        source,
        name=f"{source.name}, panel {name}",
        rows=source.ballots.filter(pl.col("episode_id").is_in(ids)),
        fallback_order=run.panel.deciding_order,
        run=run,
        episodes=episodes,
        retest=retest,
    )


# --- How ballots were read ------------------------------------------------------------------------


def reading_of(source: Source) -> dict[str, Any]:
    """Files, columns, candidates, votes and what was assumed; the JSON of `tutorsim check`."""
    frame = source.ballots
    return {
        "source": source.name,
        "provenance": source.provenance,
        "stated": list(source.stated),
        "budget": source.budget,
        "fallback_order": source.fallback_order and list(source.fallback_order),
        "notes": list(source.notes),
        "files": [file._asdict() for file in source.files],
        "candidates": frame["candidate"].unique().sort().to_list(),
        "voters": frame["voter"].n_unique(),
        "episodes": frame["episode_id"].n_unique(),
        "turns": frame.select("episode_id", "turn").n_unique(),
        "votes": _votes(frame),
    }


def _votes(frame: pl.DataFrame) -> list[dict[str, Any]]:
    """One row a protocol and stage."""
    each = frame.unique(BALLOT, maintain_order=True)
    counted = each.group_by("protocol", "stage", maintain_order=True).agg(
        turns=pl.struct("episode_id", "turn").n_unique(),
        voters=pl.col("voter").n_unique(),
        ballots=pl.len(),
        repaired=(pl.col("ballot_status") == "repaired").sum(),
        abstained=(pl.col("ballot_status") == "abstained").sum(),
    )
    names = frame.group_by("protocol", "stage").agg(candidates=pl.col("candidate").n_unique())
    found = counted.join(names, on=["protocol", "stage"], maintain_order="left")
    return found.to_dicts()


def order_words(source: Source) -> str:
    """What decides a tie in ballots from elsewhere."""
    if source.fallback_order is None:
        return (
            "No order is logged: a tie that counting leaves stays a set. --fallback-order sets one."
        )
    return f"Ties go to {' > '.join(source.fallback_order)}, as --fallback-order says."
