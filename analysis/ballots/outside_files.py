"""Files of ballots from elsewhere, read into one table whose columns have the right types."""

from collections.abc import Mapping, Sequence
from itertools import accumulate
from pathlib import Path
from typing import Final, NamedTuple

import polars as pl

from tutorsim.analysis.ballots.ballot_checks import EXAMPLE, Places, check_ballots, refuse
from tutorsim.analysis.ballots.convert_to_long_format import Laid, lay_out
from tutorsim.analysis.ballots.preflib import PREFLIB_SUFFIXES, read_preflib
from tutorsim.analysis.ballots.properties_of_ballot_formats import protocol_named
from tutorsim.analysis.ballots.raw_tables import CELL_SUFFIXES, read_cells
from tutorsim.analysis.ballots.reading_options import NO_HINTS, Hints
from tutorsim.analysis.ballots.vote_arrays import STAGES
from tutorsim.analysis.runs.run_tables import BALLOTS_SCHEMA
from tutorsim.errors import BallotFileError
from tutorsim.vocabularies import CUMULATIVE_BUDGET, TOP_SCORE

# --- Column types --------------------------------------------------------------------------------

FILE_SUFFIXES: Final = CELL_SUFFIXES
"""Endings of the files that are tables of rows and columns."""

REQUIRED: Final = ("episode_id", "turn", "stage", "voter", "candidate", "mass", "protocol")
"""Columns that say everything: a file with all of them is read without an assumption."""

_NUMBERS: Final = ("turn", "mass", "position", "attempts", "points", "rank")
_TRUE_OR_FALSE: Final = "approved"
_WORDS: Final = {"true": True, "1": True, "false": False, "0": False}
_LARGEST: Final = 10**9


def read_laid(file: Path, hints: Hints = NO_HINTS, frame: pl.DataFrame | None = None) -> Laid:
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


# --- Outside files -------------------------------------------------------------------------------

BALLOT_SUFFIXES: Final = (*FILE_SUFFIXES, *PREFLIB_SUFFIXES)
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


class FileShape(NamedTuple):
    """How one file was read."""

    name: str
    shape: str
    """`long`, `raw replies`, `places`, `one cell`, `wide` or `PrefLib`."""
    columns: Mapping[str, str]
    """Our column → the file's."""
    rows: int
    """Rows in the long shape: one a ballot and candidate."""
    assumed: tuple[str, ...]


class BallotsFound(NamedTuple):
    """Checked ballots, and what reading them took."""

    ballots: pl.DataFrame
    """`analysis.runs.run_tables.BALLOTS_SCHEMA`, sorted by name."""
    budget: int
    notes: tuple[str, ...]
    files: tuple[FileShape, ...]
    provenance: tuple[str, ...]
    """What the files say answered the calls, each once; empty where they do not say."""
    own: Mapping[str, Mapping[str, str]] | None = None
    """Vote → voter → the candidate that is its own; `None`: the one of its name."""
    top: int = TOP_SCORE
    """The end of the scale of scores, which begins at 0."""


class _Read(NamedTuple):
    """Rows of one file before they are checked."""

    frame: pl.DataFrame
    shape: FileShape
    budget: int | None
    provenance: tuple[str, ...]
    own: Mapping[str, Mapping[str, str]] | None = None
    top: int | None = None


def read_ballots(
    files: Sequence[Path], *, hints: Hints = NO_HINTS, frame: pl.DataFrame | None = None
) -> BallotsFound:
    """Read files of ballots, and check them together.

    `frame`: rows that are held already, of the one file. Raises `BallotFileError` with file, row
    and reason, where rows make no ballot, where a file cannot be read, and where files disagree
    about the budget; `UsageError` if a hint names a column that a file has not.
    """
    read = [_read_file(file, hints, frame) for file in files]
    places = _places(files, read)
    rows = [
        one.frame.with_columns(pl.col("row") + start)
        for one, start in zip(read, places.starts, strict=True)
    ]
    where = files[0] if len(files) == 1 else places
    checked = check_ballots(
        pl.concat(rows), where, budget=_one_budget(read, hints), namesakes=hints.namesakes
    )
    with_points = checked.ballots["protocol"].is_in(_WITH_POINTS).any()
    default = hints.budget or CUMULATIVE_BUDGET
    return BallotsFound(
        ballots=in_name_order(checked.ballots.select(BALLOTS_SCHEMA.names())),
        budget=checked.budget if with_points else default,
        notes=(*(note for one in read if (note := _note(one.shape))), *checked.notes),
        files=tuple(one.shape for one in read),
        provenance=tuple(sorted({text for one in read for text in one.provenance})),
        own=_own_of(read, hints),
        top=_one_scale(read),
    )


def _one_scale(read: Sequence[_Read]) -> int:
    """The end of the scale of all scores."""
    tops = {one.top for one in read if one.top is not None}
    if len(tops) > 1:
        raise BallotFileError(
            f"The scores of these files end at {sorted(tops)}.",
            why="One recount works with one scale, and none is stated.",
            hint="Say which: --scale WORST,BEST.",
        )
    return tops.pop() if tops else TOP_SCORE


def _own_of(read: Sequence[_Read], hints: Hints) -> Mapping[str, Mapping[str, str]] | None:
    """Whose candidate is whose, of all files."""
    if hints.own is None:
        return hints.own_of or None
    found: dict[str, dict[str, str]] = {}
    for vote, of in ((vote, of) for one in read for vote, of in (one.own or {}).items()):
        found.setdefault(vote, {}).update(of)
    return found


def in_name_order(ballots: pl.DataFrame) -> pl.DataFrame:
    """Rows by episode, turn, stage, voter and candidate, so that a file's sequence says nothing."""
    numbers = [
        pl.Series(name, _numbered(ballots.get_column(name)))
        for name in ("episode_id", "voter", "candidate", "protocol")
    ]
    stage = ballots.get_column("stage").replace_strict(
        {name: place for place, name in enumerate(STAGES.values())}, return_dtype=pl.Int8
    )
    keys = pl.DataFrame([*numbers, ballots.get_column("turn"), stage.alias("stage")])
    order = keys.select(
        pl.arg_sort_by("episode_id", "turn", "protocol", "stage", "voter", "candidate")
    ).to_series()
    return ballots if order.is_sorted() else ballots[order]


def _numbered(column: pl.Series) -> pl.Series:
    """Each name's place among all names."""
    names = column.unique().sort()
    return column.cast(pl.Enum(names)).to_physical()


def _places(files: Sequence[Path], read: Sequence[_Read]) -> Places:
    heights = [one.frame.select(pl.col("row").max()).item() or 0 for one in read]
    return Places(tuple(files), tuple(accumulate([0, *heights[:-1]])))


def _note(shape: FileShape) -> str:
    """What was assumed of a file, in one sentence; nothing of one that says everything."""
    if not shape.assumed:
        return ""
    return f"{shape.name} was read as: {'; '.join(shape.assumed)}."


def _one_budget(read: Sequence[_Read], hints: Hints) -> int | None:
    """The budget that is stated, by the user or by the format; `None`: what most ballots sum to."""
    stated = {one.budget for one in read if one.budget is not None}
    if len(stated) > 1:
        raise BallotFileError(
            f"The cumulative ballots of these files sum to {sorted(stated)}.",
            why="One recount works with one budget.",
            hint="Open the files one at a time.",
        )
    return stated.pop() if stated else hints.budget


def _read_file(file: Path, hints: Hints, rows: pl.DataFrame | None) -> _Read:
    suffix = file.suffix.lower()
    if suffix in PREFLIB_SUFFIXES:
        return _read_preflib(file, hints)
    if rows is None and suffix not in FILE_SUFFIXES:
        raise BallotFileError(
            f"{file} is no file of ballots that can be read.",
            why=f"Its name ends in {suffix!r}; known are {', '.join(BALLOT_SUFFIXES)}.",
            hint=f"{_TO_DO.get(suffix, 'Convert it to one of them.')} {EXAMPLE}",
        )
    laid = read_laid(file, hints, rows)
    frame = typed_columns(laid.frame, file)
    shape = FileShape(file.name, laid.shape, laid.columns, frame.height, laid.assumed)
    budget = None if hints.budget is None or laid.scale == 1 else hints.budget * laid.scale
    return _Read(frame, shape, budget, laid.provenance, laid.own, laid.top)


def _read_preflib(file: Path, hints: Hints) -> _Read:
    read = read_preflib(file)
    protocol = str(read.ballots.get_column("protocol").first())
    if hints.protocol is not None and protocol_named(hints.protocol) != protocol:
        raise BallotFileError(
            f"{file} holds no ballots for {hints.protocol!r}.",
            why=f"PrefLib files say themselves what was cast: this one is read as {protocol}.",
            hint="Leave --protocol out; `tutorsim recount --targets` counts under another rule.",
        )
    frame = read.ballots.with_row_index("row", 1)
    shape = FileShape(file.name, "PrefLib", {}, frame.height, read.assumed)
    return _Read(frame, shape, read.budget, read.provenance)
