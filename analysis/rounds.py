"""Every vote of a ballots table as arrays: rounds of one size together, names as numbers.

A *round* is one stage of one turn: the same candidates on each of its ballots. Rounds with as
many voters and candidates share arrays, so that a million turns are a few calls of numpy and a
single large election is one row. `analysis.profiles.read_turns` says the same of each turn in
plain objects, and is what a property test holds this to.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl

from analysis.blocks import Codes
from analysis.profiles import STAGES, TURN

__all__ = ["Bools", "Ints", "Rounds", "Votes", "read_votes"]

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

_LARGEST: Final = 2**63 - 1
_HEAD: Final = 10_000
_FINAL: Final = list(STAGES.values()).index("vote_final")


@dataclass(frozen=True, eq=False)
class Rounds:
    """R rounds of one stage, n voters and m candidates each."""

    turn: Ints
    """Shape (R,): row of `Votes.turns`."""
    voters: Ints
    """Shape (R, n): numbers in `Votes.voters`, rising."""
    candidates: Ints
    """Shape (R, m): places in `Votes.order`; the first in the role-priority order first."""
    masses: Ints
    """Shape (R, n, m); 0 in an abstention."""
    cast: Bools
    """Shape (R, n): false for an abstention."""
    whole: Bools
    """Shape (R,): every ballot has the round's candidates, each once."""
    labels: Ints | None = None
    """Shape (R, n, m): numbers in `Votes.labels`, -1 where a candidate's is not known; `None` where
    no ballot of the table has labels."""

    @property
    def totals(self) -> Ints:
        """Shape (R, m): mass of each candidate."""
        return np.asarray(self.masses.sum(axis=1))

    def of(self, rows: Bools | Ints) -> "Rounds":
        """Some of the rounds."""
        return Rounds(
            turn=self.turn[rows],
            voters=self.voters[rows],
            candidates=self.candidates[rows],
            masses=self.masses[rows],
            cast=self.cast[rows],
            whole=self.whole[rows],
            labels=None if self.labels is None else self.labels[rows],
        )


@dataclass(frozen=True, eq=False)
class Votes:
    """The turns that have final ballots, and the rounds of each stage."""

    turns: pl.DataFrame = field(repr=False)
    """`episode_id`, `turn` and `protocol`, in the order of their final ballots."""
    order: tuple[str, ...]
    """Candidates by place: the role-priority order, then order of first appearance."""
    voters: tuple[str, ...]
    labels: tuple[str, ...]
    initial: tuple[Rounds, ...] = field(repr=False)
    final: tuple[Rounds, ...] = field(repr=False)
    tie: tuple[Rounds, ...] = field(repr=False)


def read_votes(ballots: pl.DataFrame, *, fallback_order: Sequence[str] | None = None) -> Votes:
    """The rounds of a ballots table.

    A round whose ballots have not all as many candidates is left out; checked tables have none.

    Args:
        ballots: The long ballots table; `initial`, `final` and `tie` also name the stages.
        fallback_order: As for `analysis.profiles.read_turns`.
    """
    stages = Codes()
    stages.names = [*STAGES.values(), *STAGES]
    stage = stages.of(ballots.get_column("stage"))
    known = stage < 2 * len(STAGES)
    rows = ballots if known.all() else ballots.filter(known)
    stage = stage[known] % len(STAGES)
    candidates, voters = Codes(), Codes()
    candidates.names = list(fallback_order or ())
    turns, turn = _turns(rows)
    candidate = _numbers(candidates, rows.get_column("candidate"))
    who = _numbers(voters, rows.get_column("voter"))
    order, names = tuple(candidates.names), tuple(voters.names)
    keys = (turn, stage, who, candidate)
    kept = _sorted(keys, (turns.height, len(STAGES), len(names), len(order)))
    column = rows.get_column("mass")
    absent = column.is_null().to_numpy()
    mass = column.fill_null(0).cast(pl.Int64).to_numpy()
    labels, label = _labels(rows)
    if kept is not None:
        keys = (turn[kept], stage[kept], who[kept], candidate[kept])
        mass, absent = mass[kept], absent[kept]
        label = None if label is None else label[kept]
    cells = _Cells(*keys, mass, absent, label)
    found = _found(cells)
    place, decided = _places(found, turns.height, kept)
    held = [_stage(cells, found, number, place) for number in range(len(STAGES))]
    return Votes(turns[decided], order, names, labels, *held)


def _numbers(codes: Codes, column: pl.Series) -> Ints:
    """The number of each name; the first rows bring most names, so that few are new later."""
    codes.of(column.head(_HEAD))
    return codes.of(column)


def _labels(ballots: pl.DataFrame) -> tuple[tuple[str, ...], Ints | None]:
    """The labels shown to voters, and each row's number, -1 where it has none."""
    if "label" not in ballots.columns:
        return (), None
    column = ballots.get_column("label")
    if column.null_count() == len(column):
        return (), None
    known = column.drop_nulls().unique().sort().to_list()
    codes = Codes()
    codes.names = ["", *known]
    return tuple(known), codes.of(column.fill_null("")) - 1


def _turns(rows: pl.DataFrame) -> tuple[pl.DataFrame, Ints]:
    """The turns, and the number of each row's turn; rows of one turn may lie apart."""
    new = np.zeros(rows.height, dtype=np.bool_)
    new[:1] = True
    for name in TURN:
        column = rows.get_column(name)
        new[1:] |= column.head(-1).ne_missing(column.slice(1)).to_numpy()
    starts = np.flatnonzero(new)
    runs = rows.select(TURN)[starts]
    turns = runs.unique(maintain_order=True)
    number = np.arange(runs.height)
    if turns.height < runs.height:
        numbered = turns.with_row_index("number")
        joined = runs.join(numbered, on=TURN, how="left", maintain_order="left", nulls_equal=True)
        number = joined.get_column("number").to_numpy().astype(np.int64)
    return turns, np.repeat(number, np.diff(starts, append=rows.height))


def _sorted(keys: Sequence[Ints], sizes: Sequence[int]) -> Ints | None:
    """The order of rows by turn, stage, voter and candidate; `None` where they stand in it."""
    whole = 1
    for size in sizes:
        whole *= max(size, 1)
    if whole > _LARGEST:
        return np.asarray(np.lexsort(keys[::-1]), dtype=np.int64)
    packed = keys[0].copy()
    for key, size in zip(keys[1:], sizes[1:], strict=True):
        packed *= size
        packed += key
    if bool((packed[1:] > packed[:-1]).all()):
        return None
    return np.argsort(packed, kind="stable")


class _Cells(NamedTuple):
    """Rows of the table, sorted by turn, stage, voter and candidate."""

    turn: Ints
    stage: Ints
    voter: Ints
    candidate: Ints
    mass: Ints
    absent: Bools
    label: Ints | None


class _Found(NamedTuple):
    """Every round of the sorted rows."""

    starts: Ints
    """Its first row."""
    turn: Ints
    stage: Ints
    ballots: Ints
    rows: Ints


def _found(cells: _Cells) -> _Found:
    new = _differs(cells.turn) | _differs(cells.stage)
    starts = np.flatnonzero(new)
    ballots = np.flatnonzero(new | _differs(cells.voter))
    first = np.searchsorted(ballots, starts)
    return _Found(
        starts,
        cells.turn[starts],
        cells.stage[starts],
        np.diff(first, append=len(ballots)),
        np.diff(starts, append=len(cells.turn)),
    )


def _places(found: _Found, turns: int, rows: Ints | None) -> tuple[Ints, Ints]:
    """The place of each turn by its final ballots, -1 without them; and the turns by place."""
    first = found.starts if rows is None else np.minimum.reduceat(rows, found.starts)
    final = found.stage == _FINAL
    decided = found.turn[final][np.argsort(first[final], kind="stable")]
    place = np.full(turns, -1, dtype=np.int64)
    place[decided] = np.arange(len(decided))
    return place, decided


def _stage(cells: _Cells, found: _Found, stage: int, place: Ints) -> tuple[Rounds, ...]:
    """The rounds of one stage, those of one size together."""
    own = (found.stage == stage) & (place[found.turn] >= 0)
    own &= found.rows % found.ballots == 0
    starts, ballots, rows = found.starts[own], found.ballots[own], found.rows[own]
    shape = ballots * (int(rows.max(initial=0)) + 1) + rows
    return tuple(
        _rounds(cells, starts[alike], int(ballots[alike][0]), int(rows[alike][0]), place)
        for alike in (shape == one for one in np.unique(shape))
    )


def _rounds(cells: _Cells, starts: Ints, n: int, size: int, place: Ints) -> Rounds:
    m = size // n
    rows = starts[:, None] + np.arange(size)
    missing = cells.absent[rows].reshape(-1, n, m).any(axis=2)
    masses = cells.mass[rows].reshape(-1, n, m)
    masses[missing] = 0
    return Rounds(
        turn=place[cells.turn[starts]],
        voters=cells.voter[rows[:, ::m]],
        candidates=cells.candidate[rows[:, :m]],
        masses=masses,
        cast=np.asarray(~missing),
        whole=_whole(cells.voter[rows], cells.candidate[rows], n),
        labels=None if cells.label is None else cells.label[rows].reshape(-1, n, m),
    )


def _differs(column: Ints) -> Bools:
    new = np.ones(len(column), dtype=np.bool_)
    new[1:] = column[1:] != column[:-1]
    return new


def _whole(voter: Ints, candidate: Ints, n: int) -> Bools:
    """Row by row, whether n blocks of cells are one voter's each, over the same candidates."""
    voters, candidates = (cells.reshape(len(cells), n, -1) for cells in (voter, candidate))
    rising = (candidates[:, 0, 1:] > candidates[:, 0, :-1]).all(axis=1)
    alike = (candidates == candidates[:, :1]).all(axis=(1, 2))
    return np.asarray(rising & alike & (voters == voters[:, :, :1]).all(axis=(1, 2)))
