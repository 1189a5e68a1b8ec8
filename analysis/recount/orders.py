"""Question 1: every role-priority order, from the counts of tied sets.

The winner under an order is the first of the turn's undecided set, so the counts of those sets
are sufficient. Cost depends on the number of distinct sets (at most 2^m) and orders, never on
the number of turns.
"""

from collections.abc import Sequence
from fractions import Fraction
from itertools import permutations
from math import factorial
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from analysis.recount.result import Exact, OrderRow, OrderTable, RoleWins
from analysis.tally import TiedSets
from tutorsim.types import MAX_ROLES
from tutorsim.voting import first_in_order

__all__ = ["LISTED_ORDERS", "Sweep", "order_table", "sweep_orders"]

LISTED_ORDERS: Final = 720
"""Orders that a table lists one by one: all of six candidates."""


class Sweep(NamedTuple):
    """Every order over the candidates that the order can decide between."""

    orders: tuple[tuple[str, ...], ...]
    """Lexicographic in the logged order, which comes first."""
    candidates: tuple[str, ...]
    wins: NDArray[np.int64]
    """Shape (orders, candidates): turns won."""
    changed: NDArray[np.int64]
    """Shape (orders,): turns with another winner than under the first order."""


def sweep_orders(tied: TiedSets, *, order: Sequence[str]) -> Sweep:
    """Winners of every turn under every order.

    Args:
        tied: Counts of undecided sets.
        order: The logged order, of at most eight candidates.
    """
    m = len(order)
    place = {c: i for i, c in enumerate(order)}
    sets = [sum(1 << place[c] for c in t.undecided) for t, _ in tied]
    counts = np.array([n for _, n in tied], dtype=np.int64)
    ranks = np.array(list(permutations(range(m))), dtype=np.int8)
    first = _first_members(ranks, np.array(sets, dtype=np.int64))
    wins = np.stack([(first == c) @ counts for c in range(m)], axis=1)
    changed = (first != first[0]) @ counts
    orders = tuple(tuple(order[c] for c in row) for row in ranks.tolist())
    return Sweep(orders, tuple(order), wins, changed)


def _first_members(ranks: NDArray[np.int8], sets: NDArray[np.int64]) -> NDArray[np.int8]:
    """Shape (orders, sets): the member of each set that stands first in each order."""
    first = np.full((len(ranks), len(sets)), -1, dtype=np.int8)
    for place in reversed(range(ranks.shape[1])):
        candidate = ranks[:, [place]]
        first = np.where(sets[None, :] >> candidate & 1 == 1, candidate, first)
    return first


def order_table(tied: TiedSets, *, order: Sequence[str], protocol: str | None) -> OrderTable:
    """The table of one protocol's turns, or of all with `None`."""
    turns = tied if protocol is None else tied.of(protocol)
    open_sets = [(t.undecided, n) for t, n in turns if len(t.undecided) > 1]
    swept = sweep_orders(turns, order=order) if len(order) <= MAX_ROLES else None
    listed = swept is not None and len(swept.orders) <= LISTED_ORDERS
    by_lot = sum((n * (1 - Fraction(1, len(s))) for s, n in open_sets), Fraction(0))
    return OrderTable(
        protocol=protocol,
        logged_order=tuple(order),
        turns=turns.turns,
        decided_by_order=sum(n for _, n in open_sets),
        candidates=tuple(_role_wins(turns, c, order) for c in order),
        changed_expected=Exact.of(by_lot),
        changed_most=None if swept is None else int(swept.changed.max()),
        orders=factorial(len(order)),
        listed=_rows(swept) if swept is not None and listed else (),
    )


def _rows(swept: Sweep) -> tuple[OrderRow, ...]:
    return tuple(
        OrderRow(
            order=order,
            wins=dict(zip(swept.candidates, wins, strict=True)),
            changed=changed,
        )
        for order, wins, changed in zip(
            swept.orders, swept.wins.tolist(), swept.changed.tolist(), strict=True
        )
    )


def _role_wins(turns: TiedSets, candidate: str, order: Sequence[str]) -> RoleWins:
    """Extremes without a sweep: an order that puts the candidate first, or last."""
    within = [(t.undecided, n) for t, n in turns if candidate in t.undecided]
    alone = sum(n for tied, n in within if len(tied) == 1)
    logged = sum(n for tied, n in within if first_in_order(tied, order) == candidate)
    lots = sum((Fraction(n, len(tied)) for tied, n in within), Fraction(0))
    return RoleWins(
        candidate=candidate,
        logged=logged,
        least=alone,
        most=sum(n for _, n in within),
        expected=Exact.of(lots),
        robust=alone,
        by_order=logged - alone,
        share_by_order=Exact.of(Fraction(logged - alone, logged)) if logged else None,
    )
