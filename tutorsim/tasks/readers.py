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
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from importlib import resources
from keyword import iskeyword
from pathlib import Path
from typing import Literal

from tutorsim.errors import TaskFileError
from tutorsim.tasks.rows import Row, decode, kind_of, read_rows, read_text, refuse
from tutorsim.tasks.task import CODE_FIELDS, DISTRACTORS, CodeTask, ScienceTask, Task, safe_id
from tutorsim.types import Benchmark

__all__ = ["builtin", "load_tasks", "read_humaneval", "read_sciq"]

_BUILTIN_FILES: Mapping[Benchmark, str] = {"sciq": "science.jsonl", "humaneval": "programs.jsonl"}
_LONGEST_ID = 80
"""Characters of an escaped id; it becomes a part of file names, which end at 255 bytes."""


def builtin(benchmark: Benchmark) -> tuple[Task, ...]:
    """The original tasks that come with the package."""
    return _builtin(benchmark)


def load_tasks(
    benchmark: Benchmark, source: Path | Literal["builtin"], limit: int | None = None
) -> tuple[Task, ...]:
    """Read the tasks of a study.

    Args:
        benchmark: Which of the two formats.
        source: A file, or `"builtin"` for the original set.
        limit: At most this many, from the start of the file; `None` for all.

    Raises:
        TaskFileError: If the file cannot be used, or the limit leaves no task.
    """
    if limit is not None and limit < 1:
        raise TaskFileError(
            f"The limit of {limit} leaves no task of {benchmark}.",
            hint="Give a limit of at least 1, or none for all tasks.",
        )
    tasks = builtin(benchmark) if source == "builtin" else _READERS[benchmark](source)
    return tuple(tasks[:limit])


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
def _builtin(benchmark: Benchmark) -> tuple[Task, ...]:
    name = _BUILTIN_FILES[benchmark]
    data = resources.files("tutorsim").joinpath("catalog", "tasks", name).read_bytes()
    text = decode(data, name)
    return _science(text, name) if benchmark == "sciq" else _programs(text, name)


def _science(text: str, file: str) -> tuple[ScienceTask, ...]:
    rows = list(read_rows(text, file))
    tasks = [_science_task(row) for row in rows]
    _check_ids(rows, [task.task_id for task in tasks])
    return tuple(tasks)


def _science_task(row: Row) -> ScienceTask:
    named = "task_id" in row.fields
    return ScienceTask(
        task_id=_text_of(row, "task_id") if named else f"sciq-{row.place:04d}",
        question=_text_of(row, "question"),
        correct_answer=_text_of(row, "correct_answer"),
        distractors=tuple(_text_of(row, name) for name in DISTRACTORS),
        support=_text_of(row, "support", may_be_empty=True),
    )


def _programs(text: str, file: str) -> tuple[CodeTask, ...]:
    rows = list(read_rows(text, file))
    tasks = [_code_task(row) for row in rows]
    _check_ids(rows, [task.task_id for task in tasks])
    return tuple(tasks)


def _code_task(row: Row) -> CodeTask:
    task = CodeTask(**{name: _text_of(row, name) for name in CODE_FIELDS})
    if not task.entry_point.isidentifier() or iskeyword(task.entry_point):
        refuse(row, "entry_point", f"{task.entry_point!r} is no name of a function")
    if not re.search(r"\bdef\s+check\s*\(", task.test):
        refuse(row, "test", "it does not define `check(candidate)`")
    return task


def _text_of(row: Row, field: str, *, may_be_empty: bool = False) -> str:
    if field not in row.fields:
        refuse(row, field, "it is missing")
    value = row.fields[field]
    if not isinstance(value, str):
        refuse(row, field, f"it is {kind_of(value)}, not text")
    if not value.strip() and not may_be_empty:
        refuse(row, field, "it is empty")
    try:
        value.encode()
    except UnicodeEncodeError:
        refuse(row, field, "it holds half of a surrogate pair, which is no character")
    return value


def _check_ids(rows: Sequence[Row], ids: Sequence[str]) -> None:
    """Ids must stay apart as file names, also where letter case does not count."""
    first: dict[str, int] = {}
    for row, task_id in zip(rows, ids, strict=True):
        name = safe_id(task_id)
        if len(name) > _LONGEST_ID:
            refuse(row, "task_id", f"{task_id[:40]!r}… is too long for a part of a file name")
        if name.casefold() in first:
            line = first[name.casefold()]
            refuse(row, "task_id", f"{task_id!r} is already the id on line {line}")
        first[name.casefold()] = row.line


_READERS: Mapping[Benchmark, Callable[[Path], tuple[Task, ...]]] = {
    "sciq": read_sciq,
    "humaneval": read_humaneval,
}
