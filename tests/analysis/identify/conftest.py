"""A plain, slow enumeration of everything that voters may have cast, and random profiles."""

from collections.abc import Callable, Iterator, Sequence
from functools import cache, lru_cache
from itertools import combinations, permutations, product
from math import prod
from random import Random

import numpy as np
import pytest

from tutorsim.analysis.ballots.distinct_panels import DistinctPanels
from tutorsim.analysis.ballots.turn_profiles import Masses, Profile
from tutorsim.analysis.counting.rule_definitions import Target, ballot_format, ranking_of, winners
from tutorsim.analysis.identify.possible_winners import PanelAnswers, answer_panels, table_ends
from tutorsim.vocabularies import Protocol
from tutorsim.voting import first_in_order


@cache
def every_ballot(protocol: Protocol, m: int, budget: int) -> tuple[Masses, ...]:
    """Every ballot of a format, as masses."""
    if protocol == "simple":
        return tuple(tuple(int(d == c) for d in range(m)) for c in range(m))
    if protocol == "ranked":
        return tuple(permutations(range(m)))
    top = 1 if protocol == "approval" else budget
    every = product(range(top + 1), repeat=m)
    return tuple(x for x in every if protocol == "approval" or sum(x) == budget)


def agrees(ballot: Masses, logged: Protocol, other: Masses, target: Protocol) -> bool:
    """Whether a sincere voter that cast `ballot` may cast `other`: the table, as it reads."""
    m = len(ballot)
    if logged == target:
        return ballot == other
    places = [(a, b) for a in range(m) for b in range(m) if ballot[a] > ballot[b]]
    if target == "simple":
        choice = other.index(1)
        return ballot[choice] == max(ballot)
    if target in ("ranked", "cumulative"):
        return all(other[a] >= other[b] for a, b in places)
    if logged == "simple":
        return other[ballot.index(1)] == 1
    return (
        any(other)
        and all(other[a] >= other[b] for a, b in places)
        and all(other[a] == other[b] for a in range(m) for b in range(m) if ballot[a] == ballot[b])
    )


@cache
def agreeing(ballot: Masses, logged: Protocol, target: Protocol, budget: int) -> tuple[Masses, ...]:
    every = every_ballot(target, len(ballot), budget)
    return tuple(other for other in every if agrees(ballot, logged, other, target))


def completions(
    profile: Profile, target: Target, budget: int, exempt: int
) -> Iterator[list[tuple[Masses | None, ...]]]:
    """For each choice of exempt voters, what each voter may have cast."""
    form = ballot_format(target)
    for freed in combinations(range(len(profile.ballots)), min(exempt, len(profile.ballots))):
        options: list[tuple[Masses | None, ...]] = []
        for voter, ballot in enumerate(profile.ballots):
            own = (None,) if ballot is None else agreeing(ballot, profile.protocol, form, budget)
            every = every_ballot(form, profile.size, budget)
            options.append((*own, *every) if voter in freed else own)
        yield options


@lru_cache(maxsize=1 << 18)
def tied_winners(target: Target, ballots: tuple[Masses, ...], m: int) -> frozenset[int]:
    names = [str(c) for c in range(m)]
    masses = [{str(c): x for c, x in enumerate(ballot)} for ballot in ballots]
    rankings = [ranking_of(ballot) for ballot in masses]
    found = winners(target, ballots=masses, rankings=rankings, candidates=names)
    return frozenset(int(c) for c in found)


def sets_by_enumeration(
    profile: Profile, target: Target, *, budget: int, exempt: int = 0
) -> set[frozenset[int]]:
    """Every set of tied winners over all completions."""
    found: set[frozenset[int]] = set()
    for options in completions(profile, target, budget, exempt):
        for cast in product(*options):
            ballots = tuple(sorted(ballot for ballot in cast if ballot is not None))
            found.add(tied_winners(target, ballots, profile.size))
    return found


def possible_by_enumeration(sets: set[frozenset[int]], reading: str, m: int) -> tuple[int, ...]:
    """Possible outcomes of winner sets; -1 where nobody wins."""
    order = [str(c) for c in range(m)]
    outcomes: set[int] = {-1} if frozenset() in sets else set()
    for tied in sets - {frozenset()}:
        first = int(first_in_order([str(c) for c in tied], order))
        outcomes |= set(tied) if reading == "set" else {first}
    return tuple(sorted(outcomes))


def count_completions(profile: Profile, target: Target, budget: int, exempt: int) -> int:
    return sum(
        prod(len(set(own)) for own in options)
        for options in completions(profile, target, budget, exempt)
    )


def draw_profile(
    random: Random, protocol: Protocol, m: int, n: int, budget: int, abstain: float = 0.1
) -> Profile:
    """Uniform ballots; at most two distinct ones in half of the profiles, so that ties occur."""
    every = every_ballot(protocol, m, budget)
    pool = random.sample(every, min(len(every), 2)) if random.random() < 0.5 else every
    ballots = tuple(None if random.random() < abstain else random.choice(pool) for _ in range(n))
    return Profile(protocol, m, ballots)


@pytest.fixture
def enumerate_sets() -> Callable[..., set[frozenset[int]]]:
    """`sets_by_enumeration(profile, target, budget=, exempt=)`."""
    return sets_by_enumeration


@pytest.fixture
def enumerate_possible() -> Callable[..., tuple[int, ...]]:
    """`possible_by_enumeration(sets, reading, m)`."""
    return possible_by_enumeration


@pytest.fixture
def completions_of() -> Callable[..., int]:
    """`count_completions(profile, target, budget, exempt)`."""
    return count_completions


@pytest.fixture
def random_profile() -> Callable[..., Profile]:
    """`draw_profile(random, protocol, m, n, budget)`."""
    return draw_profile


@pytest.fixture
def table_of_ballots() -> tuple[Callable[..., bool], Callable[..., tuple[Masses, ...]]]:
    """`agrees(ballot, logged, other, target)` and `every_ballot(protocol, m, budget)`."""
    return agrees, every_ballot


def draw_votes(protocol: Protocol, m: int, n: int, budget: int = 25) -> Profile:
    """Ballots of many candidates, drawn one mark or point at a time."""
    random = Random(f"{protocol} {m} {n}")

    def ballot() -> Masses:
        if protocol == "ranked":
            return tuple(random.sample(range(m), m))
        if protocol == "approval":
            return tuple(random.randint(0, 1) for _ in range(m))
        marks = random.choices(range(m), k=1 if protocol == "simple" else budget)
        return tuple(marks.count(c) for c in range(m))

    return Profile(protocol, m, tuple(ballot() for _ in range(n)))


@pytest.fixture
def random_votes() -> Callable[..., Profile]:
    """`draw_votes(protocol, m, n)`."""
    return draw_votes


def answer_profiles(
    profiles: Sequence[Profile],
    target: Target,
    *,
    exempt: Sequence[int] = (0,),
    budget: int = 25,
    tables: bool = True,
) -> tuple[PanelAnswers, list[int]]:
    """The answers about profiles of one size and format, and the panel of each."""
    m, n = profiles[0].size, len(profiles[0].ballots)
    cast = np.array([[b is not None for b in p.ballots] for p in profiles])
    masses = np.array([[b or (0,) * m for b in p.ballots] for p in profiles], dtype=np.int64)
    panels = DistinctPanels.find(masses.reshape(-1, n, m), cast, profiles[0].rule)
    ends = table_ends(panels, [target], budget=budget).get(target) if tables else None
    answers = answer_panels(panels, target, exempt=exempt, budget=budget, ends=ends)
    return answers, panels.of.tolist()


@pytest.fixture
def answers_of() -> Callable[..., tuple[PanelAnswers, list[int]]]:
    """`answer_profiles(profiles, target, exempt=, budget=, tables=)`."""
    return answer_profiles
