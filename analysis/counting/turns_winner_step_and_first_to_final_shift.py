"""Every voting turn at once: who won, by which step and order, and how far votes moved."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from itertools import product
from typing import Final

import numpy as np
import polars as pl

from tutorsim.analysis.ballots.recount_source import Source
from tutorsim.analysis.ballots.vote_arrays_and_profiles import (
    TURN,
    Rounds,
    Votes,
    count,
    first_of,
    fitting,
    fold,
    ranked,
    standing_order,
)
from tutorsim.analysis.counting.winners_as_logged_and_with_votes_changed import (
    DecidedTurns,
    decide_turns,
    leaders_of,
)
from tutorsim.analysis.statistics.array_types import Bools, Floats, Ints
from tutorsim.vocabularies import BALLOT_FORMATS, DECIDED_BY, BallotFormat

Cluster = tuple[str | None, str]
"""What intervals are over: benchmark and task, or the episode where no task is named."""

_EXACT: Final = 2**20
"""Totals below this have products that are exact in every step."""

_VOTE, _TIE_ROUND, _FALLBACK = range(len(DECIDED_BY))


@dataclass(frozen=True, eq=False)
class TurnTable:
    """T turns in the order of their final ballots; candidates are places in the order.

    Every array has shape (T,), a value for each turn.
    """

    votes: Votes = field(repr=False)
    panels: tuple[DecidedTurns, ...] = field(repr=False)
    winner: Ints = field(repr=False)
    decided_by: Ints = field(repr=False)
    """Position in `DECIDED_BY`."""
    leader: Ints = field(repr=False)
    """Leader of the first vote, a tie going to the order; -1 without one."""
    outside: Bools = field(repr=False)
    """The winner is not among the leaders of the first vote."""
    shift: Floats = field(repr=False)
    """NaN where it is undefined."""

    @property
    def order(self) -> tuple[str, ...]:
        """Candidates by place."""
        return self.votes.order

    @property
    def tied(self) -> Bools:
        """The final vote was tied."""
        return np.asarray(self.decided_by != _VOTE)

    @property
    def fallback(self) -> Bools:
        """The order decided."""
        return np.asarray(self.decided_by == _FALLBACK)

    @property
    def voted(self) -> Bools:
        """A first vote was held."""
        return np.asarray(self.leader >= 0)

    @property
    def flip(self) -> Bools:
        """The first leader did not win; false without a first vote."""
        return np.asarray(self.voted & (self.leader != self.winner))

    @cached_property
    def task(self) -> Ints:
        """Shape (turns,): a number for each of `clusters_of`, in the order of their names."""
        episodes = self.votes.episodes
        every = episodes.select(_CLUSTER)
        names = sorted(every.unique().rows(), key=repr)
        numbers = pl.DataFrame(names, every.schema, orient="row").with_columns(
            number=np.arange(len(names), dtype=fitting(len(names)))
        )
        numbered = every.join(
            numbers, on=every.columns, how="left", nulls_equal=True, maintain_order="left"
        )
        named = episodes.select("episode_id", numbered.get_column("number"))
        turns = self.votes.turns.select("episode_id")
        found = turns.join(named, on="episode_id", how="left", maintain_order="left")
        return np.asarray(found.get_column("number"))

    def protocols(self) -> Iterator[tuple[BallotFormat, Bools]]:
        """Each format that has turns, in the order of `BALLOT_FORMATS`, and which turns."""
        protocol = self.votes.turns.get_column("protocol").cast(pl.String)
        for form in BALLOT_FORMATS:
            own = (protocol == form).to_numpy()
            if own.any():
                yield form, own

    def winners(self) -> pl.DataFrame:
        """Every turn by `episode_id`, `turn` and `protocol`, with its `winner`."""
        return self.votes.turns.with_columns(winner=self.names(self.winner))

    def turns(self, *, ordered: bool) -> pl.DataFrame:
        """Every turn with `initial_leader`, `winner` and `flip`, false without a first vote.

        `ordered`: whether an order decides; if not, what several lead or win is null.
        """
        leader, winner = self.leader, self.winner
        if not ordered:
            several = np.zeros(len(winner), dtype=np.bool_)
            for first in self.votes.initial:
                several[first.turn] = count(leaders_of(first), 1) > 1
            leader = np.where(several, -1, leader)
            winner = np.where(self.fallback, -1, winner)
        flip = (leader >= 0) & (winner >= 0) & (leader != winner)
        return self.votes.turns.with_columns(
            initial_leader=self.names(leader), winner=self.names(winner), flip=pl.Series(flip)
        )

    def names(self, places: Ints) -> pl.Series:
        """Candidates by name; null for -1."""
        named = pl.Series(list(self.order), dtype=pl.String)
        found = named.gather(pl.Series(np.maximum(places, 0)))
        return found.zip_with(pl.Series(places >= 0), pl.Series([None], dtype=pl.String))

    def lists(self, sets: Sequence[tuple[Rounds, Bools]]) -> pl.Series:
        """Per turn the candidates of a set, by name and in order; null where there is no set."""
        turns: list[Ints] = [np.zeros(0, dtype=np.int64)]
        places = list(turns)
        for rounds, members in sets:
            row, position = np.nonzero(members)
            turns.append(rounds.turn[row])
            places.append(rounds.candidates[row, position])
        names = self.names(np.concatenate(places))
        frame = pl.DataFrame({"turn": np.concatenate(turns), "names": names})
        lists = frame.group_by("turn", maintain_order=True).agg("names")
        every = pl.DataFrame({"turn": np.arange(len(self.winner))})
        return every.join(lists, on="turn", how="left", maintain_order="left").get_column("names")


@lru_cache(maxsize=2)  # one run, or two side by side: every metric starts here
def turn_table(source: Source) -> TurnTable:
    """All voting turns of complete episodes, decided under their own rule and order."""
    votes = _in_own_order(source.votes, source)
    panels = tuple(decide_turns(final, votes.tie) for final in votes.final)
    size = votes.turns.height
    winner, by = np.zeros((2, size), dtype=np.int64)
    for part in panels:
        rows, position = np.arange(len(part.final.turn)), part.winner
        winner[part.final.turn] = part.final.candidates[rows, position]
        several = count(part.undecided, 1) > 1
        again = part.held & (count(part.led, 1) > 1)
        by[part.final.turn] = np.where(several, _FALLBACK, np.where(again, _TIE_ROUND, _VOTE))
    leader, outside = _first_leaders(votes, winner)
    return TurnTable(
        votes=votes,
        panels=panels,
        winner=winner,
        decided_by=by,
        leader=leader,
        outside=outside,
        shift=_shifts(votes),
    )


def _in_own_order(votes: Votes, source: Source) -> Votes:
    """Each round's candidates in the order of its turn: in a branch that changes the order, the
    logged one before the change."""
    branch = source.run.branch if source.run else None
    if source.run is None or branch is None or branch.fallback_order is None:
        return votes
    logged = standing_order(source.ballots, source.run.panel.fallback_order)
    rank = np.array([logged.index(name) for name in votes.order], dtype=np.int64)
    change = {e.episode_id: e.branch.turn for e in source.episodes if e.branch}
    turns = votes.turns.select("episode_id", "turn").iter_rows()
    before = np.array([turn < change.get(episode, turn + 1) for episode, turn in turns])
    return votes.changed(lambda part: ranked(part, rank, before[part.turn]))


def _first_leaders(votes: Votes, winner: Ints) -> tuple[Ints, Bools]:
    """Per turn: the leader of the first vote, and whether the winner led in no way."""
    leader = np.full(len(winner), -1, dtype=np.int64)
    outside = np.zeros(len(winner), dtype=np.bool_)
    for first in votes.initial:
        led = leaders_of(first)
        rows = np.arange(len(first.turn))
        leader[first.turn] = first.candidates[rows, first_of(led)]
        won = first.candidates == winner[first.turn][:, None]
        outside[first.turn] = ~fold(np.logical_or, won & led, 1)
    return leader, outside


def _shifts(votes: Votes) -> Floats:
    """Shape (T,): half the distance between vote shares before and after."""
    shifts = np.full(votes.turns.height, np.nan)
    for first, last in product(votes.initial, votes.final):
        row = np.full(len(shifts), -1)
        row[last.turn] = np.arange(len(last.turn))
        one = np.flatnonzero(row[first.turn] >= 0)
        two = row[first.turn[one]]
        if len(one):
            shifts[first.turn[one]] = _distances(*_side_by_side(first.of(one), last.of(two)))
    return shifts


def _side_by_side(before: Rounds, after: Rounds) -> tuple[Ints, Ints]:
    """Totals of two votes of each turn, both shape (R, candidates of either)."""
    if np.array_equal(before.candidates, after.candidates):
        return before.totals, after.totals
    same = before.candidates[:, :, None] == after.candidates[:, None, :]
    kept = (same * after.totals[:, None, :]).sum(axis=2)
    others = after.totals * ~same.any(axis=1)
    return np.hstack([before.totals, 0 * others]), np.hstack([kept, others])


def _distances(before: Ints, after: Ints) -> Floats:
    """Row by row; NaN where a total is 0."""
    a, b = (totals.sum(axis=1, keepdims=True) for totals in (before, after))
    with np.errstate(invalid="ignore", divide="ignore"):
        if max(a.max(initial=0), b.max(initial=0)) >= _EXACT:
            return np.asarray(np.abs(before / a - after / b).sum(axis=1) / 2)
        # whole numbers, and one division at the end
        found = fold(np.add, np.abs(before * b - after * a), 1) / (2 * a * b)[:, 0]
    return np.asarray(found)


def places_of(votes: Votes) -> pl.DataFrame:
    """The turns with their place in the grid, as the episode's first ballot states it."""
    turns = votes.turns.select(TURN)
    return turns.join(votes.episodes, on="episode_id", how="left", maintain_order="left")


_CLUSTER: Final = (
    pl.col("benchmark"),
    pl.coalesce(pl.col("task").replace("", None), "episode_id").alias("task"),
)


def clusters_of(places: pl.DataFrame) -> list[tuple[str | None, str]]:
    """What intervals are over: benchmark and task, or the episode where no task is named."""
    return places.select(_CLUSTER).rows()
