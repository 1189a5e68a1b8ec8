"""What panels may end in, by table: two halves of the voters meet.

What a voter may have cast is a set of ballots, and a panel may end in what some choice of ballots
leads to: the union of the table `analysis.identify.outcomes` over the voters' sets. An exempt voter
is one that may have cast any ballot at all, so with exempt voters it is the union over other
panels.

Few sets are told apart: over four candidates 75, one for each weak order. So there are few halves
of a panel, and what all panels with the same first half may end in is found at once. A panel is
then looked up. The order of the voters of a half plays no part.
"""

from collections.abc import Iterator, Sequence
from functools import cache
from itertools import product
from threading import Lock
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from analysis.identify.domains import domain_of
from analysis.identify.numbering import RAISED, Entries
from analysis.identify.outcomes import allowed, ballots_of, outcomes
from analysis.rules import Target, ballot_format
from tutorsim.types import Protocol

__all__ = ["Ends", "Labels", "PanelTable", "labels_of", "panel_table"]

Ints = NDArray[np.int64]
Index = NDArray[np.int32]
Ends = NDArray[np.uint16]
"""Two bytes, each an outcome in bits: 0 is nobody, c + 1 is candidate c. In the lower byte ties go
to the role-priority order, in the upper one they stay."""
Sets = tuple[tuple[int, ...], ...]

_ANYTHING: Final = 0
"""The entry of a voter who may have cast any ballot; others are those of `Book.entries`."""
_ABSENT: Final = 1
_WIDE: Final = 512
"""Heads that are met with all tails at a time."""


class Labels(NamedTuple):
    """Numbers for what voters may have cast; ballots that leave the same possible share one."""

    sets: Sets
    """Label → rows of `ballots_of` the target's format; the smallest sets first."""
    of_key: Ints
    exact: bool

    def of(self, ballots: Ints) -> Ints:
        """The label of each ballot, one a row."""
        return np.asarray(self.of_key[_keys(ballots, exact=self.exact)])


@cache
def labels_of(protocol: Protocol, target: Target, m: int) -> Labels:
    """What ballots of a protocol over m candidates leave possible under a target."""
    form, exact = ballot_format(target), protocol == target == "approval"
    every = np.array(list(product(range(2 if exact else m), repeat=m)))
    keys = _keys(every, exact=exact)
    domains = [domain_of(tuple(b), protocol=protocol, target=target) for b in every.tolist()]
    found = [tuple(allowed(domain, form, m).tolist()) for domain in domains]
    sets = sorted(set(found), key=lambda rows: (len(rows), rows))
    of_key = np.zeros(len(every), dtype=np.int64)
    of_key[keys] = [sets.index(rows) for rows in found]
    return Labels(tuple(sets), of_key, exact)


def _keys(ballots: Ints, *, exact: bool) -> Ints:
    """A number for the weak order of each ballot, or for an exact approval."""
    m = ballots.shape[1]
    if exact:
        return np.asarray((ballots > 0) @ 2 ** np.arange(m))
    below = (ballots[:, :, None] > ballots[:, None, :]).sum(axis=2)
    return np.asarray(below @ m ** np.arange(m))


@cache
def panel_table(target: Target, m: int, n: int, sets: Sets) -> "PanelTable":
    """The table of panels of n voters over m candidates with such sets of ballots."""
    return PanelTable(target, m, n, sets)


class _Halves(NamedTuple):
    """Halves of panels: so many voters, in any order."""

    rows: Ints
    """Shape (halves, voters): entries, the largest first.

    Halves with as many abstentions stand together, and of these the ones of small entries: what
    is looked up most lies close."""
    number: Index
    """Code of a half, its entries as digits → which row it is."""
    base: int
    digits: type[np.signedinteger]
    """The base and type of codes."""


@cache
def _halves(entries: int, voters: int) -> _Halves:
    weights = entries ** np.arange(voters - 1, -1, -1)
    every = np.arange(entries**voters)[:, None] // weights % entries
    every = -np.sort(-every, axis=1)
    found, number = np.unique(every @ weights, return_inverse=True)
    rows = found[:, None] // weights % entries
    order = np.argsort((rows == _ABSENT).sum(axis=1), kind="stable")
    digits = np.int16 if entries**voters <= np.iinfo(np.int16).max else np.int32
    return _Halves(rows[order], np.argsort(order).astype(np.int32)[number], entries, digits)


class PanelTable:
    """What panels may end in, found as it is asked for."""

    def __init__(self, target: Target, m: int, n: int, sets: Sets) -> None:
        self.voters, self.m = n, m
        self._target = target
        ballots = len(ballots_of(ballot_format(target), m))
        self._sets = _Sets.of([range(ballots), (), *sets], ballots)
        self._split = n // 2
        self._heads = _halves(len(sets) + RAISED, self._split)
        self._tails = _halves(len(sets) + RAISED, n - self._split)
        self._found = np.zeros((len(self._heads.rows), len(self._tails.rows)), dtype=np.uint16)
        self._starts = self._heads.number * np.int32(len(self._tails.rows))
        self._met = np.zeros(len(self._heads.rows), dtype=np.bool_)
        self._lock = Lock()

    def ends(self, entries: Entries, exempt: int) -> Ends:
        """Shape (exempt + 1, panels): with at most so many exempt voters.

        Args:
            entries: Shape (voters, panels).
            exempt: At most the number of voters.
        """
        found = np.zeros((exempt + 1, entries.shape[1]), dtype=np.uint16)
        heads = _freed(entries[: self._split], self._heads, self._starts, exempt)
        tails = _freed(entries[self._split :], self._tails, self._tails.number, exempt)
        for (i, head), (j, tail) in product(heads, tails):
            if i + j <= exempt:
                found[i + j] |= self._at(head + tail)
        return np.asarray(np.bitwise_or.accumulate(found, axis=0))

    def _at(self, where: Index) -> Ends:
        found = self._found.take(where)
        if found.min(initial=1) == 0:  # every panel ends in something
            self._meet(self._like(where // len(self._tails.rows)))
            found = self._found.take(where)
        return found

    def _like(self, head: Index) -> Index:
        """The heads asked for, and where these are many, all of voters that occur in them."""
        asked = np.unique(head)
        if len(head) < len(self._met):
            return asked
        rows = self._heads.rows
        return np.flatnonzero(np.isin(rows, rows[asked]).all(axis=1)).astype(np.int32)

    def _meet(self, heads: Index) -> None:
        with self._lock:
            heads = heads[~self._met[heads]]
            for start in range(0, len(heads), _WIDE):
                some = heads[start : start + _WIDE]
                self._found[some] = self._crossed(self._heads.rows[some])
                self._met[some] = True

    def _crossed(self, heads: Ints) -> Ends:
        """Shape (heads, tails)."""
        tails = self._tails.rows
        found = np.empty((len(heads), len(tails)), dtype=np.uint16)
        for (i, head), (j, tail) in product(_by_cast(heads), _by_cast(tails)):
            table = _end_of_sets(self.m)[outcomes(self._target, self.m, i + j)]
            by_head = self._sets.united(table, heads[head], i)
            both = self._sets.united(np.ascontiguousarray(by_head.T), tails[tail], j)
            found[head, tail] = both.T
        return found


@cache
def _end_of_sets(m: int) -> Ends:
    """Tied winners, as bits → what that is where the order decides, and where nothing does."""
    bits = np.arange(1 << m)
    found = (bits << 9 | (bits & -bits) << 1).astype(np.uint16)
    found[0] = 1 << 8 | 1
    return found


def _freed(
    entries: Entries, halves: _Halves, number: Index, exempt: int
) -> list[tuple[int, Index]]:
    """For every choice of exempt voters: how many they are, and the number of what is left."""
    entries = entries.astype(halves.digits, copy=False)
    code = entries[0] if len(entries) else np.zeros(entries.shape[1], dtype=halves.digits)
    for entry in entries[1:]:
        code = code * halves.base + entry
    weights = halves.base ** np.arange(len(entries) - 1, -1, -1)
    found = [(0, code)]
    for entry, weight in zip(entries, weights.tolist(), strict=True) if exempt else ():
        found += [(k + 1, code - entry * weight) for k, code in found if k < exempt]
    return [(k, number.take(code)) for k, code in found]


def _by_cast(rows: Ints) -> Iterator[tuple[int, slice]]:
    """How many voters of a half did not abstain, and which halves these are."""
    cast = (rows != _ABSENT).sum(axis=1)
    for n in np.unique(cast).tolist():
        where = np.flatnonzero(cast == n)
        yield n, slice(int(where[0]), int(where[-1]) + 1)


class _Sets(NamedTuple):
    """Sets of ballots by entry."""

    members: Ints
    """Shape (entries, largest size): the first `sizes` of a row."""
    sizes: Ints
    ballots: int

    @staticmethod
    def of(sets: Sequence[Sequence[int]], ballots: int) -> "_Sets":
        """Sets of so many ballots."""
        sizes = np.array([len(one) for one in sets])
        members = np.zeros((len(sets), ballots), dtype=np.int64)
        for row, one in zip(members, sets, strict=True):
            row[: len(one)] = one
        return _Sets(members, sizes, ballots)

    def united(self, table: Ends, halves: Ints, cast: int) -> Ends:
        """For each half the union of the rows of a table that its voters can choose.

        Args:
            table: A row for each combination of `cast` ballots.
            halves: Entries; those of abstentions choose nothing.
            cast: How many there are besides abstentions in each half.
        """
        rows = halves[halves != _ABSENT].reshape(len(halves), cast)
        table = table.reshape(1, -1)
        which = np.zeros(len(rows), dtype=np.int64)
        for voter in range(cast):
            key = which * len(self.sizes) + rows[:, voter]
            found, which = np.unique(key, return_inverse=True)
            before, entry = np.divmod(found, len(self.sizes))
            width = table.shape[1] // self.ballots
            table = self._chosen(table.reshape(-1, width), before * self.ballots, entry)
        return np.asarray(table[which])

    def _chosen(self, table: Ends, start: Ints, entry: Ints) -> Ends:
        order = np.argsort(-self.sizes[entry], kind="stable")
        start, entry = start[order], entry[order]
        sizes = self.sizes[entry]
        found: Ends = table.take(start + self.members[entry, 0], axis=0)
        for place in range(1, int(sizes.max(initial=0))):
            n = int(np.searchsorted(-sizes, -place))
            found[:n] |= table.take(start[:n] + self.members[entry[:n], place], axis=0)
        united = np.empty_like(found)
        united[order] = found
        return united
