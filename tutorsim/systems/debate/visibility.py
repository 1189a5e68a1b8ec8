"""Paradigms: which messages reach which agents. One table, and nothing else decides it."""

from collections.abc import Callable, Mapping, Sequence
from typing import Final, Literal, NamedTuple

from tutorsim.records.debate import Paradigm

__all__ = ["PARADIGMS", "Place", "Ring", "visible"]


class Place(NamedTuple):
    """Where in a debate a message was said."""

    number: int
    turn: int
    agent: str
    last_round: bool
    """Said in the turn's last round, or in a turn without rounds; only `debate` has rounds."""


class Ring(NamedTuple):
    """The agents, in order."""

    agents: tuple[str, ...]

    @property
    def first(self) -> str:
        return self.agents[0]

    def after(self, agent: str) -> str:
        """The next of all agents."""
        return _next(self.agents, agent)

    def debater_after(self, agent: str) -> str:
        """The next of the agents other than the first."""
        return _next(self.agents[1:], agent)


def _next(ring: Sequence[str], agent: str) -> str:
    return ring[(ring.index(agent) + 1) % len(ring)]


Reaches = Callable[[Place, str, Ring], bool]
"""Whether a message reaches a reader other than its author."""


def _memory(message: Place, reader: str, ring: Ring) -> bool:
    return True


def _relay(message: Place, reader: str, ring: Ring) -> bool:
    return reader == ring.after(message.agent)


def _report(message: Place, reader: str, ring: Ring) -> bool:
    return ring.first in (message.agent, reader)


def _debate(message: Place, reader: str, ring: Ring) -> bool:
    if message.agent == ring.first:
        return True
    if reader == ring.first:
        return message.last_round
    return reader == ring.debater_after(message.agent)


PARADIGMS: Final[Mapping[Paradigm, Reaches]] = {
    "memory": _memory,
    "relay": _relay,
    "report": _report,
    "debate": _debate,
    "collective": _memory,
}
"""Whom a message reaches, its author apart, whom it always reaches."""


def visible(
    messages: Sequence[Place],
    *,
    reader: str,
    turn: int,
    ring: Ring,
    paradigm: Paradigm,
    visible_turns: int | Literal["all"],
) -> tuple[int, ...]:
    """Numbers of the messages that an agent sees when it speaks in a turn, oldest first.

    Args:
        messages: Everything said so far.
        reader: Who is about to speak.
        turn: The turn in which it speaks.
        ring: All agents.
        paradigm: Who sees what.
        visible_turns: Earlier turns shown beside the current one. Paradigm `collective` has no
            use for it: there, everybody sees the turn before and no other.
    """
    reaches = PARADIGMS[paradigm]
    return tuple(
        message.number
        for message in messages
        if _in_window(message.turn, turn, paradigm, visible_turns)
        and (message.agent == reader or reaches(message, reader, ring))
    )


def _in_window(
    said: int, turn: int, paradigm: Paradigm, visible_turns: int | Literal["all"]
) -> bool:
    if paradigm == "collective":
        return said == turn - 1
    return visible_turns == "all" or said >= turn - visible_turns
