"""Possible winners where points are counted.

Ballots of points are too many for a table of all elections. Where the points are known they are
added up, once for each choice of exempt voters. Where only a weak order is known, the few options
of `analysis.identify.consistent_ballots` are added up in every combination, and the least number of
exempt voters that lets a candidate win is kept.
"""

from collections.abc import Sequence
from itertools import combinations
from typing import Final

import numpy as np
from numpy.typing import NDArray

from tutorsim.analysis.ballots.distinct_rows import distinct_rows
from tutorsim.analysis.ballots.turn_profiles import Masses
from tutorsim.analysis.identify.consistent_ballots import (
    Domain,
    cumulative_options,
    domain_of,
    single_minded,
)
from tutorsim.analysis.identify.small_panel_winners import MOST_CANDIDATES, Ends
from tutorsim.vocabularies import Protocol

__all__ = ["point_ends", "points_tabled"]

Ints = NDArray[np.int64]
Points = NDArray[np.int32]

_ROWS: Final = 1 << 14
"""Panels whose points are added up at a time."""
_WIDE: Final = 4_096
"""Combinations of options of one panel that are added up."""


def points_tabled(
    ballots: Sequence[Masses], protocol: Protocol, m: int, n: int, *, budget: int
) -> bool:
    """Whether panels of n voters with such ballots have few enough combinations of points."""
    if not (1 < m <= MOST_CANDIDATES and n > 0 and 2**n <= _WIDE):
        return False
    domains = {domain_of(ballot, protocol=protocol, target="cumulative") for ballot in ballots}
    several = [domain for domain in domains if domain.kind != "exact"]
    most = max((len(_options(d, c, m, budget)) for d in several for c in range(m)), default=1)
    return bool((most + 1) ** n <= _WIDE)


def point_ends(
    panels: Ints, ballots: Sequence[Masses], protocol: Protocol, *, m: int, budget: int
) -> Ends:
    """Shape (exempt + 1, panels), exempt up to all voters: what panels may end in.

    Args:
        panels: Shape (panels, voters): numbers of ballots, -1 for an abstention.
        ballots: What the numbers stand for.
        protocol: Of the ballots.
        m: Number of candidates.
        budget: Points of a ballot.
    """
    exempt = panels.shape[1]
    if protocol == "cumulative":
        points = np.array([*ballots, (0,) * m], dtype=np.int32)
        return _ends_of_points(points.T[:, panels.T], budget, exempt)
    domains = [domain_of(ballot, protocol=protocol, target="cumulative") for ballot in ballots]
    different = sorted(set(domains))
    place = {domain: i for i, domain in enumerate(different)}
    of = np.array([*(place[domain] for domain in domains), -1])
    rows = np.sort(of[panels], axis=1)
    first, number = distinct_rows(rows.T)
    return np.asarray(_ends_of_orders(rows[first], different, m, budget, exempt)[:, number])


def _options(domain: Domain, c: int, m: int, budget: int) -> Points:
    return cumulative_options(domain, c, m, budget).rows


def _ends_of_points(points: Points, budget: int, exempt: int) -> Ends:
    """Shape (exempt + 1, panels): what panels end in whose ballots are known.

    An exempt voter serves a candidate best with all points there are.

    Args:
        points: Shape (candidates, voters, panels); 0 for an abstention.
        budget: Points of a ballot.
        exempt: Most exempt voters to answer for.
    """
    m, n, panels = points.shape
    ends = np.zeros((exempt + 1, panels), dtype=np.uint16)
    for k in range(exempt + 1):
        for voters in combinations(range(n), n - k):
            totals = np.zeros((m, panels), dtype=np.int32)
            for voter in voters:
                totals += points[:, voter]
            ends[k] |= _reached(totals, k * budget)
        ends[k] |= ends[max(k - 1, 0)]
    return ends


def _reached(totals: Points, spare: int) -> Ends:
    """Who wins with so many points more."""
    m = len(totals)
    places = np.arange(m - 1, -1, -1, dtype=np.int32)[:, None]
    in_order = totals * m + places  # an equal total and an earlier place is more
    most, first = totals.max(axis=0) - spare, in_order.max(axis=0) - spare * m
    found = np.zeros(totals.shape[1], dtype=np.uint16)
    for c in range(m):
        found |= (in_order[c] >= first).astype(np.uint16) << np.uint16(c + 1)
        found |= (totals[c] >= most).astype(np.uint16) << np.uint16(c + 9)
    return found


def _ends_of_orders(
    rows: Ints, domains: Sequence[Domain], m: int, budget: int, exempt: int
) -> Ends:
    """Shape (exempt + 1, panels): what panels end in whose weak orders are known.

    Args:
        rows: Different panels: places in `domains`, rising, -1 for an abstention.
        domains: What voters may have cast, sorted.
        m: Number of candidates.
        budget: Points of a ballot.
        exempt: Most exempt voters to answer for.
    """
    columns = np.arange(exempt + 1)[:, None]
    ends = np.zeros((exempt + 1, len(rows)), dtype=np.uint16)
    for c in range(m):
        options = [_options(d, c, m, budget) for d in domains]
        all_in = _options(single_minded(c, m, budget), c, m, budget)[0]
        behind = np.array([int(d < c) for d in range(m) if d != c])
        for shift, need in ((c + 1, behind), (c + 9, 0 * behind)):
            least = _least_exempt(rows, options, all_in, need, exempt)
            ends |= (least <= columns).astype(np.uint16) << np.uint16(shift)
    return ends


def _least_exempt(
    rows: Ints,
    options: Sequence[NDArray[np.int32]],
    all_in: NDArray[np.int32],
    need: NDArray[np.int64],
    exempt: int,
) -> NDArray[np.int64]:
    """With how many exempt voters some choice of options reaches the need; more than n: never."""
    least = np.full(len(rows), rows.shape[1] + 1)
    sizes = np.array([*(len(one) for one in options), 1])
    tables = [
        np.array([*(one[choice % len(one)] for one in options), 0 * all_in], dtype=np.int32).T
        for choice in range(int(sizes.max()))
    ]  # options repeat; -1, the last, adds nothing
    for start in range(0, len(rows), _ROWS):
        part = slice(start, start + _ROWS)
        freed = np.repeat(all_in[:, None], len(rows[part]), axis=1)
        cells = [
            [freed, *(table[:, column] for table in tables[: int(sizes[column].max())])]
            for column in rows[part].T
        ]
        _walk(cells, 0 * freed, need.astype(np.int32)[:, None], 0, exempt, least[part])
    return least


def _walk(
    cells: Sequence[Sequence[NDArray[np.int32]]],
    sums: NDArray[np.int32],
    need: NDArray[np.int32],
    freed: int,
    exempt: int,
    least: NDArray[np.int64],
) -> None:
    """Add up every combination of choices; lower `least` in the rows that reach the need."""
    if not cells:
        reached = (sums >= need).all(axis=0)
        least[reached & (least > freed)] = freed
        return
    if freed < exempt:
        _walk(cells[1:], sums + cells[0][0], need, freed + 1, exempt, least)
    for choice in cells[0][1:]:
        _walk(cells[1:], sums + choice, need, freed, exempt, least)
