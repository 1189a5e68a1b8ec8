"""Turns of one shape as arrays: voters by candidates, thousands of turns at a time.

Most turns of a table have the same voters and candidates in all their votes. Those become arrays;
any other turn is recounted on its own, from `analysis.profiles`.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from analysis.folds import fold, summed
from analysis.rounds import Bools, Ints, Rounds, Votes
from tutorsim.types import PROTOCOLS, Protocol

__all__ = ["ABSTAINED", "TurnArrays", "arrays_of", "together"]

ABSTAINED: Final = -1
"""In every cell of a voter who abstained."""


class TurnArrays(NamedTuple):
    """Turns of one protocol, one set of voters and one of candidates."""

    protocol: Protocol
    candidates: tuple[str, ...]
    """In the role-priority order."""
    voters: tuple[str, ...]
    final: Ints
    """Shape (turns, voters, candidates): masses, or `ABSTAINED`, in integers of any size."""
    initial: Ints | None
    """The first vote; `None` where these turns held none."""
    tie: Ints
    """The tie round: 0 for those not tied; `ABSTAINED` everywhere where none was held."""
    held: Bools
    """Whether a tie round was held."""

    @property
    def shape(self) -> tuple[Protocol, tuple[str, ...], tuple[str, ...], bool]:
        """What turns have in common that can be in the same arrays."""
        return self.protocol, self.candidates, self.voters, self.initial is None


def together(parts: Sequence[TurnArrays]) -> TurnArrays:
    """The turns of several arrays of one shape, at least one."""
    first = [part.initial for part in parts if part.initial is not None]
    return parts[0]._replace(
        final=np.concatenate([part.final for part in parts]),
        initial=np.concatenate(first) if first else None,
        tie=np.concatenate([part.tie for part in parts]),
        held=np.concatenate([part.held for part in parts]),
    )


def arrays_of(
    votes: Votes, sound: Bools, wanted: Callable[[TurnArrays], bool] = lambda _: True
) -> tuple[list[TurnArrays], Bools]:
    """The turns that can be arrays, and which turns those are.

    Args:
        votes: Read under the role-priority order.
        sound: The turns whose ballots are all valid: `analysis.plainballots.sound_turns`.
        wanted: Whether turns of one shape are wanted as arrays.
    """
    initial, tie = (_places(rounds, votes) for rounds in (votes.initial, votes.tie))
    protocol = votes.turns.get_column("protocol").to_numpy()
    found: list[TurnArrays] = []
    done = np.zeros(len(sound), dtype=np.bool_)
    for final in votes.final:
        for own in _alike(final, np.flatnonzero(sound[final.turn])):
            part = final.of(own)
            for name in PROTOCOLS:
                for rows, first in _with_first(part, protocol == name, initial):
                    made, kept = _made(name, part.of(rows), first, tie, votes)
                    if kept.any() and wanted(made):
                        found.append(made)
                        done[part.turn[rows][kept]] = True
    return found, done


class _Found(NamedTuple):
    """Where the rounds of one stage are: for each turn its part, -1 for none, and row in it."""

    parts: Sequence[Rounds]
    part: Ints
    row: Ints


def _places(parts: Sequence[Rounds], votes: Votes) -> _Found:
    part, row = np.full((2, votes.turns.height), -1, dtype=np.int64)
    for number, rounds in enumerate(parts):
        part[rounds.turn] = number
        row[rounds.turn] = np.arange(len(rounds.turn))
    return _Found(parts, part, row)


def _alike(rounds: Rounds, rows: Ints) -> Iterator[Ints]:
    """Rows with the same voters and the same candidates."""
    if not len(rows):
        return
    who = np.concatenate([rounds.voters[rows], rounds.candidates[rows]], axis=1)
    if (who == who[:1]).all():
        yield rows
        return
    distinct, which = np.unique(who, axis=0, return_inverse=True)
    for number in range(len(distinct)):
        yield rows[which.ravel() == number]


def _with_first(final: Rounds, own: Bools, initial: _Found) -> Iterator[tuple[Ints, Rounds | None]]:
    """Rows of one protocol without a first vote, and those whose first vote was of the same."""
    mine = np.flatnonzero(own[final.turn])
    part = initial.part[final.turn[mine]]
    if (part < 0).any():
        yield mine[part < 0], None
    for number, rounds in enumerate(initial.parts):
        rows = mine[part == number]
        if len(rows) and rounds.masses.shape[1:] == final.masses.shape[1:]:
            first = rounds.of(initial.row[final.turn[rows]])
            same = _same(first.voters, final.voters) & _same(first.candidates, final.candidates)
            if same.any():
                yield rows[same], first.of(same)


def _same(one: Ints, other: Ints) -> Bools:
    return fold(np.logical_and, one == other[:1], 1)


def _made(
    protocol: Protocol, final: Rounds, first: Rounds | None, tie: _Found, votes: Votes
) -> tuple[TurnArrays, Bools]:
    """Arrays of the turns whose tie round, if any, was of the same voters; and which those are."""
    again, held, fits = _tie_rounds(final, tie, protocol)
    made = TurnArrays(
        protocol=protocol,
        candidates=tuple(votes.order[c] for c in final.candidates[0].tolist()),
        voters=tuple(votes.voters[v] for v in final.voters[0].tolist()),
        final=_masses(final, protocol)[fits],
        initial=None if first is None else _masses(first, protocol)[fits],
        tie=again[fits],
        held=held[fits],
    )
    return made, fits


def _masses(rounds: Rounds, protocol: Protocol) -> Ints:
    """Masses with abstentions marked in every cell; giving nothing is one where all must give."""
    cast = rounds.cast
    if protocol in ("simple", "cumulative"):
        cast = cast & (summed(rounds.masses, 2) > 0)
    masses = rounds.masses.astype(_kind(rounds.masses))
    return (
        masses if cast.all() else np.where(cast[:, :, None], masses, masses.dtype.type(ABSTAINED))
    )


def _kind(masses: Ints) -> type[np.signedinteger[Any]]:
    """The shortest integers that hold some masses."""
    most = int(masses.max(initial=0))
    return next(kind for kind in (np.int8, np.int16, np.int64) if most <= np.iinfo(kind).max)


def _tie_rounds(final: Rounds, tie: _Found, protocol: Protocol) -> tuple[Ints, Bools, Bools]:
    """Masses of the tie rounds over all candidates, where one was held, and who fits."""
    kind = np.result_type(np.int8, *(_kind(rounds.masses) for rounds in tie.parts))
    masses = np.full(final.masses.shape, ABSTAINED, dtype=kind)
    part = tie.part[final.turn]
    fits = np.ones(len(part), dtype=np.bool_)
    place = np.zeros(int(final.candidates.max(initial=0)) + 1, dtype=np.int64)
    place[final.candidates[0]] = np.arange(final.candidates.shape[1])
    for number, rounds in enumerate(tie.parts):
        rows = np.flatnonzero(part == number)
        some = rounds.of(tie.row[final.turn[rows]])
        if not len(rows) or some.voters.shape[1] != final.voters.shape[1]:
            fits[rows] = False
            continue
        fits[rows] = _same(some.voters, final.voters)
        cast = _masses(some, protocol)
        whole = np.where(fold(np.logical_and, cast == ABSTAINED, 2)[:, :, None], ABSTAINED, 0)
        whole = np.repeat(whole, final.candidates.shape[1], axis=2)
        at = np.broadcast_to(place[some.candidates][:, None, :], cast.shape)
        np.put_along_axis(whole, at, cast, axis=2)
        masses[rows] = whole
    return masses, part >= 0, fits
