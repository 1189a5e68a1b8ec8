"""Instant runoff over all consistent rankings: which sets of winners can be reached.

Raising a candidate can make it lose here, so no ballot serves a candidate best. But a count
sees of a ranking only its best candidate still standing. The search therefore goes round by
round: a voter is its weak order among those standing with a decided first place; when that
candidate leaves, any candidate of the next level may be next. Voters in the same position are
interchangeable, and equal positions of the whole count are visited once.

Before the search a few rankings that favour each candidate are tried. Positions come one at a
time, and each counts as work, so that the search is bounded whatever the panel is.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import combinations_with_replacement
from typing import Final

from tutorsim.analysis.ballots.ballot_levels import Levels
from tutorsim.analysis.identify.consistent_ballots import Domain, free
from tutorsim.analysis.identify.reachable_vote_sums import WorkBudget

__all__ = ["runoff_sets"]

_GROUP_COST: Final = 600
"""Units of work that one group of alike voters takes in a position."""

Position = tuple[tuple[Levels, int], ...]
"""Weak orders with a single first place → number of voters, sorted."""
Groups = dict[Levels, int]
"""Weak orders → number of voters."""
Sets = frozenset[frozenset[int]]


def runoff_sets(
    domains: Sequence[Domain | None], m: int, *, exempt: int, known: Sets, budget: WorkBudget
) -> tuple[Sets, bool]:
    """Reachable winner sets, and whether they are all of them.

    The search ends early, complete or not, once each candidate alone can win: then every
    candidate is possible under every order and reading.

    Args:
        domains: One per voter; `None` abstains.
        m: Number of candidates.
        exempt: How many voters may have cast any ranking.
        known: Sets that are reachable with fewer exempt voters.
        budget: What may be done in all; one search takes a share of it at most.
    """
    found = set(known)
    alone = {frozenset({c}) for c in range(m)}
    left = budget.share
    stack: list[tuple[Iterator[tuple[Position, int]], frozenset[int]]] = []
    every = frozenset(range(m))
    seen: set[Position] = set()
    groups = Counter(domain.levels if domain is not None else () for domain in domains)
    work = _try_favouring(groups, m, exempt, found)
    stack.append((_starts(groups, m, exempt), every))
    while stack and work <= left and not alone <= found:
        positions, standing = stack[-1]
        position, tried = next(positions, (None, 1))
        work += tried * _GROUP_COST
        if position is None:
            stack.pop()
            continue
        if position in seen:
            continue
        seen.add(position)
        stay = _survivors(position, standing)
        work += (len(position) + 1) * _GROUP_COST
        if not stay:
            found.add(standing)
        else:
            stack.append((_decided(_restricted(position, stay)), stay))
    budget.spend(work)
    return frozenset(found), not stack or alone <= found


def _try_favouring(groups: Counter[Levels], m: int, exempt: int, found: set[frozenset[int]]) -> int:
    """Add the winners if all voters favour one candidate, and the work that this took.

    Candidates of a level then stand in one order for all, the favourite first.
    """
    anything = free(m).levels
    work = 0
    for c in range(m):
        for step in (1, -1):
            order = [(c + step * i) % m for i in range(m)]
            place = {d: i for i, d in enumerate(order)}
            freed = _least_loyal(groups, c, exempt)
            voters = groups - freed
            voters[anything] += freed.total()
            rankings = Counter[tuple[int, ...]]()
            for levels, n in voters.items():
                rankings[tuple(d for tier in levels for d in sorted(tier, key=place.get))] += n  # type: ignore[arg-type]
            found.add(_counted(rankings, m))
            work += (len(voters) + m) * _GROUP_COST
    return work


def _least_loyal(groups: Counter[Levels], c: int, exempt: int) -> Counter[Levels]:
    """The voters who put a candidate lowest, as many as are exempt."""

    def place(levels: Levels) -> int:
        return next((i for i, tier in enumerate(levels) if c in tier), len(levels))

    freed, left = Counter[Levels](), exempt
    for levels in sorted(groups, key=lambda one: (-place(one), one)):
        freed[levels] = min(groups[levels], left)
        left -= freed[levels]
    return freed


def _counted(rankings: Counter[tuple[int, ...]], m: int) -> frozenset[int]:
    """The tied winners of strict rankings; an empty one abstains."""
    standing = frozenset(range(m))
    while True:
        firsts = dict.fromkeys(standing, 0)
        for order, n in rankings.items():
            first = next((c for c in order if c in standing), None)
            if first is not None:
                firsts[first] += n
        fewest = min(firsts.values())
        stay = frozenset(c for c in standing if firsts[c] > fewest)
        if not stay:
            return standing
        standing = stay


def _starts(groups: Counter[Levels], m: int, exempt: int) -> Iterator[tuple[Position, int]]:
    """Every way to decide first places, for every choice of exempt voters, with its work."""
    anything = free(m).levels
    names = sorted(groups)
    for k in range(min(exempt, groups.total()) + 1):
        for freed in combinations_with_replacement(names, k):
            taken = Counter(freed)
            if any(n > groups[levels] for levels, n in taken.items()):
                continue
            voters = groups - taken
            voters[anything] += k
            yield from _decided({levels: n for levels, n in voters.items() if levels and n})


def _survivors(position: Position, standing: frozenset[int]) -> frozenset[int]:
    """Who stays when all with the fewest first places leave; nobody when all are equal."""
    firsts = dict.fromkeys(standing, 0)
    for levels, voters in position:
        firsts[levels[0][0]] += voters
    fewest = min(firsts.values())
    return frozenset(c for c in standing if firsts[c] > fewest)


def _restricted(position: Position, standing: frozenset[int]) -> Groups:
    found: Counter[Levels] = Counter()
    for levels, voters in position:
        kept = (tuple(c for c in level if c in standing) for level in levels)
        found[tuple(level for level in kept if level)] += voters
    return found


def _decided(groups: Groups) -> Iterator[tuple[Position, int]]:
    """Every way in which the voters of each weak order settle on first places, with its work."""
    parts = sorted(groups.items())

    def settle(place: int, total: Counter[Levels]) -> Iterator[tuple[Position, int]]:
        if place == len(parts):
            yield tuple(sorted(total.items())), len(total)
            return
        levels, voters = parts[place]
        for shares in _shared_out(voters, len(levels[0])):
            yield from settle(place + 1, total + _settled(levels, shares))

    yield from settle(0, Counter())


def _shared_out(voters: int, among: int) -> Iterator[tuple[int, ...]]:
    """Every way to share out voters, all to the first of them at first."""
    if among == 1:
        yield (voters,)
        return
    for share in range(voters, -1, -1):
        for rest in _shared_out(voters - share, among - 1):
            yield (share, *rest)


def _settled(levels: Levels, shares: Sequence[int]) -> Counter[Levels]:
    """Voters of one weak order, so many with each candidate of its first level alone on top."""
    found: Counter[Levels] = Counter()
    for c, voters in zip(levels[0], shares, strict=True):
        if voters:
            rest = tuple(d for d in levels[0] if d != c)
            below = (rest, *levels[1:]) if rest else levels[1:]
            found[((c,), *below)] = voters
    return found
