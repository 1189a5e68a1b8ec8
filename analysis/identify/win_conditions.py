"""When a candidate can win, as questions about sums of votes or of pairwise margins."""

from collections.abc import Callable, Sequence
from functools import cache, lru_cache, partial
from itertools import combinations
from typing import Any, Final, NamedTuple

import numpy as np

from tutorsim.analysis.ballots.vote_arrays_and_profiles import LEFT_OUT
from tutorsim.analysis.counting.names_and_parameters_of_rules import Rule, approvals_of, rank_scores
from tutorsim.analysis.identify import ballots_voters_may_cast_and_best_per_candidate as dom
from tutorsim.analysis.identify.ballots_voters_may_cast_and_best_per_candidate import (
    Domain,
    Options,
)
from tutorsim.analysis.identify.search_for_votes_that_meet_a_win_condition import (
    SUBSETS,
    OptionSums,
    VoterOptions,
    WinCondition,
    linear_condition,
    with_subsets,
)
from tutorsim.analysis.statistics.array_types import Bools, Ints

# --- Possible pairwise winners -------------------------------------------------------------------


_NARROW: Final = 1 << 13
"""Margins below this leave room in 16 bits for differences of two of them."""


def _by_pair(margins: Ints, reversed_: Ints) -> Ints:
    """Margins both ways, shape (2 · pairs, rows): of each pair's first, then of its second.

    `margins`: those of each pair's first over its second, pairs as in `combinations`; `reversed_`:
    those of its second over its first.
    """
    largest = max(np.abs(one).max(initial=0) for one in (margins, reversed_))
    bits = np.int16 if largest < _NARROW else np.int32
    rows, columns = margins.shape
    found = np.empty((2 * columns, rows), dtype=bits)
    found[:columns], found[columns:] = margins.T, reversed_.T
    return found


@cache
def _cells(m: int) -> Ints:
    """For each two candidates where the margin of the first over the second is, shape (m, m).

    The diagonal stands for no margin, and nothing depends on it.
    """
    listed = list(combinations(range(m), 2))
    cells = np.zeros((m, m), dtype=np.int64)
    for column, (a, b) in enumerate(listed):
        cells[a, b], cells[b, a] = column, len(listed) + column
    return cells


@cache
def _over(m: int) -> Ints:
    """Where the margins of each candidate over the others are, shape (m, m - 1)."""
    return np.array([np.delete(row, c) for c, row in enumerate(_cells(m))])


@cache
def _under(m: int) -> Ints:
    """Where the margins of the others over each candidate are, shape (m, m - 1)."""
    return np.array([np.delete(row, c) for c, row in enumerate(_cells(m).T)])


def _condition(lacks: Callable[[Ints, Ints, int], Ints], cost: int) -> WinCondition:
    """A condition that holds if no candidate lacks anything.

    `lacks`: from the highest and the lowest margins by pair, and what a lead of one is in them, to
    what each candidate lacks, shape (m, rows), none of it below 0.
    """

    def open_(low: Ints, high: Ints) -> Bools:
        return np.asarray((lacks(_by_pair(high, -low), _by_pair(low, -high), 1) == 0).all(axis=0))

    def distance(doubled: Ints) -> Ints:
        margins = _by_pair(doubled, -doubled)
        return np.asarray(lacks(margins, margins, 2).sum(axis=0, dtype=np.int32))

    return WinCondition(open_, distance, cost=cost)


def _defeats(margins: Ints, m: int, of: int | slice = slice(None)) -> Ints:
    """Shape (rows,) or (m, rows): the largest defeat of one or of each; below 0 if it has none."""
    return np.asarray(margins[_under(m)[of]].max(axis=-2))


def _strictly(ahead: Sequence[int], m: int) -> Ints:
    """1 for a candidate that must not tie with the winner, shape (m, 1)."""
    need = np.zeros((m, 1), dtype=np.int32)
    need[list(ahead)] = 1
    return need


def copeland_condition(c: int, ahead: Sequence[int], m: int) -> WinCondition:
    """Most wins less losses: `c` at best against each rival at its worst, and in total."""
    strict = _strictly(ahead, m)
    rivals = [d for d in range(m) if d != c]

    def scores(margins: Ints) -> Ints:
        won = (margins > 0).view(np.int8) - (margins < 0).view(np.int8)
        return np.asarray(won.sum(axis=-2, dtype=np.int32))

    def open_(low: Ints, high: Ints) -> Bools:
        best = scores(_by_pair(high, -low)[_over(m)[c]])
        worst = scores(_by_pair(low, -high)[_over(m)[rivals]])
        room = best - strict[rivals]
        return np.asarray((worst <= room).all(axis=0) & (room.sum(axis=0) + best >= 0))

    def distance(doubled: Ints) -> Ints:
        found = scores(_by_pair(doubled, -doubled)[_over(m)])
        over = found + strict - found[c]
        return np.asarray(np.maximum(over, 0).sum(axis=0, dtype=np.int32))

    return WinCondition(open_, distance, cost=m * m)


def minimax_condition(c: int, ahead: Sequence[int], m: int) -> WinCondition:
    """Smallest worst defeat: `c` at best against each rival's highest possible defeat."""
    strict = _strictly(ahead, m)

    def lacks(highest: Ints, lowest: Ints, unit: int) -> Ints:
        missing = _defeats(lowest, m, c) + unit * strict - _defeats(highest, m)
        return np.asarray(np.maximum(missing, 0))

    return _condition(lacks, cost=2 * m * m // 3)


def schulze_condition(c: int, ahead: Sequence[int], m: int) -> WinCondition:
    """No stronger path to `c` than back; each candidate ahead loses to somebody's path."""

    def lacks(highest: Ints, lowest: Ints, unit: int) -> Ints:
        strong = _paths(highest, m)
        weak = strong if lowest is highest else _paths(lowest, m)
        missing = np.maximum(weak[:, c] - strong[c], 0)
        for d in ahead:
            lead = np.delete(strong[:, d] - weak[d], d, axis=0)
            missing[d] += np.maximum(unit - lead.max(axis=0), 0)
        return np.asarray(missing)

    return _condition(lacks, cost=3 * m * m // 2 + m**3 // 4)


def nobody_condition(m: int) -> WinCondition:
    """No Condorcet winner: everybody is beaten or tied by somebody."""

    def lacks(highest: Ints, _: Ints, __: int) -> Ints:
        return np.maximum(-_defeats(highest, m), 0)

    return _condition(lacks, cost=2 * m * m // 3)


def _paths(margins: Ints, m: int) -> Ints:
    """Shape (m, m, rows): strength of the strongest path between any two; `margins`: by pair."""
    paths = margins[_cells(m)]
    for via in range(m):
        np.maximum(paths, np.minimum(paths[:, via, None], paths[via]), out=paths)
    return paths


PAIRWISE_CONDITIONS: Final[dict[Rule, Callable[[int, Sequence[int], int], WinCondition]]] = {
    "copeland": copeland_condition,
    "minimax": minimax_condition,
    "schulze": schulze_condition,
}
"""Rules that margins decide, by name."""


# --- Win conditions ------------------------------------------------------------------------------

NOBODY: Final = -1
"""The outcome "no Condorcet winner", beside candidate numbers."""

_SOME: Final = 16
"""Options that each voter may always have, however many voters there are."""
_LARGEST: Final = {bits: int(np.iinfo(bits).max) for bits in (np.int32, np.int64)}

Domains = tuple[Domain | None, ...]
Sets = frozenset[frozenset[int]]
"""Different sets of tied winners."""
Scores = tuple[int, ...]
"""Scores by rank, best first."""


class Query(NamedTuple):
    """A target and the voters' domains, sorted: equal questions have equal answers."""

    target: Rule
    m: int
    budget: int
    domains: Domains
    """`None` for an abstention."""


class Feasibility(NamedTuple):
    """Is there a choice of options whose sums pass the test?"""

    sums: OptionSums
    condition: WinCondition


Sums = Callable[[str, int | None, Any, bool], OptionSums]
"""What voters add, by the kind of options, the candidate, what else the options are of, and whether
a few options of each voter are enough."""


def sums_of(q: Query) -> Sums:
    """The sums of a query, held as long as somebody asks about it: together they may be large."""
    return lru_cache(maxsize=1 << 8)(partial(_sums, q))


def feasible(
    q: Query, outcome: int, ahead: Sequence[int], sums: Sums, *, few: bool = False
) -> list[Feasibility]:
    """Problems of which one must have a solution for an outcome to be possible.

    `sums`: those of the query. `few`: whether to list a few options of each voter, with bounds on
    all.
    """
    if outcome == NOBODY:
        return [Feasibility(sums("pairs", None, 0, few), nobody_condition(q.m))]
    if q.target in PAIRWISE_CONDITIONS:
        test = PAIRWISE_CONDITIONS[q.target](outcome, ahead, q.m)
        return [Feasibility(sums("pairs", outcome, 0, few), test)]
    return [
        Feasibility(sums(kind, outcome, extra, few), linear_condition(need))
        for kind, extra, need in linear_ways(q, outcome, ahead)
    ]


def too_large(q: Query) -> bool:
    """Whether scores by rank may add up to more than numbers of the search hold."""
    scores = rank_scores(q.target, q.m)
    return scores is not None and _most(scores, q.m, len(q.domains)) > _LARGEST[np.int64]


def _most(scores: Scores, m: int, voters: int) -> int:
    """What no number of a search exceeds: leads and their bounds, over all sets of rivals."""
    return 4 * scores[0] * m * voters * (1 << m if m - 1 <= SUBSETS else 4)


def _sums(q: Query, kind: str, c: int | None, extra: Any, few: bool) -> OptionSums:
    """What voters add: one kind of options for all; an abstention adds nothing unless exempt."""
    m, domains = q.m, q.domains
    kinds = _depths(m) if kind == "bucklin" else 1
    several = 1 + len({d for d in domains if d is not None and not _single(d, c)})
    many = _SOME if few else min(dom.MANY, max(_SOME, dom.ALL_OPTIONS // (m * several * kinds)))
    options = partial(OPTIONS[kind], many=many)
    free = options(exempt_domain(kind, c, m, extra), c, m, extra)
    nothing = Options.of(0 * free.rows[:1])
    regular = [nothing if d is None else options(d, c, m, extra) for d in domains]
    return OptionSums([VoterOptions(one, free) for one in regular])


def _single(domain: Domain, c: int | None) -> bool:
    """Whether a ballot leaves one order, with `c` first in its level."""
    return domain.kind != "open" and all(len(level) - (c in level) < 2 for level in domain.levels)


def exempt_domain(kind: str, c: int | None, m: int, extra: Any) -> Domain:
    """What serves `c` best if any ballot may be cast: all for `c`, or any order with it first; of
    approvals, as many as there must be."""
    if kind in ("simple", "cumulative") and c is not None:
        return dom.single_minded(c, m, extra)
    return dom.any_set(m) if kind == "approval" else dom.free(m)


@lru_cache(maxsize=1 << 10)
def _scored_options(
    bits: type[np.signedinteger[Any]], domain: Domain, c: int, m: int, scores: Scores, many: int
) -> Options:
    options = dom.rank_options(domain, c, m, scores, many)
    rows = with_subsets(options.rows.astype(bits))
    if options.whole:
        return Options.of(rows)
    low, high = (with_subsets(b[None].astype(bits))[0] for b in (options.low, options.high))
    if domain.kind != "open":  # all orders with `c` in one place have one total
        low[-1] = high[-1] = rows[0, -1]
    return Options(rows, low, high, whole=False)


OPTIONS: Final[dict[str, Callable[..., Options]]] = {
    "simple": lambda d, c, m, _, many=0: dom.simple_options(d, c, m),
    "approval": dom.approval_options,
    "score": lambda d, c, m, top, many=0: dom.score_options(d, c, m, top),
    "median_score": dom.median_options,
    "cumulative": dom.cumulative_options,
    "scores": partial(_scored_options, np.int32),
    "large scores": partial(_scored_options, np.int64),
    "condorcet": lambda d, c, m, _, many=0: dom.condorcet_options(d, c, m),
    "pairs": lambda d, c, m, _, many: dom.pair_options(d, c, m, many),
    "bucklin": dom.bucklin_options,
}
"""Kind → options of a domain, a candidate, the number of candidates, and the ballot's mass
(for `cumulative`, the budget), its scores by rank, or the depth of the count."""


def linear_ways(q: Query, c: int, ahead: Sequence[int]) -> list[tuple[str, Any, list[int]]]:
    """Ways to win of which one is enough: what `OPTIONS` add up to is at least a need.

    Of each way the kind of options, what they are of beside a candidate, and the need.
    """
    m = q.m
    lead = [int(d in ahead) for d in range(m) if d != c]  # 1 over those ahead, 0 over the others
    scores, approvals = rank_scores(q.target, m), approvals_of(q.target)
    if scores is not None:
        fits = _most(scores, m, len(q.domains)) <= _LARGEST[np.int32]
        need = with_subsets(np.array([lead], dtype=np.int32))[0].tolist()
        return [("scores" if fits else "large scores", scores, need)]
    if approvals is not None:
        return [("approval", (q.budget, approvals), lead)]
    if q.target == "condorcet":
        return [("condorcet", 0, [1] * (m - 1))]
    if q.target == "median_score":  # a score that was cast, or the most that an exempt voter gives
        exact = [domain.data for domain in q.domains if domain and domain.kind == "exact"]
        cast = {score for data in exact for score in data if score != LEFT_OUT}
        medians = sorted({q.budget, *cast}) if exact else [q.budget]
        need = [1] + [0] * (m - 1)
        return [("median_score", (q.budget, t, frozenset(ahead)), need) for t in medians]
    if q.target == "bucklin":  # `c` wins the count at some depth that nobody decides earlier
        need = [0] * (m - 1) + [1] + lead
        return [("bucklin", depth, need) for depth in range(1, _depths(m) + 1)]
    return [(str(q.target), q.budget, lead)]


def _depths(m: int) -> int:
    """How deep Bucklin's count goes.

    At depth d the m candidates share d places on each ballot. Where d is more than m / 2, one of
    them is on more than half of the ballots.
    """
    return m // 2 + 1
