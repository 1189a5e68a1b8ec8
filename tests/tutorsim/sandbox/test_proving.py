"""Sets of tasks are proven before anybody is judged by them."""

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tutorsim.sandbox import Sandbox, prove_tasks
from tutorsim.tasks import CodeTask, builtin, load_tasks

TASK = CodeTask(
    task_id="twice",
    prompt='def twice(n):\n    """Two times n."""\n',
    entry_point="twice",
    canonical_solution="    return 2 * n\n",
    test="def check(candidate):\n    assert candidate(4) == 8\n",
)


def _code_tasks(tasks: Any) -> list[CodeTask]:
    return [task for task in tasks if isinstance(task, CodeTask)]


def test_every_task_that_ships_is_sound(best: Any) -> None:
    tasks = _code_tasks(builtin("humaneval"))
    assert tasks
    assert prove_tasks(best.sandbox, tasks) == []


def test_tasks_that_cannot_be_judged_are_named_in_order(best: Any) -> None:
    wrong = replace(TASK, task_id="wrong", canonical_solution="    return n\n")
    idle = replace(TASK, task_id="idle", test="def check(candidate):\n    candidate(1)\n")
    calls = replace(
        TASK,
        task_id="takes a function",
        canonical_solution="    return n(4)\n",
        test="def check(candidate):\n    assert candidate(lambda n: 2 * n) == 8\n",
    )
    problems = prove_tasks(best.sandbox, [TASK, wrong, idle, calls, TASK])
    assert [p.task_id for p in problems] == ["wrong", "idle", "takes a function"]
    assert problems[0].problem == (
        "its reference solution does not pass: fail, wrong answer (call 1)"
    )
    assert problems[1].problem == "a function that returns nothing passes its tests"
    assert "exception TypeError" in problems[2].problem


def test_every_published_task_is_sound() -> None:
    folder = os.environ.get("TUTORSIM_PUBLISHED_DATA")
    if not folder:
        pytest.skip("TUTORSIM_PUBLISHED_DATA is not set")
    tasks = _code_tasks(load_tasks("humaneval", Path(folder) / "HumanEval.jsonl.gz"))
    assert len(tasks) == 164
    with Sandbox() as sandbox:
        assert prove_tasks(sandbox, tasks) == []
