"""Proof that a set of tasks can be judged, before any student is."""

import hashlib
import json
import os
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

from tutorsim.errors import TaskFileError
from tutorsim.sandbox.sandbox import Sandbox
from tutorsim.tasks import CodeTask, Task

_PROVEN_FILE: Final = "proven-tasks.txt"
_NAMED: Final = 5
"""Problems that an error names; it counts the others."""


class TaskProblem(NamedTuple):
    """Why verdicts on a task would mean nothing."""

    task_id: str
    problem: str


def require_provable(sandbox: Sandbox, tasks: Iterable[Task]) -> None:
    """Refuse tasks that cannot be judged; a task that was proven once is not proven again.

    What was proven is kept by content in the user's cache folder, as digests of a task, the rules,
    the interpreter and the limits. `TaskFileError` names the tasks.
    """
    programming = [task for task in tasks if isinstance(task, CodeTask)]
    if not programming:
        return
    file = _cache_folder() / _PROVEN_FILE
    proven = _read(file)
    digests = {task: _digest(sandbox, task) for task in programming}
    unproven = [task for task in programming if digests[task] not in proven]
    problems = prove_tasks(sandbox, unproven) if unproven else []
    unsound = {problem.task_id for problem in problems}
    _append(file, [digests[task] for task in unproven if task.task_id not in unsound])
    if problems:
        raise _refused(problems)


def prove_tasks(sandbox: Sandbox, tasks: Iterable[CodeTask]) -> list[TaskProblem]:
    """Run each task's reference solution, and a function that returns nothing.

    The first must pass; otherwise the tests ask for something that cannot be sent between the two
    processes, or the reference is wrong. The second must not; otherwise the tests ask for nothing.
    The tasks that fail either way come back in the order given.
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


def _refused(problems: list[TaskProblem]) -> TaskFileError:
    named = [f"{one.task_id}: {one.problem}." for one in problems[:_NAMED]]
    more = len(problems) - len(named)
    return TaskFileError(
        f"{len(problems)} programming task(s) cannot be judged.",
        why="\n".join([*named, *([f"And {more} more."] if more else [])]),
        hint="Correct these tasks or take them out of the file; `tutorsim judge FILE --task ID "
        "--tasks PATH` shows what the tests make of a program.",
    )


def _cache_folder() -> Path:
    """The user's folder for what can be found out again, as the XDG specification has it."""
    chosen = os.environ.get("XDG_CACHE_HOME", "")
    base = Path(chosen) if chosen.startswith("/") else Path(os.path.expanduser("~")) / ".cache"  # noqa: PTH111
    return base / "tutorsim"


def _digest(sandbox: Sandbox, task: CodeTask) -> str:
    """SHA-256 over all that a proof depends on."""
    proven = [task.prompt, task.entry_point, task.canonical_solution, task.test]
    text = json.dumps([proven, sandbox.fingerprint], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


def _read(file: Path) -> set[str]:
    try:
        return set(file.read_text(encoding="ascii", errors="replace").split())
    except OSError:
        return set()


def _append(file: Path, digests: list[str]) -> None:
    """Remember proofs; where that is not possible they are made again next time."""
    if not digests:
        return
    with suppress(OSError):
        file.parent.mkdir(parents=True, exist_ok=True)
        with file.open("a", encoding="ascii") as lines:
            lines.write("".join(f"{digest}\n" for digest in digests))
