"""Reading replies: proposals, reviews and scores. Ballots are read by `tutorsim.voting`."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

from tutorsim.records import Note


@dataclass(frozen=True)
class ReadProposal:
    """A proposal as read; `None` for what the reply does not hold."""

    text: str
    rationale: str | None
    confidence: int | None


@dataclass(frozen=True)
class Score:
    """A judge's score in [0, 1] and its reason."""

    value: float
    rationale: str


# Patterns of a line begin with the line end before it, which is found much faster than a place
# where a line begins; `_lines` puts one before the first line.

_FIELD = re.compile(r"\n[ \t>*_#]*(PROPOSAL|RATIONALE|CONFIDENCE)[ \t*_]*:[ \t*_]*", re.IGNORECASE)


def read_proposal(reply: str) -> ReadProposal | None:
    """Read `PROPOSAL:` / `RATIONALE:` / `CONFIDENCE:` lines.

    Returns:
        The proposal, or `None` when no text follows a `PROPOSAL:` marker. A missing rationale
        or an unreadable confidence is `None` in it.
    """
    fields = _fields(reply)
    if not fields.get("PROPOSAL"):
        return None
    return ReadProposal(
        fields["PROPOSAL"], fields.get("RATIONALE") or None, _confidence(fields.get("CONFIDENCE"))
    )


def salvage_proposal(reply: str) -> ReadProposal | None:
    """Take a reply without the marker as the text itself; `None` when it is empty."""
    head = _FIELD.split(_lines(reply), maxsplit=1)[0].strip()
    fields = _fields(reply)
    if not head:
        return None
    return ReadProposal(
        head, fields.get("RATIONALE") or None, _confidence(fields.get("CONFIDENCE"))
    )


def _lines(reply: str) -> str:
    return f"\n{reply}"


def _fields(reply: str) -> dict[str, str]:
    parts = _FIELD.split(_lines(reply))
    pairs = zip(parts[1::2], parts[2::2], strict=True)
    fields: dict[str, str] = {}
    for name, text in pairs:
        fields.setdefault(name.upper(), text.strip())
    return fields


_PERCENT = re.compile(r"([0-9]{1,3})\s*(?:%|/\s*100)?\.?")


def _confidence(text: str | None) -> int | None:
    match = _PERCENT.fullmatch((text or "").strip())
    value = int(match[1]) if match else -1
    return value if 0 <= value <= 100 else None


def read_reviews(reply: str, labels: Sequence[str]) -> dict[str, Note] | None:
    """Read a block `A:` with `STRENGTH:` and `WEAKNESS:` for each label.

    Returns:
        Label → note for every label that has one, or `None` when none has.
    """
    parts = _block_head("".join(labels)).split(_lines(reply))
    notes: dict[str, Note] = {}
    for label, text in zip(parts[1::2], parts[2::2], strict=True):
        note = Note(strength=_line(text, _STRENGTH), weakness=_line(text, _WEAKNESS))
        if label not in notes and (note.strength or note.weakness):
            notes[label] = note
    return {label: notes[label] for label in labels if label in notes} or None


@cache
def _block_head(labels: str) -> re.Pattern[str]:
    word = r"(?:(?i:reply|draft|proposal|label)[ \t]+)?"
    return re.compile(rf"\n[ \t>*_#]*{word}([{labels}])[ \t*_]*:[ \t*_]*")


_STRENGTH, _WEAKNESS = (
    re.compile(rf"{name}[ \t*_]*:[ \t*_]*(\S.*)", re.IGNORECASE)
    for name in ("STRENGTH", "WEAKNESS")
)


def _line(text: str, field: re.Pattern[str]) -> str | None:
    match = field.search(text)
    return match[1].strip() if match else None


_SCORE = re.compile(
    r"\n[ \t*_]*SCORE[ \t*_]*:[ \t*_]*([0-9]+(?:\.[0-9]*)?|\.[0-9]+)[ \t*_\r]*$",
    re.MULTILINE | re.IGNORECASE,
)


def read_score(reply: str) -> Score | None:
    """Read `SCORE: <float>` and the line of rationale after it.

    Returns:
        The score, or `None` when the reply has no score line or its number is outside [0, 1].
    """
    text = _lines(reply)
    match = _SCORE.search(text)
    if match is None or not 0 <= float(match[1]) <= 1:
        return None
    rest = [line.strip() for line in text[match.end() :].splitlines() if line.strip()]
    return Score(float(match[1]), rest[0] if rest else "")
