"""A rating sheet as CSV: to fill in in a spreadsheet, and as the page gives it back."""

import csv
import io
import json
from pathlib import Path
from typing import Final, NamedTuple

from pydantic import ValidationError

from tutorsim.analysis.ratings.rater_assignment import Sheet
from tutorsim.analysis.ratings.rubric import value_text
from tutorsim.errors import RatingFileError
from tutorsim.named_files import read_named
from tutorsim.records.ratings import Rubric, Survey

__all__ = ["COLUMNS", "Filled", "Row", "read_sheet", "sheet_csv"]

COLUMNS: Final = ("number", "shown", "score", "note", "item", "rater", "sheet", "survey")
"""`shown` is all that the rater read, `item` its digest, `sheet` a digest over survey and items."""

_WRITTEN: Final = ("number", "shown", "scale", *COLUMNS[2:])
"""A sheet to be filled in says beside each item what is asked; nothing is read back from there."""

_SEPARATORS: Final = (",", ";", "\t")
"""What spreadsheets of this world put between columns."""

_KEPT: Final = "Give the file as the page or `tutorsim rate --export` wrote it, only filled in."


class Row(NamedTuple):
    """One item of a filled-in sheet, as it stands in the file."""

    line: int
    """The item's row in the file, from 2; the first one has the names of the columns."""
    number: int
    shown: str
    score: str
    note: str
    item: str


class Filled(NamedTuple):
    """A sheet as a rater gave it back, read and not yet checked against a run."""

    file: str
    survey: Survey
    rater: int
    sheet: str
    rows: tuple[Row, ...]
    """In the order of the sheet."""


def sheet_csv(sheet: Sheet) -> str:
    """A sheet to be filled in: `score` and `note` are empty."""
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\r\n")
    writer.writerow(_WRITTEN)
    asked = _asked(sheet.survey.rubric)
    told = (sheet.rater, sheet.digest, sheet.survey.text())
    for number, item in enumerate(sheet.items, start=1):
        writer.writerow((number, item.text, asked, "", "", item.id, *told))
    return text.getvalue()


def _asked(rubric: Rubric) -> str:
    """The question, the values that can be given, and what they mean."""
    values = map(value_text, rubric.scale)
    anchors = [f"{value}: {text}" for value, text in rubric.anchors.items()]
    return "\n".join((rubric.question, f"One of {', '.join(values)}.", *anchors))


def read_sheet(path: Path) -> Filled:
    """Read a filled-in sheet.

    Raises:
        RatingFileError: If the file is no rating sheet, or its rows are of several.
    """
    rows = _rows(path)
    one = {name: {row[name] for row in rows} for name in ("rater", "sheet", "survey")}
    for name, values in one.items():
        if len(values) > 1:
            raise RatingFileError(
                f"{path}: its rows have {len(values)} different values of `{name}`.",
                why="A file holds the sheet of one rater; this one was put together or edited.",
                hint=_KEPT,
            )
    [rater], [sheet], [survey] = one.values()
    try:
        read = [_row(line, row) for line, row in enumerate(rows, start=2)]
        return Filled(
            str(path),
            Survey.model_validate(json.loads(survey)),
            int(rater),
            sheet,
            tuple(sorted(read, key=lambda row: row.number)),
        )
    except (ValueError, ValidationError) as error:
        raise RatingFileError(
            f"{path}: `number`, `rater` or `survey` is not as it was written.",
            why=str(error).partition("\n")[0],
            hint=_KEPT,
        ) from error


def _row(line: int, row: dict[str, str]) -> Row:
    number = int(row["number"])
    return Row(line, number, row["shown"], row["score"].strip(), row["note"].strip(), row["item"])


def _rows(path: Path) -> list[dict[str, str]]:
    try:
        text = read_named(path).decode("utf-8-sig")
        first = text.partition("\n")[0]
        separator = max(_SEPARATORS, key=first.count)
        reader = csv.DictReader(io.StringIO(text, newline=""), delimiter=separator, strict=True)
        rows = list(reader)
    except (OSError, ValueError, csv.Error) as error:
        raise RatingFileError(
            f"{path} cannot be read.",
            why=getattr(error, "strerror", None) or str(error),
            hint="Give a CSV file in UTF-8.",
        ) from error
    missing = [name for name in COLUMNS if name not in (reader.fieldnames or ())]
    if missing:
        raise RatingFileError(
            f"{path} is no rating sheet: it has no column {missing[0]!r}.",
            why=f"A sheet has {', '.join(COLUMNS)}.",
            hint=_KEPT,
        )
    if not rows or any(row.get(name) is None for row in rows for name in COLUMNS):
        raise RatingFileError(
            f"{path} has no row." if not rows else f"{path} has a row that is cut short.",
            why="The file was cut or edited.",
            hint=_KEPT,
        )
    return rows
