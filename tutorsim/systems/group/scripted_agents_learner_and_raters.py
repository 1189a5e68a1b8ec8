"""The scripted group behind the stand-in: learner, peers, and those who watch them."""

import json
import re
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from importlib import resources
from typing import Any, Final, NamedTuple

from tutorsim.kernel.system_and_loaded_study import Asking, Chance

# --- Standin prompt ------------------------------------------------------------------------------


class _ShownMessage(NamedTuple):
    number: int
    who: str
    text: str


class Wrong(NamedTuple):
    """A mistake that learners make at a problem."""

    says: str
    """A line that makes it; empty where nobody says it by himself."""
    value: str
    """Words by which it is found."""
    fix: str


@dataclass(frozen=True)
class _Knowledge:
    facts: Mapping[str, str]
    """Task id → a line that does the task."""
    wrong: tuple[Wrong, ...]


@dataclass(frozen=True)
class _Words:
    problems: tuple[tuple[str, _Knowledge], ...]
    moods: Mapping[str, Sequence[str]]
    replies: Mapping[str, Sequence[str]]

    def about(self, prompt: str) -> _Knowledge:
        return next((known for by, known in self.problems if by in prompt), _Knowledge({}, ()))


@cache
def _words() -> _Words:
    text = (resources.files(__package__) / "mind.toml").read_text(encoding="utf-8")
    data = tomllib.loads(text)
    problems = [
        (
            entry["known_by"],
            _Knowledge(
                entry.get("facts", {}),
                tuple(
                    Wrong(wrong.get("says", ""), wrong["value"], wrong["fix"])
                    for wrong in entry.get("wrong", ())
                ),
            ),
        )
        for entry in data["problem"]
    ]
    return _Words(tuple(problems), data["words"], data["replies"])


_PARAGRAPH: Final = r"(.*(?:\n  .*)*)"
_SAID: Final = re.compile(rf"^M(\d+) ([^:\n]+): {_PARAGRAPH}", re.MULTILINE)
_TASK: Final = re.compile(rf"^\[([x ])\] (\S+) {_PARAGRAPH}", re.MULTILINE)
_MEMBER: Final = re.compile(r"^([^:\n]+): (?:[^;\n]+); ", re.MULTILINE)
SELF: Final = re.compile(r"^You are ([^,\n]+), the ([^\n]*?) of a small group", re.MULTILINE)
_LEARNER: Final = re.compile(r"([\w-]+) \(the learner\)")


@dataclass(frozen=True)
class Prompt:
    """A prompt of a group, taken apart."""

    system: str
    user: str

    @cached_property
    def known(self) -> _Knowledge:
        return _words().about(self.user)

    @cached_property
    def said(self) -> list[_ShownMessage]:
        return [
            _ShownMessage(int(n), who, _flat(text)) for n, who, text in _SAID.findall(self.user)
        ]

    @property
    def last(self) -> _ShownMessage:
        return self.said[-1] if self.said else _ShownMessage(0, "", "")

    @cached_property
    def tasks(self) -> list[tuple[str, str, bool]]:
        """Id, text and whether it is done."""
        return [(name, _flat(text), mark == "x") for mark, name, text in _TASK.findall(self.user)]

    @property
    def open_tasks(self) -> list[str]:
        return [name for name, _, done in self.tasks if not done]

    def fact(self, task: str) -> str:
        """A line that does a task; for an unknown problem, made from the task's own words."""
        text = next((text for name, text, _ in self.tasks if name == task), task)
        return self.known.facts.get(task) or f"For {task} I would say: {text}"

    def section(self, title: str) -> str:
        """The text under a heading, up to the next empty line."""
        found = re.search(rf"^{re.escape(title)}[^\n]*:\n(.*?)(?:\n\n|\Z)", self.user, re.S | re.M)
        return found[1] if found else ""

    def recent(self, count: int) -> str:
        return " ".join(message.text for message in self.said[-count:])

    def mood(self, kind: str, text: str) -> bool:
        lowered = text.lower()
        return any(word in lowered for word in _words().moods[kind])


def _flat(text: str) -> str:
    return text.replace("\n  ", "\n").strip()


def learner_name(prompt: Prompt) -> str:
    """The learner's name in the chat, as a peer is told it."""
    found = _LEARNER.search(prompt.system)
    return found[1] if found else "you"


def line_of(kind: str, name: str, chance: Chance) -> str:
    """One of the lines of a kind, said to somebody."""
    return chance.pick(f"line {kind}", _words().replies[kind]).format(name=name)


# --- Standin learner -----------------------------------------------------------------------------


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


# --- Standin peers -------------------------------------------------------------------------------

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
        {"stimuli": stimuli, "thought": thought, "action": "speak", "corrects": idea.corrects},
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


# --- Standin watchers ----------------------------------------------------------------------------


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


# --- Standin -------------------------------------------------------------------------------------


def group_reply(asking: Asking, chance: Chance, steady: Chance | None = None) -> str | None:
    """The scripted reply to a prompt of a group; `None` for a prompt of something else."""
    system, user = asking
    reply = next((reply for mark, reply in _REPLIES.items() if mark in system), None)
    if reply is None and SELF.search(system):
        reply = spoken if "message to the group" in user else thought_of
    if reply is None:
        return None
    if not asking.again and chance.happens("malformed", 0.015):
        return "I would rather say it in words."
    return reply(Prompt(system, user), chance)


_REPLIES: Final[Mapping[str, Callable[[Prompt, Chance], str]]] = {
    "You watch over the stages of a group lesson": ruling,
    "how much each member of a study group should say aloud": scores_of_thoughts,
    "You predict who speaks next in the chat": prediction,
    "You play a learner named": learner_line,
    "You compare two ways in which a study group": verdict,
    "You rate one message in the chat of a study group": rating,
    "You code messages of a group's chat": category,
}
