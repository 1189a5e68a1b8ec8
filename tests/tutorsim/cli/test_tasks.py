"""Lists of tasks, and one task with all that its file says."""

import json


def test_every_task_that_comes_with_the_package_is_listed_and_shown(shell):
    listed = json.loads(shell("tasks", "--json").out)
    assert {one["benchmark"] for one in listed} >= {"sciq", "mmlu", "mrbench", "lesson", "scenario"}
    assert all(len(task["text"].split()) > 2 or "def " in task["text"] for task in listed)
    for benchmark, task in {task["benchmark"]: task for task in listed}.items():
        shown = shell("tasks", "show", task["task_id"], "--benchmark", benchmark)
        assert shown.code == 0, shown.err
        assert " ".join(task["text"].split()) in " ".join(shown.out.split())
        assert "{" not in shown.out
        as_json = json.loads(shell("tasks", "show", task["task_id"], "--json").out)
        assert as_json["task_id"] == task["task_id"]


def test_messages_and_checklists_are_shown_in_lines(shell):
    assert "name: learner\ntext: 1/3 and 1/6." in shell("tasks", "show", "football").out
    assert "  id: 1.1\n  text: Say what is given" in shell("tasks", "show", "run").out
    assert "Student\n6 plus 12" in shell("tasks", "show", "cookies-1-Lantern").out


def test_an_unknown_task_is_told_the_nearest(shell):
    refused = shell("tasks", "show", "fotball")
    assert refused.code == 2
    assert "Did you mean 'football'?" in refused.err
