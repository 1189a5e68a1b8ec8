"""The numbers that a page itself prints, read back and held against those computed again."""

import hashlib
import re
from collections.abc import Collection, Iterator, Sequence
from difflib import SequenceMatcher
from html import unescape
from pathlib import Path
from typing import Final

from tutorsim.analysis.claims.claims_file import Claim, Difference, DrawnFile
from tutorsim.analysis.claims.claims_of_printed_numbers import numbers_in

_NUMBER: Final = re.compile(r'<data id="([^"]*)" value="([^"]*)">([^<]*)</data>')
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
    """Numbers of an HTML page that are not those computed again.

    Args:
        html: The page, which marks every number with its id and its value.
        claims: Every number of the page, computed again.
        only: Ids to look at; none for all.
    """
    drawn: dict[str, list[str]] = {}
    for id_, value, printed in _NUMBER.findall(html):
        drawn.setdefault(unescape(id_), []).append(_told(unescape(printed), value))
    now = {c.id: [_told(c.printed, "" if c.value is None else str(c.value))] for c in claims}
    for id_ in drawn | now:
        found = drawn.get(id_, ["no such number"])
        again = now.get(id_, ["no such number"])
        if found != again and (not only or id_ in only):
            yield Difference(f"(page) {id_}", _ASKED, ", ".join(found), again[0])


def _told(printed: str, value: str) -> str:
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
