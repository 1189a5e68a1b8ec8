"""What the sets rest on stands beside them: pairs of formats, or that nothing tests it."""

from dataclasses import replace

import pytest

from tests.analysis.made import figure_of
from tests.analysis.panel_runs import panel_episode, panel_source, panel_turn, with_retest
from tutorsim.analysis.recount.same_voter_in_two_formats import (
    askings_by_format_table,
    invariance_table,
    invariance_words,
)
from tutorsim.analysis.recount.tables import dial_table
from tutorsim.analysis.systems.panel.page_evidence import (
    Evidence,
    askings_table,
    beside_floor_table,
    noise_told,
)
from tutorsim.vocabularies import DEFAULT_ROLES

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
    assert invariance_table(found).data.rows() == [
        ("simple", "ranked", 4, 0, "0.00", "0.00", ""),
        ("ranked", "simple", 4, 0, "0.00", "0.00", ""),
    ]
    assert askings_by_format_table(found).data.rows() == [("simple", 4, 0, "0.75", "0.75")]
    tested = invariance_words(evidence.invariance)
    pairs = [("simple", "ranked")]
    caption = dial_table(evidence.recount.rules, "set", pairs, tested).caption
    assert "consistent in 0 of 4 pairs" in caption
    assert "two askings of one format were the same ballot in 3 of 4" in caption


def test_without_two_formats_the_sets_are_said_to_be_untested():
    turn = panel_turn("simple", dict.fromkeys(DEFAULT_ROLES, S))
    found = Evidence(panel_source(panel_episode(turn))).invariance
    assert invariance_table({"": found, "a run": found}) is None
    assert askings_by_format_table({"": found}) is None
    assert "the assumption is untested." in invariance_words(found)


def test_of_several_places_each_row_says_where(two_formats):
    found = Evidence(two_formats).invariance
    table = invariance_table({"first run": found, "second run": found})
    assert table.data["of"].to_list() == ["first run"] * 2 + ["second run"] * 2


def test_the_floor_has_columns_for_logged_and_for_re_asked_figures(two_formats):
    table = beside_floor_table(Evidence(two_formats).noise)
    assert table.data.columns[-3:] == ["logged", "re-asked", "left"]
    # First and final vote alike: no flip. S 4 against S 3, MI 1: the order has no part in it.
    assert table.data.row(0) == ("simple", "flip", 1, *["0.00"] * 3)
    assert "the floor is that of the final vote" in table.caption
    assert "1 × by stand-in: asked again." in table.caption
    assert askings_table(Evidence(two_formats).noise).data.height == 1


def test_without_a_retest_the_floor_is_unknown_in_captions_and_in_place_of_the_chart(two_formats):
    source = replace(two_formats, retest=None)
    found = Evidence(source).noise
    assert beside_floor_table(found) is None
    assert askings_table(found) is None
    assert "the noise floor, is unknown" in noise_told(found)
    figure = figure_of(source, "noise")
    assert figure.chart is None
    assert figure.finding == (
        "No noise floor to set the votes beside: each vote was asked for once."
    )
