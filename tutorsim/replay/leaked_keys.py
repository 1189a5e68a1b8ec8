"""Keys that must not get into a recording, and keys that got into one.

A credential in use is known by its text. Any other is known by its shape: the fixed beginnings
that issuers give their keys so that they can be found where they do not belong.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from tutorsim.errors import RecordingRefused

__all__ = [
    "REDACTED",
    "json_strings",
    "key_shaped",
    "redacted",
    "refuse_keys",
    "without_keys",
    "without_secrets",
]

REDACTED: Final = "[credential]"
_SHOWN: Final = 8
"""Characters of a key that a message shows."""
_SHORTEST: Final = 8
"""Characters of a credential; shorter texts stand in for one where any will do."""
_SHAPES: Final = re.compile(
    r"sk-ant-[A-Za-z0-9_-]{16,}"
    r"|sk-(?:proj-)?[A-Za-z0-9]{32,}"
    r"|gh[pousr]_[A-Za-z0-9]{36,}"
    r"|github_pat_[A-Za-z0-9_]{22,}"
    r"|AKIA[0-9A-Z]{16}(?![0-9A-Z])"
    r"|AIza[0-9A-Za-z_-]{35}"
    r"|xox[abprs]-[0-9A-Za-z-]{20,}"
    r"|-----BEGIN (?:[A-Z]+ )?PRIVATE KEY-----"
)
_ESCAPED: Final = re.compile(r"(?:\\)+u00([2-7][0-9a-fA-F])")
"""A printable ASCII character written as an escape of JSON, in JSON inside JSON too."""


def key_shaped(text: str) -> list[str]:
    """Strings in the shape of a key, each with its beginning only; none twice."""
    if "\\u00" in text:
        text = _ESCAPED.sub(lambda found: chr(int(found[1], 16)), text)
    return [f"{found[:_SHOWN]}…" for found in dict.fromkeys(_SHAPES.findall(text))]


def without_keys(text: str, secrets: Sequence[str]) -> str:
    """A message without credentials in use, and with the beginning alone of what looks like one."""
    known = [secret for secret in secrets if len(secret) >= _SHORTEST]
    return _SHAPES.sub(lambda found: f"{found[0][:_SHOWN]}…", _redacted(text, known))


def refuse_keys(texts: Mapping[str, Any], secrets: Sequence[str]) -> None:
    """Refuse to record what contains a key, before anything is written or sent.

    Args:
        texts: What is meant, for the error → its JSON value.
        secrets: Credentials in use.

    Raises:
        RecordingRefused: Naming what contains one, and where.
    """
    for name, value in texts.items():
        for place, text in json_strings(value, name):
            used = any(secret in text for secret in secrets)
            shaped = key_shaped(text)
            if used or shaped:
                what = "the credential in use" if used else f"a string like a key, {shaped[0]}"
                raise RecordingRefused(
                    f"{place} contains {what}, so the study must not be recorded.",
                    why="Recordings are shared; a credential in one is a credential given away.",
                    hint="Take it out of the study, its tasks and prompts. Then replace the "
                    "credential.",
                )


def without_secrets(texts: Mapping[str, str], secrets: Iterable[str]) -> dict[str, str]:
    """Headers with every credential in their values redacted."""
    return {name: _redacted(text, [*secrets]) for name, text in texts.items()}


def redacted(text: str, secrets: Sequence[str]) -> str:
    """A body with credentials redacted that escapes of JSON hide.

    Args:
        text: JSON.
        secrets: Credentials in use.

    Returns:
        The very text, unless one of its strings contains a credential.
    """
    if not secrets or "\\" not in text:
        return text
    value = json.loads(text)
    if not any(secret in string for _, string in json_strings(value, "") for secret in secrets):
        return text
    return json.dumps(_replaced(value, secrets), ensure_ascii=False, separators=(",", ":"))


def json_strings(value: Any, place: str) -> Iterator[tuple[str, str]]:
    """Every string of a JSON value, names of fields among them, with its place."""
    if isinstance(value, str):
        yield place, value
    elif isinstance(value, Mapping):
        for name, inner in value.items():
            yield place, str(name)
            yield from json_strings(inner, f"{place}.{name}" if place else str(name))
    elif isinstance(value, Sequence):
        for index, inner in enumerate(value):
            yield from json_strings(inner, f"{place}[{index}]")


def _replaced(value: Any, secrets: Sequence[str]) -> Any:
    if isinstance(value, str):
        return _redacted(value, secrets)
    if isinstance(value, dict):
        return {_redacted(name, secrets): _replaced(v, secrets) for name, v in value.items()}
    if isinstance(value, list):
        return [_replaced(inner, secrets) for inner in value]
    return value


def _redacted(text: str, secrets: Sequence[str]) -> str:
    for secret in secrets:
        text = text.replace(secret, REDACTED)
    return text
