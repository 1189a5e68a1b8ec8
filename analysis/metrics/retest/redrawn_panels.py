"""Panels put together again from several answers of each voter to one prompt.

Exact by enumeration where the combinations of different ballots are at most `ENUMERATED`;
beyond, `DRAWS` panels are drawn, by a seed. A tie goes to the fallback order: nobody was
asked to vote on a tie among ballots that were never cast together.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from math import fsum, prod
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

__all__ = [
    "DRAWS",
    "ENUMERATED",
    "Floor",
    "Stability",
    "leader_of",
    "noise_floor_of",
    "stability_of",
]

Answer = tuple[int, ...]
"""Masses of one answer, candidates in the fallback order; zeros for an abstention."""
Askings = Sequence[Sequence[Answer]]
"""Per voter, every answer to one prompt."""
Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

ENUMERATED: Final = 50_000
"""Combinations of different ballots up to which all panels are enumerated."""

DRAWS: Final = 10_000
"""Panels drawn where they are not enumerated."""

_LARGEST_WEIGHT: Final = 2**62


class Stability(NamedTuple):
    """How far one vote's winner hangs on the answers that voters happened to give."""

    elects_logged: float
    """Probability that a panel elects the leader of the logged ballots."""
    agree: float
    """Probability that two panels, drawn independently, elect the same."""
    exact: bool


class Floor(NamedTuple):
    """What to expect of two panels that answer one prompt, each voter twice."""

    flip: float
    """Probability that their leaders differ."""
    flip_set: float
    """Probability that the second's leader is outside the set of the first's leaders."""
    shift: float | None
    """Expected distance of vote shares, where both panels have mass; `None` if they never do."""
    exact: bool


def leader_of(answers: Sequence[Answer]) -> int:
    """Who leads a panel's ballots, a tie going to the order: the place of the candidate."""
    totals = [sum(column) for column in zip(*answers, strict=True)]
    return totals.index(max(totals))


def stability_of(askings: Askings, *, seed: int) -> Stability:
    """The stability of a vote's winner, each voter's answers being equally likely.

    The logged answer, the first of each voter, is one of them.
    """
    panels = _panels([Counter(asked) for asked in askings], seed)
    leaders = panels.totals.argmax(axis=1)
    chances = np.bincount(leaders, weights=panels.chances)
    first = leader_of([asked[0] for asked in askings])
    logged = float(chances[first]) if first < len(chances) else 0.0
    return Stability(min(logged, 1.0), min(float((chances**2).sum()), 1.0), panels.exact)


def noise_floor_of(askings: Askings, *, seed: int) -> Floor:
    """What re-asking alone changes: each voter gives two different answers of its own.

    Every ordered pair of two askings of a voter is equally likely, and voters are independent.
    """
    m = len(askings[0][0])
    panels = _panels([_pairs(asked) for asked in askings], seed)
    first, second = panels.totals[:, :m], panels.totals[:, m:]
    won = second.argmax(axis=1)
    led = first == first.max(axis=1, keepdims=True)
    outside = ~led[np.arange(len(won)), won]
    return Floor(
        flip=float(panels.chances[first.argmax(axis=1) != won].sum()),
        flip_set=float(panels.chances[outside].sum()),
        shift=_shift(first, second, panels.chances),
        exact=panels.exact,
    )


class _Panels(NamedTuple):
    totals: Ints
    """One row per combination of ballots."""
    chances: Floats
    """Probability of each."""
    exact: bool


def _pairs(asked: Sequence[Answer]) -> Counter[Answer]:
    """Two different askings, in both orders, side by side in one tuple of masses."""
    return Counter(
        one + other for i, one in enumerate(asked) for j, other in enumerate(asked) if i != j
    )


def _panels(options: Sequence[Counter[Answer]], seed: int) -> _Panels:
    """The totals of every combination of one option per voter, or of drawn ones."""
    ways = prod(counts.total() for counts in options)
    if prod(map(len, options)) > ENUMERATED or ways > _LARGEST_WEIGHT:
        return _drawn(options, seed)
    totals = np.zeros((1, len(next(iter(options[0])))), dtype=np.int64)
    weights = np.ones(1, dtype=np.int64)
    for rows, counts in _arrays(options):
        totals = (totals[:, None, :] + rows[None, :, :]).reshape(-1, rows.shape[1])
        weights = (weights[:, None] * counts[None, :]).reshape(-1)
    return _Panels(totals, weights / ways, exact=True)


def _drawn(options: Sequence[Counter[Answer]], seed: int) -> _Panels:
    rng = np.random.default_rng(seed)
    drawn = [
        rows[rng.choice(len(rows), size=DRAWS, p=counts / counts.sum())]
        for rows, counts in _arrays(options)
    ]
    return _Panels(np.sum(drawn, axis=0), np.full(DRAWS, 1 / DRAWS), exact=False)


def _arrays(options: Sequence[Counter[Answer]]) -> Iterator[tuple[Ints, Ints]]:
    """Options and how often each occurs, in an order that the askings' has no part in."""
    for counts in options:
        ordered = sorted(counts.items())
        yield (
            np.array([row for row, _ in ordered], dtype=np.int64),
            np.array([n for _, n in ordered], dtype=np.int64),
        )


def _shift(first: Ints, second: Ints, chances: Floats) -> float | None:
    before, after = first.sum(axis=1), second.sum(axis=1)
    defined = (before > 0) & (after > 0)
    if not defined.any():
        return None
    shares = first[defined] / before[defined, None] - second[defined] / after[defined, None]
    weights = chances[defined]
    apart = np.abs(shares).sum(axis=1) / 2
    return fsum(apart * weights) / fsum(weights)  # the same sums on every processor
