"""Ratings by people: what they were asked, and what they said, one sheet a line.

`ratings.jsonl` stands beside a run's log, or in a recording's folder. Nothing else there changes
when ratings join the run, and no digest covers the file.
"""

import hashlib
import json
from pathlib import Path
from typing import Final, Literal

from pydantic import ValidationError

from tutorsim.errors import LogError
from tutorsim.records.base_record_its_line_and_fields_added_later import SCHEMA_VERSION, Record
from tutorsim.records.run_head_and_reading_run_folders_and_retests import RunRecord
from tutorsim.regular_files_and_digests import read_named

RATINGS_FILE: Final = "ratings.jsonl"

Subject = Literal["replies", "proposals", "answers"]
"""What is rated: delivered replies, all final proposals, or the student's answers."""

RatedBy = Literal["people", "script"]


class Rubric(Record):
    """What raters are asked of each item, and the scale that they answer on."""

    name: str
    question: str
    scale: tuple[float, ...]
    """The values that can be given, least first."""
    anchors: dict[str, str] = {}
    """Value, as `value_text` writes it → what it means."""
    threshold: float | None = None
    """The least value that counts as good enough; `None` where the rubric names none."""
    of_judge: bool = False
    """The anchors and the scale are those of the run's model judge."""


class Survey(Record):
    """What all sheets of one export have in common."""

    schema_version: int = SCHEMA_VERSION
    study_digest: str
    recording_digest: str
    subject: Subject
    seed: int
    raters: int
    items: int
    """Items drawn."""
    overlap: int
    """Items among them that every rater has."""
    rubric: Rubric

    def text(self) -> str:
        """The survey as one line of JSON; equal surveys give equal lines."""
        return json.dumps(self.model_dump(mode="json"), sort_keys=True, ensure_ascii=False)

    def sheet_digest(self, rater: int, items: tuple[str, ...]) -> str:
        """SHA-256 over the survey, the rater and the rater's items in the order shown."""
        value = json.dumps([self.text(), rater, items], ensure_ascii=False)
        return hashlib.sha256(value.encode()).hexdigest()


class Rating(Record):
    """One rater's word on one item."""

    item: str
    value: float
    note: str = ""


class RatedSheet(Record):
    """The sheet of one rater, as far as it is filled in."""

    schema_version: int = SCHEMA_VERSION
    survey: Survey
    rater: int
    """Number of the rater, from 1."""
    by: RatedBy
    """`script`: a program filled the sheet in, for a trial."""
    sheet: str
    """The sheet's digest."""
    items: int
    """Items on the sheet, rated or not."""
    ratings: tuple[Rating, ...]
    """Ratings in the order of the sheet; items without a value are left out."""


def read_ratings(folder: Path, run: RunRecord) -> tuple[RatedSheet, ...]:
    """Read the ratings beside a run.

    No sheets if the run has none; `LogError` if the file is damaged or of another run.
    """
    path = folder / RATINGS_FILE
    if not path.exists():
        return ()
    try:
        lines = read_named(path).decode().splitlines()
        sheets = tuple(RatedSheet.model_validate_json(line) for line in lines)
    except (OSError, ValueError, ValidationError) as error:
        raise LogError(
            f"{path}: the ratings beside the run cannot be read.",
            why=str(error).partition("\n")[0],
            hint="Move the file away, and join the raters' files again: "
            "`tutorsim rate RUN --import FILE`.",
        ) from error
    own = (run.study_digest, run.recording_digest)
    if any((one.survey.study_digest, one.survey.recording_digest) != own for one in sheets):
        raise LogError(
            f"{path} holds ratings of another run.",
            why="The study or the recording that they name has another digest.",
            hint="Move the file to the run that it belongs to.",
        )
    return sheets
