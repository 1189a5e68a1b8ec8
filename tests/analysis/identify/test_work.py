"""Elections of many voters: what is counted, what is searched, and what is left open."""

from collections.abc import Callable
from random import Random
from typing import Any

import pytest

from analysis.identify import Identifier, breakdown_point, possible
from analysis.identify.search import WORK_LIMIT, Purse
from analysis.profiles import Profile
from analysis.rules import TARGETS, Target
from tutorsim.types import PROTOCOLS

pytestmark = pytest.mark.costly

Draw = Callable[..., Profile]

SETTLED_LIMIT = 6 * WORK_LIMIT


def rankings(seed: int, m: int, n: int) -> Profile:
    random = Random(seed)
    return Profile("ranked", m, tuple(tuple(random.sample(range(m), m)) for _ in range(n)))


@pytest.fixture
def purses(monkeypatch: pytest.MonkeyPatch) -> list[Purse]:
    """Every purse that is opened."""
    opened: list[Purse] = []

    class Watched(Purse):
        def __init__(self, left: int) -> None:
            super().__init__(left)
            self.given = left
            opened.append(self)

    monkeypatch.setattr(possible, "Purse", Watched)
    return opened


def spent(purses: list[Any]) -> int:
    return sum(purse.given - purse.left for purse in purses)


@pytest.mark.parametrize("target", [t for t in TARGETS if t not in ("cumulative", "approval")])
def test_known_ballots_are_counted_and_not_searched(target: Target, purses: list[Purse]) -> None:
    found = Identifier(budget=25, limit=1).possible(
        rankings(1, 20, 300), target, exempt=0, reading="fallback"
    )
    assert found.settled
    assert len(found.winners) == 1
    assert spent(purses) == 0


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(("m", "n"), [(4, 100), (5, 60)])
def test_many_voters_with_few_candidates_settle(
    target: Target, m: int, n: int, purses: list[Purse]
) -> None:
    profile, identifier = rankings(2, m, n), Identifier(budget=25)
    for reading in ("set", "fallback"):
        found = [identifier.possible(profile, target, exempt=k, reading=reading) for k in range(3)]
        assert all(one.settled for one in found)
        winner = found[0].necessary
        if winner is not None:
            lost = breakdown_point(
                lambda k, winner=winner, reading=reading: identifier.contested(  # type: ignore[misc]
                    profile, target, winner=winner, exempt=k, reading=reading
                ),
                voters=n,
            )
            assert lost is not None
    assert spent(purses) < SETTLED_LIMIT


@pytest.mark.costly
@pytest.mark.parametrize("target", ["ranked", pytest.param("copeland", marks=pytest.mark.slow)])
def test_too_many_voters_are_left_open_within_the_purse(target: Target, purses: list[Any]) -> None:
    profile, identifier = rankings(3, 20, 1000), Identifier(budget=25)
    found = {k: identifier.possible(profile, target, exempt=k, reading="set") for k in (0, 60)}
    assert found[0].settled
    assert not found[60].settled
    assert found[60].necessary is None
    assert set(found[0].winners) <= set(found[60].winners)
    assert all(purse.given == 2 * WORK_LIMIT for purse in purses)


def test_an_empty_purse_leaves_a_question_open() -> None:
    profile = rankings(4, 4, 12)
    found = Identifier(budget=25, limit=0).possible(profile, "copeland", exempt=6, reading="set")
    assert not found.settled


def test_settled_answers_stay_when_the_purse_runs_out(purses: list[Purse]) -> None:
    profile, identifier = rankings(5, 4, 30), Identifier(budget=25)
    before = identifier.possible(profile, "minimax", exempt=1, reading="set")
    for purse in purses:
        purse.left = 0
    assert before.settled
    assert identifier.possible(profile, "minimax", exempt=1, reading="set") == before


def test_paths_and_positions_of_an_instant_runoff_agree(
    random_profile: Draw, monkeypatch: pytest.MonkeyPatch
) -> None:
    random = Random(6)
    for _ in range(60):
        m, n = random.randint(2, 4), random.randint(1, 6)
        profile = random_profile(random, "ranked", m, n, 25)
        for exempt in (1, 2, 3):
            by_few = {}
            for few in (0, 7):
                monkeypatch.setattr(possible, "_FEW", few)
                identifier = Identifier(budget=25)
                by_few[few] = [
                    identifier.possible(profile, "instant_runoff", exempt=exempt, reading=reading)
                    for reading in ("set", "fallback")
                ]
                assert all(one.settled for one in by_few[few])
            assert by_few[0] == by_few[7], (profile, exempt)


def test_options_left_out_never_settle_a_refusal(
    random_profile: Draw, monkeypatch: pytest.MonkeyPatch
) -> None:
    random = Random(7)
    drawn = [
        (random_profile(random, random.choice(PROTOCOLS), 4, 3, 6), random.choice(TARGETS))
        for _ in range(80)
    ]

    def answers() -> list[Any]:
        from analysis.identify import domains, problems

        for module in (domains, problems):
            for cached in vars(module).values():
                getattr(cached, "cache_clear", lambda: None)()
        identifier = Identifier(budget=6)
        return [
            identifier.possible(profile, target, exempt=k, reading="set")
            for profile, target in drawn
            for k in (0, 1)
        ]

    whole = answers()
    monkeypatch.setattr("analysis.identify.domains.MANY", 2)
    monkeypatch.setattr("analysis.identify.problems._SOME", 2)
    monkeypatch.setattr("analysis.identify.problems._ALL_OPTIONS", 2)
    some = answers()
    monkeypatch.undo()
    assert whole == answers()
    for every, part in zip(whole, some, strict=True):
        assert set(part.winners) <= set(every.winners)
        assert not part.settled or part == every, (every, part)
