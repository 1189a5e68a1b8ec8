"""Ballots as their voters saw them: mass by label, and which label stood for the own proposal."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import numpy as np

from tutorsim.analysis.ballots.recount_source import Source
from tutorsim.analysis.ballots.short_axis_sums import fold, summed
from tutorsim.analysis.ballots.vote_arrays import Bools, Ints, Rounds, Votes, own_candidates
from tutorsim.analysis.metrics.turn_table import turn_table
from tutorsim.analysis.statistics.intervals_and_tests import NotEstimable
from tutorsim.vocabularies import BallotFormat

__all__ = ["Labelled", "labelled_ballots"]

_LARGEST_PANEL: Final = 8


@dataclass(frozen=True, eq=False)
class Labelled:
    """B ballots with mass under one protocol, as their voters saw the labels."""

    turn: Ints
    by_label: Ints
    """Shape (B, m): mass by label, labels in order."""
    own: Ints
    """Shape (B,): which label stood for the voter's own proposal; -1 where it made none."""
    labels: tuple[str, ...]
    """In order; empty where the voters were shown different ones."""


def labelled_ballots(
    source: Source, stage: str, *, own: bool
) -> list[tuple[BallotFormat, Labelled | NotEstimable]]:
    """Ballots with mass by protocol, or why they tell nothing.

    Args:
        source: Where the ballots are.
        stage: Which vote.
        own: Only ballots of voters that are candidates.
    """
    every = _labelled(source, stage, own=False)
    if not own or all(_by_candidates(found) for _, found in every):
        return every
    return _labelled(source, stage, own=True)


def _by_candidates(found: Labelled | NotEstimable) -> bool:
    return isinstance(found, Labelled) and bool((found.own >= 0).all())


@lru_cache(maxsize=2)
def _labelled(
    source: Source, stage: str, *, own: bool
) -> list[tuple[BallotFormat, Labelled | NotEstimable]]:
    table = turn_table(source)
    stages = {"vote_initial": table.votes.initial, "vote_final": table.votes.final}
    rounds = stages.get(stage, table.votes.tie)
    return [
        (protocol, _cast(protocol, table.votes, [r.of(turns[r.turn]) for r in rounds], own=own))
        for protocol, turns in table.protocols()
        if any(turns[r.turn].any() for r in rounds)
    ]


def _cast(
    protocol: BallotFormat, votes: Votes, rounds: Sequence[Rounds], *, own: bool
) -> Labelled | NotEstimable:
    kept = [(part, rows) for part in rounds if (rows := _counted(part, votes, own=own)).any()]
    if not kept:
        who = " by voters that are candidates" if own else ""
        return NotEstimable(f"{protocol}: no ballots with mass{who}")
    if any(part.labels is None or (part.labels[rows] < 0).any() for part, rows in kept):
        return NotEstimable(f"{protocol}: the labels shown to the voters are not known")
    sizes = sorted({part.candidates.shape[1] for part, _ in kept})
    if len(sizes) > 1 or sizes[0] > _LARGEST_PANEL:
        return NotEstimable(f"{protocol}: panels of {', '.join(map(str, sizes))} candidates")
    parts = [_by_label(part, rows, votes) for part, rows in kept]
    shown = {part.labels for part in parts}
    if () in shown or len(shown) > 1:
        return NotEstimable(f"{protocol}: the voters were shown different labels")
    return Labelled(
        turn=np.concatenate([part.turn for part in parts]),
        by_label=np.concatenate([part.by_label for part in parts]),
        own=np.concatenate([part.own for part in parts]),
        labels=parts[0].labels,
    )


def _counted(part: Rounds, votes: Votes, *, own: bool) -> Bools:
    """Shape (R, n): ballots with mass, and, where asked, of voters that are candidates."""
    found = part.cast & (summed(part.masses, 2) > 0)
    return np.asarray(found & (_seats(part, votes) >= 0)) if own else found


def _seats(part: Rounds, votes: Votes) -> Ints:
    """Shape (R, n): the voter's position among the candidates; -1 where it is none of them."""
    same = own_candidates(part, votes.order, votes.voters, votes.turns, votes.own)
    return np.where(fold(np.logical_or, same, 2), same.argmax(axis=2), -1)


def _by_label(part: Rounds, rows: Bools, votes: Votes) -> Labelled:
    assert part.labels is not None
    labels, masses = part.labels[rows], part.masses[rows]
    order = np.argsort(labels, axis=1)
    shown = np.take_along_axis(labels, order, axis=1)
    seat = _seats(part, votes)[rows]
    own = np.where(seat < 0, -1, np.argsort(order, axis=1)[np.arange(len(seat)), seat])
    same = bool((shown == shown[:1]).all())
    return Labelled(
        turn=np.repeat(part.turn, rows.sum(axis=1)),
        by_label=np.take_along_axis(masses, order, axis=1),
        own=own,
        labels=tuple(votes.labels[i] for i in shown[0]) if same else (),
    )
