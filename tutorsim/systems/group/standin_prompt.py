"""A prompt of a group taken apart, and what the scripted group knows of the shipped problems."""

import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from importlib import resources
from typing import Final, NamedTuple

from tutorsim.scripted_mind import Chance

__all__ = ["SELF", "Prompt", "Wrong", "learner_name", "line_of"]


class _Said(NamedTuple):
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
    text = (resources.files(__package__) / "standin.toml").read_text(encoding="utf-8")
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
    def said(self) -> list[_Said]:
        return [_Said(int(n), who, _flat(text)) for n, who, text in _SAID.findall(self.user)]

    @property
    def last(self) -> _Said:
        return self.said[-1] if self.said else _Said(0, "", "")

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
