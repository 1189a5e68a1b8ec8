"""What the sets rest on stands beside them: pairs of formats, or that nothing tests it."""

from dataclasses import replace
from itertools import product

import pytest

from tests.analysis.made import figure_of
from tests.analysis.panel_runs import panel_episode, panel_source, panel_turn, votes, with_retest
from tests.reference.completions import agrees, every_ballot
from tutorsim.analysis.recount import same_voter_in_two_formats as formats
from tutorsim.analysis.recount.tables import Dial, dial_table
from tutorsim.analysis.statistics.intervals_and_tests import Estimate, NotEstimable, to_json
from tutorsim.analysis.systems.panel.page_data_and_published_figures import Evidence
from tutorsim.analysis.systems.panel.winning_roles_ties_ballots_shift_flip_chance import (
    askings_table,
    beside_floor_table,
)
from tutorsim.ballot_reading_and_decisions import RichBallot
from tutorsim.kernel.flow_drivers_and_call_log import drive, scripted
from tutorsim.kernel.system_and_loaded_study import Chance
from tutorsim.standin.messages_api_routes_and_replies import think
from tutorsim.systems.panel.episode_flow_and_study import episode
from tutorsim.vocabularies import DEFAULT_ROLES, PROTOCOLS

S, MI, *_ = DEFAULT_ROLES


@pytest.fixture
def two_formats():
    """Everybody names S and ranks MI first; asked again, one of four names MI."""
    named = dict.fromkeys(DEFAULT_ROLES, S)
    ranked = dict.fromkeys(DEFAULT_ROLES, (MI, S, *DEFAULT_ROLES[2:]))
    source = panel_source(panel_episode(panel_turn("simple", named, others={"ranked": ranked})))
    again = {**named, S: MI}
    return with_retest(source, ("sciq.t1.novice.simple", 1, "vote_final", [again]))


def test_pairs_of_formats_stand_beside_two_askings_of_one(two_formats):
    evidence = Evidence(two_formats)
    found = {"": evidence.invariance}
    assert formats.invariance_table(found).data.rows() == [
        ("simple", "ranked", 4, 0, "0.00", "0.00", ""),
        ("ranked", "simple", 4, 0, "0.00", "0.00", ""),
    ]
    assert formats.askings_by_format_table(found).data.rows() == [("simple", 4, 0, "0.75", "0.75")]
    tested = formats.invariance_words(evidence.invariance)
    caption = dial_table(Dial(evidence.recount.rules, tested)).caption
    assert "consistent in 0 of 4 pairs" in caption
    assert "two askings of one format were the same ballot in 3 of 4" in caption


def test_without_two_formats_the_sets_are_said_to_be_untested():
    turn = panel_turn("simple", dict.fromkeys(DEFAULT_ROLES, S))
    found = Evidence(panel_source(panel_episode(turn))).invariance
    assert formats.invariance_table({"": found, "a run": found}) is None
    assert formats.askings_by_format_table({"": found}) is None
    assert "the assumption is untested." in formats.invariance_words(found)


def test_of_several_places_each_row_says_where(two_formats):
    found = Evidence(two_formats).invariance
    table = formats.invariance_table({"first run": found, "second run": found})
    assert table.data["of"].to_list() == ["first run"] * 2 + ["second run"] * 2


def test_the_floor_has_columns_for_logged_and_for_re_asked_figures(two_formats):
    table = beside_floor_table(Evidence(two_formats))
    assert table.data.columns[-3:] == ["logged", "re-asked", "left"]
    # First and final vote alike: no flip. S 4 against S 3, MI 1: the order has no part in it.
    assert table.data.row(0) == ("simple", "flip", 1, *["0.00"] * 3)
    assert "the floor is that of the final vote" in table.caption
    assert "1 × by stand-in: asked again." in table.caption
    assert askings_table(Evidence(two_formats)).data.height == 1


def test_without_a_retest_the_floor_is_unknown_in_captions_and_in_place_of_the_chart(two_formats):
    source = replace(two_formats, retest=None)
    of = Evidence(source)
    assert beside_floor_table(of) is None
    assert askings_table(of) is None
    assert "the noise floor, is unknown" in of.diagnostics_notes
    figure = figure_of(source, "noise")
    assert figure.chart is None
    assert figure.finding == (
        "No noise floor to set the votes beside: each vote was asked for once."
    )


S, MI, MO, ME = "scaffolding", "misconception", "motivation", "metacognitive"
ROLES = (S, MI, MO, ME)


BY_ORDER = RichBallot(points={S: 10, MI: 8, MO: 5, ME: 2}, order=ROLES, approved=(S,))
BOTH = BY_ORDER.model_copy(update={"approved": (S, MI)})
OTHER_POINTS = BY_ORDER.model_copy(update={"points": {S: 11, MI: 7, MO: 5, ME: 2}})


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
        "ranked", votes(ROLES, (MI, S, MO, ME), (MO, S, MI, ME), None),
        others={"simple": votes(S, S, None, S), "approval": votes((S,), (MI, S), (), (S,)),
                "rich": votes(BY_ORDER, BOTH, None, BY_ORDER)},
    )  # fmt: skip


def found_in(source):
    found = formats.format_invariance(source)
    assert isinstance(found, formats.FormatInvariance)
    return found


def counts(found):
    """Hits and n of a share."""
    return (round(found.value * found.n), found.n) if isinstance(found, Estimate) else None


def test_pairs_are_consistent_as_the_table_reads(ranked_turn):
    found = found_in(panel_source(panel_episode(ranked_turn)))
    assert {
        (p["given"], p["other"]): (p["abstained"], counts(p["consistent"])) for p in found.pairs
    } == {
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
    assert {pair["pairs"] for pair in found.pairs} == {4}
    # From the ranked vote to simple and approval, and rich beside it: 1 of 2, 2 of 3, 1 of 2.
    assert counts(found.from_vote) == (4, 7)


def test_rich_ballots_tell_whether_voters_choose_the_same(ranked_turn):
    found = {
        (p["given"], p["other"]): p
        for p in found_in(panel_source(panel_episode(ranked_turn))).pairs
    }
    ranked = found["rich", "ranked"]
    # First: S and S, S and MI. Borda points of S 9 from rich ballots; S 7, MI 6, MO 5 from ranked.
    assert (counts(ranked["same_top"]), counts(ranked["same_winner"])) == ((1, 2), (1, 1))
    # An approval of nobody puts nobody first; its rich counterpart is missing, so it is left out.
    assert counts(found["rich", "approval"]["same_top"]) == (3, 3)
    assert counts(found["ranked", "approval"]["same_top"]) == (2, 3)
    assert found["ranked", "approval"]["same_winner"] is None


def test_rich_points_are_to_be_the_cumulative_ones():
    points = votes(*[BY_ORDER.points] * 4)
    rich = votes(BY_ORDER, BY_ORDER, BOTH, OTHER_POINTS)
    turn = panel_turn("cumulative", points, others={"rich": rich})
    [pair] = found_in(panel_source(panel_episode(turn))).pairs
    assert (pair["given"], pair["other"]) == ("rich", "cumulative")
    assert counts(pair["consistent"]) == (3, 4)
    assert counts(pair["same_top"]) == (4, 4)


def test_two_askings_of_one_format_stand_beside(ranked_turn):
    points, even = {S: 10, MI: 8, MO: 5, ME: 2}, {S: 9, MI: 9, MO: 5, ME: 2}
    turned = {S: 8, MI: 10, MO: 5, ME: 2}
    second = panel_turn("cumulative", votes(*[points] * 4))
    source = with_retest(
        panel_source(panel_episode(ranked_turn), panel_episode(second, task="t2")),
        ("sciq.t1.novice.ranked", 1, "vote_final",
         [votes(ROLES, (MI, S, ME, MO), (MO, S, MI, ME), ROLES)]),
        ("sciq.t2.novice.cumulative", 1, "vote_final", [votes(points, even, turned, None)]),
    )  # fmt: skip
    found = found_in(source)
    # Ranked: same, other, same, abstained before. Points: same; equal where they differed, which
    # one ranking allows; turned round, which none does; abstained now.
    assert [
        (a["form"], a["pairs"], a["abstained"], counts(a["same"]), counts(a["consistent"]))
        for a in found.askings
    ] == [("ranked", 4, 1, (2, 3), (2, 3)), ("cumulative", 4, 1, (1, 3), (2, 3))]
    assert (counts(found.again), counts(found.again_consistent)) == ((3, 6), (4, 6))


def test_two_runs_are_matched_on_what_their_voters_saw():
    simple = panel_turn("simple", votes(S, S, MI, None))
    ranked = panel_turn("ranked", votes(ROLES, (MI, S, MO, ME), (MI, S, MO, ME), ROLES))
    other = panel_turn("ranked", votes(*[ROLES] * 4), texts={S: "Another reply."})
    first = panel_source(panel_episode(simple), panel_episode(simple, task="t2"))
    second = panel_source(panel_episode(ranked), panel_episode(other, task="t2"))
    found = formats.format_invariance_across(first, second)
    assert isinstance(found, formats.FormatInvariance)
    values = [(p["given"], p["other"], p["turns"], counts(p["consistent"])) for p in found.pairs]
    assert values == [("simple", "ranked", 1, (2, 3)), ("ranked", "simple", 1, (2, 3))]
    assert found.askings == []


def test_without_two_formats_the_assumption_is_untested(ranked_turn):
    source = panel_source(panel_episode(panel_turn("simple", votes(S, S, S, S))), panel_episode())
    for found in (
        formats.format_invariance(source),
        formats.format_invariance_across(source, source),
        formats.format_invariance(panel_source()),
        formats.format_invariance(panel_source(panel_episode(ranked_turn, status="failed"))),
    ):
        assert isinstance(found, NotEstimable)
        assert "untested" in found.reason


def test_ballots_that_count_under_another_rule_are_no_second_format():
    """A branch that counts rankings as votes keeps the same rankings as those of the log."""
    turn = panel_turn("ranked", votes(*[ROLES] * 4))
    turn = turn.model_copy(update={"ballots_as": {"ranked": turn.ballots_final}})
    assert isinstance(formats.format_invariance(panel_source(panel_episode(turn))), NotEstimable)


def test_voters_who_all_abstained_have_no_share():
    nobody = votes(None, None, None, None)
    turn = panel_turn("simple", nobody, others={"rich": nobody})
    [pair] = found_in(panel_source(panel_episode(turn))).pairs
    assert (pair["pairs"], pair["abstained"]) == (4, 4)
    shares = {pair[name] for name in ("consistent", "same_top", "same_winner")}
    assert shares == {NotEstimable("no observations")}


def test_invariance_becomes_json(ranked_turn):
    made = to_json(found_in(panel_source(panel_episode(ranked_turn))))
    assert made["from_vote"]["n"] == 7  # type: ignore[index]
    assert made["again"] == {"not_estimable": "no observations"}


# --- Agreement of two ballots is the table's, and held to listing every ballot -------------------


BUDGET = 4


@pytest.mark.parametrize(("logged", "target"), list(product(PROTOCOLS, repeat=2)))
@pytest.mark.parametrize("m", [2, 3])
def test_a_ballot_agrees_with_another_as_the_table_reads(logged, target, m):
    pairs = list(product(every_ballot(logged, m, BUDGET), every_ballot(target, m, BUDGET)))
    found = [formats.may_have_cast(a, logged, b, target) for a, b in pairs]
    assert found == [agrees(a, logged, b, target) for a, b in pairs]
    assert any(found)


@pytest.mark.parametrize(("one", "two"), list(product(PROTOCOLS, repeat=2)))
def test_ballots_share_a_ranking_where_some_ranking_agrees_with_both(one, two):
    rankings = every_ballot("ranked", 3, BUDGET)
    for a, b in product(every_ballot(one, 3, BUDGET), every_ballot(two, 3, BUDGET)):
        expected = any(
            agrees(a, one, r, "ranked") and agrees(b, two, r, "ranked") for r in rankings
        )
        assert formats.share_a_ranking(a, b) == expected, (a, b)


def test_three_candidates_by_hand():
    # Ranking 0 > 1 > 2 as masses 2, 1, 0.
    ranking = (2, 1, 0)
    assert formats.may_have_cast(ranking, "ranked", (1, 0, 0), "simple")
    assert not formats.may_have_cast(ranking, "ranked", (0, 1, 0), "simple")
    assert formats.may_have_cast(ranking, "ranked", (1, 1, 0), "approval")
    assert not formats.may_have_cast(ranking, "ranked", (0, 0, 0), "approval")
    # An empty approval says nothing: any candidate may come first.
    assert formats.may_have_cast((0, 0, 0), "approval", (0, 0, 1), "simple")
    # Equal points are approved of together; from the approval's side points may differ.
    assert not formats.may_have_cast((2, 2, 0), "cumulative", (1, 0, 0), "approval")
    assert formats.may_have_cast((1, 0, 0), "approval", (2, 2, 0), "cumulative")


# --- Voters whose preferences are known: invariant under every format, or with moods and slips ---


FORMATS = ["simple", "ranked", "cumulative", "approval", "rich"]


@pytest.fixture
def shares(make_scene):
    """`shares(condition, steady)`: the shares of consistent pairs in one played episode."""

    def play(condition, steady):
        scene = make_scene(conditions=[condition], vote_formats=FORMATS, success_threshold=1.0)
        steady_chance = Chance(3, "steady") if steady else None

        def reply(call):
            return think(call.request.body(), Chance(3, str(call.key)), steady=steady_chance).text

        found = formats.format_invariance(panel_source(drive(episode(scene), scripted(reply))))
        assert len(found.pairs) == 16
        return [pair["consistent"].value for pair in found.pairs], found.from_vote.value

    return play


@pytest.mark.parametrize("condition", ["cumulative", "rich"])
def test_voters_who_prefer_the_same_in_every_format_are_always_consistent(condition, shares):
    assert shares(condition, steady=True) == ([1.0] * 16, 1.0)


def test_moods_and_slips_are_found(shares):
    pairs, from_vote = shares("ranked", steady=False)
    assert min(pairs) < from_vote < 1.0
