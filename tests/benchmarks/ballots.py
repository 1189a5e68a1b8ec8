"""Seeded ballots of many turns, as arrays and as the ballots table that `tutorsim export` writes.

Voters have Gaussian utilities, in part shared by all, and cast sincere ballots: the best
candidate, an order, 25 points in proportion to what is above the worst, whatever is above zero.
"""

from collections.abc import Sequence
from typing import Final

import numpy as np
import polars as pl

from tutorsim.analysis.runs.exported_tables import BALLOTS_SCHEMA
from tutorsim.vocabularies import DEFAULT_ROLES, LABELS, PROTOCOLS

__all__ = ["ballots_frame", "masses"]

VOTERS: Final = 4
STAGES: Final = ("vote_initial", "vote_final", "tie_vote")


def masses(protocol, turns, random, *, m=4):
    """Masses of four voters, shape (turns, voters, candidates)."""
    own, shared = random.standard_normal((turns, VOTERS, m)), random.standard_normal((turns, 1, m))
    utility = own + 0.7 * shared
    if protocol == "simple":
        return np.asarray(utility == utility.max(axis=2, keepdims=True), dtype=np.int64)
    if protocol == "ranked":
        return np.asarray(utility.argsort(axis=2).argsort(axis=2), dtype=np.int64)
    if protocol == "approval":
        return np.asarray(utility > 0, dtype=np.int64)
    above = utility - utility.min(axis=2, keepdims=True)
    share = above / above.sum(axis=2, keepdims=True) * 25
    points = np.floor(share).astype(np.int64)
    place = np.argsort(np.argsort(points - share, axis=2), axis=2)
    return np.asarray(points + (place < 25 - points.sum(axis=2, keepdims=True)))


def ballots_frame(
    turns, *, seed, protocols=PROTOCOLS, start=0, columns: Sequence[str] = tuple(BALLOTS_SCHEMA)
):
    """The ballots table of so many turns: three an episode, with first votes and tie rounds.

    Args:
        turns: A multiple of the number of protocols.
        seed: Of the ballots.
        protocols: In equal shares.
        start: Number of the first episode's task, so that parts have episodes of their own.
        columns: Of the table, by default all.
    """
    random = np.random.default_rng(seed)
    each = turns // len(protocols)
    return pl.concat([_of_protocol(p, each, random, start, columns) for p in protocols])


def _of_protocol(protocol, turns, random, start, wanted):
    rounds = [_whole(masses(protocol, turns, random), stage) for stage in (0, 1)]
    totals = masses_of_cells(rounds[1], turns).sum(axis=1)
    tied = totals == totals.max(axis=1, keepdims=True)
    for k in range(2, tied.shape[1] + 1):
        which = np.flatnonzero(tied.sum(axis=1) == k)
        if len(which):
            names = np.argsort(~tied[which], axis=1, kind="stable")[:, :k]
            rounds.append(_cells(which, 2, names, masses(protocol, len(which), random, m=k)))
    turn, stage, voter, candidate, mass = np.concatenate(rounds, axis=1)
    order = np.argsort(turn * len(STAGES) + stage, kind="stable")
    cells = (column[order] for column in (turn, stage, voter, candidate, mass))
    return _frame(wanted, protocol, start, *cells)


def _whole(cast, stage):
    names = np.tile(np.arange(cast.shape[2]), (len(cast), 1))
    return _cells(np.arange(len(cast)), stage, names, cast)


def _cells(turns, stage, names, cast):
    """Rows turn, stage, voter, candidate, mass; one column for each cell."""
    shape = cast.shape
    turn = np.broadcast_to(turns[:, None, None], shape)
    voter = np.broadcast_to(np.arange(shape[1])[None, :, None], shape)
    candidate = np.broadcast_to(names[:, None, :], shape)
    columns = (turn, np.full(shape, stage), voter, candidate, cast)
    return np.stack([column.ravel() for column in columns])


def masses_of_cells(cells, turns):
    """The masses of a round that has every voter and candidate."""
    return cells[4].reshape(turns, VOTERS, -1)


def _frame(wanted, protocol, start, turn, stage, voter, candidate, mass):
    def named(names, numbers):
        return pl.Series(list(names)).gather(numbers)

    task = pl.Series(np.arange(start, start + int(turn.max()) // 3 + 1)).cast(pl.String)
    columns = {
        "episode_id": lambda: ("sciq.t" + task + f".help_avoidant.{protocol}").gather(turn // 3),
        "task": lambda: ("t" + task).gather(turn // 3),
        "turn": lambda: turn % 3 + 1,
        "stage": lambda: named(STAGES, stage),
        "voter": lambda: named(DEFAULT_ROLES, voter),
        "candidate": lambda: named(DEFAULT_ROLES, candidate),
        "label": lambda: named(LABELS, candidate),
        "mass": lambda: mass,
        "position": lambda: candidate + 1,
    }
    constants = {"run_id": "drawn", "benchmark": "sciq", "persona": "help_avoidant", "attempts": 1}
    constants |= {"condition": protocol, "ballot_status": "valid", "protocol": protocol}
    made = pl.DataFrame({name: make() for name, make in columns.items() if name in wanted})
    return made.select(
        (pl.col(name) if name in columns else pl.lit(constants.get(name)))
        .cast(BALLOTS_SCHEMA[name])
        .alias(name)
        for name in wanted
    )
