"""What makes a ballot of each format: one rule, over arrays, over one ballot, over a whole file."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from itertools import chain
from typing import Final, NamedTuple

import numpy as np
import polars as pl

from tutorsim.analysis.ballots.table_to_arrays import Piece, VoteReader
from tutorsim.analysis.ballots.vote_arrays import LEFT_OUT, RICH, Rounds, Votes, count, fold, summed
from tutorsim.analysis.statistics.arrays import Bools, Ints
from tutorsim.vocabularies import CUMULATIVE_BUDGET, PROTOCOLS

# --- Valid ballots -------------------------------------------------------------------------------

MUST_GIVE: Final = ("simple", "cumulative")
"""Protocols under which a ballot that gives nothing is an abstention."""

MAY_LEAVE_OUT: Final = ("ranked", "score")
"""Protocols whose ballots from elsewhere may say nothing of some candidates."""

_BITS: Final = 62
"""Bits of a number that can be told apart."""


class Fault(NamedTuple):
    """What is wrong with a ballot."""

    place: int
    """Position of the candidate to blame; 0 where it is the whole ballot."""
    reason: str
    """A sentence about the ballot of `{voter}`."""


def are_valid(masses: Ints, protocol: str, budget: int) -> Bools:
    """Which ballots are what a protocol asks for.

    Args:
        masses: Shape (ballots, m); none negative, but `LEFT_OUT` in a ranking.
        protocol: One of the four.
        budget: Points of a cumulative ballot.

    Returns:
        Shape (ballots,).
    """
    total, most, m = summed(masses, 1), fold(np.maximum, masses, 1), masses.shape[1]
    match protocol:
        case "simple":
            valid = (total == 1) & (most == 1)
        case "approval":
            valid = most <= 1
        case "cumulative":
            valid = total == budget
        case _:
            valid = most < m
            valid &= _each_once(masses, m)
    return np.asarray(valid)


def _each_once(masses: Ints, m: int) -> Bools:
    """Which rows hold each of m - 1, m - 2, … once, down to 0 or to the last that is named.

    A set of bits is faster than sorting, if it fits.
    """
    unnamed = count(masses < 0, 1)
    if m <= _BITS:
        held = fold(np.bitwise_or, np.where(masses < 0, 0, 1 << np.clip(masses, 0, _BITS)), 1)
        return np.asarray(held == (1 << m) - (1 << unnamed))
    places = np.arange(m)
    expected = np.where(places < unnamed[:, None], LEFT_OUT, places)
    return fold(np.logical_and, np.sort(masses, axis=1) == expected, 1)


def why_not(masses: Sequence[int], protocol: str, budget: int) -> Fault | None:
    """What is wrong with one ballot; `None` where nothing is.

    Args:
        masses: One for each candidate of the vote, as for `are_valid`.
        protocol: One of the four.
        budget: Points of a cumulative ballot.
    """
    match protocol:
        case "simple":
            return _not_simple(masses)
        case "approval":
            return _not_approval(masses)
        case "cumulative":
            return _not_cumulative(masses, budget)
        case _:
            return _not_ranked(masses)


def _not_simple(masses: Sequence[int]) -> Fault | None:
    if sorted(masses)[-1:] == [1] and sum(masses) == 1:
        return None
    return Fault(0, f"the simple ballot of {{voter}} sums to {sum(masses)}, not to one 1")


def _not_approval(masses: Sequence[int]) -> Fault | None:
    place = next((i for i, mass in enumerate(masses) if mass > 1), None)
    if place is None:
        return None
    return Fault(place, f"the approval of {{voter}} has the mass {masses[place]}, not 0 or 1")


def _not_cumulative(masses: Sequence[int], budget: int) -> Fault | None:
    if sum(masses) == budget:
        return None
    return Fault(0, f"the points of {{voter}} sum to {sum(masses)}, not to {budget}")


def _not_ranked(masses: Sequence[int]) -> Fault | None:
    top, named = len(masses) - 1, [mass for mass in masses if mass != LEFT_OUT]
    if Counter(named) == Counter(range(top, top - len(named), -1)):
        return None
    last = len(masses) - len(named)
    return Fault(
        0, f"the ranking of {{voter}} has a hole: its masses are not {top} to {last}, each once"
    )


# --- Bulk validation -----------------------------------------------------------------------------

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
        ballot = are_valid(masses.reshape(-1, shape[2]), name, budget).reshape(shape[:2])
        if name in MUST_GIVE:
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
