"""Rows and columns of a Parquet, CSV or JSON file as they stand, before any meaning is read.

CSV may use commas, semicolons, tabs or bars; its heading says which. Text that is not UTF-8 is read
as UTF-16, if it says so, or as Windows-1252, which is noted; so are lines of comment. JSON is one
object a line, one list of objects, or lists and objects in one another: what stands around a ballot
is a column of it, and an object whose keys are voters has a ballot for each.
"""

import codecs
import csv
import io
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import takewhile
from pathlib import Path
from typing import Any, Final

import orjson
import polars as pl

from tutorsim.analysis.ballots.malformed_rows import FileRows, unreadable
from tutorsim.analysis.ballots.reading_options_and_column_words import (
    COLUMN_WORDS,
    WHO_CHOSE,
    column_named,
    plain,
)
from tutorsim.errors import BallotFileError
from tutorsim.regular_files_and_digests import open_named, read_named

_SEPARATORS: Final = ",;\t|"
_HEAD: Final = 1 << 16
"""Characters that are looked at to find the separator."""
FORMULA: Final = "'*[=+\\-@\t\r\n＝＋－＠]"
"""How a cell begins that a spreadsheet would run, or that has had apostrophes set before it."""


def read_cells(file: Path, frame: pl.DataFrame | None = None) -> FileRows:
    """Read the rows of a file; blank lines are no rows, and are counted.

    Its columns are those of the file, and as `row`, the first one, the data row's number from 1.
    Cells are text, but in Parquet numbers, truths and times are of the column's own type.

    `file`: the file; or what a frame is called. Raises `BallotFileError` if the file cannot be
    read, has no rows, or has a column twice.
    """
    try:
        read = FileRows(frame, file) if frame is not None else _READERS[file.suffix.lower()](file)
        rows = read.with_frame(_with_texts(read.frame))
    except (
        OSError,
        UnicodeDecodeError,
        pl.exceptions.PolarsError,
        pl.exceptions.PanicException,
    ) as error:
        raise unreadable(file, str(error).splitlines()[0]) from error
    if rows.frame.height == 0:
        raise unreadable(file, "it has no rows")
    rows = _with_one_heading(rows)
    table = _without_empty_columns(rows.frame, file)
    doubled = [name.removesuffix(_TWICE) for name in table.columns if name.endswith(_TWICE)]
    if doubled:
        raise unreadable(file, f"it has the column {doubled[0]} more than once")
    frame = table.rename({"row": "row "} if "row" in table.columns else {}).with_row_index("row", 1)
    rows = rows.with_frame(frame.filter(~pl.all_horizontal(pl.exclude("row").is_null())))
    if rows.frame.height == 0:
        raise unreadable(file, "all of its rows are blank")
    return _without_remarks(_without_survey_headings(rows))


def _without_remarks(rows: FileRows) -> FileRows:
    """Rows without those of one cell in round brackets; these cells are comments."""
    frame = rows.frame
    texts = [name for name in frame.columns[1:] if frame.schema[name] == pl.String]
    if len(texts) < 2 or len(texts) < frame.width - 1:
        return rows
    alone = pl.sum_horizontal(pl.col(texts).is_not_null()) == 1
    remark = alone & pl.any_horizontal(pl.col(texts).str.contains(r"^\(.*\)$").fill_null(False))
    found = frame.filter(remark).select(pl.coalesce(texts)).to_series()
    if not 0 < len(found) < frame.height:
        return rows
    for text in found:
        rows = rows.note(f"a row that holds only the remark {text} was passed over")
    return replace(rows, frame=frame.filter(~remark), comments=(*rows.comments, *found))


def _nameless(frame: pl.DataFrame) -> list[str]:
    return [n for n in frame.columns if not n.strip() or re.fullmatch(r"_duplicated_\d+", n)]


def _with_one_heading(rows: FileRows) -> FileRows:
    """A table whose second line names the options of questions in the first, with one column a
    question: as surveys are exported in which each option has a column of its own."""
    frame = rows.frame
    if frame.height < 2 or not all(kind == pl.String for kind in frame.dtypes):
        return rows
    nameless, below = _nameless(frame), frame.row(0, named=True)
    ticked = [n for n in frame.columns if below[n] and set(frame[n][1:]) == {below[n], None}]
    whole = all(below[name] for name in nameless) and below[frame.columns[0]] is None
    if not whole or len(ticked) < 2 or not set(nameless).intersection(ticked):
        return rows
    questions: dict[str, list[str]] = {}
    for name in frame.columns:
        question = next(reversed(questions), name) if name in nameless else name
        questions.setdefault(question, []).append(name)
    cells = (
        pl.concat_str(several, separator=";", ignore_nulls=True).replace("", None).alias(question)
        for question, several in questions.items()
    )
    told = "a second line of headings was passed over, and the options of a question put together"
    return rows.with_frame(frame.slice(1).select(cells), told)


def _without_empty_columns(frame: pl.DataFrame, file: Path) -> pl.DataFrame:
    """Columns without a name and without cells go; one that has cells is refused, if the heading
    names fewer columns than it leaves out: it is a title."""
    nameless = _nameless(frame)
    frame = frame.drop(n for n in nameless if frame.get_column(n).is_null().all())
    held = [name for name in nameless if name in frame.columns]
    if len(held) < 2:
        return frame
    named = [name for name in frame.columns if name not in held]
    raise unreadable(
        file,
        f"its first line names {len(named)} of {frame.width} columns: {', '.join(named) or 'none'}",
        "The heading is the first line, with a name for each column: take out lines above it.",
    )


_SURVEY: Final = '{"ImportId"'
"""How each cell of the last row of headings begins in exports of surveys by Qualtrics."""


def _without_survey_headings(rows: FileRows) -> FileRows:
    """Rows without the two of headings that an export of a survey has below the first."""
    frame, cells = rows.frame, pl.exclude("row")
    if frame.height < 3 or any(frame.schema[n] != pl.String for n in frame.columns[1:]):
        return rows
    ids = frame.select(pl.all_horizontal(cells.str.starts_with(_SURVEY).fill_null(True)))
    if ids.to_series().arg_true().to_list() != [1]:
        return rows
    told = "two more rows of headings, as surveys export them, were passed over"
    return rows.with_frame(frame.slice(2), told)


_TWICE: Final = "_duplicated_0"
"""What polars adds to the name of a column that stands twice."""


def _with_formulas(rows: FileRows) -> FileRows:
    """The cells as they were before an export made them safe for spreadsheets."""
    kept = pl.col(pl.String).str.contains(f"^'{FORMULA}")
    cells = sum(rows.frame.select(kept.sum()).row(0)) if rows.frame.width else 0
    if not cells:
        return rows
    note = (
        f"{cells} cell{'s begin' if cells > 1 else ' begins'} with an apostrophe that keeps a "
        "spreadsheet from running it; it is no part of the cell"
    )
    return rows.with_columns(pl.col(pl.String).str.replace(f"^'({FORMULA})", "${1}"), text=note)


def _read_csv(file: Path) -> FileRows:
    text, notes = _decoded(read_named(file), file)
    said, comments = _SAID.match(text), tuple[str, ...]()
    if said is not None:
        text = text[said.end() :]
    if text.startswith("#") or "\n#" in text:
        text, comments = _without_comments(text)
    elif said is None:
        _refuse_lines_above(text[:_HEAD], file)
    if comments:
        notes += (f"comments, from “#” on, were passed over in {len(comments)} of the lines",)
    sign = said[1] if said else _separator(text[:_HEAD])
    try:
        frame = pl.read_csv(text.encode(), infer_schema=False, separator=sign)
    except pl.exceptions.ComputeError as error:
        raise _uneven(text, sign, file) from error
    return _with_formulas(FileRows(frame, file, notes, comments))


_UTF_16: Final = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_IS_COMMENT: Final = re.compile(r"#(?![,;|\t])")
_SAID: Final = re.compile(r"\Asep=(.)[ \t]*\r?\n")
"""The line in which a spreadsheet says what parts cells."""


def _refuse_lines_above(text: str, file: Path) -> None:
    """Two or more lines of one cell above a heading of several, as a title or a legend has."""
    whole = text[: text.rfind("\n") + 1].splitlines()
    lines = [(i, "".join(s.split('"')[::2])) for i, s in enumerate(whole, 1) if s.strip()]
    sign = _separator(lines[-1][1] if lines else "")
    width = lines[-1][1].count(sign) if lines else 0
    start = next((i for i, s in lines if s.count(sign) == width), 1)
    above = [s for i, s in lines if i < start]
    if width and len(above) > 1 and not any(mark in s for s in above for mark in _SEPARATORS):
        raise unreadable(
            file,
            f"its first line has one cell, {whole[0][:60]}, and line {start} has {width + 1}",
            f"The heading is the first line: take out those above line {start}; if they say what "
            "the cells stand for, write that into the cells.",
        )


def _uneven(text: str, sign: str, file: Path) -> BallotFileError:
    """Refuses a table that has more cells in a row than its heading has names."""
    lines = list(csv.reader(io.StringIO(text, newline=None), delimiter=sign))
    heading = next((line for line in lines if line), [])
    row = next((i for i, line in enumerate(lines, 1) if len(line) > len(heading)), 0)
    alike = all(len(line) == len(lines[row - 1]) for line in lines[row - 1 :] if line)
    more = "name every column in it, or " if alike and len(heading) > 1 else ""
    return unreadable(
        file,
        f"line {row} has {len(lines[row - 1])} cells, and the heading names {len(heading)}",
        f"The heading is the first line: {more}take out a title above it; put quotation marks "
        "around a cell that holds the sign between cells.",
    )


def _decoded(data: bytes, file: Path) -> tuple[str, tuple[str, ...]]:
    if data.startswith(_UTF_16):
        return data.decode("utf-16"), ("its text is UTF-16",)
    try:
        return data.decode("utf-8-sig"), ()
    except UnicodeDecodeError:
        pass
    try:
        return data.decode("cp1252"), ("its text is not UTF-8 and was read as Windows-1252",)
    except UnicodeDecodeError as error:
        why = f"its text is neither UTF-8 nor Windows-1252 (byte {error.start + 1})"
        raise unreadable(file, why, "Save it as UTF-8.") from error


def _without_comments(text: str) -> tuple[str, tuple[str, ...]]:
    """The text without lines of comment, which begin with “#” and a blank, or stand before the
    heading, or have no cells. A line of cells of which the first begins with “#” is none."""
    lines = text.splitlines(keepends=True)
    start = next((i for i, s in enumerate(lines) if s.strip() and not _IS_COMMENT.match(s)), 0)
    heading = lines[start] if lines else ""
    sign = _separator(heading)
    told = [
        bool(_IS_COMMENT.match(line))
        and (i < start or line[1:2].isspace() or line.count(sign) != heading.count(sign))
        for i, line in enumerate(lines)
    ]
    comments = tuple(line.strip() for line, one in zip(lines, told, strict=True) if one)
    if not comments:
        return text, ()
    rows = zip(lines[start:], told[start:], strict=True)
    return "".join(line for line, one in rows if not one), comments


def _read_parquet(file: Path) -> FileRows:
    open_named(file).close()
    return FileRows(pl.read_parquet(file.absolute(), glob=False, hive_partitioning=False), file)


def _separator(head: str) -> str:
    """What stands between the names of the heading; a comma where nothing does."""
    heading = next((line for line in head.splitlines() if line.strip()), "")
    outside = "".join(heading.split('"')[::2])
    return max(_SEPARATORS, key=outside.count)


def _read_blt(file: Path) -> FileRows:
    """Ballots of a single transferable vote: numbers of candidates in order, and how many cast it.

    A candidate who withdrew is left out of every order, and told.
    """
    text, notes = _decoded(read_named(file), file)
    lines = [line.split("#")[0].strip() for line in text.splitlines()]
    head, *rest = [line for line in lines if line] or [""]
    out = [line.split() for line in rest if line.startswith("-")]
    ballots = list(takewhile(lambda line: line != "0", (x for x in rest if not x.startswith("-"))))
    names = [line.strip('"') for line in rest if line.startswith('"')]
    try:
        m, gone = int(head.split()[0]), {-int(number) for one in out for number in one}
        orders = [[int(number) for number in line.split()[1:-1]] for line in ballots]
        strange = gone.union(*orders) - {*range(1, m + 1)}
        if strange:
            raise ValueError(f"a ballot names {min(strange)}, and candidates are 1 to {m}")
        called = [[names[number - 1] for number in order if number not in gone] for order in orders]
    except (ValueError, IndexError) as error:
        why = f"it is no BLT file whose ballots are strict orders: {error}"
        raise unreadable(file, why) from error
    if len(names) < m or any(not line.endswith(" 0") for line in ballots):
        raise unreadable(file, "a ballot does not end in 0, or a candidate has no name")
    if gone:
        notes += (f"withdrawn and in no order: {', '.join(names[i - 1] for i in sorted(gone))}",)
    standing = orjson.dumps([name for i, name in enumerate(names[:m], 1) if i not in gone]).decode()
    rows = [
        {"weight": line.split()[0], "ranking": orjson.dumps(order).decode(), "candidates": standing}
        for line, order in zip(ballots, called, strict=True)
    ]
    return FileRows(pl.DataFrame(rows), file, notes)


def _read_json_lines(file: Path) -> FileRows:
    values: list[Mapping[str, Any]] = []
    for number, line in enumerate(read_named(file).splitlines(), start=1):
        try:
            value = orjson.loads(line) if line.strip() else {}
        except ValueError as error:
            raise unreadable(file, f"row {number} is no JSON object: {error}") from error
        if not isinstance(value, dict):
            raise unreadable(file, f"row {number} is no JSON object: {line[:60]!r}")
        values.append(value)
    return FileRows(_of_objects(row for value in values for row in _rows_in(value, {})), file)


def _read_json(file: Path) -> FileRows:
    try:
        values = orjson.loads(read_named(file))
    except ValueError as error:
        raise unreadable(file, f"it is no JSON: {error}") from error
    rows = list(_rows_in(values, {}))
    if not rows:
        raise unreadable(file, "its JSON holds no objects")
    return FileRows(_of_objects(rows), file)


_GATHER: Final = (
    *("votes", "ballots", "rankings", "scores", "ratings", "preferences", "choices", "approvals"),
    *("points", "answers", "options", "reactions", "results", "data", "items", "questions"),
    *("polls", "tasks", "rounds"),
)
"""Keys that ballots stand under."""
_COLUMNS: Final = frozenset(word for name, words in COLUMN_WORDS.items() for word in (name, *words))
_ROW_KEY: Final = re.compile(rf"_id$|winner|^({'|'.join(WHO_CHOSE)})$")
"""Keys of an object that is a row, beside words for our columns."""


def _rows_in(value: object, around: Mapping[str, Any], key: str = "") -> Iterator[dict[str, Any]]:
    """Every ballot in nested lists and objects, with columns `around` it and its `key`."""
    if isinstance(value, list):
        for one in value:
            yield from _rows_in(_of_its_kind(one, key), around)
    elif isinstance(value, dict):
        names = value.get("candidates")
        if isinstance(names, dict) and all(isinstance(name, str) for name in names.values()):
            rest = {name: held for name, held in value.items() if name != "candidates"}
            value = {"candidates": [*names.values()], **_called(rest, names)}
        inside = {name: held for name, held in value.items() if _holds_objects(held)}
        bare = {name: held for name, held in value.items() if name not in inside}
        if not inside:
            yield from _of_plain(bare, around, key)
        elif any(column_named(name, bare) for name in ("choice", "ranking", "candidate")):
            named = {
                n: held.get("name", held.get("id"))
                for n, held in inside.items()
                if isinstance(held, dict)
            }
            yield {**around, **bare, **named}
        elif bare or any(name in _GATHER or _are_voters(name) for name in inside):
            holder = next((name for name in _GATHER if name in inside), next(iter(inside)))
            rest = {name: held for name, held in inside.items() if name != holder}
            yield from _rows_in(inside[holder], {**around, **bare, **rest}, holder)
        else:
            numbers = all(map(_are_numbers, inside.values())) and not _names_voter(around)
            kind = "voter" if numbers or _are_voters(key) else "episode_id"
            for name, held in inside.items():
                yield from _rows_in(held, {**around, kind: name}, key)


def _are_voters(key: str) -> bool:
    """Whether a key says that those below it are voters, as “judges” does."""
    return key.endswith("s") and column_named("voter", [key.removesuffix("s")]) is not None


def _called(value: Any, names: Mapping[str, str]) -> Any:
    """Ballots with the candidates' names in place of what the file calls them."""
    if isinstance(value, dict):
        return {names.get(key, key): _called(held, names) for key, held in value.items()}
    if isinstance(value, list):
        return [_called(held, names) for held in value]
    return names.get(value, value) if isinstance(value, str) else value


def _of_its_kind(value: object, key: str) -> object:
    """An object of a list of polls whose `id` is the poll's, said so."""
    kind = f"{key.removesuffix('s')}_id"
    if isinstance(value, dict) and "id" in value and kind in COLUMN_WORDS["episode_id"]:
        return {kind if name == "id" else name: held for name, held in value.items()}
    return value


def _of_plain(
    held: Mapping[str, Any], around: Mapping[str, Any], key: str
) -> Iterator[dict[str, Any]]:
    """A row; or, of an object whose keys are voters, or orders with numbers of voters, one for
    each."""
    if _are_numbers(held) and all(">" in name for name in held):
        for order, voters in held.items():
            yield {**around, "ranking": order, "weight": voters}
        return
    known = not key and any(plain(n) in _COLUMNS or _ROW_KEY.search(plain(n)) for n in held)
    if known or not held or _names_voter(around) or _are_numbers(held):
        yield {**around, **held}
        return
    lists = any(isinstance(one, list) for one in held.values())
    said = next(
        (n for n in ("approvals", "ranking") if column_named(n, [key, f"{key.rstrip('s')}"])), ""
    )
    column = "choice" if not lists else said or "list"
    for voter, one in held.items():
        yield {**around, "voter": voter, column: one}


def _names_voter(around: Mapping[str, Any]) -> bool:
    return column_named("voter", around) is not None


def _are_numbers(held: object) -> bool:
    """Whether an object holds numbers, and nothing else but what is missing."""
    values = [one for one in held.values() if one is not None] if isinstance(held, dict) else []
    return bool(values) and all(isinstance(one, int | float) for one in values)


def _holds_objects(held: object) -> bool:
    if isinstance(held, list):
        return any(map(_holds_objects, held)) or any(isinstance(one, dict) for one in held)
    return isinstance(held, dict)


def _of_objects(values: Iterable[Mapping[str, Any]]) -> pl.DataFrame:
    """One row an object, with JSON's values as a CSV cell would hold them; a name that some lack is
    missing there."""
    rows = [{name: _text(held) for name, held in value.items()} for value in values]
    names = dict.fromkeys((name for row in rows for name in row), pl.String())
    return pl.DataFrame({name: [row.get(name) for row in rows] for name in names}, schema=names)


def _with_texts(frame: pl.DataFrame) -> pl.DataFrame:
    """A table whose lists, structures, bytes and columns of no type are texts."""
    kinds = pl.Binary, pl.Duration, pl.Null, pl.Object
    odd = [name for name, kind in frame.schema.items() if kind.is_nested() or kind in kinds]
    cells = {name: [_text(value) for value in frame.get_column(name).to_list()] for name in odd}
    return frame.with_columns(pl.Series(n, held, pl.String) for n, held in cells.items())


def _text(value: object) -> str | None:
    """A value as a CSV cell would hold it: text as it stands, anything else as JSON has it."""
    if isinstance(value, bytes):
        return value.decode(errors="replace")
    return value if isinstance(value, str | None) else orjson.dumps(value, default=str).decode()


_READERS: Final[Mapping[str, Callable[[Path], FileRows]]] = {
    ".parquet": _read_parquet,
    ".csv": _read_csv,
    ".tsv": _read_csv,
    ".jsonl": _read_json_lines,
    ".json": _read_json,
    ".blt": _read_blt,
}
CELL_SUFFIXES: Final = tuple(_READERS)
"""Endings of the files that `read_cells` reads."""
