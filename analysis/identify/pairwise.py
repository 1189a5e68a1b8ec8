"""Tests on sums of pairwise margins: may a candidate win, given a lowest and a highest margin?

Rows of margins come as one number per pair a < b (see `domains.pair_options`). Each test asks,
optimistically, whether a rule could elect `c` and none of the candidates `ahead` of it,
when every margin lies anywhere between the two rows. With both rows equal the answer is exact.
"""

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from analysis.identify.domains import pairs
from analysis.identify.search import Test

__all__ = ["PAIRWISE_TESTS", "copeland_test", "minimax_test", "nobody_test", "schulze_test"]

Ints = NDArray[np.int32]
Bools = NDArray[np.bool_]

_FAR: Final = 1 << 20


def _matrix(low: Ints, high: Ints, m: int) -> Ints:
    """Highest margin of a over b, shape (rows, m, m); the diagonal is never the largest."""
    most = np.full((len(low), m, m), -_FAR, dtype=np.int32)
    for column, (a, b) in enumerate(pairs(m)):
        most[:, a, b] = high[:, column]
        most[:, b, a] = -low[:, column]
    return most


def _transposed(most: Ints) -> Ints:
    """Lowest margin of a over b from the highest ones of b over a."""
    least = -most.transpose(0, 2, 1)
    m = least.shape[1]
    least[:, range(m), range(m)] = -_FAR
    return least


def _strictly(ahead: Sequence[int], m: int) -> Ints:
    """1 for a candidate that must not tie with the winner."""
    need = np.zeros(m, dtype=np.int32)
    need[list(ahead)] = 1
    return need


def copeland_test(c: int, ahead: Sequence[int], m: int) -> Test:
    """Most wins, ties half: `c` at best against each rival at its worst, and in total."""
    strict = _strictly(ahead, m)
    rivals = [d for d in range(m) if d != c]

    def scores(margins: Ints) -> Ints:
        won = 2 * (margins > 0) + (margins == 0)
        return np.asarray(won.sum(axis=2, dtype=np.int32))

    def open_(low: Ints, high: Ints) -> Bools:
        most = _matrix(low, high, m)
        best = scores(most)[:, c]
        worst = scores(_transposed(most))[:, rivals]
        room = best[:, None] - strict[rivals]
        total = room.sum(axis=1) + best >= m * (m - 1)
        return np.asarray((worst <= room).all(axis=1) & total)

    def distance(doubled: Ints) -> Ints:
        found = scores(_matrix(doubled, doubled, m))
        over = found + strict - found[:, [c]]
        over[:, c] = 0
        return np.asarray(np.maximum(over, 0).sum(axis=1, dtype=np.int32))

    return Test(open_, distance)


def minimax_test(c: int, ahead: Sequence[int], m: int) -> Test:
    """Smallest worst defeat: `c` at best against each rival's highest possible defeat."""
    strict = _strictly(ahead, m)

    def defeats(margins: Ints) -> Ints:
        return np.asarray(margins.max(axis=1))

    def short(own: Ints, others: Ints, unit: int) -> Ints:
        missing = own[:, [c]] + unit * strict - others
        missing[:, c] = 0
        return np.asarray(np.maximum(missing, 0))

    def open_(low: Ints, high: Ints) -> Bools:
        most = _matrix(low, high, m)
        return np.asarray((short(defeats(_transposed(most)), defeats(most), 1) == 0).all(axis=1))

    def distance(doubled: Ints) -> Ints:
        found = defeats(_matrix(doubled, doubled, m))
        return np.asarray(short(found, found, 2).sum(axis=1, dtype=np.int32))

    return Test(open_, distance)


def schulze_test(c: int, ahead: Sequence[int], m: int) -> Test:
    """No stronger path to `c` than back; each candidate ahead loses to somebody's path."""

    def short(strong: Ints, weak: Ints, unit: int) -> Ints:
        missing = np.maximum(weak[:, :, c] - strong[:, c, :], 0)
        missing[:, c] = 0
        for d in ahead:
            lead = (strong[:, :, d] - weak[:, d, :]).copy()
            lead[:, d] = -_FAR
            missing[:, d] += np.maximum(unit - lead.max(axis=1), 0)
        return np.asarray(missing)

    def open_(low: Ints, high: Ints) -> Bools:
        most = _matrix(low, high, m)
        missing = short(_paths(most), _paths(_transposed(most)), 1)
        return np.asarray((missing == 0).all(axis=1))

    def distance(doubled: Ints) -> Ints:
        paths = _paths(_matrix(doubled, doubled, m))
        return np.asarray(short(paths, paths, 2).sum(axis=1, dtype=np.int32))

    return Test(open_, distance)


def nobody_test(m: int) -> Test:
    """No Condorcet winner: everybody is beaten or tied by somebody."""

    def open_(low: Ints, high: Ints) -> Bools:
        return np.asarray((_matrix(low, high, m).max(axis=1) >= 0).all(axis=1))

    def distance(doubled: Ints) -> Ints:
        worst = _matrix(doubled, doubled, m).max(axis=1)
        return np.asarray(np.maximum(-worst, 0).sum(axis=1, dtype=np.int32))

    return Test(open_, distance)


def _paths(margins: Ints) -> Ints:
    """Strength of the strongest path between any two, the weakest margin on the way."""
    paths = margins.copy()
    for via in range(paths.shape[1]):
        np.maximum(paths, np.minimum(paths[:, :, via, None], paths[:, None, via, :]), out=paths)
    return paths


PAIRWISE_TESTS: Final = {
    "copeland": copeland_test,
    "minimax": minimax_test,
    "schulze": schulze_test,
}
"""Rules that margins decide, by name."""
