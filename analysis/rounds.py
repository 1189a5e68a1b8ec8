"""Every vote of a ballots table as arrays: rounds of one size together, names as numbers.

A *round* is one stage of one turn: the same candidates on each of its ballots. Rounds with as
many voters and candidates share arrays, so that a million turns are a few calls of numpy and a
single large election is one row. `analysis.profiles.read_turns` says the same of each turn in
plain objects, and is what a property test holds this to.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import numpy.typing as npt
import polars as pl

from analysis.blocks import Codes
from analysis.profiles import STAGES, TURN, standing_order

__all__ = ["Bools", "Ints", "Rounds", "Votes", "read_votes"]

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

_LARGEST: Final = 2**63 - 1


@dataclass(frozen=True, eq=False)
class Rounds:
    """R rounds of one stage, n voters and m candidates each."""

    turn: Ints
    """Shape (R,): row of `Votes.turns`."""
    voters: Ints
    """Shape (R, n): numbers in `Votes.voters`, rising."""
    candidates: Ints
    """Shape (R, m): places in `Votes.order`, rising."""
    masses: Ints
    """Shape (R, n, m); 0 in an abstention."""
    cast: Bools
    """Shape (R, n): false for an abstention."""

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
        )


@dataclass(frozen=True, eq=False)
class Votes:
    """The turns that have final ballots, and the rounds of each stage."""

    turns: pl.DataFrame = field(repr=False)
    """`episode_id`, `turn` and `protocol`, in the order of their final ballots."""
    order: tuple[str, ...]
    """Candidates by place: the role-priority order, then order of first appearance."""
    voters: tuple[str, ...]
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
    if kept is not None:
        keys = tuple(key[kept] for key in keys)  # type: ignore[assignment]
        mass, absent = mass[kept], absent[kept]
    return _votes(turns, order, tuple(voters.names), keys, mass, absent, kept)


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


def _votes(
    turns: pl.DataFrame,
    order: tuple[str, ...],
    voters: tuple[str, ...],
    keys: Sequence[Ints],
    mass: Ints,
    absent: Bools,
    rows: Ints | None,
) -> Votes:
    """Cut sorted rows into rounds, and number the turns by their final ballots."""
    turn, stage, voter, candidate = keys
    new_round = _differs(turn) | _differs(stage)
    starts = np.flatnonzero(new_round)
    ends = np.append(starts[1:], len(turn))
    ballots = np.add.reduceat(new_round | _differs(voter), starts, dtype=np.int64)
    final = stage[starts] == 1
    first = np.minimum.reduceat(rows, starts) if rows is not None else starts
    place = np.full(turns.height, -1, dtype=np.int64)
    decided = turn[starts][final][np.argsort(first[final], kind="stable")]
    place[decided] = np.arange(len(decided))
    size = ends - starts
    found: list[tuple[Rounds, ...]] = []
    for number in range(len(STAGES)):
        own = (stage[starts] == number) & (place[turn[starts]] >= 0)
        shapes = np.unique(np.stack([ballots[own], size[own]]), axis=1).T.tolist()
        found.append(
            tuple(
                _rounds(
                    starts[own & (ballots == n) & (size == cells)],
                    (n, cells // n),
                    (place[turn], voter, candidate, mass, absent),
                )
                for n, cells in shapes
            )
        )
    return Votes(turns[decided], order, voters, *found)


def _differs(column: Ints) -> Bools:
    new = np.ones(len(column), dtype=np.bool_)
    new[1:] = column[1:] != column[:-1]
    return new


def _rounds(
    starts: Ints, shape: tuple[int, int], columns: tuple[Ints, Ints, Ints, Ints, Bools]
) -> Rounds:
    turn, voter, candidate, mass, absent = columns
    n, m = shape
    cells = starts[:, None] + np.arange(n * m)
    missing = absent[cells].reshape(-1, n, m).any(axis=2)
    masses = mass[cells].reshape(-1, n, m)
    masses[missing] = 0
    return Rounds(
        turn=turn[starts],
        voters=voter[cells[:, ::m]],
        candidates=candidate[cells[:, :m]],
        masses=masses,
        cast=np.asarray(~missing),
    )
