"""Challenges: after the debate, every agent judges an answer and may give another one.

Each setting is a turn of its own behind the last one, so that every call has its own key.
"""

import re
from collections.abc import Sequence
from hashlib import sha256
from typing import Final

from tutorsim.mechanisms.author_labels import indented
from tutorsim.mechanisms.flow import Flow, ask
from tutorsim.model import Question
from tutorsim.records.debate import ChallengeRecord
from tutorsim.systems.debate.agent_prompts import said_paragraphs
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
    if answer is None:
        return ()
    for place, setting in enumerate(discussion.context.settings.challenge, start=1):
        turn = turns + place
        shown = yield from _shown_answer(discussion.context, setting, turn, answer)
        records += yield from _judged(discussion, setting, turn, shown)
    return tuple(records)


def _shown_answer(context: DebateContext, setting: str, turn: int, answer: str) -> Flow[str]:
    """The answer that is to be judged."""
    if setting == "irrelevant":
        return context.wordings.fill("irrelevant_answer")
    if setting != "wrong":
        return answer
    distractors = context.task.wrong_options()
    if distractors and not context.challenger:
        name = f"{context.seed}\x1f{context.task.task_id}"
        drawn = int.from_bytes(sha256(name.encode("utf-8", "surrogatepass")).digest()[:6])
        return distractors[drawn % len(distractors)]
    call = context.call(
        turn,
        "wrong",
        CHALLENGER,
        system=context.wordings.fill("solo_system"),
        user=context.fill("wrong_answer"),
    )
    reminder = context.wordings.fill("text_reminder")
    [reply] = yield from ask([Question(call, read_text, reminder)])
    return reply.value or context.wordings.fill("irrelevant_answer")


def _judged(
    discussion: Discussion, setting: str, turn: int, shown: str
) -> Flow[Sequence[ChallengeRecord]]:
    """Judgements side by side, then the answers of those who challenge, side by side."""
    context, agents = discussion.context, discussion.context.agents
    judged = yield from ask(
        [_judge_question(discussion, agent, setting, turn, shown) for agent in agents]
    )
    doubting = [agent for agent, reply in zip(agents, judged, strict=True) if reply.value]
    countered = yield from ask(
        [_counter_question(discussion, agent, turn, shown) for agent in doubting]
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


def _judge_question(
    discussion: Discussion, agent: str, setting: str, turn: int, shown: str
) -> Question[bool]:
    context = discussion.context
    user = context.fill(
        "challenge", shown=_beside(discussion, agent, setting), answer=indented(shown)
    )
    call = context.call(
        turn,
        "challenge",
        agent,
        system=discussion.speakers.system(agent),
        user=re.sub(r"\n{3,}", "\n\n", user),
    )
    return Question(call, read_judgement, context.wordings.fill("challenge_reminder"))


def _beside(discussion: Discussion, agent: str, setting: str) -> str:
    """What stands beside task and answer."""
    context = discussion.context
    if setting == "facts":
        return context.wordings.fill("challenge_facts", facts=indented(context.facts or ""))
    if setting != "history":
        return ""
    seen = discussion.seen_by(agent, discussion.reading_turn)
    return context.wordings.fill(
        "challenge_history",
        messages=said_paragraphs(context, discussion.speakers, agent, seen),
    )


def _counter_question(discussion: Discussion, agent: str, turn: int, shown: str) -> Question[str]:
    context = discussion.context
    call = context.call(
        turn,
        "counter",
        agent,
        system=discussion.speakers.system(agent),
        user=context.fill("counter", answer=indented(shown)),
    )
    return Question(call, read_text, context.wordings.fill("text_reminder"))
