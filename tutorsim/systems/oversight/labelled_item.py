"""What is labelled: a dialogue, and a tutor's reply to the student's last message."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal, NamedTuple

from tutorsim.records.oversight import AuditedReply, dialogue_text

__all__ = ["Item", "SpeakerTurn", "has_reference", "speaker_turns"]

Speaker = Literal["Tutor", "Student"]

_TURN_HEAD: Final = re.compile(r"^\s*(Tutor|Student)[^\S\n]*:", re.MULTILINE)
"""A speaker at a line's start; Unicode white space, as no-break spaces, may stand before it."""


class SpeakerTurn(NamedTuple):
    """What one speaker said before the other spoke."""

    speaker: Speaker
    text: str


@dataclass(frozen=True)
class Item:
    """One reply to label."""

    task_id: str
    dialogue: tuple[SpeakerTurn, ...]
    reply: str
    conversation: str
    """Items of one conversation are one cluster in every interval."""
    occurrence: int = 1
    """From 1: which row of the file the conversation's id has come up in."""
    tutor: str = ""
    annotation: Mapping[str, str] = field(default_factory=dict)
    """As published; empty for an unlabelled reply. It is in no prompt."""
    fields: Mapping[str, Any] = field(default_factory=dict)
    """What else the row of a published file says, such as the reference solution."""
    history: str = ""
    """The dialogue as the file has it; empty where it had turns."""
    benchmark: str = "mrbench"
    reference: str = ""
    """The right answer, where the source has one; shown with `show_reference` only."""
    audited: AuditedReply | None = None
    """`None` for a reply of a published file."""

    @property
    def last_student_turn(self) -> int:
        """Index in the dialogue of the student's last message."""
        return max(i for i, turn in enumerate(self.dialogue) if turn.speaker == "Student")

    @property
    def message(self) -> str:
        """The student's last message."""
        return self.dialogue[self.last_student_turn].text

    @property
    def dialogue_text(self) -> str:
        """What the dialogue is told by: its turns, whatever their white space."""
        return dialogue_text(self.dialogue)

    def published(self) -> dict[str, Any]:
        """All that the item says, as digests cover it."""
        return {
            "task_id": self.task_id,
            "conversation_id": self.conversation,
            "dialogue": [list(turn) for turn in self.dialogue],
            "response": self.reply,
            "annotation": dict(self.annotation),
            "reference": self.reference,
            "audited": None if self.audited is None else self.audited.model_dump(mode="json"),
        }

    def before(self, count: int) -> tuple[SpeakerTurn, ...]:
        """Up to so many speaker turns before the student's last message."""
        end = self.last_student_turn
        return self.dialogue[max(0, end - count) : end]


def has_reference(item: Item, absent: str) -> bool:
    """Whether an item has a right answer, and not the words by which its file says it has none."""
    return item.reference.strip().casefold() not in ("", absent.casefold())


def speaker_turns(history: str) -> tuple[SpeakerTurn, ...] | None:
    """The speaker turns in the text of a dialogue; other lines continue a turn.

    Returns:
        The turns; `None` if there is text before the first speaker, or no speaker at all.
    """
    parts = _TURN_HEAD.split(history)
    if parts[0].strip() or len(parts) < 2:
        return None
    pairs = zip(parts[1::2], parts[2::2], strict=True)
    return tuple(
        SpeakerTurn("Tutor" if speaker == "Tutor" else "Student", _tidy(text))
        for speaker, text in pairs
    )


def _tidy(text: str) -> str:
    """The text with white space taken off the ends of its lines."""
    return "\n".join(line.strip() for line in text.strip().split("\n"))
