"""Random profiles, and the plain enumeration of everything that their voters may have cast."""

from contextlib import contextmanager
from math import prod
from random import Random

import numpy as np
import pytest

from tests.reference.completions import completions, every_ballot
from tutorsim.analysis.ballots.vote_arrays_and_profiles import LEFT_OUT, DistinctPanels, Profile
from tutorsim.analysis.identify import possible_winners
from tutorsim.analysis.identify.possible_winners import answer_panels, table_ends
from tutorsim.analysis.identify.search_for_votes_that_meet_a_win_condition import WorkBudget


@contextmanager
def searched_alone():
    """No election is held before a search."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(possible_winners, "elected", lambda *_, **__: frozenset())
        yield


@pytest.fixture(params=[True, False], ids=["elections first", "search alone"])
def with_and_without_elections(request):
    """Both ways to an outcome that is possible: an election that is held, and a search."""
    if request.param:
        yield
        return
    with searched_alone():
        yield


def completions_of(profile, target, budget, exempt):
    return sum(
        prod(len(set(own)) for own in options)
        for options in completions(profile, target, budget, exempt)
    )


def random_profile(random, protocol, m, n, budget, abstain=0.1):
    """Uniform ballots; at most two distinct ones in half of the profiles, so that ties occur."""
    every = every_ballot(protocol, m, budget)
    pool = random.sample(every, min(len(every), 2)) if random.random() < 0.5 else every
    ballots = tuple(None if random.random() < abstain else random.choice(pool) for _ in range(n))
    return Profile(protocol, m, ballots)


def random_votes(protocol, m, n, budget=25):
    """Ballots of many candidates, drawn one mark or point at a time."""
    random = Random(f"{protocol} {m} {n}")

    def ballot():
        if protocol == "ranked":
            return tuple(random.sample(range(m), m))
        if protocol == "approval":
            return tuple(random.randint(0, 1) for _ in range(m))
        if protocol == "score":
            return tuple(random.choice((LEFT_OUT, 0, 1, 2, budget)) for _ in range(m))
        marks = random.choices(range(m), k=1 if protocol == "simple" else budget)
        return tuple(marks.count(c) for c in range(m))

    return Profile(protocol, m, tuple(ballot() for _ in range(n)))


def answers_of(profiles, target, *, exempt=(0,), budget=25, tables=True, **asked):
    """The answers about profiles of one size and format, and the panel of each."""
    m, n = profiles[0].size, len(profiles[0].ballots)
    cast = np.array([[b is not None for b in p.ballots] for p in profiles])
    masses = np.array([[b or (0,) * m for b in p.ballots] for p in profiles], dtype=np.int64)
    panels = DistinctPanels.find(masses.reshape(-1, n, m), cast, profiles[0].protocol)
    ends = table_ends(panels, [target], budget=budget).get(target) if tables else None
    answers = answer_panels(panels, target, exempt=exempt, budget=budget, ends=ends, **asked)
    return answers, panels.of.tolist()


@pytest.fixture
def budgets(monkeypatch):
    """Every budget that is opened."""
    opened: list[WorkBudget] = []

    class Watched(WorkBudget):
        def __init__(self, left):
            super().__init__(left)
            self.given = left
            opened.append(self)

    monkeypatch.setattr(possible_winners, "WorkBudget", Watched)
    return opened


def spent(budgets):
    return sum(budget.given - budget.left for budget in budgets)
