"""Is there a choice of one option per voter whose sum passes a test? An exact layered search.

Voters are added one at a time; equal partial sums are merged. A partial sum is dropped
when even the best that the remaining voters can add, quantity by quantity, would not pass.
First a narrow beam looks for a choice; then wider ones; a beam that never had to cut anything
and still ends empty has proved that there is none. Work is counted in partial sums generated,
never in seconds, so that the same question has the same answer on every machine.
"""

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from analysis.identify.domains import Options

__all__ = ["WORK_LIMIT", "Test", "Voter", "exists", "linear_test", "with_subsets"]

Ints = NDArray[np.int32]

WORK_LIMIT: Final = 1_500_000
"""Partial sums that one question may generate before it counts as not settled."""

_WIDTHS: Final = (24, 400, 6_000)
_CHUNK: Final = 1 << 17


class Voter(NamedTuple):
    """What one voter can add to the sums."""

    regular: Options
    """Options that agree with the ballot cast; one row of zeros for an abstention."""
    exempt: Options
    """Options when the voter is exempt from agreeing with its ballot."""


class Test(NamedTuple):
    """A condition on sums, in two forms. Arrays have one row per partial sum."""

    open: Callable[[Ints, Ints], NDArray[np.bool_]]
    """Whether sums anywhere between a lowest and a highest row might pass. With
    lowest = highest this is the exact test."""
    distance: Callable[[Ints], Ints]
    """How far sums (doubled, at the middle of their range) are from passing; 0 is near."""
    enough: Ints | None = None
    """For a test `sum >= enough`: values beyond it make no difference and are merged."""


class _Rest(NamedTuple):
    """Least and most that the voters from one place on can add; row j with j exempt ones."""

    low: Ints
    high: Ints


def linear_test(need: Sequence[int]) -> Test:
    """Every sum is at least its need."""
    enough = np.array(need, dtype=np.int32)

    def open_(low: Ints, high: Ints) -> NDArray[np.bool_]:
        return np.asarray((high >= enough).all(axis=1))

    def distance(doubled: Ints) -> Ints:
        return np.asarray(np.maximum(2 * enough - doubled, 0).sum(axis=1, dtype=np.int32))

    return Test(open_, distance, enough)


def with_subsets(rows: Ints) -> Ints:
    """Append the sum over every set of two or more columns, to sharpen a linear test."""
    d = rows.shape[1]
    masks = [mask for mask in range(1, 1 << d) if mask & (mask - 1)]
    chosen = np.array([[mask >> j & 1 for mask in masks] for j in range(d)], dtype=np.int32)
    return np.hstack([rows, rows @ chosen.reshape(d, -1)])


def exists(voters: Sequence[Voter], test: Test, *, exempt: int, limit: int) -> bool | None:
    """Whether some choice with at most `exempt` exempt voters passes.

    Args:
        voters: What each can add.
        test: The condition on the sums.
        exempt: How many voters may use their exempt options.
        limit: Partial sums that may be generated.

    Returns:
        `None` where the limit was reached first.
    """
    voters = sorted(voters, key=lambda voter: len(voter.regular.rows))
    rests = _rests(voters, exempt)
    work = 0
    for width in (*_WIDTHS, limit):
        found, work = _beam(voters, test, rests, exempt, width, work, limit)
        if found is not None or work >= limit:
            return found
    return None


def _rests(voters: Sequence[Voter], exempt: int) -> list[_Rest]:
    """Bounds on what the voters from each place on add, the last entry for nobody.

    The most that j exempt voters change is taken over all voters, not only the remaining
    ones: a bound that is looser, and cheaper.
    """
    least = np.array([voter.regular.low for voter in voters])
    most = np.array([voter.regular.high for voter in voters])
    low, high = _from_each_place(least), _from_each_place(most)
    if not exempt:
        return [_Rest(low[[i]], high[[i]]) for i in range(len(low))]
    zero = np.zeros((1, least.shape[1]), dtype=np.int32)
    loss = np.array([voter.exempt.low for voter in voters]) - least
    gain = np.array([voter.exempt.high for voter in voters]) - most
    loss = np.sort(np.minimum(loss, 0), axis=0)[:exempt].cumsum(axis=0, dtype=np.int32)
    gain = -np.sort(np.minimum(-gain, 0), axis=0)[:exempt].cumsum(axis=0, dtype=np.int32)
    below, above = np.concatenate([zero, loss]), np.concatenate([zero, gain])
    short = exempt + 1 - len(below)  # more exempt voters than voters
    below = np.concatenate([below, below[[-1] * short]])
    above = np.concatenate([above, above[[-1] * short]])
    rests = [_Rest(low[i] + below, high[i] + above) for i in range(len(voters))]
    return [*rests, _Rest(0 * below, 0 * above)]


def _from_each_place(values: Ints) -> Ints:
    """Row i: the sum of the values from place i on; one more row than values, of zeros."""
    total = np.zeros((len(values) + 1, values.shape[1]), dtype=np.int32)
    total[:-1] = values[::-1].cumsum(axis=0, dtype=np.int32)[::-1]
    return total


def _beam(
    voters: Sequence[Voter],
    test: Test,
    rests: Sequence[_Rest],
    exempt: int,
    width: int,
    work: int,
    limit: int,
) -> tuple[bool | None, int]:
    """One pass that keeps at most `width` partial sums; `None` when it cut and found nothing."""
    columns = rests[0].low.shape[1]
    sums = np.zeros((1, columns + 1), dtype=np.int32)  # the last column counts exempt voters
    cut = False
    sums = _alive(sums, test, rests[0], exempt)
    for place, voter in enumerate(voters):
        if not len(sums):
            return (None if cut else False), work
        work += len(sums) * (len(voter.regular.rows) + len(voter.exempt.rows) * bool(exempt))
        if work > limit:
            return None, work
        sums = _merged(_grown(sums, voter, test, rests[place + 1], exempt))
        if len(sums) > width:
            cut = True
            sums = _nearest(sums, test, rests[place + 1], exempt, width)
    return (True if len(sums) else (None if cut else False)), work


def _grown(sums: Ints, voter: Voter, test: Test, rest: _Rest, exempt: int) -> Ints:
    """Every partial sum with every option, those that may still pass."""
    regular = _plus(sums, voter.regular.rows, 0, test, rest, exempt)
    can = sums[sums[:, -1] < exempt] if exempt else sums[:0]
    if not len(can):
        return regular
    freed = _plus(can, voter.exempt.rows, 1, test, rest, exempt)
    return np.concatenate([regular, freed])


def _plus(sums: Ints, options: Ints, used: int, test: Test, rest: _Rest, exempt: int) -> Ints:
    width = sums.shape[1]
    step = np.empty((len(options), width), dtype=np.int32)
    step[:, :-1], step[:, -1] = options, used
    at_once = max(1, _CHUNK // len(step))
    parts = [
        _alive((sums[i : i + at_once, None] + step).reshape(-1, width), test, rest, exempt)
        for i in range(0, len(sums), at_once)
    ]
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


def _alive(sums: Ints, test: Test, rest: _Rest, exempt: int) -> Ints:
    """Those that may still pass, with values that make no difference any more merged."""
    left = exempt - sums[:, -1]
    base = sums[:, :-1]
    low = base + rest.low[left]
    alive = test.open(low, base + rest.high[left])
    if not alive.all():
        sums, left = sums[alive], left[alive]
    if test.enough is not None:
        np.minimum(sums[:, :-1], test.enough - rest.low[left], out=sums[:, :-1])
    return sums


def _merged(sums: Ints) -> Ints:
    """Each row once, in a fixed order."""
    if len(sums) < 2:
        return sums
    rows = np.ascontiguousarray(sums)
    keys = rows.view(np.dtype((np.void, rows.dtype.itemsize * rows.shape[1]))).ravel()
    _, first = np.unique(keys, return_index=True)
    return rows[first]


def _nearest(sums: Ints, test: Test, rest: _Rest, exempt: int, width: int) -> Ints:
    """The `width` rows that are nearest to passing."""
    left = exempt - sums[:, -1]
    doubled = 2 * sums[:, :-1] + rest.low[left] + rest.high[left]
    return sums[np.argsort(test.distance(doubled), kind="stable")[:width]]
