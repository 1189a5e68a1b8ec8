"""When a debate ends, and with whose answer: one rule, for the flow and for a recount of its log.

Both ask `end_of` at every moment of `moments`, and once more with the vote of a turn:

    end = end_of("unanimity", Moment(turn, over, flags=flags), setup)
    end = end_of("approval", Moment(turn, True, leading=("agent_2",), agents=agents), setup)
"""

from collections.abc import Sequence
from typing import Final, NamedTuple

from tutorsim.ballots_and_decisions import (
    CONSENSUS_RULES,
    ConsensusRule,
    agreed,
    newest_proposal,
)
from tutorsim.records.debate import DebateSetup, EndedBy, MessageKind


class Moment(NamedTuple):
    """A debate when its protocol is asked."""

    turn: int
    over: bool
    """Everybody has spoken in the turn."""
    flags: Sequence[bool | None] = ()
    """Every message so far, as the consensus rules count it."""
    leading: tuple[str, ...] = ()
    """Candidates that lead the vote of the turn, or the only one; empty if there was no vote."""
    agents: Sequence[str] = ()
    """The agents in order, where there was a vote."""


class End(NamedTuple):
    """How a debate ends."""

    by: EndedBy
    decided: bool | None
    """Whether the protocol decided, and not the limit of turns."""
    author: str | None = None
    """Agent whose final answer a vote delivers; `None` if it delivers nothing."""
    message: int | None = None
    """Index of the message whose solution a consensus rule delivers."""


def consensus_rule(protocol: str) -> ConsensusRule | None:
    """The consensus rule of this name; `None` for other protocols."""
    return _CONSENSUS.get(protocol)


_CONSENSUS: Final[dict[str, ConsensusRule]] = {name: name for name in CONSENSUS_RULES}


def moments(kinds: Sequence[MessageKind], setup: DebateSetup) -> Sequence[int]:
    """After how many messages of a turn a consensus rule is asked.

    Drafts are written side by side, and a turn of paradigm `debate` is judged when it is over.

    `kinds`: kinds of the turn's messages, in order.
    """
    together = setup.paradigm == "debate" or all(kind == "draft" for kind in kinds)
    return (len(kinds),) if together else range(1, len(kinds) + 1)


def end_of(protocol: str, moment: Moment, setup: DebateSetup) -> End | None:
    """How a debate ends at a moment; `None` if it goes on.

    `protocol`: a voting protocol, a consensus rule, or `full`, which goes on to its limit.
    """
    last = moment.over and moment.turn == setup.max_turns
    rule = consensus_rule(protocol)
    if rule is not None:
        index = agreed(
            moment.flags, agents=setup.agents, rule=rule, turn=moment.turn, majority=setup.majority
        )
        if index is not None:
            return End("consensus", True, message=index)
        return End("limit", False, message=newest_proposal(moment.flags)) if last else None
    if protocol == "full":
        return End("full", None) if last else None
    leading = moment.leading
    if len(leading) == 1:
        return End("vote", True, author=leading[0])
    if not leading or not last:
        return None
    chosen = {"first_agent": moment.agents[0], "leader": leading[0], "none": None}
    return End("limit", False, author=chosen[setup.undecided])
