"""Ids that last: of a place in a page, and of a cell by its row's and its column's names."""

import hashlib
import re
import unicodedata
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final

from tutorsim.analysis.claims.numbers_in_text import numbers_in

__all__ = ["cell_names", "column_names", "key_columns", "slug", "unique"]

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
    names = unique(full)
    return [f"{name}~{n}" if n > 1 else name for name, n in _counted(names)]


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
    lasting = dict(zip(order, _counted([names[at] for at in order]), strict=True))
    columns = column_names(headers)
    return [
        [f"{_numbered(*lasting[at])}.{column}".lstrip(".") for column in columns]
        for at in range(len(rows))
    ]


def _numbered(name: str, n: int) -> str:
    return f"{name}~{n}" if n > 1 else name


def _counted(names: Sequence[str]) -> Iterator[tuple[str, int]]:
    """Each name with how often it has come so far."""
    seen: Counter[str] = Counter()
    for name in names:
        seen[name] += 1
        yield name, seen[name]
