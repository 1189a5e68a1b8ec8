"""Proof that a set of tasks can be judged, before any student is."""

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

from tutorsim.sandbox.sandbox import Sandbox
from tutorsim.tasks import CodeTask

__all__ = ["TaskProblem", "prove_tasks"]


class TaskProblem(NamedTuple):
    """Why verdicts on a task would mean nothing."""

    task_id: str
    problem: str


def prove_tasks(sandbox: Sandbox, tasks: Iterable[CodeTask]) -> list[TaskProblem]:
    """Run each task's reference solution, and a function that returns nothing.

    The first must pass; otherwise the tests ask for something that cannot be sent between the
    two processes, or the reference is wrong. The second must not; otherwise the tests ask
    for nothing.

    Returns:
        The tasks that fail either way, in the order given; empty when all are sound.

    Raises:
        SandboxError: If the sandbox itself failed.
    """
    with ThreadPoolExecutor(sandbox.workers) as pool:
        found = pool.map(lambda task: _problem(sandbox, task), tasks)
        return [problem for problem in found if problem is not None]


def _problem(sandbox: Sandbox, task: CodeTask) -> TaskProblem | None:
    reference = _verdict(sandbox, task, task.prompt + task.canonical_solution)
    if reference != "pass":
        return TaskProblem(task.task_id, f"its reference solution does not pass: {reference}")
    empty = _verdict(sandbox, task, f"def {task.entry_point}(*args, **kwargs):\n    return None\n")
    if empty == "pass":
        return TaskProblem(task.task_id, "a function that returns nothing passes its tests")
    return None


def _verdict(sandbox: Sandbox, task: CodeTask, program: str) -> str:
    result, _ = sandbox.judge_program(
        program, prompt=task.prompt, entry_point=task.entry_point, test=task.test
    )
    verdict = result.verdict
    return verdict.outcome if verdict.outcome == "pass" else f"{verdict.outcome}, {verdict.reason}"
