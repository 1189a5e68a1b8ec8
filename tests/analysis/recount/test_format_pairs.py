import pytest

from tests.analysis.panel_runs import panel_episode, panel_source, panel_turn, with_retest
from tutorsim.analysis.recount.same_voter_in_two_formats import (
    FormatInvariance,
    format_invariance,
    format_invariance_across,
)
from tutorsim.analysis.statistics.intervals_and_tests import Estimate, NotEstimable, to_json
from tutorsim.voting import RichBallot

S, MI, MO, ME = "scaffolding", "misconception", "motivation", "metacognitive"
ROLES = (S, MI, MO, ME)


BY_ORDER = RichBallot(points={S: 10, MI: 8, MO: 5, ME: 2}, order=ROLES, approved=(S,))
BOTH = BY_ORDER.model_copy(update={"approved": (S, MI)})
OTHER_POINTS = BY_ORDER.model_copy(update={"points": {S: 11, MI: 7, MO: 5, ME: 2}})


def votes(*choices):
    return dict(zip(ROLES, choices, strict=True))


@pytest.fixture
def ranked_turn():
    """A ranked vote, and three more formats on the same proposals.

    voter | ranked      | simple | approval | rich, by its order
    S     | S MI MO ME  | S      | S        | S MI MO ME, approves S
    MI    | MI S MO ME  | S      | S, MI    | S MI MO ME, approves S and MI
    MO    | MO S MI ME  | –      | nobody   | –
    ME    | –           | S      | S        | S MI MO ME, approves S
    """
    return panel_turn(
        "ranked",
        votes(ROLES, (MI, S, MO, ME), (MO, S, MI, ME), None),
        others={
            "simple": votes(S, S, None, S),
            "approval": votes((S,), (MI, S), (), (S,)),
            "rich": votes(BY_ORDER, BOTH, None, BY_ORDER),
        },
    )


def found_in(source):
    found = format_invariance(source)
    assert isinstance(found, FormatInvariance)
    return found


def counts(found):
    """Hits and n of a share."""
    return (round(found.value * found.n), found.n) if isinstance(found, Estimate) else None


def test_pairs_are_consistent_as_the_table_reads(ranked_turn):
    found = found_in(panel_source(panel_episode(ranked_turn)))
    assert {(p.given, p.other): (p.abstained, counts(p.consistent)) for p in found.pairs} == {
        ("simple", "ranked"): (2, (1, 2)),  # MI put itself first
        ("simple", "approval"): (1, (3, 3)),
        ("ranked", "simple"): (2, (1, 2)),
        ("ranked", "approval"): (1, (2, 3)),  # a sincere ranker approves of somebody
        ("approval", "simple"): (1, (3, 3)),
        ("approval", "ranked"): (1, (3, 3)),  # who approves of nobody may rank in any order
        ("rich", "simple"): (1, (3, 3)),
        ("rich", "ranked"): (2, (1, 2)),
        ("rich", "approval"): (1, (3, 3)),
    }
    assert {pair.pairs for pair in found.pairs} == {4}
    # From the ranked vote to simple and approval, and rich beside it: 1 of 2, 2 of 3, 1 of 2.
    assert counts(found.from_vote) == (4, 7)


def test_rich_ballots_tell_whether_voters_choose_the_same(ranked_turn):
    found = {
        (p.given, p.other): p for p in found_in(panel_source(panel_episode(ranked_turn))).pairs
    }
    ranked = found["rich", "ranked"]
    # First: S and S, S and MI. Borda points of S 9 from rich ballots; S 7, MI 6, MO 5 from ranked.
    assert (counts(ranked.same_top), counts(ranked.same_winner)) == ((1, 2), (1, 1))
    # An approval of nobody puts nobody first; its rich counterpart is missing, so it is left out.
    assert counts(found["rich", "approval"].same_top) == (3, 3)
    assert counts(found["ranked", "approval"].same_top) == (2, 3)
    assert found["ranked", "approval"].same_winner is None


def test_rich_points_are_to_be_the_cumulative_ones():
    points = votes(*[BY_ORDER.points] * 4)
    rich = votes(BY_ORDER, BY_ORDER, BOTH, OTHER_POINTS)
    turn = panel_turn("cumulative", points, others={"rich": rich})
    [pair] = found_in(panel_source(panel_episode(turn))).pairs
    assert (pair.given, pair.other, counts(pair.consistent)) == ("rich", "cumulative", (3, 4))
    assert counts(pair.same_top) == (4, 4)


def test_two_askings_of_one_format_stand_beside(ranked_turn):
    points, even = {S: 10, MI: 8, MO: 5, ME: 2}, {S: 9, MI: 9, MO: 5, ME: 2}
    turned = {S: 8, MI: 10, MO: 5, ME: 2}
    second = panel_turn("cumulative", votes(*[points] * 4))
    source = with_retest(
        panel_source(panel_episode(ranked_turn), panel_episode(second, task="t2")),
        (
            "sciq.t1.novice.ranked",
            1,
            "vote_final",
            [votes(ROLES, (MI, S, ME, MO), (MO, S, MI, ME), ROLES)],
        ),
        ("sciq.t2.novice.cumulative", 1, "vote_final", [votes(points, even, turned, None)]),
    )
    found = found_in(source)
    # Ranked: same, other, same, abstained before. Points: same; equal where they differed, which
    # one ranking allows; turned round, which none does; abstained now.
    assert [
        (a.form, a.pairs, a.abstained, counts(a.same), counts(a.consistent)) for a in found.askings
    ] == [("ranked", 4, 1, (2, 3), (2, 3)), ("cumulative", 4, 1, (1, 3), (2, 3))]
    assert (counts(found.again), counts(found.again_consistent)) == ((3, 6), (4, 6))


def test_two_runs_are_matched_on_what_their_voters_saw():
    simple = panel_turn("simple", votes(S, S, MI, None))
    ranked = panel_turn("ranked", votes(ROLES, (MI, S, MO, ME), (MI, S, MO, ME), ROLES))
    other = panel_turn("ranked", votes(*[ROLES] * 4), texts={S: "Another reply."})
    first = panel_source(panel_episode(simple), panel_episode(simple, task="t2"))
    second = panel_source(panel_episode(ranked), panel_episode(other, task="t2"))
    found = format_invariance_across(first, second)
    assert isinstance(found, FormatInvariance)
    assert [(p.given, p.other, p.turns, counts(p.consistent)) for p in found.pairs] == [
        ("simple", "ranked", 1, (2, 3)),
        ("ranked", "simple", 1, (2, 3)),
    ]
    assert found.askings == []


def test_without_two_formats_the_assumption_is_untested():
    source = panel_source(panel_episode(panel_turn("simple", votes(S, S, S, S))), panel_episode())
    for found in (
        format_invariance(source),
        format_invariance_across(source, source),
        format_invariance(panel_source()),
    ):
        assert isinstance(found, NotEstimable)
        assert "untested" in found.reason


def test_ballots_that_count_under_another_rule_are_no_second_format():
    """A branch that counts rankings as votes keeps the same rankings as those of the log."""
    turn = panel_turn("ranked", votes(*[ROLES] * 4))
    turn = turn.model_copy(update={"ballots_as": {"ranked": turn.ballots_final}})
    assert isinstance(format_invariance(panel_source(panel_episode(turn))), NotEstimable)


def test_voters_who_all_abstained_have_no_share():
    nobody = votes(None, None, None, None)
    turn = panel_turn("simple", nobody, others={"rich": nobody})
    [pair] = found_in(panel_source(panel_episode(turn))).pairs
    assert (pair.pairs, pair.abstained) == (4, 4)
    assert pair.consistent == pair.same_top == pair.same_winner == NotEstimable("no observations")


def test_invariance_becomes_json(ranked_turn):
    made = to_json(found_in(panel_source(panel_episode(ranked_turn))))
    assert made["from_vote"]["n"] == 7  # type: ignore[index]
    assert made["again"] == {"not_estimable": "no observations"}
