"""Reading replies of a group: rulings, thoughts, scores, messages, names, verdicts, codes."""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Final, Literal, NamedTuple

from tutorsim.systems.group.scene import SIGNALS, Ruling
from tutorsim.systems.group.speaker_selection import CRITERIA

TWO_SUMS: Final = ("internal", "external")
"""What an evaluator gives when it is asked for the sums alone."""
RATINGS: Final = ("correctness", "relevance", "role_consistency", "reasoning")
"""Criteria of a rater."""


class ReadThought(NamedTuple):
    """A thought as read."""

    stimuli: tuple[str, ...]
    thought: str
    action: Literal["speak", "listen"]
    corrects: bool


class Said(NamedTuple):
    """A peer's message as read."""

    text: str
    to: tuple[str, ...]
    """As written."""
    continues: bool


class Contribution(NamedTuple):
    """What a simulated learner does."""

    action: Literal["write", "wait"]
    text: str


class Verdict(NamedTuple):
    """A judge's reply."""

    better: Literal["first", "second", "same"]
    reason: str


def read_ruling(reply: str) -> Ruling | None:
    """Read a stage manager's JSON; `None` unless signal and completed ids are there."""
    fields = _object(reply)
    signal = fields.get("signal")
    completed = _texts(fields.get("completed"))
    if completed is None or signal not in SIGNALS:
        return None
    return Ruling(_text(fields.get("reason")) or "", signal, completed)


def read_thought(reply: str) -> ReadThought | None:
    """Read a thought's JSON; `None` unless it has a thought and one of the two actions."""
    fields = _object(reply)
    thought, action = _text(fields.get("thought")), fields.get("action")
    if not thought or (action != "speak" and action != "listen"):
        return None
    stimuli = _texts(fields.get("stimuli")) or ()
    return ReadThought(stimuli, thought, action, fields.get("corrects") is True)


def read_scores(
    names: Sequence[str], criteria: Sequence[str] = CRITERIA
) -> Callable[[str], dict[str, dict[str, int]] | None]:
    """A reader of scores in tenths by agent; its result is `None` unless everybody has them.

    Args:
        names: Agents to score, as shown to the evaluator.
        criteria: What is scored.
    """

    def read(reply: str) -> dict[str, dict[str, int]] | None:
        scores = _scores(reply, names, criteria)
        return scores if len(scores) == len(names) else None

    return read


def salvage_scores(
    names: Sequence[str], criteria: Sequence[str] = CRITERIA
) -> Callable[[str], dict[str, dict[str, int]] | None]:
    """As `read_scores`, content with some of the agents; `None` where there is none."""
    return lambda reply: _scores(reply, names, criteria) or None


def _scores(reply: str, names: Sequence[str], criteria: Sequence[str]) -> dict[str, dict[str, int]]:
    entries = _json(reply, "[")
    by_name = {name.casefold(): name for name in names}
    scores: dict[str, dict[str, int]] = {}
    for entry in entries if isinstance(entries, list) else ():
        if not isinstance(entry, Mapping):
            continue
        name = by_name.get((_text(entry.get("agent")) or "").casefold())
        tenths = [_tenths(entry.get(criterion), 10, 50) for criterion in criteria]
        known = [value for value in tenths if value is not None]
        if name is not None and name not in scores and len(known) == len(tenths):
            scores[name] = dict(zip(criteria, known, strict=True))
    return scores


def read_said(reply: str) -> Said | None:
    """Read a peer's message; `None` without a text."""
    fields = _object(reply)
    text = _text(fields.get("message"))
    if not text:
        return None
    to = fields.get("to")
    names = (to,) if isinstance(to, str) else _texts(to) or ()
    return Said(text, names, fields.get("continues") is True)


def read_contribution(reply: str) -> Contribution | None:
    """Read what a simulated learner does; `None` unless it waits or writes a text."""
    fields = _object(reply)
    action, text = fields.get("action"), _text(fields.get("message")) or ""
    if action == "wait":
        return Contribution("wait", "")
    return Contribution("write", text) if action == "write" and text else None


def read_name(names: Mapping[str, str]) -> Callable[[str], str | None]:
    """A reader of exactly one name, its letter case and a full stop ignored.

    Args:
        names: Name as shown → participant.
    """
    by_name = {name.casefold(): who for name, who in names.items()}
    return lambda reply: by_name.get(reply.strip().strip("\"'*_.").casefold())


_BETTER: Final = re.compile(
    r"^[ \t*_]*BETTER[ \t*_]*:[ \t*_]*(1|2|same)\b[^\n]*", re.IGNORECASE | re.MULTILINE
)
_SIDES: Final[Mapping[str, Literal["first", "second", "same"]]] = {
    "1": "first",
    "2": "second",
    "same": "same",
}


def read_verdict(reply: str) -> Verdict | None:
    """Read `BETTER: 1|2|same` and the line after it; `None` without exactly one such line."""
    lines = list(_BETTER.finditer(reply))
    if len(lines) != 1:
        return None
    rest = reply[lines[0].end() :].strip().splitlines()
    return Verdict(_SIDES[lines[0][1].lower()], rest[0].strip() if rest else "")


def read_ratings(criteria: Sequence[str]) -> Callable[[str], dict[str, int] | None]:
    """A reader of ratings in tenths from 10 to 100; `None` unless every criterion has one."""

    def read(reply: str) -> dict[str, int] | None:
        fields = _object(reply)
        tenths = {name: _tenths(fields.get(name), 10, 100) for name in criteria}
        known = {name: value for name, value in tenths.items() if value is not None}
        return known if len(known) == len(tenths) else None

    return read


_CATEGORY: Final = re.compile(r"^[ \t*_]*CATEGORY[ \t*_]*:[ \t*_]*([0-9]{1,2})\b", re.I | re.M)


def read_category(reply: str) -> int | None:
    """Read `CATEGORY: n`; `None` unless there is one such line and n lies in 1 to 12."""
    numbers = [int(number) for number in _CATEGORY.findall(reply)]
    return numbers[0] if len(numbers) == 1 and 1 <= numbers[0] <= 12 else None


_DECODER: Final = json.JSONDecoder()
_BACKSLASH: Final = re.compile(
    r"""\\(?P<escape>["\\/]|u[0-9a-fA-F]{4}|[bfr](?![A-Za-z])"""
    r"""|n(?!abla|eq|leq|geq|ot(?:in)?\b|earrow)"""
    r"""|t(?!imes|heta|ext|an|au|o\b|op\b|frac|riangle|herefore|ilde|hin))?"""
)
"""A backslash, with what makes it an escape of JSON. `\\f` and `\\b` before a letter never do;
`\\n` and `\\t` do, unless a command of LaTeX begins there."""


def _object(reply: str) -> Mapping[str, object]:
    value = _json(reply, "{")
    return value if isinstance(value, dict) else {}


def _json(reply: str, opening: str) -> object:
    """The JSON value that begins at the first such bracket; `None` where there is none.

    Models write formulas into JSON as they write them elsewhere, with one backslash. Where it
    begins a command of LaTeX it is read as a backslash, also where JSON would make a tab of it.
    """
    start = reply.find(opening)
    if start < 0:
        return None
    text = _BACKSLASH.sub(lambda found: found[0] if found["escape"] else "\\\\", reply[start:])
    try:
        value: object = _DECODER.raw_decode(text)[0]
    except (ValueError, RecursionError):
        return None
    return value


def _text(value: object) -> str | None:
    """The text without surrounding white space; half surrogates go, which no file can hold."""
    if not isinstance(value, str):
        return None
    return value.strip().encode("utf-8", "replace").decode()


def _texts(value: object) -> tuple[str, ...] | None:
    if not isinstance(value, list):
        return None
    texts = [_text(part) for part in value]
    known = tuple(text for text in texts if text)
    return known if len(known) == len(texts) else None


def _tenths(value: object, least: int, most: int) -> int | None:
    """A number with at most one decimal, in tenths; `None` for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    if not least / 10 <= value <= most / 10:
        return None
    tenths = round(10 * value)
    return tenths if tenths / 10 == value else None
