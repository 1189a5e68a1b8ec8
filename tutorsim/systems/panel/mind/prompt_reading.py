"""What a prompt asks for, read from its words as a model would read them."""

import re
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from tutorsim.systems.panel.mind.task_knowledge import Knowledge, knowledge_of
from tutorsim.vocabularies import BallotFormat

__all__ = ["Asked", "Kind", "Spoken"]

Kind = Literal["student", "judge", "propose", "revise", "review", "vote", "other"]

_PARAGRAPH = r"(.*(?:\n  .*)*)"
_STUDENT = re.compile(rf"^Student[^:\n]*: {_PARAGRAPH}", re.MULTILINE)
_DELIVERED = re.compile(rf"^Your tutor now [^:\n]*:\s+{_PARAGRAPH}", re.MULTILINE)
_LABELLED = re.compile(rf"^([A-H]): {_PARAGRAPH}", re.MULTILINE)
_OWN = re.compile(rf"^Your own draft[^:\n]*:\s+{_PARAGRAPH}", re.MULTILINE)
_GRADED = re.compile(rf"^Student's (?:answer|message):\s+{_PARAGRAPH}", re.MULTILINE)
_TRAITS = re.compile(
    r"prior knowledge ([\d.]*\d), confidence ([\d.]*\d), persistence ([\d.]*\d), "
    r"frustration sensitivity ([\d.]*\d), help seeking ([\d.]*\d)"
)
_BALLOTS: tuple[tuple[BallotFormat, re.Pattern[str]], ...] = (
    ("score", re.compile(r"^score each\b", re.IGNORECASE | re.MULTILINE)),
    ("rich", re.compile(r"\bput a bar\b", re.IGNORECASE)),
    ("cumulative", re.compile(r"\bdistribute\b.*?\bpoints\b", re.IGNORECASE)),
    ("ranked", re.compile(r"\brank\b.*?\bbest to worst\b", re.IGNORECASE)),
    ("approval", re.compile(r"^approve\b", re.IGNORECASE | re.MULTILINE)),
    ("simple", re.compile(r"\bvote for\b.*?\bone\b", re.IGNORECASE)),
)


@dataclass(frozen=True)
class Spoken:
    """Who said what before."""

    attempts: tuple[str, ...]
    """The student's messages, oldest first."""
    delivered: str | None
    """The reply that the student is to answer."""


@dataclass(frozen=True)
class Asked:
    """A request's system text and user text, and what they ask for."""

    system: str
    user: str

    @cached_property
    def kind(self) -> Kind:
        if "SCORE:" in self.system:
            return "judge"
        if "PROPOSAL:" in self.user:
            return "revise" if _OWN.search(self.user) else "propose"
        if "STRENGTH:" in self.user:
            return "review"
        if self.form is not None:
            return "vote"
        return "student" if re.search(r"\bstudent\b", self.system) else "other"

    @cached_property
    def form(self) -> BallotFormat | None:
        """The ballot's format, read from what comes after the replies to choose from."""
        tail = self.user[-800:]
        for form, words in _BALLOTS:
            if words.search(tail):
                return form
        return None

    @cached_property
    def budget(self) -> int:
        """Points that a cumulative or rich ballot has to sum to."""
        found = re.search(r"(\d+) points", self.user[-800:])
        return int(found[1]) if found else 25

    @cached_property
    def known(self) -> Knowledge:
        return knowledge_of(self.user)

    @cached_property
    def spoken(self) -> Spoken:
        delivered = _DELIVERED.search(self.user)
        attempts = tuple(map(_flat, _STUDENT.findall(self.user)))
        return Spoken(attempts, _flat(delivered[1]) if delivered else None)

    @cached_property
    def drafts(self) -> dict[str, str]:
        """Label → text of the replies shown, in the order shown."""
        return {label: _flat(text) for label, text in _LABELLED.findall(self.user)}

    @property
    def own_draft(self) -> str:
        """The tutor's own draft, when it is asked to revise it."""
        found = _OWN.search(self.user)
        return _flat(found[1]) if found else ""

    @property
    def graded(self) -> str:
        """The answer that the judge is to grade; the whole text when it is not marked."""
        found = _GRADED.search(self.user)
        return _flat(found[1]) if found else self.user

    @property
    def traits(self) -> tuple[float, ...] | None:
        """The student's five dimensions, when the prompt has them."""
        found = _TRAITS.search(self.system)
        return tuple(map(float, found.groups())) if found else None

    @property
    def again(self) -> bool:
        """Whether the last reply could not be used and is asked for once more."""
        return "Your last reply" in self.user[-400:]


def _flat(text: str) -> str:
    """The text with the indent of later lines taken off."""
    return text.replace("\n  ", "\n").strip()
