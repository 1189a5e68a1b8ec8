"""Possible winners of many small panels at once, by table instead of by search.

What a voter may have cast is a set of ballots. The *family* of a panel is the set of all sets of
tied winners that some choice of ballots reaches; as at most four candidates have 16 sets, it is 16
bits. It is the union of the table `analysis.identify.outcomes` over the voters' ballots, and every
order and both readings of ties follow from it. An exempt voter is one that may have cast any
ballot at all, so families with exempt voters are families of other panels.

Points are too many for a table. There the few options of `analysis.identify.domains` are
added up in every combination, and the least number of exempt voters that lets a candidate win
is kept.

`analysis.identify.possible` searches instead, takes any panel, and is what tests hold this to.
"""

from collections.abc import Iterator, Sequence
from functools import cache
from itertools import combinations, pairwise, product
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from analysis.identify.domains import Domain, cumulative_options, single_minded
from analysis.identify.outcomes import MOST_CANDIDATES, allowed, ballots_of, outcomes, tabled
from analysis.rules import Target, ballot_format

__all__ = ["ABSENT", "Panel", "Winners", "covered", "winners_of"]

ABSENT: Final = -1
"""In a panel: a voter who abstained."""

Panel = NDArray[np.int64]
"""One panel a row, one voter a column: the number of its domain, or `ABSENT`."""

_WIDE: Final = 4_096
"""Combinations of options of one panel that are added up."""
_CHUNK: Final = 1 << 22
"""Numbers looked up at a time."""


class Winners(NamedTuple):
    """Possible outcomes of panels, as bits: bit 0 is nobody, bit c + 1 is candidate c."""

    fallback: NDArray[np.uint8]
    """Shape (panels, voters + 1): with at most so many exempt voters, ties to the order."""
    tied: NDArray[np.uint8]
    """The same where a tie stays a tie."""


def covered(target: Target, m: int, n: int, *, budget: int, domains: Sequence[Domain]) -> bool:
    """Whether panels of n voters over m candidates are small enough."""
    if target != "cumulative":
        return n > 0 and tabled(target, m, n)
    if not (1 < m <= MOST_CANDIDATES and n > 0 and 2**n <= _WIDE):
        return False
    most = max((len(_options(d, c, m, budget)) for d in domains for c in range(m)), default=1)
    return bool((most + 1) ** n <= _WIDE)


def winners_of(
    target: Target,
    panels: Panel,
    domains: Sequence[Domain],
    *,
    m: int,
    budget: int,
    exempt: int,
) -> Winners:
    """The possible outcomes of each panel.

    Args:
        target: The rule.
        panels: Numbers of domains; the voters' order plays no part.
        domains: What the numbers stand for.
        m: Number of candidates.
        budget: Points of a cumulative ballot.
        exempt: Most exempt voters to answer for; beyond it columns repeat the last answer.
    """
    exempt = min(exempt, panels.shape[1])
    if target == "cumulative":
        return _by_points(panels, domains, m, budget, exempt)
    families = _families(target, panels, domains, m, exempt)
    fallback, tied = _readings(m)
    return Winners(fallback[families], tied[families])


@cache
def _readings(m: int) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    """Family → outcomes when ties go to the order, and when they stay."""
    family = np.arange(1 << (1 << m))
    fallback, tied = np.zeros((2, len(family)), dtype=np.uint8)
    for bits in range(1 << m):
        has = (family >> bits & 1).astype(np.bool_)
        first = 1 if bits == 0 else (bits & -bits) << 1
        fallback[has] |= np.uint8(first)
        tied[has] |= np.uint8(1 if bits == 0 else bits << 1)
    return fallback, tied


def _families(
    target: Target, panels: Panel, domains: Sequence[Domain], m: int, exempt: int
) -> NDArray[np.uint16]:
    """Shape (panels, voters + 1)."""
    form = ballot_format(target)
    sets = [allowed(domain, form, m) for domain in domains]
    sets.append(np.arange(len(ballots_of(form, m))))
    anything = len(sets) - 1
    sizes = np.array([len(s) for s in sets] + [0])  # the last for ABSENT
    n = panels.shape[1]
    found = np.zeros((len(panels), n + 1), dtype=np.uint16)
    for k in range(exempt + 1):
        for freed in combinations(range(n), k):
            asked = panels.copy()
            asked[:, freed] = anything
            found[:, k] |= _unions(target, asked, sets, sizes, m)
        if k:
            found[:, k] |= found[:, k - 1]
    found[:, exempt + 1 :] = found[:, [exempt]]
    return found


def _unions(
    target: Target,
    panels: Panel,
    sets: Sequence[NDArray[np.int64]],
    sizes: NDArray[np.int64],
    m: int,
) -> NDArray[np.uint16]:
    """The family of each panel; equal panels are answered once."""
    by_size = np.lexsort((panels, -sizes[panels]), axis=1)
    rows, index = _distinct(np.take_along_axis(panels, by_size, axis=1))
    cast = (rows != ABSENT).sum(axis=1)
    answers = np.empty(len(rows), dtype=np.uint16)
    for n in np.unique(cast).tolist():
        which = np.flatnonzero(cast == n)
        answers[which] = _unions_of(target, rows[which, :n], sets, m)
    return np.asarray(answers[index])


def _distinct(rows: Panel) -> tuple[Panel, NDArray[np.int64]]:
    """The different rows, and where each row is among them."""
    shifted = rows + 1
    base = int(shifted.max(initial=0)) + 1
    code = shifted @ (base ** np.arange(rows.shape[1] - 1, -1, -1))
    _, first, index = np.unique(code, return_index=True, return_inverse=True)
    return rows[first], index


def _unions_of(
    target: Target, rows: Panel, sets: Sequence[NDArray[np.int64]], m: int
) -> NDArray[np.uint16]:
    """Families of panels without abstentions: the first half of the voters, then the rest."""
    n = rows.shape[1]
    ballots = len(sets[-1])
    table = np.left_shift(np.uint16(1), outcomes(target, m, n).astype(np.uint16))
    split = n // 2
    heads, head = _distinct(rows[:, :split])
    tails, tail = _distinct(rows[:, split:])
    by_head = _reduced(table.reshape(ballots**split, -1), heads, sets)
    joined, lengths = _combined(tails, sets)
    starts = np.cumsum(lengths) - lengths
    answers = np.empty(len(rows), dtype=np.uint16)
    for part in _parts(lengths[tail], _CHUNK):
        t = tail[part]
        column = joined[_ranges(starts[t], lengths[t])]
        row = np.repeat(head[part], lengths[t])
        edges = np.cumsum(lengths[t]) - lengths[t]
        answers[part] = np.bitwise_or.reduceat(by_head[row, column], edges)
    return answers


def _reduced(
    table: NDArray[np.uint16], heads: Panel, sets: Sequence[NDArray[np.int64]]
) -> NDArray[np.uint16]:
    """Row for row, the union of the table over what the first voters may have cast."""
    joined, lengths = _combined(heads, sets)
    starts = np.cumsum(lengths) - lengths
    found = np.empty((len(heads), table.shape[1]), dtype=np.uint16)
    for part in _parts(lengths, max(1, _CHUNK // table.shape[1])):
        rows = joined[_ranges(starts[part], lengths[part])]
        edges = np.cumsum(lengths[part]) - lengths[part]
        found[part] = np.bitwise_or.reduceat(table[rows], edges, axis=0)
    return found


def _parts(lengths: NDArray[np.int64], most: int) -> Iterator[slice]:
    """Runs of rows whose lengths sum to about the most that is wanted."""
    group = (np.cumsum(lengths) - 1) // most
    edges = np.flatnonzero(np.diff(group, prepend=-1, append=-1)).tolist()
    for start, end in pairwise([*edges[:-1], len(lengths)] if len(lengths) else []):
        yield slice(start, end)


def _combined(
    rows: Panel, sets: Sequence[NDArray[np.int64]]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Numbers of all combinations of the voters' ballots, row after row, and how many each has."""
    ballots = len(sets[-1])
    sizes = np.array([len(one) for one in sets])
    starts, flat = np.cumsum(sizes) - sizes, np.concatenate(sets)
    owner, numbers = np.arange(len(rows)), np.zeros(len(rows), dtype=np.int64)
    for voter in range(rows.shape[1]):
        domain = rows[owner, voter]
        more = sizes[domain]
        numbers = np.repeat(numbers, more) * ballots + flat[_ranges(starts[domain], more)]
        owner = np.repeat(owner, more)
    return numbers, np.bincount(owner, minlength=len(rows))


def _ranges(starts: NDArray[np.int64], lengths: NDArray[np.int64]) -> NDArray[np.int64]:
    """The numbers start … start + length - 1, one range after the other."""
    before = np.cumsum(lengths) - lengths
    return np.asarray(np.arange(int(lengths.sum())) + np.repeat(starts - before, lengths))


def _options(domain: Domain, c: int, m: int, budget: int) -> NDArray[np.int32]:
    return cumulative_options(domain, c, m, budget).rows


def _by_points(
    panels: Panel, domains: Sequence[Domain], m: int, budget: int, exempt: int
) -> Winners:
    """Least exempt voters with which a candidate wins, then the outcomes for each number."""
    rows, index = _distinct(np.sort(panels, axis=1))
    n = panels.shape[1]
    fallback, tied = np.zeros((2, len(rows), n + 1), dtype=np.uint8)
    for c in range(m):
        options = [_options(d, c, m, budget) for d in domains]
        all_in = _options(single_minded(c, m, budget), c, m, budget)[0]
        behind = np.array([int(d < c) for d in range(m) if d != c])
        for bits, need in ((fallback, behind), (tied, 0 * behind)):
            least = _least_exempt(rows, options, all_in, need, exempt)
            reached = least[:, None] <= np.arange(n + 1)
            bits[reached] |= np.uint8(2 << c)
    return Winners(fallback[index], tied[index])


def _least_exempt(
    rows: Panel,
    options: Sequence[NDArray[np.int32]],
    all_in: NDArray[np.int32],
    need: NDArray[np.int64],
    exempt: int,
) -> NDArray[np.int64]:
    """With how many exempt voters some choice of options reaches the need; more than n: never."""
    n = rows.shape[1]
    most = max((len(one) for one in options), default=1)
    padded = np.zeros((len(options) + 1, most, len(need)), dtype=np.int32)
    for place, one in enumerate(options):  # rows repeat; ABSENT, the last, adds nothing
        padded[place] = one[np.arange(most) % len(one)] if len(one) > 1 else one[0]
    each = padded[rows]
    least = np.full(len(rows), n + 1)
    for k in range(exempt, -1, -1):
        for freed in combinations(range(n), k):
            fixed = [v for v in range(n) if v not in freed]
            reached = np.zeros(len(rows), dtype=np.bool_)
            for chosen in product(range(most), repeat=len(fixed)):
                sums = each[:, fixed, chosen].sum(axis=1) + k * all_in
                reached |= (sums >= need).all(axis=1)
            least[reached] = k
    return least
