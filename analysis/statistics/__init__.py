"""Estimates with their uncertainty, the noise floor of votes, and how alike texts are.

What nearly every question begins with stands here: values by what they have in common.
"""

from collections.abc import Hashable, Iterable
from typing import TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


def by_key(pairs: Iterable[tuple[K, V]]) -> dict[K, list[V]]:
    """Key → its values, both in order of first appearance.

    by_key((record.condition, record) for record in records)
    """
    groups: dict[K, list[V]] = {}
    for key, value in pairs:
        groups.setdefault(key, []).append(value)
    return groups
