"""Tests on sums of pairwise margins: may a candidate win, given a lowest and a highest margin?

Rows of margins come as one number per pair a < b (see `domains.pair_options`). Each test asks,
optimistically, whether a rule could elect `c` and none of the candidates `ahead` of it,
when every margin lies anywhere between the two rows. With both rows equal the answer is exact.
"""

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from tutorsim.analysis.counting.rule_definitions import Rule
from tutorsim.analysis.identify.consistent_ballots import pairs
from tutorsim.analysis.identify.reachable_vote_sums import WinCondition

__all__ = [
    "PAIRWISE_CONDITIONS",
    "copeland_condition",
    "minimax_condition",
    "nobody_condition",
    "schulze_condition",
]

Ints = NDArray[np.signedinteger[Any]]
Bools = NDArray[np.bool_]

_FAR: Final = 1 << 20


def _matrix(low: Ints, high: Ints, m: int) -> Ints:
    """Highest margin of a over b, shape (rows, m, m); the diagonal is never the largest."""
    most = np.full((len(low), m, m), -_FAR, dtype=np.int32)
    a, b = np.array(pairs(m), dtype=np.int64).reshape(-1, 2).T
    most[:, a, b] = high
    most[:, b, a] = -low
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


def copeland_condition(c: int, ahead: Sequence[int], m: int) -> WinCondition:
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

    return WinCondition(open_, distance, cost=m * m)


def minimax_condition(c: int, ahead: Sequence[int], m: int) -> WinCondition:
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

    return WinCondition(open_, distance, cost=2 * m * m // 3)


def schulze_condition(c: int, ahead: Sequence[int], m: int) -> WinCondition:
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

    return WinCondition(open_, distance, cost=3 * m * m // 2 + m**3 // 4)


def nobody_condition(m: int) -> WinCondition:
    """No Condorcet winner: everybody is beaten or tied by somebody."""

    def open_(low: Ints, high: Ints) -> Bools:
        return np.asarray((_matrix(low, high, m).max(axis=1) >= 0).all(axis=1))

    def distance(doubled: Ints) -> Ints:
        worst = _matrix(doubled, doubled, m).max(axis=1)
        return np.asarray(np.maximum(-worst, 0).sum(axis=1, dtype=np.int32))

    return WinCondition(open_, distance, cost=2 * m * m // 3)


def _paths(margins: Ints) -> Ints:
    """Strength of the strongest path between any two, the weakest margin on the way."""
    paths = margins.copy()
    for via in range(paths.shape[1]):
        np.maximum(paths, np.minimum(paths[:, :, via, None], paths[:, None, via, :]), out=paths)
    return paths


PAIRWISE_CONDITIONS: Final[dict[Rule, Callable[[int, Sequence[int], int], WinCondition]]] = {
    "copeland": copeland_condition,
    "minimax": minimax_condition,
    "schulze": schulze_condition,
}
"""Rules that margins decide, by name."""
