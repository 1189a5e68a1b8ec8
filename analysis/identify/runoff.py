"""Instant runoff over all consistent rankings: which sets of winners can be reached.

Raising a candidate can make it lose here, so no ballot serves a candidate best. But a count
sees of a ranking only its best candidate still standing. The search therefore goes round by
round: a voter is its weak order among those standing with a decided first place; when that
candidate leaves, any candidate of the next level may be next. Voters in the same position are
interchangeable, and equal positions of the whole count are visited once.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import combinations_with_replacement, product
from typing import Final

from analysis.identify.domains import Domain, Levels, free
from analysis.identify.search import Purse

__all__ = ["POSITION_COST", "runoff_sets"]

POSITION_COST: Final = 200
"""Numbers that looking at one position counts for."""

Position = tuple[tuple[Levels, int], ...]
"""Weak orders with a single first place → number of voters, sorted."""


def runoff_sets(
    domains: Sequence[Domain | None], m: int, *, exempt: int, limit: int, purse: Purse
) -> tuple[frozenset[frozenset[int]], bool]:
    """Reachable winner sets, and whether they are all of them.

    The search ends early, complete or not, once each candidate alone can win: then every
    candidate is possible under every order and reading.

    Args:
        domains: One per voter; `None` abstains.
        m: Number of candidates.
        exempt: How many voters may have cast any ranking.
        limit: Numbers that may be computed; a position counts for `POSITION_COST`.
        purse: What may be computed in all.
    """
    found: set[frozenset[int]] = set()
    seen: set[Position] = set()
    positions = min(limit, max(purse.left, 0)) // POSITION_COST
    alone = {frozenset({c}) for c in range(m)}
    waiting = _starts(domains, m, exempt)
    stack: list[tuple[Position, frozenset[int]]] = []
    while True:
        if not stack:
            start = next(waiting, None)
            if start is None:
                return frozenset(found), True
            stack.append((start, frozenset(range(m))))
        position, standing = stack.pop()
        positions -= 1
        if positions < 0:
            return frozenset(found), False
        purse.spend(POSITION_COST)
        if position in seen:
            continue
        seen.add(position)
        left = _survivors(position, standing)
        if not left:
            found.add(standing)
            if alone <= found:
                return frozenset(found), True
            continue
        stack.extend((then, left) for then in _decided(_restricted(position, left)))


def _starts(domains: Sequence[Domain | None], m: int, exempt: int) -> Iterator[Position]:
    """Every way to decide first places, for every choice of exempt voters."""
    groups = Counter(domain.levels if domain is not None else () for domain in domains)
    anything = free(m).levels
    for freed in _freed(groups, exempt):
        voters = groups - freed
        voters[anything] += freed.total()
        yield from _decided({levels: n for levels, n in voters.items() if levels and n})


def _freed(groups: Counter[Levels], exempt: int) -> Iterator[Counter[Levels]]:
    """Every choice of at most `exempt` voters, up to exchange of equal ones."""
    ranges = [range(min(n, exempt) + 1) for n in groups.values()]
    for taken in product(*ranges):
        if sum(taken) <= exempt:
            yield Counter(dict(zip(groups, taken, strict=True)))


def _survivors(position: Position, standing: frozenset[int]) -> frozenset[int]:
    """Who stays when all with the fewest first places leave; nobody when all are equal."""
    firsts = dict.fromkeys(standing, 0)
    for levels, voters in position:
        firsts[levels[0][0]] += voters
    fewest = min(firsts.values())
    return frozenset(c for c in standing if firsts[c] > fewest)


def _restricted(position: Position, standing: frozenset[int]) -> dict[Levels, int]:
    found: Counter[Levels] = Counter()
    for levels, voters in position:
        kept = (tuple(c for c in level if c in standing) for level in levels)
        found[tuple(level for level in kept if level)] += voters
    return found


def _decided(groups: dict[Levels, int]) -> Iterator[Position]:
    """Every way in which the voters of each weak order can settle on first places."""
    options = [
        [_settled(levels, chosen) for chosen in combinations_with_replacement(levels[0], voters)]
        for levels, voters in groups.items()
    ]
    for parts in product(*options):
        total: Counter[Levels] = Counter()
        for part in parts:
            total.update(part)
        yield tuple(sorted(total.items()))


def _settled(levels: Levels, chosen: Sequence[int]) -> Counter[Levels]:
    """Voters of one weak order, each with its chosen candidate alone on top."""
    found: Counter[Levels] = Counter()
    for c, voters in Counter(chosen).items():
        rest = tuple(d for d in levels[0] if d != c)
        below = (rest, *levels[1:]) if rest else levels[1:]
        found[((c,), *below)] = voters
    return found
