"""Who watches the scripted group: stage manager, predictor, judge, raters and coders."""

import json
import re
from collections.abc import Sequence
from typing import Final

from tutorsim.scripted_mind import Chance
from tutorsim.systems.group.standin_prompt import Prompt

__all__ = ["category", "prediction", "rating", "ruling", "verdict"]


def ruling(prompt: Prompt, chance: Chance) -> str:
    """Tick the open tasks whose line somebody has written."""
    texts = " ".join(message.text for message in prompt.said)
    done = [task for task in prompt.open_tasks if prompt.fact(task) in texts]
    left = [task for task in prompt.open_tasks if task not in done]
    fresh = len(left) == len(prompt.tasks)
    signal = "next" if not left else "close" if len(left) == 1 else "continue"
    reason = "The messages show it." if done else "Nothing new is done."
    if chance.happens("stranger", 0.02):
        done.append("9.9")
    return json.dumps({"reason": reason, "signal": "start" if fresh else signal, "completed": done})


def prediction(prompt: Prompt, chance: Chance) -> str:
    """The member whose role fits the last message, not always."""
    names = re.search(r"exactly one name of (.*?) and nothing", prompt.user)
    shown = names[1].split(", ") if names else []
    others = [name for name in shown if name != prompt.last.who] or shown
    fitting = _fitting(prompt)
    best = [name for name in others if name in fitting]
    if best and chance.happens("fits", 0.6):
        return best[0]
    return chance.pick("anybody", others) if others else "nobody"


def _fitting(prompt: Prompt) -> list[str]:
    """Members whose goal fits what was said last, best first."""
    members = dict(re.findall(r"^([^:\n]+): ([^;\n]+);", prompt.section("Members"), re.MULTILINE))
    text = prompt.last.text
    wanted = "expert"
    if prompt.mood("low", text) or prompt.mood("glad", text):
        wanted = "emotional"
    elif prompt.mood("drift", text) or not prompt.said or len(prompt.open_tasks) == 1:
        wanted = "leader"
    asked = [name for name in members if re.search(rf"\b{re.escape(name)}\b", text)]
    return [*asked, *(name for name, title in members.items() if wanted in title)]


def verdict(prompt: Prompt, chance: Chance) -> str:
    """The better fit wins; near ties go to whatever stands first, as a biased judge would."""
    worth = [_worth(prompt, prompt.section(f"Continuation {number}")) for number in (1, 2)]
    lead = worth[0] - worth[1] + (0.45 if chance.happens("first", 0.3) else 0.0)
    better = "same" if abs(lead) < 0.1 else "1" if lead > 0 else "2"
    return f"BETTER: {better}\nIt answers the last message more closely."


def _worth(prompt: Prompt, reply: str) -> float:
    """What a continuation is worth; the same reply is worth the same in both orders."""
    who, _, text = reply.strip().partition(": ")
    if not text:
        return 0.5
    fits = who in _fitting(prompt)[:1]
    fixes = any(wrong.fix in text for wrong in prompt.known.wrong)
    wording = 0.05 * (sum(map(ord, text)) % 11)
    return 1.0 + fits + fixes + wording


def rating(prompt: Prompt, chance: Chance) -> str:
    """Rate a continuation by what it is worth, with some noise."""
    worth = _worth(prompt, prompt.section("Message to rate"))
    names = re.findall(r'"(\w+)": 1\.0', prompt.user)
    return json.dumps(
        {
            name: round(min(10.0, max(1.0, 4.2 + 1.4 * worth + 0.7 * chance.bell(name))), 1)
            for name in names
        }
    )


_CODED: Final[Sequence[tuple[int, str]]] = (
    (11, r"not sure|stupid|afraid|sorry|without me"),
    (1, r"well done|great,|do not worry|good try|more than you think|kind"),
    (2, r"\bha\b|fun later|puzzle|football|music|goal"),
    (10, r"careful|not quite|\bno\b|wait:"),
    (9, r"shall we"),
    (8, r"what do you think|would you like|do you agree"),
    (7, r"\?"),
    (3, r"\byes\b|agree|sounds right|now i see"),
    (4, r"let us|we can|start with|begin with|call the"),
    (5, r"i think|my guess|i like|i would"),
)
"""Category and its cues, in the order in which they are looked for; otherwise 6."""


def category(prompt: Prompt, chance: Chance) -> str:
    """Code a message by its cues, sometimes otherwise."""
    text = prompt.section("Message to code").lower()
    found = next((number for number, cues in _CODED if re.search(cues, text)), 6)
    if chance.happens("other", 0.14):
        found = chance.pick("which", (3, 4, 5, 6, 7, 8))
    return f"CATEGORY: {found}"
