"""What a task is, how it is written down, and how its name becomes part of a file name."""

import hashlib
import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from tutorsim.errors import FolderError, TaskFileError
from tutorsim.vocabularies import Benchmark

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
    benchmark: str = "sciq"
    """The name under which its file stands in the study."""

    def published(self) -> dict[str, Any]:
        """The fields under their published names, and the question's name."""
        return {
            "task_id": self.task_id,
            "question": self.question,
            "correct_answer": self.correct_answer,
            **dict(zip(DISTRACTORS, self.distractors, strict=True)),
            "support": self.support,
        }


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

    def published(self) -> dict[str, Any]:
        """The fields under their published names."""
        return {name: getattr(self, name) for name in CODE_FIELDS}


class Task(Protocol):
    """What every task has, whatever its benchmark."""

    @property
    def task_id(self) -> str:
        """Its name in its file."""

    @property
    def benchmark(self) -> str:
        """The benchmark that it is of."""

    def published(self) -> dict[str, Any]:
        """Its fields under their published names: the record that its file has."""


class TaskFormat(NamedTuple):
    """How the tasks of one benchmark are read, and what comes with the package."""

    read: Callable[[Path], Sequence[Task]]
    """Reads a file in the published form; raises `TaskFileError` with file, place and field."""
    builtin: Callable[[], Sequence[Task]] | None = None
    """The original set of the package; `None` for none."""
    file: str = "tasks.{}.jsonl"
    """Name of the file in a recording; `{}` stands for the benchmark."""
    write: Callable[[Sequence[Task]], str] | None = None
    """The text of that file; `None` for JSON Lines of the published records."""
    renamed: Callable[[Any, str], Task] | None = None
    """Puts a task under another benchmark's name; `None` where its own name is relied on."""
    asked: str = "question"
    """The published field that lists of tasks show; where there is none, the first but the name."""


def dump_tasks(
    benchmark: str, tasks: Sequence[Task], path: Path, *, form: TaskFormat | None = None
) -> None:
    """Write tasks in their published format, in UTF-8.

    Reading the file gives equal tasks; the same tasks give the same bytes. Each SciQ question
    keeps its name in an added field `task_id`.

    Args:
        benchmark: What the tasks are of.
        tasks: The tasks.
        path: The file.
        form: The benchmark's format, where its file is not JSON Lines.

    Raises:
        TaskFileError: If a task is not of the benchmark.
        FolderError: If the file cannot be written.
    """
    strangers = [task.task_id for task in tasks if task.benchmark != benchmark]
    if strangers:
        raise TaskFileError(f"Task {strangers[0]!r} is no task of {benchmark}.")
    written = (form and form.write) or _json_lines
    try:
        path.write_bytes(written(tasks).encode())
    except OSError as error:
        raise FolderError(
            f"{path} cannot be written.",
            why=str(error),
            hint="Choose a folder that can be written and has space left.",
        ) from error


def _json_lines(tasks: Sequence[Task]) -> str:
    return "".join(json.dumps(task.published(), ensure_ascii=False) + "\n" for task in tasks)


def tasks_digest(tasks: Sequence[Task]) -> str:
    """SHA-256 over all that the tasks say, in order, as hexadecimal digits."""
    value = [[task.benchmark, task.published()] for task in tasks]
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
