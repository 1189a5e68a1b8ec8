"""Replies of usual length along the shortest and the longest path, for plans and estimates."""

import re
from collections.abc import Callable
from typing import Final

from tutorsim.flow_drivers import scripted
from tutorsim.mechanisms.flow import Effect, Sent
from tutorsim.model import Call
from tutorsim.systems.debate.ending import consensus_rule
from tutorsim.systems.debate.prompt_context import agent_names
from tutorsim.systems.debate.settings import DebateSettings

__all__ = ["path", "usual_reply"]

SENTENCE: Final = (
    "This stands for about eighteen words of the kind that agents write when they discuss a task. "
)
_FIRST: Final = re.compile(r"^([P-Y]): agent_1$", re.MULTILINE)


def path(settings: DebateSettings, condition: str, *, longest: bool) -> Callable[[Effect], Sent]:
    """A world that leads along the shortest or the longest path of a variant's episodes."""
    stage = f"debate_{settings.rounds - 1}"
    last = agent_names(settings.agents)[-1]

    def reply(call: Call) -> str:
        agent, by_consensus = call.key.agent, consensus_rule(condition) is not None
        proposes = by_consensus and (call.key.stage, agent) == (stage, last)
        same = call.key.stage == "answer" and settings.merge_identical
        if longest or not (proposes or same):
            return usual_reply(call, longest=longest)
        # after several rounds, agreement is counted from a proposal in the last one but one
        return "B" if same else "[DISAGREE]"

    return scripted(reply)


def usual_reply(call: Call, *, longest: bool) -> str:
    """A reply of usual length.

    On the longest path nobody agrees, no ballot can be read, so that every vote ties, and every
    answer is challenged. On the shortest one everybody agrees and votes for the first agent.
    """
    stage = call.key.stage
    if stage.startswith("vote_"):
        return "?" * len(call.key.agent) if longest else _ballot(call)
    if stage == "persona":
        return f'{{"role": "Expert {call.key.agent}", "description": "{SENTENCE}"}}'
    if stage in ("solve", "refine"):
        return f"{SENTENCE * 8}\nFinal solution: B"
    if stage == "challenge":
        return "DISAGREE" if longest else "AGREE"
    if stage.startswith(("message", "debate_")):
        return f"{'[DISAGREE]' if longest else '[AGREE]'} {SENTENCE * 5}"
    return call.key.agent


def _ballot(call: Call) -> str:
    """A ballot that ranks the first agent's answer first, in the form that the prompt shows."""
    user = call.request.user
    first = _FIRST.search(user)
    example = user.rpartition("for example: ")[2].split("\n")[0].partition(". Reply")[0]
    if first is None or not example:
        return "none"
    shown, label = example[0], first[1]
    if "=" not in example and len(example) > 1 and "Approve" in user:
        return label
    swap = {shown: label, label: shown}
    return "".join(swap.get(letter, letter) for letter in example)
