"""When a discussion agrees: four consensus rules over the flags of its messages.

The rules are those of Kaesberg et al. (2025), section 3, as the study words them: agreement
counts from the newest proposal on. All shares are exact fractions, so 2 of 3 passes 66/100 and
half of an even number is exactly half.
"""

import re
from collections.abc import Sequence
from fractions import Fraction
from typing import Final, Literal, NamedTuple, get_args

Agreement = Literal["agree", "disagree", "unclear", "none"]
"""What a message says of the current solution.

`unclear`: asked for a tag, and none was read; `none`: not asked for one."""

AgreementReading = Literal["tag", "lenient"]
"""The first tag in the reply, or the published program's search for the two words."""

ConsensusRule = Literal["majority", "supermajority", "unanimity", "hybrid"]
"""How many of the agents have to agree."""

Majority = Literal["more_than_half", "at_least_half"]
"""What `majority` asks for: the study's words, or those of its program."""

CONSENSUS_RULES: Final[tuple[ConsensusRule, ...]] = get_args(ConsensusRule)
MAJORITIES: Final[tuple[Majority, ...]] = get_args(Majority)

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


class Support(NamedTuple):
    """A proposal and how many stand behind it."""

    proposal: int
    """Index of the proposal among all flags."""
    agents: int
    """The proposer and the agreements that followed without a break."""


def newest_proposal(flags: Sequence[bool | None]) -> int | None:
    """Index of the newest message that does not agree; `None` if there is none.

    `flags`: one per message, oldest first: `True` agrees, `False` does not, `None` is a draft or a
    message that could not be read as either. Only `True` agrees.
    """
    for index in range(len(flags) - 1, -1, -1):
        if flags[index] is not True:
            return index
    return None


def support(flags: Sequence[bool | None], agents: int) -> Support | None:
    """The newest proposal among the last `agents` messages, across turns, and its support.

    Returns `None` if none of these messages is a proposal: nothing is agreed on then.
    """
    proposal = newest_proposal(flags)
    if proposal is None or len(flags) - proposal > agents:
        return None
    return Support(proposal, len(flags) - proposal)


def agreed(
    flags: Sequence[bool | None],
    *,
    agents: int,
    rule: ConsensusRule,
    turn: int = 1,
    majority: Majority = "more_than_half",
) -> int | None:
    """Index of the message whose solution is agreed on; `None` while there is no consensus.

    `flags`: as in `newest_proposal`: every message so far. `agents`: number of agents, from 1.
    `turn`: the current turn, from 1; only `hybrid` looks at it.
    """
    standing = support(flags, agents)
    if standing is None:
        return None
    share = Fraction(standing.agents, agents)
    if _enough(share, rule, majority, everybody=agents <= _HYBRID_AGENTS or turn < _HYBRID_TURN):
        return standing.proposal
    return None


def _enough(share: Fraction, rule: ConsensusRule, majority: Majority, *, everybody: bool) -> bool:
    """Whether a share of the agents suffices; `everybody`: `hybrid` asks for all of them now."""
    match rule:
        case "majority":
            return share >= _HALF if majority == "at_least_half" else share > _HALF
        case "supermajority":
            return share >= _SUPERMAJORITY
        case "unanimity":
            return share == 1
        case "hybrid":
            return share == 1 if everybody else share >= _HYBRID
