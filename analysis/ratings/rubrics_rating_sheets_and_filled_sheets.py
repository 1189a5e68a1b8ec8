"""A rating sheet: what raters are asked, who rates what, as CSV and as one HTML file, and back.

A filled-in sheet is taken as its rater got it: the text of each item gives the item's id, the ids
in their order give the sheet's digest, and the run has every one of the items. Every check comes
first, and only then a result. Sheets that were joined before stay; the same rater's sheet given
again may say more, and nothing else.
"""

import csv
import io
import json
import math
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any, Final, NamedTuple

from pydantic import ValidationError

from tutorsim.analysis.pages.page_in_one_file import page_of, text_of
from tutorsim.analysis.ratings.texts_to_rate_as_raters_see import Item, digest_of
from tutorsim.analysis.statistics import by_key
from tutorsim.errors import RatingFileError, UsageError
from tutorsim.records import RunRecord
from tutorsim.records.ratings import RatedBy, RatedSheet, Rating, Rubric, Subject, Survey
from tutorsim.regular_files_and_digests import read_named

# --- Rater assignment ----------------------------------------------------------------------------


@dataclass(frozen=True)
class Sheet:
    """What one rater gets."""

    survey: Survey
    rater: int
    """Number of the rater, from 1."""
    items: tuple[Item, ...]
    """Items in the order shown."""

    @property
    def digest(self) -> str:
        return self.survey.sheet_digest(self.rater, tuple(item.id for item in self.items))


def draw_sheets(items: Sequence[Item], asked: Survey) -> tuple[Sheet, ...]:
    """One sheet per rater, of all that can be rated; refused if some rater would have no item.

    Of proposals whole turns are drawn, and a turn's proposals go to the same raters: only then does
    a turn say what other winners would have delivered.

    `asked`: the survey with as many items as are wanted; that of a sheet has those that are there.
    """
    if asked.overlap > asked.items:
        raise UsageError(
            f"--overlap {asked.overlap} is more than --items {asked.items}.",
            why="The overlap is among the items that are drawn.",
            hint="Leave --overlap out, so that every rater has every item.",
        )
    groups = _drawn(items, asked)
    shared = list(_first(groups, asked.overlap))
    rest = groups[len(shared) :]
    dealt = [[*shared, *rest[rater :: asked.raters]] for rater in range(asked.raters)]
    drawn = {item.id for group in groups for item in group}
    if not all(dealt):
        raise UsageError(
            f"{asked.raters} raters share {len(drawn)} items, and some have none.",
            why="Proposals are drawn and dealt by the turn."
            if asked.subject == "proposals"
            else "The overlap leaves fewer items than raters.",
            hint="Draw more with --items, or ask fewer --raters.",
        )
    everybodys = {item.id for group in shared for item in group}
    survey = asked.model_copy(update={"items": len(drawn), "overlap": len(everybodys)})
    return tuple(
        Sheet(survey, number, _shuffled(groups, asked.seed, number))
        for number, groups in enumerate(dealt, start=1)
    )


def _place(seed: int, *parts: object) -> bytes:
    return sha256("\x1f".join(map(str, (seed, *parts))).encode()).digest()


def _drawn(items: Sequence[Item], asked: Survey) -> list[list[Item]]:
    """Groups in the order drawn, as many as the number of items has room for."""
    if asked.subject != "proposals":
        groups = [[item] for item in items]
    else:
        turns = by_key(((one.episode, one.turn), item) for item in items for one in item.places)
        groups = [list(dict.fromkeys(group)) for group in turns.values()]

    def place(group: list[Item]) -> bytes:
        return _place(asked.seed, "draw", *sorted(item.id for item in group))

    return list(_first(sorted(groups, key=place), asked.items))


def _first(groups: Sequence[list[Item]], count: int) -> Iterator[list[Item]]:
    """Groups from the first on, as long as they bring no more than so many items."""
    seen: set[str] = set()
    for group in groups:
        seen |= {item.id for item in group}
        if len(seen) > count:
            return
        yield group


def _shuffled(groups: Sequence[list[Item]], seed: int, rater: int) -> tuple[Item, ...]:
    """The items of one rater, each once, in an order of the rater's own."""
    items = {item.id: item for group in groups for item in group}
    return tuple(sorted(items.values(), key=lambda item: _place(seed, "order", rater, item.id)))


# --- Rubric --------------------------------------------------------------------------------------

_ANCHOR: Final = re.compile(
    r"^[ \t]*(\d+(?:\.\d+)?)[ \t]*[:=–-]?[ \t]+(\S.*?)[ \t]*$", re.MULTILINE
)
"""A line of the judge's prompt that says what a score means."""

_TENTHS: Final = tuple(step / 10 for step in range(11))

_MOST_VALUES: Final = 21
"""Values that fit on a screen to choose from."""

_KEYS: Final = ("name", "question", "scale", "anchors", "threshold")

_QUESTION: Final = "How correct and how well explained is the student's answer?"

_OF_PROGRAMS: Final = (
    "Of a program, rate how well the student's own words show that the algorithm is understood; "
    "tests judge the code."
)


def value_text(value: float) -> str:
    """A value of a scale as raters see it."""
    return f"{value:g}"


def reply_rubric(*, labelled: bool) -> Rubric:
    """The rubric of a tutor's reply, on the scale of oversight's labels of guidance.

    `labelled`: the run's own labels are of the replies, so that people's scores meet them.
    """
    return Rubric(
        name="reply",
        question="Does the tutor's reply guide this student to the next step?",
        scale=(0.0, 1.0, 2.0),
        anchors={
            "0": "no guidance: none at all, or the answer itself",
            "1": "guides in part: vague, incomplete, or partly wrong",
            "2": "guides: the student can take the next step alone",
        },
        threshold=2.0,
        of_judge=labelled,
    )


def judge_rubric(prompt: str, *, threshold: float, programs: bool = False) -> Rubric | None:
    """The rubric that a model judge's prompt states for answers: tenths from 0 to 1, its anchors.

    `programs`: some answers are programs, of which the judge scores the words alone. `None` where
    the prompt has no two lines that begin with a score in [0, 1].
    """
    found = {float(value): text for value, text in _ANCHOR.findall(prompt) if float(value) <= 1}
    if len(found) < 2:
        return None
    question = f"{_QUESTION} {_OF_PROGRAMS}" if programs else _QUESTION
    return Rubric(
        name="judge",
        question=question,
        scale=tuple(sorted({*_TENTHS, *found})),
        anchors={value_text(value): found[value] for value in sorted(found)},
        threshold=threshold,
        of_judge=True,
    )


def read_rubric(path: Path) -> Rubric:
    """Read a rubric of the user's own.

    The file has `question`, `scale` (a list of numbers) and, as far as wanted, `name`,
    `threshold` and a table `[anchors]` from a value of the scale to what it means.

    Raises:
        RatingFileError: If the file cannot be read, or a value in it cannot be used.
    """
    try:
        data = tomllib.loads(read_named(path).decode("utf-8-sig"))
    except (OSError, ValueError) as error:
        raise _refusal(path, "it cannot be read", str(error)) from error
    strangers = sorted(set(data) - set(_KEYS))
    if strangers:
        raise _refusal(path, f"{strangers[0]} is no key of a rubric", f"It has {', '.join(_KEYS)}.")
    scale = _scale(path, data)
    threshold = data.get("threshold")
    if threshold is not None and not (_is_number(threshold) and scale[0] < threshold <= scale[-1]):
        why = f"The scale goes from {value_text(scale[0])} to {value_text(scale[-1])}."
        raise _refusal(path, f"threshold = {threshold!r} parts nothing", why)
    return Rubric(
        name=_text(path, data, "name", path.stem),
        question=_text(path, data, "question", None),
        scale=scale,
        anchors=_anchors(path, data, scale),
        threshold=threshold,
    )


def _refusal(path: Path, what: str, why: str) -> RatingFileError:
    return RatingFileError(
        f"{path}: {what}.", why=why, hint="`tutorsim guide rating` shows a rubric."
    )


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _text(path: Path, data: Mapping[str, Any], key: str, usual: str | None) -> str:
    value = data.get(key, usual)
    if not isinstance(value, str) or not value.strip():
        raise _refusal(path, f"{key} = {value!r} says nothing", "It is what raters read.")
    return value.strip()


def _scale(path: Path, data: Mapping[str, Any]) -> tuple[float, ...]:
    given = data.get("scale")
    if not isinstance(given, list) or not all(map(_is_number, given)):
        raise _refusal(path, f"scale = {given!r} is no list of numbers", "Raters choose from it.")
    values = tuple(float(value) for value in given)
    if not 2 <= len(values) <= _MOST_VALUES or list(values) != sorted(set(values)):
        why = f"It takes 2 to {_MOST_VALUES} different values, the least first."
        raise _refusal(path, f"scale = {given!r} cannot be used", why)
    if len({value_text(value) for value in values}) < len(values):
        raise _refusal(path, f"scale = {given!r} cannot be used", "Two values are written alike.")
    return values


def _anchors(path: Path, data: Mapping[str, Any], scale: tuple[float, ...]) -> dict[str, str]:
    """Anchors by the value as raters see it, in the order of the scale."""
    given = data.get("anchors", {})
    shown = [value_text(value) for value in scale]
    found: dict[str, str] = {}
    for key in given if isinstance(given, dict) else ():
        try:
            found[value_text(float(key))] = _text(path, given, key, None)
        except ValueError as error:
            raise _refusal(path, f"[anchors]: {key!r} is no number", _QUOTED) from error
    strangers = [key for key in found if key not in shown]
    if strangers or not isinstance(given, dict):
        why = f"The scale is {', '.join(shown)}. {_QUOTED}"
        raise _refusal(path, f"[anchors]: {(strangers or [given])[0]!r} is not on the scale", why)
    return {value: found[value] for value in shown if value in found}


_QUOTED: Final = 'A value with a point stands in quotes: "0.5" = "…".'


# --- Sheet csv -----------------------------------------------------------------------------------

COLUMNS: Final = ("number", "shown", "score", "note", "item", "rater", "sheet", "survey")
"""`shown` is all that the rater read, `item` its digest, `sheet` a digest over survey and items."""

_WRITTEN: Final = ("number", "shown", "scale", *COLUMNS[2:])
"""A sheet to be filled in says beside each item what is asked; nothing is read back from there."""

_SEPARATORS: Final = (",", ";", "\t")
"""What spreadsheets of this world put between columns."""

_KEPT: Final = "Give the file as the page or `tutorsim rate --export` wrote it, only filled in."


class Filled(NamedTuple):
    """A sheet as a rater gave it back, read and not yet checked against a run."""

    file: str
    survey: Survey
    rater: int
    sheet: str
    rows: tuple[tuple[int, Mapping[str, str]], ...]
    """Row in the file and cells by column of each item, in the order of the sheet.

    Rows count from 2; the first one has the names of the columns.
    """


def sheet_csv(sheet: Sheet) -> str:
    """A sheet to be filled in: `score` and `note` are empty."""
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\r\n")
    writer.writerow(_WRITTEN)
    rubric = sheet.survey.rubric
    values = f"One of {', '.join(map(value_text, rubric.scale))}."
    anchors = [f"{value}: {text}" for value, text in rubric.anchors.items()]
    asked = "\n".join((rubric.question, values, *anchors))
    told = (sheet.rater, sheet.digest, sheet.survey.text())
    for number, item in enumerate(sheet.items, start=1):
        writer.writerow((number, item.text, asked, "", "", item.id, *told))
    return text.getvalue()


def read_sheet(path: Path) -> Filled:
    """Read a filled-in sheet.

    Raises `RatingFileError` if the file is no rating sheet, or its rows are of several.
    """
    rows = _rows(path)
    one = {name: {row[name] for row in rows} for name in ("rater", "sheet", "survey")}
    for name, values in one.items():
        if len(values) > 1:
            raise _edited(
                f"{path}: its rows have {len(values)} different values of `{name}`.",
                "A file holds the sheet of one rater; this one was put together or edited.",
            )
    [rater], [sheet], [survey] = one.values()
    try:
        in_order = sorted(enumerate(rows, start=2), key=lambda one: int(one[1]["number"]))
        of = Survey.model_validate(json.loads(survey))
        return Filled(str(path), of, int(rater), sheet, tuple(in_order))
    except (ValueError, ValidationError) as error:
        raise _edited(
            f"{path}: `number`, `rater` or `survey` is not as it was written.",
            str(error).partition("\n")[0],
        ) from error


def _edited(what: str, why: str) -> RatingFileError:
    return RatingFileError(what, why=why, hint=_KEPT)


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
        raise _edited(
            f"{path} is no rating sheet: it has no column {missing[0]!r}.",
            f"A sheet has {', '.join(COLUMNS)}.",
        )
    if not rows or any(row.get(name) is None for row in rows for name in COLUMNS):
        what = "no row" if not rows else "a row that is cut short"
        raise _edited(f"{path} has {what}.", "The file was cut or edited.")
    return rows


# --- Sheet page ----------------------------------------------------------------------------------

_PACKAGE: Final = "tutorsim.analysis.ratings"


def sheet_page(sheet: Sheet) -> str:
    """The page of a sheet. The same sheet gives the same text."""
    rubric = sheet.survey.rubric
    return page_of(
        _PACKAGE,
        "sheet.html.j2",
        style=text_of(_PACKAGE, "sheet.css"),
        script=text_of(_PACKAGE, "sheet.js"),
        rater=sheet.rater,
        question=rubric.question,
        sheet={  # for the script: nothing of roles, rules or conditions
            "file": f"ratings-{sheet.rater}-{sheet.digest[:8]}.csv",
            "columns": COLUMNS,
            "rater": sheet.rater,
            "sheet": sheet.digest,
            "survey": sheet.survey.text(),
            "values": [value_text(value) for value in rubric.scale],
            "anchors": rubric.anchors,
            "items": [{"item": item.id, "blocks": item.blocks} for item in sheet.items],
        },
    )


# --- Filled-in sheets joined to a run ------------------------------------------------------------

_ASK_AGAIN: Final = "Ask the rater for the file again, or for the page's download. Nothing joined."


def joined(
    before: Sequence[RatedSheet],
    files: Iterable[Path],
    *,
    items: Mapping[Subject, Mapping[str, Item]],
    run: RunRecord,
    by: RatedBy,
) -> tuple[RatedSheet, ...]:
    """The run's sheets with filled-in ones of files, and who filled them in.

    A file is refused that was altered, is of another run, holds a value that is not on its scale or
    none at all, or says otherwise than the same rater's sheet before.
    """
    sheets = {one.sheet: one for one in before}
    for path in files:
        filled = read_sheet(path)
        for what, why, hint in _faults(filled, items.get(filled.survey.subject, {}), run):
            raise RatingFileError(what, why=why, hint=hint)
        ratings = tuple(
            Rating(item=row["item"], value=_value(filled, line, score), note=row["note"].strip())
            for line, row in filled.rows
            if (score := row["score"].strip())
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


def _faults(
    filled: Filled, items: Mapping[str, Item], run: RunRecord
) -> Iterator[tuple[str, str, str]]:
    """What is wrong with a sheet, why, and what to do next."""
    survey = filled.survey
    for name, theirs, ours in (
        ("study", survey.study_digest, run.study_digest),
        ("recording", survey.recording_digest, run.recording_digest),
    ):
        if theirs != ours:
            yield (
                f"{filled.file} was made from another {name}.",
                f"Its {name} digest is {theirs[:12] or 'empty'}…, "
                f"the run's {ours[:12] or 'empty'}….",
                "Point at the run that the sheet was exported from.",
            )
    for line, row in filled.rows:
        if digest_of(row["shown"]) != row["item"]:
            yield (
                f"{filled.file}, row {line}: item {row['item']} was altered.",
                "What is `shown` there is not the text that the item's digest is of.",
                _ASK_AGAIN,
            )
        if row["item"] not in items:
            yield (
                f"{filled.file}, row {line}: the run has no item {row['item']}.",
                f"No text among its {survey.subject} has this digest.",
                "Point at the run that the sheet was exported from. Nothing joined.",
            )
    in_order = tuple(row["item"] for _, row in filled.rows)
    if survey.sheet_digest(filled.rater, in_order) != filled.sheet:
        yield (
            f"{filled.file} is not the sheet that it was.",
            "Rows are missing, doubled or in another order, or its `rater`, `number` or "
            "`survey` was changed: the sheet's digest differs.",
            _ASK_AGAIN,
        )
    if not any(row["score"].strip() for _, row in filled.rows):
        yield (
            f"{filled.file} holds no rating.",
            "Every `score` in it is empty.",
            "Give the file after the rater has filled it in.",
        )


def _value(filled: Filled, line: int, score: str) -> float:
    """The value of the scale that the score of a row is."""
    scale = filled.survey.rubric.scale
    try:
        given = float(score.replace(",", "."))
    except ValueError:
        given = float("nan")
    for value in scale:
        if abs(value - given) < 1e-9:
            return value
    raise RatingFileError(
        f"{filled.file}, row {line}: the score {score!r} is not on the scale.",
        why=f"It takes one of {', '.join(map(value_text, scale))}, or nothing.",
        hint="Correct the score with its rater. Nothing joined.",
    )


def _grown(before: RatedSheet | None, new: RatedSheet, filled: Filled) -> RatedSheet:
    """A rater's sheet with what was rated since; refused if it says something else than before."""
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
    whole = []
    for line, row in filled.rows:
        first, second = old.get(row["item"]), said.get(row["item"])
        if first and second and first.value != second.value:
            raise RatingFileError(
                f"{filled.file}, row {line}: rater {new.rater} gives item {row['item']} "
                f"{value_text(second.value)}, and gave it {value_text(first.value)} before.",
                why="A sheet that was joined can grow, and not change.",
                hint="Find out which value is meant; to take the new one, move the ratings "
                "beside the run away and join all files again. Nothing joined.",
            )
        # The later rating, with the earlier note where it has none.
        later = first if first and (second is None or not second.note) else second
        whole += [] if later is None else [later]
    return new.model_copy(update={"ratings": tuple(whole)})


_WHO: Final[Mapping[RatedBy, str]] = {"people": "a person", "script": "a program"}
