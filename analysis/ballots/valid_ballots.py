"""Which turns of a whole table hold valid ballots alone: the formats' rules, over arrays."""

from dataclasses import replace
from itertools import chain
from typing import Final

import numpy as np
import polars as pl

from tutorsim.analysis.ballots.ballot_formats import FORMATS, MUST_GIVE
from tutorsim.analysis.ballots.table_to_arrays import Piece, VoteReader
from tutorsim.analysis.ballots.vote_arrays import RICH, Rounds, Votes, count, fold, summed
from tutorsim.analysis.statistics.arrays import Bools, Ints
from tutorsim.vocabularies import CUMULATIVE_BUDGET, PROTOCOLS

_LARGEST: Final = 10**9


def plain_budget(frame: pl.DataFrame, budget: int | None) -> int | None:
    """The budget of a table in which every row belongs to a valid ballot; `None` for any other.

    Valid are whole ballots of the four protocols, none of them an abstention, by voters who vote
    once in a round, in turns that have one protocol and a final vote, and a tie round among
    exactly those who were tied, if any.

    Args:
        frame: From `analysis.ballots.column_types.read_columns`.
        budget: As for `analysis.ballots.ballot_checks.check_ballots`.
    """
    status = frame.get_column("ballot_status")
    if status.null_count() < frame.height and not status.eq_missing("valid").all():
        return None
    if frame.get_column("mass").null_count():
        return None
    piece = VoteReader().read(frame)
    votes = piece.votes
    if (piece.turn < 0).any() or votes.turns.select("episode_id", "turn").is_duplicated().any():
        return None
    points = budget or first_budget(votes) or CUMULATIVE_BUDGET
    sound = sound_turns(frame, piece, points)
    voted = all(part.cast.all() for rounds in without_empty(votes).stages for part in rounds)
    return points if points > 0 and sound.all() and voted else None


def first_budget(votes: Votes) -> int | None:
    """What the first cumulative ballot with points sums to; `None` without any."""
    own = (votes.turns.get_column("protocol") == "cumulative").to_numpy()
    for part in (*votes.final, *votes.initial, *votes.tie):
        sums = part.of(own[part.turn]).masses.sum(axis=2).ravel()
        if sums.any():
            return int(sums[sums > 0][0])
    return None


def sound_turns(frame: pl.DataFrame, piece: Piece, budget: int) -> Bools:
    """The turns whose every row belongs to a valid ballot or an abstention.

    Args:
        frame: The rows that the piece was read from.
        piece: The same rows as arrays.
        budget: Points of a cumulative ballot.
    """
    votes, turn = piece.votes, piece.turn
    sound = (votes.turns.get_column("protocol").is_in(PROTOCOLS)).to_numpy()
    sound &= np.bincount(turn[turn >= 0], minlength=len(sound)) == _cells(votes)
    sound[turn[_odd_rows(frame) & (turn >= 0)]] = False
    for part in chain(*votes.stages):
        sound[part.turn[~(part.whole & _valid(part, votes, budget))]] = False
    return np.asarray(sound & _ties_fit(votes))


def without_empty(votes: Votes) -> Votes:
    """The votes with ballots that give nothing as abstentions, where a ballot has to give."""
    own = votes.turns.get_column("protocol").is_in(MUST_GIVE).to_numpy()

    def marked(part: Rounds) -> Rounds:
        return replace(
            part, cast=part.cast & ((summed(part.masses, 2) > 0) | ~own[part.turn][:, None])
        )

    initial, final, tie = (tuple(map(marked, rounds)) for rounds in votes.stages)
    return replace(votes, initial=initial, final=final, tie=tie)


def _cells(votes: Votes) -> Ints:
    """Cells of each turn in the arrays."""
    cells = np.zeros(votes.turns.height, dtype=np.int64)
    for part in chain(*votes.stages):
        cells[part.turn] += part.masses.shape[1] * part.masses.shape[2]  # one round of a turn
    return cells


def _odd_rows(frame: pl.DataFrame) -> Bools:
    """Rows of rich ballots, whose status contradicts their mass, or whose numbers are too large."""
    low, high = pl.min_horizontal("mass", "turn") < 0, pl.max_horizontal("mass", "turn") > _LARGEST
    odd = low | high
    for name in RICH:
        if name in frame.columns and frame.get_column(name).null_count() < frame.height:
            odd |= pl.col(name).is_not_null()
    if "ballot_status" in frame.columns:
        status, mass = pl.col("ballot_status").cast(pl.String), pl.col("mass")
        cast = status.is_in(["valid", "repaired"]) | status.is_null()
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
