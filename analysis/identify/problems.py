"""When a candidate can win, as questions about sums: for each target, what to add and what to test.

The options that a voter adds are in `analysis.identify.domains`, where it is argued why the
ballots left out lose nothing.
"""

from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from typing import Final, NamedTuple

import numpy as np

from analysis.identify import domains as dom
from analysis.identify.domains import Domain, Options
from analysis.identify.pairwise import PAIRWISE_TESTS, nobody_test
from analysis.identify.search import Sums, Test, Voter, linear_test, with_subsets
from analysis.rules import Target, winners

__all__ = ["NOBODY", "Problem", "Question", "counted", "problems_of"]

NOBODY: Final = -1
"""The outcome "no Condorcet winner", beside candidate numbers."""

_ALL_OPTIONS: Final = 200_000
"""Options of points and of places to list for all voters and candidates together."""
_SOME: Final = 16
"""Of which each voter may have so many, however many voters there are."""

Domains = tuple[Domain | None, ...]


class Question(NamedTuple):
    """A target and the voters' domains, sorted: equal questions have equal answers."""

    target: Target
    m: int
    budget: int
    domains: Domains
    """`None` for an abstention."""


def counted(q: Question) -> frozenset[int] | None:
    """The tied winners where every voter's ballot under the target is known, else `None`.

    Known are ballots in the target's format, rankings where they are strict, and a vote where
    one candidate stands alone on top.
    """
    cast = [domain for domain in q.domains if domain is not None]
    if not all(_known(q.target, domain) for domain in cast):
        return None
    names = [str(c) for c in range(q.m)]
    rankings = [tuple(tuple(str(c) for c in level) for level in d.levels) for d in cast]
    if q.target == "simple":
        ballots = [{name: int(name == top) for name in names} for ((top,), *_) in rankings]
    elif q.target in ("cumulative", "approval"):
        ballots = [dict(zip(names, domain.data, strict=True)) for domain in cast]  # type: ignore[arg-type]
    else:
        ballots = [{c: q.m - 1 - i for i, (c,) in enumerate(ranking)} for ranking in rankings]
    found = winners(q.target, ballots=ballots, rankings=rankings, candidates=names)
    return frozenset(int(c) for c in found)


def _known(target: Target, domain: Domain) -> bool:
    if target in ("cumulative", "approval"):
        return domain.kind == "exact"
    return all(len(level) == 1 for level in domain.levels[: 1 if target == "simple" else None])


class Problem(NamedTuple):
    """Is there a choice of options whose sums pass the test?"""

    sums: Sums
    test: Test


def problems_of(q: Question, outcome: int, ahead: Sequence[int]) -> list[Problem]:
    """Problems of which one must have a solution for an outcome to be possible.

    Args:
        q: Any target but instant runoff, at least two candidates.
        outcome: A candidate, or `NOBODY`.
        ahead: Candidates that must not be tied with the outcome.
    """
    return _PROBLEMS[q.target](q, outcome, ahead)


@lru_cache(maxsize=1 << 13)
def _sums(kind: str, c: int | None, m: int, extra: int, domains: Domains) -> Sums:
    """What voters add: one kind of options for all; an abstention adds nothing unless exempt."""
    options = _OPTIONS[kind]
    if kind in ("cumulative", "bucklin"):
        many = min(dom.MANY, max(_SOME, _ALL_OPTIONS // (m * len(domains))))
        options = partial(options, many=many)
    free = options(_exempt(kind, c, m, extra), c, m, extra)
    nothing = Options.of(0 * free.rows[:1])
    regular = [nothing if d is None else options(d, c, m, extra) for d in domains]
    return Sums([Voter(one, free) for one in regular])


def _exempt(kind: str, c: int | None, m: int, extra: int) -> Domain:
    """What serves `c` best if any ballot may be cast: all for `c`, or any order with it first."""
    if kind in ("simple", "approval", "cumulative") and c is not None:
        return dom.single_minded(c, m, extra)
    return dom.free(m)


@lru_cache(maxsize=1 << 14)
def _borda(domain: Domain, c: int, m: int) -> Options:
    options = dom.borda_options(domain, c, m)
    rows = with_subsets(options.rows)
    if options.whole:
        return Options.of(rows)
    low, high = (with_subsets(bound[None])[0] for bound in (options.low, options.high))
    low[-1] = high[-1] = rows[0, -1]  # all orders with `c` in one place have one total
    return Options(rows, low, high, whole=False)


_OPTIONS: Final[dict[str, Callable[..., Options]]] = {
    "simple": lambda d, c, m, _: dom.simple_options(d, c, m),
    "approval": lambda d, c, m, _: dom.approval_options(d, c, m),
    "cumulative": dom.cumulative_options,
    "ranked": lambda d, c, m, _: _borda(d, c, m),
    "condorcet": lambda d, c, m, _: dom.condorcet_options(d, c, m),
    "pairs": lambda d, c, m, _: dom.pair_options(d, c, m),
    "bucklin": dom.bucklin_options,
}
"""Kind → options of a domain, a candidate, the number of candidates, and the ballot's mass
(for `cumulative`, the budget) or the depth of the count."""


def _lead(c: int, ahead: Sequence[int], m: int) -> list[int]:
    """By how much `c` must lead each rival: 1 over those ahead of it, 0 over the others."""
    return [int(d in ahead) for d in range(m) if d != c]


def _one_mark(q: Question, c: int, ahead: Sequence[int]) -> list[Problem]:
    sums = _sums(q.target, c, q.m, 1, q.domains)
    return [Problem(sums, linear_test(_lead(c, ahead, q.m)))]


def _cumulative(q: Question, c: int, ahead: Sequence[int]) -> list[Problem]:
    sums = _sums(q.target, c, q.m, q.budget, q.domains)
    return [Problem(sums, linear_test(_lead(c, ahead, q.m)))]


def _ranked(q: Question, c: int, ahead: Sequence[int]) -> list[Problem]:
    need = with_subsets(np.array([_lead(c, ahead, q.m)], dtype=np.int32))[0]
    return [Problem(_sums(q.target, c, q.m, 0, q.domains), linear_test(need.tolist()))]


def _condorcet(q: Question, c: int, ahead: Sequence[int]) -> list[Problem]:
    if c == NOBODY:
        return [Problem(_sums("pairs", None, q.m, 0, q.domains), nobody_test(q.m))]
    return [Problem(_sums("condorcet", c, q.m, 0, q.domains), linear_test([1] * (q.m - 1)))]


def _pairwise(q: Question, c: int, ahead: Sequence[int]) -> list[Problem]:
    test = PAIRWISE_TESTS[q.target](c, ahead, q.m)
    return [Problem(_sums("pairs", c, q.m, 0, q.domains), test)]


def _bucklin(q: Question, c: int, ahead: Sequence[int]) -> list[Problem]:
    """`c` wins the count at some depth that nobody decides earlier.

    At depth d the m candidates share d places on each ballot. Where d is more than m / 2, one
    of them is on more than half of the ballots, so no count goes deeper.
    """
    test = linear_test([0] * (q.m - 1) + [1] + _lead(c, ahead, q.m))
    depths = range(1, q.m // 2 + 2)
    return [Problem(_sums(q.target, c, q.m, depth, q.domains), test) for depth in depths]


_PROBLEMS: Final[dict[str, Callable[[Question, int, Sequence[int]], list[Problem]]]] = {
    "simple": _one_mark,
    "ranked": _ranked,
    "cumulative": _cumulative,
    "approval": _one_mark,
    "copeland": _pairwise,
    "minimax": _pairwise,
    "schulze": _pairwise,
    "bucklin": _bucklin,
    "condorcet": _condorcet,
}
