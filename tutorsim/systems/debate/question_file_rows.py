"""Rows of the six question sets, from their published files."""

import csv
import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tutorsim.errors import TaskFileError
from tutorsim.tasks.parquet_task_files import read_parquet
from tutorsim.tasks.task_file_records import Row, kind_of, read_rows, read_text

__all__ = ["json_rows", "rows_of"]


def rows_of(path: Path, benchmark: str) -> list[Row]:
    """The rows of a file or folder, one for each task.

    Raises:
        TaskFileError: If it is not in the benchmark's published form.
    """
    if path.is_dir():
        return _folder_rows(path, benchmark)
    if path.suffix == ".parquet":
        return read_parquet(path)
    text = read_text(path)
    if path.suffix == ".csv":
        return _csv_rows(text, str(path), benchmark)
    return json_rows(text, str(path), benchmark)


def _folder_rows(path: Path, benchmark: str) -> list[Row]:
    files = sorted(path.glob("*_test.csv"))
    if benchmark != "mmlu" or not files:
        raise TaskFileError(
            f"{path} is a folder without `*_test.csv`.",
            hint="Only mmlu is published as a folder; name the file of any other benchmark.",
        )
    return [row for file in files for row in _csv_rows(read_text(file), str(file), benchmark)]


def _csv_rows(text: str, file: str, benchmark: str) -> list[Row]:
    """Records of a CSV file; one of mmlu has no head and takes its subject from its name."""
    names = ["question", "A", "B", "C", "D", "letter"] if benchmark == "mmlu" else None
    reader = csv.DictReader(io.StringIO(text, newline=""), fieldnames=names)
    rows = []
    try:
        for place, fields in enumerate(reader, start=1):
            if benchmark == "mmlu":
                fields["subject"] = Path(file).stem.removesuffix("_test")
                fields["place"] = str(place)
            rows.append(Row(file, reader.line_num, place, dict(fields)))
    except csv.Error as error:
        raise TaskFileError(
            f"{file}, line {reader.line_num}: this is not CSV: {error}.", hint="Correct the file."
        ) from error
    if not rows:
        raise TaskFileError(f"{file}: there is no task in it.", hint="Give a file with tasks.")
    return rows


def json_rows(text: str, file: str, benchmark: str) -> list[Row]:
    """The rows of a JSON or JSON Lines text; `file` is its name in errors.

    Raises:
        TaskFileError: If it is not in the benchmark's published form.
    """
    head = text.lstrip()[:1]
    nested = {"strategyqa": "examples", "squad2": "data"}.get(benchmark)
    if head == "{" and nested is not None and f'"{nested}"' in text[:100_000]:
        return _nested_rows(text, file, benchmark, nested)
    rows = list(read_rows(text, file))
    if benchmark == "musr":
        flat = [row for outer in rows for row in _story_rows(outer)]
        return [row._replace(place=place) for place, row in enumerate(flat, start=1)]
    return rows


def _nested_rows(text: str, file: str, benchmark: str, name: str) -> list[Row]:
    """Records inside one JSON object."""
    try:
        items = json.loads(text)[name]
    except (ValueError, RecursionError, KeyError, TypeError) as error:
        raise TaskFileError(
            f"{file}: this is no published file of {benchmark}.",
            why=f"{name} cannot be read: {error!r}.",
            hint="Download the file again.",
        ) from error
    found = _squad_items(items, file) if benchmark == "squad2" else _example_items(items, file)
    lines = _Lines(text)
    return [
        Row(file, lines.of(anchor), place, fields)
        for place, (anchor, fields) in enumerate(found, start=1)
    ]


class _Lines:
    """Line numbers of texts that come one after another in a file.

    Args:
        text: The whole file.
    """

    def __init__(self, text: str) -> None:
        self._text, self._at, self._line = text, 0, 1

    def of(self, anchor: str) -> int:
        """The line of the next place at which a text stands; the last one known if it does not."""
        for escaped in (False, True):
            at = self._text.find(json.dumps(anchor, ensure_ascii=escaped), self._at)
            if at != -1:
                self._line += self._text.count("\n", self._at, at)
                self._at = at
                break
        return self._line


def _example_items(items: Any, file: str) -> Iterator[tuple[str, dict[str, Any]]]:
    for item in _list_of(items, file, "examples"):
        yield str(item.get("input", "")), item


def _squad_items(items: Any, file: str) -> Iterator[tuple[str, dict[str, Any]]]:
    for article in _list_of(items, file, "data"):
        for paragraph in _list_of(article.get("paragraphs"), file, "paragraphs"):
            for question in _list_of(paragraph.get("qas"), file, "qas"):
                fields = {**question, "context": paragraph.get("context")}
                yield str(question.get("id", "")), fields


def _story_rows(row: Row) -> Iterator[Row]:
    """The questions of a story; a flat record is one question."""
    if "questions" not in row.fields:
        yield row
        return
    for question in _list_of(row.fields["questions"], row.file, "questions"):
        yield row._replace(fields={**question, "narrative": row.fields.get("context")})


def _list_of(value: Any, file: str, name: str) -> list[dict[str, Any]]:
    if isinstance(value, list) and all(isinstance(item, dict) for item in value):
        return value
    raise TaskFileError(
        f"{file}: {name} is {kind_of(value)}, not a list of objects.",
        hint="Download the file again.",
    )
