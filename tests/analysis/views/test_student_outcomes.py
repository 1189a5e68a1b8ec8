"""What became of students, and how panels decided, as tables."""

from dataclasses import replace

from tests.analysis.made import report_of
from tests.analysis.panel_runs import panel_episode, panel_source
from tutorsim.analysis.pages.cells import DASH
from tutorsim.analysis.recount.other_student_score_thresholds import at_threshold, threshold_table
from tutorsim.analysis.systems.panel.evidence import Evidence
from tutorsim.analysis.systems.panel.student_outcomes import (
    few_tasks_words,
    persona_tables,
    success_table,
)
from tutorsim.kernel.cost_plan import PriceTable
from tutorsim.records import CallRecord
from tutorsim.vocabularies import DEFAULT_ROLES

S, MI, *_ = DEFAULT_ROLES


def test_success_has_a_bar_and_the_turns_that_it_took(two_votes):
    table = success_table(Evidence(two_votes))
    row = ("sciq", "simple", "█" * 10, "1.00", 1, 0, 1, "2.00")
    assert table.data.rows() == [row]


def test_success_of_unscored_episodes_is_not_estimable_and_says_why():
    source = panel_source(panel_episode(scores=(None,)))
    table = success_table(Evidence(source))
    assert table.data.row(0)[2:6] == ("", DASH, 1, 1)
    assert " Not estimable: no observations. Without an interval: too few tasks." in table.caption


def test_personas_have_a_table_for_each_benchmark(two_votes):
    [table] = persona_tables(Evidence(two_votes))
    assert table.data.rows() == [("novice", "1/1")]


def test_thresholds_bound_what_the_log_does_not_hold(two_votes):
    # 0.2, 0.4, 0.8: at 0.3 it ends after one turn; at 0.9 it might have gone on to succeed.
    found = {t: at_threshold(two_votes, t) for t in (0.3, 0.75, 0.9)}
    assert threshold_table(found, 0.75).data.rows() == [
        ("science questions", "simple", 1, "1.00", "1.00", "0.00 to 1.00")
    ]
    turns = threshold_table(found, 0.75, "turns").data
    assert turns["at 0.3, recounted"].to_list() == ["1.00"]
    assert turns["at 0.75, logged"].to_list() == ["2.00"]
    assert threshold_table({}, None) is None


def test_few_tasks_are_said_to_be_few(two_votes):
    words = few_tasks_words(two_votes.episodes)
    assert words == "Intervals are over tasks (1 science question)."


def parts_of(source, section, prices=None):
    made = report_of(source, brief=True, prices=prices)
    return next(one for one in made.sections if one.id == section).tables


def test_decisions_are_counted_by_the_step_that_made_them(two_votes):
    tables = {part.name: part.data for part in parts_of(two_votes, "decisions")}
    assert list(tables) == ["diagnostics", "chance", "winners"]
    assert tables["winners"].row(0) == (S, 2, "2 (1+0+1)")
    assert tables["winners"].row(1) == (MI, 0, "0")
    assert tables["diagnostics"]["fallback"].to_list() == ["0.50"]
    # Four voters: two first votes, two final ones, one tie round.
    [ballots] = parts_of(two_votes, "ballots")
    assert ballots.data.row(0) == ("simple", 20, 20, 0, 0)


def test_cost_sums_models_and_leaves_an_unknown_price_unknown(two_votes):
    first, *others = two_votes.episodes
    calls = tuple(CallRecord(key=f"1/judge/judge/{m}", stage="judge", model=m, stop_reason=None,
                             input_tokens=2, output_tokens=3) for m in "nm")  # fmt: skip
    source = replace(two_votes, episodes=(first.model_copy(update={"calls": calls}), *others))
    [table] = parts_of(source, "cost", PriceTable(as_of="2026-01-01", models={}))
    assert table.data["model"].to_list() == ["m", "n", "all"]
    assert set(table.data["US$"]) == {"unknown"}
