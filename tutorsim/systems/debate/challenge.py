"""Challenges: after the debate, every agent judges an answer and may give another one.

Each setting is a turn of its own behind the last one, so that every call has its own key.
"""

import re
from hashlib import sha256
from typing import Final

from tutorsim.mechanisms.author_labels import indented
from tutorsim.mechanisms.flow import Flow, ask
from tutorsim.records.debate import ChallengeRecord
from tutorsim.systems.debate.discussion import Discussion
from tutorsim.systems.debate.prompt_context import DebateContext
from tutorsim.systems.debate.reply_reading import read_text

__all__ = ["CHALLENGER", "challenges", "read_judgement"]

CHALLENGER: Final = "challenger"
"""The agent that makes up wrong answers."""
_JUDGEMENT: Final = re.compile(r"\W*(AGREE|DISAGREE)\W*", re.IGNORECASE)


def read_judgement(reply: str) -> bool | None:
    """Whether a reply challenges: `DISAGREE` and no other word; `None` if it is neither word."""
    found = _JUDGEMENT.fullmatch(reply)
    return None if found is None else found[1].upper() == "DISAGREE"


def challenges(
    discussion: Discussion, turns: int, answer: str | None
) -> Flow[tuple[ChallengeRecord, ...]]:
    """Ask every agent to judge an answer, once for each setting of the study.

    Args:
        discussion: The debate.
        turns: Turns that it took.
        answer: What was delivered; nothing is judged if there is none.
    """
    records: list[ChallengeRecord] = []
    settings = () if answer is None else discussion.context.settings.challenge
    for turn, setting in enumerate(settings, start=turns + 1):
        shown = yield from _shown_answer(discussion.context, setting, turn, answer or "")
        records += yield from _judged(discussion, setting, turn, shown)
    return tuple(records)


def _shown_answer(context: DebateContext, setting: str, turn: int, answer: str) -> Flow[str]:
    """The answer that is to be judged."""
    if setting == "irrelevant":
        return context.fill("irrelevant_answer")
    if setting != "wrong":
        return answer
    distractors = context.task.wrong_options()
    if distractors and not context.challenger:
        name = f"{context.seed}\x1f{context.task.task_id}"
        drawn = int.from_bytes(sha256(name.encode("utf-8", "surrogatepass")).digest()[:6])
        return distractors[drawn % len(distractors)]
    system, user = context.fill("solo_system"), context.fill("wrong_answer")
    question = context.asking(turn, "wrong", CHALLENGER, read_text, system=system, user=user)
    [reply] = yield from ask([question])
    return reply.value or context.fill("irrelevant_answer")


def _judged(
    discussion: Discussion, setting: str, turn: int, shown: str
) -> Flow[list[ChallengeRecord]]:
    """Judgements side by side, then the answers of those who challenge, side by side."""
    context, agents, asked = discussion.context, discussion.context.agents, discussion.question
    judged = yield from ask(
        [
            asked(
                *(turn, "challenge", agent, "challenge", read_judgement),
                reminder="challenge_reminder",
                shown=_beside(discussion, agent, setting),
                answer=indented(shown),
            )
            for agent in agents
        ]
    )
    doubting = [agent for agent, reply in zip(agents, judged, strict=True) if reply.value]
    countered = yield from ask(
        [
            asked(
                *(turn, "counter", agent, "counter", read_text),
                may_lack=False,
                answer=indented(shown),
            )
            for agent in doubting
        ]
    )
    counters = {agent: reply.value or "" for agent, reply in zip(doubting, countered, strict=True)}
    return [
        ChallengeRecord(
            setting=setting,
            agent=agent,
            shown_answer=shown,
            challenged=reply.value,
            raw=reply.raw,
            counter=counters.get(agent),
            score=context.task.score(counters[agent]).value if agent in counters else None,
            attempts=reply.attempts,
        )
        for agent, reply in zip(agents, judged, strict=True)
    ]


def _beside(discussion: Discussion, agent: str, setting: str) -> str:
    """What stands beside task and answer."""
    context = discussion.context
    match setting:
        case "facts":
            return context.fill("challenge_facts", facts=indented(context.facts or ""))
        case "history":
            messages = discussion.paragraphs(agent, discussion.seen_by(agent))
            return context.fill("challenge_history", messages=messages)
        case _:
            return ""
