"""Token estimates from the real prompts."""

import pytest

from tutorsim.kernel.cost_plan import estimate_tokens, total_tokens

MODELS = {"tutor": "t", "judge": "j", "student": "s"}


@pytest.fixture
def tokens(make_study):
    def estimate(*, longest=True, **settings):
        found = estimate_tokens(make_study(models=MODELS, **settings), longest=longest)
        return total_tokens(found.values())

    return estimate


def test_one_episode_stands_for_all_of_its_benchmark_and_condition(tokens):
    one = tokens()
    six = tokens(personas=["help_avoidant", "hint_seeking_dependent"], repeats=3)
    assert six == {model: (6 * asked, 6 * answered) for model, (asked, answered) in one.items()}


def test_conditions_and_benchmarks_add_up(tokens):
    both = {"sciq": {"tasks": "science.jsonl", "limit": 1}}
    code = {"humaneval": {"tasks": "programs.jsonl", "limit": 1}}
    parts = [
        tokens(benchmarks=part, conditions=[condition])
        for part in (both, code)
        for condition in ("baseline", "approval")
    ]
    whole = tokens(benchmarks={**both, **code}, conditions=["baseline", "approval"])
    assert whole == {
        model: tuple(sum(part[model][side] for part in parts) for side in (0, 1))
        for model in ("j", "s", "t")
    }


def test_no_tutor_is_asked_when_every_first_attempt_succeeds(tokens):
    assert set(tokens(longest=False)) == {"j", "s"}


def test_the_longest_path_is_taken_whatever_the_threshold(tokens):
    assert tokens(success_threshold=0) == tokens(success_threshold=1)


def test_an_estimate_counts_first_askings_only(tokens, make_scene, script):
    """With no turn the student's prompt is known: it is counted once, though no score is read."""
    played = script()
    record = played.play(make_scene(models=MODELS, max_turns=0))
    student, judge = record.calls
    estimate = tokens(max_turns=0)
    assert estimate["s"][0] == student.input_tokens
    assert judge.input_tokens < estimate["j"][0] < judge.input_tokens + 200


def test_longer_wordings_cost_more(tokens):
    longer = tokens(vote_criterion="Which reply is best? " * 50)
    assert longer["t"][0] > tokens()["t"][0]
    assert longer["s"] == tokens()["s"]
