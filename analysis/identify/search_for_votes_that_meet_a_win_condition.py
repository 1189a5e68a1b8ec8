"""Is there a choice of one option per voter whose sum passes a test? An exact layered search.

Voters are added one at a time; equal partial sums are merged. A partial sum is dropped
when even the best that the remaining voters can add, quantity by quantity, would not pass.
First a narrow beam looks for a choice; then wider ones; a beam that never had to cut anything
and still ends empty has proved that there is none. Work is counted in numbers computed, never
in seconds, so that the same question has the same answer on every machine.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Final, NamedTuple

import numpy as np

from tutorsim.analysis.identify.ballots_voters_may_cast_and_best_per_candidate import Options
from tutorsim.analysis.statistics.array_types import Bools, Ints

_SHARE: Final = 3
"""One search may take this part of the work that is left, so that others get their turn."""
_STEP: Final = 10_000
"""Units that adding one voter takes, however few sums there are."""
_OPEN: Final = 4
"""Units that a linear condition takes for each row, besides one for each column."""
_ROW: Final = 500
"""Units that listing one option takes, besides one for each column."""
_LIST: Final = 20_000
"""Units that listing one voter's options takes, however few they are."""
_MERGE: Final = 25
"""Units that sorting a row among others takes."""
SUBSETS: Final = 7
"""Columns up to which a linear test looks at every set of them."""

_FIRST_BEAM: Final = 2_048
"""Partial sums with options that a step of the first beam should generate."""
_QUICK: Final = 12
"""Partial sums of a quick beam."""
_WIDER: Final = (1, 16, 256)
_CHUNK: Final = 1 << 17


class WorkBudget:
    """Work that several questions share; what is spent stays spent.

    `left`: units of work that may be done.
    """

    def __init__(self, left: int) -> None:
        self.left = left

    @property
    def empty(self) -> bool:
        """Whether nothing is left: no further question is searched."""
        return self.left <= 0

    @property
    def share(self) -> int:
        """Units that one of several searches may take."""
        return max(self.left // _SHARE, 0)

    def spend(self, work: int) -> None:
        """Count work that was done."""
        self.left -= work


class VoterOptions(NamedTuple):
    """What one voter can add to the sums."""

    regular: Options
    """Options that agree with the ballot cast; one row of zeros for an abstention."""
    exempt: Options
    """Options when the voter is exempt from agreeing with its ballot."""

    @property
    def decided(self) -> bool:
        """Whether the ballot cast leaves no choice."""
        return self.regular.whole and len(self.regular.rows) == 1


class WinCondition(NamedTuple):
    """A condition on sums, in two forms. Arrays have shape (partial sums, quantities)."""

    open: Callable[[Ints, Ints], Bools]
    """Whether sums anywhere between a lowest and a highest row might pass. With
    lowest = highest this is the exact test."""
    distance: Callable[[Ints], Ints]
    """How far sums (doubled, at the middle of their range) are from passing; 0 is near."""
    enough: Ints | None = None
    """For a test `sum >= enough`: values beyond it make no difference and are merged."""
    cost: int = _OPEN
    """Units of work that looking at one row takes, besides one for each column."""


class _Rest(NamedTuple):
    """A condition, and what the voters from one place on can add to sums that are to pass it.

    Sums have shape (sums, quantities + 1): the last column is how many voters were exempt.
    """

    test: WinCondition
    low: Ints
    """Shape (exempt + 1, quantities): the least, row j with j exempt voters."""
    high: Ints
    """The most, likewise."""

    @property
    def exempt(self) -> int:
        """Voters that may be exempt."""
        return len(self.low) - 1

    def grown(self, sums: Ints, voter: VoterOptions) -> Ints:
        """Sums with every option of a voter, those that may still pass."""
        regular = self._plus(sums, voter.regular.rows, 0)
        can = sums[sums[:, -1] < self.exempt] if self.exempt else sums[:0]
        if not len(can):
            return regular
        return np.concatenate([regular, self._plus(can, voter.exempt.rows, 1)])

    def _plus(self, sums: Ints, options: Ints, used: int) -> Ints:
        """`options`: shape (options, quantities); each of them exempts so many more voters."""
        width = sums.shape[1]
        step = np.empty((len(options), width), dtype=options.dtype)
        step[:, :-1], step[:, -1] = options, used
        at_once = max(1, _CHUNK // len(step))
        parts = [
            self.alive((sums[i : i + at_once, None] + step).reshape(-1, width))
            for i in range(0, len(sums), at_once)
        ]
        return parts[0] if len(parts) == 1 else np.concatenate(parts)

    def alive(self, sums: Ints) -> Ints:
        """Sums that may still pass, with values that make no difference any more merged."""
        left = self.exempt - sums[:, -1]
        base = sums[:, :-1]
        low = base + self.low[left]
        alive = self.test.open(low, base + self.high[left])
        if not alive.all():
            sums, left = sums[alive], left[alive]
        if self.test.enough is not None:
            np.minimum(sums[:, :-1], self.test.enough - self.low[left], out=sums[:, :-1])
        return sums

    def nearest(self, sums: Ints, width: int) -> Ints:
        """The `width` sums that are nearest to passing."""
        left = self.exempt - sums[:, -1]
        doubled = 2 * sums[:, :-1] + self.low[left] + self.high[left]
        return sums[np.argsort(self.test.distance(doubled), kind="stable")[:width]]


def linear_condition(need: Sequence[int]) -> WinCondition:
    """Every sum is at least its need."""
    enough = np.array(need, dtype=np.int32)

    def open_(low: Ints, high: Ints) -> Bools:
        return np.asarray((high >= enough).all(axis=1))

    def distance(doubled: Ints) -> Ints:
        return np.asarray(np.maximum(2 * enough - doubled, 0).sum(axis=1, dtype=doubled.dtype))

    return WinCondition(open_, distance, enough)


def with_subsets(rows: Ints) -> Ints:
    """Shape (rows, quantities and sets): the sum of every set of two or more columns behind them.

    They sharpen a linear test. Of many columns only the sum over all is appended.
    """
    d = rows.shape[1]
    if d > SUBSETS:
        return np.hstack([rows, rows.sum(axis=1, keepdims=True, dtype=rows.dtype)])
    masks = [mask for mask in range(1, 1 << d) if mask & (mask - 1)]
    chosen = np.array([[mask >> j & 1 for mask in masks] for j in range(d)], dtype=rows.dtype)
    return np.hstack([rows, rows @ chosen.reshape(d, -1)])


class OptionSums:
    """What voters can add together, with bounds that every question about it shares."""

    def __init__(self, voters: Sequence[VoterOptions]) -> None:
        self.voters = sorted(voters, key=lambda one: (not one.decided, len(one.regular.rows)))
        different = {id(one.rows): one.rows for voter in voters for one in voter}
        self.size = sum(_LIST + _ROW * len(rows) + rows.size for rows in different.values())
        self._decided = sum(voter.decided for voter in self.voters)
        least = np.array([voter.regular.low for voter in self.voters])
        most = np.array([voter.regular.high for voter in self.voters])
        loss = np.array([voter.exempt.low for voter in self.voters]) - least
        gain = np.array([voter.exempt.high for voter in self.voters]) - most
        self._low, self._high = _from_each_place(least), _from_each_place(most)
        self._loss = _smallest_sums(np.minimum(loss, 0))
        self._gain = -_smallest_sums(np.minimum(-gain, 0))

    def least_exempt(self, test: WinCondition) -> int:
        """With fewer exempt voters than this the bounds alone rule a choice out."""
        opened = test.open(self._low[0] + self._loss, self._high[0] + self._gain)
        return int(opened.argmax()) if opened.any() else len(opened)

    def exists(
        self, test: WinCondition, *, exempt: int, budget: WorkBudget, quick: bool = False
    ) -> bool | None:
        """Whether some choice with at most `exempt` exempt voters passes.

        `quick`: whether to look along one narrow beam only. Returns `None` if a limit was reached
        first, or if some options were left out and the others do not pass.
        """
        exempt = min(exempt, len(self.voters))
        if exempt < self.least_exempt(test):
            return False
        if budget.empty:
            return None
        whole = all(
            voter.regular.whole and (voter.exempt.whole or not exempt) for voter in self.voters
        )
        loss, gain = self._loss[: exempt + 1], self._gain[: exempt + 1]
        # what exempt voters change is taken over all, not only the remaining: looser, and cheaper
        rests = [
            *map(partial(_Rest, test), self._low[:-1, None] + loss, self._high[:-1, None] + gain),
            _Rest(test, 0 * loss, 0 * loss),
        ]
        limit, work = budget.share, len(rests) * _STEP // 4
        answer: bool | None = None
        most = max(
            len(voter.exempt.rows if exempt else voter.regular.rows) for voter in self.voters
        )
        first = max(2, _FIRST_BEAM // most)
        widths = (*(first * wider for wider in _WIDER), limit)
        for width in (_QUICK,) if quick else widths:
            answer, work = self._beam(rests, width, work, limit)
            if answer is not None or work >= limit:
                break
        budget.spend(work)
        return None if answer is False and not whole else answer

    def _beam(
        self, rests: Sequence[_Rest], width: int, work: int, limit: int
    ) -> tuple[bool | None, int]:
        """One pass that keeps at most `width` partial sums; `None` when it cut and found none."""
        exempt, cost = rests[0].exempt, rests[0].test.cost
        place = 0 if exempt else self._decided  # the first voter with a choice
        sums = np.append(self._low[0] - self._low[place], np.int32(0))[None, :]  # last: the exempt
        columns = sums.shape[1] - 1
        cut = False
        sums = rests[place].alive(sums)
        for voter, rest in zip(self.voters[place:], rests[place + 1 :], strict=True):
            if not len(sums):
                return (None if cut else False), work
            freed = int((sums[:, -1] < exempt).sum())
            rows = len(sums) * len(voter.regular.rows) + freed * len(voter.exempt.rows)
            work += _STEP + rows * (columns + cost)
            if work > limit:
                return None, work
            grown = rest.grown(sums, voter)
            work += len(grown) * (_MERGE + columns)
            sums = _merged(grown)
            if len(sums) > width:
                cut = True
                work += len(sums) * (columns + cost)
                sums = rest.nearest(sums, width)
        return (True if len(sums) else (None if cut else False)), work


def _smallest_sums(values: Ints) -> Ints:
    """Shape (values + 1, columns): row j is the sum of the j smallest values of each column."""
    zero = np.zeros((1, values.shape[1]), dtype=values.dtype)
    return np.concatenate([zero, np.sort(values, axis=0).cumsum(axis=0, dtype=values.dtype)])


def _from_each_place(values: Ints) -> Ints:
    """Shape (values + 1, columns): row i is the sum of the values from place i on; the last 0."""
    total = np.zeros((len(values) + 1, values.shape[1]), dtype=values.dtype)
    total[:-1] = values[::-1].cumsum(axis=0, dtype=values.dtype)[::-1]
    return total


def _merged(sums: Ints) -> Ints:
    """Shape (sums, quantities + 1): each row once, in a fixed order."""
    if len(sums) < 2:
        return sums
    rows = np.ascontiguousarray(sums)
    keys = rows.view(np.dtype((np.void, rows.dtype.itemsize * rows.shape[1]))).ravel()
    _, first = np.unique(keys, return_index=True)
    return rows[first]
