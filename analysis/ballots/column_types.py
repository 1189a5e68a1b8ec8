"""Columns of a file of ballots in the ballots table's types, before ballots are checked.

Identifiers come out as text, whatever they were; `turn` and `mass` as whole numbers. A cell
that is empty, or not a number in Parquet, is missing.
"""

from pathlib import Path
from typing import Final

import polars as pl

from tutorsim.analysis.ballots.long_format import Laid, lay_out
from tutorsim.analysis.ballots.raw_tables import CELL_SUFFIXES, read_cells
from tutorsim.analysis.ballots.reading_options import NO_HINTS, Hints
from tutorsim.analysis.ballots.row_refusals import Places, refuse
from tutorsim.analysis.runs.exported_tables import BALLOTS_SCHEMA

__all__ = ["FILE_SUFFIXES", "REQUIRED", "read_columns", "read_laid", "typed_columns"]

FILE_SUFFIXES: Final = CELL_SUFFIXES
"""Endings of the files that are tables of rows and columns."""

REQUIRED: Final = ("episode_id", "turn", "stage", "voter", "candidate", "mass", "protocol")
"""Columns that say everything: a file with all of them is read without an assumption."""

_NUMBERS: Final = ("turn", "mass", "position", "attempts", "points", "rank")
_TRUE_OR_FALSE: Final = "approved"
_WORDS: Final = {"true": True, "1": True, "false": False, "0": False}
_LARGEST: Final = 10**9


def read_columns(file: Path) -> pl.DataFrame:
    """The ballots table's columns of a file, with the data row's number (from 1) as `row`.

    Optional columns that the file lacks are null, but `run_id`, which is the file's name.

    Raises:
        BallotFileError: If the file cannot be read, is empty, lacks a column that nothing
            else tells, misses a value, or has something else than numbers in a number column.
    """
    return typed_columns(read_laid(file).frame, file)


def read_laid(file: Path, hints: Hints = NO_HINTS, frame: pl.DataFrame | None = None) -> Laid:
    """The rows of a file, or of a frame, in the long shape, with what that assumed.

    Types are as they come.

    Raises:
        BallotFileError: As `read_columns`.
        UsageError: If a hint names a column that the file has not.
    """
    return lay_out(read_cells(file, frame), file, hints)


def typed_columns(frame: pl.DataFrame, file: Path | Places) -> pl.DataFrame:
    """Columns of a file in the ballots table's types.

    Args:
        frame: Columns of the ballots table, the required ones among them, and as `row`, the
            first one, the data row's number in the file.
        file: Named in errors; or the files whose rows stand one after the other.

    Raises:
        BallotFileError: As `read_columns`, for what rows hold.
    """
    frame = frame.filter(~pl.all_horizontal(pl.exclude("row").is_null()))
    for name in frame.columns[1:]:
        frame = frame.with_columns(_typed(frame, name, file))
    absent = [pl.lit(None, t).alias(c) for c, t in BALLOTS_SCHEMA.items() if c not in frame.columns]
    frame = frame.with_columns(absent)
    if isinstance(file, Path):
        frame = frame.with_columns(pl.col("run_id").fill_null(file.stem))
    for name in REQUIRED:
        if name != "mass":
            refuse(frame, pl.col(name).is_null(), file, f"no {name}")
    return frame


def _typed(frame: pl.DataFrame, name: str, file: Path | Places) -> pl.Expr:
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


def _true_or_false(frame: pl.DataFrame, name: str, file: Path | Places) -> pl.Expr:
    word = pl.col(name).cast(pl.String).str.strip_chars().str.to_lowercase().replace("", None)
    read = word.replace_strict(_WORDS, default=None, return_dtype=pl.Boolean)
    bad = word.is_not_null() & read.is_null()
    refuse(frame, bad, file, lambda row: f"{name} {row[name]!r} is neither true nor false")
    return read.alias(name)
