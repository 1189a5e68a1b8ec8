"""How many a voter approves of: bounds are those over every approval of so many candidates."""

from itertools import product
from math import prod
from random import Random

import numpy as np
import pytest

from tests.reference.completions import (
    approvals_agreeing,
    completions,
    possible_by_enumeration,
    sets_by_enumeration,
)
from tutorsim.analysis.ballots.vote_arrays_and_profiles import LEFT_OUT, DistinctPanels, Profile
from tutorsim.analysis.counting.names_and_parameters_of_rules import ANY_NUMBER, Approvals
from tutorsim.analysis.identify.ballots_voters_may_cast_and_best_per_candidate import (
    approval_options,
    approved_sets,
    bits,
    domain_of,
)
from tutorsim.analysis.identify.possible_winners import READINGS_OF_TIES, answer_panels, table_ends
from tutorsim.errors import UsageError
from tutorsim.vocabularies import Protocol

TOP = 3
"""The end of the scale of scores."""
MOST = 2_000
"""Completions of a vote that are counted one by one."""


def a_ballot(random, protocol, m):
    order = random.sample(range(m), m)
    if protocol == "simple":
        return tuple(int(c == order[0]) for c in range(m))
    if protocol == "ranked":
        named = random.choice((m, random.randint(1, m)))
        return tuple(m - 1 - order.index(c) if c in order[:named] else LEFT_OUT for c in range(m))
    if protocol == "approval":
        return tuple(random.randint(0, 1) for _ in range(m))
    if protocol == "cumulative":
        points = random.choices(order[: random.randint(1, m)], k=4)
        return tuple(points.count(c) for c in range(m))
    missing = random.choice((0.0, 0.3))
    return tuple(LEFT_OUT if random.random() < missing else random.randint(0, TOP) for _ in order)


def drawn_votes(seed, votes):
    """Votes of up to five voters over up to five candidates, and a range of approvals."""
    random = Random(seed)
    formats: tuple[Protocol, ...] = ("simple", "ranked", "cumulative", "score", "approval")
    for _ in range(votes):
        m, n = random.randint(2, 5), random.randint(1, 5)
        protocol = random.choice(formats)
        pool = [a_ballot(random, protocol, m) for _ in range(random.choice((2, n)))]
        cast = [None if random.random() < 0.1 else random.choice(pool) for _ in range(n)]
        least = random.choice((1, 1, random.randint(1, m)))
        most = random.choice((None, random.randint(least, m)))
        yield Profile(protocol, m, tuple(cast)), Approvals(least, most)


def panels_of(profile):
    cast = np.array([[ballot is not None for ballot in profile.ballots]])
    nothing = (0,) * profile.size
    masses = np.array([[ballot or nothing for ballot in profile.ballots]], dtype=np.int64)
    return DistinctPanels.find(masses, cast, profile.protocol)


@pytest.mark.usefixtures("with_and_without_elections")
@pytest.mark.parametrize(
    ("seed", "votes"),
    [(1, 300), *(pytest.param(s, 2_500, marks=pytest.mark.slow) for s in range(2, 12))],
)
def test_bounds_are_those_over_every_approval_of_so_many(seed, votes):
    asked = 0
    for profile, number in drawn_votes(seed, votes):
        panels = panels_of(profile)
        tables = table_ends(panels, [number], budget=TOP).get(number)
        for ends in [None] if tables is None else [None, tables]:
            found = answer_panels(panels, number, exempt=(0, 1), budget=TOP, ends=ends)
            assert found.settled.all()
            for k in (0, 1):
                ways = completions(profile, number, TOP, k)
                if sum(prod(map(len, options)) for options in ways) > MOST:
                    continue
                sets = sets_by_enumeration(profile, number, budget=TOP, exempt=k)
                for r, reading in enumerate(READINGS_OF_TIES):
                    winners = tuple((np.flatnonzero(found.possible[r, k, 0]) - 1).tolist())
                    expected = possible_by_enumeration(sets, reading, profile.size)
                    assert winners == expected, (profile, number, k, reading)
                    asked += 1
    assert asked > 2 * votes


@pytest.mark.parametrize("protocol", ["simple", "ranked", "cumulative", "score"])
def test_exactly_one_approval_is_a_vote_for_one(protocol):
    random = Random(protocol)
    for _ in range(20):
        profile = Profile(protocol, 4, tuple(a_ballot(random, protocol, 4) for _ in range(3)))
        if any(LEFT_OUT in ballot for ballot in profile.cast):
            continue
        asked = {"exempt": (0, 1, 2), "budget": TOP}
        one = answer_panels(panels_of(profile), Approvals(1, 1), **asked)
        plurality = answer_panels(panels_of(profile), "simple", **asked)
        assert (one.possible == plurality.possible).all()
        assert (one.breakdown == plurality.breakdown).all()


def test_any_number_is_the_rule_without_a_range():
    random = Random(3)
    for protocol in ("simple", "ranked", "cumulative", "score", "approval"):
        for m in (4, 5):
            profile = Profile(protocol, m, tuple(a_ballot(random, protocol, m) for _ in range(4)))
            asked = {"exempt": (0, 1, 2, 4), "budget": TOP}
            plain = answer_panels(panels_of(profile), "approval", **asked)
            ranged = answer_panels(panels_of(profile), ANY_NUMBER, **asked)
            assert (plain.possible == ranged.possible).all()
            assert (plain.breakdown == ranged.breakdown).all()


def test_equal_candidates_are_split_in_a_range_alone():
    """Points 10, 10, 5, 0: of any number of approvals the first two have one both or neither."""
    ballot = (10, 10, 5, 0)
    one, other, both = (1, 0, 0, 0), (0, 1, 0, 0), (1, 1, 0, 0)
    cast = {
        number: set(approvals_agreeing(ballot, "cumulative", number, 25))
        for number in (Approvals(1, 1), Approvals(1, 2), Approvals(3, 3), ANY_NUMBER)
    }
    assert cast[Approvals(1, 1)] == {one, other}
    assert cast[Approvals(1, 2)] == {one, other, both}
    assert cast[Approvals(3, 3)] == {(1, 1, 1, 0)}
    assert cast[ANY_NUMBER] == {both, (1, 1, 1, 0), (1, 1, 1, 1)}
    domain = domain_of(ballot, protocol="cumulative", target=Approvals(1, 1))
    rows = approval_options(domain, 2, 4, (25, Approvals(1, 1))).rows.tolist()
    assert rows == [[-1, 0, 0], [0, -1, 0]]  # against 0, 1 and 3: one of the two is approved


@pytest.mark.parametrize("top", [1, 2])
@pytest.mark.parametrize("number", [ANY_NUMBER, Approvals(1, 2), Approvals(2, None)])
def test_sets_that_may_be_approved_are_those_of_every_way_to_fill_in_scores(number, top):
    least, most = number.of(3)
    for ballot in product((LEFT_OUT, *range(top + 1)), repeat=3):
        domain = domain_of(ballot, protocol="score", target=number)
        ways = approved_sets(domain, 3, top, number)
        sets = {one for core, free in ways for one in range(8) if core | free & one == one}
        cast = {bits(np.flatnonzero(s)) for s in approvals_agreeing(ballot, "score", number, top)}
        assert {one for one in sets if least <= one.bit_count() <= most} == cast, ballot


def test_what_is_possible_grows_with_the_range():
    """So what is kept for certain never rises from exactly 1 to up to all."""
    for profile, _ in drawn_votes(12, 300):
        panels = panels_of(profile)
        along = [Approvals(1, most) for most in range(1, profile.size + 1)]
        tables = table_ends(panels, along, budget=TOP)
        before = np.zeros(1, dtype=bool)
        for number in along:
            asked = {"exempt": (0, 1), "budget": TOP, "ends": tables.get(number)}
            found = answer_panels(panels, number, **asked)
            assert (found.possible | ~before).all(), (profile, number)
            before = found.possible


@pytest.mark.parametrize(
    ("text", "least", "most", "words"),
    [
        ("1..2", 1, 2, "up to 2"),
        ("2", 2, 2, "exactly 2"),
        ("1..", 1, None, "any number"),
        ("..3", 1, 3, "up to 3"),
        (" 2 .. 4 ", 2, 4, "2 to 4"),
        ("3..", 3, None, "3 or more"),
    ],
)
def test_a_range_is_read_as_people_write_it(text, least, most, words):
    found = Approvals.read(text)
    assert (found, found.words) == (Approvals(least, most), words)
    assert Approvals.read(str(found)) == found


@pytest.mark.parametrize(
    "text", ["", "..", "two", "1-2", "1..2..3", "0", "0..2", "3..2", "-1", "1.5"]
)
def test_what_is_no_range_is_refused(text):
    with pytest.raises(UsageError) as error:
        Approvals.read(text)
    assert error.value.hint
