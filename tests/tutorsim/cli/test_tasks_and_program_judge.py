"""Lists of tasks, and one task with all that its file says."""

import io
import json
import sys

import pytest


def test_every_task_that_comes_with_the_package_is_listed_and_shown(shell):
    listed = shell("tasks", "--json").json()
    assert {one["benchmark"] for one in listed} >= {"sciq", "mmlu", "mrbench", "lesson", "scenario"}
    assert all(len(task["text"].split()) > 2 or "def " in task["text"] for task in listed)
    for benchmark, task in {task["benchmark"]: task for task in listed}.items():
        shown = shell("tasks", "show", task["task_id"], "--benchmark", benchmark)
        assert shown.code == 0, shown.err
        assert " ".join(task["text"].split()) in " ".join(shown.out.split())
        assert "{" not in shown.out
        as_json = shell("tasks", "show", task["task_id"], "--json").json()
        assert as_json["task_id"] == task["task_id"]


def test_messages_and_checklists_are_shown_in_lines(shell):
    assert "name: learner\ntext: 1/3 and 1/6." in shell("tasks", "show", "football").out
    assert "  id: 1.1\n  text: Say what is given" in shell("tasks", "show", "run").out
    assert "Student\n6 plus 12" in shell("tasks", "show", "cookies-1-Lantern").out


def test_an_unknown_task_is_told_the_nearest(shell):
    shell("tasks", "show", "fotball").fails(2, "Did you mean 'football'?")


# --- `tutorsim judge` -----------------------------------------------------------------------------

RIGHT = """def running_max(numbers):
    return [max(numbers[: i + 1]) for i in range(len(numbers))]
"""
WRONG = "def running_max(numbers):\n    return numbers\n"


@pytest.fixture
def judged(shell, tmp_path):
    def run(text, *options, name="answer.md"):
        file = tmp_path / name
        file.write_text(text, encoding="utf-8")
        return shell("judge", file, "--task", "running-max", *options)

    return run


def test_a_message_with_the_right_program_passes(judged):
    outcome = judged(f"I think:\n```python\n{RIGHT}```\nOk?")
    assert outcome.code == 0
    assert outcome.out.startswith("running-max: pass, all tests passed\nSandbox level: ")


@pytest.mark.parametrize("name", ["answer.py", "answer.txt"])
def test_a_plain_program_is_taken_as_it_is(judged, name):
    outcome = judged(WRONG, name=name)
    assert outcome.code == 1
    assert outcome.out.startswith("running-max: fail, wrong answer (call 1)\n")


def test_a_file_of_python_may_hold_fences(judged):
    assert judged(f'"""\n```\nx\n```\n"""\n{RIGHT}', name="answer.py").code == 0


def test_json_gives_code_verdict_and_usage(judged):
    outcome = judged(f"```\n{RIGHT}```", "--json", "--sandbox", "unsafe")
    shown = json.loads(outcome.out)
    assert (shown["task_id"], shown["level"], shown["code"]) == ("running-max", "unsafe", RIGHT)
    passed = {"outcome": "pass", "reason": "all tests passed", "near_limit": False, "unsafe": True}
    assert shown["verdict"] == passed
    assert shown["usage"]["calls"] > 0


def test_the_message_may_come_from_stdin(shell, monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"no idea \xff ```")))
    outcome = shell("judge", "-", "--task", "running-max")
    assert (outcome.code, "syntax error" in outcome.out) == (1, True)


def test_what_the_program_wrote_and_what_ended_it_are_shown_without_effect(judged):
    failing = "def running_max(numbers):\n    raise OSError('\\x1b[2Jgone')\n"
    outcome = judged("print('\\x1b[2Jhello')\n" + failing, name="answer.py")
    assert "\\x1b[2Jhello" in outcome.out
    assert "Exception: \\x1b[2Jgone\n" in outcome.out
    assert "\x1b" not in outcome.out


def test_an_unknown_task_is_refused(shell, tmp_path):
    file = tmp_path / "a.py"
    file.write_text(RIGHT)
    shell("judge", file, "--task", "nothing-of-the-kind").fails(2, "nothing-of-the-kind")


def test_a_missing_file_is_refused(shell, tmp_path):
    outcome = shell("judge", tmp_path / "gone.py", "--task", "running-max")
    assert outcome.code == 2


def test_a_machine_without_a_sandbox_is_refused_with_its_own_exit_code(judged, monkeypatch):
    monkeypatch.setattr(sys, "platform", "darwin")
    judged(RIGHT, name="answer.py").fails(6, "cannot be judged")


def test_a_mark_before_the_fence_does_not_make_the_message_a_program(judged):
    assert judged(f"\ufeff```python\n\ufeff{RIGHT}```\n").code == 0


@pytest.mark.costly
def test_output_that_is_not_shown_is_counted(judged):
    judged(f"print('é' * 3000)\n{RIGHT}", name="answer.py").tells("and 2,001 more bytes")
    assert "more bytes" not in judged(f"print('x')\n{RIGHT}", name="answer.py").out


def test_nothing_to_judge_is_a_usage_error(shell, judged, monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"")))
    shell("judge", "-", "--task", "running-max").fails(2, "nothing to judge in standard input")
    assert judged("").code == 2
