"""From a ballots table to arrays: who voted in which round, and what; in batches of whole turns.

Which turns hold valid ballots alone is asked of the arrays, by the formats' rules.
"""

from collections.abc import Sequence
from dataclasses import replace
from itertools import chain
from typing import Any, Final, NamedTuple

import numpy as np
import polars as pl

from tutorsim.analysis.ballots.names_and_properties_of_ballot_formats import (
    FORMATS,
    MUST_GIVE,
    WITH_BUDGET,
    leaving_out,
)
from tutorsim.analysis.ballots.vote_arrays_and_profiles import (
    RICH,
    STAGES,
    TURN,
    Place,
    Rounds,
    Votes,
    count,
    fitting,
    fold,
    joined,
    standing_order,
    summed,
)
from tutorsim.analysis.statistics.array_types import Bools, Ints
from tutorsim.vocabularies import CUMULATIVE_BUDGET, PROTOCOLS


def changes(name: str) -> pl.Expr:
    """Whether a row says something else in a column than the row before it."""
    return pl.col(name).ne_missing(pl.col(name).shift())


def turn_starts(frame: pl.DataFrame) -> Bools:
    """The rows where a turn begins; the first row among them."""
    found = frame.select(new=pl.any_horizontal(map(changes, TURN)))
    new = found.get_column("new").to_numpy(writable=True)
    new[:1] = True
    return np.asarray(new)


# --- Table to arrays -----------------------------------------------------------------------------

_LARGEST: Final = 2**63 - 1
_FINAL: Final = list(STAGES.values()).index("vote_final")
_NO_LABEL: Final = ""


class Piece(NamedTuple):
    """Some whole turns of a table."""

    votes: Votes
    """Labels are numbered as they first appeared, in `joined` ones by name."""
    turn: Ints
    """The turn of each row of the table; -1 where it has no final ballots."""


class VoteReader:
    """Reads the pieces of a table: each name has one number in all of them."""

    def __init__(
        self, fallback_order: Sequence[str] | None = None, voters: Sequence[str] = ()
    ) -> None:
        self._names: dict[str, tuple[str, ...]] = {
            "stage": (*STAGES.values(), *STAGES),
            "candidate": tuple(fallback_order or ()),
            "voter": tuple(voters),
            "label": (_NO_LABEL,),
        }

    def learn(self, ballots: pl.DataFrame) -> None:
        """Number the names of a piece: new ones in the order of their first appearance."""
        for name, known in self._names.items():
            if name in ballots.columns:
                found = ballots.get_column(name).drop_nulls().unique(maintain_order=True)
                self._names[name] = tuple(dict.fromkeys((*known, *found.cast(pl.String))))

    def read(self, ballots: pl.DataFrame) -> Piece:
        """The rounds of a piece, which holds whole turns; its stages are known."""
        found = self.read_known(ballots)
        if found is not None:
            return found
        self.learn(ballots)
        return self.read(ballots)

    def read_known(self, ballots: pl.DataFrame) -> Piece | None:
        """The votes of rows; `None` where a name is new: so several pieces are read at a time."""
        labelled = "label" in ballots.columns and ballots["label"].count() > 0
        named = ("stage", "candidate", "voter", *["label"] * labelled)
        names = {name: self._names[name] for name in named}
        numbers = {name: _numbers(ballots.get_column(name), of) for name, of in names.items()}
        held: dict[str, Any] = {name: found for name, found in numbers.items() if found is not None}
        if len(held) < len(names):
            return None
        starts = turn_starts(ballots)
        shown = [name for name in ("episode_id", *Place._fields) if name in ballots.columns]
        first = ballots.select(shown).filter(starts)
        episodes = first.unique("episode_id", keep="first", maintain_order=True)
        turns, turn = _turns(ballots, starts)
        held |= {"turn": turn, "stage": held["stage"] % len(STAGES)}
        held |= {"label": held["label"] - 1} if labelled else {}  # -1 where a row has none
        sizes = {"turn": turns.height, "stage": len(STAGES)}
        sizes |= {name: len(names[name]) for name in ("voter", "candidate")}
        kept = _sorted([held[name] for name in sizes], [*sizes.values()])
        column = ballots.get_column("mass")
        mass = column.fill_null(0).cast(pl.Int64).to_numpy()
        largest = max(int(mass.max(initial=0)), -int(mass.min(initial=0)), sizes["candidate"])
        held["mass"] = mass.astype(fitting(2 * largest))  # Borda points of rankings count twice
        held["absent"] = column.is_null().to_numpy()
        if "ballot_status" in ballots.columns and ballots["ballot_status"].count() > 0:
            found = (ballots.get_column("ballot_status") == "repaired").fill_null(False)
            held |= {"repaired": found.to_numpy()} if found.any() else {}
        if kept is not None:
            held = {name: cells[kept] for name, cells in held.items()}
        ranked, scored = (
            turns.get_column("protocol").is_in(leaving_out(where)).to_numpy()
            for where in ("last", "anywhere")
        )
        cells = _Cells(ranked, scored, **held)
        (initial, final, tie), place, decided = _stages(cells, turns.height, kept)
        order, voters, labels = names["candidate"], names["voter"], self._names["label"][1:]
        votes = Votes(turns[decided], order, voters, labels, initial, final, tie, episodes)
        return Piece(votes, place[turn])


def read_votes(ballots: pl.DataFrame, *, fallback_order: Sequence[str] | None = None) -> Votes:
    """The rounds of a ballots table.

    A round whose ballots have not all as many candidates is left out; checked tables have none.

    `ballots`: the long ballots table; `initial`, `final` and `tie` also name the stages.
    `fallback_order`: the fallback order; candidates outside it stand behind it by name.
    """
    order = standing_order(ballots, fallback_order)
    voters = ballots.get_column("voter").cast(pl.String).drop_nulls().unique().sort().to_list()
    return joined([VoteReader(order, voters).read(ballots).votes])


def _numbers(column: pl.Series, names: Sequence[str]) -> Ints | None:
    """The place of each cell among some names; `None` where one is not among them."""
    cells = column.fill_null(_NO_LABEL) if column.name == "label" else column
    found = cells.cast(pl.Enum(names), strict=False).to_physical()
    return None if found.null_count() else found.to_numpy().astype(fitting(len(names)))


def _turns(rows: pl.DataFrame, starts: Bools) -> tuple[pl.DataFrame, Ints]:
    """The turns, and the number of each row's turn; a turn may have several runs of rows."""
    heads = rows.select(TURN).filter(starts)
    runs = heads.with_columns(pl.col("episode_id", "protocol").cast(pl.String))
    turns = runs.unique(maintain_order=True)
    number = np.arange(runs.height, dtype=fitting(runs.height))
    if turns.height < runs.height:
        numbered = turns.with_row_index("number")
        joined = runs.join(numbered, on=TURN, how="left", maintain_order="left", nulls_equal=True)
        number = joined.get_column("number").to_numpy().astype(number.dtype)
    return turns, np.repeat(number, np.diff(np.flatnonzero(starts), append=rows.height))


def _sorted(keys: Sequence[Ints], sizes: Sequence[int]) -> Ints | None:
    """The order of rows by turn, stage, voter and candidate; `None` where they stand in it."""
    whole = 1
    for size in sizes:
        whole *= max(size, 1)
    if whole > _LARGEST:
        return np.asarray(np.lexsort(keys[::-1]), dtype=np.int64)
    packed = keys[0].astype(fitting(whole))
    for key, size in zip(keys[1:], sizes[1:], strict=True):
        packed *= size
        packed += key
    if bool((packed[1:] > packed[:-1]).all()):
        return None
    return np.argsort(packed, kind="stable")


class _Cells(NamedTuple):
    """Rows of the table, sorted by turn, stage, voter and candidate."""

    ranked: Bools
    """Whether each turn's ballots are rankings."""
    scored: Bools
    """Whether they are scores."""
    turn: Ints
    stage: Ints
    voter: Ints
    candidate: Ints
    mass: Ints
    absent: Bools
    repaired: Bools | None = None
    label: Ints | None = None


def _stages(
    cells: _Cells, turns: int, rows: Ints | None
) -> tuple[list[tuple[Rounds, ...]], Ints, Ints]:
    """The rounds of each stage, those of one size together; the place of each turn by its final
    ballots, -1 without them; and the turns by place."""
    new = _differs(cells.turn) | _differs(cells.stage)
    starts, ballots = np.flatnonzero(new), np.flatnonzero(new | _differs(cells.voter))
    turn, stage = cells.turn[starts], cells.stage[starts]
    n = np.diff(np.searchsorted(ballots, starts), append=len(ballots))
    size = np.diff(starts, append=len(cells.turn))
    first = starts if rows is None else np.minimum.reduceat(rows, starts)
    final = stage == _FINAL
    decided = turn[final][np.argsort(first[final], kind="stable")]
    place = np.full(turns, -1, dtype=fitting(turns))
    place[decided] = np.arange(len(decided))
    shape = n * (int(size.max(initial=0)) + 1) + size
    whole = (place[turn] >= 0) & (size % n == 0)
    own = (whole & (stage == i) for i in range(len(STAGES)))
    alike = ([which & (shape == one) for one in np.unique(shape[which])] for which in own)
    found = [
        tuple(_rounds(cells, starts[k], int(n[k][0]), int(size[k][0]), place) for k in several)
        for several in alike
    ]
    return found, place, decided


def _rounds(cells: _Cells, starts: Ints, n: int, size: int, place: Ints) -> Rounds:
    m = size // n
    rows = starts[:, None] + np.arange(size)
    voters, candidates = cells.voter[rows], cells.candidate[rows]
    absent = cells.absent[rows].reshape(-1, n, m)
    silent = fold(np.logical_and, absent, 2)
    masses = cells.mass[rows].reshape(-1, n, m)
    partly = absent & ~silent[:, :, None]
    leaves = fold(np.logical_or, fold(np.logical_or, partly, 2), 1)
    turns = cells.turn[starts]
    some = np.flatnonzero(leaves & cells.ranked[turns])
    shared = count(partly[some], 2)[:, :, None] - 1  # Borda points twice, the rest in equal parts
    masses[some] = np.where(partly[some], shared, 2 * masses[some])
    by_mean = leaves & cells.scored[turns]
    masses[silent] = 0
    whole = _whole(voters, candidates, n) & ~leaves
    repaired = None if cells.repaired is None else cells.repaired[rows].reshape(-1, n, m)
    if repaired is not None:
        whole &= (repaired == repaired[:, :, :1]).all(axis=(1, 2))
    return Rounds(
        turn=place[turns].astype(np.int64),
        voters=voters[:, ::m].copy(),
        candidates=candidates[:, :m].copy(),
        masses=masses,
        cast=np.asarray(~silent),
        whole=whole,
        labels=None if cells.label is None else cells.label[rows].reshape(-1, n, m),
        left_out=partly if partly.any() else None,
        by_mean=by_mean if by_mean.any() else None,
        repaired=None if repaired is None else repaired[:, :, 0] & ~silent,
    )


def _differs(column: Ints) -> Bools:
    new = np.ones(len(column), dtype=np.bool_)
    new[1:] = column[1:] != column[:-1]
    return new


def _whole(voter: Ints, candidate: Ints, n: int) -> Bools:
    """Row by row, whether n blocks of cells are one voter's each, over the same candidates."""
    voters, candidates = (cells.reshape(len(cells), n, -1) for cells in (voter, candidate))
    rising = fold(np.logical_and, candidates[:, 0, 1:] > candidates[:, 0, :-1], 1)
    alike = fold(np.logical_and, fold(np.logical_and, candidates == candidates[:, :1], 2), 1)
    own = fold(np.logical_and, voters[:, :, 0] == voters[:, :, -1], 1)  # they are sorted
    return np.asarray(rising & alike & own)


# --- Valid ballots of a whole table --------------------------------------------------------------

_LARGEST_NUMBER: Final = 10**9
"""Largest mass and largest turn number."""


def plain_budget(frame: pl.DataFrame, budget: int | None) -> int | None:
    """The budget of a table in which every row belongs to a valid ballot; `None` for any other.

    Valid are whole ballots of the four protocols, none of them an abstention, by voters who vote
    once in a round, in turns that have one protocol and a final vote, and a tie round among
    exactly those who were tied, if any.

    `frame`: from `typed_columns`.
    """
    status = frame.get_column("ballot_status")
    if status.null_count() < frame.height and not status.eq_missing("valid").all():
        return None
    known = frame.get_column("stage").is_in([*STAGES.values(), *STAGES])
    if frame.get_column("mass").null_count() or not known.all():
        return None
    piece = VoteReader().read(frame)
    votes = piece.votes
    if (piece.turn < 0).any() or votes.turns.select("episode_id", "turn").is_duplicated().any():
        return None
    own = votes.turns.get_column("protocol").is_in(WITH_BUDGET).to_numpy()
    cast = chain(votes.final, votes.initial, votes.tie)
    sums = (summed(part.of(own[part.turn]).masses, 2) for part in cast)
    first = next((int(given[given > 0][0]) for given in sums if given.any()), CUMULATIVE_BUDGET)
    points = budget or first
    sound = sound_turns(frame, piece, points)
    voted = all(part.cast.all() for rounds in without_empty(votes).stages for part in rounds)
    return points if points > 0 and sound.all() and voted else None


def sound_turns(frame: pl.DataFrame, piece: Piece, budget: int) -> Bools:
    """The turns whose every row belongs to a valid ballot or an abstention.

    `piece`: the same rows as arrays.
    """
    votes, turn = piece.votes, piece.turn
    sound = (votes.turns.get_column("protocol").is_in(PROTOCOLS)).to_numpy()
    cells = np.zeros(len(sound), dtype=np.int64)
    for part in chain(*votes.stages):
        cells[part.turn] += part.masses.shape[1] * part.masses.shape[2]  # one round of a turn
    sound &= np.bincount(turn[turn >= 0], minlength=len(sound)) == cells
    odd = turn[_odd_rows(frame)]
    sound[odd[odd >= 0]] = False
    for part in chain(*votes.stages):
        sound[part.turn[~(part.whole & _valid(part, votes, budget))]] = False
    return np.asarray(sound & _ties_fit(votes))


def without_empty(votes: Votes) -> Votes:
    """The votes with ballots that give nothing as abstentions, where a ballot has to give."""
    own = votes.turns.get_column("protocol").is_in(MUST_GIVE).to_numpy()

    def marked(part: Rounds) -> Rounds:
        cast = part.cast & ((summed(part.masses, 2) > 0) | ~own[part.turn][:, None])
        return replace(
            part, cast=cast, repaired=None if part.repaired is None else part.repaired & cast
        )

    return votes.changed(marked)


def _odd_rows(frame: pl.DataFrame) -> Bools:
    """Rows of rich ballots, whose status contradicts their mass, or whose numbers are too large."""
    odd = pl.any_horizontal(~pl.col("mass", "turn").is_between(0, _LARGEST_NUMBER))
    for name in RICH:
        if name in frame.columns and frame.get_column(name).null_count() < frame.height:
            odd |= pl.col(name).is_not_null()
    if "ballot_status" in frame.columns:
        status, mass = pl.col("ballot_status").cast(pl.String), pl.col("mass")
        cast = (status == "valid") | (status == "repaired") | status.is_null()
        fits = cast & mass.is_not_null() | (status == "abstained") & mass.is_null()
        odd |= ~fits.fill_null(False)
    return frame.select(odd.fill_null(False).alias("odd")).get_column("odd").to_numpy()


def _valid(part: Rounds, votes: Votes, budget: int) -> Bools:
    """Shape (R,): every ballot is what its protocol asks for, or an abstention."""
    protocol = votes.turns.get_column("protocol").cast(pl.String)
    found = np.zeros(len(part.turn), dtype=np.bool_)
    for name in PROTOCOLS:
        rows = np.flatnonzero((protocol == name).to_numpy()[part.turn])
        masses, cast = part.masses[rows], part.cast[rows]
        shape = masses.shape
        ballot = FORMATS[name].valid(masses.reshape(-1, shape[2]), budget).reshape(shape[:2])
        if FORMATS[name].must_give:
            ballot |= summed(masses, 2) == 0
        found[rows] = fold(np.logical_and, ballot | ~cast, 1)
    return found


def _ties_fit(votes: Votes) -> Bools:
    """Whether each turn's tie round, if any, is among exactly those who were tied before it."""
    fits = np.ones(votes.turns.height, dtype=np.bool_)
    tied: dict[int, list[tuple[Ints, Ints]]] = {}
    for part in votes.final:
        totals = part.totals
        led = totals == fold(np.maximum, totals, 1)[:, None]
        size = count(led, 1)
        for m in np.unique(size[size > 1]).tolist():
            rows = np.flatnonzero(size == m)
            who = part.candidates[rows][led[rows]].reshape(-1, m)
            tied.setdefault(m, []).append((part.turn[rows], who))
    for part in votes.tie:
        m = part.candidates.shape[1]
        known = np.full((len(fits), m), -1, dtype=np.int64)
        for turns, who in tied.get(m, ()):
            known[turns] = who
        fits[part.turn[fold(np.logical_or, known[part.turn] != part.candidates, 1)]] = False
    return fits
