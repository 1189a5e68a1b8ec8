"""Question 1: every fallback order, from the counts of tied sets.

The winner under an order is the first of the turn's undecided set, so the counts of those sets
are sufficient. Cost depends on the number of distinct sets (at most 2^m) and orders, never on
the number of turns.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import cache
from itertools import permutations
from math import factorial
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tutorsim.analysis.recount.result_models import Exact, OrderRow, OrderTable, RoleWins
from tutorsim.analysis.recount.turn_groups import TiedSets
from tutorsim.analysis.statistics.array_types import Ints
from tutorsim.vocabularies import MAX_ROLES
from tutorsim.voting import first_in_order

LISTED_ORDERS: Final = 720
"""Orders that a table lists one by one: all of six candidates."""


class Sweep(NamedTuple):
    """Every order over the candidates that the order can decide between."""

    orders: tuple[tuple[str, ...], ...]
    """Lexicographic in the logged order, which comes first."""
    candidates: tuple[str, ...]
    wins: Ints
    """Shape (orders, candidates): turns won."""
    changed: Ints
    """Shape (orders,): turns with another winner than under the first order."""


def sweep_orders(tied: TiedSets, *, order: Sequence[str]) -> Sweep:
    """Winners of every turn under every order.

    `order`: the logged order, of at most eight candidates.
    """
    m = len(order)
    place = {c: i for i, c in enumerate(order)}
    counts = np.zeros(1 << m, dtype=np.int64)
    for undecided, n in _by_set(tied).items():
        counts[sum(1 << place[c] for c in undecided)] += n
    ranks, first = _orders(m)
    wins = np.stack([(first == c) @ counts for c in range(m)], axis=1)
    changed = (first != first[0]) @ counts
    orders = tuple(tuple(order[c] for c in row) for row in ranks.tolist())
    return Sweep(orders, tuple(order), wins, changed)


def _by_set(tied: TiedSets) -> Counter[tuple[str, ...]]:
    """Turns by what is undecided, whatever the protocol."""
    counts = Counter[tuple[str, ...]]()
    for turns, n in tied:
        counts[turns.undecided] += n
    return counts


@cache
def _orders(m: int) -> tuple[NDArray[np.int8], NDArray[np.int8]]:
    """Every order of m candidates, and the member of each set of bits that is first in it."""
    ranks = np.array(list(permutations(range(m))), dtype=np.int8)
    sets = np.arange(1 << m)
    first = np.full((len(ranks), len(sets)), -1, dtype=np.int8)
    for place in reversed(range(m)):
        candidate = ranks[:, [place]]
        first = np.where(sets >> candidate & 1 == 1, candidate, first)
    return ranks, first


def order_table(
    tied: TiedSets, *, order: Sequence[str], protocol: str | None, logged: bool = True
) -> OrderTable:
    """The table of one protocol's turns, or of all with `None`.

    `logged`: whether the order decided any turn: what another one changes is counted against it.
    """
    turns = tied if protocol is None else tied.of(protocol)
    sets = _by_set(turns)
    sizes = _by_size(sets)
    swept = sweep_orders(turns, order=order) if 0 < len(order) <= MAX_ROLES else None
    listed = swept is not None and len(swept.orders) <= LISTED_ORDERS
    return OrderTable(
        protocol=protocol,
        logged_order=tuple(order) if logged else (),
        turns=turns.turns,
        decided_by_order=turns.turns - sizes[1],
        candidates=tuple(_role_wins(sets, c, order if logged else None) for c in order),
        changed_expected=Exact.of(turns.turns - _by_lot(sizes)) if logged else None,
        changed_most=int(swept.changed.max()) if swept is not None and logged else None,
        orders=factorial(len(order)),
        listed=_rows(swept, logged=logged) if swept is not None and listed else (),
    )


def _rows(swept: Sweep, *, logged: bool) -> tuple[OrderRow, ...]:
    return tuple(
        OrderRow(
            order=order,
            wins=dict(zip(swept.candidates, wins, strict=True)),
            changed=changed if logged else None,
        )
        for order, wins, changed in zip(
            swept.orders, swept.wins.tolist(), swept.changed.tolist(), strict=True
        )
    )


def _by_size(sets: Mapping[tuple[str, ...], int]) -> Counter[int]:
    sizes = Counter[int]()
    for members, n in sets.items():
        sizes[len(members)] += n
    return sizes


def _by_lot(sizes: Mapping[int, int]) -> Fraction:
    """What one member of each set wins on average when lots are drawn."""
    return sum((Fraction(n, size) for size, n in sizes.items()), Fraction(0))


def _role_wins(
    sets: Mapping[tuple[str, ...], int], candidate: str, order: Sequence[str] | None
) -> RoleWins:
    """Extremes without a sweep: an order that puts the candidate first, or last."""
    within = {members: n for members, n in sets.items() if candidate in members}
    sizes = _by_size(within)
    alone = sizes[1]
    logged = None
    if order is not None:
        logged = sum(n for tied, n in within.items() if first_in_order(tied, order) == candidate)
    return RoleWins(
        candidate=candidate,
        logged=logged,
        least=alone,
        most=sizes.total(),
        expected=Exact.of(_by_lot(sizes)),
        robust=alone,
        by_order=None if logged is None else logged - alone,
        share_by_order=Exact.of(Fraction(logged - alone, logged)) if logged else None,
    )
