"""Rows and columns of a Parquet, CSV or JSON file as they stand, before any meaning is read.

CSV may use commas, semicolons, tabs or bars; its heading says which. Text that is not UTF-8 is read
as Windows-1252, which is noted. JSON is one object a line, or one list of objects.
"""

import io
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

import orjson
import polars as pl

from tutorsim.analysis.ballots.row_refusals import unreadable
from tutorsim.named_files import open_named, read_named

__all__ = ["CELL_SUFFIXES", "Cells", "read_cells", "without_formulas"]

_SEPARATORS: Final = ",;\t|"
_HEAD: Final = 1 << 16
"""Bytes read to find the separator."""
_FORMULA: Final = "'*[=+\\-@\t\r\n＝＋－＠]"
"""How a cell begins that a spreadsheet would run, or that has had apostrophes set before it."""


class Cells(NamedTuple):
    """A file's rows."""

    frame: pl.DataFrame
    """The columns of the file, and as `row`, the first one, the data row's number from 1. Cells
    are text, but in Parquet of the column's own type."""
    notes: tuple[str, ...] = ()


def read_cells(file: Path) -> Cells:
    """Read the rows of a file; blank lines are no rows, and are counted.

    Raises:
        BallotFileError: If the file cannot be read, has no rows, or has a column twice.
    """
    try:
        raw, notes = _READERS[file.suffix.lower()](file)
    except (OSError, UnicodeDecodeError, pl.exceptions.PolarsError) as error:
        raise unreadable(file, str(error).splitlines()[0]) from error
    if raw.height == 0:
        raise unreadable(file, "it has no rows")
    doubled = [name.removesuffix(_TWICE) for name in raw.columns if name.endswith(_TWICE)]
    if doubled:
        raise unreadable(file, f"it has the column {doubled[0]} more than once")
    frame = raw.rename({"row": "row "} if "row" in raw.columns else {}).with_row_index("row", 1)
    filled = frame.filter(~pl.all_horizontal(pl.exclude("row").is_null()))
    if filled.height == 0:
        raise unreadable(file, "all of its rows are blank")
    return Cells(filled, notes)


_TWICE: Final = "_duplicated_0"
"""What polars adds to the name of a column that stands twice."""

Raw = tuple[pl.DataFrame, tuple[str, ...]]


def without_formulas(frame: pl.DataFrame) -> pl.DataFrame:
    """A table for CSV that no spreadsheet runs: an apostrophe stands before what it would.

    Reading the file takes the apostrophes off again.
    """
    return frame.with_columns(pl.col(pl.String).str.replace(f"^({_FORMULA})", "'${1}"))


def _with_formulas(frame: pl.DataFrame) -> Raw:
    """The cells as they were before `without_formulas`."""
    kept = pl.col(pl.String).str.contains(f"^'{_FORMULA}")
    cells = sum(frame.select(kept.sum()).row(0)) if frame.width else 0
    if not cells:
        return frame, ()
    note = (
        f"{cells} cell{'s begin' if cells > 1 else ' begins'} with an apostrophe that keeps a "
        "spreadsheet from running it; it is no part of the cell"
    )
    return frame.with_columns(pl.col(pl.String).str.replace(f"^'({_FORMULA})", "${1}")), (note,)


def _read_csv(file: Path) -> Raw:
    frame, notes = _csv_as_it_stands(file)
    frame, more = _with_formulas(frame)
    return frame, (*notes, *more)


def _csv_as_it_stands(file: Path) -> Raw:
    with open_named(file) as opened:
        head = opened.read(_HEAD)
    separator = _separator(head)
    try:
        return pl.read_csv(file.absolute(), infer_schema=False, separator=separator, glob=False), ()
    except pl.exceptions.ComputeError as error:
        if "utf-8" not in str(error).lower():
            raise
    text = read_named(file).decode("cp1252")
    frame = pl.read_csv(io.StringIO(text), infer_schema=False, separator=separator)
    return frame, ("its text is not UTF-8 and was read as Windows-1252",)


def _read_parquet(file: Path) -> Raw:
    open_named(file).close()
    return pl.read_parquet(file.absolute(), glob=False, hive_partitioning=False), ()


def _separator(head: bytes) -> str:
    """What stands between the names of the heading; a comma where nothing does."""
    lines = head.decode("utf-8-sig", errors="replace").splitlines()
    heading = next((line for line in lines if line.strip()), "")
    outside = "".join(heading.split('"')[::2])
    return max(_SEPARATORS, key=outside.count)


def _read_json_lines(file: Path) -> Raw:
    values: list[Mapping[str, Any]] = []
    for number, line in enumerate(read_named(file).splitlines(), start=1):
        try:
            value = orjson.loads(line) if line.strip() else {}
        except ValueError as error:
            raise unreadable(file, f"row {number} is no JSON object: {error}") from error
        if not isinstance(value, dict):
            raise unreadable(file, f"row {number} is no JSON object: {line[:60]!r}")
        values.append(value)
    return _of_objects(values), ()


def _read_json(file: Path) -> Raw:
    try:
        values = orjson.loads(read_named(file))
    except ValueError as error:
        raise unreadable(file, f"it is no JSON: {error}") from error
    if not isinstance(values, list) or not all(isinstance(value, dict) for value in values):
        raise unreadable(file, "its JSON is no list of objects")
    return _of_objects(values), ()


def _of_objects(values: Iterable[Mapping[str, Any]]) -> pl.DataFrame:
    """One row an object; a name that some lack is missing there."""
    rows = list(values)
    names = list(dict.fromkeys(name for row in rows for name in row))
    columns = {name: [_text(row.get(name)) for row in rows] for name in names}
    return pl.DataFrame(columns, schema=dict.fromkeys(names, pl.String()))


def _text(value: object) -> str | None:
    """A JSON value as a CSV cell would hold it."""
    return value if isinstance(value, str) or value is None else orjson.dumps(value).decode()


_READERS: Final[Mapping[str, Callable[[Path], Raw]]] = {
    ".parquet": _read_parquet,
    ".csv": _read_csv,
    ".tsv": _read_csv,
    ".jsonl": _read_json_lines,
    ".json": _read_json,
}
CELL_SUFFIXES: Final = tuple(_READERS)
"""Endings of the files that `read_cells` reads."""
