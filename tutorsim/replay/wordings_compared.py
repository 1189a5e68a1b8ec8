"""Recorded wordings against today's: which entries differ, and in which words."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from tutorsim.catalog.wordings_kept_with_recording import WordingNames, Wordings
from tutorsim.replay.first_difference import around, first_place

__all__ = ["Reworded", "reworded"]


@dataclass(frozen=True)
class Reworded:
    """An entry that is worded otherwise today."""

    name: str
    """Part, name and, in a table, field: `prompts.vote` or `roles.motivation.means`."""
    recorded: str
    """The recorded text around the first difference, escaped."""
    today: str | None
    """The text of today around the same place; `None` where there is none of that name."""
    line: int
    """Line of the first difference, from 1."""

    def __str__(self) -> str:
        now = "today there is none" if self.today is None else f"today {self.today}"
        return f"{self.name}, line {self.line}: recorded {self.recorded}, {now}."


def reworded(recorded: Wordings, today: Wordings, names: WordingNames) -> tuple[Reworded, ...]:
    """The entries that differ, by part and name.

    Args:
        recorded: Wordings of a recording; they hold every one of the names.
        today: Wordings of today; they may lack some.
        names: What the recording's study uses.
    """
    return tuple(
        found
        for part, entries in names.items()
        for name in sorted(entries)
        for found in _compared(f"{part}.{name}", recorded[part][name], today[part].get(name))
    )


def _compared(name: str, recorded: Any, today: Any) -> Iterator[Reworded]:
    if isinstance(recorded, dict) and isinstance(today, dict):
        for field, value in recorded.items():
            yield from _compared(f"{name}.{field}", value, today.get(field))
    elif recorded != today:
        yield _difference(name, str(recorded), None if today is None else str(today))


def _difference(name: str, recorded: str, today: str | None) -> Reworded:
    at = 0 if today is None else first_place(recorded, today)
    return Reworded(
        name=name,
        recorded=around(recorded, at),
        today=None if today is None else around(today, at),
        line=recorded.count("\n", 0, at) + 1,
    )
