"""Ballots in parts: each part to a summary, and summaries to one recount.

A part is a Parquet file in the ballots table's shape, as `tutorsim export` writes it, and holds
whole turns: no turn has rows in two parts. `summarise` reads a part in batches and gives its
`analysis.recount.RecountCounts`; counts add up with `+`, in any order and grouping, to those of
all parts; `recount_parts` does both and gives the tables. So ballots of any number are recounted in
the memory of one batch, on one machine or on many.

What cannot be added up is not in the counts: what needs the log of a run, and the per-turn table,
whose rows are handed on as they are counted to whoever wants to write them.
Turns whose rows need a look (rich ballots, abstentions without a mark, mistakes) are kept until the
part is read, and checked as those of a whole file; a part of only such turns needs the memory of
its rows.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

import numpy as np
import polars as pl

from tutorsim.analysis.ballots.ballot_checks import (
    approving_nobody,
    budget_of,
    check_ballots,
    notes_together,
)
from tutorsim.analysis.ballots.outside_files import BALLOT_SUFFIXES, read_columns, typed_columns
from tutorsim.analysis.ballots.parquet_batches import ask, is_regular, pieces_of, rows_of
from tutorsim.analysis.ballots.reading_options import spellings
from tutorsim.analysis.ballots.recount_source import words_of_elsewhere
from tutorsim.analysis.ballots.table_to_arrays import VoteReader, read_votes
from tutorsim.analysis.ballots.valid_ballots import sound_turns, without_empty
from tutorsim.analysis.ballots.vote_arrays import Bools, Rounds, Votes, in_order, joined
from tutorsim.analysis.counting.rule_definitions import TARGETS, Approvals, RankScores
from tutorsim.analysis.identify.reachable_vote_sums import WORK_LIMIT
from tutorsim.analysis.recount import (
    TABLES,
    Plan,
    Progress,
    RecountCounts,
    RecountResult,
    RecountTable,
    count_groups,
    count_turns,
    make_plan,
    result_of,
)
from tutorsim.analysis.recount.counted_turns import AllVotes, TurnGroup, all_votes, turn_groups
from tutorsim.analysis.recount.per_turn_table import per_turn_frames
from tutorsim.errors import BallotFileError
from tutorsim.vocabularies import CUMULATIVE_BUDGET

Runner = Callable[[Callable[[Any], Any], Iterable[Any]], Iterable[Any]]
"""Applies a function to every piece and gives the results, in any order: `map` is one."""


TurnWriter = Callable[[pl.DataFrame], object]
"""Takes some rows of the per-turn table, `analysis.recount.PER_TURN_SCHEMA`, of whole turns."""

_TURN: Final = ("episode_id", "turn")
_HASH: Final = pl.col("episode_id").cast(pl.String).hash()

_LOOKED_AT: Final = 200_000
"""Rows with points that say what a cumulative ballot sums to."""
_TOGETHER: Final = 100_000
"""Turns of a part that are counted together."""
_TOLD_TOGETHER: Final = 25_000
"""The same where every turn is told: what is said of different turns is held until it is."""


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
    """The Parquet files of a file or folder, by name, if each can be recounted by itself.

    `None` where there are other ballots too, or a turn has rows in two files of the folder; files
    in folders below it are of other runs, whose episodes may have the same names.

    Raises:
        BallotFileError: If a file cannot be read.
    """
    path = Path(path)
    if path.is_file():
        return [path] if path.suffix.lower() == ".parquet" else None
    exported = path / "ballots.parquet"
    if exported.is_file():
        return [exported]
    files = sorted(p for p in path.rglob("*") if p.suffix.lower() in BALLOT_SUFFIXES)
    if not files or any(p.suffix.lower() != ".parquet" for p in files):
        return None
    return None if _split([file for file in files if file.parent == path]) else files


def _split(files: Sequence[Path]) -> bool:
    """Whether a turn has rows in two files.

    Episodes are compared by a hash of eight bytes; of those that look alike, every turn.
    """
    if len(files) < 2:
        return False
    every = pl.concat([ask(file, _episodes) for file in files])
    twice = every.filter(every.is_duplicated()).unique()
    if twice.is_empty():
        return False
    turns = pl.concat([ask(file, partial(_turns, episodes=twice)) for file in files])
    return bool(turns.is_duplicated().any())


def _episodes(rows: pl.LazyFrame) -> pl.Series:
    if not set(_TURN) <= set(rows.collect_schema()):
        return pl.Series(dtype=pl.UInt64)
    return rows.select(_HASH.unique()).collect(engine="streaming").to_series()


def _turns(rows: pl.LazyFrame, *, episodes: pl.Series) -> pl.DataFrame:
    """The different turns of some episodes."""
    if not set(_TURN) <= set(rows.collect_schema()):
        return pl.DataFrame(schema=dict.fromkeys(_TURN, pl.String))
    own = rows.filter(_HASH.is_in(episodes.implode()))
    return own.select(pl.col(_TURN).cast(pl.String)).unique().collect(engine="streaming")


def outline(part: Path, *, budget: int | None = None) -> Outline:
    """The candidates and the budget of one part.

    Args:
        part: A Parquet file of whole turns.
        budget: Points of a cumulative ballot; by default what most of the first ones sum to.

    Raises:
        BallotFileError: If the part cannot be read as ballots, or nothing says which of two
            equally frequent sums is the budget.
    """
    if not is_regular(part):
        checked = check_ballots(read_columns(part), part, budget=budget)
        names = checked.ballots.get_column("candidate").unique(maintain_order=True)
        points = checked.ballots.get_column("protocol").is_in(["cumulative", "rich"]).any()
        return Outline(tuple(names.to_list()), checked.budget if points else None)
    return ask(part, partial(_outlined, part=part, budget=budget))


def _outlined(rows: pl.LazyFrame, *, part: Path, budget: int | None) -> Outline:
    names = rows.select(pl.col("candidate").unique(maintain_order=True).cast(pl.String))
    found = names.collect(engine="streaming").to_series()
    candidates = tuple(name for name in found.to_list() if name is not None)
    return Outline(candidates, budget or budget_of(_first_points(rows), part))


def _first_points(rows: pl.LazyFrame) -> pl.DataFrame:
    """Points given in the first ballots, as `given`; of a long file not all, to read little."""
    form, mass = pl.col("protocol").cast(pl.String), pl.col("mass")
    rich = pl.col("points") if "points" in rows.collect_schema() else pl.lit(None, pl.Int64)
    given = ((form == "cumulative") & (mass > 0)) | ((form == "rich") & (rich > 0))
    points = pl.when(form == "cumulative").then(mass).otherwise(rich)
    first = rows.filter(given).select(*_TURN, "stage", "voter", given=points).head(_LOOKED_AT)
    return first.collect(engine="streaming")


@dataclass(frozen=True)
class _EachTurn:
    """Hands on the per-turn rows of what is counted."""

    write: TurnWriter

    def add(self, groups: Sequence[TurnGroup], turns: pl.DataFrame, plan: Plan) -> None:
        for frame in per_turn_frames(groups, turns, plan):
            self.write(frame)


def summarise(
    part: Path,
    plan: Plan,
    each: _EachTurn | None = None,
    tick: Callable[[int], None] = lambda _: None,
) -> RecountCounts:
    """Recount one part.

    Args:
        part: A Parquet file of whole turns.
        plan: From `analysis.recount.make_plan`, over the candidates of all parts.
        each: Takes the rows of every turn. Turns whose rows need a look come last.
        tick: Is told how many rows were counted.

    Raises:
        BallotFileError: With file, row and reason, if rows make no ballot.
    """
    if not is_regular(part):
        return _checked(read_columns(part), part, plan, each)
    return ask(part, partial(_summarised, part=part, plan=plan, each=each, tick=tick))


def _summarised(
    rows: pl.LazyFrame,
    *,
    part: Path,
    plan: Plan,
    each: _EachTurn | None,
    tick: Callable[[int], None],
) -> RecountCounts:
    if each is not None and None in pieces_of(rows, VoteReader(plan.order)):
        return _checked(read_columns(part), part, plan, each)  # before any row is handed on
    together = _TOGETHER if each is None else _TOLD_TOGETHER
    rest, total, waiting, notes = [], RecountCounts.empty(), list[Votes](), list[str]()
    for read in pieces_of(rows, VoteReader(plan.order)):
        if read is None:
            return _checked(read_columns(part), part, plan, each)
        frame, piece = read
        tick(frame.height)
        sound = sound_turns(frame, piece, plan.budget)
        odd = np.append(~sound, True)[piece.turn]  # a row of no turn, -1, takes the last one
        if odd.any():
            rest.append(frame.filter(odd))
        waiting.append(_only(without_empty(piece.votes), sound))
        notes += approving_nobody(waiting[-1])
        if sum(votes.turns.height for votes in waiting) >= together:
            total += _counted(waiting, plan, each)
            waiting.clear()
    if waiting:
        total += _counted(waiting, plan, each)
    left = pl.concat(rest) if rest else None
    if left is not None and left.height:
        total += _checked(typed_columns(left, part), part, plan, each)
    return total + RecountCounts.empty(tuple(notes))


def _counted(pieces: Sequence[Votes], plan: Plan, each: _EachTurn | None) -> RecountCounts:
    """Turns of several pieces together: what is equal is counted once."""
    return _count(AllVotes(in_order(joined(pieces), plan.order), {}, {}), plan, each)


def _count(every: AllVotes, plan: Plan, each: _EachTurn | None) -> RecountCounts:
    if each is None:
        return count_turns(every, plan)
    groups = list(turn_groups(every, plan.own_order))
    each.add(groups, every.votes.turns, plan)
    return count_groups(groups, plan)


def _only(votes: Votes, wanted: Bools) -> Votes:
    """The votes of some turns."""
    if wanted.all():
        return votes
    place = np.cumsum(wanted) - 1

    def some(part: Rounds) -> Rounds:
        kept = part.of(wanted[part.turn])
        return replace(kept, turn=place[kept.turn])

    initial, final, tie = (tuple(map(some, parts)) for parts in votes.stages)
    return replace(votes, turns=votes.turns.filter(wanted), initial=initial, final=final, tie=tie)


def _checked(
    columns: pl.DataFrame, part: Path, plan: Plan, each: _EachTurn | None
) -> RecountCounts:
    """Rows that need a look: checked and repaired as those of a whole file are."""
    checked = check_ballots(columns, part, budget=plan.budget)
    votes = read_votes(checked.ballots, fallback_order=plan.order)
    rich = checked.ballots if (checked.ballots["protocol"] == "rich").any() else None
    every = all_votes(votes, rich, plan.order)
    return _count(every, plan, each) + RecountCounts.empty(checked.notes)


def recount_parts(
    parts: Sequence[Path],
    *,
    name: str,
    targets: Sequence[str] = TARGETS,
    exempt: Sequence[int] = (0, 1, 2),
    order: Sequence[str] | None = None,
    own_order: Sequence[str] | None = None,
    budget: int | None = None,
    stated: Sequence[str] = (),
    limit: int = WORK_LIMIT,
    run: Runner = map,
    write: TurnWriter | None = None,
    tables: Sequence[RecountTable] = TABLES,
    progress: Progress | None = None,
    rules: Mapping[str, RankScores] = MappingProxyType({}),
    approves: Approvals | None = None,
) -> RecountResult:
    """Recount ballots in parts; `analysis.recount.recount` of all of them.

    Args:
        parts: Parquet files, in the order in which candidates first appear.
        name: Of the source, for captions.
        targets: Rules to recount under.
        exempt: Numbers of exempt voters.
        order: The order to recount under, by default the ballots' own.
        own_order: The order that decided the logged winners, if one did.
        budget: Points of a cumulative ballot, by default what most of them sum to.
        stated: What the parts say answered the calls.
        limit: Units of work allowed for each panel under each target.
        run: Applies a function to every part, here or elsewhere.
        write: Takes the rows of every turn, part by part; `run` is `map` then.
        tables: What to count; the other tables stay empty.
        progress: Is told how many rows of all parts are counted; of parts elsewhere, part by part.
        rules: Own rules by name.
        approves: How many candidates each voter approves of.

    Raises:
        BallotFileError: If a part holds no ballots, or rows that make none.
        UsageError: As `analysis.recount.recount`.
    """
    all_parts = _outline_of(parts, budget, run)
    points = budget or all_parts.budget or CUMULATIVE_BUDGET
    names = sorted(all_parts.candidates)
    spellings(names, "candidates", None)
    first = tuple(own_order or ())
    own = (*first, *(name for name in names if name not in first))
    plan = make_plan(
        own,
        points,
        targets=targets,
        exempt=exempt,
        order=order,
        limit=limit,
        logged=own_order is not None,
        tables=tables,
        rules=rules,
        approves=approves,
    )
    total, notes = RecountCounts.empty(), {}
    each = None if write is None else _EachTurn(write)
    ask_part, tick = _asking(parts, plan, each, progress, here=run is map)
    for place, found in run(ask_part, enumerate(parts)):
        total, notes[place] = total + found, found.notes
        tick(place)
    said = notes_together(note for place in sorted(notes) for note in notes[place])
    provenance = words_of_elsewhere(name, stated)
    return result_of(total, plan, name=name, provenance=provenance, notes=said)


def _asking(
    parts: Sequence[Path],
    plan: Plan,
    each: _EachTurn | None,
    progress: Progress | None,
    *,
    here: bool,
) -> tuple[Callable[[tuple[int, Path]], Any], Callable[[int], None]]:
    """What is asked of each part, and what is told once it has answered."""
    asked = partial(_placed, function=summarise, plan=plan, each=each)
    if progress is None:
        return asked, lambda _: None
    sizes = [rows_of([part]) for part in parts]
    done = 0

    def tick(rows: int) -> None:
        nonlocal done
        done += rows
        progress(done, sum(sizes))

    if here:
        return partial(asked, tick=tick), lambda _: None
    return asked, lambda place: tick(sizes[place])


def _outline_of(parts: Sequence[Path], budget: int | None, run: Runner) -> Outline:
    found = dict(run(partial(_placed, function=outline, budget=budget), enumerate(parts)))
    total = Outline((), None)
    for place in sorted(found):
        total += found[place]
    return total


def _placed(piece: tuple[int, Path], function: Callable[..., Any], **rest: Any) -> tuple[int, Any]:
    place, part = piece
    return place, function(part, **rest)
