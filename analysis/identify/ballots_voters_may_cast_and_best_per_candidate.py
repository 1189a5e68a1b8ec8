"""What a voter may have cast under a target, given the ballot it cast.

Every logged ballot shows a weak order of the candidates: a single choice above the rest, a
strict ranking, points, or the approved above the others. Consistent ballots follow from it:

* simple: any candidate of the top level
* ranked: any linear extension
* cumulative: points that never rise from a level to the next
* approval: an upper set of levels, at least one; where the ballot was a single choice or a
  ranking, the last level of an upper set may be cut, since such a ballot does not say that those
  whom it leaves out are equal. Where voters are taken to approve of so many candidates only, any
  set of so many in which nobody stands below an outsider: a level may be split, so that what is
  possible can only grow with the range
* score: scores that never rise from a level to the next, where as much as the whole scale may lie
  between two levels, or nothing

Scores that are left out may be any on the scale: such a ballot is *open*, a weak order in which
some candidates may stand anywhere. It allows what some weak order with them on one of its levels
does; in an approval each may be approved or not, as the ends of the scale allow.

A ballot already in the target's format is only itself. Candidates are numbers here, in
the fallback order.

For one candidate `c` most consistent ballots need not be looked at, because another one serves
`c` at least as well against every rival. What is left is a few *options* per voter: integer
vectors whose sums decide whether `c` wins. The functions below give them, each with the
argument why nothing is lost.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache, wraps
from itertools import chain, combinations, islice, permutations, product, takewhile
from math import factorial, prod
from typing import Any, Final, Literal, NamedTuple

import numpy as np

from tutorsim.analysis.ballots.names_and_properties_of_ballot_formats import FORMATS
from tutorsim.analysis.ballots.vote_arrays_and_profiles import LEFT_OUT, Levels, Masses, levels_of
from tutorsim.analysis.counting.names_and_parameters_of_rules import (
    ANY_NUMBER,
    Approvals,
    Rule,
    ballot_format,
)
from tutorsim.analysis.statistics.array_types import Ints
from tutorsim.vocabularies import Protocol

_PLACEMENTS: Final = 512
"""Weak orders of one open ballot up to which all are looked at."""

MANY: Final = 5_040
"""Options of a voter up to which all are listed; of more, some, with bounds on all."""
ALL_OPTIONS: Final = 200_000
"""Options of points and of places to list for all different ballots and candidates together."""


class Options(NamedTuple):
    """What one voter can add to the sums that decide whether a candidate wins."""

    rows: Ints
    """Shape (options, quantities)."""
    low: Ints
    """Shape (quantities,): the least of each."""
    high: Ints
    """Shape (quantities,): the most of each."""
    whole: bool = True
    """Whether all are in `rows`. If not, bounds hold for those left out, too."""

    @staticmethod
    def of(rows: Ints) -> "Options":
        """Options, shape (options, quantities), with their bounds; a single one is its own."""
        if len(rows) == 1:
            return Options(rows, rows[0], rows[0])
        return Options(rows, rows.min(axis=0), rows.max(axis=0))


class Domain(NamedTuple):
    """The ballots that one voter may have cast; equal domains are interchangeable voters."""

    kind: Literal["order", "choice", "exact", "open"]
    """A weak order; one whose levels an approval may cut; the ballot itself; scores of some."""
    data: Levels | Masses
    """Levels, best first, or the masses of an exact or open ballot."""

    @property
    def levels(self) -> Levels:
        """The weak order, also of an exact ballot; of an open one, of those who have scores."""
        if self.kind == "exact":
            return levels_of(self.data)
        if self.kind == "open":
            return levels_of(self.data)[:-1]
        return self.data  # type: ignore[return-value]

    @property
    def unscored(self) -> tuple[int, ...]:
        """The candidates of an open ballot that have no score."""
        return tuple(c for c, mass in enumerate(self.data) if mass == LEFT_OUT)


def domain_of(ballot: Masses, *, protocol: Protocol, target: Rule | Protocol) -> Domain:
    """What the voter may have cast under `target`."""
    form, cast = ballot_format(target), FORMATS[protocol]
    if protocol == form and cast.numbers:
        return Domain("exact", ballot)
    if cast.left_out == "anywhere" and LEFT_OUT in ballot:
        return Domain("open", ballot)
    cut = form == "approval" and not cast.equals
    kind: Literal["order", "choice"] = "choice" if cut else "order"
    return Domain(kind, levels_of(ballot))


def free(m: int) -> Domain:
    """Any order at all: the domain of an exempt voter."""
    return Domain("order", (tuple(range(m)),))


def any_set(m: int) -> Domain:
    """Any set at all: the domain of an exempt voter who approves."""
    return Domain("choice", (tuple(range(m)),))


def single_minded(c: int, m: int, mass: int) -> Domain:
    """The ballot that gives `c` all there is: an exempt voter's best for `c`."""
    return Domain("exact", tuple(mass if d == c else 0 for d in range(m)))


@lru_cache(maxsize=1 << 12)
def placements(domain: Domain) -> tuple[Domain, ...]:
    """The weak orders of an open ballot, with each candidate that has no score on some level.

    Equal candidates stand in any order, so that these are all orders that are possible.
    """
    levels, unscored = domain.levels, domain.unscored
    found = []
    for places in product(range(len(levels)), repeat=len(unscored)):
        on = [*map(list, levels)]
        for c, place in zip(unscored, places, strict=True):
            on[place].append(c)
        found.append(Domain("order", tuple(tuple(sorted(level)) for level in on)))
    return tuple(found)


def _of_placements(options: Callable[..., Options]) -> Callable[..., Options]:
    """Options of an open ballot: those of all its placements; of very many, bounds on them."""

    @wraps(options)
    def every(domain: Domain, c: int | None, m: int, *rest: Any, **named: Any) -> Options:
        if domain.kind != "open":
            return options(domain, c, m, *rest, **named)
        if len(domain.levels) ** len(domain.unscored) > _PLACEMENTS:
            last = (*domain.levels[:-1], tuple(sorted((*domain.levels[-1], *domain.unscored))))
            some = options(Domain("order", last), c, m, *rest, **named)
            first = options(free(m), c, m, *rest, **named)
            most = np.maximum(first.high, -first.low)  # put last, `c` trails by as much
            return Options(some.rows, -most, most, whole=False)
        parts = [options(one, c, m, *rest, **named) for one in placements(domain)]
        rows = np.unique(np.concatenate([part.rows for part in parts]), axis=0)
        low = np.min([part.low for part in parts], axis=0)
        high = np.max([part.high for part in parts], axis=0)
        return Options(rows, low, high, whole=all(part.whole for part in parts))

    return every


def extensions(levels: Levels, top: int | None = None) -> Iterator[tuple[int, ...]]:
    """Linear extensions of a weak order, with `top` first in its level if given."""
    parts: list[list[tuple[int, ...]]] = []
    for level in levels:
        if top in level:
            rest = [d for d in level if d != top]
            parts.append([(top, *tail) for tail in permutations(rest)])
        else:
            parts.append(list(permutations(level)))
    for chosen in product(*parts):
        yield tuple(d for part in chosen for d in part)


@_of_placements
@lru_cache(maxsize=1 << 16)
def simple_options(domain: Domain, c: int, m: int) -> Options:
    """Votes of `c` less votes of each other candidate.

    A voter that can name `c` names it: any other vote is worse for `c` against everybody.
    """
    top = domain.levels[0]
    if c in top:
        return _against(c, [[1] * m])
    return _against(c, [[-int(d == named) for d in range(m)] for named in top])


ApprovedSets = tuple[int, int]
"""Sets that may be approved: everybody of the first, and anybody or nobody of the second. Bit `c`
of a set is 1 for candidate `c`: many candidates have as many sets, of as many members."""


def bits(members: Iterable[int]) -> int:
    """Candidates as the bits of a number."""
    return sum(1 << c for c in members)


@lru_cache(maxsize=1 << 16)
def approved_sets(domain: Domain, m: int, top: int, number: Approvals) -> list[ApprovedSets]:
    """What a voter may approve of, as long as it is so many candidates.

    Of an open ballot, candidates without a score may be above or below any threshold between two
    scores, but not above the end of the scale, and not below 0. They may also stand on a level
    that is split, and only enlarge it.

    `number`: how many a voter approves of; a level is never split where that is any number.
    """
    if domain.kind == "exact":
        return [(bits(c for c, mass in enumerate(domain.data) if mass), 0)]
    levels, unscored = domain.levels, 0
    first, last = False, True
    if domain.kind == "open":
        unscored = bits(domain.unscored)
        scores: list[int] = [score for score in domain.data if score != LEFT_OUT]  # type: ignore[misc]
        first, last = max(scores, default=0) < top, min(scores, default=1) > 0
    found, above = list[ApprovedSets](), 0
    if first:
        found.append((above, unscored))
    for level in map(bits, levels):
        if domain.kind == "choice" or number != ANY_NUMBER:
            found.append((above, level | unscored))
        above |= level
        if (above | unscored).bit_count() < m or last:
            found.append((above, unscored))
    return [*found, (bits(range(m)), 0)]


@lru_cache(maxsize=1 << 16)
def approval_options(
    domain: Domain, c: int, m: int, of: tuple[int, Approvals], many: int = MANY
) -> Options:
    """Approvals of `c` less approvals of each other candidate.

    Any set with `c` beats every set without it, since against nobody `c` is worse off. Of two sets
    that both have `c` in them, or neither, the smaller beats the larger one.

    `of`: the end of the scale of scores, and how many a voter approves of. `many`: options up to
    which all are listed.
    """
    (top, approvals), this = of, 1 << c
    sets = approved_sets(domain, m, top, approvals)
    number = (0, m) if domain.kind == "exact" else approvals.of(m)
    ways = [(core | this, free & ~this) for core, free in sets if (core | free) & this]
    ways = [way for way in ways if _fits(*way, number)]
    own = 1 if ways else 0
    ways = ways or [(core, free & ~this) for core, free in sets if not core & this]
    given = list(islice(dict.fromkeys(_smallest(ways, number, m)), many + 1))
    sets_ = [one for one in given[:many] if not any(other != one == other | one for other in given)]
    options = _against(c, [[own - (one >> d & 1) for d in range(m)] for one in sets_])
    if len(given) <= many:
        return options
    return Options(options.rows, options.low * 0 + (own - 1), options.high * 0 + own, whole=False)


def _fits(core: int, free: int, number: tuple[int, int]) -> bool:
    """Whether some set has so many candidates."""
    return core.bit_count() <= number[1] and (core | free).bit_count() >= number[0]


def _smallest(ways: Sequence[ApprovedSets], number: tuple[int, int], m: int) -> Iterator[int]:
    """The smallest sets with so many candidates that have everybody in a core."""
    for core, free in ways:
        if _fits(core, free, number):
            some = [1 << c for c in range(m) if free >> c & 1]
            for more in combinations(some, max(number[0] - core.bit_count(), 0)):
                yield core | sum(more)


@_of_placements
@lru_cache(maxsize=1 << 12)
def cumulative_options(domain: Domain, c: int, m: int, budget: int, many: int = MANY) -> Options:
    """Points of `c` less points of each other candidate.

    Let `u` candidates be `c` and all in levels above it. Each of them has at least what `c`
    has, so `c` gets at most q = ⌊budget / u⌋. A ballot that gives `c` less can be changed to
    give it one point more and nobody more than one point more, so `c` gets q without loss;
    what varies is only where the remaining budget - u·q < u points go.
    """
    if domain.kind == "exact":
        return _leads(domain.data, c)  # type: ignore[arg-type]
    levels = domain.levels
    upper = {c, *_above(levels, c)}
    share, left = divmod(budget, len(upper))
    start = [share if d in upper else 0 for d in range(m)]
    given = list(islice(_never_rising(start, left, levels, c), many + 1))
    options = _against(c, [[share - mass for mass in points] for points in given[:many]])
    if len(given) <= many:
        return options
    most = np.delete(share - np.array(start, dtype=np.int32), c)
    return Options(options.rows, most - np.int32(left), most, whole=False)


@_of_placements
def rank_options(
    domain: Domain, c: int, m: int, scores: tuple[int, ...], many: int = MANY
) -> Options:
    """Scores by rank of `c` less those of each other candidate; in 64 bits.

    `c` stands first in its level: moving it up never costs it anything, and gives nothing to the
    candidates that it passes, since scores never rise from a rank to the next.
    """
    given = _given_scores(domain.levels, c, scores, many)
    if given is not None:
        rows = np.array(given)
        return _against(c, rows[:, [c]] - rows)
    by_rank = np.array(scores)
    orders, _ = _orders(domain.levels, c, many)
    rows = by_rank[np.argsort(np.array(orders), axis=1)]
    first, last = _places(domain.levels, c, m)
    low, high = (np.delete(by_rank[first[c]] - by_rank[places], c) for places in (first, last))
    return Options(_against(c, rows[:, [c]] - rows).rows, low, high, whole=False)


def _given_scores(
    levels: Levels, top: int, scores: tuple[int, ...], many: int
) -> list[tuple[int, ...]] | None:
    """Every different row of candidates' scores, `top` first in its level; `None` for too many."""
    line, parts, above, rows = list[int](), list[list[tuple[int, ...]]](), 0, 1
    for level in levels:
        start = above + (top in level)
        above += len(level)
        rest = scores[start:above]
        rows *= factorial(len(rest)) // prod(map(factorial, Counter(rest).values()))
        if rows > many:
            return None
        line += [d for d in level if d == top] + [d for d in level if d != top]
        parts.append([(*scores[above - len(level) : start], *tail) for tail in _arranged(rest)])
    seats = np.argsort(line).tolist()
    every = ([score for part in chosen for score in part] for chosen in product(*parts))
    return [tuple(row[seat] for seat in seats) for row in every]


def _arranged(scores: Sequence[int]) -> Iterator[tuple[int, ...]]:
    """Every different order of some scores."""
    if len(set(scores)) == len(scores):
        yield from permutations(scores)
        return
    for score in dict.fromkeys(scores):
        rest = list(scores)
        rest.remove(score)
        yield from ((score, *tail) for tail in _arranged(rest))


@_of_placements
@lru_cache(maxsize=1 << 16)
def condorcet_options(domain: Domain, c: int, m: int) -> Options:
    """Margin of `c` over each other candidate, `c` first in its level: one option."""
    above = _above(domain.levels, c)
    return _against(c, [[-1 if d in above else 1 for d in range(m)]])


@_of_placements
@lru_cache(maxsize=1 << 10)
def bucklin_options(domain: Domain, c: int, m: int, depth: int, many: int = MANY) -> Options:
    """What makes `c` win Bucklin's count at `depth`, `c` first in its level.

    Columns: for each other `d`, minus (twice its presence in the first depth-1 places less one),
    so that a sum of 0 or more says that `d` had no majority earlier; for `c`, twice its presence
    in the first `depth` places less one, so that 1 or more is a majority; for each other
    `d`, presence of `c` less presence of `d` in the first `depth` places.
    """
    rivals = [d for d in range(m) if d != c]
    openings = list(islice(_openings(domain.levels, c, depth), many + 1))
    whole = len(openings) <= many
    if not whole:
        orders, _ = _orders(domain.levels, c, many)
        openings = [(set(order[: depth - 1]), set(order[:depth])) for order in orders]
    rows = {
        (
            *(1 - 2 * (d in before) for d in rivals),
            2 * (c in now) - 1,
            *((c in now) - (d in now) for d in rivals),
        )
        for before, now in openings
    }
    options = Options.of(np.array(sorted(rows), dtype=np.int32))
    if whole:
        return options
    first, last = (np.delete(places, c) for places in _places(domain.levels, c, m))
    own = options.rows[0, m - 1 : m]
    present = (own > 0).astype(np.int32)
    low, high = (
        np.concatenate([1 - 2 * (at < depth - 1), own, present - (at < depth)]).astype(np.int32)
        for at in (first, last)
    )
    return Options(options.rows, low, high, whole=False)


@lru_cache(maxsize=1 << 16)
def score_options(domain: Domain, c: int, m: int, top: int) -> Options:
    """Scores of `c` less those of each other candidate: one option.

    `c` and everybody above it get the end of the scale, all others 0; scores that were given stay,
    and those left out are the end for `c` and 0 for others.
    """
    if domain.kind == "exact":
        return _leads(_most_for(domain, c, top), c)
    above = _above(domain.levels, c)
    return _against(c, [[0 if d in above else top for d in range(m)]])


@lru_cache(maxsize=1 << 16)
def median_options(
    domain: Domain, c: int, m: int, at: tuple[int, int, frozenset[int]], many: int = MANY
) -> Options:
    """What makes the lower median of `c` the largest, and `t` or more.

    Columns, each 1 or -1, and summed over voters: for `c`, that its score is `t` or more, so that a
    sum of 1 or more says that its median is; for each rival, that its score is no more than `t`,
    or, of one ahead, less than `t`, so that a sum of 0 or more says that its median is so.

    Of a weak order only two ballots matter: `t` to `c` and everybody above it, or 0 to all.

    `at`: the end of the scale, `t`, and who must not be tied with `c`.
    """
    top, t, ahead = at
    ballots: list[Sequence[int]]
    if domain.kind == "exact":
        ballots = [_most_for(domain, c, top)]
    else:
        with_c = {c, *_above(domain.levels, c)}
        ballots = [[t if d in with_c else 0 for d in range(m)], [0] * m]
    rivals = [d for d in range(m) if d != c]
    rows = [
        [scores[c] >= t, *(scores[d] < t + (d not in ahead) for d in rivals)] for scores in ballots
    ]
    return Options.of(np.unique(2 * np.array(rows, dtype=np.int32) - 1, axis=0))


def _most_for(domain: Domain, c: int, top: int) -> Masses:
    """Scores, those left out as they serve `c` best."""
    scores: Masses = domain.data  # type: ignore[assignment]
    return tuple(
        (top if d == c else 0) if score == LEFT_OUT else score for d, score in enumerate(scores)
    )


def _above(levels: Levels, c: int) -> set[int]:
    """Everybody on a better level."""
    return set(chain.from_iterable(takewhile(lambda level: c not in level, levels)))


def _openings(levels: Levels, top: int, depth: int) -> Iterator[tuple[set[int], set[int]]]:
    """The first depth - 1 and the first `depth` places of extensions, `top` first in its level."""
    above: set[int] = set()
    for level in levels:
        inside = depth - 1 - len(above)
        if inside < len(level):
            break
        above |= set(level)
    for chosen in combinations(level, inside):
        if top in level and inside and top not in chosen:
            continue
        before = above | set(chosen)
        following = [top] if top in level and not inside else level
        for d in following:
            if d not in before:
                yield before, before | {d}


@_of_placements
@lru_cache(maxsize=1 << 10)
def pair_options(domain: Domain, c: int | None, m: int, many: int = MANY) -> Options:
    """Who is above whom, +1 or -1 for each pair a < b.

    With `c` given it stands first in its level. Copeland, minimax and Schulze allow that:
    raising a winner changes only its own pairs, in its favour, keeps it a winner and makes
    no other candidate one.
    """
    orders, whole = _orders(domain.levels, c, many)
    first, last = np.triu_indices(m, 1)
    places = np.argsort(np.array(orders, dtype=np.int32), axis=1)
    above = np.where(places[:, first] < places[:, last], 1, -1).astype(np.int32)
    if whole:
        return Options.of(above)
    best, worst = _places(domain.levels, c, m)
    low = np.where(worst[first] < best[last], 1, -1).astype(np.int32)
    high = np.where(worst[last] < best[first], -1, 1).astype(np.int32)
    return Options(above, low, high, whole=False)


def _orders(levels: Levels, top: int | None, many: int) -> tuple[Sequence[tuple[int, ...]], bool]:
    """Linear extensions, of very many those that turn each level or its reverse round; and whether
    these are all."""
    if prod(factorial(len(level) - (top in level)) for level in levels) <= many:
        return list(extensions(levels, top)), True
    found: set[tuple[int, ...]] = set()
    for start, step in product(range(max(map(len, levels))), (1, -1)):
        order: list[int] = []
        for level in levels:
            rest = [d for d in level if d != top][::step]
            turn = start % max(len(rest), 1)
            order += [*([top] if top in level else []), *rest[turn:], *rest[:turn]]
        found.add(tuple(order))
    return sorted(found), False


def _places(levels: Levels, top: int | None, m: int) -> tuple[Ints, Ints]:
    """Shape (m,) each: first and last place over the extensions, `top` first in its level."""
    first, last = np.zeros(m, dtype=np.int32), np.zeros(m, dtype=np.int32)
    above = 0
    for level in levels:
        for d in level:
            first[d] = above + (top in level and d != top)
            last[d] = above if d == top else above + len(level) - 1
        above += len(level)
    return first, last


def _against(c: int, rows: Sequence[Sequence[int]] | Ints) -> Options:
    """Rows, shape (options, m), without the column of `c`, each row once."""
    given = rows if isinstance(rows, np.ndarray) else np.array(rows, dtype=np.int32)
    found = np.delete(given, c, axis=1)
    return Options.of(np.unique(found, axis=0) if len(found) > 1 else found)


def _leads(masses: Masses, c: int) -> Options:
    return _against(c, [[masses[c] - mass for mass in masses]])


def _never_rising(
    start: Sequence[int], spare: int, levels: Levels, c: int
) -> Iterator[tuple[int, ...]]:
    """Ways to hand out spare points, none to `c`, that leave nobody above a better level.

    Candidates get theirs level by level: one has at most the least of the level above, and
    later ones can only take what is left.
    """
    line = [(d, i) for i, level in enumerate(levels) for d in level]
    points, none, lowest = list(start), float("inf"), min(start)
    waiting = [(0, 0, spare, none, none)]  # a place, and how many points more it is to get
    while waiting:
        place, more, left, cap, least = waiting.pop()
        for d, _ in line[place:]:
            points[d] = start[d]
        while left and place < len(line):
            d, level = line[place]
            if not more and place and line[place - 1][1] != level:
                cap, least = least, none
            if start[d] + more > cap or cap <= lowest:  # no later candidate can take anything
                break
            if d != c and more < left:
                waiting.append((place, more + 1, left, cap, least))
            points[d] = start[d] + more
            place, more, left, least = place + 1, 0, left - more, min(least, points[d])
        else:
            if not left:  # whoever is to come keeps what it starts with
                yield tuple(points)
