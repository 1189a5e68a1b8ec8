"""Readers for the two published task files.

* `sciq`: SciQ as published, a JSON list or JSON Lines of `question`, `correct_answer`,
  `distractor1` to `distractor3` and `support`, which may be empty. SciQ gives its questions no
  names: a question is named by its place in the file (`sciq-0001`), unless it has a field
  `task_id`, as the files that this module writes do.
* `humaneval`: HumanEval as published, JSON Lines of `task_id`, `prompt`, `entry_point`,
  `canonical_solution` and `test`.

Either may be compressed with gzip. Further fields are ignored. An original set in the same two
formats comes with the package.
"""

import re
from collections.abc import Mapping
from dataclasses import replace
from functools import cache, partial
from importlib import resources
from keyword import iskeyword
from pathlib import Path
from typing import Final, Literal

from tutorsim.errors import TaskFileError
from tutorsim.tasks.task import (
    CODE_FIELDS,
    DISTRACTORS,
    CodeTask,
    ScienceTask,
    Task,
    TaskFormat,
)
from tutorsim.tasks.task_file_records import (
    Row,
    check_ids,
    decode,
    read_rows,
    read_text,
    refuse,
    text_of,
)
from tutorsim.vocabularies import Benchmark

__all__ = ["FORMATS", "builtin", "load_tasks", "read_humaneval", "read_sciq"]

_BUILTIN_FILES: Mapping[Benchmark, str] = {"sciq": "science.jsonl", "humaneval": "programs.jsonl"}
"""Characters of an escaped id; it becomes a part of file names, which end at 255 bytes."""


def builtin(benchmark: Benchmark) -> tuple[ScienceTask | CodeTask, ...]:
    """The original tasks that come with the package."""
    return _builtin(benchmark)


def load_tasks(
    benchmark: str,
    source: Path | Literal["builtin"],
    limit: int | None = None,
    *,
    formats: Mapping[str, TaskFormat] | None = None,
) -> tuple[Task, ...]:
    """Read the tasks of a study.

    Args:
        benchmark: Which of the formats.
        source: A file, or `"builtin"` for the original set.
        limit: At most this many, from the start of the file; `None` for all.
        formats: The benchmarks of a system; `None` stands for `sciq` and `humaneval`.

    Raises:
        TaskFileError: If the file cannot be used, or the limit leaves no task.
    """
    if limit is not None and limit < 1:
        raise TaskFileError(
            f"The limit of {limit} leaves no task of {benchmark}.",
            hint="Give a limit of at least 1, or none for all tasks.",
        )
    form = (FORMATS if formats is None else formats)[benchmark]
    if source != "builtin":
        return tuple(form.read(source)[:limit])
    if form.builtin is None:
        raise TaskFileError(
            f"There is no built-in set of {benchmark}.",
            why="Its tasks may not be passed on, or cannot be written again.",
            hint=f"Give the published file: [benchmarks.{benchmark}] tasks = FILE.",
        )
    return tuple(form.builtin()[:limit])


def read_sciq(path: Path) -> tuple[ScienceTask, ...]:
    """Read a SciQ file.

    Raises:
        TaskFileError: Naming file, line and field.
    """
    return _science(read_text(path), str(path))


def read_humaneval(path: Path) -> tuple[CodeTask, ...]:
    """Read a HumanEval file.

    Raises:
        TaskFileError: Naming file, line and field.
    """
    return _programs(read_text(path), str(path))


@cache
def _builtin(benchmark: Benchmark) -> tuple[ScienceTask | CodeTask, ...]:
    name = _BUILTIN_FILES[benchmark]
    data = resources.files("tutorsim").joinpath("catalog", "tasks", name).read_bytes()
    text = decode(data, name)
    return _science(text, name) if benchmark == "sciq" else _programs(text, name)


def _science(text: str, file: str) -> tuple[ScienceTask, ...]:
    rows = list(read_rows(text, file))
    tasks = [_science_task(row) for row in rows]
    check_ids(rows, [task.task_id for task in tasks])
    return tuple(tasks)


def _science_task(row: Row) -> ScienceTask:
    named = "task_id" in row.fields
    return ScienceTask(
        task_id=text_of(row, "task_id") if named else f"sciq-{row.place:04d}",
        question=text_of(row, "question"),
        correct_answer=text_of(row, "correct_answer"),
        distractors=tuple(text_of(row, name) for name in DISTRACTORS),
        support=text_of(row, "support", may_be_empty=True),
    )


def _programs(text: str, file: str) -> tuple[CodeTask, ...]:
    rows = list(read_rows(text, file))
    tasks = [_code_task(row) for row in rows]
    check_ids(rows, [task.task_id for task in tasks])
    return tuple(tasks)


def _code_task(row: Row) -> CodeTask:
    task = CodeTask(**{name: text_of(row, name) for name in CODE_FIELDS})
    if not task.entry_point.isidentifier() or iskeyword(task.entry_point):
        refuse(row, "entry_point", f"{task.entry_point!r} is no name of a function")
    if not re.search(r"\bdef\s+check\s*\(", task.test):
        refuse(row, "test", "it does not define `check(candidate)`")
    return task


def _renamed(task: ScienceTask, benchmark: str) -> ScienceTask:
    return replace(task, benchmark=benchmark)


FORMATS: Final[Mapping[str, TaskFormat]] = {
    "sciq": TaskFormat(read_sciq, partial(builtin, "sciq"), renamed=_renamed),
    "humaneval": TaskFormat(read_humaneval, partial(builtin, "humaneval")),
}
"""Benchmarks of the panel."""
