"""Coordination diagnostics per protocol; the turn is the unit.

Definitions:

* *vote shift*: ½ Σ |p_init(c) − p_final(c)| over candidates, p being mass over total mass, of the
  first final vote (not the tie round); undefined where either total is 0.
* *winner flip*: the leader after the first vote differs from the delivered winner. Where the
  first vote was tied, `flip` takes the leader that the role-priority order picks, and `flip_set`
  counts only winners outside the set of leaders.
* *tie rate*: turns whose final vote was tied. *fallback rate*: turns that the role-priority
  order decided. The published "fallback" can be read either way.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

import numpy as np
import polars as pl

from analysis.metrics.table import Panels, TurnTable, largest, places_of, turn_table
from analysis.profiles import TurnBallots
from analysis.rounds import Bools, Ints, Rounds
from analysis.sources import Source
from analysis.statistics import Estimate, NotEstimable, cluster_bootstrap, to_json, wilson
from tutorsim.types import DECIDED_BY, BallotFormat
from tutorsim.voting import tally

__all__ = [
    "TURN_DIAGNOSTICS_SCHEMA",
    "WINNING_ROLES_SCHEMA",
    "Diagnostics",
    "diagnostics",
    "turn_diagnostics",
    "vote_shift",
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
        "initial_leader": pl.String(),  # a tie goes to the role-priority order
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
"""One row per protocol and candidate, in the role-priority order."""


@dataclass(frozen=True)
class Diagnostics:
    """One protocol's row of the coordination table."""

    protocol: BallotFormat
    turns: int
    episodes: int
    shift: Estimate | NotEstimable
    flip: Estimate | NotEstimable
    """A tied first vote is led by the role-priority order's pick."""
    flip_set: Estimate | NotEstimable
    """A flip only when the winner is outside the set of first leaders."""
    tie_rate: Estimate | NotEstimable
    fallback_rate: Estimate | NotEstimable
    decided_by: dict[str, int]
    """`vote`, `tie_round`, `fallback` → turns."""
    abstentions: int
    """Ballots of the final votes without mass."""
    ballots: int
    """Ballots of the final votes."""

    def to_json(self) -> dict[str, object]:
        return {name: to_json(value) for name, value in vars(self).items()}


def diagnostics(source: Source, *, seed: int = 0) -> list[Diagnostics]:
    """The coordination diagnostics of each protocol that has voting turns.

    Rates have Wilson intervals, the mean shift a bootstrap over tasks (over episodes where
    ballots from elsewhere do not name tasks).
    """
    table = turn_table(source)
    places = places_of(table.votes)
    return [_of(protocol, table, own, places, seed) for protocol, own in table.protocols()]


def turn_diagnostics(source: Source) -> pl.DataFrame:
    """What the diagnostics rest on, turn by turn: see `TURN_DIAGNOSTICS_SCHEMA`."""
    table = turn_table(source)
    none = pl.lit(None)
    voted = pl.Series(table.voted)
    found = places_of(table.votes).with_columns(
        initial_leaders=_lists(table, [(r, _leading(r)) for r in table.votes.initial]),
        initial_leader=table.names(table.leader),
        winner=table.names(table.winner),
        decided_by=pl.Series(list(DECIDED_BY)).gather(table.decided_by),
        tied_set=_lists(table, [(p.final, _last_tie(p)) for p in table.panels]),
        undecided=_lists(table, [(p.final, p.undecided) for p in table.panels]),
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
    """Wins per protocol and role, and by the step that decided: see `WINNING_ROLES_SCHEMA`."""
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
    return pl.DataFrame(rows, schema=WINNING_ROLES_SCHEMA, orient="row")


def vote_shift(initial: TurnBallots, final: TurnBallots) -> Fraction | None:
    """Half the sum of absolute differences of vote shares; `None` where a total is 0."""
    candidates = tuple(dict.fromkeys((*initial.candidates, *final.candidates)))
    before = tally(initial.cast(), candidates)
    after = tally(final.cast(), candidates)
    a, b = sum(before.values()), sum(after.values())
    if a == 0 or b == 0:
        return None
    return Fraction(sum(abs(before[c] * b - after[c] * a) for c in candidates), 2 * a * b)


def _of(
    protocol: BallotFormat, table: TurnTable, own: Bools, places: pl.DataFrame, seed: int
) -> Diagnostics:
    turns, voted = int(own.sum()), int(table.voted[own].sum())
    by = np.bincount(table.decided_by[own], minlength=len(DECIDED_BY)).tolist()
    casts = [panel.final.cast[own[panel.final.turn]] for panel in table.panels]
    moved = own & ~np.isnan(table.shift)
    return Diagnostics(
        protocol=protocol,
        turns=turns,
        episodes=places.filter(own).get_column("episode_id").n_unique(),
        shift=cluster_bootstrap(
            table.shift[moved].tolist(), _clusters(places.filter(moved)), seed=seed
        ),
        flip=wilson(int(table.flip[own].sum()), voted),
        flip_set=wilson(int(table.outside[own].sum()), voted),
        tie_rate=wilson(int(table.tied[own].sum()), turns),
        fallback_rate=wilson(int(table.fallback[own].sum()), turns),
        decided_by=dict(zip(DECIDED_BY, by, strict=True)),
        abstentions=sum(int((~cast).sum()) for cast in casts),
        ballots=sum(cast.size for cast in casts),
    )


def _clusters(places: pl.DataFrame) -> list[tuple[str | None, str]]:
    """What intervals resample: benchmark and task, or the episode where no task is named."""
    cluster = pl.coalesce(pl.col("task").replace("", None), "episode_id")
    return places.select("benchmark", cluster).rows()


def _leading(rounds: Rounds) -> Bools:
    totals = rounds.totals
    return largest(totals, np.ones(totals.shape, dtype=np.bool_))


def _last_tie(panel: Panels) -> Bools:
    """The set that the order or the tie round decided; nobody where one led alone."""
    several = panel.undecided.sum(axis=1, keepdims=True) > 1
    tied = panel.led.sum(axis=1, keepdims=True) > 1
    return np.where(several, panel.undecided, panel.led & tied)


def _lists(table: TurnTable, sets: Sequence[tuple[Rounds, Bools]]) -> pl.Series:
    """Per turn the candidates of a set, by name and in the order; null where there is no set."""
    turns: list[Ints] = [np.zeros(0, dtype=np.int64)]
    places = list(turns)
    for rounds, members in sets:
        row, position = np.nonzero(members)
        turns.append(rounds.turn[row])
        places.append(rounds.candidates[row, position])
    names = table.names(np.concatenate(places))
    frame = pl.DataFrame({"turn": np.concatenate(turns), "names": names})
    lists = frame.group_by("turn", maintain_order=True).agg("names")
    every = pl.DataFrame({"turn": np.arange(len(table.winner))})
    return every.join(lists, on="turn", how="left", maintain_order="left").get_column("names")


def _abstained(table: TurnTable) -> pl.Series:
    found = np.zeros(len(table.winner), dtype=np.int64)
    for panel in table.panels:
        found[panel.final.turn] = (~panel.final.cast).sum(axis=1)
    return pl.Series(found)
