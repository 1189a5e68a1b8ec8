"""Columns of a Parquet, CSV or JSONL file of ballots, before anything is checked.

Identifiers come out as text, whatever they were; `turn` and `mass` as whole numbers. A cell
that is empty, or not a number in Parquet, is missing. Blank lines are no rows, and are counted.
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

import orjson
import polars as pl

from analysis.tables import BALLOTS_SCHEMA
from tutorsim.errors import BallotFileError

__all__ = ["FILE_SUFFIXES", "REQUIRED", "read_columns", "refuse", "typed_columns"]

REQUIRED: Final = ("episode_id", "turn", "stage", "voter", "candidate", "mass", "protocol")
"""Columns that a file of ballots must have."""

_NUMBERS: Final = ("turn", "mass", "position", "attempts", "points", "rank")
_TRUE_OR_FALSE: Final = "approved"
_WORDS: Final = {"true": True, "1": True, "false": False, "0": False}
_LARGEST: Final = 10**9


def read_columns(file: Path) -> pl.DataFrame:
    """The ballots table's columns of a file, with the data row's number (from 1) as `row`.

    Optional columns that the file lacks are null, but `run_id`, which is the file's name.

    Raises:
        BallotFileError: If the file cannot be read, is empty, lacks a required column, misses
            a required value, or has something else than whole numbers in `turn` or `mass`.
    """
    try:
        raw = _READERS[file.suffix.lower()](file)
    except (OSError, UnicodeDecodeError, pl.exceptions.PolarsError) as error:
        raise _unreadable(file, str(error).splitlines()[0]) from error
    _require_columns(raw, file)
    frame = raw.select(name for name in raw.columns if name in BALLOTS_SCHEMA)
    return typed_columns(frame.with_row_index("row", 1), file)


def typed_columns(frame: pl.DataFrame, file: Path) -> pl.DataFrame:
    """Columns of a file in the ballots table's types.

    Args:
        frame: Columns of the ballots table, the required ones among them, and as `row`, the
            first one, the data row's number in the file.
        file: Named in errors.

    Raises:
        BallotFileError: As `read_columns`, for what rows hold.
    """
    frame = frame.filter(~pl.all_horizontal(pl.exclude("row").is_null()))
    for name in frame.columns[1:]:
        frame = frame.with_columns(_typed(frame, name, file))
    absent = [pl.lit(None, t).alias(c) for c, t in BALLOTS_SCHEMA.items() if c not in frame.columns]
    frame = frame.with_columns(absent).with_columns(pl.col("run_id").fill_null(file.stem))
    for name in REQUIRED:
        if name != "mass":
            refuse(frame, pl.col(name).is_null(), file, f"no {name}")
    return frame


def refuse(
    frame: pl.DataFrame,
    bad: pl.Expr,
    file: Path,
    reason: str | Callable[[Mapping[str, Any]], str],
) -> None:
    """Refuse the file if a row is bad, naming the first such row and the reason.

    Args:
        frame: Has the data row's number as `row`.
        bad: True for a row that makes no ballot.
        file: Named in the error.
        reason: What is wrong, or how to say it of a row.

    Raises:
        BallotFileError: If any row is bad.
    """
    found = frame.filter(bad).sort("row").head(1)
    if found.height:
        row = found.row(0, named=True)
        text = reason if isinstance(reason, str) else reason(row)
        raise BallotFileError(
            f"{file}, row {row['row']}: {text}.",
            why="Rows count from 1 at the first one after the heading, if there is one.",
            hint="Correct or remove the ballot; no other row was used.",
        )


def _read_csv(file: Path) -> pl.DataFrame:
    return pl.read_csv(file, infer_schema=False)


def _read_jsonl(file: Path) -> pl.DataFrame:
    columns: dict[str, list[str | None]] = {name: [] for name in BALLOTS_SCHEMA}
    seen: set[str] = set()
    for number, line in enumerate(file.read_bytes().splitlines(), start=1):
        try:
            value = orjson.loads(line) if line.strip() else {}
            seen.update(value.keys())
            for name, cells in columns.items():
                cells.append(_text(value.get(name)))
        except (ValueError, AttributeError) as error:
            raise _unreadable(file, f"row {number} is no JSON object: {error}") from error
    return pl.DataFrame(
        {name: cells for name, cells in columns.items() if name in seen},
        schema_overrides=dict.fromkeys(BALLOTS_SCHEMA, pl.String()),
    )


def _text(value: object) -> str | None:
    """A JSON value as a CSV cell would hold it."""
    return value if isinstance(value, str) or value is None else orjson.dumps(value).decode()


_READERS: Final[Mapping[str, Callable[[Path], pl.DataFrame]]] = {
    ".parquet": pl.read_parquet,
    ".csv": _read_csv,
    ".jsonl": _read_jsonl,
}
FILE_SUFFIXES: Final = tuple(_READERS)
"""Endings of the files that `read_columns` reads."""


def _require_columns(raw: pl.DataFrame, file: Path) -> None:
    if raw.height == 0:
        raise _unreadable(file, "it has no rows")
    doubled = [name for name in REQUIRED if f"{name}_duplicated_0" in raw.columns]
    if doubled:
        raise _unreadable(file, f"it has the column {doubled[0]} more than once")
    missing = [name for name in REQUIRED if name not in raw.columns]
    if missing:
        raise BallotFileError(
            f"{file} lacks the column{'s' * (len(missing) > 1)} {', '.join(missing)}.",
            why=f"A row is one ballot and candidate; required are {', '.join(REQUIRED)}.",
            hint="Name the columns so; every other column is optional.",
        )


def _unreadable(file: Path, why: str) -> BallotFileError:
    return BallotFileError(
        f"{file} cannot be read as ballots.",
        why=why,
        hint="Write it again, in the shape of `tutorsim export`'s ballots table.",
    )


def _typed(frame: pl.DataFrame, name: str, file: Path) -> pl.Expr:
    """The column as text, or as whole numbers."""
    dtype = frame.schema[name]
    column = pl.col(name)
    if name == _TRUE_OR_FALSE:
        return _true_or_false(frame, name, file)
    if name not in _NUMBERS:
        text = column.cast(pl.String)
        return pl.when(text.str.strip_chars() != "").then(text)
    if dtype == pl.String:
        column = pl.col(name).str.strip_chars().replace("", None)
    elif dtype.is_float():
        column = column.fill_nan(None)
    number = column.cast(pl.Float64, strict=False)
    whole = number.is_finite() & (number == number.floor()) & (number.abs() <= _LARGEST)
    bad = column.is_not_null() & ~whole.fill_null(False)
    refuse(frame, bad, file, lambda row: f"{name} {row[name]!r} is not a whole number up to 10^9")
    return pl.when(column.is_not_null()).then(number).cast(pl.Int64).alias(name)


def _true_or_false(frame: pl.DataFrame, name: str, file: Path) -> pl.Expr:
    word = pl.col(name).cast(pl.String).str.strip_chars().str.to_lowercase().replace("", None)
    read = word.replace_strict(_WORDS, default=None, return_dtype=pl.Boolean)
    bad = word.is_not_null() & read.is_null()
    refuse(frame, bad, file, lambda row: f"{name} {row[name]!r} is neither true nor false")
    return read.alias(name)
