"""Possible winners under instant runoff: of strict rankings, and over all consistent rankings."""

from collections import Counter
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import combinations_with_replacement, islice
from typing import Final

import numpy as np

from tutorsim.analysis.ballots.vote_arrays_and_profiles import Levels
from tutorsim.analysis.identify.ballots_voters_may_cast_and_best_per_candidate import (
    Domain,
    Options,
    free,
)
from tutorsim.analysis.identify.search_for_votes_that_meet_a_win_condition import (
    OptionSums,
    VoterOptions,
    WorkBudget,
    linear_condition,
)
from tutorsim.analysis.identify.win_conditions import Sets
from tutorsim.analysis.statistics.array_types import Ints

# --- Runoff winners strict rankings --------------------------------------------------------------

ROUND_COST: Final = 20_000
"""Units of work that looking at one round of a path takes."""
_PLACE_COST: Final = 300
"""Units that finding one voter's first place in one round takes."""
_CHOICE_COST: Final = 300
"""Units that one choice of who leaves takes, or one winner set that is looked at."""

_LISTED: Final = 2_000
"""Ways a ranking may count on a path that are listed; of more, some, with bounds on all."""

Order = tuple[int, ...]

Path = tuple[frozenset[int], ...]
"""Who stands in each round; the last are tied, or one is left."""


def path_sets(
    orders: Sequence[Order | None], m: int, *, exempt: int, known: Sets, budget: WorkBudget
) -> tuple[Sets, bool]:
    """Reachable winner sets, as far as they make a candidate possible that was not.

    `known`: sets that are reachable for certain. Returns the sets, and whether every other set
    would add nothing or is out of reach.
    """
    rounds = _Rounds(orders, exempt, set(known), budget)
    complete = True
    for path in rounds.paths(frozenset(range(m))):
        budget.spend(len(path) * (ROUND_COST + _PLACE_COST * (len(orders) + _LISTED // 10)))
        if budget.empty:
            break
        answer = _taken(path, orders).exists(
            linear_condition(_needs(path)), exempt=exempt, budget=budget
        )
        if answer:
            rounds.found.add(path[-1])
        complete = complete and answer is not None
    return frozenset(rounds.found), complete and not budget.empty


class _Rounds:
    """Who may leave, and how a count may end; `found`: winner sets that need no path any more."""

    def __init__(
        self,
        orders: Sequence[Order | None],
        exempt: int,
        found: set[frozenset[int]],
        budget: WorkBudget,
    ) -> None:
        self.found = found
        self._groups = Counter(order for order in orders if order is not None)
        self._exempt = exempt
        self._budget = budget
        self._next: dict[frozenset[int], list[frozenset[int]]] = {}
        self._ends: dict[frozenset[int], Sets] = {}

    def paths(self, standing: frozenset[int]) -> Iterator[Path]:
        """Paths to winner sets that tell something; what tells is asked again for each."""
        for stays in self._after(standing):
            if self._budget.empty:
                return
            ends = self._reached(standing, stays)
            self._budget.spend(_CHOICE_COST * len(ends))
            if not any(_tells(tied, self.found) for tied in ends):
                continue
            if not stays:
                yield (standing,)
                continue
            for path in self.paths(stays):
                yield (standing, *path)

    def _reached(self, standing: frozenset[int], stays: frozenset[int]) -> Sets:
        """Winner sets at which a count may end when these stay."""
        if not stays:
            return frozenset({standing})
        if stays not in self._ends:
            later = [self._reached(stays, then) for then in self._after(stays)]
            self._budget.spend(_CHOICE_COST * sum(map(len, later)))
            self._ends[stays] = frozenset[frozenset[int]]().union(*later)
        return self._ends[stays]

    def _after(self, standing: frozenset[int]) -> list[frozenset[int]]:
        """Who may stay, fewest changed ballots first; nobody, where all are equal."""
        if standing not in self._next:
            self._budget.spend(ROUND_COST)
            cost = {} if self._budget.empty else self._costs(standing)
            by_cost = sorted(cost, key=lambda stays: (cost[stays], sorted(stays)))
            self._next[standing] = by_cost
        return self._next[standing]

    def _costs(self, standing: frozenset[int]) -> dict[frozenset[int], int]:
        firsts = dict.fromkeys(sorted(standing), 0)
        for order, voters in self._groups.items():
            firsts[next(c for c in order if c in standing)] += voters
        least = min(firsts.values())
        found: dict[frozenset[int], int] = {}
        for fewest in range(max(least - self._exempt, 0), least + self._exempt + 1):
            for out, cost in _leaving(tuple(firsts.items()), fewest, self._exempt):
                self._budget.spend(_CHOICE_COST * len(firsts))
                if self._budget.empty:
                    return {}
                if out:
                    found[standing - out] = min(cost, found.get(standing - out, cost))
        return found


def _tells(tied: frozenset[int], found: set[frozenset[int]]) -> bool:
    """Whether a winner set makes somebody possible, in either reading of ties, that is not yet."""
    return all(min(tied) != min(other) for other in found) or not tied <= {
        c for other in found for c in other
    }


def _leaving(
    firsts: Sequence[tuple[int, int]], fewest: int, exempt: int, up: int = 0, down: int = 0
) -> Iterator[tuple[frozenset[int], int]]:
    """Who may leave with `fewest` first places each, and at least how many ballots change for it.

    A changed ballot adds at most one first place and takes away at most one.
    """
    if max(up, down) > exempt:
        return
    if not firsts:
        yield frozenset(), max(up, down)
        return
    (c, votes), *rest = firsts
    stays = up + max(fewest + 1 - votes, 0)
    yield from _leaving(rest, fewest, exempt, stays, down)
    more, less = up + max(fewest - votes, 0), down + max(votes - fewest, 0)
    for others, cost in _leaving(rest, fewest, exempt, more, less):
        yield others | {c}, cost


def _taken(path: Path, orders: Sequence[Order | None]) -> OptionSums:
    """What voters add to the conditions that make a count take the path."""
    cast = [_places(path, order) for order in orders if order is not None]
    rows = _rows(path, np.array(cast, dtype=np.int32).reshape(len(cast), len(path)))
    places = list(islice(_any_places(path), _LISTED + 1))
    free = Options.of(_rows(path, np.array(places[:_LISTED], dtype=np.int32)))
    if len(places) > _LISTED:
        free = Options(free.rows, 0 * free.low - 1, 0 * free.high + 1, whole=False)
    nothing = Options.of(0 * free.rows[:1])
    voters = [VoterOptions(Options.of(row[None]), free) for row in rows]
    return OptionSums([*voters, *[VoterOptions(nothing, free)] * (len(orders) - len(rows))])


def _places(path: Path, order: Order) -> tuple[int, ...]:
    """Whom a ranking counts for in each round."""
    return tuple(next(c for c in order if c in standing) for standing in path)


def _any_places(path: Path, before: tuple[int, ...] = ()) -> Iterator[tuple[int, ...]]:
    """Whom any ranking may count for: the same candidate until it leaves, then any other."""
    if len(before) == len(path):
        yield before
        return
    standing = path[len(before)]
    stays = before and before[-1] in standing
    for c in before[-1:] if stays else sorted(standing):
        yield from _any_places(path, (*before, c))


def _rounds(path: Path) -> Iterator[tuple[int, list[int], list[int]]]:
    """For each round one that leaves, the others that leave, and those that stay."""
    for place, standing in enumerate(path):
        stays = path[place + 1] if place + 1 < len(path) else frozenset[int]()
        one, *others = sorted(standing - stays)
        yield one, others, sorted(stays)


def _rows(path: Path, places: Ints) -> Ints:
    """Shape (ballots, differences): of first places, to each that leaves both ways, to those that
    stay. `places`: shape (ballots, rounds): whom each ballot counts for."""
    columns = []
    for (one, others, stays), first in zip(_rounds(path), places.T, strict=True):
        lead = [1 * (first == d) - (first == one) for d in (*others, *stays)]
        columns += [*lead, *(-x for x in lead[: len(others)])]
    found = np.zeros((len(columns) or 1, len(places)), dtype=np.int32)
    if columns:
        found[:] = columns
    return found.T


def _needs(path: Path) -> list[int]:
    need = []
    for _, others, stays in _rounds(path):
        need += [*[0] * len(others), *[1] * len(stays), *[0] * len(others)]
    return need or [0]


# --- Runoff winners weak orders ------------------------------------------------------------------

_GROUP_COST: Final = 600
"""Units of work that one group of alike voters takes in a position."""

Position = tuple[tuple[Levels, int], ...]
"""Weak orders with a single first place → number of voters, sorted."""
Groups = dict[Levels, int]
"""Weak orders → number of voters."""


def runoff_sets(
    domains: Sequence[Domain | None], m: int, *, exempt: int, known: Sets, budget: WorkBudget
) -> tuple[Sets, bool]:
    """Reachable winner sets, and whether they are all of them.

    The search ends early, complete or not, once each candidate is the first of some set: then
    every candidate is possible in either reading of ties.

    `known`: sets that are reachable for certain.
    """
    found, firsts = set(known), set(map(min, known))
    left = budget.share
    stack: list[tuple[Iterator[tuple[Position, int]], frozenset[int]]] = []
    every = frozenset(range(m))
    seen: set[Position] = set()
    groups = Counter(domain.levels if domain is not None else () for domain in domains)
    work = 0
    stack.append((_starts(groups, m, exempt), every))
    while stack and work <= left and len(firsts) < m:
        positions, standing = stack[-1]
        if firsts >= standing:  # nothing more to be learned here
            stack.pop()
            continue
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
            firsts.add(min(standing))
        elif not firsts >= stay:
            stack.append((_decided(_restricted(position, stay)), stay))
    budget.spend(work)
    return frozenset(found), not stack or len(firsts) == m


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
    found: Groups = {}
    for levels, voters in position:
        kept = _kept(levels, standing)
        found[kept] = found.get(kept, 0) + voters
    return found


@lru_cache(maxsize=1 << 16)
def _kept(levels: Levels, standing: frozenset[int]) -> Levels:
    left = (tuple(c for c in level if c in standing) for level in levels)
    return tuple(level for level in left if level)


def _decided(groups: Groups) -> Iterator[tuple[Position, int]]:
    """Every way in which the voters of each weak order settle on first places, with its work."""
    parts = sorted(one for one in groups.items() if len(one[0][0]) > 1)

    def settle(place: int, total: Groups) -> Iterator[tuple[Position, int]]:
        if place == len(parts):
            yield tuple(sorted(total.items())), len(total)
            return
        levels, voters = parts[place]
        for shares in _shared_out(voters, len(levels[0])):
            more = dict(total)
            for after, n in zip(_firsts_of(levels), shares, strict=True):
                if n:
                    more[after] = more.get(after, 0) + n
            yield from settle(place + 1, more)

    yield from settle(0, {levels: n for levels, n in groups.items() if len(levels[0]) == 1})


def _shared_out(voters: int, among: int) -> Iterator[tuple[int, ...]]:
    """Every way to share out voters, all to the first of them at first."""
    if among == 1:
        yield (voters,)
        return
    for share in range(voters, -1, -1):
        for rest in _shared_out(voters - share, among - 1):
            yield (share, *rest)


@lru_cache(maxsize=1 << 16)
def _firsts_of(levels: Levels) -> list[Levels]:
    """A weak order with each candidate of its first level alone on top."""
    others = [(c, tuple(d for d in levels[0] if d != c)) for c in levels[0]]
    return [((c,), *([rest] if rest else []), *levels[1:]) for c, rest in others]
