"""Task files: from their bytes to records with line numbers, and the two published forms.

Parquet is read with polars, here alone outside `analysis`.
"""

import json
import re
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache, partial
from importlib import resources
from keyword import iskeyword
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple, NoReturn

from tutorsim.errors import TaskFileError
from tutorsim.regular_files_and_digests import open_named, read_named
from tutorsim.tasks.task_types_ids_digests_and_scoring import (
    CODE_FIELDS,
    DISTRACTORS,
    CodeTask,
    ScienceTask,
    Task,
    TaskFormat,
    safe_id,
)
from tutorsim.vocabularies import Benchmark

# --- Task file records ---------------------------------------------------------------------------

_LONGEST_ID = 80
"""Characters of an id as a part of a file name."""


class Row(NamedTuple):
    """One record of a file, before its fields are checked."""

    file: str
    line: int
    place: int
    """Place from 1, counting records and not lines."""
    fields: dict[str, Any]


def read_text(path: Path) -> str:
    """The text of a file, decompressed where it is compressed.

    Raises `TaskFileError` if it cannot be read, or is no UTF-8 text.
    """
    try:
        data = read_named(path)
    except OSError as error:
        raise TaskFileError(
            f"{path} cannot be read.",
            why=error.strerror or str(error),
            hint="Check the path of the tasks; `builtin` stands for the original set.",
        ) from error
    return decode(data, str(path))


def decode(data: bytes, file: str) -> str:
    """The text in the bytes of a file, decompressed where they are compressed.

    Raises `TaskFileError` if they are damaged, or no UTF-8 text.
    """
    if data.startswith(b"\x1f\x8b") or file.endswith(".gz"):
        data = _decompressed(data, file)
    if data.startswith(b"\xef\xbb\xbf"):
        _refuse_line(file, 1, "it starts with a byte-order mark", "Save it as UTF-8 without one.")
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        _refuse_line(file, line, f"this is not UTF-8: {error.reason}", "Save the file as UTF-8.")


def _decompressed(data: bytes, file: str) -> bytes:
    import gzip  # most files are not compressed

    try:
        return gzip.decompress(data)
    except EOFError as error:
        read = zlib.decompressobj(wbits=31).decompress(data)
        line = read.count(b"\n") + 1
        raise _damaged(f"{file}, line {line}", "ends early", error) from error
    except (OSError, zlib.error) as error:
        raise _damaged(file, "is damaged, or is no gzip data", error) from error


def _damaged(place: str, how: str, error: Exception) -> TaskFileError:
    return TaskFileError(
        f"{place}: the compressed data {how}.",
        why=str(error),
        hint="Download or compress the file again.",
    )


def read_rows(text: str, file: str) -> Iterator[Row]:
    """The records of a JSON list or of JSON Lines, at least one.

    Raises `TaskFileError` at the first line that is no record, or when there is none.
    """
    values = _list_items(text, file) if text.lstrip()[:1] == "[" else _line_items(text, file)
    place = 0
    for place, (line, value) in enumerate(values, start=1):
        if not isinstance(value, dict):
            _refuse_line(file, line, f"this is {kind_of(value)}, not an object with fields")
        yield Row(file, line, place, value)
    if place == 0:
        raise TaskFileError(
            f"{file}: there is no task in it.",
            hint="Give a file with at least one task, or `builtin` for the original set.",
        )


def _line_items(text: str, file: str) -> Iterator[tuple[int, Any]]:
    """Values of JSON Lines with their line numbers; blank lines are skipped."""
    for number, line in enumerate(text.split("\n"), start=1):
        if line.strip():
            value, end = _value_at(line, len(line) - len(line.lstrip()), file, number)
            if line[end:].strip():
                _refuse_line(file, number, f"there is more after the object: {line[end:][:20]!r}")
            yield number, value


def _list_items(text: str, file: str) -> Iterator[tuple[int, Any]]:
    """Items of one JSON list with the line numbers on which they start."""
    at = _skip_space(text, text.index("[") + 1)
    if text[at : at + 1] != "]":
        while True:
            line = text.count("\n", 0, at) + 1
            value, at = _value_at(text, at, file, line)
            yield line, value
            at = _skip_space(text, at)
            if text[at : at + 1] != ",":
                break
            at = _skip_space(text, at + 1)
    if text[at : at + 1] != "]" or text[at + 1 :].strip():
        found = repr(text[at : at + 20]) if text[at:] else "the end of the file"
        line = text.count("\n", 0, at) + 1
        _refuse_line(file, line, f"the list should go on or end here, but there is {found}")


def _skip_space(text: str, at: int) -> int:
    while text[at : at + 1].isspace():
        at += 1
    return at


def _value_at(text: str, at: int, file: str, line: int) -> tuple[Any, int]:
    try:
        return json.JSONDecoder().raw_decode(text, at)
    except json.JSONDecodeError as error:
        line += text.count("\n", at, error.pos)
        _refuse_line(file, line, f"this is not JSON: {error.msg} (column {error.colno})")
    except (ValueError, RecursionError) as error:
        _refuse_line(file, line, f"this JSON cannot be read: {error}")


def kind_of(value: object) -> str:
    """What a JSON value is, for a message."""
    kinds = {dict: "an object", list: "a list", str: "text", bool: "a truth value"}
    return "null" if value is None else kinds.get(type(value), "a number")


def refuse(row: Row, field: str, reason: str) -> NoReturn:
    """Raise the error that names file, line and field."""
    raise TaskFileError(
        f"{row.file}, line {row.line}, field {field}: {reason}.",
        hint="Correct the record, or take it out.",
    )


def text_of(row: Row, field: str, *, may_be_empty: bool = False) -> str:
    """The text of a field; `TaskFileError` as `checked_text`, and if the field is missing."""
    if field not in row.fields:
        refuse(row, field, "it is missing")
    return checked_text(row, field, row.fields[field], may_be_empty=may_be_empty)


def checked_text(row: Row, field: str, value: object, *, may_be_empty: bool = False) -> str:
    """A value of a field, if it is text that can be written.

    Raises `TaskFileError` if it is no text, empty, or holds what is no character.
    """
    if not isinstance(value, str):
        refuse(row, field, f"it is {kind_of(value)}, not text")
    if not value.strip() and not may_be_empty:
        refuse(row, field, "it is empty")
    try:
        value.encode()
    except UnicodeEncodeError:
        refuse(row, field, "it holds half of a surrogate pair, which is no character")
    return value


def check_ids(rows: Sequence[Row], ids: Sequence[str], *, field: str = "task_id") -> None:
    """Ids must stay apart as file names, also where letter case does not count.

    Raises `TaskFileError` naming both places of an id that repeats, or an id that is too long.
    """
    first: dict[str, Row] = {}
    for row, task_id in zip(rows, ids, strict=True):
        name = safe_id(task_id).casefold()
        if len(name) > _LONGEST_ID:
            refuse(row, field, f"{task_id[:40]!r}… is too long for a part of a file name")
        before = first.setdefault(name, row)
        if before is not row:
            file = "" if before.file == row.file else f" of {before.file}"
            refuse(row, field, f"{task_id!r} is already the id on line {before.line}{file}")


def _refuse_line(file: str, line: int, reason: str, hint: str = "Correct the file.") -> NoReturn:
    raise TaskFileError(f"{file}, line {line}: {reason}.", hint=hint)


# --- Published task files ------------------------------------------------------------------------

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

    `source`: a file, or `"builtin"` for the original set. `limit`: at most this many, from the
    start of the file; `None` for all. `formats`: the benchmarks of a system; `None` stands for
    `sciq` and `humaneval`. Raises `TaskFileError` if the file cannot be used, or the limit leaves
    no task.
    """
    if limit is not None and limit < 1:
        raise TaskFileError(
            f"The limit of {limit} leaves no task of {benchmark}.",
            hint="Give a limit of at least 1, or none for all tasks.",
        )
    form = (FORMATS if formats is None else formats)[benchmark]
    if source != "builtin":
        return _read(form, source)[:limit]
    if form.builtin is None:
        raise TaskFileError(
            f"There is no built-in set of {benchmark}.",
            why="Its tasks may not be passed on, or cannot be written again.",
            hint=f"Give the published file: [benchmarks.{benchmark}] tasks = FILE.",
        )
    return tuple(form.builtin()[:limit])


def _read(form: TaskFormat, file: Path) -> tuple[Task, ...]:
    """The tasks of a file, each of its own name, whatever package reads them."""
    try:
        tasks = tuple(form.read(file))
    except OSError as error:
        raise TaskFileError(
            f"{file} cannot be read.",
            why=error.strerror or str(error),
            hint="Give the path of a file of tasks, seen from where the command is given.",
        ) from error
    names = Counter(safe_id(task.task_id).casefold() for task in tasks)
    for task in tasks:
        if names[safe_id(task.task_id).casefold()] > 1:
            raise TaskFileError(
                f"{file} has several tasks with the id {task.task_id!r}.",
                why="An id names the files of a task's episodes; letter case does not count.",
                hint="Give every task an id of its own.",
            )
    return tasks


def read_sciq(path: Path) -> tuple[ScienceTask, ...]:
    """Read a SciQ file; `TaskFileError` naming file, line and field."""
    return _science(read_text(path), str(path))


def read_humaneval(path: Path) -> tuple[CodeTask, ...]:
    """Read a HumanEval file; `TaskFileError` naming file, line and field."""
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


# --- Parquet task files --------------------------------------------------------------------------


def read_parquet(path: Path) -> list[Row]:
    """The records of a Parquet file; a record's line is its place, from 1.

    Raises `TaskFileError` if the file cannot be read or holds no record.
    """
    import polars as pl  # here, since it is slow to import and most studies need it not

    try:
        open_named(path).close()
        rows = pl.read_parquet(path.absolute(), glob=False).to_dicts()
    except (OSError, pl.exceptions.PolarsError) as error:
        raise TaskFileError(
            f"{path} cannot be read as Parquet.",
            why=str(error),
            hint="Download the file again, or give the tasks as JSON Lines.",
        ) from error
    if not rows:
        raise TaskFileError(
            f"{path}: there is no task in it.", hint="Give a file with at least one task."
        )
    return [Row(str(path), place, place, fields) for place, fields in enumerate(rows, start=1)]
