"""Possible winners of small panels, every election counted beforehand; under points and scores."""

from collections.abc import Sequence
from functools import cache
from itertools import combinations, combinations_with_replacement, permutations
from math import factorial
from typing import Any, Final, NamedTuple

import numpy as np

from tutorsim.analysis.ballots.vote_arrays_and_profiles import (
    Masses,
    distinct_rows,
    fitting,
    sorted_rows,
)
from tutorsim.analysis.counting.names_and_parameters_of_rules import (
    Rule,
    approvals_of,
    ballot_format,
    rank_scores,
)
from tutorsim.analysis.counting.voting_rules_in_arrays import CountedPanels
from tutorsim.analysis.identify.ballots_voters_may_cast_and_best_per_candidate import (
    Domain,
    any_set,
    approved_sets,
    cumulative_options,
    domain_of,
    extensions,
    free,
)
from tutorsim.analysis.identify.win_conditions import OPTIONS, Query, exempt_domain, linear_ways
from tutorsim.analysis.statistics.array_types import Bytes, Ints, OutcomeBits
from tutorsim.vocabularies import Protocol

# --- Small panel winners -------------------------------------------------------------------------

ANY: Final = 0
"""The label of a voter who may have cast any ballot."""

MOST_CANDIDATES: Final = 4
"""Sets of tied winners are the 16 bits of a family."""

_LARGEST: Final = 400_000
"""Combinations that a table may have: rankings of four voters over four candidates."""


def tabled(target: Rule, m: int, n: int) -> bool:
    """Whether the elections of n voters over m candidates are few enough to count them all."""
    if target in ("cumulative", "score", "median_score") or not 1 < m <= MOST_CANDIDATES:
        return False
    scores = rank_scores(target, m)
    if scores is not None and n * scores[0] > np.iinfo(np.int64).max:
        return False
    ballots = {"simple": m, "approval": 2**m}.get(ballot_format(target), factorial(m))
    return int(ballots**n) <= _LARGEST


@cache
def ballots_of(form: Protocol, m: int) -> Ints:
    """Shape (ballots, m): every ballot of a format as masses; not for points."""
    if form == "simple":
        return np.eye(m, dtype=np.int64)
    if form == "approval":
        return np.arange(1 << m)[:, None] >> np.arange(m) & 1
    rows = np.array(list(permutations(range(m))), dtype=np.int64)
    masses = np.empty_like(rows)
    np.put_along_axis(masses, rows, np.arange(m - 1, -1, -1)[None, :], axis=1)
    return masses


@cache
def allowed(domain: Domain, target: Rule, m: int) -> Ints:
    """Shape (allowed,): which rows of `ballots_of` a voter may have cast."""
    form = ballot_format(target)
    if domain.kind == "exact":
        masses = np.array(domain.data)
        return np.flatnonzero((ballots_of(form, m) == masses).all(axis=1))
    levels = domain.levels
    if form == "simple":
        return np.array(sorted(levels[0]))
    if form == "ranked":
        number = {order: i for i, order in enumerate(permutations(range(m)))}
        return np.array(sorted(number[order] for order in extensions(levels)))
    approvals = approvals_of(target)
    assert approvals is not None
    least, most = approvals.of(m)
    sets = np.arange(1 << m)
    within = [
        (sets & core == core) & (sets & ~(core | free) == 0)
        for core, free in approved_sets(domain, m, 0, approvals)
    ]
    size = np.bitwise_count(sets)
    return np.flatnonzero(np.logical_or.reduce(within) & (size >= least) & (size <= most))


@cache
def outcomes(target: Rule, m: int, n: int) -> Bytes:
    """Shape (combinations of ballots,): tied winners, as bits; 0 where nobody wins.

    The combination of ballots b1 … bn has the number b1·Fⁿ⁻¹ + … + bn, F ballots of the format.
    """
    ballots, scores = ballots_of(ballot_format(target), m), rank_scores(target, m)
    if scores is not None:
        return _by_sums(np.array(scores)[m - 1 - ballots], n)
    if ballot_format(target) in ("simple", "approval"):
        return _by_sums(ballots, n)
    panels, place = _in_order(m, n)  # what ballots give in order, they give in any order
    leaders = CountedPanels(ballots, panels).leaders(target)
    return np.asarray((leaders << np.arange(m)).sum(axis=1).astype(np.uint8)[place])


def _by_sums(ballots: Ints, n: int) -> Bytes:
    """Shape (combinations,): who has the largest sum, as bits. `ballots`: shape (ballots, m)."""
    fits = n * int(ballots.max()) <= np.iinfo(np.int16).max
    kept: type[np.signedinteger[Any]] = np.int16 if fits else np.int64
    columns = ballots.T.astype(kept, order="C")[:, None]  # candidate by candidate: rows are long
    sums = np.zeros((len(columns), 1), dtype=kept)
    for _ in range(n):
        sums = (sums[:, :, None] + columns).reshape(len(columns), -1)
    most = sums.max(axis=0)
    sets = np.zeros(len(most), dtype=np.uint8)
    for c, total in enumerate(sums):
        sets |= (total == most).view(np.uint8) << np.uint8(c)
    return sets


@cache
def _in_order(m: int, n: int) -> tuple[Ints, Ints]:
    """Shapes (panels, n), (combinations,): panels of rankings in order, and which each is."""
    size = factorial(m)
    panels = np.array(list(combinations_with_replacement(range(size), n)), dtype=np.int64)
    weights = size ** np.arange(n - 1, -1, -1)
    place = np.zeros(size**n, dtype=np.int32)
    place[panels @ weights] = np.arange(len(panels))
    every = np.indices((size,) * n, dtype=fitting(size)).reshape(n, len(place)).T
    return panels, place[sorted_rows(every) @ weights]


class Labels(NamedTuple):
    """What ballots leave possible under a target, by number; 0 is any ballot at all."""

    of: Ints
    """Shape (ballots,): the label of each ballot."""
    sets: tuple[Ints, ...]
    """Label → rows of `ballots_of` the target's format."""
    ballots: int
    """How many there are of the format."""


def labels_of(ballots: Sequence[Masses], protocol: Protocol, target: Rule, m: int) -> Labels:
    """Labels of some ballots; ballots that leave the same possible share one."""
    form = ballot_format(target)
    anything = any_set(m) if form == "approval" else free(m)
    numbers: dict[tuple[int, ...], int] = {tuple(allowed(anything, target, m).tolist()): ANY}
    of = np.zeros(len(ballots), dtype=np.int64)
    for i, ballot in enumerate(ballots):
        domain = domain_of(ballot, protocol=protocol, target=target)
        of[i] = numbers.setdefault(tuple(allowed(domain, target, m).tolist()), len(numbers))
    return Labels(of, tuple(map(np.array, numbers)), len(ballots_of(form, m)))


def panel_ends(
    panels: Ints, labels: Labels, targets: Sequence[Rule], m: int, exempt: int
) -> OutcomeBits:
    """Shape (exempt + 1, panels, targets): what panels may end in with at most so many exempt.

    An exempt voter is one whose label is `ANY`. So panels with one exempt voter more are the
    panels in which some voter's label is replaced, and these are answered once each.

    `panels`: shape (panels, voters): labels, -1 for an abstention.
    """
    first, number = distinct_rows(np.sort(panels, axis=1).T)
    levels = [np.sort(panels[first], axis=1)]
    children: list[Ints] = []
    for _ in range(exempt):
        rows, child = _with_one_exempt(levels[-1])
        levels.append(rows)
        children.append(child)
    ends = _ends_without_exempt(levels[-1], labels, targets, m)[None]
    for rows, child in zip(levels[-2::-1], children[::-1], strict=True):
        alone = _ends_without_exempt(rows, labels, targets, m)[None]
        freed = np.bitwise_or.reduce(ends[:, child], axis=2)
        ends = np.concatenate([alone, freed | alone])
    return np.asarray(ends[:, number])


def _with_one_exempt(rows: Ints) -> tuple[Ints, Ints]:
    """Shapes (different, n), (panels, n): panels with one more exempt, and which each voter gives.

    The panel with the voters of an exempt one replaced again is the panel itself; it leads to the
    level below like any other, since one exempt voter more includes as many as before.
    """
    panels, n = rows.shape
    replaced = np.repeat(rows[:, None, :], n, axis=1)
    replaced[:, np.arange(n), np.arange(n)] = ANY
    flat = np.sort(replaced.reshape(panels * n, n), axis=1)
    first, number = distinct_rows(flat.T)
    return flat[first], number.reshape(panels, n)


def _ends_without_exempt(
    rows: Ints, labels: Labels, targets: Sequence[Rule], m: int
) -> OutcomeBits:
    """Shape (panels, targets): the union of elections over what voters, rising labels, cast."""
    ends = np.zeros((len(rows), len(targets)), dtype=np.uint16)
    absent = (rows < 0).sum(axis=1)
    for nobody in np.unique(absent).tolist():
        some = np.flatnonzero(absent == nobody)
        cast = rows[some, nobody:]
        ends[some] = _united(_table(tuple(targets), m, cast.shape[1]), cast, labels)
    return ends


def _united(table: OutcomeBits, rows: Ints, labels: Labels) -> OutcomeBits:
    """Voter by voter: the tables of different beginnings of panels, united over its ballots.

    `table`: shape (combinations of ballots, targets). `rows`: shape (panels, voters): labels, none
    of an abstention.
    """
    sets, ballots, targets = labels.sets, labels.ballots, table.shape[1]
    tables, of = table.reshape(1, -1), np.zeros(len(rows), dtype=np.int64)
    for voter in range(rows.shape[1]):
        first, number = distinct_rows([of, rows[:, voter]])
        before, label = of[first], rows[first, voter]
        parts = tables.reshape(len(tables), ballots, -1)
        tables = np.zeros((len(first), parts.shape[2]), dtype=np.uint16)
        for one in np.unique(label).tolist():
            some = np.flatnonzero(label == one)
            if len(sets[one]) == ballots and len(some) > 1:
                every = np.bitwise_or.reduce(parts, axis=1)
                tables[some] = every[before[some]]
                continue
            held = parts[before[some], sets[one][0]]
            for ballot in sets[one][1:].tolist():
                held |= parts[before[some], ballot]
            tables[some] = held
        of = number
    return np.asarray(tables[of].reshape(len(rows), targets))


@cache
def _table(targets: tuple[Rule, ...], m: int, n: int) -> OutcomeBits:
    """Shape (combinations of ballots, targets); of one form of ballots."""
    return np.stack([_ends_of_sets(m)[outcomes(target, m, n)] for target in targets], axis=1)


@cache
def _ends_of_sets(m: int) -> OutcomeBits:
    """Shape (sets,): tied winners, as bits → what that is if the order decides, and if nothing."""
    bits = np.arange(1 << m)
    ends = (bits << 9 | (bits & -bits) << 1).astype(np.uint16)
    ends[0] = 1 << 8 | 1
    return ends


# --- Possible winners by points and scores -------------------------------------------------------

_HELD: Final[dict[Rule, int]] = {"cumulative": MOST_CANDIDATES, "score": 7, "median_score": 7}
"""Candidates up to which a rule has a table; a byte holds the outcomes of seven beside nobody."""

_ROWS: Final = 1 << 14
"""Panels whose points are added up at a time."""
_WIDE: Final = 4_096
"""Combinations of options of one panel that are added up."""


def sums_tabled(
    target: Rule, ballots: Sequence[Masses], protocol: Protocol, m: int, n: int, *, budget: int
) -> bool:
    """Whether panels of n voters have few enough combinations of points or scores."""
    if not (1 < m <= _HELD.get(target, 0) and n > 0 and 2**n <= _WIDE):
        return False
    exact = protocol == ballot_format(target)
    choices, medians = 2, 1
    if target == "median_score" and exact:
        medians = len({score for ballot in ballots for score in ballot}) + 1
    elif target == "median_score":
        choices = 3
    elif target == "cumulative" and not exact:
        domains = {domain_of(ballot, protocol=protocol, target=target) for ballot in ballots}
        options = (cumulative_options(d, c, m, budget).rows for d in domains for c in range(m))
        choices = 1 + max(map(len, options), default=1)
    return bool(choices**n * medians <= _WIDE)


def sums_ends(
    panels: Ints,
    ballots: Sequence[Masses],
    protocol: Protocol,
    target: Rule,
    *,
    m: int,
    budget: int,
    exempt: int,
) -> OutcomeBits:
    """Shape (exempt + 1, panels): what panels may end in when points or scores are summed, or
    medians taken.

    `panels`: shape (panels, voters): numbers of ballots, -1 for an abstention. `ballots`: what the
    numbers stand for; scores of all candidates, or of another format.
    """
    if target == "cumulative" == protocol:
        points = np.array([*ballots, (0,) * m], dtype=np.int32)
        return _ends_of_points(points.T[:, panels.T], budget, exempt)
    of_ballot = [domain_of(ballot, protocol=protocol, target=target) for ballot in ballots]
    domains = sorted(set(of_ballot))
    place = {domain: i for i, domain in enumerate(domains)}
    rows = np.sort(np.array([*map(place.__getitem__, of_ballot), -1])[panels], axis=1)
    first, number = distinct_rows(rows.T)
    rows = rows[first]  # places among the domains, rising; -1 for an abstention
    query = Query(target, m, budget, tuple(domains))
    ends = np.zeros((exempt + 1, len(rows)), dtype=np.uint16)
    for c in range(m):
        for shift, ahead in ((c + 1, range(c)), (c + 9, range(0))):
            least = np.full(len(rows), exempt + 1)
            for kind, extra, need in linear_ways(query, c, ahead):
                options = [_best(OPTIONS[kind](domain, c, m, extra).rows) for domain in domains]
                [all_in] = _best(OPTIONS[kind](exempt_domain(kind, c, m, extra), c, m, extra).rows)
                found = _least_exempt(rows, options, all_in, np.array(need), exempt)
                np.minimum(least, found, out=least)
            if not ahead:
                least[(rows < 0).all(axis=1)] = 0  # nobody voted, and everybody is tied
            ends |= (least <= np.arange(exempt + 1)[:, None]).astype(np.uint16) << np.uint16(shift)
    return ends[:, number]


def _best(options: Ints) -> Ints:
    """Shape (options, quantities): those that no other one is no less than in every column."""
    no_more = np.all(options[:, None] <= options, axis=2)
    under = no_more & np.any(options[:, None] < options, axis=2)
    return np.asarray(options[~np.any(under, axis=1)])


def _ends_of_points(points: Ints, budget: int, exempt: int) -> OutcomeBits:
    """Shape (exempt + 1, panels): what panels end in; an exempt voter gives one all points.

    `points`: shape (candidates, voters, panels), as cast; 0 for an abstention.
    """
    m, n, panels = points.shape
    ends = np.zeros((exempt + 1, panels), dtype=np.uint16)
    for k in range(exempt + 1):
        for voters in combinations(range(n), n - k):
            totals = np.zeros((m, panels), dtype=np.int32)
            for voter in voters:
                totals += points[:, voter]
            ends[k] |= _reached(totals, k * budget)
    return ends


def _reached(totals: Ints, spare: int) -> OutcomeBits:
    """Shape (panels,): who wins with so many points more. `totals`: shape (m, panels)."""
    m = len(totals)
    places = np.arange(m - 1, -1, -1, dtype=np.int32)[:, None]
    in_order = totals * m + places  # an equal total and an earlier place is more
    most, first = totals.max(axis=0) - spare, in_order.max(axis=0) - spare * m
    found = np.zeros(totals.shape[1], dtype=np.uint16)
    for c in range(m):
        found |= (in_order[c] >= first).astype(np.uint16) << np.uint16(c + 1)
        found |= (totals[c] >= most).astype(np.uint16) << np.uint16(c + 9)
    return found


def _least_exempt(
    rows: Ints,
    options: Sequence[Ints],
    all_in: Ints,
    need: Ints,
    exempt: int,
) -> Ints:
    """Shape (panels,): with how many exempt voters some choice reaches the need; over n: never.

    `rows`: shape (panels, voters). `options`: each shape (options, quantities).
    """
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
    cells: Sequence[Sequence[Ints]],
    sums: Ints,
    need: Ints,
    freed: int,
    exempt: int,
    least: Ints,
) -> None:
    """Add up every combination of choices; lower `least` in the rows that reach the need.

    `cells`, `sums`: shape (quantities, panels). `least`: shape (panels,).
    """
    if not cells:
        reached = (sums >= need).all(axis=0)
        least[reached & (least > freed)] = freed
        return
    if freed < exempt:
        _walk(cells[1:], sums + cells[0][0], need, freed + 1, exempt, least)
    for choice in cells[0][1:]:
        _walk(cells[1:], sums + choice, need, freed, exempt, least)
