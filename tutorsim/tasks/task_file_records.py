"""From a task file's bytes to records with line numbers."""

import gzip
import json
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

from tutorsim.errors import TaskFileError
from tutorsim.named_files import read_named
from tutorsim.tasks.task import safe_id

__all__ = [
    "Row",
    "check_ids",
    "checked_text",
    "decode",
    "kind_of",
    "read_rows",
    "read_text",
    "refuse",
    "text_of",
]

_LONGEST_ID = 80
"""Characters of an id as a part of a file name."""


class Row(NamedTuple):
    """One record of a file, before its fields are checked."""

    file: str
    line: int
    place: int
    """From 1, counting records and not lines."""
    fields: dict[str, Any]


def read_text(path: Path) -> str:
    """The text of a file, decompressed where it is compressed.

    Raises:
        TaskFileError: If it cannot be read, or is no UTF-8 text.
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

    Raises:
        TaskFileError: If they are damaged, or no UTF-8 text.
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

    Raises:
        TaskFileError: At the first line that is no record, or when there is none.
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
    """The text of a field.

    Raises:
        TaskFileError: As `checked_text`, and if the field is missing.
    """
    if field not in row.fields:
        refuse(row, field, "it is missing")
    return checked_text(row, field, row.fields[field], may_be_empty=may_be_empty)


def checked_text(row: Row, field: str, value: object, *, may_be_empty: bool = False) -> str:
    """A value of a field, if it is text that can be written.

    Raises:
        TaskFileError: If it is no text, empty, or holds what is no character.
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

    Raises:
        TaskFileError: Naming both places of an id that repeats, or an id that is too long.
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
