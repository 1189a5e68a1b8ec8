"""Who agrees and when a debate ends, with whose answer: one rule, for the flow and a recount of it.

Both ask `end_of` at every moment of `moments`, and once more with the vote of a turn:

    end = end_of("unanimity", Moment(turn, over, flags=flags), setup)
    end = end_of("approval", Moment(turn, True, leading=("agent_2",), agents=agents), setup)

A discussion agrees by one of four consensus rules over the flags of its messages, `agreed`. Which
answers of a vote are the same says `different_answers`.
"""

import re
from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import lru_cache
from typing import Final, Literal, NamedTuple, get_args

from tutorsim.records.debate import (
    Agreement,
    AgreementReading,
    AnswerRecord,
    DebateSetup,
    EndedBy,
    Majority,
    MessageKind,
)

ConsensusRule = Literal["majority", "supermajority", "unanimity", "hybrid"]
"""How many of the agents have to agree."""

CONSENSUS_RULES: Final[tuple[ConsensusRule, ...]] = get_args(ConsensusRule)
MAJORITIES: Final[tuple[Majority, ...]] = get_args(Majority)


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


# --- Consensus of a discussion -------------------------------------------------------------------

# The rules are those of Kaesberg et al. (2025), section 3, as the study words them: agreement
# counts from the newest proposal on. All shares are exact fractions, so 2 of 3 passes 66/100 and
# half of an even number is exactly half.

_TAG: Final = re.compile(r"\[\s*(AGREE|DISAGREE)\s*\]", re.IGNORECASE)
_HALF: Final = Fraction(1, 2)
_SUPERMAJORITY: Final = Fraction(66, 100)
_HYBRID: Final = Fraction(3, 4)
_HYBRID_AGENTS: Final = 3
"""Up to so many agents, `hybrid` asks for all of them."""
_HYBRID_TURN: Final = 5
"""Before this turn, `hybrid` asks for all agents."""


def read_agreement(text: str, reading: AgreementReading = "tag") -> Agreement:
    """Whether a message agrees.

    `reading`: `tag` takes the first tag in any letter case, and no tag is `unclear`; `lenient`
    agrees if the text contains "agree" and not "disagree".
    """
    if reading == "lenient":
        lower = text.lower()
        return "agree" if "agree" in lower and "disagree" not in lower else "disagree"
    found = _TAG.search(text)
    if found is None:
        return "unclear"
    return "agree" if found[1].upper() == "AGREE" else "disagree"


def newest_proposal(flags: Sequence[bool | None]) -> int | None:
    """Index of the newest message that does not agree; `None` if there is none.

    `flags`: one per message, oldest first: `True` agrees, `False` does not, `None` is a draft or a
    message that could not be read as either. Only `True` agrees.
    """
    for index in range(len(flags) - 1, -1, -1):
        if flags[index] is not True:
            return index
    return None


def agreed(
    flags: Sequence[bool | None],
    *,
    agents: int,
    rule: ConsensusRule,
    turn: int = 1,
    majority: Majority = "more_than_half",
) -> int | None:
    """Index of the message whose solution is agreed on; `None` while there is no consensus.

    The newest proposal counts if it is among the last `agents` messages, across turns.

    `flags`: as in `newest_proposal`: every message so far. `agents`: number of agents, from 1.
    `turn`: the current turn, from 1; only `hybrid` looks at it.
    """
    proposal = newest_proposal(flags)
    if proposal is None or len(flags) - proposal > agents:
        return None
    agreeing = len(flags) - proposal  # the proposer, and who agreed without a break
    everybody = agents <= _HYBRID_AGENTS or turn < _HYBRID_TURN
    enough = _enough(agreeing, agents, rule, majority, everybody=everybody)
    return proposal if enough else None


@lru_cache(maxsize=256)
def _enough(
    agreeing: int, agents: int, rule: ConsensusRule, majority: Majority, *, everybody: bool
) -> bool:
    """Whether so many of the agents suffice; `everybody`: `hybrid` asks for all of them now."""
    share = Fraction(agreeing, agents)
    match rule:
        case "majority":
            return share >= _HALF if majority == "at_least_half" else share > _HALF
        case "supermajority":
            return share >= _SUPERMAJORITY
        case "unanimity":
            return share == 1
        case "hybrid":
            return share == 1 if everybody else share >= _HYBRID


# --- Different answers ---------------------------------------------------------------------------


def different_answers(answers: Mapping[str, AnswerRecord]) -> dict[str, str]:
    """Author → first author of the same answer, in the order of the authors.

    Answers are the same if they are equal after trimming, case folding and dropping one trailing
    full stop.
    """
    first: dict[str, str] = {}
    return {
        agent: first.setdefault(_plain(answer.text), agent) for agent, answer in answers.items()
    }


def _plain(text: str) -> str:
    return text.strip().casefold().removesuffix(".").rstrip()
