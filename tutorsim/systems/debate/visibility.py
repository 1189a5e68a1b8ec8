"""Paradigms: which messages reach which agents. One table, and nothing else decides it."""

from collections.abc import Callable, Mapping, Sequence
from typing import Final, Literal, NamedTuple

from tutorsim.records.debate import Paradigm

__all__ = ["PARADIGMS", "Place", "Ring", "visible"]

Ring = tuple[str, ...]
"""The agents, in order."""


class Place(NamedTuple):
    """Where in a debate a message was said."""

    number: int
    turn: int
    agent: str
    last_round: bool
    """Said in the turn's last round, or in a turn without rounds; only `debate` has rounds."""


Reaches = Callable[[Place, str, Ring], bool]
"""Whether a message reaches a reader other than its author."""


def _next(ring: Ring, agent: str) -> str:
    return ring[(ring.index(agent) + 1) % len(ring)]


def _debate(message: Place, reader: str, ring: Ring) -> bool:
    if message.agent == ring[0]:
        return True
    if reader == ring[0]:
        return message.last_round
    return reader == _next(ring[1:], message.agent)


PARADIGMS: Final[Mapping[Paradigm, Reaches]] = {
    "memory": lambda message, reader, ring: True,
    "relay": lambda message, reader, ring: reader == _next(ring, message.agent),
    "report": lambda message, reader, ring: ring[0] in (message.agent, reader),
    "debate": _debate,
    "collective": lambda message, reader, ring: True,
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

    def in_window(said: int) -> bool:
        if paradigm == "collective":
            return said == turn - 1
        return visible_turns == "all" or said >= turn - visible_turns

    reaches = PARADIGMS[paradigm]
    return tuple(
        message.number
        for message in messages
        if in_window(message.turn) and (message.agent == reader or reaches(message, reader, ring))
    )
