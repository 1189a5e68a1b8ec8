"""The six ranking rules: textbook elections, weak orders, and an independent library."""

from random import Random

import pytest

from tests.reference import plain_rules
from tutorsim.analysis.ballots.vote_arrays_and_profiles import LEFT_OUT
from tutorsim.analysis.counting.names_and_parameters_of_rules import (
    CONVENTIONS,
    TARGETS,
    check_targets,
    conventions_of,
)
from tutorsim.analysis.counting.voting_rules_in_arrays import OF_RANKINGS, winners
from tutorsim.errors import UsageError
from tutorsim.vocabularies import PROTOCOLS


def strict(text):
    """`abc` as a ranking with one candidate in each level."""
    return tuple((c,) for c in text)


def electorate(**voters):
    """`electorate(abc=2, bca=1)`: voters per strict ranking."""
    return [strict(text) for text, n in voters.items() for _ in range(n)]


def ordered(rule, rankings, candidates):
    """The winners of rankings, each of them levels of candidates."""
    ballots = [{c: -i for i, level in enumerate(one) for c in level} for one in rankings]
    found = winners(rule, ballots, candidates)
    assert plain_rules.RANKING_RULES[rule](rankings, candidates) == found
    return found


def test_tennessee_elects_its_capital_by_every_condorcet_rule_and_bucklin():
    # m 42 mncK, n 26 nckm, c 15 cknm, k 17 kcnm. n beats m 58:42, c 68:32, k 68:32.
    voters = electorate(mnck=42, nckm=26, cknm=15, kcnm=17)
    for rule in ("copeland", "minimax", "schulze", "condorcet"):
        assert ordered(rule, voters, "mnck") == ("n",)
    # After second places: m 42, n 68, c 58, k 32. Two have a majority; n has the most.
    assert ordered("bucklin", voters, "mnck") == ("n",)
    # c leaves (15), its votes go to k: m 42, n 26, k 32; n leaves, to k: k 58.
    assert ordered("instant_runoff", voters, "mnck") == ("k",)


def test_schulzes_own_example_elects_e():
    voters = electorate(acbed=5, adecb=5, bedac=8, cabed=3, caebd=7, cbade=2, dceba=7, ebadc=8)
    assert ordered("schulze", voters, "abcde") == ("e",)


def test_a_cycle_has_no_condorcet_winner_and_ties_the_others():
    voters = electorate(abc=1, bca=1, cab=1)
    assert ordered("condorcet", voters, "abc") == ()
    for name in ("copeland", "minimax", "schulze", "instant_runoff", "bucklin"):
        assert ordered(name, voters, "abc") == ("a", "b", "c")


def test_a_pairwise_tie_is_half_a_win():
    # a:b 2:2, a:c 2:2, b:c 4:0. Doubled scores: a 1+1, b 1+2, c 1+0.
    voters = electorate(abc=2, bca=2)
    assert plain_rules.margins(voters, "abc")["a", "b"] == 0
    assert ordered("copeland", voters, "abc") == ("b",)


def test_runoff_removes_all_with_the_fewest_first_places_together():
    # a 3, b 2, c 2: b and c leave together, and a is left although c could have beaten it.
    voters = electorate(abc=3, bca=2, cba=2)
    assert ordered("instant_runoff", voters, "abc") == ("a",)


def test_bucklin_takes_the_largest_count_and_not_every_majority():
    # First places: a 2, b 2, c 1. With second places: a 2, b 5, c 3 of 5.
    voters = electorate(abc=2, bca=2, cba=1)
    assert ordered("bucklin", voters, "abc") == ("b",)


def test_nobody_votes_and_everybody_is_tied():
    for target in TARGETS:
        expected = () if target == "condorcet" else ("a", "b", "c")
        assert winners(target, [], "abc") == expected


def test_one_candidate_wins_under_every_target():
    for target in TARGETS:
        assert winners(target, [{"a": 1}], "a") == ("a",)


def test_a_level_counts_as_the_average_over_its_orders():
    # One vote, a and b share the first place: half each, and c leaves.
    shared = (("a", "b"), ("c",))
    assert ordered("instant_runoff", [shared], "abc") == ("a", "b")
    # Depth 1: a ½, b ½; with a's own ballot a has 1½ of 2, more than half.
    assert ordered("bucklin", [shared, strict("acb")], "abc") == ("a",)
    assert plain_rules.margins([shared], "abc") == {
        ("a", "b"): 0,
        ("a", "c"): 1,
        ("b", "a"): 0,
        ("b", "c"): 1,
        ("c", "a"): -1,
        ("c", "b"): -1,
    }


def test_masses_show_a_weak_order():
    masses = {"a": 5, "b": 10, "c": 10, "d": 0}
    assert plain_rules.ranking_of(masses) == (("b", "c"), ("a",), ("d",))


def test_the_protocols_share_one_count():
    ballots = [{"a": 25, "b": 0}, {"a": 0, "b": 25}]
    assert {winners(target, ballots, "ab") for target in PROTOCOLS} == {("a", "b")}


def test_unknown_targets_are_refused_by_name():
    assert check_targets(["schulze", "simple"]) == ("simple", "schulze")
    with pytest.raises(UsageError, match="'plurality' is not a rule"):
        check_targets(["plurality"])


@pytest.mark.costly
def test_an_independent_library_names_the_same_winners():
    methods = pytest.importorskip("pref_voting.voting_methods")
    profiles = pytest.importorskip("pref_voting.profiles")
    theirs = {
        "copeland": methods.copeland,
        "minimax": methods.minimax,
        "instant_runoff": methods.instant_runoff,
        "schulze": methods.beat_path,
        "bucklin": methods.bucklin,
        "condorcet": methods.condorcet,
    }
    random = Random(3)
    for _ in range(40):
        m, n = random.randint(2, 6), random.randint(1, 7)
        orders = [random.sample(range(m), m) for _ in range(n)]
        profile = profiles.Profile(orders)
        rankings = [tuple((str(c),) for c in order) for order in orders]
        names = [str(c) for c in range(m)]
        for name, method in theirs.items():
            expected = {str(c) for c in method(profile)}
            if name == "condorcet" and profile.condorcet_winner() is None:
                expected = set()  # there the library elects everybody, we nobody
            assert set(ordered(name, rankings, names)) == expected, (name, orders)


@pytest.mark.costly
def test_borda_agrees_with_an_independent_library():
    methods = pytest.importorskip("pref_voting.voting_methods")
    profiles = pytest.importorskip("pref_voting.profiles")
    random = Random(4)
    for _ in range(30):
        m, n = random.randint(2, 6), random.randint(1, 7)
        orders = [random.sample(range(m), m) for _ in range(n)]
        masses = [{str(c): m - 1 - place for place, c in enumerate(order)} for order in orders]
        profile = profiles.Profile(orders)
        names = [str(c) for c in range(m)]
        borda = methods.scoring_rule(profile, score=lambda size, rank: size - rank)
        assert set(winners("ranked", masses, names)) == {str(c) for c in borda}
        firsts = [{name: int(name == str(order[0])) for name in names} for order in orders]
        assert set(winners("simple", firsts, names)) == {str(c) for c in methods.plurality(profile)}


def test_the_last_leave_together_and_the_convention_says_so():
    """Three first places for a, two each for b and c, who leave together: a has won.

    Were b or c to leave first, the other would have its ballots and beat a by four to three.
    """
    rankings = [*3 * [strict("abc")], *2 * [strict("bca")], *2 * [strict("cba")]]
    assert ordered("instant_runoff", rankings, "abc") == ("a",)
    assert "leave together" in conventions_of(["simple", "instant_runoff"])


def test_every_ranking_rule_has_a_convention_and_sums_need_none():
    assert set(CONVENTIONS) == {*OF_RANKINGS, "mean_position", "score", "median_score"}
    assert conventions_of(PROTOCOLS) == ""


@pytest.mark.parametrize(("rule", "by"), [("score", "mean"), ("median_score", "median")])
def test_scores_of_some_agree_with_an_independent_library(rule, by):
    """Means of dyadic lengths, so that the library's floats are exact too."""
    methods = pytest.importorskip("pref_voting.grade_methods")
    profiles = pytest.importorskip("pref_voting.grade_profiles")
    random = Random(5)
    for _ in range(60):
        m, n = random.randint(2, 5), random.choice((1, 2, 4))
        ballots = [{c: random.randint(0, 4) for c in range(m)} for _ in range(n)]
        if by == "median" or n == 2:
            ballots = [{c: x for c, x in b.items() if random.random() < 0.8} for b in ballots]
        grades = profiles.GradeProfile(ballots, list(range(5)), candidates=list(range(m)))
        masses = [{str(c): b.get(c, LEFT_OUT) for c in range(m)} for b in ballots]
        found = winners(rule, masses, [str(c) for c in range(m)])
        if any(ballots):
            expected = methods.score_voting(grades, evaluation_method=by)
            assert set(found) == {str(c) for c in expected}, ballots
