"""One episode: attempts, scores, verdicts, and how it ends."""

import pytest

from tutorsim.errors import CallFailed
from tutorsim.kernel.flow import CodeResult, CodeRun, drive, scripted
from tutorsim.records import VerdictRecord
from tutorsim.systems.panel.episode import episode
from tutorsim.vocabularies import DEFAULT_ROLES

CODE = {"benchmarks": {"humaneval": {"tasks": "programs.jsonl", "limit": 1}}}


def scores(*texts):
    return {f"{turn}/judge": f"SCORE: {text}\nWhy." for turn, text in enumerate(texts)}


def test_an_episode_that_succeeds_at_once_has_no_turn(make_scene, script):
    played = script(scores("0.75"))
    record = played.play(make_scene())
    assert played.keys == ["0/student/student/1", "0/judge/judge/1"]
    assert (record.success, record.turns_taken, record.turns) == (True, 0, ())
    assert record.initial_correctness == record.final_correctness == 0.75
    scene = make_scene()
    assert (record.question, record.reference) == (scene.question, scene.reference)
    assert scene.question in played.prompt("0/student/student/1")
    assert record.attempts[0].model_dump() == {
        "turn": 0,
        "text": "Attempt 0.",
        "score": 0.75,
        "score_rationale": "Why.",
        "code": None,
        "code_passed": None,
        "verdict": None,
    }


def test_success_ends_the_episode(make_scene, script):
    record = script(scores("0.1", "0.74", "0.8")).play(make_scene())
    assert (record.success, record.turns_taken) == (True, 2)
    assert [attempt.score for attempt in record.attempts] == [0.1, 0.74, 0.8]
    assert [turn.turn for turn in record.turns] == [1, 2]


def test_three_turns_are_the_most_and_the_last_score_counts(make_scene, script):
    record = script(scores("0.4", "0.7", "0.7", "0.1")).play(make_scene())
    assert (record.success, record.turns_taken, record.status) == (False, 3, "complete")
    assert (record.initial_correctness, record.final_correctness) == (0.4, 0.1)


@pytest.mark.parametrize(
    ("threshold", "score", "success"),
    [
        (0.75, "0.75", True),
        (0.75, "0.7499", False),
        (0.7, "0.7", True),
        (1, "1", True),
        (0, "0", True),
    ],
)
def test_the_threshold_itself_is_a_success(make_scene, script, threshold, score, success):
    record = script({"judge": f"SCORE: {score}"}).play(make_scene(success_threshold=threshold))
    assert record.success is success
    assert (record.turns_taken == 0) is success


def test_no_turns_at_all_are_a_study_too(make_scene, script):
    record = script().play(make_scene(max_turns=0))
    assert (record.turns_taken, record.success, len(record.calls)) == (0, False, 2)


@pytest.mark.parametrize("threshold", [0.75, 0])
def test_unscored_is_not_zero_and_no_success(make_scene, script, threshold):
    played = script({"judge": "I would say well done."})
    record = played.play(make_scene(max_turns=1, success_threshold=threshold))
    assert [attempt.score for attempt in record.attempts] == [None, None]
    assert (record.initial_correctness, record.final_correctness) == (None, None)
    assert record.success is False
    assert played.keys[1:3] == ["0/judge/judge/1", "0/judge/judge/2"]
    assert record.attempts[0].score_rationale is None


def test_a_second_judgement_counts_when_the_first_has_no_score(make_scene, script):
    record = script({"judge/judge/1": "?", "judge/judge/2": "SCORE: 0.9\nOh."}).play(make_scene())
    assert (record.success, record.turns_taken) == (True, 0)


def test_an_empty_message_of_the_student_is_asked_for_again(make_scene, script):
    played = script({"student/student/1": " \n", "student/student/2": " Now. "})
    record = played.play(make_scene(max_turns=0))
    assert played.keys == ["0/student/student/1", "0/student/student/2", "0/judge/judge/1"]
    assert record.attempts[0].text == "Now."


def test_a_student_that_stays_silent_is_judged_on_nothing(make_scene, script):
    record = script({"student": ""}).play(make_scene(max_turns=0))
    assert (record.attempts[0].text, record.status) == ("", "complete")


def test_the_record_names_its_cell_of_the_grid(make_scene, script):
    record = script().play(make_scene(repeats=2, max_turns=0, **CODE))
    assert record.episode_id == "humaneval.Set_2Fdouble.help_avoidant.simple.r01"
    assert (record.benchmark, record.task_id, record.persona) == (
        "humaneval",
        "Set/double",
        "help_avoidant",
    )
    assert (record.condition, record.repeat) == ("simple", 1)


def test_every_call_is_logged_in_order(make_scene, script):
    played = script({"vote_final/motivation": "?"})
    record = played.play(make_scene())
    assert [call.key for call in record.calls] == played.keys
    assert [call.stage for call in record.calls] == [call.key.stage for call in played.calls]
    assert all(call.input_tokens > 0 and call.output_tokens > 0 for call in record.calls)


def verdicts(*outcomes):
    """A world's code runs, and what it was asked."""
    runs: list[CodeRun] = []

    def judge_code(run):
        runs.append(run)
        outcome = outcomes[len(runs) - 1]
        return CodeResult(
            None if outcome == "no_code" else "code", VerdictRecord(outcome=outcome, reason="r")
        )

    return runs, judge_code


def play_code(scene, script, *outcomes, score="0.9"):
    runs, judge_code = verdicts(*outcomes)
    replies = script({"judge": f"SCORE: {score}\nWhy."})
    return drive(episode(scene), scripted(replies, judge_code=judge_code)), runs


def test_a_program_needs_a_passing_verdict_as_well(make_scene, script):
    record, runs = play_code(make_scene(**CODE), script, "fail", "timeout", "pass")
    assert (record.success, record.turns_taken) == (True, 2)
    assert (record.initial_code_passed, record.code_passed) == (False, True)
    assert [run.turn for run in runs] == [0, 1, 2]
    assert runs[0].message == "Attempt 0."
    assert (runs[0].entry_point, runs[0].prompt.split("(")[0]) == ("double", "def double")
    assert "def check" in runs[0].test


def test_a_passing_program_needs_the_score_as_well(make_scene, script):
    record, _ = play_code(make_scene(max_turns=1, **CODE), script, "pass", "pass", score="0.7")
    assert (record.success, record.code_passed, record.turns_taken) == (False, True, 1)


def test_a_message_without_a_program_did_not_pass(make_scene, script):
    record, _ = play_code(make_scene(max_turns=0, **CODE), script, "no_code")
    assert (record.attempts[0].code, record.attempts[0].code_passed) == (None, False)
    assert record.attempts[0].verdict.outcome == "no_code"


def fails_at(key, replies):
    def reply(call):
        if str(call.key) == key:
            raise CallFailed("529 overloaded", why="Retries used up.", key=key)
        return replies(call)

    return reply


@pytest.mark.parametrize(
    ("key", "attempts", "turns", "taken"),
    [
        ("0/student/student/1", 0, 0, 0),
        ("0/judge/judge/1", 0, 0, 0),
        ("1/propose/motivation/1", 1, 0, 0),
        ("1/tie_vote/scaffolding/1", 1, 0, 0),
        ("1/student/student/1", 1, 1, 0),
        ("2/revise/metacognitive/1", 2, 1, 1),
    ],
)
def test_a_failed_call_leaves_what_was_reached(make_scene, script, key, attempts, turns, taken):
    replies = script(
        dict(zip((f"vote_final/{r}" for r in DEFAULT_ROLES), DEFAULT_ROLES, strict=True))
    )
    record = drive(episode(make_scene()), scripted(fails_at(key, replies)))
    assert (record.status, record.success) == ("failed", None)
    assert record.failure.model_dump() == {"key": key, "error": "529 overloaded Retries used up."}
    assert (len(record.attempts), len(record.turns), record.turns_taken) == (attempts, turns, taken)
    reached = 0.1 if attempts else None
    assert (record.initial_correctness, record.final_correctness) == (reached, reached)
    assert key not in [call.key for call in record.calls]


def test_other_errors_are_not_swallowed(make_scene):
    def broken(call):
        raise KeyError("bug")

    with pytest.raises(KeyError, match="bug"):
        drive(episode(make_scene()), scripted(broken))
