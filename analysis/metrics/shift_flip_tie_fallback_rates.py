"""Coordination diagnostics per protocol; the turn is the unit.

Definitions:

* *vote shift*: ½ Σ |p_init(c) − p_final(c)| over candidates, p being mass over total mass, of the
  first final vote (not the tie round); undefined where either total is 0.
* *winner flip*: the leader after the first vote differs from the delivered winner. Where the
  first vote was tied, `flip` takes the leader that the fallback order picks, and `flip_set`
  counts only winners outside the set of leaders.
* *tie rate*: turns whose final vote was tied. *fallback rate*: turns that the fallback
  order decided. The published "fallback" can be read either way.
"""

from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import polars as pl

from tutorsim.analysis.ballots.recount_source import Source
from tutorsim.analysis.ballots.vote_arrays import Bools, Rounds
from tutorsim.analysis.counting.turn_winners import DecidedTurns, leaders_of
from tutorsim.analysis.metrics.turn_table import TurnTable, clusters_of, places_of, turn_table
from tutorsim.analysis.statistics.intervals_and_tests import (
    Estimate,
    NotEstimable,
    mean_over_tasks,
    share_over_tasks,
    to_json,
)
from tutorsim.vocabularies import DECIDED_BY, BallotFormat

__all__ = [
    "LEFT_TIED",
    "NO_LEADER",
    "TURN_DIAGNOSTICS_SCHEMA",
    "WINNING_ROLES_SCHEMA",
    "Diagnostics",
    "diagnostics",
    "turn_diagnostics",
    "winning_roles",
]

TURN_DIAGNOSTICS_SCHEMA: Final = pl.Schema(
    {
        "episode_id": pl.String(),
        "turn": pl.Int64(),
        "protocol": pl.String(),
        "benchmark": pl.String(),
        "task": pl.String(),
        "persona": pl.String(),
        "condition": pl.String(),
        "initial_leaders": pl.List(pl.String()),  # null without a first vote
        "initial_leader": pl.String(),  # a tie goes to the fallback order
        "winner": pl.String(),
        "decided_by": pl.String(),
        "tied_set": pl.List(pl.String()),  # the last tie; empty when one led alone
        "undecided": pl.List(pl.String()),
        "shift": pl.Float64(),  # null where either total mass is 0, or without a first vote
        "flip": pl.Boolean(),
        "flip_set": pl.Boolean(),
        "tied": pl.Boolean(),
        "fallback": pl.Boolean(),
        "abstained": pl.Int64(),  # ballots of the final vote
    }
)
"""One row per voting turn."""

WINNING_ROLES_SCHEMA: Final = pl.Schema(
    {
        "protocol": pl.String(),
        "role": pl.String(),
        "wins": pl.Int64(),  # sum of the next three; over roles the sum is the turns
        "by_vote": pl.Int64(),
        "by_tie_round": pl.Int64(),
        "by_fallback": pl.Int64(),
    }
)
"""One row per protocol and candidate, in the fallback order."""


LEFT_TIED: Final = "(left tied)"
"""Stands for the winner of turns that counting leaves tied."""

NO_LEADER: Final = NotEstimable("no order is logged that would pick one of several leaders")
_NO_ORDER: Final = NotEstimable("no order is logged")


@dataclass(frozen=True)
class Diagnostics:
    """One protocol's row of the coordination table."""

    protocol: BallotFormat
    turns: int
    episodes: int
    shift: Estimate | NotEstimable
    flip: Estimate | NotEstimable
    """A tied first vote is led by the fallback order's pick."""
    flip_set: Estimate | NotEstimable
    """A flip only when the winner is outside the set of first leaders."""
    tie_rate: Estimate | NotEstimable
    fallback_rate: Estimate | NotEstimable
    left_tied: Estimate | NotEstimable
    """Turns that counting left tied, the tie round too; an order decided them if one is logged."""
    decided_by: dict[str, int]
    """`vote`, `tie_round`, `fallback` → turns."""
    abstentions: int
    """Ballots of the final votes without mass."""
    ballots: int
    """Ballots of the final votes."""

    def to_json(self) -> dict[str, object]:
        return {name: to_json(value) for name, value in vars(self).items()}


def diagnostics(source: Source) -> list[Diagnostics]:
    """The coordination diagnostics of each protocol that has voting turns.

    Intervals are over tasks (over episodes where ballots from elsewhere do not name tasks). Without
    a logged order a turn that counting leaves tied is `open` in `decided_by`, and a flip is counted
    over turns that counting decided, where the winner is outside the set of first leaders.
    """
    table = turn_table(source)
    places = places_of(table.votes)
    found = [(_of(protocol, table, own, places), own) for protocol, own in table.protocols()]
    return [row if source.ordered else _left_open(row, table, own, places) for row, own in found]


def _left_open(row: Diagnostics, table: TurnTable, own: Bools, places: pl.DataFrame) -> Diagnostics:
    """The row without what an order by name would decide."""
    decided = own & ~table.fallback & table.voted
    by = dict(row.decided_by)
    return replace(
        row,
        flip=NO_LEADER,
        flip_set=_share(table.outside, decided, places),
        fallback_rate=_NO_ORDER,
        decided_by={**{k: n for k, n in by.items() if k != "fallback"}, "open": by["fallback"]},
    )


def turn_diagnostics(source: Source) -> pl.DataFrame:
    """What the diagnostics rest on, turn by turn: see `TURN_DIAGNOSTICS_SCHEMA`."""
    table = turn_table(source)
    none = pl.lit(None)
    voted = pl.Series(table.voted)
    found = places_of(table.votes).with_columns(
        initial_leaders=table.lists([(r, _leading(r)) for r in table.votes.initial]),
        initial_leader=table.names(table.leader),
        winner=table.names(table.winner),
        decided_by=pl.Series(list(DECIDED_BY)).gather(table.decided_by),
        tied_set=table.lists([(p.final, _last_tie(p)) for p in table.panels]),
        undecided=table.lists([(p.final, p.undecided) for p in table.panels]),
        shift=pl.Series(table.shift).fill_nan(None),
        flip=pl.when(voted).then(pl.Series(table.flip)).otherwise(none),
        flip_set=pl.when(voted).then(pl.Series(table.outside)).otherwise(none),
        tied=pl.Series(table.tied),
        fallback=pl.Series(table.fallback),
        abstained=_abstained(table),
    )
    empty = pl.col("tied_set").fill_null(pl.lit([], dtype=pl.List(pl.String)))
    return found.with_columns(empty).select(
        pl.col(name).cast(dtype) for name, dtype in TURN_DIAGNOSTICS_SCHEMA.items()
    )


def winning_roles(source: Source) -> pl.DataFrame:
    """Wins per protocol and role, and by the step that decided: see `WINNING_ROLES_SCHEMA`.

    Without a logged order, turns that counting leaves tied are won by `LEFT_TIED`.
    """
    table = turn_table(source)
    rows: list[tuple[str | int, ...]] = []
    for protocol, own in table.protocols():
        cell = table.winner[own] * len(DECIDED_BY) + table.decided_by[own]
        counts = np.bincount(cell, minlength=len(table.order) * len(DECIDED_BY))
        stood = np.zeros(len(table.order), dtype=np.bool_)
        for panel in table.panels:
            stood[panel.final.candidates[own[panel.final.turn]]] = True
        for place in np.flatnonzero(stood).tolist():
            won = counts[place * len(DECIDED_BY) :][: len(DECIDED_BY)].tolist()
            rows.append((protocol, table.order[place], sum(won), *won))
    found = pl.DataFrame(rows, schema=WINNING_ROLES_SCHEMA, orient="row")
    return found if source.ordered else _with_left_tied(found)


def _with_left_tied(found: pl.DataFrame) -> pl.DataFrame:
    wins = found.with_columns(
        wins=pl.col("by_vote") + pl.col("by_tie_round"), by_fallback=pl.lit(0, pl.Int64)
    )
    open_ = found.group_by("protocol", maintain_order=True).agg(
        role=pl.lit(LEFT_TIED),
        wins=pl.col("by_fallback").sum(),
        by_vote=pl.lit(0, pl.Int64),
        by_tie_round=pl.lit(0, pl.Int64),
        by_fallback=pl.lit(0, pl.Int64),
    )
    return pl.concat([wins, open_.filter(pl.col("wins") > 0).select(WINNING_ROLES_SCHEMA.names())])


def _of(protocol: BallotFormat, table: TurnTable, own: Bools, places: pl.DataFrame) -> Diagnostics:
    voted = own & table.voted
    by = np.bincount(table.decided_by[own], minlength=len(DECIDED_BY)).tolist()
    casts = [panel.final.cast[own[panel.final.turn]] for panel in table.panels]
    moved = own & ~np.isnan(table.shift)
    return Diagnostics(
        protocol=protocol,
        turns=int(own.sum()),
        episodes=places.filter(own).get_column("episode_id").n_unique(),
        shift=mean_over_tasks(
            table.shift[moved].tolist(), clusters_of(places.filter(moved)), ends=(0, 1)
        ),
        flip=_share(table.flip, voted, places),
        flip_set=_share(table.outside, voted, places),
        tie_rate=_share(table.tied, own, places),
        fallback_rate=_share(table.fallback, own, places),
        left_tied=_share(table.fallback, own, places),
        decided_by=dict(zip(DECIDED_BY, by, strict=True)),
        abstentions=sum(int((~cast).sum()) for cast in casts),
        ballots=sum(cast.size for cast in casts),
    )


def _share(hits: Bools, among: Bools, places: pl.DataFrame) -> Estimate | NotEstimable:
    """Share of some turns."""
    return share_over_tasks(hits[among].tolist(), clusters_of(places.filter(among)))


def _leading(rounds: Rounds) -> Bools:
    return leaders_of(rounds)


def _last_tie(panel: DecidedTurns) -> Bools:
    """The set that the order or the tie round decided; nobody where one led alone."""
    several = panel.undecided.sum(axis=1, keepdims=True) > 1
    tied = panel.led.sum(axis=1, keepdims=True) > 1
    return np.where(several, panel.undecided, panel.led & tied)


def _abstained(table: TurnTable) -> pl.Series:
    found = np.zeros(len(table.winner), dtype=np.int64)
    for panel in table.panels:
        found[panel.final.turn] = (~panel.final.cast).sum(axis=1)
    return pl.Series(found)
