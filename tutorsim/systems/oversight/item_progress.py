"""What an item has reached, and how what was said is shown to those who come later."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tutorsim.mechanisms.author_labels import indented
from tutorsim.model import Answer
from tutorsim.records import VotedTurn
from tutorsim.records.oversight import (
    BriefingNote,
    Challenges,
    Judgment,
    Labels,
    LeadLabels,
    Message,
    Press,
    Prompt,
    StressTest,
)
from tutorsim.systems.oversight.acts_by_condition import CRITICS, Act
from tutorsim.systems.oversight.prompt_context import ItemScene
from tutorsim.vocabularies import ReadStatus

__all__ = ["Progress", "other_critic", "spoken"]

_HEADS: Mapping[Act, str] = {
    Act.OPENING: "head_opening",
    Act.REBUTTAL: "head_rebuttal",
    Act.CLOSING: "head_closing",
    Act.ARGUMENT: "head_argument",
    Act.ASSESSMENT: "head_assessment",
    Act.MERGE: "head_merge",
}
"""Act → the heading of each message in it."""

_WITH_FORM = frozenset({"open", "rebut", "rebut_unchallenged", "close", "argue", "assess", "merge"})
"""Templates that ask for a thesis, and show its form."""


@dataclass
class Progress:
    """Grows as an item's flow runs; its fields are fields of the record."""

    briefing: list[BriefingNote] = field(default_factory=list)
    quick: LeadLabels | None = None
    skipped: bool = False
    messages: list[Message] = field(default_factory=list)
    challenges: Challenges | None = None
    press: Press | None = None
    judge: Judgment | None = None
    judge_swapped: Judgment | None = None
    stress: StressTest | None = None
    lead: LeadLabels | None = None
    lead_prompt: Prompt | None = None
    alone: list[LeadLabels] = field(default_factory=list)
    turns: list[VotedTurn] = field(default_factory=list)
    label: Labels | None = None

    def filled(self, scene: ItemScene, template: str, **values: str) -> str:
        """A template with what is assessed, the briefing if there is one, and the reply's form."""
        assessed = scene.shown_item
        if self.briefing:
            notes = (
                scene.block("head_briefing", note.raw, agent=note.agent) for note in self.briefing
            )
            assessed = scene.fill("with_briefing", item=assessed, briefing="\n\n".join(notes))
        form = {"form": scene.fill("thesis_form")} if template in _WITH_FORM else {}
        return scene.fill(template, assessed=assessed, **form, **values)

    def said(self, scene: ItemScene, act: Act, agent: str) -> str:
        """What one agent said in an act, to stand under a heading."""
        texts = [m.raw for m in self.messages if (m.act, m.agent) == (act.value, agent)]
        return indented(texts[-1]) or scene.blank

    def challenges_to(self, scene: ItemScene, critic: str) -> str:
        """The challenges to one critic, to stand under a heading."""
        lines = self.challenges.challenges.get(critic, ()) if self.challenges else ()
        numbered = "\n".join(f"{i}. {line}" for i, line in enumerate(lines, start=1))
        return indented(numbered) or scene.wordings.part("none")

    def press_on(self, scene: ItemScene, critic: str) -> str:
        """What the advocate still wants of a critic."""
        if self.press is None:
            return scene.fill("closed_unasked")
        if critic in self.press.presses:
            return scene.fill("closed_unmet", press=indented(self.press.presses[critic]))
        met = self.press.verdicts[critic] == "met"
        return scene.fill("closed_met" if met else "closed_unasked")

    def transcript(self, scene: ItemScene, first: str, *, acts: Sequence[Act] = tuple(Act)) -> str:
        """What was said in some acts, oldest first; within an act one agent's text first."""
        paragraphs: list[str] = []
        for act in acts:
            if act is Act.CROSS and self.challenges is not None:
                paragraphs.append(scene.block("head_challenges", self.challenges.raw))
            elif act is Act.PRESS and self.press is not None:
                paragraphs.append(scene.block("head_press", self.press.raw))
            else:
                paragraphs += [
                    scene.block(_HEADS[act], said.raw, agent=said.agent, turn=said.turn)
                    for said in self._in_act(act, first)
                ]
        return "\n\n".join(paragraphs)

    def _in_act(self, act: Act, first: str) -> list[Message]:
        found = [message for message in self.messages if message.act == act.value]
        return sorted(found, key=lambda message: (message.turn, message.agent != first))


def spoken(agent: str, answer: Answer[Any]) -> dict[str, Any]:
    """The fields that every reply has in the log."""
    read: ReadStatus = "repaired" if answer.salvaged else "valid"
    return {
        "agent": agent,
        "raw": answer.raw,
        "status": "missing" if answer.value is None else read,
        "attempts": answer.attempts,
        "raw_first": answer.raw_first,
    }


def other_critic(critic: str) -> str:
    """The critic on the other side."""
    return CRITICS[1 - CRITICS.index(critic)]
