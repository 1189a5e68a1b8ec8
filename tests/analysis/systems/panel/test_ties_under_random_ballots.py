"""Ties, fallback and flips of random ballots, held to plain enumeration."""

from collections import Counter
from fractions import Fraction
from itertools import permutations, product

import pytest

from tutorsim.analysis.ballots.ballot_formats import BallotForm
from tutorsim.analysis.systems.panel import panels_compared as ties_under_random_ballots
from tutorsim.analysis.systems.panel.panels_compared import leaders_by_chance, uniform_chance
from tutorsim.vocabularies import PROTOCOLS, TOP_SCORE
from tutorsim.voting import decide

BUDGET = 3


def ballots(protocol, m):
    """Every ballot that a protocol allows, as masses."""
    if protocol == "ranked":
        return list(permutations(range(m)))
    if protocol == "cumulative":
        return [split for split in product(range(BUDGET + 1), repeat=m) if sum(split) == BUDGET]
    if protocol == "score":
        return list(product(range(TOP_SCORE + 1), repeat=m))
    sets = product((0, 1), repeat=m)
    return [s for s in sets if protocol == "approval" or sum(s) == 1]


def totals(protocol, n, m):
    """How often each vector of totals comes about."""
    found = Counter({(0,) * m: 1})
    for _ in range(n):
        more = Counter[tuple[int, ...]]()
        for before, ways in found.items():
            for ballot in ballots(protocol, m):
                more[tuple(a + b for a, b in zip(before, ballot, strict=True))] += ways
        found = more
    return found


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize(("n", "m"), [(3, 3), (4, 2), (4, 4)])
def test_leaders_are_those_of_every_vote_that_can_be_cast(protocol, n, m):
    counts = totals(protocol, n, m)
    led = Counter[int]()
    for vector, ways in counts.items():
        led[vector.count(max(vector))] += ways
    found = leaders_by_chance(protocol, n, m, budget=BUDGET)
    assert found.exact
    assert found.shares == pytest.approx([led[s] / counts.total() for s in range(1, m + 1)])


def winners(protocol, size, *, tie_round):
    """Chance of each first leader and each winner, and of a fallback, by the deciding rule."""
    order = tuple("abcdefgh"[:size])
    led, won, fallback = Counter[str](), Counter[str](), Fraction(0)
    counts = totals(protocol, size, size)
    for vector, ways in counts.items():
        share = Fraction(ways, counts.total())
        first = decide([dict(zip(order, vector, strict=True))], order, order=order)
        led[first.winner] += share  # type: ignore[assignment]
        if not (tie_round and first.tied_set):
            won[first.winner] += share  # type: ignore[assignment]
            fallback += share * (first.decided_by == "fallback")
            continue
        again = totals(protocol, size, len(first.tied_set))
        for tied, tied_ways in again.items():
            part = share * Fraction(tied_ways, again.total())
            masses = dict(zip(first.tied_set, tied, strict=True))
            last = decide(
                [dict(zip(order, vector, strict=True))], order, order=order, tie_round=[masses]
            )
            won[last.winner] += part  # type: ignore[assignment]
            fallback += part * (last.decided_by == "fallback")
    return led, won, fallback


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("tie_round", [True, False])
def test_flip_and_fallback_are_those_of_the_deciding_rule(protocol, tie_round):
    led, won, fallback = winners(protocol, 3, tie_round=tie_round)
    found = uniform_chance(protocol, 3, budget=BUDGET, tie_round=tie_round)
    assert found.fallback == pytest.approx(float(fallback))
    assert found.flip == pytest.approx(float(1 - sum(led[c] * won[c] for c in led)))
    assert tie_round or found.tied == pytest.approx(found.fallback)


def test_by_hand_for_three_single_choices():
    # All three differ in 6 of 27 votes; then the round among three ties again in 6 of 27.
    found = uniform_chance("simple", 3)
    assert (found.tied, found.fallback) == pytest.approx((6 / 27, (6 / 27) ** 2))


@pytest.mark.parametrize("protocol", ["ranked", "cumulative"])
def test_drawn_votes_come_near_the_counted_ones(protocol, monkeypatch):
    counted = leaders_by_chance(protocol, 4, 3)
    monkeypatch.setattr(ties_under_random_ballots, "_CELLS", 0)
    drawn = leaders_by_chance.__wrapped__(protocol, 4, 3)
    assert (counted.exact, drawn.exact) == (True, False)
    assert drawn.shares == pytest.approx(counted.shares, abs=0.01)


def test_random_scores_are_any_on_the_scale():
    counts = totals("score", 2, 3)
    alone = sum(ways for vector, ways in counts.items() if vector.count(max(vector)) == 1)
    found = leaders_by_chance("score", 2, 3)
    assert not found.exact
    assert found.shares[0] == pytest.approx(alone / counts.total(), abs=0.01)


def test_ballots_of_a_format_that_is_added_are_all_drawn_alike(monkeypatch):
    """A veto: one of three gets nothing. By hand: of 9 pairs 3 leave two level, 6 leave one."""
    veto = BallotForm(
        lambda masses, _: (masses.sum(axis=1) == masses.shape[1] - 1) & (masses <= 1).all(axis=1),
        lambda masses, _: None,
        lambda m, budget, top: 1,
    )
    monkeypatch.setitem(ties_under_random_ballots.FORMATS, "veto", veto)
    counted = leaders_by_chance("veto", 2, 3)
    assert counted.shares == pytest.approx((6 / 9, 3 / 9, 0))
    monkeypatch.setattr(ties_under_random_ballots, "_CELLS", 0)
    drawn = leaders_by_chance.__wrapped__("veto", 2, 3)
    assert drawn.shares == pytest.approx(counted.shares, abs=0.01)


@pytest.mark.parametrize("protocol", ["simple", "approval"])
@pytest.mark.parametrize("size", range(3, 9))
def test_choices_and_sets_are_counted_exactly_for_every_size(protocol, size):
    found = uniform_chance(protocol, size)
    assert found.exact
    assert sum(leaders_by_chance(protocol, size, size).shares) == pytest.approx(1)
    assert 0 < found.fallback < found.tied < found.flip < 1
