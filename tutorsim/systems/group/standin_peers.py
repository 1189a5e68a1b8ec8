"""The scripted peers: their thoughts by role, what each is worth, and what they say."""

import json
import re
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from tutorsim.scripted_mind import Chance
from tutorsim.systems.group.standin_prompt import SELF, Prompt, Wrong, learner_name, line_of

__all__ = ["scores_of_thoughts", "spoken", "thought_of"]


_QUOTED: Final = re.compile(r"“(.*?)”", re.DOTALL)


class _Idea(NamedTuple):
    cue: str
    """What kind of thought it is; the evaluator reads it from the words."""
    to: str
    line: str
    corrects: bool = False


_CUES: Final = {
    "fix": "There is a mistake and it must be corrected",
    "move": "This stage is done and somebody has to lead on",
    "recall": "The talk drifts and has to come back",
    "comfort": "Somebody loses heart and needs a kind word",
    "praise": "Something went well and deserves praise",
    "explain": "A question is open and I can explain it",
    "fact": "The next step is missing and I know it",
    "invite": "Somebody has been quiet for long",
    "sum": "A summary could help",
    "view": "I have a view of my own",
}


def thought_of(prompt: Prompt, chance: Chance) -> str:
    """A private thought by the peer's role, and whether it wants to be said."""
    name, title = _self(prompt)
    idea = _idea(prompt, name, title, chance)
    stimuli = [f"M{prompt.last.number}"] if prompt.said else []
    stimuli += prompt.open_tasks[:1]
    if idea is None:
        listening = {
            "stimuli": stimuli,
            "thought": "Others are at it, so I listen.",
            "action": "listen",
            "corrects": False,
        }
        return json.dumps(listening)
    thought = f"{_CUES[idea.cue]}. To {idea.to}, to help the group on: “{idea.line}”"
    return json.dumps(
        {
            "stimuli": stimuli,
            "thought": thought,
            "action": "speak",
            "corrects": idea.corrects,
        },
        ensure_ascii=False,
    )


def _self(prompt: Prompt) -> tuple[str, str]:
    found = SELF.search(prompt.system)
    return (found[1], found[2]) if found else ("", "")


def _idea(prompt: Prompt, name: str, title: str, chance: Chance) -> _Idea | None:
    """What a peer would say now: by its role, the last messages and the open tasks."""
    learner = learner_name(prompt)
    if prompt.last.who == name:
        return _Idea("explain", "all", line_of("go_on", learner, chance))
    by_role = _leader if "leader" in title else _companion if "emotional" in title else _expert
    asked = re.search(rf"\b{re.escape(name)}\b", prompt.last.text) is not None
    return by_role(prompt, learner, asked, chance)


def _leader(prompt: Prompt, learner: str, asked: bool, chance: Chance) -> _Idea | None:
    if prompt.mood("drift", prompt.recent(1)):
        return _Idea("recall", learner, line_of("recall", learner, chance))
    if len(prompt.open_tasks) == 1:
        return _Idea("move", "all", prompt.fact(prompt.open_tasks[0]))
    if not prompt.said and prompt.open_tasks:
        return _Idea("move", learner, f"Hello all. {learner}, what do we know?")
    if asked and (wrong := _mistake(prompt, 4)):
        return _Idea("fix", learner, f"You are right, {learner}: {wrong.fix}.", True)
    if asked or chance.happens("sum", 0.35):
        return _Idea("sum", "all", line_of("sum_up", learner, chance))
    return None


def _expert(prompt: Prompt, learner: str, asked: bool, chance: Chance) -> _Idea | None:
    wrong = _mistake(prompt, 3)
    if wrong is not None:
        return _Idea("fix", learner, f"Careful: {wrong.fix}.", True)
    open_tasks = prompt.open_tasks[:-1]
    if prompt.last.text.rstrip().endswith("?") and (open_tasks or not prompt.tasks):
        fact = prompt.fact(open_tasks[0]) if open_tasks else _any_fact(prompt)
        return _Idea("explain", learner, fact)
    if open_tasks and (asked or chance.happens("fact", 0.5)):
        return _Idea("fact", "all", prompt.fact(open_tasks[0]))
    return _Idea("view", "all", line_of("agree", learner, chance)) if asked else None


def _any_fact(prompt: Prompt) -> str:
    return next(iter(prompt.known.facts.values()), "It follows from what is given.")


def _companion(prompt: Prompt, learner: str, asked: bool, chance: Chance) -> _Idea | None:
    by_learner = [message.text for message in prompt.said[-2:] if message.who == learner]
    text = " ".join(by_learner)
    if prompt.mood("low", text):
        return _Idea("comfort", learner, line_of("comfort", learner, chance))
    if prompt.mood("glad", text):
        return _Idea("praise", learner, line_of("praise", learner, chance))
    if learner not in [message.who for message in prompt.said[-4:]] and len(prompt.said) > 3:
        return _Idea("invite", learner, line_of("invite", learner, chance))
    if not prompt.tasks and "summary" in prompt.last.text:
        return _Idea("explain", learner, _any_fact(prompt))
    if asked or chance.happens("view", 0.3):
        return _Idea("view", "all", line_of("opinion", learner, chance))
    return None


def _mistake(prompt: Prompt, back: int) -> Wrong | None:
    """A known wrong value in the last messages that nobody has put right since."""
    recent = prompt.recent(back)
    everything = prompt.recent(len(prompt.said))
    for wrong in prompt.known.wrong:
        if wrong.value in recent and wrong.fix not in everything:
            return wrong
    return None


_WEIGHTS: Final[Mapping[str, tuple[float, float]]] = {
    "fix": (4.6, 4.5),
    "comfort": (4.4, 4.3),
    "recall": (4.3, 4.3),
    "move": (4.1, 4.0),
    "praise": (4.0, 4.1),
    "explain": (4.1, 3.9),
    "fact": (3.8, 3.7),
    "invite": (3.6, 4.1),
    "sum": (3.1, 3.2),
    "view": (2.9, 3.4),
}
"""Kind of thought → usual internal and external score."""


def scores_of_thoughts(prompt: Prompt, chance: Chance) -> str:
    """Score each thought by its kind, with some noise."""
    two = '"internal"' in prompt.user
    inner = ("internal",) if two else ("relevance", "impact", "urgency")
    outer = ("external",) if two else ("coherence", "novelty", "balance")
    entries = []
    for line in prompt.section("Thoughts that want to be said").split("\n"):
        name, _, text = line.partition(": ")
        if not text or line.startswith("  "):
            continue
        weights = _WEIGHTS.get(_cue_of(text), (3.0, 3.0))
        entry: dict[str, Any] = {"agent": name}
        for group, weight in zip((inner, outer), weights, strict=True):
            for criterion in group:
                noise = 0.35 * chance.bell(f"{name} {criterion}")
                entry[criterion] = round(min(5.0, max(1.0, weight + noise)), 1)
        entries.append(entry)
    if len(entries) > 1 and chance.happens("left out", 0.01):
        entries.pop()
    return json.dumps(entries)


def _cue_of(text: str) -> str:
    return next((cue for cue, words in _CUES.items() if words in text), "")


def spoken(prompt: Prompt, chance: Chance) -> str:
    """Say what the thought holds; a predicted agent thinks first."""
    held = _QUOTED.search(prompt.section("You have the word"))
    learner = learner_name(prompt)
    if held is not None:
        line = held[1]
    else:
        idea = _idea(prompt, *_self(prompt), chance)
        line = idea.line if idea else line_of("agree", learner, chance)
    to = [learner] if learner in line else ["all"]
    explains = len(line) > 55 and not line.rstrip().endswith("?")
    continues = explains and chance.happens("continues", 0.12)
    return json.dumps({"message": line, "to": to, "continues": continues}, ensure_ascii=False)
