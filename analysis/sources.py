"""What can be recounted: a run, or ballots from elsewhere, in one shape."""

from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import polars as pl

from analysis.continuations import branch_words, deciding_order, without_shared_turns
from analysis.elsewhere import BALLOT_SUFFIXES, read_ballots
from analysis.rounds import Votes, read_votes
from analysis.tables import ballots_table
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

__all__ = ["Source", "open_source"]


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
        parts=tuple(files) if all(f.suffix.lower() == ".parquet" for f in files) else (),
    )


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
