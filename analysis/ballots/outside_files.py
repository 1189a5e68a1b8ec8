"""Files of ballots from elsewhere, read into one table whose columns have the right types."""

from collections.abc import Mapping, Sequence
from itertools import accumulate
from pathlib import Path
from typing import Final

import polars as pl

from tutorsim.analysis.ballots.ballot_checks import (
    EXAMPLE,
    FileRows,
    Places,
    check_ballots,
    one_budget,
    only_one,
)
from tutorsim.analysis.ballots.convert_to_long_format import lay_out
from tutorsim.analysis.ballots.one_whole_ballot_per_row import Rows
from tutorsim.analysis.ballots.preflib import PREFLIB_SUFFIXES, read_preflib
from tutorsim.analysis.ballots.properties_of_ballot_formats import protocol_named
from tutorsim.analysis.ballots.raw_tables import CELL_SUFFIXES, read_cells
from tutorsim.analysis.ballots.reading_options_and_column_words import NO_HINTS, Hints
from tutorsim.analysis.ballots.recount_source import FileShape, Source
from tutorsim.analysis.ballots.vote_arrays import STAGES
from tutorsim.analysis.runs.run_tables import BALLOTS_SCHEMA
from tutorsim.errors import BallotFileError
from tutorsim.vocabularies import CUMULATIVE_BUDGET, TOP_SCORE

# --- Column types --------------------------------------------------------------------------------

REQUIRED: Final = ("episode_id", "turn", "stage", "voter", "candidate", "mass", "protocol")
"""Columns that say everything: a file with all of them is read without an assumption."""

_NUMBERS: Final = ("turn", "mass", "position", "attempts", "points", "rank")
_WORDS: Final = {"true": True, "1": True, "false": False, "0": False}
_LARGEST: Final = 10**9


def read_laid(file: Path, hints: Hints = NO_HINTS, frame: pl.DataFrame | None = None) -> Rows:
    """The rows of a file, or of a frame, in the long shape, with what that assumed.

    Types are as they come.

    Raises `BallotFileError` if the file cannot be read, is empty, or lacks a column that nothing
    else tells; `UsageError` if a hint names a column that the file has not.
    """
    return lay_out(read_cells(file, frame), file, hints)


def typed_columns(frame: pl.DataFrame, file: Path | Places) -> pl.DataFrame:
    """Columns of a file in the ballots table's types, with the data row's number as `row`.

    Optional columns that the file lacks are null, but `run_id`, which is the file's name.

    `frame`: columns of the ballots table, the required ones among them, and as `row`, the first
    one, the data row's number in the file. Raises `BallotFileError` if a row misses a value, or has
    something else than a number in a number column.
    """
    rows = FileRows(frame.filter(~pl.all_horizontal(pl.exclude("row").is_null())), file)
    for name in frame.columns[1:]:
        rows = rows.with_columns(_typed(rows, name).alias(name))
    absent = [pl.lit(None, t).alias(c) for c, t in BALLOTS_SCHEMA.items() if c not in frame.columns]
    rows = rows.with_columns(absent)
    if isinstance(file, Path):
        rows = rows.with_columns(pl.col("run_id").fill_null(file.stem))
    for name in REQUIRED:
        if name != "mass":
            rows.refuse(f"no {name}", pl.col(name).is_null())
    return rows.frame.select("row", *BALLOTS_SCHEMA.names())


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

_WITH_POINTS: Final = ("cumulative", "rich")


_TO_DO: Final = {
    **dict.fromkeys((".xlsx", ".xls", ".ods", ".numbers"), "Save the sheet with the votes as CSV."),
    ".md": "Copy the table into a .csv file, with a bar or comma between cells and no frame.",
    ".txt": "If its first line is a heading, call it .csv. If each line is one ballot, do so too, "
    "with a heading on top: ranking, where lines are orders such as a > b; voter,choice for “Ann, "
    "red”; weight;ranking for “12; a > b”, cast 12 times.",
}
"""Ending → what to do with a file that has it."""


def read_ballots(
    name: str,
    files: Sequence[Path],
    *,
    hints: Hints = NO_HINTS,
    frame: pl.DataFrame | None = None,
) -> Source:
    """Read files of ballots, and check them together.

    `frame`: rows that are held already, of the one file. Raises `BallotFileError` with file, row
    and reason, where rows make no ballot, where a file cannot be read, and where files disagree
    about the budget; `UsageError` if a hint names a column or candidate that a file has not.
    """
    read = [_read_file(file, hints, frame) for file in files]
    heights = [one.frame.select(pl.col("row").max()).item() or 0 for one in read]
    places = Places(tuple(files), tuple(accumulate([0, *heights[:-1]])))
    rows = [
        one.frame.with_columns(pl.col("row") + start)
        for one, start in zip(read, places.starts, strict=True)
    ]
    stated = one_budget(one.budget for one in read)
    checked = check_ballots(
        pl.concat(rows),
        files[0] if len(files) == 1 else places,
        budget=hints.budget if stated is None else stated,
        namesakes=hints.namesakes,
    )
    ballots = in_name_order(checked.ballots.select(BALLOTS_SCHEMA.names()))
    with_points = ballots["protocol"].is_in(_WITH_POINTS).any()
    top = only_one(
        (one.top for one in read),
        "The scores of these files end at",
        why="One recount works with one scale, and none is stated.",
        hint="Say which: --scale WORST,BEST.",
    )
    shapes = [
        FileShape(file.name, one.shape, one.columns, one.frame.height, one.assumed)
        for file, one in zip(files, read, strict=True)
    ]
    told = [f"{one.name} was read as: {'; '.join(one.assumed)}." for one in shapes if one.assumed]
    return Source(
        name,
        ballots,
        hints.order_of(ballots["candidate"].unique().sort()),
        checked.budget if with_points else hints.budget or CUMULATIVE_BUDGET,
        told=(*told, *checked.notes),
        shapes=tuple(shapes),
        own=_own_of(read, hints),
        top=TOP_SCORE if top is None else top,
        low_is_best=hints.scale is not None and hints.scale[0] > hints.scale[1],
        stated=tuple(sorted({text for one in read for text in one.provenance})),
    )


def _own_of(read: Sequence[Rows], hints: Hints) -> Mapping[str, Mapping[str, str]] | None:
    """Whose candidate is whose, of all files."""
    if hints.own is None:
        return hints.own_of or None
    found: dict[str, dict[str, str]] = {}
    for vote, of in ((vote, of) for one in read for vote, of in (one.own or {}).items()):
        found.setdefault(vote, {}).update(of)
    return found


def in_name_order(ballots: pl.DataFrame) -> pl.DataFrame:
    """Rows by episode, turn, stage, voter and candidate, so that a file's sequence says nothing."""
    words = {"stage": pl.Series([*STAGES.values()])} | {
        name: ballots.get_column(name).unique().sort()
        for name in ("episode_id", "protocol", "voter", "candidate")
    }
    places = [pl.col(name).cast(pl.Enum(each)).to_physical() for name, each in words.items()]
    keys = ("episode_id", "turn", "protocol", "stage", "voter", "candidate")
    order = ballots.select("turn", *places).select(pl.arg_sort_by(keys)).to_series()
    return ballots if order.is_sorted() else ballots[order]


def _read_file(file: Path, hints: Hints, rows: pl.DataFrame | None) -> Rows:
    """The rows of one file before they are checked, in the right types."""
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
    elif rows is None and suffix not in CELL_SUFFIXES:
        raise BallotFileError(
            f"{file} is no file of ballots that can be read.",
            why=f"Its name ends in {suffix!r}; known are {', '.join(BALLOT_SUFFIXES)}.",
            hint=f"{_TO_DO.get(suffix, 'Convert it to one of them.')} {EXAMPLE}",
        )
    else:
        laid = read_laid(file, hints, rows)
    return laid.with_frame(typed_columns(laid.frame, file))
