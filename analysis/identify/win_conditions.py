"""When a candidate can win, as questions about sums of votes or of pairwise margins."""

from collections.abc import Callable, Sequence
from functools import cache, lru_cache, partial
from typing import Any, Final, NamedTuple

import numpy as np

from tutorsim.analysis.ballots.ballot_formats import FORMATS
from tutorsim.analysis.ballots.vote_arrays import LEFT_OUT
from tutorsim.analysis.counting.rule_definitions import (
    Rule,
    approvals_of,
    ballot_format,
    rank_scores,
    winners,
)
from tutorsim.analysis.identify import ballots_consistent_with_logged as dom
from tutorsim.analysis.identify.ballots_consistent_with_logged import Domain, Options, pairs
from tutorsim.analysis.identify.reachable_vote_sums import (
    SUBSETS,
    OptionSums,
    VoterOptions,
    WinCondition,
    linear_condition,
    with_subsets,
)
from tutorsim.analysis.statistics.array_types import Bools, Ints

# --- Possible pairwise winners -------------------------------------------------------------------


_FAR: Final = 1 << 20


def _matrix(margins: Ints, reversed_: Ints, m: int) -> Ints:
    """Margins of a over b, shape (rows, m, m); the diagonal is never the largest.

    `margins`: those of each pair's first over its second, in the order of `pairs`; `reversed_`:
    those of its second over its first.
    """
    far = np.full((len(margins), 1), -_FAR, dtype=np.int32)
    return np.asarray(np.concatenate([margins, reversed_, far], axis=1)[:, _cells(m)])


@cache
def _cells(m: int) -> Ints:
    """For each pair of candidates the column of its margin, shape (m, m): pairs, pairs reversed,
    and one more for nobody against itself."""
    listed = pairs(m)
    cells = np.full((m, m), 2 * len(listed), dtype=np.int64)
    for column, (a, b) in enumerate(listed):
        cells[a, b], cells[b, a] = column, len(listed) + column
    return cells


def _highest(low: Ints, high: Ints, m: int) -> Ints:
    """Highest margin of a over b."""
    return _matrix(high, -low, m)


def _lowest(low: Ints, high: Ints, m: int) -> Ints:
    """Lowest margin of a over b."""
    return _matrix(low, -high, m)


def _strictly(ahead: Sequence[int], m: int) -> Ints:
    """1 for a candidate that must not tie with the winner."""
    need = np.zeros(m, dtype=np.int32)
    need[list(ahead)] = 1
    return need


def copeland_condition(c: int, ahead: Sequence[int], m: int) -> WinCondition:
    """Most wins, ties half: `c` at best against each rival at its worst, and in total."""
    strict = _strictly(ahead, m)
    rivals = [d for d in range(m) if d != c]

    def scores(margins: Ints) -> Ints:
        won = 2 * (margins > 0) + (margins == 0)
        return np.asarray(won.sum(axis=2, dtype=np.int32))

    def open_(low: Ints, high: Ints) -> Bools:
        best = scores(_highest(low, high, m))[:, c]
        worst = scores(_lowest(low, high, m))[:, rivals]
        room = best[:, None] - strict[rivals]
        total = room.sum(axis=1) + best >= m * (m - 1)
        return np.asarray((worst <= room).all(axis=1) & total)

    def distance(doubled: Ints) -> Ints:
        found = scores(_matrix(doubled, -doubled, m))
        over = found + strict - found[:, [c]]
        over[:, c] = 0
        return np.asarray(np.maximum(over, 0).sum(axis=1, dtype=np.int32))

    return WinCondition(open_, distance, cost=m * m)


def minimax_condition(c: int, ahead: Sequence[int], m: int) -> WinCondition:
    """Smallest worst defeat: `c` at best against each rival's highest possible defeat."""
    strict = _strictly(ahead, m)

    def defeats(margins: Ints) -> Ints:
        return np.asarray(margins.max(axis=1))

    def short(own: Ints, others: Ints, unit: int) -> Ints:
        missing = own[:, [c]] + unit * strict - others
        missing[:, c] = 0
        return np.asarray(np.maximum(missing, 0))

    def open_(low: Ints, high: Ints) -> Bools:
        least, most = defeats(_lowest(low, high, m)), defeats(_highest(low, high, m))
        return np.asarray((short(least, most, 1) == 0).all(axis=1))

    def distance(doubled: Ints) -> Ints:
        found = defeats(_matrix(doubled, -doubled, m))
        return np.asarray(short(found, found, 2).sum(axis=1, dtype=np.int32))

    return WinCondition(open_, distance, cost=2 * m * m // 3)


def schulze_condition(c: int, ahead: Sequence[int], m: int) -> WinCondition:
    """No stronger path to `c` than back; each candidate ahead loses to somebody's path."""

    def short(strong: Ints, weak: Ints, unit: int) -> Ints:
        missing = np.maximum(weak[:, :, c] - strong[:, c, :], 0)
        missing[:, c] = 0
        for d in ahead:
            lead = (strong[:, :, d] - weak[:, d, :]).copy()
            lead[:, d] = -_FAR
            missing[:, d] += np.maximum(unit - lead.max(axis=1), 0)
        return np.asarray(missing)

    def open_(low: Ints, high: Ints) -> Bools:
        missing = short(_paths(_highest(low, high, m)), _paths(_lowest(low, high, m)), 1)
        return np.asarray((missing == 0).all(axis=1))

    def distance(doubled: Ints) -> Ints:
        paths = _paths(_matrix(doubled, -doubled, m))
        return np.asarray(short(paths, paths, 2).sum(axis=1, dtype=np.int32))

    return WinCondition(open_, distance, cost=3 * m * m // 2 + m**3 // 4)


def nobody_condition(m: int) -> WinCondition:
    """No Condorcet winner: everybody is beaten or tied by somebody."""

    def open_(low: Ints, high: Ints) -> Bools:
        return np.asarray((_highest(low, high, m).max(axis=1) >= 0).all(axis=1))

    def distance(doubled: Ints) -> Ints:
        worst = _matrix(doubled, -doubled, m).max(axis=1)
        return np.asarray(np.maximum(-worst, 0).sum(axis=1, dtype=np.int32))

    return WinCondition(open_, distance, cost=2 * m * m // 3)


def _paths(margins: Ints) -> Ints:
    """Strength of the strongest path between any two, the weakest margin on the way."""
    paths = margins.copy()
    for via in range(paths.shape[1]):
        np.maximum(paths, np.minimum(paths[:, :, via, None], paths[:, None, via, :]), out=paths)
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

_ALL_OPTIONS: Final = 200_000
"""Options of points and of places to list for all different ballots and candidates together."""
_SOME: Final = 16
"""Of which each voter may have so many, however many voters there are."""
_LARGEST: Final = {bits: int(np.iinfo(bits).max) for bits in (np.int32, np.int64)}

Domains = tuple[Domain | None, ...]
Scores = tuple[int, ...]
"""By rank, best first."""


class Query(NamedTuple):
    """A target and the voters' domains, sorted: equal questions have equal answers."""

    target: Rule
    m: int
    budget: int
    domains: Domains
    """`None` for an abstention."""
    few: bool = False
    """Whether a few options of each voter are enough, with bounds on all."""


def counted(q: Query) -> frozenset[int] | None:
    """The tied winners where every voter's ballot under the target is known, else `None`.

    Known are ballots in the target's format, rankings where they are strict, and a vote where
    one candidate stands alone on top.
    """
    cast = [domain for domain in q.domains if domain is not None]
    if not all(_known(q.target, domain) for domain in cast):
        return None
    names = [str(c) for c in range(q.m)]
    rankings = [tuple(tuple(str(c) for c in level) for level in d.levels) for d in cast]
    scores = rank_scores(q.target, q.m)
    if q.target == "simple":
        ballots = [{name: int(name == top) for name in names} for ((top,), *_) in rankings]
    elif _by_numbers(q.target):
        ballots = [dict(zip(names, domain.data, strict=True)) for domain in cast]  # type: ignore[arg-type]
    elif scores is not None:
        ballots = [
            {name: score for (name,), score in zip(ranking, scores, strict=True)}
            for ranking in rankings
        ]
    else:
        ballots = []
    found = winners(q.target, ballots=ballots, rankings=rankings, candidates=names)
    return frozenset(int(c) for c in found)


def _by_numbers(target: Rule) -> bool:
    """Whether a rule counts the numbers of ballots."""
    return FORMATS[ballot_format(target)].numbers


def _known(target: Rule, domain: Domain) -> bool:
    if domain.kind == "open" or _by_numbers(target):
        return domain.kind == "exact" and LEFT_OUT not in domain.data
    return all(len(level) == 1 for level in domain.levels[: 1 if target == "simple" else None])


class Feasibility(NamedTuple):
    """Is there a choice of options whose sums pass the test?"""

    sums: OptionSums
    condition: WinCondition


def feasible(
    q: Query, outcome: int, ahead: Sequence[int], *, few: bool = False
) -> list[Feasibility]:
    """Problems of which one must have a solution for an outcome to be possible.

    `few`: whether to list a few options of each voter, with bounds on all.
    """
    q = q._replace(few=few)
    scores = rank_scores(q.target, q.m)
    if scores is not None:
        return _scored(q, scores, outcome, ahead)
    approvals = approvals_of(q.target)
    if approvals is not None:
        sums = _sums("approval", outcome, (q.budget, approvals), q)
        return [Feasibility(sums, linear_condition(_lead(outcome, ahead, q.m)))]
    return _WAYS[q.target](q, outcome, ahead)


def too_large(q: Query) -> bool:
    """Whether scores by rank may add up to more than numbers of the search hold."""
    scores = rank_scores(q.target, q.m)
    return scores is not None and _most(scores, q.m, len(q.domains)) > _LARGEST[np.int64]


def _most(scores: Scores, m: int, voters: int) -> int:
    """What no number of a search exceeds: leads and their bounds, over all sets of rivals."""
    return 4 * scores[0] * m * voters * (1 << m if m - 1 <= SUBSETS else 4)


@lru_cache(maxsize=1 << 8)
def _sums(kind: str, c: int | None, extra: Any, q: Query) -> OptionSums:
    """What voters add: one kind of options for all; an abstention adds nothing unless exempt."""
    m, domains = q.m, q.domains
    kinds = _depths(m) if kind == "bucklin" else 1
    several = 1 + len({d for d in domains if d is not None and not _single(d, c)})
    many = _SOME if q.few else min(dom.MANY, max(_SOME, _ALL_OPTIONS // (m * several * kinds)))
    options = partial(_OPTIONS[kind], many=many)
    free = options(_exempt(kind, c, m, extra), c, m, extra)
    nothing = Options.of(0 * free.rows[:1])
    regular = [nothing if d is None else options(d, c, m, extra) for d in domains]
    return OptionSums([VoterOptions(one, free) for one in regular])


def _single(domain: Domain, c: int | None) -> bool:
    """Whether a ballot leaves one order, with `c` first in its level."""
    return domain.kind != "open" and all(len(level) - (c in level) < 2 for level in domain.levels)


def _exempt(kind: str, c: int | None, m: int, extra: Any) -> Domain:
    """What serves `c` best if any ballot may be cast: all for `c`, or any order with it first; of
    approvals, as many as there must be."""
    if kind == "simple" and c is not None:
        return dom.single_minded(c, m, 1)
    if kind == "approval":
        return dom.any_set(m)
    if kind == "cumulative" and c is not None and isinstance(extra, int):
        return dom.single_minded(c, m, extra)
    return dom.free(m)


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


_OPTIONS: Final[dict[str, Callable[..., Options]]] = {
    "simple": lambda d, c, m, _, many: dom.simple_options(d, c, m),
    "approval": dom.approval_options,
    "score": lambda d, c, m, top, many: dom.score_options(d, c, m, top),
    "median_score": dom.median_options,
    "cumulative": dom.cumulative_options,
    "scores": partial(_scored_options, np.int32),
    "large scores": partial(_scored_options, np.int64),
    "condorcet": lambda d, c, m, _, many: dom.condorcet_options(d, c, m),
    "pairs": lambda d, c, m, _, many: dom.pair_options(d, c, m, many),
    "bucklin": dom.bucklin_options,
}
"""Kind → options of a domain, a candidate, the number of candidates, and the ballot's mass
(for `cumulative`, the budget), its scores by rank, or the depth of the count."""


def _lead(c: int, ahead: Sequence[int], m: int) -> list[int]:
    """By how much `c` must lead each rival: 1 over those ahead of it, 0 over the others."""
    return [int(d in ahead) for d in range(m) if d != c]


def _one_mark(q: Query, c: int, ahead: Sequence[int]) -> list[Feasibility]:
    sums = _sums(q.target, c, 1, q)
    return [Feasibility(sums, linear_condition(_lead(c, ahead, q.m)))]


def _one_option(q: Query, c: int, ahead: Sequence[int]) -> list[Feasibility]:
    sums = _sums(q.target, c, q.budget, q)
    return [Feasibility(sums, linear_condition(_lead(c, ahead, q.m)))]


def _median_score(q: Query, c: int, ahead: Sequence[int]) -> list[Feasibility]:
    """The median of `c` is some score: one of those cast, or an end of the scale."""
    cast = [domain for domain in q.domains if domain is not None and domain.kind == "exact"]
    values = {0, q.budget, *(score for domain in cast for score in domain.data if score >= 0)}  # type: ignore[operator]
    test = linear_condition([1] + [0] * (q.m - 1))
    return [
        Feasibility(_sums(q.target, c, (q.budget, t, frozenset(ahead)), q), test)
        for t in sorted(values)
    ]


def _cumulative(q: Query, c: int, ahead: Sequence[int]) -> list[Feasibility]:
    sums = _sums(q.target, c, q.budget, q)
    return [Feasibility(sums, linear_condition(_lead(c, ahead, q.m)))]


def _scored(q: Query, scores: Scores, c: int, ahead: Sequence[int]) -> list[Feasibility]:
    """For Borda and any other scores by rank."""
    need = with_subsets(np.array([_lead(c, ahead, q.m)], dtype=np.int32))[0]
    fits = _most(scores, q.m, len(q.domains)) <= _LARGEST[np.int32]
    sums = _sums("scores" if fits else "large scores", c, scores, q)
    return [Feasibility(sums, linear_condition(need.tolist()))]


def _condorcet(q: Query, c: int, ahead: Sequence[int]) -> list[Feasibility]:
    if c == NOBODY:
        return [Feasibility(_sums("pairs", None, 0, q), nobody_condition(q.m))]
    return [Feasibility(_sums("condorcet", c, 0, q), linear_condition([1] * (q.m - 1)))]


def _pairwise(q: Query, c: int, ahead: Sequence[int]) -> list[Feasibility]:
    test = PAIRWISE_CONDITIONS[q.target](c, ahead, q.m)
    return [Feasibility(_sums("pairs", c, 0, q), test)]


def _depths(m: int) -> int:
    """How deep a count goes: where each ballot has more than half of all places."""
    return m // 2 + 1


def _bucklin(q: Query, c: int, ahead: Sequence[int]) -> list[Feasibility]:
    """`c` wins the count at some depth that nobody decides earlier.

    At depth d the m candidates share d places on each ballot. Where d is more than m / 2, one
    of them is on more than half of the ballots, so no count goes deeper.
    """
    test = linear_condition([0] * (q.m - 1) + [1] + _lead(c, ahead, q.m))
    depths = range(1, _depths(q.m) + 1)
    return [Feasibility(_sums(q.target, c, depth, q), test) for depth in depths]


_WAYS: Final[dict[Rule, Callable[[Query, int, Sequence[int]], list[Feasibility]]]] = {
    "simple": _one_mark,
    "cumulative": _cumulative,
    "score": _one_option,
    "median_score": _median_score,
    "copeland": _pairwise,
    "minimax": _pairwise,
    "schulze": _pairwise,
    "bucklin": _bucklin,
    "condorcet": _condorcet,
}
