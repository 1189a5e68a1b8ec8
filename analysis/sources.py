"""What can be recounted: a run, or ballots from elsewhere, in one shape."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Final

import polars as pl

from analysis.continuations import branch_words, deciding_order, without_shared_turns
from analysis.elsewhere import BALLOT_SUFFIXES, read_ballots
from analysis.pieces import ask, is_regular, pieces_of, rows_of
from analysis.plainballots import first_budget, sound_turns, without_empty
from analysis.profiles import Place
from analysis.rounds import Votes, joined
from analysis.tables import ballots_table, no_ballots
from analysis.votereader import VoteReader, read_votes
from tutorsim.errors import BallotFileError
from tutorsim.records import (
    RUN_FILE,
    EpisodeRecord,
    Retest,
    RunRecord,
    read_episodes,
    read_retest,
    read_run,
)
from tutorsim.types import CUMULATIVE_BUDGET

__all__ = ["MOST_LISTED", "Source", "open_source", "open_votes"]

MOST_LISTED: Final = 50_000
"""Turns of ballots from elsewhere up to which `open_votes` holds each row."""


@dataclass(frozen=True, eq=False)
class Source:
    """Ballots, and what is known about them. Two sources are equal when they are one object."""

    name: str
    """The run folder's or file's name, never a path."""
    ballots: pl.DataFrame = field(repr=False)
    """`analysis.tables.BALLOTS_SCHEMA`, complete episodes only.

    A vote that continuations of one episode share is in it once, under the first of them."""
    fallback_order: tuple[str, ...] | None
    """`None` for ballots from elsewhere: candidates in order of first appearance."""
    budget: int
    """Points of a cumulative ballot."""
    run: RunRecord | None = field(repr=False)
    """`None` for ballots from elsewhere."""
    episodes: tuple[EpisodeRecord, ...] = field(repr=False)
    """Empty for ballots from elsewhere."""
    notes: tuple[str, ...] = ()
    """What the reader did that the file does not say, one sentence each."""
    parts: tuple[Path, ...] = field(default=(), repr=False)
    """The Parquet files that the ballots were read from, where all of them came from such."""
    retest: Retest | None = field(default=None, repr=False)
    """Votes asked again; `None` where the run has none."""
    counted: Votes | None = field(default=None, repr=False)
    """The votes of ballots too many to hold as rows, `ballots` being empty then."""

    @cached_property
    def votes(self) -> Votes:
        """Every vote as arrays."""
        if self.counted is not None:
            return self.counted
        return read_votes(self.ballots, fallback_order=self.fallback_order)

    @property
    def provenance(self) -> str:
        """What answered the calls, in a few words for a caption; of a branch, what it is."""
        if self.run is None:
            return f"ballots from elsewhere ({self.name})"
        stated, branch = self.run.provenance, self.run.study.branch
        models = f", {', '.join(stated.models)}" if stated.models else ""
        what = f"; {branch_words(branch)}" if branch else ""
        return f"{stated.kind}: {stated.name}{models}{what}"


def open_source(path: Path, *, budget: int | None = None) -> Source:
    """Open a run folder, a file of ballots, or a folder of such files.

    Args:
        path: A run folder; a Parquet, CSV or JSONL file in the ballots table's shape; a
            PrefLib `.soc`, `.soi`, `.toc`, `.toi` or `.cat` file; or a folder of files of
            ballots, of which `ballots.*` alone is read where there is one (an export).
        budget: Points of a cumulative ballot, for ballots from elsewhere that should be held
            to it; by default what most cumulative ballots of the file sum to.

    Raises:
        LogError: If a run folder, or the retest in it, is damaged.
        BallotFileError: If there are no ballots, or rows that make none.
    """
    path = Path(path)
    if (path / RUN_FILE).is_file():
        return _open_run(path)
    files = _ballot_files(path)
    found = read_ballots(files, budget=budget)
    return Source(
        name=path.resolve().name,
        ballots=found.ballots,
        fallback_order=None,
        budget=found.budget,
        run=None,
        episodes=(),
        notes=found.notes,
        parts=tuple(files) if _in_parquet(files) else (),
    )


def open_votes(path: Path) -> Source:
    """As `open_source`, for questions about all votes together.

    Parquet files of more than `MOST_LISTED` turns are read a piece at a time: the source has
    their votes as arrays, and no row. That takes turns whose rows lie together, and ballots that
    are all valid as they stand; other files are opened as ever.
    """
    path = Path(path)
    if (path / RUN_FILE).is_file():
        return _open_run(path)
    files = _ballot_files(path)
    found = _counted(files) if _in_parquet(files) else None
    if found is None:
        return open_source(path)
    votes, budget = found
    return Source(
        name=path.resolve().name,
        ballots=no_ballots(),
        fallback_order=None,
        budget=budget or CUMULATIVE_BUDGET,
        run=None,
        episodes=(),
        parts=tuple(files),
        counted=votes,
    )


def _in_parquet(files: Sequence[Path]) -> bool:
    return all(file.suffix.lower() == ".parquet" for file in files)


def _counted(files: Sequence[Path]) -> tuple[Votes, int | None] | None:
    """The votes of many turns and their budget; `None` where rows have to be looked at."""
    if rows_of(files) <= MOST_LISTED or not all(is_regular(file) for file in files):
        return None
    reader, pieces, budget = VoteReader(), list[Votes](), None
    for file in files:
        read = ask(file, partial(_sound_pieces, reader=reader, budget=budget))
        if read is None:
            return None
        pieces += read[0]
        budget = read[1]
    votes = joined(pieces)
    if votes.turns.height <= MOST_LISTED or votes.turns.is_duplicated().any():
        return None
    return replace(votes, episodes=_places(votes.episodes)), budget


def _sound_pieces(
    rows: pl.LazyFrame, *, reader: VoteReader, budget: int | None
) -> tuple[list[Votes], int | None] | None:
    """All pieces of a file, if every row of it belongs to a valid ballot, and the budget."""
    pieces = []
    for read in pieces_of(rows, reader, shown=True):
        if read is None or (read.piece.turn < 0).any():
            return None
        budget = budget or first_budget(read.piece.votes)
        if not sound_turns(read.frame, read.piece, budget or CUMULATIVE_BUDGET).all():
            return None
        pieces.append(without_empty(read.piece.votes))
    return pieces, budget


def _places(episodes: pl.DataFrame) -> pl.DataFrame:
    """Every column of a place, null where it is blank."""
    absent = [pl.lit(None, pl.String).alias(n) for n in Place._fields if n not in episodes.columns]
    text = pl.col(Place._fields).cast(pl.String)
    every = episodes.with_columns(absent).select("episode_id", *Place._fields)
    return every.with_columns(pl.when(text.str.strip_chars() != "").then(text))


def _open_run(folder: Path) -> Source:
    run = read_run(folder)
    episodes = tuple(read_episodes(folder))
    return Source(
        name=folder.resolve().name,
        ballots=ballots_table(without_shared_turns(episodes), run=run),
        fallback_order=deciding_order(run.study),
        budget=run.study.cumulative_budget,
        run=run,
        episodes=episodes,
        retest=read_retest(folder),
    )


def _ballot_files(path: Path) -> list[Path]:
    if path.is_file():
        return [path]
    files = sorted(p for p in path.glob("*") if p.suffix.lower() in BALLOT_SUFFIXES)
    exported = [p for p in files if p.stem == "ballots"]
    if not files:
        raise BallotFileError(
            f"{path} holds neither a run nor ballots.",
            why=f"There is no {RUN_FILE} and no file ending in {', '.join(BALLOT_SUFFIXES)}.",
            hint="Point at a run folder or at a file of ballots.",
        )
    return exported[:1] or files
