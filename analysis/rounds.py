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
from analysis.profiles import STAGES, TURN, standing_order

__all__ = ["Bools", "Ints", "Rounds", "Votes", "read_votes"]

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

_LARGEST: Final = 2**63 - 1
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

    Args:
        ballots: The long ballots table; `initial`, `final` and `tie` also name the stages.
        fallback_order: As for `analysis.profiles.read_turns`.
    """
    order = standing_order(ballots, fallback_order)
    rows = ballots.select(*TURN, "stage", "voter", "candidate", "mass")
    known = rows.get_column("stage").is_in([*STAGES, *STAGES.values()])
    rows = rows if known.all() else rows.filter(known)
    candidates, voters = Codes(), Codes()
    candidates.names = list(order)
    turns, turn = _turns(rows)
    who = voters.of(rows.get_column("voter"))
    stage = _stages(rows.get_column("stage"))
    keys = (turn, stage, who, candidates.of(rows.get_column("candidate")))
    kept = _sorted(keys, (turns.height, len(STAGES), len(voters.names), len(order)))
    mass = rows.get_column("mass").cast(pl.Int64).to_numpy(allow_copy=True)
    absent = rows.get_column("mass").is_null().to_numpy()
    mass = np.where(absent, 0, np.nan_to_num(mass)).astype(np.int64) if absent.any() else mass
    names, label = _labels(ballots.filter(known) if not known.all() else ballots)
    if kept is not None:
        keys = tuple(key[kept] for key in keys)  # type: ignore[assignment]
        mass, absent = mass[kept], absent[kept]
        label = None if label is None else label[kept]
    cells = _Cells(*keys, mass, absent, label)
    place, decided = _places(cells, turns.height, kept)
    stages = [_stage(cells, number, place) for number in range(len(STAGES))]
    return Votes(turns[decided], order, tuple(voters.names), names, *stages)


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


def _stages(column: pl.Series) -> Ints:
    """0, 1 and 2 for the initial vote, the final vote and the tie round."""
    found = np.zeros(len(column), dtype=np.int64)
    for number, names in enumerate(STAGES.items()):
        if number:
            found += number * column.is_in(names).to_numpy()
    return found


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

    def rounds(self) -> tuple[Ints, Ints, Ints]:
        """First row, number of ballots and number of rows of each round."""
        new = _differs(self.turn) | _differs(self.stage)
        starts = np.flatnonzero(new)
        ballots = np.add.reduceat(new | _differs(self.voter), starts, dtype=np.int64)
        return starts, ballots, np.diff(starts, append=len(self.turn))


def _places(cells: _Cells, turns: int, rows: Ints | None) -> tuple[Ints, Ints]:
    """The place of each turn by its final ballots, -1 without them; and the turns by place."""
    starts, _, _ = cells.rounds()
    first = starts if rows is None else np.minimum.reduceat(rows, starts)
    final = cells.stage[starts] == _FINAL
    decided = cells.turn[starts][final][np.argsort(first[final], kind="stable")]
    place = np.full(turns, -1, dtype=np.int64)
    place[decided] = np.arange(len(decided))
    return place, decided


def _stage(cells: _Cells, stage: int, place: Ints) -> tuple[Rounds, ...]:
    """The rounds of one stage, those of one size together."""
    starts, ballots, size = cells.rounds()
    own = (cells.stage[starts] == stage) & (place[cells.turn[starts]] >= 0)
    starts, ballots, size = starts[own], ballots[own], size[own]
    shapes = sorted(set(zip(*np.unique(np.stack([ballots, size]), axis=1).tolist(), strict=True)))
    return tuple(
        _rounds(cells, starts[(ballots == n) & (size == rows)], n, rows // n, place)
        for n, rows in shapes
    )


def _rounds(cells: _Cells, starts: Ints, n: int, m: int, place: Ints) -> Rounds:
    rows = starts[:, None] + np.arange(n * m)
    missing = cells.absent[rows].reshape(-1, n, m).any(axis=2)
    masses = cells.mass[rows].reshape(-1, n, m)
    masses[missing] = 0
    return Rounds(
        turn=place[cells.turn[starts]],
        voters=cells.voter[rows[:, ::m]],
        candidates=cells.candidate[rows[:, :m]],
        masses=masses,
        cast=np.asarray(~missing),
        labels=None if cells.label is None else cells.label[rows].reshape(-1, n, m),
    )


def _differs(column: Ints) -> Bools:
    new = np.ones(len(column), dtype=np.bool_)
    new[1:] = column[1:] != column[:-1]
    return new
