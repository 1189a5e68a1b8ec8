from dataclasses import replace

import pytest

from tests.analysis.made import report_of
from tests.analysis.panel_runs import panel_episode, panel_source
from tutorsim.analysis.pages.cells_and_tables import DASH
from tutorsim.analysis.recount.success_under_other_score_thresholds import (
    Thresholds,
    at_threshold,
    threshold_table,
)
from tutorsim.analysis.statistics.intervals_and_tests import Estimate, NotEstimable
from tutorsim.analysis.systems.panel.page_data_and_published_figures import Evidence
from tutorsim.analysis.systems.panel.student_outcomes import (
    SCORES_SCHEMA,
    few_tasks_words,
    gains,
    outcome_of,
    persona_tables,
    rounds,
    scores_by_turn,
    success_rates,
    success_table,
    successes,
)
from tutorsim.kernel.cost_plan import PriceTable
from tutorsim.records import CallRecord
from tutorsim.vocabularies import DEFAULT_ROLES


def mean(value):
    assert isinstance(value, Estimate)
    return value.value


def test_gains_are_over_tutored_episodes_and_from_unrounded_means():
    source = panel_source(
        panel_episode(task="a", scores=(0.125, 0.4, 0.75)),
        panel_episode(task="b", scores=(0.25, 0.5)),
        panel_episode(task="c", scores=(0.9,)),
        panel_episode(task="d", scores=(0.1, None)),
        panel_episode(task="e", scores=(0.1, 0.4), status="failed"),
    )
    [row] = gains(source)
    assert (row.benchmark, row.condition, row.measure, row.n, row.unscored) == (
        "sciq", "baseline", "score", 2, 1,
    )  # fmt: skip
    # Halves of 0.125 + 0.25, of 0.75 + 0.5, and of 0.625 + 0.25.
    assert (mean(row.initial), mean(row.final), mean(row.gain)) == (0.1875, 0.625, 0.4375)
    grid = Evidence(source).grid
    assert (grid["episodes"], grid["complete"], grid["failed"]) == (5, 4, 1)
    assert [(one.episodes, one.fired) for one in rounds(source)] == [(4, 3)]
    assert [one.unscored for one in success_rates(source)] == [1]


def test_programs_have_verdicts_beside_scores_and_a_missing_verdict_is_no_failure():
    code = {"benchmark": "humaneval", "condition": "simple"}
    source = panel_source(
        panel_episode(task="a", scores=(0.1, 0.9), codes=(False, True), **code),
        panel_episode(task="b", scores=(0.1, 0.4), codes=(False, False), **code),
        panel_episode(task="c", scores=(0.1, 0.9), codes=(False, None), **code),
    )
    score, verdict = gains(source)
    assert (score.measure, score.n, verdict.measure, verdict.n, verdict.unscored) == (
        "score", 3, "code", 2, 1,
    )  # fmt: skip
    assert (mean(verdict.initial), mean(verdict.final), mean(verdict.gain)) == (0, 0.5, 0.5)


def test_an_unscored_end_is_not_in_the_success_rate():
    source = panel_source(
        panel_episode(task="a", scores=(0.9,)),
        panel_episode(task="b", scores=(0.4, 0.4)),
        panel_episode(task="c", scores=(0.4, None)),
        panel_episode(task="a", persona="help_avoidant", scores=(0.1, None)),
    )
    first, second = successes(source)
    values = (first.persona, first.successes, first.unscored, mean(first.rate))
    assert values == ("novice", 1, 1, 0.5)
    values = (second.persona, second.unscored, second.rate)
    assert values == ("help_avoidant", 1, NotEstimable("no observations"))


def test_success_by_condition_is_over_all_personas_and_leaves_out_what_is_not_known():
    source = panel_source(
        panel_episode(task="a", scores=(0.9,)),
        panel_episode(task="b", scores=(0.4, 0.4)),
        panel_episode(task="b", persona="help_avoidant", scores=(0.9,)),
        panel_episode(task="c", scores=(0.4, None)),
        panel_episode(task="d", scores=(0.9,), status="failed"),
    )
    [row] = success_rates(source)
    assert (row.condition, row.episodes, row.unscored) == ("baseline", 4, 1)
    assert mean(row.rate) == pytest.approx(2 / 3)


def test_a_failed_program_settles_success_and_a_missing_verdict_does_not():
    def success(score, code):
        e = panel_episode(benchmark="humaneval", scores=(0.1, score), codes=(False, code))
        return outcome_of(e, "success")

    assert [success(0.9, True), success(0.9, False), success(None, False)] == [1, 0, 0]
    assert [success(0.9, None), success(None, True)] == [None, None]


def test_rounds_count_untutored_episodes_as_none():
    source = panel_source(
        panel_episode(task="a", scores=(0.9,)),
        panel_episode(task="b", scores=(0.1, 0.4, 0.9)),
        panel_episode(task="c", scores=(0.1, 0.9)),
    )
    [row] = rounds(source)
    assert (row.episodes, row.fired, mean(row.mean), mean(row.mean_fired)) == (3, 2, 1.0, 1.5)


def test_nothing_to_report_is_reported_as_nothing():
    empty = panel_source()
    assert gains(empty) == successes(empty) == success_rates(empty) == rounds(empty) == []
    assert Evidence(empty).grid["episodes"] == 0


def test_all_missing_scores_are_not_estimable():
    [row] = gains(
        panel_source(
            panel_episode(scores=(None, None)), panel_episode(task="b", scores=(None, None))
        )
    )
    nothing = NotEstimable("no observations")
    assert (row.n, row.unscored, row.initial, row.final, row.gain) == (
        0, 2, nothing, nothing, nothing,
    )  # fmt: skip


# --- Scores by turn -------------------------------------------------------------------------------


def rows_of(*episodes):
    frame = scores_by_turn(panel_source(*episodes))
    return {r["turn"]: r for r in frame.iter_rows(named=True)}


def test_an_episode_that_ended_keeps_its_last_score():
    """Turn 0: (0.2 + 0.8) / 2; turn 1 and 2: (0.4 + 0.8) / 2, (0.6 + 0.8) / 2."""
    long = panel_episode(task="t1", scores=(0.2, 0.4, 0.6))
    short = panel_episode(task="t2", scores=(0.8,))
    found = rows_of(long, short)
    assert [found[t]["mean"] for t in (0, 1, 2)] == pytest.approx([0.5, 0.6, 0.7])
    assert [found[t]["running"] for t in (0, 1, 2)] == [2, 1, 1]
    assert {found[t]["n"] for t in found} == {2}
    assert max(found) == 2


def test_an_unscored_attempt_is_left_out_and_is_no_zero():
    found = rows_of(
        panel_episode(task="t1", scores=(None, 0.4)), panel_episode(task="t2", scores=(0.8, None))
    )
    assert (found[0]["mean"], found[0]["n"]) == (0.8, 1)
    assert (found[1]["mean"], found[1]["n"]) == (0.4, 1)
    assert [found[turn]["running"] for turn in (0, 1)] == [1, 1]


def test_one_task_has_a_mean_and_no_interval():
    found = rows_of(panel_episode(scores=(0.1, 0.4)))
    assert found[0]["mean"] == 0.1
    assert found[0]["lower"] is None
    assert found[0]["upper"] is None


def test_failed_episodes_are_left_out_and_nothing_is_an_empty_table():
    failed = panel_source(panel_episode(scores=(0.1,), status="failed"))
    assert scores_by_turn(failed).schema == SCORES_SCHEMA
    assert scores_by_turn(failed).is_empty()


def test_all_unscored_has_no_mean():
    found = rows_of(panel_episode(scores=(None, None)))
    assert found[0]["mean"] is None
    assert found[0]["n"] == 0


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
    assert threshold_table(Thresholds(found, 0.75)).data.rows() == [
        ("science questions", "simple", 1, "1.00", "1.00", "0.00 to 1.00")
    ]
    turns = threshold_table(Thresholds(found, 0.75, "turns")).data
    assert turns["at 0.3, recounted"].to_list() == ["1.00"]
    assert turns["at 0.75, logged"].to_list() == ["2.00"]
    assert threshold_table(Thresholds({}, None)) is None


def test_few_tasks_are_said_to_be_few(two_votes):
    words = few_tasks_words(Evidence(two_votes))
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
