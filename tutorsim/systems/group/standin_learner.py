"""The scripted learner: writes the next line, a wrong one, a doubt or a question, or waits."""

import json
import re

from tutorsim.scripted_mind import Chance
from tutorsim.systems.group.standin_prompt import Prompt, line_of

__all__ = ["learner_line"]


def learner_line(prompt: Prompt, chance: Chance) -> str:
    """Write the next line, a wrong one, a doubt or a question, or wait."""
    found = re.search(r"a learner named (\S+) in", prompt.system)
    name = found[1] if found else ""
    asked = re.search(rf"\b{re.escape(name)}\b", prompt.last.text) is not None
    quiet, anxious = "rather read" in prompt.system, "fear being wrong" in prompt.system
    if chance.happens("waits", 0.15 if asked else 0.55 if quiet else 0.25):
        return json.dumps({"action": "wait", "message": ""})
    return json.dumps(
        {
            "action": "write",
            "message": _learner_words(
                prompt, chance, anxious=anxious, sure="at once" in prompt.system
            ),
        },
        ensure_ascii=False,
    )


def _learner_words(prompt: Prompt, chance: Chance, *, anxious: bool, sure: bool) -> str:
    everything = prompt.recent(len(prompt.said))
    fresh = [
        wrong.says for wrong in prompt.known.wrong if wrong.says and wrong.says not in everything
    ]
    ready = [wrong for wrong in fresh if len(prompt.said) > 6]
    if ready and chance.happens("errs", 0.5 if sure else 0.25):
        return ready[0]
    if anxious and chance.happens("doubts", 0.3):
        return line_of("doubt", "", chance)
    if chance.happens("drifts", 0.06):
        return line_of("drift", "", chance)
    if chance.happens("asks", 0.3):
        return line_of("ask", "", chance)
    if chance.happens("succeeds", 0.2):
        return line_of("success", "", chance)
    facts = list(prompt.known.facts.values())
    reached = max((i for i, line in enumerate(facts) if line in everything), default=-1)
    steps = [line for line in facts[reached + 1 :] if "shall we" not in line]
    return steps[0] if steps else line_of("agree", "", chance)
