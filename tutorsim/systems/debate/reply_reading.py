"""How agents' replies are read; ballots are read by `tutorsim.voting`."""

import json
import re
from collections.abc import Collection, Iterator
from contextlib import suppress
from typing import Any, Final, NamedTuple

_CONFIDENCE: Final = re.compile(
    r"\n[ \t>*_#]*CONFIDENCE[ \t*_]*:[ \t*_]*([0-9]{1,3})[ \t]*(?:%|/[ \t]*100)?[ \t*_.]*(?=\n|$)",
    re.IGNORECASE,
)


class ReadPersona(NamedTuple):
    """A participant as a reply describes it."""

    role: str
    description: str


class ReadAnswer(NamedTuple):
    """A final answer; the confidence is `None` if the reply states none from 0 to 100."""

    text: str
    confidence: int | None


def read_text(reply: str) -> str | None:
    """The reply without surrounding white space; `None` if it is empty."""
    return reply.strip() or None


def read_answer(reply: str, *, confidence: bool) -> ReadAnswer | None:
    """A final answer, with the line `CONFIDENCE:` taken off if one was asked for.

    Returns:
        `None` if nothing but that line is left.
    """
    if not confidence:
        text = read_text(reply)
        return None if text is None else ReadAnswer(text, None)
    stated = _CONFIDENCE.search(f"\n{reply}")
    text = read_text(_CONFIDENCE.sub("\n", f"\n{reply}"))
    if text is None:
        return None
    value = int(stated[1]) if stated else -1
    return ReadAnswer(text, value if 0 <= value <= 100 else None)


def read_persona(reply: str, taken: Collection[str]) -> ReadPersona | None:
    """The first JSON object that has a role and a description.

    `None` if there is no such object, or its role is taken, whatever its letter case.
    """
    for value in _objects(reply):
        role, description = value.get("role"), value.get("description")
        if not (isinstance(role, str) and isinstance(description, str)):
            continue
        name = " ".join(role.split())
        if not (name and description.strip()):
            continue
        if name.casefold() in {other.casefold() for other in taken}:
            return None
        return ReadPersona(name, description.strip())
    return None


def _objects(text: str) -> Iterator[dict[str, Any]]:
    """JSON objects in a text, in the order of their first characters."""
    decoder, at = json.JSONDecoder(), text.find("{")
    while at != -1:
        with suppress(ValueError, RecursionError):
            value = decoder.raw_decode(text, at)[0]
            if isinstance(value, dict):
                yield value
        at = text.find("{", at + 1)
