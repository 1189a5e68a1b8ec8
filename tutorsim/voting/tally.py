"""Sums and ties over ballot masses. All masses are integers, so ties are exact."""

from collections.abc import Iterable, Mapping, Sequence


def tally(masses: Iterable[Mapping[str, int]], candidates: Sequence[str]) -> dict[str, int]:
    """Sum the mass of each candidate over ballots.

    Args:
        masses: One mapping candidate → mass per ballot; absent candidates have no mass.
            An abstention is an empty mapping.
        candidates: Who stands, in the order that the result keeps.

    Returns:
        Candidate → total mass, every candidate present.
    """
    total = dict.fromkeys(candidates, 0)
    for mass in masses:
        for candidate in candidates:
            total[candidate] += mass.get(candidate, 0)
    return total


def leaders(tallies: Mapping[str, int]) -> tuple[str, ...]:
    """Candidates with the largest total, in the mapping's order.

    All candidates lead when every total is zero: nobody voted, everybody is tied.
    """
    top = max(tallies.values())
    return tuple(candidate for candidate, total in tallies.items() if total == top)


def first_in_order(tied: Iterable[str], order: Sequence[str]) -> str:
    """The candidate of `tied` that stands first in the fallback `order`.

    Raises:
        ValueError: If no tied candidate is in `order`.
    """
    members = set(tied)
    for candidate in order:
        if candidate in members:
            return candidate
    raise ValueError(f"no candidate of {sorted(members)} is in the order {list(order)}")
