"""Files of ballots from elsewhere, read into one table whose columns have the right types."""

from pathlib import Path
from typing import Final, TypeVar

import polars as pl

from tutorsim.analysis.ballots.convert_to_long_format import by_vote, lay_out, standing_of_lists
from tutorsim.analysis.ballots.malformed_rows import EXAMPLE, FileRows, columns_missed, unreadable
from tutorsim.analysis.ballots.names_and_properties_of_ballot_formats import protocol_named
from tutorsim.analysis.ballots.preflib import PREFLIB_SUFFIXES, read_preflib
from tutorsim.analysis.ballots.raw_tables import CELL_SUFFIXES, read_cells
from tutorsim.analysis.ballots.reading_options_and_column_words import (
    EVERY_VOTE,
    Hints,
    column_named,
)
from tutorsim.analysis.ballots.vote_arrays_and_profiles import STAGES
from tutorsim.analysis.ballots.wide_rows_list_cells_raw_replies import Rows
from tutorsim.analysis.runs.exported_tables import BALLOTS_SCHEMA
from tutorsim.errors import BallotFileError

# --- Column types --------------------------------------------------------------------------------

REQUIRED: Final = ("episode_id", "turn", "stage", "voter", "candidate", "mass", "protocol")
"""Columns that say everything: a file with all of them is read without an assumption."""

R = TypeVar("R", bound=FileRows)

_NUMBERS: Final = ("turn", "mass", "position", "attempts", "points", "rank")
_WORDS: Final = {"true": True, "1": True, "false": False, "0": False}
_LARGEST: Final = 10**9


def typed_columns(rows: R) -> R:
    """Columns of a file in the ballots table's types, with the data row's number as `row`.

    Optional columns that the file lacks are null, but `run_id`, which is the file's name.

    `rows`: columns of the ballots table, the required ones among them, and as `row`, the first
    one, the data row's number in the file. Raises `BallotFileError` if a row misses a value, or has
    something else than a number in a number column.
    """
    given = rows.frame.columns
    rows = rows.with_frame(rows.frame.filter(~pl.all_horizontal(pl.exclude("row").is_null())))
    for name in given[1:]:
        rows = rows.with_columns(_typed(rows, name).alias(name))
    absent = [pl.lit(None, t).alias(c) for c, t in BALLOTS_SCHEMA.items() if c not in given]
    rows = rows.with_columns(absent)
    if isinstance(rows.file, Path):
        rows = rows.with_columns(pl.col("run_id").fill_null(rows.file.stem))
    for name in REQUIRED:
        if name != "mass":
            rows.refuse(f"no {name}", pl.col(name).is_null())
    return rows.with_frame(rows.frame.select("row", *BALLOTS_SCHEMA.names()))


def _typed(rows: FileRows, name: str) -> pl.Expr:
    """The column as text, as whole numbers, or as true and false."""
    dtype, column = rows.frame.schema[name], pl.col(name)
    text = column.cast(pl.String).str.strip_chars()
    if name == "approved":
        word = text.str.to_lowercase().replace("", None)
        read = word.replace_strict(_WORDS, default=None, return_dtype=pl.Boolean)
        bad, kind = word.is_not_null() & read.is_null(), "neither true nor false"
    elif name in _NUMBERS:
        given = text.replace("", None) if dtype == pl.String else column
        given = given.fill_nan(None) if dtype.is_float() else given
        number = given.cast(pl.Float64, strict=False)
        whole = number.is_finite() & (number == number.floor()) & (number.abs() <= _LARGEST)
        bad = given.is_not_null() & ~whole.fill_null(False)
        kind = "not a whole number up to 10^9"
        read = pl.when(given.is_not_null()).then(number).cast(pl.Int64)
    else:
        return pl.when(text != "").then(column.cast(pl.String))
    rows.refuse(f"{name} {{{name}!r}} is {kind}", bad)
    return read


# --- Outside files -------------------------------------------------------------------------------

BALLOT_SUFFIXES: Final = (*CELL_SUFFIXES, *PREFLIB_SUFFIXES)
"""Endings of the files that hold ballots."""

_TO_DO: Final = {
    **dict.fromkeys((".xlsx", ".xls", ".ods", ".numbers"), "Save the sheet with the votes as CSV."),
    ".md": "Copy the table into a .csv file, with a bar or comma between cells and no frame.",
    ".txt": "If its first line is a heading, call it .csv. If each line is one ballot, do so too, "
    "with a heading on top: ranking, where lines are orders such as a > b; voter,choice for “Ann, "
    "red”; weight;ranking for “12; a > b”, cast 12 times.",
}
"""Ending → what to do with a file that has it."""


def by_name(ballots: pl.DataFrame) -> pl.DataFrame:
    """Rows by episode, turn, stage, voter and candidate, so that a file's sequence says nothing."""
    words = {"stage": pl.Series([*STAGES.values()])} | {
        name: ballots.get_column(name).unique().sort()
        for name in ("episode_id", "protocol", "voter", "candidate")
    }
    places = [pl.col(name).cast(pl.Enum(each)).to_physical() for name, each in words.items()]
    keys = ("episode_id", "turn", "protocol", "stage", "voter", "candidate")
    order = ballots.select("turn", *places).select(pl.arg_sort_by(keys)).to_series()
    return ballots if order.is_sorted() else ballots[order]


def read_file(file: Path, hints: Hints, frame: pl.DataFrame | None = None) -> Rows:
    """The rows of one file, or of a frame, before they are checked, in the right types.

    Raises as `lay_out`, and if a row has no value or no number where one has to be.
    """
    suffix = file.suffix.lower()
    if suffix in PREFLIB_SUFFIXES:
        laid = read_preflib(file)
        protocol = laid.frame["protocol"][0]
        if hints.protocol is not None and protocol_named(hints.protocol) != protocol:
            raise BallotFileError(
                f"{file} holds no ballots for {hints.protocol!r}.",
                why=f"PrefLib files say themselves what was cast: this one is read as {protocol}.",
                hint="Leave --protocol out; `tutorsim recount --targets` counts under another "
                "rule.",
            )
    elif frame is None and suffix not in CELL_SUFFIXES:
        raise BallotFileError(
            f"{file} is no file of ballots that can be read.",
            why=f"Its name ends in {suffix!r}; known are {', '.join(BALLOT_SUFFIXES)}.",
            hint=f"{_TO_DO.get(suffix, 'Convert it to one of them.')} {EXAMPLE}",
        )
    else:
        laid = lay_out(file, hints, frame)
    return typed_columns(laid)


# --- Files that options name ---------------------------------------------------------------------


def read_own(file: Path) -> dict[str, dict[str, str]]:
    """Whose candidate is whose: a file with the columns voter and candidate, and perhaps the vote.

    Raises `BallotFileError` if the file cannot be read, or lacks a column.
    """
    frame = read_cells(file).frame
    names = [name for name in frame.columns if name != "row"]
    voter, candidate = (column_named(name, names) for name in ("voter", "candidate"))
    if voter is None or candidate is None:
        raise columns_missed(file, ["voter", "candidate"], names)
    vote = column_named("episode_id", names)
    of = pl.lit(EVERY_VOTE) if vote is None else pl.col(vote)
    return by_vote(frame, of, voter, pl.col(candidate))


def read_candidates(file: Path) -> tuple[str, ...] | dict[str, tuple[str, ...]]:
    """Who stands in all votes, or in each: one name a line, or columns of the vote and candidate.

    Raises `BallotFileError` if the file cannot be read, or has columns and none names a candidate.
    """
    if file.suffix.lower() not in CELL_SUFFIXES:
        try:
            lines = file.read_text(encoding="utf-8-sig").splitlines()
        except (OSError, UnicodeDecodeError) as error:
            raise unreadable(file, str(error)) from error
        return tuple(dict.fromkeys(line.strip() for line in lines if line.strip()))
    frame = read_cells(file).frame
    names = [name for name in frame.columns if name != "row"]
    candidate, vote = column_named("candidate", names), column_named("episode_id", names)
    if candidate is None:
        raise columns_missed(file, ["candidate"], names)
    found = standing_of_lists(frame.get_column(candidate), frame.get_column(vote) if vote else None)
    return found if vote else found[EVERY_VOTE]
