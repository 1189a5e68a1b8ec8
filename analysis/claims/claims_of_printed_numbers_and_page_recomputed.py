"""From printed texts and tables to claims, each with an id that lasts, and back from a page."""

import hashlib
import re
import unicodedata
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from html import unescape
from itertools import pairwise
from pathlib import Path
from typing import Final, NamedTuple

from tutorsim.analysis.claims.claims_file_and_check_of_claims import Claim, Difference, DrawnFile
from tutorsim.analysis.pages.cells_and_tables import Share, Written, heading
from tutorsim.analysis.statistics import by_key
from tutorsim.analysis.statistics.intervals_and_tests import (
    Bounds,
    Estimate,
    Interval,
    NotEstimable,
)

# --- Numbers in text -----------------------------------------------------------------------------

NAMES: Final = {
    "day": r"(?<![0-9])[0-9]{4}-[0-9]{2}-[0-9]{2}(?![0-9])",
    "reference": r"(?:Tables?|Figures?|Sections?) [0-9]+(?:\.[0-9]+)*",
    "word": r"(?![0-9]+e[+-][0-9]{2}(?![0-9]))[0-9]*[^\W0-9]\w*(?:[.\-/]\w+)*",
    "version": r"[0-9]+(?:\.[0-9]+){2,}",
}
"""What has digits and is no number, by name; the first that fits says what it is."""

_DIGITS: Final = r"(?:[0-9]{1,3}(?:,[0-9]{3})+|[0-9]+)(?:\.[0-9]+)?(?:e[+-][0-9]{2})?"
_SIGNED: Final = rf"(?:(?<![\w)\]])[+−-])?{_DIGITS}"
_UNIT: Final = r"(?: ?%)?"
_TOKEN: Final = re.compile(
    rf"(?P<name>{'|'.join(NAMES.values())})"
    rf"|(?P<printed>(?:(?:[<>≤≥±~]|~<) ?)?(?P<value>{_SIGNED}){_UNIT}"
    rf"(?: \[(?P<low>{_SIGNED}){_UNIT}, (?P<high>{_SIGNED}){_UNIT}\])?)"
)
_SPAN: Final = re.compile(rf"({_SIGNED}){_UNIT} to ({_SIGNED}){_UNIT}")


class Number(NamedTuple):
    """One number of a text, with its interval where one stands behind it in brackets."""

    start: int
    end: int
    """Where it is printed, as a half-open range of the text's characters."""
    printed: str
    """Text as it is printed: with sign, unit, what qualifies it (`<`, `~`, `±`), and interval."""
    value: float | int | None
    """`None` for a span, which has an interval alone."""
    interval: tuple[float, float] | None

    def claim(
        self, id_: str, question: str, given: str, beside: tuple[float, float] | None = None
    ) -> Claim:
        """The number as a claim: `given`: what gave it; `beside`: the interval in other columns."""
        return Claim(
            id=id_,
            question=question,
            printed=self.printed,
            value=self.value,
            interval=self.interval or beside,
            provenance=given,
        )


def numbers_in(text: str) -> Iterator[Number]:
    """Every number of a text, in order."""
    for found in _TOKEN.finditer(text):
        if found["name"] is not None:
            continue
        low, high = found["low"], found["high"]
        interval = None if low is None else (_parsed(low), _parsed(high))
        yield Number(
            found.start(), found.end(), found["printed"], _parsed(found["value"]), interval
        )


def numbers_of(cell: str) -> list[Number]:
    """The numbers of a cell: the values that it writes, or those of a text alone.

    One value is written by the whole text, several by a number of the text each. A text that is
    nothing but a span, `0.25 to 0.33`, is one number.
    """
    values = _values(cell.value) if isinstance(cell, Written) else None
    if values is None:
        span = _SPAN.fullmatch(cell)
        if span is None:
            return list(numbers_in(cell))
        values = [(None, (_parsed(span[1]), _parsed(span[2])))]
    if len(values) == 1:
        return [Number(0, len(cell), str(cell), *values[0])]
    return [
        found._replace(value=value, interval=interval)
        for found, (value, interval) in zip(numbers_in(cell), values, strict=True)
    ]


def _values(value: object) -> list[tuple[float | None, tuple[float, float] | None]] | None:
    """The numbers of a cell's value, each with its interval; `None` for a value of another kind."""
    match value:
        case None | NotEstimable():
            return []
        case int() | float():
            return [(value, None)]
        case {"lower": low, "point": point, "upper": high}:
            return None if point is None else [(point, (low, high))]
        case Mapping():
            return [(count, None) for count in value.values()]
        case Share(part, whole):
            return [(part, None), (whole, None)]
        case Estimate(number, _, Interval(low, high)):
            return [(number, (low, high))]
        case Estimate(number):
            return [(number, None)]
        case Bounds(low, high) if low == high:
            return [(low, None)]
        case Bounds(low, high):
            return [(None, (low, high))]
        case _:
            return None


def _parsed(text: str) -> float | int:
    plain = text.replace(",", "").replace("−", "-")
    return float(plain) if "." in plain or "e" in plain else int(plain)


# --- Claim ids -----------------------------------------------------------------------------------

Rows = Sequence[Sequence[str]]

_MINUS: Final = re.compile(r"(?<!\w)[−-](?=[0-9])")
_BETWEEN: Final = re.compile(r"\W+")


def slug(text: str) -> str:
    """A name as a part of an id: lower case, letters and digits of any script, hyphens.

    `−1` and `1` differ; what has neither letter nor digit is `none`.
    """
    plain = unicodedata.normalize("NFKC", _MINUS.sub(" minus ", text)).lower()
    return _BETWEEN.sub("-", plain).strip("-") or "none"


def unique(texts: Sequence[str]) -> list[str]:
    """Slugs of texts. Where different texts have one slug, a hash of the text is behind it.

    Equal texts get equal slugs.
    """
    meant: dict[str, set[str]] = {}
    for text in texts:
        meant.setdefault(slug(text), set()).add(text)
    return [
        name if len(meant[name]) == 1 else f"{name}~{_digest(text)}"
        for text, name in ((text, slug(text)) for text in texts)
    ]


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:6]


def column_names(headers: Sequence[str]) -> list[str]:
    """A name for each column; one of several equal headers has the header before it in front."""
    counts = Counter(headers)
    full = [
        f"{headers[place - 1]} {header}" if place and counts[header] > 1 else header
        for place, header in enumerate(headers)
    ]
    return numbered(unique(full))


def key_columns(headers: Sequence[str], rows: Rows) -> list[int]:
    """The places of the columns that tell rows apart.

    These are the leading columns without a number, and others behind them only where rows are
    still alike; the sequence of the rows changes nothing.
    """
    places = range(len(headers))
    words = [p for p in places if not any(any(numbers_in(row[p])) for row in rows)]
    keys: list[int] = words[:1]
    apart = len({tuple(row[p] for p in keys) for row in rows})
    for place in (*words[1:], *(p for p in places if p not in words)):
        if apart == len(rows):
            break
        more = len({tuple(row[p] for p in (*keys, place)) for row in rows})
        if more > apart:
            keys.append(place)
            apart = more
    return sorted(keys)


def cell_names(headers: Sequence[str], rows: Rows) -> list[list[str]]:
    """`ROW.COLUMN` of every cell; unique, and the same whatever the sequence of the rows.

    Rows that are alike in every column that could tell them apart are counted in the sequence
    of what they print.
    """
    keys = key_columns(headers, rows)
    parts = [unique([row[place] for row in rows]) for place in keys]
    names = [".".join(part[at] for part in parts) for at in range(len(rows))]
    order = sorted(range(len(rows)), key=lambda at: tuple(rows[at]))
    lasting = dict(zip(order, numbered([names[at] for at in order]), strict=True))
    columns = column_names(headers)
    return [
        [f"{lasting[at]}.{column}".lstrip(".") for column in columns] for at in range(len(rows))
    ]


def numbered(names: Sequence[str]) -> list[str]:
    """Names, `~2` behind the second that is equal, `~3` behind the third."""
    seen: Counter[str] = Counter()
    found = []
    for name in names:
        seen[name] += 1
        found.append(name if seen[name] == 1 else f"{name}~{seen[name]}")
    return found


# --- Claims in tables ----------------------------------------------------------------------------

ELSEWHERE: Final = "printed elsewhere"
"""Provenance of a figure that stands beside the run's and that no recording gives."""

_ELSEWHERE_COLUMNS: Final = re.compile(
    r"published$|printed\b|public files$|best (?:accuracy|macro f1)$"
)
"""Heads of columns whose figures are of a study or a leader board."""
_HERE: Final = "this run"
_HEAD: Final = "~heads"
"""Stands in the place of a row's name, which begins with a letter or a digit."""
_ENDS: Final = [(low, high) for low in ("low", "lower") for high in ("high", "upper")]
"""Heads of the columns of an interval."""
_SENTENCE: Final = re.compile(r"(?<=[.!?;])\s+")


@dataclass(frozen=True)
class Words:
    """A text that is printed at a place."""

    place: str
    """Id of the place; ids of its numbers are this and their count."""
    about: str
    """What the text is about: the title above it."""
    text: str

    def cited(self) -> list[tuple[str, Number]]:
        """The numbers of the text, each with its id."""
        return [(f"{self.place}.{n}", found) for n, found in enumerate(numbers_in(self.text), 1)]

    def claims(self, provenance: str) -> Iterator[Claim]:
        """A claim for each number of the text."""
        colon = "" if self.about.endswith(("?", ".", ":")) else ":"
        about = self.about and f"{self.about}{colon} "
        for id_, found in self.cited():
            yield found.claim(id_, about + self._asked(found), provenance)

    def _asked(self, asked: Number) -> str:
        """The sentence of a number, with `[?]` in its place and `…` in that of others."""
        ends = [found.end() for found in _SENTENCE.finditer(self.text)]
        start = max((end for end in ends if end <= asked.start), default=0)
        later = _SENTENCE.search(self.text, asked.end)
        end = later.start() if later else len(self.text)
        said, at = "", start
        for found in numbers_in(self.text):
            if start <= found.start < end:
                said += self.text[at : found.start] + ("[?]" if found == asked else "…")
                at = found.end
        return (said + self.text[at:end]).strip()


@dataclass(frozen=True)
class Cells:
    """A table that is printed at a place, every cell as it is printed."""

    place: str
    title: str
    headers: Sequence[str]
    rows: Sequence[Sequence[str]] = field(repr=False)

    def cited(self) -> list[list[list[tuple[str, Number]]]]:
        """For each row and column the numbers of the cell, each with its id.

        The first number of a cell has the cell's id, others have their count behind it.
        """
        names = cell_names(self.headers, self.rows)
        return [
            [
                [
                    (f"{self.place}.{name}" + (f".{n}" if n > 1 else ""), found)
                    for n, found in enumerate(numbers_of(cell), 1)
                ]
                for name, cell in zip(named, row, strict=True)
            ]
            for named, row in zip(names, self.rows, strict=True)
        ]

    def heads(self) -> list[Words]:
        """The heads of the columns, as they are printed."""
        about = f"{self.title}, a column" if self.title else ""
        return [
            Words(f"{self.place}.{_HEAD}.{name}", about, heading(header))
            for name, header in zip(column_names(self.headers), self.headers, strict=True)
        ]

    def claims(self, provenance: str) -> Iterator[Claim]:
        """A claim for each number of each head and each cell."""
        for head in self.heads():
            yield from head.claims(provenance)
        keys = key_columns(self.headers, self.rows)
        measured = [
            place
            for place, ends in enumerate(pairwise(self.headers[1:]))
            if ends in _ENDS and any("." in row[place] for row in self.rows)
        ]  # columns of estimates, with those of their ends right behind them
        for row, cells in zip(self.rows, self.cited(), strict=True):
            source = self._source(row, provenance)
            for place, numbers in enumerate(cells):
                header = self.headers[place]
                given = ELSEWHERE if _ELSEWHERE_COLUMNS.match(heading(header)) else source
                beside = _beside(row, place + 1) if place in measured else None
                for n, (id_, found) in enumerate(numbers, 1):
                    asked = self._asked(row, [k for k in keys if k != place], header, n)
                    yield found.claim(id_, asked, given, beside if n == 1 else None)

    def _asked(self, row: Sequence[str], keys: Sequence[int], header: str, n: int) -> str:
        of = "; ".join(f"{heading(self.headers[k])}: {row[k]}" for k in keys if row[k])
        more = f", number {n} of the cell" if n > 1 else ""
        return f"{self.title}: {heading(header)}{more}" + (f" ({of})" if of else "")

    def _source(self, row: Sequence[str], provenance: str) -> str:
        """What gave a row, where a column says that it is this run or something else."""
        if "source" not in self.headers:
            return provenance
        place = self.headers.index("source")
        told = any(other[place] == _HERE for other in self.rows)
        return ELSEWHERE if told and row[place] != _HERE else provenance


Printed = Words | Cells


def claims_in(parts: Iterable[Printed], provenance: str) -> tuple[Claim, ...]:
    """A claim for every number that is printed, with what answered the calls of the run."""
    return tuple(claim for part in parts for claim in part.claims(provenance))


def _beside(row: Sequence[str], start: int) -> tuple[float, float] | None:
    """The interval that stands in two columns of its own."""
    low, high = map(numbers_of, row[start : start + 2])
    if len(low) == len(high) == 1 and low[0].value is not None and high[0].value is not None:
        return low[0].value, high[0].value
    return None


# --- Drawn pages ---------------------------------------------------------------------------------

_DRAWN: Final = re.compile(r'<data id="([^"]*)" value="([^"]*)">([^<]*)</data>')
_ASKED: Final = "What does the page print?"
_TRANSCRIPTS: Final = re.compile(r"^## Episodes$.*?(?=^## |\Z)", re.MULTILINE | re.DOTALL)
"""Where a Markdown page quotes the record itself."""


def drawn_as(path: Path, content: bytes) -> DrawnFile:
    """What binds a file of claims to the page that was written with it."""
    return DrawnFile(name=path.name, sha256=hashlib.sha256(content).hexdigest())


def bytes_differ(path: Path, content: bytes, written: DrawnFile) -> Iterator[Difference]:
    """The page, if it is not byte for byte the one that the claims were written with."""
    now = drawn_as(path, content)
    if now.sha256 != written.sha256:
        question = f"Is {path.name} as it was when its claims were written?"
        yield Difference("(page)", question, f"SHA-256 {written.sha256}", f"SHA-256 {now.sha256}")


def numbers_differ(
    html: str, claims: Sequence[Claim], only: Collection[str] = ()
) -> Iterator[Difference]:
    """Numbers of an HTML page, marked with id and value, that are not those computed again.

    `only`: ids to look at; none for all.
    """
    drawn = by_key(
        (unescape(id_), _number_told(unescape(printed), value))
        for id_, value, printed in _DRAWN.findall(html)
    )
    now = {c.id: [_number_told(c.printed, "" if c.value is None else str(c.value))] for c in claims}
    for id_ in drawn | now:
        found = drawn.get(id_, ["no such number"])
        again = now.get(id_, ["no such number"])
        if found != again and (not only or id_ in only):
            yield Difference(f"(page) {id_}", _ASKED, ", ".join(found), again[0])


def _number_told(printed: str, value: str) -> str:
    """A number of the page, its value to twelve digits, which all machines compute alike."""
    try:
        return f"{printed}; value {float(value):.12g}" if value else printed
    except ValueError:
        return f"{printed}; value {value}"


def text_differs(markdown: str, now: str) -> Iterator[Difference]:
    """Lines with numbers of a Markdown page that are not those of the page made again."""
    before, after = _lines(markdown), _lines(now)
    for kind, *at in SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
        if kind != "equal":
            lines = before[at[0] : at[1]], after[at[2] : at[3]]
            yield Difference("(page)", _ASKED, *("\n".join(part) or "nothing" for part in lines))


def _lines(markdown: str) -> list[str]:
    left = _TRANSCRIPTS.sub("", markdown.replace("\r\n", "\n"))
    return [line for line in left.splitlines() if any(numbers_in(line))]
