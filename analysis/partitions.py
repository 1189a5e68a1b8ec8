"""Ballots in parts: each part to a summary, and summaries to one recount.

A part is a Parquet file in the ballots table's shape, as `tutorsim export` writes it, and holds
whole turns: no turn has rows in two parts. `summarise` reads a part in batches and gives its
`analysis.recount.Summary`; summaries add up with `+`, in any order and grouping, to that of
all parts; `recount_parts` does both and gives the tables. So ballots of any number are recounted in
the memory of one batch, on one machine or on many.

What cannot be summed is not in a summary: the per-turn table, and what needs the log of a run.
Turns that have no regular shape (rows that lie apart, rich ballots, panels too large for
tables) are kept until the part is read and recounted case by case; a part of only such turns needs
the memory of its rows.
"""

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np
import polars as pl

from analysis.ballotcheck import check_ballots
from analysis.ballotfiles import read_columns, typed_columns
from analysis.elsewhere import BALLOT_SUFFIXES
from analysis.identify.search import WORK_LIMIT
from analysis.pieces import ask, is_regular, pieces_of
from analysis.plainballots import sound_turns
from analysis.profiles import read_turns
from analysis.recount import Plan, RecountResult, Summary, make_plan
from analysis.recount.arrayed import fits, summary_of_arrays
from analysis.recount.summed import Told, result_of, summary_of_turns
from analysis.rules import TARGETS
from analysis.sources import Source
from analysis.turnarrays import TurnArrays, arrays_of, together
from analysis.votereader import VoteReader
from tutorsim.errors import BallotFileError
from tutorsim.types import CUMULATIVE_BUDGET

__all__ = [
    "Outline",
    "Runner",
    "outline",
    "parts_of",
    "recount_parts",
    "recount_votes",
    "summarise",
]

Runner = Callable[[Callable[[Any], Any], Iterable[Any]], Iterable[Any]]
"""Applies a function to every piece and gives the results, in any order: `map` is one."""


_CELLS: Final = 4_000_000
"""Cells of final votes that are counted together."""


@dataclass(frozen=True)
class Outline:
    """What has to be known of all parts before any is recounted."""

    candidates: tuple[str, ...]
    """In the order of first appearance."""
    budget: int | None
    """What a cumulative or rich ballot sums to; `None` without any."""

    def __add__(self, other: "Outline") -> "Outline":
        budgets = {b for b in (self.budget, other.budget) if b is not None}
        if len(budgets) > 1:
            raise BallotFileError(
                f"The cumulative ballots of these files sum to {sorted(budgets)}.",
                why="One recount works with one budget.",
                hint="Open the files one at a time.",
            )
        new = (c for c in other.candidates if c not in self.candidates)
        return Outline((*self.candidates, *new), next(iter(budgets), None))


def parts_of(path: Path) -> list[Path] | None:
    """The Parquet files of a file or folder, by name; `None` where it holds other ballots too."""
    path = Path(path)
    if path.is_file():
        return [path] if path.suffix.lower() == ".parquet" else None
    exported = path / "ballots.parquet"
    if exported.is_file():
        return [exported]
    files = sorted(p for p in path.rglob("*") if p.suffix.lower() in BALLOT_SUFFIXES)
    return files if files and all(p.suffix.lower() == ".parquet" for p in files) else None


def outline(part: Path) -> Outline:
    """The candidates and the budget of one part.

    Raises:
        BallotFileError: If the part cannot be read as ballots.
    """
    if not is_regular(part):
        checked = check_ballots(read_columns(part), part)
        names = checked.ballots.get_column("candidate").unique(maintain_order=True)
        points = checked.ballots.get_column("protocol").is_in(["cumulative", "rich"]).any()
        return Outline(tuple(names.to_list()), checked.budget if points else None)
    return ask(part, _outlined)


def _outlined(rows: pl.LazyFrame) -> Outline:
    names = rows.select(pl.col("candidate").unique(maintain_order=True).cast(pl.String))
    form, mass = pl.col("protocol").cast(pl.String), pl.col("mass")
    rich = pl.col("points") if "points" in rows.collect_schema() else pl.lit(None, pl.Int64)
    points = pl.when(form == "cumulative").then(mass).when(form == "rich").then(rich)
    given = rows.with_columns(points.alias("given")).filter(pl.col("given") > 0)
    ballot = ("episode_id", "turn", "stage", "voter")
    first = given.select(ballot).head(1).collect()
    budget = None
    if first.height:
        same = [pl.col(name) == pl.lit(first[name][0]) for name in ballot]
        budget = int(given.filter(*same).select(pl.col("given").sum()).collect().item())
    found = names.collect(engine="streaming").to_series()
    return Outline(tuple(name for name in found.to_list() if name is not None), budget)


def summarise(part: Path, plan: Plan) -> Summary:
    """Recount one part.

    Args:
        part: A Parquet file of whole turns.
        plan: From `analysis.recount.make_plan`, over the candidates of all parts.

    Raises:
        BallotFileError: With file, row and reason, where rows make no ballot.
    """
    if not is_regular(part):
        return _case_by_case(read_columns(part), part, plan)
    return ask(part, partial(_summarised, part=part, plan=plan))


def _summarised(rows: pl.LazyFrame, *, part: Path, plan: Plan) -> Summary:
    rest, shapes = [], _Shapes(plan)
    for read in pieces_of(rows, VoteReader(plan.order)):
        if read is None:
            return _case_by_case(read_columns(part), part, plan)
        frame, piece = read
        sound = sound_turns(frame, piece, plan.budget)
        found, done = arrays_of(piece.votes, sound, partial(fits, plan=plan))
        for arrays in found:
            shapes.add(arrays)
        rest.append(frame.filter((piece.turn < 0) | ~done[piece.turn]))
    total = shapes.summary()
    left = pl.concat(rest) if rest else None
    if left is not None and left.height:
        total += _case_by_case(typed_columns(left, part), part, plan)
    return total


class _Shapes:
    """Gathers turns of one shape until they are worth counting: what is equal is counted once."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._waiting: dict[object, list[TurnArrays]] = {}
        self._total = Summary.empty()

    def add(self, arrays: TurnArrays) -> None:
        same = self._waiting.setdefault(arrays.shape, [])
        same.append(arrays)
        if sum(part.final.size for part in same) >= _CELLS:
            self._count(arrays.shape)

    def summary(self) -> Summary:
        """Of all turns added."""
        for shape in list(self._waiting):
            self._count(shape)
        return self._total

    def _count(self, shape: object) -> None:
        self._total += summary_of_arrays(together(self._waiting.pop(shape)), self._plan)


def _case_by_case(columns: pl.DataFrame, part: Path, plan: Plan) -> Summary:
    checked = check_ballots(columns, part, budget=plan.budget)
    turns = read_turns(checked.ballots, fallback_order=plan.order)
    return summary_of_turns(turns, plan) + Summary.of_notes(checked.notes)


def recount_parts(
    parts: Sequence[Path],
    *,
    name: str,
    targets: Sequence[str] = TARGETS,
    exempt: Sequence[int] = (0, 1, 2),
    order: Sequence[str] | None = None,
    budget: int | None = None,
    limit: int = WORK_LIMIT,
    run: Runner = map,
) -> RecountResult:
    """Recount ballots in parts; `analysis.recount.recount` of all of them, but per turn.

    Args:
        parts: Parquet files, in the order in which candidates first appear.
        name: Of the source, for captions.
        targets: Rules to recount under.
        exempt: Numbers of exempt voters.
        order: The role-priority order, by default that of first appearance.
        budget: Points of a cumulative ballot, by default what they sum to.
        limit: Work allowed for one question about a panel too large for tables.
        run: Applies a function to every part, here or elsewhere.

    Raises:
        BallotFileError: Where a part holds no ballots, or rows that make none.
        UsageError: As `analysis.recount.recount`.
    """
    all_parts = _outline_of(parts, run)
    points = budget or all_parts.budget or CUMULATIVE_BUDGET
    plan = make_plan(
        all_parts.candidates, points, targets=targets, exempt=exempt, order=order, limit=limit
    )
    total, notes = Summary.empty(), {}
    for place, found in run(partial(_placed, function=summarise, plan=plan), enumerate(parts)):
        total, notes[place] = total + found, found.notes
    said = tuple(note for place in sorted(notes) for note in notes[place])
    return result_of(total, plan, _told(name, said))


def _told(name: str, notes: tuple[str, ...]) -> Told:
    return Told(name, f"ballots from elsewhere ({name})", notes)


def recount_votes(
    source: Source, *, targets: Sequence[str] = TARGETS, exempt: Sequence[int] = (0, 1, 2)
) -> RecountResult:
    """`recount_parts` of a source whose votes are held as arrays; its files are read again only
    where some turns have to be recounted case by case.

    Args:
        source: From `analysis.sources.open_votes`, with `counted`.
        targets: Rules to recount under.
        exempt: Numbers of exempt voters.
    """
    votes = source.votes
    plan = make_plan(votes.order, source.budget, targets=targets, exempt=exempt)
    every = np.ones(votes.turns.height, dtype=np.bool_)
    found, done = arrays_of(votes, every, partial(fits, plan=plan))
    if not done.all():
        return recount_parts(
            source.parts, name=source.name, targets=targets, exempt=exempt, budget=source.budget
        )
    with ThreadPoolExecutor(pl.thread_pool_size()) as pool:
        total = sum(pool.map(partial(summary_of_arrays, plan=plan), found), Summary.empty())
    return result_of(total, plan, _told(source.name, source.notes))


def _outline_of(parts: Sequence[Path], run: Runner) -> Outline:
    found = dict(run(partial(_placed, function=outline), enumerate(parts)))
    total = Outline((), None)
    for place in sorted(found):
        total += found[place]
    return total


def _placed(piece: tuple[int, Path], function: Callable[..., Any], **rest: Any) -> tuple[int, Any]:
    place, part = piece
    return place, function(part, **rest)
