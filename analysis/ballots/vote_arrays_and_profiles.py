"""Every vote of a ballots table as arrays: rounds of one size together, names as numbers.

A `Profile` is one turn's ballots in one stage. `DistinctPanels` are the different ballots among
many turns; sums over an axis of few entries, and which rows of whole numbers are equal, stand here
too.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache, reduce
from typing import Any, Final, NamedTuple

import numpy as np
import polars as pl

from tutorsim.analysis.ballots.reading_options_and_column_words import EVERY_VOTE
from tutorsim.analysis.statistics.array_types import Anything, Bools, Ints
from tutorsim.vocabularies import (
    BALLOT_STATUSES,
    PROTOCOLS,
    BallotFormat,
    Protocol,
    PublishedProtocol,
)

# --- Turn profiles -------------------------------------------------------------------------------

Masses = tuple[int, ...]
"""Mass of each candidate, in the profile's order of candidates; `LEFT_OUT` for one of whom the
ballot says nothing."""

LEFT_OUT: Final = -1
"""Stands for the mass of a candidate that an incomplete ballot leaves out."""

Levels = tuple[tuple[int, ...], ...]
"""Numbers of candidates by level, best first; equal candidates share a level."""

TURN: Final = ("episode_id", "turn", "protocol")
BALLOT: Final = ("episode_id", "turn", "stage", "voter")
STAGES: Final[Mapping[str, str]] = {
    "initial": "vote_initial",
    "final": "vote_final",
    "tie": "tie_vote",
}
"""Short stage names of ballots from elsewhere → the study's names."""
RICH: Final = ("points", "rank", "approved")
"""Columns that only rich ballots fill."""


@lru_cache(maxsize=1 << 14)
def levels_of(masses: Masses) -> Levels:
    """The weak order of masses: equal masses share a level."""
    grades = sorted(set(masses), reverse=True)
    return tuple(tuple(c for c, mass in enumerate(masses) if mass == grade) for grade in grades)


def held_by_rich(protocol: Protocol) -> PublishedProtocol:
    """The ballot of a rich one that says most under a protocol: its own, or else the ranking."""
    return next((held for held in PROTOCOLS if held == protocol), "ranked")


class Place(NamedTuple):
    """Where an episode stands in the grid; `None` where ballots from elsewhere do not say."""

    benchmark: str | None
    task: str | None
    persona: str | None
    condition: str | None


class TurnKey(NamedTuple):
    """What names a turn: an episode votes under one protocol, but other data need not."""

    episode_id: str
    turn: int
    protocol: BallotFormat


@dataclass(frozen=True)
class Profile:
    """The ballots of one stage, candidates by place in the order instead of by name."""

    protocol: Protocol
    size: int
    """Number of candidates."""
    ballots: tuple[Masses | None, ...]
    """One per voter, in the order of the voters' names; `None` for an abstention."""

    @property
    def cast(self) -> tuple[Masses, ...]:
        """The ballots without the abstentions."""
        return tuple(ballot for ballot in self.ballots if ballot is not None)


def standing_order(
    ballots: pl.DataFrame, fallback_order: Sequence[str] | None = None
) -> tuple[str, ...]:
    """Every candidate of the ballots once: those of the order first, then by name."""
    seen = ballots.get_column("candidate").unique().sort().to_list()
    named = tuple(fallback_order or ())
    return (*named, *(c for c in seen if c not in named))


def rich_rules(ballots: pl.DataFrame) -> Mapping[tuple[str, int, str], Protocol | None]:
    """The protocol under which each vote in rich ballots counts.

    One for all, except in a branch under another rule. Then it is what the masses of the vote
    say; where several fit, one that fits some other vote alone.
    """
    vote = ["episode_id", "turn", "stage"]
    staged = ballots.with_columns(pl.col("stage").replace(STAGES))
    rich = staged.filter(pl.col("protocol") == "rich")
    votes = rich.select(vote).unique(maintain_order=True)
    single = rich_rule(rich)
    if single is not None:
        return dict.fromkeys(votes.iter_rows(), single)
    cast = rich.filter(pl.col("mass").is_not_null())
    fits = {key: _fitting(same) for key, same in cast.group_by(vote, maintain_order=True)}
    certain = {fit[0] for fit in fits.values() if len(fit) == 1}
    return {
        key: min(fits.get(key, []), key=lambda p: p not in certain, default=None)
        for key in votes.iter_rows()
    }


def rich_rule(ballots: pl.DataFrame) -> Protocol | None:
    """The protocol under which the masses of rich ballots are theirs; `None` without any.

    The first, where several give the same masses everywhere.
    """
    cast = ballots.filter((pl.col("protocol") == "rich") & pl.col("mass").is_not_null())
    return next(iter(_fitting(cast)), None) if cast.height else None


def _fitting(cast: pl.DataFrame) -> list[Protocol]:
    """Protocols under which rich ballots have the masses that they count with."""
    fits = cast.select(rich_mass(p).eq(pl.col("mass")).all().alias(p) for p in PROTOCOLS).row(0)
    return [p for p, fit in zip(PROTOCOLS, fits, strict=True) if fit]


def rich_mass(protocol: PublishedProtocol) -> pl.Expr:
    """The mass that the columns of a rich ballot give its candidate under a protocol."""
    match protocol:
        case "simple":
            return (pl.col("rank") == 1).cast(pl.Int64)
        case "ranked":
            m = pl.len().over(*TURN, "stage", "voter").cast(pl.Int64)
            return m - pl.col("rank")
        case "cumulative":
            return pl.col("points")
        case "approval":
            return pl.col("approved").cast(pl.Int64)


# --- Short axis sums -----------------------------------------------------------------------------

_FEW: Final = 16
"""Entries up to which stepping over them is faster."""
_SHORT: Final = 8
"""Entries up to which exchanging neighbours is faster than sorting row by row."""
_LARGEST: Final = 2**63 - 1


def fold(ufunc: np.ufunc, array: Anything, axis: int) -> Anything:
    """`ufunc.reduce` over one axis; of numbers as `np.maximum`, of truths as `np.logical_or`."""
    if not 0 < array.shape[axis] <= _FEW:
        return np.asarray(ufunc.reduce(array, axis=axis))
    return np.asarray(reduce(ufunc, np.moveaxis(array, axis, 0)))


def count(truths: Bools, axis: int) -> Ints:
    """How many are true over one axis."""
    return summed(truths.view(np.int8), axis)


def summed(array: Ints, axis: int) -> Ints:
    """Sums over one axis, in the smallest type that holds any sum of numbers of the array's."""
    entries = array.shape[axis]
    kind = fitting(entries * int(np.iinfo(array.dtype).max))
    if not 0 < entries <= _FEW:
        return np.asarray(array.sum(axis=axis, dtype=kind))
    first, *others = np.moveaxis(array, axis, 0)
    total: Ints = first.astype(kind)
    for one in others:
        total += one
    return total


def sorted_rows(array: Ints) -> Ints:
    """Each row rising, shape (rows, entries)."""
    columns = list(array.T)
    if not 0 < len(columns) <= _SHORT:
        return np.sort(array, axis=1)
    for last in range(len(columns) - 1, 0, -1):
        for i in range(last):
            one, other = columns[i], columns[i + 1]
            columns[i], columns[i + 1] = np.minimum(one, other), np.maximum(one, other)
    return np.stack(columns, axis=1)


def first_of(members: Bools) -> Ints:
    """Position of the first that is true over the last axis; 0 where none is."""
    if not 0 < members.shape[-1] <= _FEW:
        return np.asarray(members.argmax(axis=-1))
    none = ~members[..., 0]
    position = none.astype(np.int8)
    for i in range(1, members.shape[-1]):
        none = none & ~members[..., i]
        position += none
    return np.where(none, np.int8(0), position)


def fitting(largest: int) -> np.dtype[Any]:
    """The smallest type that holds whole numbers up to one, and their negatives; at most 64 bits.

    Cells are held so: of millions of turns they fill the caches, and no more memory than they have
    to. Sums and products of such numbers need a larger type; `summed` gives it.
    """
    return np.min_scalar_type(-min(largest, _LARGEST) - 1)


# --- Vote arrays ---------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Rounds:
    """R rounds of one stage, n voters and m candidates each.

    Numbers of voters, candidates and labels, and masses, are of the smallest type that holds them:
    see `fitting`.
    """

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
    """Shape (R,): every ballot has the round's candidates, each once, all with a mass or none, and
    all of them repaired or none."""
    labels: Ints | None = None
    """Shape (R, n, m): numbers in `Votes.labels`, -1 where a candidate's is not known; `None` where
    no ballot of the table has labels."""
    left_out: Bools | None = None
    """Shape (R, n, m): the ballot says nothing of the candidate; `None` where every ballot of the
    table has all candidates of its round."""

    by_mean: Bools | None = None
    """Shape (R,): scores, some left out, so that means count and not sums; `None` if the table has
    none."""
    repaired: Bools | None = None
    """Shape (R, n): cast in a reply that is not to the letter; `None` if the table has none."""

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
        several = fold(np.logical_or, count(self.left_out, 2) > 1, 1)
        return np.asarray(several if self.by_mean is None else several | self.by_mean)

    @property
    def totals(self) -> Ints:
        """Shape (R, m): mass of each candidate."""
        return summed(self.masses, 1)

    def of(self, rows: Bools | Ints) -> "Rounds":
        """Some of the rounds; taken by number, several times as fast as by a mask."""
        kept = np.flatnonzero(rows) if rows.dtype == np.bool_ else rows
        held = {name: cells for name, cells in vars(self).items() if cells is not None}
        return Rounds(**{name: cells.take(kept, axis=0) for name, cells in held.items()})


@dataclass(frozen=True, eq=False)
class Votes:
    """The turns that have final ballots, and the rounds of each stage.

    votes = open_source(Path("votes.csv")).votes
    for part in votes.final:  # rounds of one size
        part.masses           # shape (rounds, voters, candidates)
        part.candidates       # shape (rounds, candidates): places in `votes.order`
    """

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
        """The rounds of each stage, in the order of `STAGES`."""
        return self.initial, self.final, self.tie

    def of_turns(self, rows: Ints) -> "Votes":
        """The votes of some turns, in the order in which these are given."""
        place = np.full(self.turns.height, -1, dtype=np.int64)
        place[rows] = np.arange(len(rows))

        def some(part: Rounds) -> Rounds:
            turn = place[part.turn]
            by_turn = np.argsort(turn, kind="stable")
            return replace(part, turn=turn).of(by_turn[turn[by_turn] >= 0])

        return self.changed(some, turns=self.turns[rows])

    def changed(self, change: Callable[[Rounds], Rounds], **others: Any) -> "Votes":
        """The votes with their rounds of every size and stage changed, and other fields."""
        initial, final, tie = (tuple(map(change, rounds)) for rounds in self.stages)
        return replace(self, initial=initial, final=final, tie=tie, **others)


def statuses_of(votes: Votes) -> pl.DataFrame:
    """Ballots by `protocol` and `stage`, those of the first turns first: how many have each status.

    Their columns are `BALLOT_STATUSES`.
    """
    protocol, found = votes.turns.get_column("protocol").cast(pl.String), list[pl.DataFrame]()
    sums, place = (pl.col("turn").min(), pl.col(BALLOT_STATUSES).sum()), ("protocol", "stage")
    for stage, rounds in zip(STAGES.values(), votes.stages, strict=True):
        for part in rounds:
            repaired = np.zeros_like(part.cast) if part.repaired is None else part.repaired
            each = pl.DataFrame(
                {
                    "protocol": protocol.gather(part.turn),
                    "turn": part.turn,
                    "valid": count(part.cast & ~repaired, 1),
                    "repaired": count(repaired, 1),
                    "abstained": count(~part.cast, 1),
                }
            ).with_columns(stage=pl.lit(stage))
            found.append(each.group_by(place, maintain_order=True).agg(*sums))
    every = pl.concat(found).group_by(place, maintain_order=True).agg(*sums)
    return every.sort("turn", maintain_order=True).drop("turn")


def own_candidates(part: Rounds, votes: Votes) -> Bools:
    """Shape (R, n, m): the candidate is the voter's own. `part`: rounds of the votes."""
    own, voters, place = votes.own, votes.voters, {c: i for i, c in enumerate(votes.order)}
    of_voter = np.array([place.get(name, -1) for name in voters], dtype=fitting(len(place)))
    seats = of_voter[part.voters]
    if own is not None:
        episodes = votes.turns.get_column("episode_id").gather(part.turn)
        for row, episode in enumerate(episodes):
            of = {**own.get(EVERY_VOTE, {}), **own.get(episode, {})}
            seats[row] = [place.get(of.get(voters[v], ""), -1) for v in part.voters[row]]
    return np.asarray(seats[:, :, None] == part.candidates[:, None, :])


def in_order(votes: Votes, order: Sequence[str]) -> Votes:
    """Votes with the candidates of every round in an order that names all of them.

    Places still count in `Votes.order`.
    """
    if tuple(order) == votes.order:
        return votes
    rank = np.array([order.index(name) for name in votes.order], dtype=np.int64)
    return votes.changed(lambda part: ranked(part, rank))


def ranked(part: Rounds, rank: Ints, rows: Bools | None = None) -> Rounds:
    """Rounds with their candidates in another order.

    `rank`: shape (places,): the rank of each place of `Votes.order`. `rows`: rounds that are put in
    order, by default all.
    """
    ranks = rank[part.candidates]
    if rows is not None:
        ranks = np.where(rows[:, None], ranks, np.arange(part.candidates.shape[1]))
    by_rank = np.argsort(ranks, axis=1, kind="stable")
    every = np.broadcast_to(by_rank[:, None, :], part.masses.shape)
    held = {name: getattr(part, name) for name in ("masses", "labels", "left_out")}
    return replace(
        part,
        candidates=np.take_along_axis(part.candidates, by_rank, axis=1),
        **{n: np.take_along_axis(c, every, axis=2) for n, c in held.items() if c is not None},
    )


def joined(pieces: Sequence[Votes]) -> Votes:
    """The votes of all pieces that one reader gave, at least one, in the order of the table."""
    last = pieces[-1]
    starts = np.cumsum([0, *(piece.turns.height for piece in pieces)])
    names = sorted({name for piece in pieces for name in piece.labels})
    kind = fitting(len(names))
    places = [np.array([*map(names.index, piece.labels), -1], dtype=kind) for piece in pieces]
    initial, final, tie = (
        _together(
            replace(
                part,
                turn=part.turn + int(start),
                labels=None if part.labels is None else place[part.labels],
            )
            for start, place, rounds in zip(starts, places, held, strict=False)
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


def _together(parts: Iterable[Rounds]) -> tuple[Rounds, ...]:
    """Rounds of one size together."""
    of_size: dict[tuple[int, ...], list[Rounds]] = {}
    for part in parts:
        of_size.setdefault(part.masses.shape[1:], []).append(part)
    return tuple(_concatenated(of_size[size]) for size in sorted(of_size))


_SHAPED_LIKE: Final = {
    "labels": ("masses", -1),
    "left_out": ("masses", False),
    "by_mean": ("turn", False),
    "repaired": ("voters", False),
}
"""Cells that some rounds have → cells of their shape, and what they are where there are none."""


def _concatenated(parts: Sequence[Rounds]) -> Rounds:
    if len(parts) == 1:
        return parts[0]
    found: dict[str, Any] = {}
    for name in vars(parts[0]):
        held = [getattr(part, name) for part in parts]
        kinds = [cells.dtype for cells in held if cells is not None]
        if kinds:
            like, unknown = _SHAPED_LIKE.get(name, (name, 0))
            shapes = [getattr(part, like).shape for part in parts]
            found[name] = np.concatenate(
                [
                    np.full(shape, unknown, kinds[0]) if cells is None else cells
                    for cells, shape in zip(held, shapes, strict=True)
                ]
            )
    return Rounds(**found)


# --- Distinct rows -------------------------------------------------------------------------------


_FEW_CODES: Final = 1 << 13
"""Codes up to which each has a place in a table of counts, for a few rows too."""
_LARGEST_CODE: Final = 1 << 62
"""Codes stay below."""
_MEMBERS: Final = 30
"""Members of a set that one number holds."""


def distinct_rows(columns: Sequence[Anything] | Anything) -> tuple[Ints, Ints]:
    """The first place of each different row, and the number of each row among the different ones.

    Different rows are numbered as their first columns rise. `columns`: one or more, shape (rows,)
    each, of whole numbers or truths from -1 on.
    """
    code, codes = np.zeros(len(columns[0]), dtype=np.int64), 1  # equal for equal rows
    for column in columns:
        base = int(column.max(initial=0)) + 2
        if codes * base > _LARGEST_CODE:
            values, code = np.unique(code, return_inverse=True)
            codes = len(values)
        code = code * base
        code += column
        code += 1
        codes *= base
    if codes > max(_FEW_CODES, 4 * len(code)):
        _, first, number = np.unique(code, return_index=True, return_inverse=True)
        return first, number
    first = np.full(codes, -1, dtype=np.int64)
    first[code[::-1]] = np.arange(len(code) - 1, -1, -1)
    present = first >= 0
    number = np.cumsum(present) - 1
    return first[present], number[code]


def count_rows(
    columns: Sequence[Anything] | Anything,
) -> Iterator[tuple[tuple[int, ...], int]]:
    """Each different row with how often it occurs, in rising order."""
    first, number = distinct_rows(columns)
    counts = np.bincount(number, minlength=len(first))
    cells = [column[first].tolist() for column in columns]
    yield from zip(zip(*cells, strict=True), counts.tolist(), strict=True)


def set_columns(members: Bools) -> list[Ints]:
    """Sets as whole numbers: columns that are equal for equal sets.

    `members`: shape (rows, members).
    """
    bits = (1 << np.arange(_MEMBERS)).astype(fitting(1 << min(members.shape[1], _MEMBERS)))
    parts = [members[:, i : i + _MEMBERS] for i in range(0, members.shape[1], _MEMBERS)]
    return [summed(part * bits[: part.shape[1]], 1) for part in parts]


# --- Distinct panels -----------------------------------------------------------------------------


class DistinctPanels(NamedTuple):
    """The different panels of many turns of one size, m candidates and n voters."""

    panels: Ints
    """Shape (panels, voters): numbers of ballots, rising; -1 for an abstention."""
    ballots: tuple[Masses, ...]
    """What the numbers stand for."""
    protocol: Protocol
    """Format of the ballots."""
    m: int
    of: Ints
    """Shape (turns,): the panel of each turn."""

    @staticmethod
    def find(masses: Ints, cast: Bools, protocol: Protocol) -> "DistinctPanels":
        """The different panels among some.

        `masses`: shape (turns, voters, candidates). `cast`: shape (turns, voters): false for an
        abstention.
        """
        turns, n, m = masses.shape
        cells = masses.reshape(-1, m)
        rows = np.flatnonzero(cast.reshape(-1))
        numbers = np.full(turns * n, -1, dtype=np.int64)
        first, numbers[rows] = distinct_rows(cells[rows].T)
        ballots = tuple(tuple(ballot) for ballot in cells[rows][first].tolist())
        panels = sorted_rows(numbers.reshape(turns, n))
        first, of = distinct_rows(panels.T) if n else (np.zeros(1, dtype=np.int64), 0 * cells[:, 0])
        return DistinctPanels(panels[first], ballots, protocol, m, of)

    def union(self, others: Sequence["DistinctPanels"]) -> tuple["DistinctPanels", list[Ints]]:
        """The different panels of several, and for each of them, itself first, where its own are.

        `others`: of the same size and protocol.
        """
        numbers: dict[Masses, int] = {}
        rows = []
        for one in (self, *others):
            of = [numbers.setdefault(ballot, len(numbers)) for ballot in one.ballots]
            rows.append(sorted_rows(np.array([*of, -1], dtype=np.int64)[one.panels]))
        every = np.concatenate(rows)
        first, place = distinct_rows(every.T)
        joint = DistinctPanels(every[first], tuple(numbers), self.protocol, self.m, place)
        ends = np.cumsum([len(part) for part in rows])[:-1]
        return joint, np.split(place, ends)
