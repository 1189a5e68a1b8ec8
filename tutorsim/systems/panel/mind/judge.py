"""The scripted judge: a score that follows what the student's words show."""

import re

from tutorsim.scripted_mind import Chance
from tutorsim.systems.panel.mind.prompt_reading import Asked
from tutorsim.systems.panel.mind.task_knowledge import Level, content_words, covers, level_of
from tutorsim.systems.panel.mind.wording import fill, load_wording

__all__ = ["judge_reply"]

_SCORES: dict[Level, tuple[str, ...]] = {
    3: ("1.0", "1.0", "0.9", "0.85"),
    2: ("0.7", "0.7", "0.7", "0.75", "0.6"),
    1: ("0.4", "0.4", "0.5", "0.3"),
    0: ("0.1", "0.1", "0.2", "0.0"),
}
_UNREADABLE = 0.003
_REREAD = 0.1
"""How often a second reading of the same answer gives another score than the text's own."""


def judge_reply(asked: Asked, chance: Chance) -> str:
    """`SCORE: x` and one line of rationale."""
    known, answer = asked.known, asked.graded
    words = answer.split("```", 1)[0]
    level = level_of(words, known)
    if known.invented:
        level = max(level, _by_reference(asked.user, words))
    blank = level == 0 and _is_blank(words, known.topic)
    own = Chance("score", known.question, words)
    score = (
        "0.0"
        if blank
        else (chance if chance.happens("reread", _REREAD) else own).pick("score", _SCORES[level])
    )
    kind = "blank" if blank else ("wrong", "partial", "nearly", "right")[level]
    why = fill(chance.pick("why", load_wording().judge[kind]), known)
    if chance.happens("unreadable", _UNREADABLE):
        return f"I would give this about {score}. {why}"
    return f"SCORE: {score}\n{why}"


def _by_reference(user: str, words: str) -> Level:
    """The level that agreement with the prompt's reference shows."""
    found = re.search(r"Reference answer:\s+(.+)((?:\n.+)*)", user)
    if found is None:
        return 0
    if covers(words, content_words(found[1])) < 0.8:
        return 0
    return 3 if covers(words, content_words(found[2])) >= 0.35 else 2


def _is_blank(words: str, topic: str) -> bool:
    """Whether the student says nothing but that there is no answer."""
    blanks = (blank for mood in load_wording().moods.values() for blank in mood.blanks)
    return not words.strip() or words.strip() in {blank.format(topic=topic) for blank in blanks}
