"""Tables of ballots that need no reader's help: seen over arrays, without looking at single rows.

`analysis.ballotcheck` finds what is wrong with a table and where, and repairs what is no mistake,
ballot by ballot. Most tables have nothing of either kind, and to see that takes a fraction of the
time.
"""

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np
import polars as pl

from analysis.profiles import TURN
from analysis.rounds import Bools, Ints, Rounds, Votes, read_votes
from tutorsim.types import CUMULATIVE_BUDGET, PROTOCOLS, Protocol

__all__ = ["plain_budget"]

_RICH: Final = ("points", "rank", "approved")
"""Columns that say of a ballot what its masses do not."""


def plain_budget(frame: pl.DataFrame, budget: int | None) -> int | None:
    """The budget of a table in which every row belongs to a valid ballot; `None` for any other.

    Valid are whole ballots of the four protocols, none of them an abstention, by voters who vote
    once in a round, in turns that have one protocol and a final vote, and a tie round among
    exactly those who were tied, if any.

    Args:
        frame: From `analysis.ballotfiles.read_columns`.
        budget: As for `analysis.ballotcheck.check_ballots`.
    """
    if any(frame.get_column(name).null_count() < frame.height for name in _RICH):
        return None
    status = frame.get_column("ballot_status")
    if status.null_count() < frame.height and not status.eq_missing("valid").all():
        return None
    lowest = frame.select(pl.min_horizontal(pl.min("mass"), pl.min("turn"))).item()
    if frame.get_column("mass").null_count() or lowest is None or lowest < 0:
        return None
    votes = read_votes(frame)
    rounds = (*votes.initial, *votes.final, *votes.tie)
    if sum(part.masses.size for part in rounds) != frame.height:
        return None
    if not _one_protocol_a_turn(votes.turns) or not all(part.whole.all() for part in rounds):
        return None
    return _budget(votes, rounds, budget) if _ties_fit(votes) else None


def _one_protocol_a_turn(turns: pl.DataFrame) -> bool:
    known = set(turns.get_column("protocol").unique()) <= set(PROTOCOLS)
    return known and not turns.select(TURN[:2]).is_duplicated().any()


def _budget(votes: Votes, rounds: Sequence[Rounds], budget: int | None) -> int | None:
    """What all cumulative ballots sum to, if every ballot of the table is valid."""
    protocol = votes.turns.get_column("protocol")
    of: dict[Protocol, Bools] = {p: (protocol == p).to_numpy() for p in PROTOCOLS}
    valid = all(_valid(part, of) for part in rounds)
    points = [part.of(of["cumulative"][part.turn]).masses.sum(axis=2) for part in rounds]
    sums = {int(total) for one in points for total in np.unique(one)}
    found = budget or next(iter(sums), CUMULATIVE_BUDGET)
    return found if valid and found > 0 and sums <= {found} else None


def _valid(part: Rounds, of: Mapping[Protocol, Bools]) -> bool:
    """Whether the ballots are what their protocol asks for; sums of points are not looked at."""
    m = part.masses.shape[2]
    simple = part.masses[of["simple"][part.turn]]
    ranked = part.masses[of["ranked"][part.turn]]
    approval = part.masses[of["approval"][part.turn]]
    return bool(
        (simple.sum(axis=2) == 1).all()
        and (np.sort(ranked, axis=2) == np.arange(m)).all()
        and approval.max(initial=0) <= 1
    )


def _ties_fit(votes: Votes) -> bool:
    """Whether each tie round is among exactly those who were tied before it."""
    tied = _pairs(votes.final, leading=True)
    return all(
        np.isin(turn, tied[m][0]).all() and _same(turn, places, *tied[m])
        for m, (turn, places) in _pairs(votes.tie, leading=False).items()
        if m in tied or len(turn) == 0
    ) and set(_pairs(votes.tie, leading=False)) <= set(tied)


def _same(turn: Ints, places: Ints, known: Ints, among: Ints) -> bool:
    order = np.argsort(known)
    at = order[np.searchsorted(known, turn, sorter=order)]
    return bool((among[at] == places).all())


def _pairs(rounds: Sequence[Rounds], *, leading: bool) -> dict[int, tuple[Ints, Ints]]:
    """Number of candidates → turns with a tie of so many, and who they are."""
    found: dict[int, list[tuple[Ints, Ints]]] = {}
    for part in rounds:
        totals = part.totals
        who = totals == totals.max(axis=1, keepdims=True) if leading else totals == totals
        size = who.sum(axis=1)
        for m in np.unique(size).tolist():
            rows = size == m
            places = part.candidates[rows][who[rows]].reshape(-1, m)
            if m > 1 or not leading:
                found.setdefault(m, []).append((part.turn[rows], places))
    return {
        m: (np.concatenate([t for t, _ in parts]), np.concatenate([p for _, p in parts]))
        for m, parts in found.items()
    }
