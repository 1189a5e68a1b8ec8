import pytest

from tutorsim.analysis.statistics.intervals_and_tests import Estimate, NotEstimable
from tutorsim.analysis.systems.panel.student_outcomes import (
    episode_counts,
    gains,
    outcome_of,
    rounds,
    success_rates,
    successes,
)


def mean(value):
    assert isinstance(value, Estimate)
    return value.value


def test_gains_are_over_tutored_episodes_and_from_unrounded_means(panel_episode, panel_source):
    source = panel_source(
        panel_episode(task="a", scores=(0.125, 0.4, 0.75)),
        panel_episode(task="b", scores=(0.25, 0.5)),
        panel_episode(task="c", scores=(0.9,)),
        panel_episode(task="d", scores=(0.1, None)),
        panel_episode(task="e", scores=(0.1, 0.4), status="failed"),
    )
    [row] = gains(source)
    assert (row.benchmark, row.condition, row.measure, row.n, row.unscored) == (
        "sciq",
        "baseline",
        "score",
        2,
        1,
    )
    # Halves of 0.125 + 0.25, of 0.75 + 0.5, and of 0.625 + 0.25.
    assert (mean(row.initial), mean(row.final), mean(row.gain)) == (0.1875, 0.625, 0.4375)
    assert episode_counts(source) == {
        "episodes": 5,
        "complete": 4,
        "failed": 1,
        "tutor_fired": 3,
        "unscored": 1,
    }


def test_programs_have_verdicts_beside_scores_and_a_missing_verdict_is_no_failure(
    panel_episode, panel_source
):
    code = {"benchmark": "humaneval", "condition": "simple"}
    source = panel_source(
        panel_episode(task="a", scores=(0.1, 0.9), codes=(False, True), **code),
        panel_episode(task="b", scores=(0.1, 0.4), codes=(False, False), **code),
        panel_episode(task="c", scores=(0.1, 0.9), codes=(False, None), **code),
    )
    score, verdict = gains(source)
    assert (score.measure, score.n, verdict.measure, verdict.n, verdict.unscored) == (
        "score",
        3,
        "code",
        2,
        1,
    )
    assert (mean(verdict.initial), mean(verdict.final), mean(verdict.gain)) == (0, 0.5, 0.5)


def test_an_unscored_end_is_not_in_the_success_rate(panel_episode, panel_source):
    source = panel_source(
        panel_episode(task="a", scores=(0.9,)),
        panel_episode(task="b", scores=(0.4, 0.4)),
        panel_episode(task="c", scores=(0.4, None)),
        panel_episode(task="a", persona="help_avoidant", scores=(0.1, None)),
    )
    first, second = successes(source)
    assert (first.persona, first.successes, first.unscored, mean(first.rate)) == (
        "novice",
        1,
        1,
        0.5,
    )
    assert (second.persona, second.unscored, second.rate) == (
        "help_avoidant",
        1,
        NotEstimable("no observations"),
    )


def test_success_by_condition_is_over_all_personas_and_leaves_out_what_is_not_known(
    panel_episode, panel_source
):
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


def test_a_failed_program_settles_success_and_a_missing_verdict_does_not(panel_episode):
    def success(score, code):
        e = panel_episode(benchmark="humaneval", scores=(0.1, score), codes=(False, code))
        return outcome_of(e, "success")

    assert [success(0.9, True), success(0.9, False), success(None, False)] == [1, 0, 0]
    assert [success(0.9, None), success(None, True)] == [None, None]


def test_rounds_count_untutored_episodes_as_none(panel_episode, panel_source):
    source = panel_source(
        panel_episode(task="a", scores=(0.9,)),
        panel_episode(task="b", scores=(0.1, 0.4, 0.9)),
        panel_episode(task="c", scores=(0.1, 0.9)),
    )
    [row] = rounds(source)
    assert (row.episodes, row.fired, mean(row.mean), mean(row.mean_fired)) == (3, 2, 1.0, 1.5)


def test_nothing_to_report_is_reported_as_nothing(panel_source):
    empty = panel_source()
    assert gains(empty) == successes(empty) == success_rates(empty) == rounds(empty) == []
    assert episode_counts(empty)["episodes"] == 0


def test_all_missing_scores_are_not_estimable(panel_episode, panel_source):
    [row] = gains(
        panel_source(
            panel_episode(scores=(None, None)), panel_episode(task="b", scores=(None, None))
        )
    )
    nothing = NotEstimable("no observations")
    assert (row.n, row.unscored, row.initial, row.final, row.gain) == (
        0,
        2,
        nothing,
        nothing,
        nothing,
    )
