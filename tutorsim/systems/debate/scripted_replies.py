"""The scripted model as a debating agent: it reads prompts as a model would.

Agents are right with a chance that depends on the task, agreeable once there is a solution, fond
of what stands first on a ballot, and generous with approvals, so that votes tie.
"""

import json
import re
import tomllib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache
from importlib import resources
from typing import Any, Final

from tutorsim.ballot_reading_and_decisions import RULES
from tutorsim.kernel.system_and_loaded_study import Asking, Chance
from tutorsim.systems.debate.published_question_sets import (
    BENCHMARKS,
    BUILTIN,
    DebateTask,
    builtin_tasks,
)
from tutorsim.tasks.task_types_ids_digests_and_scoring import LETTERS

_PARAGRAPH: Final = r"(.*(?:\n  .*)*)"
_QUESTION: Final = re.compile(
    r"^Question:\n(.*?)(?=\n\nOptions:\n|\n\n.*?(?:\n\n|\Z)|\Z)", re.MULTILINE | re.DOTALL
)
_OPTIONS: Final = re.compile(r"^Options:\n((?:.+\n?)+)", re.MULTILINE)
_CURRENT: Final = re.compile(rf"^Current solution: {_PARAGRAPH}", re.MULTILINE)
_AGREED: Final = re.compile(rf"^The solution that you agreed to:\n  {_PARAGRAPH}", re.MULTILINE)
_OWN: Final = re.compile(rf"^Your own last message:\n  {_PARAGRAPH}", re.MULTILINE)
_WROTE: Final = re.compile(rf"^A participant wrote:\n  {_PARAGRAPH}", re.MULTILINE)
_PROPOSED: Final = re.compile(rf"^Proposed answer:\n  {_PARAGRAPH}", re.MULTILINE)
_LABELLED: Final = re.compile(rf"^([P-Y]): {_PARAGRAPH}", re.MULTILINE)
_MINE: Final = re.compile(r"(?:My solution|Final solution): (.+)")
_CHOSEN: Final = re.compile(r"^- ([^:\n]+):", re.MULTILINE)

_UNREADABLE: Final = 0.04
_STUBBORN: Final = 0.35
_UNTAGGED: Final = 0.03
_AGREEABLE: Final = 0.8
_GENEROUS: Final = 0.5
_FIRST_SHOWN: Final = 0.12
_STEPS: Final = 0.1
"""How much thinking step by step adds to the chance to be right."""


@cache
def _words() -> dict[str, list[Any]]:
    place = resources.files("tutorsim").joinpath("systems", "debate", "mind.toml")
    return tomllib.loads(place.read_text(encoding="utf-8"))


@dataclass(frozen=True)
class _Prompt:
    """A prompt as the scripted agent takes it in."""

    asking: Asking
    chance: Chance
    steady: Chance | None

    @cached_property
    def question(self) -> str:
        task = _task_in(self.asking.user)
        if task is not None:
            return task.shown
        found = _QUESTION.search(self.asking.user)
        return found[1].strip() if found else ""

    @cached_property
    def options(self) -> tuple[str, ...]:
        """Options as they would be answered: with their letters, or bare names."""
        found = _OPTIONS.search(self.asking.user)
        lines = found[1].splitlines() if found else []
        return tuple(line.removeprefix("- ").strip() for line in lines if line.strip())

    @cached_property
    def right(self) -> str:
        """The right answer of a task that comes with the package; of others one that is drawn."""
        task = _task_in(self.asking.user)
        if task is None:
            return Chance("truth", self.question).pick("truth", self.options or ("unknown",))
        if task.kind == "choice":
            return task.shown_options[LETTERS.index(task.gold[0])]
        return task.gold[0] if task.gold else "unknown"

    @cached_property
    def ease(self) -> float:
        """The chance that an agent finds the right answer of the task by itself."""
        thinks = "step by step" in self.asking.user
        return 0.3 + 0.5 * Chance("ease", self.question).unit("ease") + _STEPS * thinks

    def is_right(self, solution: str) -> bool:
        """Whether a solution says the same as the right answer."""
        return _plain(solution) == _plain(self.right)

    def solution(self, name: str) -> str:
        """A solution of its own: right with a chance that depends on the task."""
        if self.chance.happens(f"right {name}", self.ease):
            return self.right
        wrong = [option for option in self.options if not self.is_right(option)]
        return self.chance.pick(f"wrong {name}", wrong or _guesses(self.question, self.right))

    def line(self, kind: str) -> str:
        """One of the model's sentences."""
        return str(self.chance.pick(kind, _words()[kind]))


def debate_reply(asking: Asking, chance: Chance, steady: Chance | None) -> str | None:
    """The reply to a debate's prompt; `None` to any other prompt."""
    prompt = _Prompt(asking, chance, steady)
    for mark, reply in _SYSTEMS:
        if mark in asking.system:
            return reply(prompt)
    return None


def _persona(prompt: _Prompt) -> str:
    if prompt.chance.happens("unreadable", 0.02):
        return "I would ask somebody who knows the field."
    taken = {role.casefold() for role in _CHOSEN.findall(prompt.asking.user)}
    free = [entry for entry in _words()["roles"] if entry[0].casefold() not in taken]
    role, description = prompt.chance.pick("role", free)
    return json.dumps({"role": role, "description": description})


def _extracted(prompt: _Prompt) -> str:
    """The solution that a text settles on, copied."""
    found = _WROTE.search(prompt.asking.user)
    text = _flat(found[1]) if found else ""
    said = _MINE.findall(text)
    return str(said[-1]).strip() if said else text.splitlines()[-1] if text else "none"


def _alone(prompt: _Prompt) -> str:
    user = prompt.asking.user
    if "Write one wrong answer" in user:
        wrong = [option for option in prompt.options if not prompt.is_right(option)]
        return prompt.chance.pick("wrong", wrong or _guesses(prompt.question, prompt.right))
    return f"{prompt.line('drafts')}\nFinal solution: {prompt.solution('alone')}"


def _agent(prompt: _Prompt) -> str:
    user = prompt.asking.user
    if "Your whole reply is that one line" in user:
        return _ballot(prompt)
    if "Give your final solution of the task." in user:
        return _answer(prompt)
    if "Reply with one word: AGREE or DISAGREE" in user:
        return _judgement(prompt)
    if "You do not agree with this answer." in user:
        return prompt.solution("counter")
    return _message(prompt)


_SYSTEMS: Final[Sequence[tuple[str, Callable[[_Prompt], str]]]] = (
    ("You put together a group that is to discuss a task.", _persona),
    ("You copy the solution out of a text", _extracted),
    ("You work on one task on your own.", _alone),
    ("participants in a written discussion about one task", _agent),
)
"""What a system text holds → who answers."""


# --- Messages -------------------------------------------------------------------------------


def _message(prompt: _Prompt) -> str:
    user, chance = prompt.asking.user, prompt.chance
    hidden = "Do not give a final solution" in user
    if "begin with [AGREE]" not in user:
        return prompt.line("thoughts") if hidden else _proposal(prompt, "drafts", "")
    current = _CURRENT.search(user)
    content = chance.happens("content", _willing(prompt, _flat(current[1]) if current else None))
    if chance.happens("untagged", _UNTAGGED):
        return prompt.line("untagged")
    if content:
        return f"[AGREE] {prompt.line('agrees')}"
    if hidden:
        return f"[DISAGREE] {prompt.line('thoughts')}"
    return _proposal(prompt, "disagrees", "[DISAGREE] ")


def _willing(prompt: _Prompt, current: str | None) -> float:
    """The chance to agree: larger if the current solution is right, smaller for critics."""
    base = _AGREEABLE
    if current is not None:
        base += 0.06 if prompt.is_right(current) else -0.1
    return base - (0.25 if "flawless" in prompt.asking.user else 0.0)


def _proposal(prompt: _Prompt, kind: str, tag: str) -> str:
    return f"{tag}{prompt.line(kind)}\nMy solution: {prompt.solution(kind)}"


def _answer(prompt: _Prompt) -> str:
    """What it agreed to, what it proposed, or what it finds now."""
    user = prompt.asking.user
    agreed, own = _AGREED.search(user), _OWN.search(user)
    said = _MINE.findall(_flat(own[1])) if own else []
    text = _flat(agreed[1]) if agreed else str(said[-1]).strip() if said else ""
    if "\n" in text or not text or prompt.chance.happens("second thoughts", 0.12):
        text = prompt.solution("answer")
    if "CONFIDENCE:" not in user:
        return text
    sure = 55 + 25 * prompt.is_right(text) + round(10 * prompt.chance.bell("sure"))
    return f"{text}\nCONFIDENCE: {min(100, max(0, sure))}"


def _judgement(prompt: _Prompt) -> str:
    found = _PROPOSED.search(prompt.asking.user)
    shown = _flat(found[1]) if found else ""
    if prompt.is_right(shown):
        doubt = 0.08
    elif shown in prompt.options or len(shown) < 20:
        doubt = 0.7
    else:
        doubt = 0.97
    if "What you saw of the discussion" in prompt.asking.user:
        doubt *= 0.8
    return "DISAGREE" if prompt.chance.happens("doubt", doubt) else "AGREE"


# --- Ballots --------------------------------------------------------------------------------


def _ballot(prompt: _Prompt) -> str:
    user, chance = prompt.asking.user, prompt.chance
    liking = _liking(prompt)
    order = sorted(liking, key=lambda label: (-liking[label], label))
    rate = _STUBBORN if prompt.asking.again else _UNREADABLE
    if prompt.steady is None and chance.happens("unreadable", rate):
        return f"I would go with {order[0]}, since it says most with the fewest words."
    if "Vote for the one best" in user:
        return order[0]
    if "Rank all" in user:
        return ",".join(order)
    if "Distribute exactly" in user:
        found = re.search(r"exactly (\d+) points", user)
        return RULES["cumulative"].example(order, int(found[1]) if found else 25)
    generous = chance if prompt.steady is None else prompt.steady
    if generous.happens(f"generous {prompt.asking.system}", _GENEROUS):
        return ",".join(sorted(liking))
    approved = [label for label in sorted(liking) if liking[label] > 0.55]
    return ",".join(approved) or "none"


def _liking(prompt: _Prompt) -> dict[str, float]:
    """Label → liking: whether it is held right, the moment, and the place on the ballot."""
    believed = prompt.chance.happens("sees it", 0.4 + prompt.ease / 2)
    found = _LABELLED.findall(prompt.asking.user.rpartition("Final solutions of")[2])
    liking = {}
    for place, (label, text) in enumerate(found):
        moment = prompt.chance.bell(f"moment {label}")
        if prompt.steady is not None:
            moment = prompt.steady.bell("\x1f".join((prompt.asking.system, prompt.question, text)))
        good = prompt.is_right(_flat(text)) == believed
        liking[label] = 0.45 + 0.3 * good + 0.12 * moment + _FIRST_SHOWN * (place == 0)
    return liking


# --- What it knows --------------------------------------------------------------------------


@lru_cache(maxsize=1024)
def _task_in(user: str) -> DebateTask | None:
    """The task of the package that a prompt shows."""
    return next((task for task in _known() if task.shown in user), None)


@cache
def _known() -> tuple[DebateTask, ...]:
    return tuple(task for name in BENCHMARKS if name in BUILTIN for task in builtin_tasks(name))


def _guesses(question: str, right: str) -> list[str]:
    """Wrong answers to an open question: words of its passage, or that there is no answer."""
    words = [word.strip(".,;:?!") for word in question.split() if len(word) > 5]
    drawn = sorted({word for word in words if word and _plain(word) not in _plain(right)})
    return [*drawn[:4], *(["unknown"] if right != "unknown" else [])] or ["something else"]


def _plain(text: str) -> str:
    return " ".join(text.casefold().split()).strip(".)( ")


def _flat(text: str) -> str:
    """The text with the indent of later lines taken off."""
    return text.replace("\n  ", "\n").strip()
