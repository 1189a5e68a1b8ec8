from dataclasses import replace
from types import SimpleNamespace

import polars as pl
import pytest

from tests.analysis.panel_runs import panel_episode, panel_source, panel_turn, votes
from tutorsim.analysis.ballots.reading_options_and_column_words import Hints
from tutorsim.analysis.ballots.recount_source import open_source
from tutorsim.analysis.statistics.intervals_and_tests import Bounds, NotEstimable
from tutorsim.analysis.systems.panel.first_divergent_turns_and_success_bounds import (
    alternatives_of,
    alternatives_table,
    coverage_table,
    diverge,
    divergence_under,
    first_turns_table,
    under_order,
    with_random_ties,
    without_tie_round,
)
from tutorsim.analysis.systems.panel.page_sections_cost_and_divergence import divergence_document
from tutorsim.analysis.systems.panel.student_outcomes import successes
from tutorsim.analysis.systems.system_view_opened_run_and_cost import Asked, Leaving
from tutorsim.errors import UsageError
from tutorsim.vocabularies import DEFAULT_ROLES

S, MI, MO, ME = "scaffolding", "misconception", "motivation", "metacognitive"
ROLES = (S, MI, MO, ME)


@pytest.fixture
def source():
    """Simple voting.

    a: turn 1 S by vote; turn 2 {S, MI} after a tied tie round, S by fallback. Fails, 0.5.
    b: turn 1 {S, MI}, MI by tie round. Succeeds, 0.9.
    c: solved at once. d: turn 1 ME by vote, fails, 0.25. A single tutor and a failed episode.
    """
    clear, even = votes(S, S, S, S), votes(S, S, MI, MI)
    return panel_source(
        panel_episode(panel_turn("simple", clear), panel_turn("simple", even, tie=even, turn=2),
                      task="a", scores=(0.1, 0.2, 0.5)),
        panel_episode(panel_turn("simple", even, tie=votes(S, MI, MI, MI)), task="b",
                      scores=(0.1, 0.9)),
        panel_episode(task="c", condition="simple", scores=(0.9,)),
        panel_episode(panel_turn("simple", votes(ME, ME, ME, S)), task="d", scores=(0.1, 0.25)),
        panel_episode(task="e"),
        panel_episode(panel_turn("simple", even), task="f", status="failed"),
    )  # fmt: skip


def paths(found):
    frame = found.episodes.select("path", "first_possible", "first_certain", "alternatives")
    return [tuple(row) for row in frame.rows()]


def test_another_order_diverges_where_the_order_decided(source):
    found = diverge(source, under_order(source, (MI, S)), question="MI first")
    assert paths(found) == [
        ("divergent", 2, 2, [MI]),
        ("covered", None, None, None),
        ("covered", None, None, None),
        ("covered", None, None, None),
    ]
    assert found.episodes["turns"].to_list() == [2, 1, 0, 1]
    [cell] = found.coverage
    assert (cell.benchmark, cell.condition, cell.episodes, cell.covered, cell.divergent) == (
        "sciq", "simple", 4, 3, 1,
    )  # fmt: skip
    assert cell.coverage == Bounds(0.75, 0.75, 4)
    # Covered: b and c succeed, d does not. All four: 2 to 3 of 4; logged 2 of 4.
    assert cell.on_covered["success"] == pytest.approx(2 / 3)
    assert cell.bounds["success"] == Bounds(0.5, 0.75, 4)
    assert cell.logged["success"] == 0.5
    # Scores 0.9 + 0.9 + 0.25 = 2.05 are known, the fourth is 0 to 1.
    assert cell.bounds["final_score"] == Bounds(pytest.approx(2.05 / 4), pytest.approx(3.05 / 4), 4)
    assert cell.bounds["final_code"] == NotEstimable("no episode with a logged outcome")
    assert "held fixed" in found.caption
    assert "stand-in" in found.caption


def test_without_tie_rounds_the_order_picks_from_the_final_tie(source):
    found = diverge(source, without_tie_round(source), question="no tie round")
    assert [row[:3] for row in paths(found)] == [
        ("covered", None, None),
        ("divergent", 1, 1),
        ("covered", None, None),
        ("covered", None, None),
    ]


def test_a_tie_that_the_tie_round_narrowed_was_the_whole_tie_before_it():
    # Final S, MI, MO, ME 1 each; tie round MO 2, ME 2. Straight to the order: S. Logged: MO.
    turn = panel_turn("simple", votes(*ROLES), tie=votes(MO, MO, ME, ME))
    source = panel_source(panel_episode(turn))
    assert without_tie_round(source)["winners"].to_list() == [[S]]
    assert with_random_ties(source)["winners"].to_list() == [[MO, ME]]
    assert under_order(source, (S, ME))["winners"].to_list() == [[ME]]


def test_a_random_pick_may_diverge_and_counts_as_not_covered(source):
    found = diverge(source, with_random_ties(source), question="random ties")
    assert paths(found)[0] == ("possible", 2, None, [MI])
    [cell] = found.coverage
    assert cell.coverage == Bounds(0.75, 1.0, 4)
    assert cell.bounds["success"] == Bounds(0.5, 0.75, 4)


def test_a_turn_that_is_not_settled_may_diverge_and_a_later_one_diverge_for_certain(source):
    turns = pl.DataFrame(
        {"episode_id": ["sciq.a.novice.simple"] * 2 + ["sciq.b.novice.simple"], "turn": [1, 2, 1],
         "possible_winners": [[S], [MO, ME], [MI]], "settled": [False, True, True]},
    )  # fmt: skip
    found = diverge(source, alternatives_of(turns), question="ranked")
    assert paths(found) == [
        ("divergent", 1, 2, None),
        ("covered", None, None, None),
        ("covered", None, None, None),
        ("possible", 1, None, None),
    ]
    assert found.to_json()["coverage"][0]["divergent"] == 1  # type: ignore[index]


def test_the_logged_rule_itself_covers_everything(source):
    found = diverge(source, under_order(source, ROLES), question="as logged")
    assert set(found.episodes["path"]) == {"covered"}
    [cell] = found.coverage
    assert cell.bounds["success"] == Bounds(0.5, 0.5, 4)


def test_ballots_from_elsewhere_have_coverage_and_no_outcomes(tmp_path):
    (tmp_path / "v.soc").write_text("1: 1,2,3\n1: 2,1,3\n")
    open_ = open_source(tmp_path / "v.soc")
    assert diverge(open_, under_order(open_, ("2",)), question="no winner yet").coverage == ()
    source = open_source(tmp_path / "v.soc", hints=Hints(fallback_order=("1",)))
    found = diverge(source, under_order(source, ("2",)), question="2 first")
    [cell] = found.coverage
    assert (cell.condition, cell.episodes, cell.divergent) == ("ranked", 1, 1)
    assert cell.bounds["success"] == NotEstimable("no episode with a logged outcome")


def test_no_episodes_have_no_coverage():
    source = panel_source()
    found = diverge(source, without_tie_round(source), question="nothing")
    assert (found.coverage, found.episodes.height) == ((), 0)


def test_an_outside_rule_is_asked_by_scores_and_refused_as_function(source, tmp_path, monkeypatch):
    (tmp_path / "their_rules.py").write_text(
        "from tutorsim import RankScores\n"
        "BORDA = RankScores(lambda m: range(m - 1, -1, -1))\n"
        "def first(ballots):\n    return {c: 0 for c in ballots.candidates}\n"
    )
    info = tmp_path / "their_rules-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: their-rules\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(
        "[tutorsim.rules]\nborda = their_rules:BORDA\nfirst = their_rules:first\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    theirs = divergence_under(source, Leaving(rule="borda"))
    assert paths(theirs) == paths(divergence_under(source, Leaving(rule="ranked")))
    assert theirs.caption.endswith("borda: 3, 2, 1, 0 by rank.")
    with pytest.raises(UsageError, match="'first' cannot be asked") as refused:
        divergence_under(source, Leaving(rule="first"))
    assert "--targets first --turns" in refused.value.hint
    with pytest.raises(UsageError, match="'frist' is not a rule"):
        divergence_under(source, Leaving(rule="frist"))


S, MI, MO, ME = DEFAULT_ROLES


@pytest.fixture
def found(two_votes):
    """MI first in the order: the second turn goes to MI, and nothing is known of what follows."""
    return diverge(two_votes, under_order(two_votes, (MI, S, MO, ME)), question="MI first")


def test_one_alternative_is_told_by_condition(found):
    [row] = coverage_table(found).data.rows()
    assert row[:6] == ("sciq", "simple", 1, 0, 0, 1)
    assert row[6:] == ("0.00", "0.00 to 1.00", "1.00", "not estimable")


def test_several_alternatives_are_told_a_row_each(two_votes, found):
    of = SimpleNamespace(source=two_votes, divergences=[found], successes=successes(two_votes))
    told = alternatives_table(of).data
    assert told.rows() == [("MI first", 1, 0, 0, 1, "0.00 to 1.00")]
    assert told.columns[-1] == "success: 1.00 as logged, bounds"
    of.source = replace(two_votes, run=None)
    assert alternatives_table(of).data.width == 5


@pytest.mark.parametrize(("turns", "more"), [(8, False), (9, True)])
def test_a_first_screen_lists_eight_first_turns_and_tells_of_more(source, found, turns, more):
    many = replace(found, episodes=pl.concat([found.episodes.head(1)] * turns))
    *_, shown = divergence_document(SimpleNamespace(source=source, asked=Asked()), many).brief
    assert shown.data.height == 8
    assert ("1 more: --full shows them" in shown.caption, "more:" in shown.caption) == (more, more)


def test_first_turns_are_listed_with_who_may_win_them(found):
    [row] = first_turns_table(found).data.rows()
    assert row[1:] == (2, "divergent", S, MI)
