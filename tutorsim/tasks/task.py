"""What a task is, how it is written down, and how its name becomes part of a file name."""

import hashlib
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tutorsim.errors import FolderError, TaskFileError
from tutorsim.types import Benchmark

__all__ = [
    "CODE_FIELDS",
    "DISTRACTORS",
    "CodeTask",
    "ScienceTask",
    "Task",
    "dump_tasks",
    "safe_id",
    "tasks_digest",
]

CODE_FIELDS = ("task_id", "prompt", "entry_point", "canonical_solution", "test")
DISTRACTORS = ("distractor1", "distractor2", "distractor3")


@dataclass(frozen=True)
class ScienceTask:
    """One open-response science question."""

    task_id: str
    question: str
    correct_answer: str
    distractors: tuple[str, ...]
    """Three wrong answers of the multiple-choice form."""
    support: str
    """A passage that explains the answer; may be empty."""

    @property
    def benchmark(self) -> Benchmark:
        return "sciq"


@dataclass(frozen=True)
class CodeTask:
    """One small programming problem with unit tests."""

    task_id: str
    prompt: str
    """Program head: imports, helpers, signature, docstring."""
    entry_point: str
    """Name of the function to write."""
    canonical_solution: str
    """Body that completes the prompt."""
    test: str
    """Source that defines `check(candidate)`."""

    @property
    def benchmark(self) -> Benchmark:
        return "humaneval"


Task = ScienceTask | CodeTask


def dump_tasks(benchmark: Benchmark, tasks: Sequence[Task], path: Path) -> None:
    """Write tasks in their published format as JSON Lines in UTF-8.

    Reading the file gives equal tasks; the same tasks give the same bytes. Each SciQ question
    keeps its name in an added field `task_id`.

    Raises:
        TaskFileError: If a task is not of the benchmark.
        FolderError: If the file cannot be written.
    """
    strangers = [task.task_id for task in tasks if task.benchmark != benchmark]
    if strangers:
        raise TaskFileError(f"Task {strangers[0]!r} is no task of {benchmark}.")
    lines = [json.dumps(_published(task), ensure_ascii=False) + "\n" for task in tasks]
    try:
        path.write_bytes("".join(lines).encode())
    except OSError as error:
        raise FolderError(
            f"{path} cannot be written.",
            why=str(error),
            hint="Choose a folder that can be written and has space left.",
        ) from error


def tasks_digest(tasks: Sequence[Task]) -> str:
    """SHA-256 over all that the tasks say, in order, as hexadecimal digits."""
    value = [[task.benchmark, _published(task)] for task in tasks]
    canonical = json.dumps(value, sort_keys=True, ensure_ascii=True, separators=(",", ":"))
    return hashlib.sha256(canonical.encode()).hexdigest()


def safe_id(task_id: str) -> str:
    """The id in `[A-Za-z0-9_-]`, for file names and episode ids.

    Every other character, and `_` itself, is written as `_` and two hexadecimal digits for
    each of its UTF-8 bytes, so that different ids stay different: `HumanEval/0` becomes
    `HumanEval_2F0`.
    """
    return re.sub(r"[^A-Za-z0-9-]", _escape, task_id)


def _escape(found: re.Match[str]) -> str:
    return "".join(f"_{byte:02X}" for byte in found[0].encode())


def _published(task: Task) -> dict[str, str]:
    """The fields of a task under their published names."""
    if isinstance(task, CodeTask):
        return {name: getattr(task, name) for name in CODE_FIELDS}
    return {
        "task_id": task.task_id,
        "question": task.question,
        "correct_answer": task.correct_answer,
        **dict(zip(DISTRACTORS, task.distractors, strict=True)),
        "support": task.support,
    }
