"""Where two JSON values first differ, in one sentence. Computed only once something differs."""

from typing import Any, Final

__all__ = ["around", "first_difference", "first_place"]

AROUND: Final = 30
"""Characters shown on each side of the first differing one."""
SHOWN: Final = 80
"""Characters shown of a value that is not a text."""


def first_difference(recorded: Any, asked: Any) -> str:
    """Describe the first difference: field, place in it, and the text around it from both sides.

    Fields are visited in sorted order. Texts are shown escaped, so that nothing in them acts on
    a terminal.
    """
    return _difference("", recorded, asked) or "The values are equal."


def _difference(path: str, recorded: Any, asked: Any) -> str | None:
    if type(recorded) is not type(asked):
        return None if recorded == asked else _values(path, recorded, asked)
    if isinstance(recorded, dict):
        return _in_fields(path, recorded, asked)
    if isinstance(recorded, list):
        return _in_items(path, recorded, asked)
    if recorded == asked:
        return None
    if isinstance(recorded, str):
        return _texts(path, recorded, asked)
    return _values(path, recorded, asked)


def _in_fields(path: str, recorded: dict[str, Any], asked: dict[str, Any]) -> str | None:
    for name in sorted(recorded.keys() | asked.keys()):
        field = f"{path}.{name}" if path else name
        if name not in asked:
            return f"{field} is in the recording only: {_short(recorded[name])}."
        if name not in recorded:
            return f"{field} is in this call only: {_short(asked[name])}."
        if found := _difference(field, recorded[name], asked[name]):
            return found
    return None


def _in_items(path: str, recorded: list[Any], asked: list[Any]) -> str | None:
    for index, (old, new) in enumerate(zip(recorded, asked, strict=False)):
        if found := _difference(f"{path}[{index}]", old, new):
            return found
    if len(recorded) != len(asked):
        return f"{path} has {len(recorded)} items in the recording and {len(asked)} in this call."
    return None


def _texts(path: str, recorded: str, asked: str) -> str:
    at = first_place(recorded, asked)
    return (
        f"{path or 'The value'} differs at character {at} "
        f"(of {len(recorded)} recorded, {len(asked)} in this call): "
        f"recorded {around(recorded, at)}, now {around(asked, at)}."
    )


def first_place(recorded: str, asked: str) -> int:
    """Index of the first character that differs, or at which one of the texts ends."""
    pairs = zip(recorded, asked, strict=False)
    shorter = min(len(recorded), len(asked))
    return next((i for i, (old, new) in enumerate(pairs) if old != new), shorter)


def around(text: str, at: int) -> str:
    """The text around a place, escaped so that nothing in it acts on a terminal."""
    start, end = max(0, at - AROUND), at + AROUND
    before, after = "…" if start else "", "…" if end < len(text) else ""
    return before + repr(text[start:end]) + after


def _values(path: str, recorded: Any, asked: Any) -> str:
    return f"{path or 'The value'}: recorded {_short(recorded)}, now {_short(asked)}."


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= SHOWN else text[:SHOWN] + "…"
