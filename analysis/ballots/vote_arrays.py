"""Every vote of a ballots table as arrays: rounds of one size together, names as numbers.

A *round* is one stage of one turn: the same candidates on each of its ballots. Rounds with as
many voters and candidates share arrays, so that a million turns are a few calls of numpy and a
single large election is one row. `analysis.ballots.table_to_arrays` makes them of a table.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from tutorsim.analysis.ballots.reading_options import EVERY_VOTE
from tutorsim.analysis.ballots.short_axis_sums import count, summed
from tutorsim.analysis.ballots.turn_profiles import LEFT_OUT

__all__ = ["Bools", "Ints", "Rounds", "Votes", "in_order", "joined", "own_candidates", "ranked"]

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Rounds:
    """R rounds of one stage, n voters and m candidates each."""

    turn: Ints
    """Shape (R,): row of `Votes.turns`."""
    voters: Ints
    """Shape (R, n): numbers in `Votes.voters`, rising."""
    candidates: Ints
    """Shape (R, m): places in `Votes.order`; the first in the fallback order first."""
    masses: Ints
    """Shape (R, n, m): what counts; 0 in an abstention. If a ranking of a round leaves candidates
    out, twice the Borda points in all of the round, those left out sharing what is left."""
    cast: Bools
    """Shape (R, n): false for an abstention."""
    whole: Bools
    """Shape (R,): every ballot has the round's candidates, each once, all with a mass or none."""
    labels: Ints | None = None
    """Shape (R, n, m): numbers in `Votes.labels`, -1 where a candidate's is not known; `None` where
    no ballot of the table has labels."""
    left_out: Bools | None = None
    """Shape (R, n, m): the ballot says nothing of the candidate; `None` where every ballot of the
    table has all candidates of its round."""

    by_mean: Bools | None = None
    """Shape (R,): scores, some left out, so that means count and not sums; `None` if the table has
    none."""

    @property
    def given(self) -> Bools:
        """Shape (R, n, m): the ballot says something of the candidate."""
        every = np.broadcast_to(self.cast[:, :, None], self.masses.shape)
        return every if self.left_out is None else np.asarray(every & ~self.left_out)

    @property
    def as_cast(self) -> Ints:
        """Shape (R, n, m): masses, `LEFT_OUT` for a candidate that a ballot leaves out."""
        return (
            self.masses if self.left_out is None else np.where(self.left_out, LEFT_OUT, self.masses)
        )

    @property
    def incomplete(self) -> Bools:
        """Shape (R,): some ballot leaves open how candidates stand.

        That is a ranking that leaves out two or more, or scores that leave out any.
        """
        if self.left_out is None:
            return np.zeros(len(self.turn), dtype=np.bool_)
        several = (count(self.left_out, 2) > 1).any(axis=1)
        return np.asarray(several if self.by_mean is None else several | self.by_mean)

    @property
    def totals(self) -> Ints:
        """Shape (R, m): mass of each candidate."""
        return summed(self.masses, 1)

    def of(self, rows: Bools | Ints) -> "Rounds":
        """Some of the rounds; taken by number, several times as fast as by a mask."""
        kept = np.flatnonzero(rows) if rows.dtype == np.bool_ else rows
        return Rounds(
            turn=self.turn.take(kept),
            voters=self.voters.take(kept, axis=0),
            candidates=self.candidates.take(kept, axis=0),
            masses=self.masses.take(kept, axis=0),
            cast=self.cast.take(kept, axis=0),
            whole=self.whole.take(kept),
            labels=None if self.labels is None else self.labels.take(kept, axis=0),
            left_out=None if self.left_out is None else self.left_out.take(kept, axis=0),
            by_mean=None if self.by_mean is None else self.by_mean.take(kept),
        )


@dataclass(frozen=True, eq=False)
class Votes:
    """The turns that have final ballots, and the rounds of each stage."""

    turns: pl.DataFrame = field(repr=False)
    """`episode_id`, `turn` and `protocol`, in the order of their final ballots."""
    order: tuple[str, ...]
    """Candidates by place: the fallback order, then order of first appearance."""
    voters: tuple[str, ...]
    labels: tuple[str, ...]
    initial: tuple[Rounds, ...] = field(repr=False)
    final: tuple[Rounds, ...] = field(repr=False)
    tie: tuple[Rounds, ...] = field(repr=False)
    episodes: pl.DataFrame = field(repr=False)
    """Each episode once, with what its first ballot says of its place in the grid."""
    own: Mapping[str, Mapping[str, str]] | None = field(default=None, repr=False)
    """Episode, or `EVERY_VOTE` → voter → the candidate that is the voter's own; `None`: the one of
    the voter's name."""

    @property
    def stages(self) -> tuple[tuple[Rounds, ...], ...]:
        """The rounds of each stage, in the order of `analysis.ballots.turn_profiles.STAGES`."""
        return self.initial, self.final, self.tie


def own_candidates(
    part: Rounds,
    order: Sequence[str],
    voters: Sequence[str],
    turns: pl.DataFrame,
    own: Mapping[str, Mapping[str, str]] | None,
) -> Bools:
    """Shape (R, n, m): the candidate is the voter's own.

    Args:
        part: Rounds of one size.
        order: Candidates by place.
        voters: Voters by number.
        turns: `Votes.turns`.
        own: `Votes.own`.
    """
    place = {name: i for i, name in enumerate(order)}
    of_voter = np.array([place.get(name, -1) for name in voters], dtype=np.int64)
    seats = of_voter[part.voters]
    if own is not None:
        episodes = turns.get_column("episode_id").gather(part.turn).to_list()
        always = own.get(EVERY_VOTE, {})
        for row, episode in zip(range(len(seats)), episodes, strict=True):
            of = {**always, **own.get(episode, {})}
            seats[row] = [place.get(of.get(voters[v], ""), -1) for v in part.voters[row]]
    return np.asarray(seats[:, :, None] == part.candidates[:, None, :])


def in_order(votes: Votes, order: Sequence[str]) -> Votes:
    """The same votes, the candidates of every round in an order that names all of them.

    Places still count in `Votes.order`.
    """
    if tuple(order) == votes.order:
        return votes
    rank = np.array([order.index(name) for name in votes.order], dtype=np.int64)
    initial, final, tie = (tuple(ranked(p, rank) for p in parts) for parts in votes.stages)
    return replace(votes, initial=initial, final=final, tie=tie)


def ranked(part: Rounds, rank: Ints, rows: Bools | None = None) -> Rounds:
    """The same votes, the candidates of each round in another order.

    Args:
        part: Rounds of one size.
        rank: Shape (places,): the rank of each place of `Votes.order`.
        rows: Rounds that are put in order, by default all.
    """
    ranks = rank[part.candidates]
    if rows is not None:
        ranks = np.where(rows[:, None], ranks, np.arange(part.candidates.shape[1]))
    by_rank = np.argsort(ranks, axis=1, kind="stable")
    every = np.broadcast_to(by_rank[:, None, :], part.masses.shape)
    labels, left_out = part.labels, part.left_out
    return replace(
        part,
        candidates=np.take_along_axis(part.candidates, by_rank, axis=1),
        masses=np.take_along_axis(part.masses, every, axis=2),
        labels=None if labels is None else np.take_along_axis(labels, every, axis=2),
        left_out=None if left_out is None else np.take_along_axis(left_out, every, axis=2),
    )


def joined(pieces: Sequence[Votes]) -> Votes:
    """The votes of all pieces that one reader gave, at least one, in the order of the table."""
    last = pieces[-1]
    starts = np.cumsum([0, *(piece.turns.height for piece in pieces)])
    names = sorted(last.labels)
    place = np.array([*(names.index(name) for name in last.labels), -1], dtype=np.int64)
    initial, final, tie = (
        _together(
            _moved(part, int(start), place)
            for start, rounds in zip(starts, held, strict=False)
            for part in rounds
        )
        for held in zip(*(piece.stages for piece in pieces), strict=True)
    )
    episodes = pl.concat([piece.episodes for piece in pieces])
    return Votes(
        turns=pl.concat([piece.turns for piece in pieces]),
        order=last.order,
        voters=last.voters,
        labels=tuple(names),
        initial=initial,
        final=final,
        tie=tie,
        episodes=episodes.unique("episode_id", keep="first", maintain_order=True),
    )


def _moved(part: Rounds, start: int, labels: Ints) -> Rounds:
    """Turns counted from a start, and labels by name."""
    named = None if part.labels is None else labels[part.labels]
    return replace(part, turn=part.turn + start, labels=named)


def _together(parts: Iterable[Rounds]) -> tuple[Rounds, ...]:
    """Rounds of one size together."""
    of_size: dict[tuple[int, ...], list[Rounds]] = {}
    for part in parts:
        of_size.setdefault(part.masses.shape[1:], []).append(part)
    return tuple(_concatenated(of_size[size]) for size in sorted(of_size))


def _concatenated(parts: Sequence[Rounds]) -> Rounds:
    if len(parts) == 1:
        return parts[0]
    return Rounds(
        turn=np.concatenate([part.turn for part in parts]),
        voters=np.concatenate([part.voters for part in parts]),
        candidates=np.concatenate([part.candidates for part in parts]),
        masses=np.concatenate([part.masses for part in parts]),
        cast=np.concatenate([part.cast for part in parts]),
        whole=np.concatenate([part.whole for part in parts]),
        labels=_joined([(part.masses, part.labels) for part in parts], -1),
        left_out=_joined([(part.masses, part.left_out) for part in parts], False),
        by_mean=_joined([(part.turn, part.by_mean) for part in parts], False),
    )


def _joined(cells: Sequence[tuple[Ints, npt.NDArray[Any] | None]], unknown: Any) -> Any:
    """Cells of some rounds together; `None` where no round has any."""
    if all(one is None for _, one in cells):
        return None
    return np.concatenate(
        [np.full(like.shape, unknown) if one is None else one for like, one in cells]
    )
