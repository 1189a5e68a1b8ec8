"""Who won each turn, and who would have won with votes changed: `decide` in arrays.

Turns of one size are decided together, whatever their protocol: the largest total wins, a tie
goes to the tie round if one was held, and what is still tied to the fallback order.

    [final] = votes.final
    turns = decide_turns(final, votes.tie)
    turns.winner                             # shape (R,): positions of candidates
    turns.changed(totals, turns.again).led   # who would lead with other totals, shape (R, m)

`tutorsim.ballot_reading_and_decisions.decide` is the definition, and `tests.reference.cases`
decides turn by turn what property tests hold this to.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from tutorsim.analysis.ballots.vote_arrays_and_profiles import Rounds, count, first_of, fold, summed
from tutorsim.analysis.statistics.array_types import Bools, Ints


@dataclass(frozen=True, eq=False)
class Outcomes:
    """How R turns over m candidates end."""

    led: Bools
    """Shape (R, m): who leads the final vote."""
    undecided: Bools
    """Shape (R, m): who is left after counting, a tie round included where it applies."""
    standing: Bools
    """Shape (R, m): who may have won: several only where a tie was never put to a tie round."""

    @property
    def winner(self) -> Ints:
        """Shape (R,): the winner's position among the turn's candidates."""
        return first_of(self.undecided)


@dataclass(frozen=True, eq=False)
class DecidedTurns(Outcomes):
    """Decided turns of one size: R turns, n voters, m candidates in the fallback order.

    Counting and the order decide each of them, as logged.
    """

    final: Rounds
    again: Ints = field(repr=False)
    """Shape (R, m): totals of the tie round, 0 where none was held."""
    again_by: Ints = field(repr=False)
    """Shape (R, n, m): what each final voter cast in the tie round."""
    held: Bools = field(repr=False)
    """Shape (R,): a tie round is in the table."""
    _without: dict[int, Outcomes] = field(default_factory=dict, repr=False)

    def changed(self, final: Ints, again: Ints) -> Outcomes:
        """The outcomes with other totals.

        A tied set that the log put to a tie round is decided by that round, changed likewise; one
        that the log itself left to the order goes to the order. Any other tie stays open.

        `final`: totals of the final vote, shape (R, m). `again`: totals of the tie round, shape (R,
        m).
        """
        led = largest(final)
        as_logged = fold(np.logical_and, led == self.led, 1)
        put_again = as_logged & self.held & (count(led, 1) > 1)
        undecided = np.where(put_again[:, None], largest(again, led), led)
        alone = only(first_of(undecided), led.shape[1])
        return Outcomes(led, undecided, np.where(as_logged[:, None], alone, led))

    @cached_property
    def totals(self) -> Ints:
        """Shape (R, m): what counts of each candidate in the final vote."""
        return standings(self.final)

    def without(self, seat: int) -> Outcomes:
        """The outcomes without one voter: only totals decide, so its masses are taken off them."""
        if self.final.by_mean is not None:
            gone = np.zeros(self.final.cast.shape, dtype=np.bool_)
            gone[:, seat] = True
            again = self.again - self.again_by[:, seat]
            return self.changed(standings(self.final, gone[:, :, None]), again)
        if seat not in self._without:
            masses = self.final.masses[:, seat]
            again = self.again - self.again_by[:, seat]
            self._without[seat] = self.changed(self.totals - masses, again)
        return self._without[seat]

    def without_own(self, same: Bools) -> Outcomes:
        """The outcomes without what voters gave their own proposals.

        `same`: shape (R, n, m): the voter is the candidate.
        """
        own_again = summed(self.again_by * same, 1)
        return self.changed(standings(self.final, same), self.again - own_again)

    def weighted(self, weights: Ints) -> Outcomes:
        """The outcomes with every mass times its voter's weight, shape (R, n)."""
        final, again = self.final.masses, self.again_by
        return self.changed(
            (final * weights[:, :, None]).sum(axis=1), (again * weights[:, :, None]).sum(axis=1)
        )


def decide_turns(final: Rounds, ties: Sequence[Rounds]) -> DecidedTurns:
    """Decide turns of one size."""
    rounds, n, m = final.masses.shape
    again_by = np.zeros((rounds, n, m), np.result_type(np.int8, *(tie.masses for tie in ties)))
    again = np.zeros((rounds, m), np.result_type(np.int8, *(tie.totals for tie in ties)))
    held = np.zeros(rounds, dtype=np.bool_)
    row_of = np.full(int(final.turn.max(initial=-1)) + 1, -1)
    row_of[final.turn] = np.arange(rounds)
    for tie in ties:
        tie = tie.of(np.flatnonzero(tie.turn < len(row_of)))
        tie = tie.of(np.flatnonzero(row_of[tie.turn] >= 0))
        rows = row_of[tie.turn]
        seat = final.candidates[rows][:, :, None] == tie.candidates[:, None, :]
        same = final.voters[rows][:, :, None] == tie.voters[:, None, :]
        held[rows] = True
        again[rows] = np.einsum("rfc,rc->rf", seat, tie.totals)
        by_seat = np.einsum("rfc,rvc->rvf", seat, tie.masses)
        again_by[rows] = np.einsum("rwv,rvf->rwf", same, by_seat)
    led = leaders_of(final)
    put_again = held & (count(led, 1) > 1)
    undecided = np.where(put_again[:, None], largest(again, led), led)
    standing = only(first_of(undecided), m)
    return DecidedTurns(led, undecided, standing, final, again, again_by, held)


def standings(part: Rounds, without: Bools | None = None) -> Ints:
    """Shape (R, m): totals; where means count, 1 for whoever has the largest and 0 for the others.

    `without`: what is not counted, of a shape that fits (R, n, m).
    """
    masses = part.masses if without is None else part.masses * ~without
    totals = summed(masses, 1)
    if part.by_mean is None:
        return totals
    given = part.given if without is None else part.given & ~without
    best = largest_mean(totals.T.astype(np.int64), count(given, 1).T.astype(np.int64)).T
    return np.where(part.by_mean[:, None], best, totals)


def leaders_of(part: Rounds) -> Bools:
    """Shape (R, m): who leads each round."""
    return largest(standings(part))


def largest_mean(sums: Ints, times: Ints) -> Bools:
    """Who has the largest mean, compared as fractions; of nothing, nobody, unless that is all.

    `sums`: shape (candidates, rows).
    """
    best, of = sums[0], times[0]
    for total, n in zip(sums[1:], times[1:], strict=True):
        better = (n > 0) & ((of == 0) | (total * of > best * n))
        best, of = np.where(better, total, best), np.where(better, n, of)
    return np.asarray(((times > 0) & (sums * of == best * times)) | (of == 0))


def largest(totals: Ints, among: Bools | None = None) -> Bools:
    """Who has the largest total, among all or some, row by row."""
    if among is None:
        return np.asarray(totals == fold(np.maximum, totals, totals.ndim - 1)[..., None])
    held = np.where(among, totals, np.iinfo(totals.dtype).min)
    return np.asarray(among & (held == fold(np.maximum, held, held.ndim - 1)[..., None]))


def only(position: Ints, m: int) -> Bools:
    """Shape (R, m): the candidate at one position, row by row."""
    return np.asarray(position[:, None] == np.arange(m))
