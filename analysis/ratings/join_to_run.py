"""Joining filled-in sheets to a run: every check first, and only then a result.

A sheet is taken as its rater got it: the text of each item gives the item's id, the ids in their
order give the sheet's digest, and the run has every one of the items. Sheets that were joined
before stay; the same rater's sheet given again may say more, and nothing else.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from tutorsim.analysis.ratings.items import Item, digest_of
from tutorsim.analysis.ratings.sheet import Filled, Row, read_sheet, value_text
from tutorsim.errors import RatingFileError
from tutorsim.records import RunRecord
from tutorsim.records.ratings import RatedBy, RatedSheet, Rating, Rubric, Subject

_ASK_AGAIN: Final = "Ask the rater for the file again, or for the page's download. Nothing joined."


def joined(
    before: Sequence[RatedSheet],
    files: Iterable[Path],
    *,
    items: Mapping[Subject, Mapping[str, Item]],
    run: RunRecord,
    by: RatedBy,
) -> tuple[RatedSheet, ...]:
    """The run's sheets with those of files.

    Args:
        before: Sheets that the run has.
        files: Filled-in sheets.
        items: What of the run can be rated.
        run: The head of the run.
        by: Who filled the files in.

    Raises:
        RatingFileError: If a file was altered, is of another run, holds a value that is not on
            its scale or none at all, or says otherwise than the same rater's sheet before.
    """
    sheets = {one.sheet: one for one in before}
    for path in files:
        filled = read_sheet(path)
        _check_run(filled, run)
        _check_items(filled, items.get(filled.survey.subject, {}))
        _check_sheet(filled)
        ratings = tuple(_ratings(filled))
        if not ratings:
            raise RatingFileError(
                f"{filled.file} holds no rating.",
                why="Every `score` in it is empty.",
                hint="Give the file after the rater has filled it in.",
            )
        new = RatedSheet(
            survey=filled.survey,
            rater=filled.rater,
            by=by,
            sheet=filled.sheet,
            items=len(filled.rows),
            ratings=ratings,
        )
        sheets[new.sheet] = _grown(sheets.get(new.sheet), new, filled)
    return tuple(sheets.values())


def _check_run(filled: Filled, run: RunRecord) -> None:
    survey = filled.survey
    for name, theirs, ours in (
        ("study", survey.study_digest, run.study_digest),
        ("recording", survey.recording_digest, run.recording_digest),
    ):
        if theirs != ours:
            raise RatingFileError(
                f"{filled.file} was made from another {name}.",
                why=f"Its {name} digest is {theirs[:12] or 'empty'}…, "
                f"the run's {ours[:12] or 'empty'}….",
                hint="Point at the run that the sheet was exported from.",
            )


def _check_items(filled: Filled, items: Mapping[str, Item]) -> None:
    for row in filled.rows:
        if digest_of(row.shown) != row.item:
            raise RatingFileError(
                f"{filled.file}, row {row.line}: item {row.item} was altered.",
                why="What is `shown` there is not the text that the item's digest is of.",
                hint=_ASK_AGAIN,
            )
        if row.item not in items:
            raise RatingFileError(
                f"{filled.file}, row {row.line}: the run has no item {row.item}.",
                why=f"No text among its {filled.survey.subject} has this digest.",
                hint="Point at the run that the sheet was exported from. Nothing joined.",
            )


def _check_sheet(filled: Filled) -> None:
    found = filled.survey.sheet_digest(filled.rater, tuple(row.item for row in filled.rows))
    if found != filled.sheet:
        raise RatingFileError(
            f"{filled.file} is not the sheet that it was.",
            why="Rows are missing, doubled or in another order, or its `rater`, `number` or "
            "`survey` was changed: the sheet's digest differs.",
            hint=_ASK_AGAIN,
        )


def _ratings(filled: Filled) -> Iterator[Rating]:
    """A rating for each row with a score.

    Raises:
        RatingFileError: If a score is not on the scale.
    """
    rubric = filled.survey.rubric
    for row in filled.rows:
        if row.score:
            yield Rating(item=row.item, value=_value(filled, row, rubric), note=row.note)


def _value(filled: Filled, row: Row, rubric: Rubric) -> float:
    try:
        given = float(row.score.replace(",", "."))
    except ValueError:
        given = float("nan")
    for value in rubric.scale:
        if abs(value - given) < 1e-9:
            return value
    raise RatingFileError(
        f"{filled.file}, row {row.line}: the score {row.score!r} is not on the scale.",
        why=f"It takes one of {', '.join(map(value_text, rubric.scale))}, or nothing.",
        hint="Correct the score with its rater. Nothing joined.",
    )


def _grown(before: RatedSheet | None, new: RatedSheet, filled: Filled) -> RatedSheet:
    """A rater's sheet with what was rated since.

    Raises:
        RatingFileError: If the sheet says something else than before.
    """
    if before is None:
        return new
    if before.by != new.by:
        raise RatingFileError(
            f"{filled.file}: the sheet of rater {new.rater} was joined as filled in by "
            f"{_WHO[before.by]}, and now by {_WHO[new.by]}.",
            why="Figures carry who rated, and one sheet is filled in by one of the two.",
            hint="Give it as before, with or without --scripted. Nothing joined.",
        )
    old = {one.item: one for one in before.ratings}
    said = {one.item: one for one in new.ratings}
    for row in filled.rows:
        first, second = old.get(row.item), said.get(row.item)
        if first and second and first.value != second.value:
            raise RatingFileError(
                f"{filled.file}, row {row.line}: rater {new.rater} gives item {row.item} "
                f"{value_text(second.value)}, and gave it {value_text(first.value)} before.",
                why="A sheet that was joined can grow, and not change.",
                hint="Find out which value is meant; to take the new one, move the ratings "
                "beside the run away and join all files again. Nothing joined.",
            )
    whole = [_later(old.get(row.item), said.get(row.item)) for row in filled.rows]
    return new.model_copy(update={"ratings": tuple(one for one in whole if one is not None)})


_WHO: Final[Mapping[RatedBy, str]] = {"people": "a person", "script": "a program"}


def _later(first: Rating | None, second: Rating | None) -> Rating | None:
    """The later rating, with the earlier note where it has none."""
    if first is None or second is None:
        return second or first
    return second if second.note else first
