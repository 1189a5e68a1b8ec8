"""An episode as a reader sees it: who said what, in order, and what was decided."""

from dataclasses import dataclass

__all__ = ["Dialogue", "Message"]


@dataclass(frozen=True)
class Message:
    """One message, ballot or decision."""

    speaker: str
    text: str
    note: str = ""
    """What else is known of it: when, to whom, how it was read. Empty for nothing."""
    quiet: bool = False
    """Something that was not said aloud, such as a thought or a ballot."""


@dataclass(frozen=True)
class Dialogue:
    """One episode, message by message."""

    id: str
    """The episode's id."""
    why: str
    """Why it is shown."""
    messages: tuple[Message, ...]
    facts: tuple[tuple[str, str], ...] = ()
    """Name → value: what came of it."""
