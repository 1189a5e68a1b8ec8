"""Rows that are whole ballots: places, lists in a cell, columns, raw replies, written numbers."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from string import ascii_uppercase
from typing import Final, NamedTuple, Self, cast

import polars as pl

from tutorsim.analysis.ballots.malformed_rows import EXAMPLE, FileRows, columns_doubled
from tutorsim.analysis.ballots.names_and_properties_of_ballot_formats import FORMATS
from tutorsim.analysis.ballots.reading_options_and_column_words import (
    NO_HINTS,
    PLACE_WORDS,
    STAGE_WORDS,
    YES_OR_NO,
    Hints,
    named_in,
    plain,
    says_nobody,
    spellings,
)
from tutorsim.ballot_reading_and_decisions import (
    Choice,
    masses_of,
    read_ballot,
    repair_ballot,
    resolve,
)
from tutorsim.errors import BallotFileError, UsageError
from tutorsim.vocabularies import CUMULATIVE_BUDGET, BallotFormat, Protocol

# --- Raw reply column ----------------------------------------------------------------------------

_APART: Final = re.compile(r"[,;|>]")
_LABELLED: Final = re.compile(r"([A-Za-z])\s*[=:]\s*(.+)")


def of_replies(rows: "Rows", protocol: str | None) -> "Rows":
    """Every reply as a ballot; one that is none is an abstention, and a note counts them.

    The lenient reader is used, since nobody can be asked again. A reply may name candidates by
    label or by name: candidates stand in the order of their labels, in the column `candidates` or
    in the hints. Without either, or without a protocol, a `BallotFileError` says so.
    """
    if protocol is None:
        raise BallotFileError(
            f"{rows.file} has raw replies, and nothing says which ballots they are.",
            why="A reply is read under one protocol.",
            hint="Add --protocol simple, ranked, cumulative or approval.",
        )
    form = cast(BallotFormat, protocol)
    budget = rows.hints.budget or CUMULATIVE_BUDGET
    found: list[dict[str, object]] = []
    silent = 0
    for row in rows.frame.iter_rows(named=True):
        labels = _labels(row.get("candidates"), rows)
        choice = _read(str(row["reply"] or ""), labels, form, budget)
        silent += choice is None
        named = None if choice is None else resolve(choice, labels)
        masses = masses_of(named, tuple(labels.values()), protocol=cast(Protocol, form))
        status = "valid" if choice is not None else "abstained"
        kept = {name: cell for name, cell in row.items() if name not in ("reply", "candidates")}
        for label, candidate in labels.items():
            cell = masses.get(candidate, 0) if masses else None
            cells = {"candidate": candidate, "label": label, "mass": cell}
            found.append({**kept, **cells, "ballot_status": status, "protocol": protocol})
    points = f" of {budget} points" if FORMATS[protocol].budget else ""
    return rows.with_frame(
        pl.DataFrame(found, infer_schema_length=None),
        f"{rows.frame.height} raw replies read leniently as {protocol} ballots{points}, "
        f"{silent} of them unreadable and so abstentions",
    )


def _labels(cell: object, rows: "Rows") -> dict[str, str]:
    """Label → candidate, as one reply's voter saw them."""
    names = [part.strip() for part in _APART.split(str(cell))] if cell else rows.hints.candidates
    if not names:
        raise BallotFileError(
            f"{rows.file} has raw replies, and nothing says what their labels stand for.",
            why="There is no column candidates.",
            hint="Add --candidates ann,ben,cid for the labels A, B, C.",
        )
    found: dict[str, str] = {}
    for letter, name in zip(ascii_uppercase, names, strict=False):
        labelled = _LABELLED.fullmatch(name)
        found |= {labelled[1].upper(): labelled[2].strip()} if labelled else {letter: name}
    return found


def _read(reply: str, labels: Mapping[str, str], form: BallotFormat, budget: int) -> Choice | None:
    """The ballot over labels; names of candidates count as their labels.

    A reply under simple voting that names a single candidate in a sentence is a vote for it.
    """
    by_name = {name.casefold(): label for label, name in labels.items()}
    longest = sorted(by_name, key=len, reverse=True)
    pattern = "|".join(rf"(?<!\w){re.escape(name)}(?!\w)" for name in longest)
    said = re.sub(pattern, lambda m: by_name[m[0].casefold()], reply, flags=re.IGNORECASE)
    shown: Sequence[str] = tuple(labels)
    for text in dict.fromkeys((reply, said)):
        choice = read_ballot(text, shown, form=form, budget=budget, reading="lenient")
        if choice is not None:
            return choice
    named = {by_name[found.casefold()] for found in re.findall(pattern, reply, re.IGNORECASE)}
    if form == "simple" and len(named) == 1:
        return named.pop()
    return repair_ballot(said, shown, form=form, budget=budget)


# --- Written numbers -----------------------------------------------------------------------------

_DASHES: Final = ["-", "–", "—", "--"]
"""No beside words, and no number beside numbers."""
_DIGITS: Final = 4
"""Digits behind the point that points may have."""


class Guess(NamedTuple):
    """What the numbers of all ballots fit."""

    protocol: str
    because: str
    ranks: bool = False
    """Whether the numbers go from 1 to the number of candidates: ranks, or points from 1."""
    from_zero: bool = False
    """Whether they go from 0 to one less: points, or ranks from 0."""


def as_numbers(column: pl.Series) -> pl.Series | None:
    """A column's numbers, with decimal commas and percent signs, or its yes and no as 1 and 0;
    `None` if a cell is none.

    A comma before three digits may part thousands, and is no decimal comma.
    """
    if column.dtype.is_numeric() or column.dtype == pl.Boolean:
        return column.cast(pl.Float64).fill_nan(None)
    text = _said(column)
    found = _as_written(text)
    whole = found.is_not_null().any() and not _strange_cells(column).any()
    return found if whole else None


def _said(column: pl.Series) -> pl.Series:
    """Cells as texts, null where they say that there is nothing."""
    text = column.cast(pl.String).str.strip_chars().replace("", None)
    words = _nobody(text)
    return text.replace(words, [None] * len(words))


def _nobody(text: pl.Series) -> list[str]:
    """Different texts that say that there is none; dashes and question marks do not."""
    return [
        cell
        for cell in text.drop_nulls().unique()
        if cell not in (*_DASHES, "?") and says_nobody(cell)
    ]


def _as_written(text: pl.Series) -> pl.Series:
    """Texts as numbers, if any is one; else as yes and no; null for any other."""
    digits = text.str.replace(r"\s*%$", "").str.replace(r"^(-?\d+),(\d{1,2}|\d{4,})$", "$1.$2")
    digits = digits.str.replace(_PLACE_CELL, "$1$2")
    number = digits.cast(pl.Float64, strict=False).fill_nan(None)
    if number.is_not_null().any():
        return number
    said = YES_OR_NO | dict.fromkeys(_DASHES, 0.0)
    return text.str.to_lowercase().replace_strict(said, default=None, return_dtype=pl.Float64)


def _strange_cells(column: pl.Series) -> pl.Series:
    """Which cells keep a column from being numbers: those that are none beside numbers, or neither
    yes nor no."""
    text = _said(column)
    found = _as_written(text)
    dashes = text.is_in(_DASHES).fill_null(value=False)
    return found.is_null() & text.is_not_null() & ~dashes


_PLACE_CELL: Final = (
    r"(?i)^(?:(?:choice|rank|place|preference|platz|rang|choix)\s*(\d+)|(\d+)"
    r"(?:st|nd|rd|th|\.|er|e|ère|ème|ª|º)?\s*(?:choice|place|rank|preference|wahl|platz|choix|opción)?)$"
)
"""A place in words, such as `1st choice`."""
_AROUND: Final = "()?!*~ "
"""Signs around a mark or number that make it none."""


def nearly_numbers(column: pl.Series) -> bool:
    """Whether half of a column's cells or more are numbers, or yes or no, and some are not; single
    letters, as x and y or N and S, are names."""
    text = _said(column)
    strange = text.filter(_strange_cells(column))
    letters = not text.str.contains(r"\d").any() and strange.str.contains(r"^\p{L}$").all()
    if strange.is_empty() or letters or {"x", "y"} <= set(text.str.to_lowercase()):
        return False
    bare = _as_written(text.str.strip_chars(_AROUND).replace("", None))
    return 2 * bare.count() >= text.count()


def guess_protocol(frame: pl.DataFrame, ballot: Sequence[str]) -> Guess | None:
    """The protocol of ballots that name none; `None` where none fits all of them.

    `frame`: one row per ballot and candidate, with a number as `mass`; `ballot`: columns that name
    a ballot.
    """
    mass = pl.col("mass")
    least, most, given = mass.min(), mass.max(), mass.count()
    whole = (mass == mass.floor()).all()
    order = (mass.drop_nulls().n_unique() == given) & whole
    each = frame.group_by(*ballot).agg(
        sum=mass.sum(),
        some=(given > 0) & (most != 0),
        negative=least < 0,
        binary=(most <= 1) & whole,
        from_one=order & (least == 1) & (most == given),
        from_zero=order & (given == pl.len()) & (least == 0) & (most == pl.len() - 1),
    )
    each = each.filter("some")
    if not each.height or each["negative"].any():
        return None
    if each["binary"].all():
        if (each["sum"] == 1).all():
            return Guess("simple", "every ballot has a single 1")
        return Guess("approval", "every cell is 0 or 1")
    if each["from_one"].all():
        return Guess("ranked", "every ballot has each of 1, 2, … once", True)
    if each["from_zero"].all():
        because = "every ballot has each of 0, 1, … once (the highest the best)"
        return Guess("ranked", because, from_zero=True)
    if each["sum"].round(_DIGITS).n_unique() == 1:
        total = round(float(each["sum"][0]), _DIGITS)
        return Guess("cumulative", f"every ballot sums to {total:g}")
    return None


def whole_points(numbers: pl.Series) -> int | None:
    """The power of ten that makes all points whole numbers; `None` where none up to 10^4 does."""
    for digits in range(_DIGITS + 1):
        scaled = numbers * 10**digits
        if bool(((scaled - scaled.round()).abs() < 1e-9).all()):
            return int(10**digits)
    return None


# --- Whole ballot rows ---------------------------------------------------------------------------

KEYS: Final = ("episode_id", "turn", "stage", "voter", "protocol", "weight")
"""Columns that name a ballot, its protocol, and how many voters it stands for."""

_PLACE_NAME: Final = r"_*(?:rank|choice|place|preference|pref|position)?_*(\d+)"
_LIST_SEPARATORS: Final = ">;|,"
_PARTED: Final = r"\w[\s/:.–-]+\w"
_MOST_NAMED: Final = 6
"""Candidates that a note names."""


@dataclass(frozen=True)
class Rows(FileRows):
    """Rows on their way into the long shape: one a ballot and candidate, the file's own as `row`,
    the first column."""

    file: Path
    hints: Hints = NO_HINTS
    columns: Mapping[str, str] = field(default_factory=dict)
    """Our column → the file's."""
    used: tuple[str, ...] = ()
    """Columns of the file that are used under no name of ours."""
    shape: str = ""
    """`long`, `raw replies`, `places`, `one cell`, `votes`, `voters`, `wide` or `PrefLib`."""
    provenance: tuple[str, ...] = ()
    """What the file says answered the calls, each once."""
    budget: int | None = None
    """What points sum to, if the file or the user says so of points as they stand here."""
    own: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """Vote → voter → the candidate that is its own, where the user names a column of those."""
    top: int | None = None
    """The end of the scale of scores, which begins at 0; `None` without scores."""

    def called(self, name: str) -> str:
        """What the file calls a column."""
        return self.columns.get(name, name)

    def numbers(self, name: str) -> pl.Series | None:
        """The numbers in a column; `None` if a cell is none: see `as_numbers`."""
        return as_numbers(self.frame.get_column(name))

    def has(self, *names: str) -> bool:
        return all(name in self.frame.columns for name in names)

    def by_column(self, columns: Sequence[str], name: str, cell: str) -> Self:
        """A row for each of some columns, with its name and its cell under names of ours."""
        kept = [one for one in self.frame.columns if one not in columns]
        for ours in {name, cell}.intersection(kept):
            raise columns_doubled(self.file, ours, [self.called(ours), *columns])
        long = self.frame.unpivot(on=columns, index=kept, variable_name=name, value_name=cell)
        return replace(self, frame=long.sort("row", maintain_order=True), used=tuple(columns))

    def stage_of(self, word: str | None) -> str | None:
        """Our name for a stage of the file; `None` for an unknown one."""
        given = {theirs: ours for ours, theirs in self.hints.stages.items()}
        return None if word is None else named_in(given.get(word, word), STAGE_WORDS)


def place_columns(rows: Rows) -> dict[int, str]:
    """Place from 1 → the column that holds who stands there; several, or none."""
    if any(name in rows.hints.columns for name in ("candidate", "mass")):
        return {}
    found: dict[int, str] = {}
    for name in rows.frame.columns:
        if name in ("row", "voter", "episode_id", "turn", "stage", "protocol"):
            continue
        place = _place_of(plain(rows.columns.get(name, name)))
        if place is not None:
            found.setdefault(place, name)
    if len(found) < 2 or sorted(found) != list(range(1, len(found) + 1)):
        return {}
    cells = pl.concat([rows.texts(name) for name in found.values()])
    names = cells.str.strip_chars().replace("", None).drop_nulls()
    words = bool(names.cast(pl.Float64, strict=False).has_nulls())
    if not words and _may_be_places(rows, found, names):
        raise BallotFileError(
            f"{rows.file}: the columns {', '.join(found.values())} hold numbers.",
            why="They may say who stands in each place, or be candidates with points or ranks.",
            hint="Write names in the cells, such as c10 for 10; or call candidates otherwise.",
        )
    return dict(sorted(found.items())) if words else {}


def _may_be_places(rows: Rows, found: Mapping[int, str], cells: pl.Series) -> bool:
    """Whether columns of numbers may hold places: they are called rank1, 1st choice, …; or by bare
    numbers, and their cells hold each of those."""
    if rows.hints.candidates or cells.is_empty():
        return False
    words = [plain(rows.columns.get(name, name)) for name in found.values()]
    if all(word.isdecimal() for word in words):
        return set(cells.cast(pl.Float64)) == set(found)
    return all(w in PLACE_WORDS or w.startswith(("rank", "place", "pos", "pref")) for w in words)


def _place_of(word: str) -> int | None:
    if word in PLACE_WORDS:
        return PLACE_WORDS[word]
    said = re.match(_PLACE_CELL, word.replace("_", " ")) or re.fullmatch(_PLACE_NAME, word)
    place = int(said[1] or said[2]) if said is not None else 100
    return place if place < 100 else None


def _listed(*names: str) -> pl.Expr:
    """What is in the cells of some columns as one list."""
    cells = [pl.col(name).cast(pl.String).str.strip_chars().replace("", None) for name in names]
    return pl.concat_list(cells).list.drop_nulls()


def of_places(rows: Rows, places: Mapping[int, str]) -> Rows:
    """One list of candidates a row, in order; then as an order in one cell."""
    names = tuple(places.values())
    rows = replace(_without_abstentions(rows, names), used=names)
    told = f"orders in the columns {', '.join(map(rows.called, names))}"
    return _of_lists(rows, _listed(*names), "ranked", told)


def of_one_cell(rows: Rows, name: str, hint: str | None) -> Rows:
    """Rows whose cell holds one choice, all approved, or the whole order."""
    rows = _without_abstentions(rows, [name])
    said = rows.called(name)
    keys = [key for key in KEYS if rows.has(key) and key != "protocol"]
    several = "voter" in keys and rows.frame.select(keys).is_duplicated().any()
    if name == "candidate" and hint in (None, "approval") and several:
        told = f"a voter approves of every “{said}” in a row of theirs"
        return rows.with_columns(mass=pl.lit(1, pl.Int64), protocol=pl.lit("approval"), text=told)
    if name in ("choice", "candidate") and hint in (None, "simple"):
        _refuse_several(rows, name)
        return _of_lists(rows, _listed(name), "simple", f"one choice in “{said}”")
    protocol = hint or ("ranked" if name == "ranking" else "approval")
    parts, parted = lists_in(rows.frame.get_column(name), rows.hints.separator)
    if "','" in parted:
        _refuse_one_name(rows, parts)
    if name == "list" and hint is None:
        raise BallotFileError(
            f"{rows.file}: a voter's list may be an order or a set, or list who chose an option.",
            why="Nothing says which.",
            hint="Use --protocol ranked or --protocol approval; if each list has an option's voters"
            ": --map candidate=voter --map voter=list",
        )
    listed_as = FORMATS[protocol].listed
    if listed_as is None:
        raise BallotFileError(
            f"{rows.file}: “{said}” lists candidates, which make no {protocol} ballot.",
            why="A list without numbers is an order or a set.",
            hint="Use --protocol ranked or --protocol approval.",
        )
    told = f"all approved in “{said}”{parted}"
    if listed_as == "order":
        told = f"order in “{said}”, best first{parted}"
        if parts.list.len().max() == 1:
            _refuse_unparted(rows, name)
    return _of_lists(rows, parts, protocol, told)


def _refuse_several(rows: Rows, name: str) -> None:
    """A choice that parts into names of which one is chosen alone elsewhere."""
    if rows.hints.protocol is not None or rows.hints.candidates:
        return
    cells = set(rows.texts(name).str.strip_chars().replace("", None).drop_nulls())
    for sign in _LIST_SEPARATORS:
        for one in sorted(cells):
            if sign in one and cells & {part.strip() for part in one.split(sign)}:
                raise UsageError(
                    f"{one!r} is one choice, or several.",
                    why=f"It is parted by {sign!r}, and other cells hold a part of it alone.",
                    hint="Say which: --protocol simple or --protocol approval.",
                )


def _refuse_unparted(rows: Rows, name: str) -> None:
    """Orders of which no cell has a sign that parts names, and some other sign may."""
    strange = (one for one in rows.texts(name).drop_nulls() if re.search(_PARTED, one))
    for one in strange if not rows.hints.candidates else ():
        raise UsageError(
            f"{one!r} is one name, or an order of several.",
            why=f"No cell of “{rows.called(name)}” has a sign that parts names: "
            f"{' '.join(_LIST_SEPARATORS)}",
            hint="Say what parts names: --separator /; if it is one name, use --protocol simple.",
        )


def _refuse_one_name(rows: Rows, parts: pl.Series) -> None:
    """A part in small letters that always follows one and the same part: one name with a comma."""
    if rows.hints.separator is not None or rows.hints.candidates:
        return
    before: dict[str, set[str]] = {}
    for names in parts.drop_nulls().to_list():
        for first, name in zip(["", *names], names, strict=False):
            before.setdefault(name, set()).add(first)
    for name, found in before.items():
        [first, *others] = found
        if first and not others and name[:1].islower() and not first[:1].islower():
            raise UsageError(
                f"“{first}, {name}” is one name, or two.",
                why=f"{name!r} always follows {first!r}.",
                hint="If it is one, take the comma out of it; if they are two: --separator ','.",
            )


def _without_abstentions(rows: Rows, columns: Sequence[str]) -> Rows:
    """Cells that name nobody as empty ones, and what is told of them."""
    standing = set(map(plain, rows.hints.candidates))
    found: list[str] = []
    for name in columns:
        column = rows.frame.get_column(name)
        if column.dtype == pl.String:
            words = column.drop_nulls().unique()
            said = [w for w in words if says_nobody(w) and plain(w) not in standing]
            found += column.filter(column.is_in(said)).to_list()
            rows = rows.with_columns(column.replace(said, [None] * len(said)))
    return rows.note(f"abstentions by their words: {_counted(found)}") if found else rows


def _counted(cells: Sequence[str]) -> str:
    """`2 of “n/a”, 1 of “-”`."""
    return ", ".join(f"{n} of “{cell}”" for cell, n in Counter(cells).items())


def lists_in(column: pl.Series, sign: str | None = None) -> tuple[pl.Series, str]:
    """Names of each cell, and what parts them; nothing does in lists, or in the text of JSON's."""
    if isinstance(column.dtype, pl.List):
        return column.cast(pl.List(pl.String)), ""
    text = column.cast(pl.String).str.strip_chars().replace("", None)
    if sign is None:
        text = text.str.replace_all(r"\s*(->|→)\s*", ">")
    if text.str.starts_with("[").all() and text.str.ends_with("]").all():
        try:
            return text.str.json_decode(pl.List(pl.String)), ""
        except pl.exceptions.PolarsError:
            _refuse_ties([cell for cell in text.drop_nulls() if "[" in cell[1:]])
    separator = sign or _list_separator(text)
    text = text.str.strip_chars_end(f"{separator} ")
    names = text.str.split(separator).list.eval(pl.element().str.strip_chars())
    if separator == ">":
        single = set(names.explode())
        places = (name for name in names.explode().drop_nulls() if "=" in name)
        _refuse_ties([p for p in places if single & {part.strip() for part in p.split("=")}])
    return names, f", parted by {separator!r}"


def _refuse_ties(cells: Sequence[str]) -> None:
    """An order with several names in one place, which no ranked ballot has."""
    if cells:
        raise UsageError(
            f"{cells[0]!r} puts several candidates in one place.",
            why="A ranked ballot is a strict order; it may leave candidates out.",
            hint="Give such orders as a PrefLib file (.toc or .toi) or as points, one column a "
            "candidate.",
        )


def _list_separator(column: pl.Series) -> str:
    """The first sign that any cell has: a comma is part of a name where a stronger sign parts.

    Refused if others have only a weaker one and are no names of those: lists, or names.
    """
    cells = column.cast(pl.String).drop_nulls().to_list()
    present = [sign for sign in _LIST_SEPARATORS if any(sign in cell for cell in cells)]
    if len(present) < 2:
        return (present or [","])[0]
    strong = present[0]
    names = {part.strip() for cell in cells if strong in cell for part in cell.split(strong)}
    for cell in cells:
        weaker = [sign for sign in present[1:] if sign in cell]
        if strong not in cell and weaker and cell.strip() not in names:
            raise UsageError(
                f"{cell!r} is a list of names, or one name.",
                why=f"Other cells part names by {strong!r}, and this one has {weaker[0]!r}.",
                hint=f"Say what parts names: --separator '{strong}' or --separator '{weaker[0]}'.",
            )
    return strong


def _of_lists(rows: Rows, listed: pl.Expr | pl.Series, protocol: str, told: str) -> Rows:
    """Rows with a list of candidates as one row for each candidate that lists of its vote name."""
    rows = rows.with_columns(_listed=listed, _vote=_vote(rows), text=told)
    every_name = rows.frame.get_column("_listed").explode().drop_nulls()
    said = spellings(every_name, "candidates", rows.hints.spelling)
    names, one = pl.col("_listed"), pl.element()
    rows = rows.with_columns(names.list.eval(one.replace(said)))
    nobody = [name for name in every_name.unique().replace(said) if says_nobody(name)]
    beside = names.list.eval(one.filter(one.is_in(nobody))).list.first()
    rows.with_columns(_beside=pl.when(names.list.len() > 1).then(beside)).refuse(
        "{_beside!r} stands beside names, and may be a candidate or nobody",
        ~pl.col("_beside").is_in(rows.hints.candidates),
        hint="If it is a candidate, name all: --candidates NAME,NAME,…; else take it out.",
    )
    if every_name.is_empty():
        raise BallotFileError(
            f"{rows.file} names no candidate.", why="Every cell is empty.", hint=EXAMPLE
        )
    in_order = FORMATS[protocol].listed == "order"
    twice = names.list.eval(one.filter(one.is_duplicated())).list.first()
    rows.with_columns(_twice=twice).refuse(
        "an order names a candidate twice: {_twice}", pl.col("_twice").is_not_null() & in_order
    )
    of_vote = names.list.explode().drop_nulls().unique().sort()
    frame = rows.frame.with_row_index("_ballot").with_columns(
        _place=pl.int_ranges(names.list.len()),
        candidate=of_vote.over("_vote", mapping_strategy="join"),
    )
    if frame.get_column("candidate").n_unique() > 1 and not (
        rows.has("candidates") or rows.hints.candidates or rows.hints.candidates_of
    ):
        rows = rows.note(
            "in each vote those stand whom its ballots name (--candidates says who else)"
        )
    named = frame.select("_ballot", "_place", candidate="_listed").explode("_place", "candidate")
    kept = [n for n in (*KEYS, *_GRID, "candidates") if rows.has(n) and n != "protocol"]
    standing = frame.with_columns(_m=pl.col("candidate").list.len().cast(pl.Int64))
    long = standing.explode("candidate").filter(pl.col("candidate").is_not_null()).drop("_place")
    long = long.join(
        named.unique(["_ballot", "candidate"], keep="first"),
        on=["_ballot", "candidate"],
        how="left",
        maintain_order="left",
    )
    place = pl.col("_place")
    chosen = pl.when(names.list.len() > 0).then(place.is_not_null().cast(pl.Int64))
    mass = pl.col("_m") - 1 - place if in_order else chosen
    return rows.with_frame(
        long.select("row", *kept, "candidate", mass=mass, protocol=pl.lit(protocol))
    )


_GRID: Final = ("run_id", "benchmark", "task", "persona", "condition", "ballot_status")


def _vote(rows: Rows) -> pl.Expr:
    """What names the vote of each row: episode, turn, and whether it is a tie round."""
    keys = [pl.col(name) for name in ("episode_id", "turn") if rows.has(name)]
    if rows.has("stage"):
        ties = [word for word in rows.texts("stage").unique() if rows.stage_of(word) == "tie_vote"]
        keys.append(pl.col("stage").cast(pl.String).is_in(ties).fill_null(False))
    return pl.struct(pl.lit(0).alias("_"), *keys)


def refuse_strange(rows: Rows, name: str) -> None:
    """A candidate's column in which a cell is no number."""
    rows.with_columns(_cell=rows.frame.get_column(name)).refuse(
        "{_cell!r} for {of} is no number",
        pl.lit(_strange_cells(rows.frame.get_column(name))),
        of=rows.called(name),
        hint="Write a number or nothing."
        if name == "mass"
        else "Write a number, yes or no, or nothing; if that is no candidate's column, name those "
        "who stand: --candidates NAME,NAME,…",
    )


def _refuse_sums(rows: Rows, numbers: Mapping[str, pl.Series | None]) -> None:
    """A row with the sums of all others, above any of them, which is no voter's."""
    held = pl.DataFrame({name: one for name, one in numbers.items() if one is not None})
    if held.height < 3 or held.width < 2:
        return
    held = held.fill_null(0.0)
    most = held.max_horizontal()
    sums = held.select(pl.all_horizontal((pl.all().sum() - 2 * pl.all()).abs() < 1e-9)).to_series()
    above = most > most.sort(descending=True)[1]
    hint = "Take it out: it would count as a ballot."
    rows.refuse("the row has the sums of all others", pl.lit(sums & above), hint=hint)


def _in_brackets(names: Sequence[str]) -> list[str]:
    """What stands in brackets behind one question, as in grids of forms; else the names."""
    found = [re.fullmatch(r"(.*\S)\s*\[(.+)\]", name) for name in names]
    whole = [part for part in found if part]
    one = len(whole) == len(names) and len({part[1] for part in whole}) == 1
    return [part[2].strip() for part in whole] if one else [*names]


def of_wide(rows: Rows, candidates: Sequence[str]) -> Rows:
    """Rows with a number in a column for each candidate that somebody in the vote gives one."""
    called = _in_brackets(candidates)
    shown = ", ".join(called[:_MOST_NAMED]) + ", …" * (len(called) > _MOST_NAMED)
    numbers = {name: rows.numbers(name) for name in candidates}
    given = {name: _said(rows.frame.get_column(name)) for name in candidates}
    if any(cells.str.contains(r"\d").any() for cells in given.values()):
        numbers |= {name: None for name, cells in given.items() if cells.is_in(_DASHES).all()}
    for name in candidates:
        if numbers[name] is None:
            refuse_strange(rows, name)
    _refuse_sums(rows, numbers)
    every = [rows.texts(name).str.strip_chars() for name in candidates]
    words = [cell for cells in every for cell in cells.filter(cells.is_in(_nobody(cells)))]
    if words:
        rows = rows.note(f"cells that give nothing by their words: {_counted(words)}")
    blank = pl.lit(None, pl.Float64)
    kept = [name for name in rows.frame.columns if name in ("row", "mass", *KEYS, *_GRID)]
    cells = ((blank if one is None else one).alias(name) for name, one in numbers.items())
    rows = rows.with_frame(rows.frame.select(*kept, *cells))
    rows = rows.by_column(candidates, "candidate", "mass")
    standing = rows.frame.with_columns(
        pl.col("candidate").replace(candidates, called), _vote=_vote(rows)
    )
    empty = pl.col("mass").is_null().all().over("_vote", "candidate")
    whole = pl.col("mass").is_null().all().over("_vote")
    out = standing.filter(empty & ~whole).select("_vote", "candidate").unique().height
    frame = standing.filter(~empty | whole).drop("_vote")
    said = (
        "; a candidate to whom nobody in a vote gives anything does not stand in that vote "
        f"(number of such cases: {out})"
    )
    return rows.with_frame(frame, f"one column a candidate ({shown}){said if out else ''}")
