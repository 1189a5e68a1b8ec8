"""Turns of one shape as arrays: voters by candidates, thousands of turns at a time.

Most turns of a table have the same voters and candidates, whole valid ballots, and their rows
together. Those become arrays. Every other turn is handed back as rows, for the readers that check
and explain: `analysis.ballotcheck` and `analysis.profiles`.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Final, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from analysis.blocks import Codes, TurnOrder, turn_starts
from analysis.profiles import STAGES, TURN
from tutorsim.types import PROTOCOLS, Protocol

__all__ = ["ABSTAINED", "ARRAY_COLUMNS", "TurnArrays", "arrays_of"]

ARRAY_COLUMNS: Final = (*TURN, "stage", "voter", "candidate", "mass")
"""What is read of a table, besides `ballot_status` where it has one."""

ABSTAINED: Final = -1
"""In every cell of a voter who abstained."""
_MISSING: Final = -2
_STAGES: Final = {
    **{long: i for i, long in enumerate(STAGES.values())},
    **{short: i for i, short in enumerate(STAGES)},
}
_CELLS: Final = 1 << 25
"""Cells that the arrays of one batch may have."""

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]


class TurnArrays(NamedTuple):
    """Turns of one protocol, one set of voters and one of candidates."""

    protocol: Protocol
    candidates: tuple[str, ...]
    """In the role-priority order."""
    voters: tuple[str, ...]
    """By name."""
    final: Ints
    """Shape (turns, voters, candidates): masses, or `ABSTAINED`."""
    initial: Ints | None
    """The first vote; `None` where these turns held none."""
    tie: Ints
    """The tie round: 0 for those not tied; `ABSTAINED` everywhere where none was held."""
    held: Bools
    """Whether a tie round was held."""


class _Dense(NamedTuple):
    """The cells of a batch: (turn, stage, voter, candidate)."""

    cells: Ints
    whole: Bools
    """Turns whose rows are all in it, each once."""


def arrays_of(
    frame: pl.DataFrame,
    order: Sequence[str],
    budget: int,
    turns: TurnOrder,
    wanted: Callable[[TurnArrays], bool] = lambda _: True,
) -> tuple[list[TurnArrays], pl.DataFrame] | None:
    """The turns of a batch as arrays, and the rows of those that need the slow readers.

    Args:
        frame: Rows of whole turns, with `ARRAY_COLUMNS` and `ballot_status`.
        order: All candidates, in the role-priority order.
        budget: Points of a cumulative ballot.
        turns: Notes the turns of all batches of a table.
        wanted: Whether turns of one shape are wanted as arrays.

    Returns:
        `None` where the rows of a turn may lie apart.
    """
    starts = turn_starts(frame)
    heads = frame.select(TURN)[starts].with_columns(
        pl.col("episode_id", "protocol").cast(pl.String)
    )
    if not turns.keeps(heads):
        return None
    turn = np.repeat(np.arange(len(starts)), np.diff(starts, append=frame.height))
    voters = Codes()
    dense = _dense(frame, turn, heads, order, voters)
    if dense is None:
        return [], frame
    by_name = np.argsort(np.array(voters.names))
    cells = dense.cells[:, :, by_name]
    names = sorted(voters.names)
    found: list[TurnArrays] = []
    good = np.zeros(len(starts), dtype=np.bool_)
    protocols = heads.get_column("protocol").cast(pl.String).to_numpy()
    for rows, shape in _shapes(cells, protocols, dense.whole):
        made, valid = _made(cells[rows], shape, order, names, budget)
        if valid.any() and wanted(made):
            good[rows[valid]] = True
            found.append(made)
    return found, frame.filter(~good[turn])


def _dense(
    frame: pl.DataFrame, turn: Ints, heads: pl.DataFrame, order: Sequence[str], voters: Codes
) -> _Dense | None:
    """The cells; `None` where they would be too many, or a word is not known."""
    words = frame.get_column("stage").cast(pl.String)
    stage = words.replace_strict(_STAGES, default=None, return_dtype=pl.Int64)
    if (
        stage.null_count()
        or frame.select(pl.col(*TURN, "voter", "candidate").has_nulls()).row(0) != (False,) * 5
    ):
        return None
    candidates = Codes(order)
    candidate = candidates.of(frame.get_column("candidate"))
    voter = voters.of(frame.get_column("voter"))
    turns = heads.height
    shape = (turns, 3, len(voters.names), len(order))
    blank = any(not name.strip() for name in (*candidates.names, *voters.names))
    if blank or len(candidates.names) > len(order) or np.prod(shape) > _CELLS:
        return None
    at = ((turn * 3 + stage.to_numpy()) * shape[2] + voter) * shape[3] + candidate
    mass = frame.get_column("mass").fill_null(ABSTAINED).to_numpy()
    cells = np.full(int(np.prod(shape)), _MISSING, dtype=np.int64)
    cells[at] = mass
    cells = cells.reshape(shape)
    rows = np.bincount(turn, minlength=turns)
    whole = (cells != _MISSING).sum(axis=(1, 2, 3)) == rows
    odd = _odd_rows(frame)
    whole[turn[odd]] = False
    whole &= heads.get_column("episode_id").str.strip_chars().ne("").to_numpy()
    return _Dense(cells, whole)


def _odd_rows(frame: pl.DataFrame) -> Bools:
    """Rows whose status says something else than their mass, or whose numbers are too large."""
    low, high = pl.min_horizontal("mass", "turn") < 0, pl.max_horizontal("mass", "turn") > 10**9
    odd = low | high
    if "ballot_status" in frame.columns:
        status = pl.col("ballot_status").cast(pl.String)
        cast = status.is_in(["valid", "repaired"]) | status.is_null()
        gone = status == "abstained"
        odd |= ~(cast & pl.col("mass").is_not_null() | gone & pl.col("mass").is_null()).fill_null(
            False
        )
    return frame.select(odd.alias("odd")).get_column("odd").to_numpy()


class _Shape(NamedTuple):
    protocol: Protocol
    voters: int
    candidates: int
    initial: bool


def _shapes(
    cells: Ints, protocols: NDArray[np.object_], whole: Bools
) -> Iterator[tuple[Ints, _Shape]]:
    """Turns of each shape; those whose stages have different voters are of none."""
    there = cells != _MISSING
    voters = there.any(axis=3) @ (1 << np.arange(cells.shape[2]))
    candidates = there.any(axis=2) @ (1 << np.arange(cells.shape[3]))
    full = there.sum(axis=(2, 3)) == np.bitwise_count(voters) * np.bitwise_count(candidates)
    initial, tie = voters[:, 0] > 0, voters[:, 2] > 0
    good = whole & full.all(axis=1) & (voters[:, 1] > 0)
    good &= ~initial | ((voters[:, 0] == voters[:, 1]) & (candidates[:, 0] == candidates[:, 1]))
    good &= ~tie | (voters[:, 2] == voters[:, 1])
    for protocol in PROTOCOLS:
        mine = np.flatnonzero(good & (protocols == protocol))
        keys = np.stack([voters[mine, 1], candidates[mine, 1], initial[mine]], axis=1)
        distinct, which = np.unique(keys, axis=0, return_inverse=True)
        for i, (v, c, first) in enumerate(distinct.tolist()):
            yield mine[which.ravel() == i], _Shape(protocol, v, c, bool(first))


def _made(
    cells: Ints, shape: _Shape, order: Sequence[str], names: Sequence[str], budget: int
) -> tuple[TurnArrays, Bools]:
    """The arrays of the turns whose ballots are valid, and which those are."""
    candidates = [i for i in range(len(order)) if shape.candidates >> i & 1]
    voters = [i for i in range(len(names)) if shape.voters >> i & 1]
    block = cells[:, :, voters][:, :, :, candidates]
    final, tie = block[:, 1], block[:, 2]
    among = (tie != _MISSING).any(axis=1)
    held = among.any(axis=1)
    final, valid = _checked(final, shape.protocol, np.ones(among.shape, np.bool_), budget)
    initial = None
    if shape.initial:
        initial, ok = _checked(block[:, 0], shape.protocol, np.ones(among.shape, np.bool_), budget)
        valid &= ok
    totals = np.maximum(final, 0).sum(axis=1)
    led = totals == totals.max(axis=1, keepdims=True)
    valid &= ~held | ((among == led).all(axis=1) & (led.sum(axis=1) > 1))
    tie, ok = _checked(tie, shape.protocol, among, budget)
    valid &= ok | ~held
    made = TurnArrays(
        protocol=shape.protocol,
        candidates=tuple(order[i] for i in candidates),
        voters=tuple(names[i] for i in voters),
        final=final[valid],
        initial=None if initial is None else initial[valid],
        tie=tie[valid],
        held=held[valid],
    )
    return made, valid


def _checked(cells: Ints, protocol: Protocol, among: Bools, budget: int) -> tuple[Ints, Bools]:
    """Masses with abstentions marked in every cell, and the turns where each is a ballot."""
    inside = among[:, None, :]
    absent = ((cells == ABSTAINED) | ~inside).all(axis=2)
    partly = ((cells == ABSTAINED) & inside).any(axis=2) & ~absent
    mass = np.where(inside & (cells >= 0), cells, 0)
    total = mass.sum(axis=2)
    if protocol in ("simple", "cumulative"):
        absent |= (total == 0) & ~partly
    m = among.sum(axis=1)[:, None]
    match protocol:
        case "simple":
            ballot = (total == 1) & (mass.max(axis=2) == 1)
        case "approval":
            ballot = mass.max(axis=2) <= 1
        case "cumulative":
            ballot = total == budget
        case "ranked":
            small = mass.max(axis=2) < 62
            bits = np.where(inside & small[:, :, None], 1 << np.minimum(mass, 61), 0)
            ballot = small & (bits.sum(axis=2) == (1 << np.minimum(m, 61)) - 1)
    valid = ((ballot | absent) & ~partly).all(axis=1)
    return np.where(absent[:, :, None], ABSTAINED, mass), valid
