"""Sets of tasks are proven before anybody is judged by them."""

import os
from dataclasses import replace
from pathlib import Path

import pytest

from tutorsim.errors import TaskFileError
from tutorsim.sandbox import Limits, Sandbox, prove_tasks, require_provable
from tutorsim.tasks import CodeTask, builtin, load_tasks

BESIDE = Path(__file__).parents[4] / "shared" / "data"
TASK = CodeTask(
    task_id="twice",
    prompt='def twice(n):\n    """Two times n."""\n',
    entry_point="twice",
    canonical_solution="    return 2 * n\n",
    test="def check(candidate):\n    assert candidate(4) == 8\n",
)


def _code_tasks(tasks):
    return [task for task in tasks if isinstance(task, CodeTask)]


@pytest.mark.costly
def test_every_task_that_ships_is_sound(best):
    tasks = _code_tasks(builtin("humaneval"))
    assert tasks
    assert prove_tasks(best.sandbox, tasks) == []


@pytest.mark.costly
def test_tasks_that_cannot_be_judged_are_named_in_order(best):
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


WRONG = replace(TASK, task_id="wrong", canonical_solution="    return n\n")
IDLE = replace(TASK, task_id="idle", test="def check(candidate):\n    candidate(1)\n")


@pytest.fixture
def cache(monkeypatch, tmp_path):
    """A cache folder of the test's own."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "tutorsim" / "proven-tasks.txt"


def test_tasks_that_cannot_be_judged_are_refused_by_name(best, cache):
    with pytest.raises(TaskFileError) as error:
        require_provable(best.sandbox, [TASK, WRONG, IDLE])
    assert error.value.exit_code == 2
    assert error.value.what == "2 programming task(s) cannot be judged."
    assert "wrong: its reference solution does not pass: fail" in error.value.why
    assert "idle: a function that returns nothing passes its tests" in error.value.why
    assert "tutorsim judge" in error.value.hint


def test_many_tasks_that_cannot_be_judged_are_counted(best, cache):
    with pytest.raises(TaskFileError, match=r"And 2 more\.") as error:
        require_provable(best.sandbox, [replace(WRONG, task_id=f"w{n}") for n in range(7)])
    assert "7 programming" in error.value.what


class Counting(Sandbox):
    """Counts what is judged."""

    judged = 0

    def judge_program(self, *arguments, **terms):
        self.judged += 1
        return super().judge_program(*arguments, **terms)


@pytest.mark.costly
def test_a_proof_is_kept_by_content(cache):
    """Not by name; and what was not proven is tried again."""
    with Counting(workers=1) as sandbox:
        for task, judged in (
            (TASK, 2), (TASK, 2), (replace(TASK, task_id="other"), 2),
            (replace(TASK, prompt=TASK.prompt + "    # more\n"), 4),
        ):  # fmt: skip
            require_provable(sandbox, [task])
            assert sandbox.judged == judged
        for _ in range(2):
            with pytest.raises(TaskFileError):
                require_provable(sandbox, [TASK, IDLE])
        assert sandbox.judged == 8
    with Counting(workers=1, limits=Limits(cpu=1)) as sandbox:
        require_provable(sandbox, [TASK])
        assert sandbox.judged == 2
    assert len(cache.read_text().split()) == 3


def test_without_a_cache_folder_tasks_are_proven_each_time(cache):
    cache.parent.write_text("no folder")
    with Counting(workers=1) as sandbox:
        for _ in range(2):
            require_provable(sandbox, [TASK])
        assert sandbox.judged == 4


def test_a_study_without_programs_needs_no_sandbox(cache):
    with Sandbox() as sandbox:
        require_provable(sandbox, builtin("sciq"))
        assert sandbox._started is None


@pytest.mark.costly
def test_every_published_task_is_sound():
    folder = Path(os.environ.get("TUTORSIM_PUBLISHED_DATA", BESIDE))
    if not (folder / "HumanEval.jsonl.gz").exists():
        pytest.skip("HumanEval.jsonl.gz is not there; see TUTORSIM_PUBLISHED_DATA")
    tasks = _code_tasks(load_tasks("humaneval", folder / "HumanEval.jsonl.gz"))
    assert len(tasks) == 164
    with Sandbox() as sandbox:
        assert prove_tasks(sandbox, tasks) == []
