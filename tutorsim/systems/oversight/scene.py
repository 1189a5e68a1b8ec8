"""What an item's prompts are built from, and how far the item has come."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import sha256
from typing import Any, TypeVar

from tutorsim.kernel.scene import Scene, indented
from tutorsim.kernel.study import EpisodeSpec
from tutorsim.kernel.system import LoadedStudy
from tutorsim.model import Answer, Question
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
from tutorsim.systems.oversight.items import Item, SpeakerTurn, has_reference
from tutorsim.systems.oversight.settings import CRITICS, SCRIPTS, Act, Script, Study

# --- Prompt context ------------------------------------------------------------------------------

T = TypeVar("T")


class ItemScene(Scene):
    """One item under one condition: what every prompt of it shares.

    Args:
        loaded: The study.
        spec: The item's place in its grid.
    """

    def __init__(self, loaded: LoadedStudy, spec: EpisodeSpec) -> None:
        assert isinstance(loaded.study, Study)
        self.loaded, self.spec = loaded, spec
        super().__init__(loaded.catalog, loaded.call)
        self.settings = loaded.study.oversight

    @cached_property
    def item(self) -> Item:
        """What is labelled."""
        assert isinstance(self.spec.task, Item)
        return self.spec.task

    @property
    def script(self) -> Script:
        """The condition's acts."""
        return SCRIPTS[self.spec.condition]

    def block(self, head: str, text: str, **values: object) -> str:
        """A heading, and text of any origin indented under it, so that no line of it is a field.

        Args:
            head: The heading's template.
            text: What stands under it.
            values: What the heading is filled with.
        """
        return f"{self.wordings.part(head, **values)}:\n  {indented(text) or self.blank}"

    @cached_property
    def shown_item(self) -> str:
        """Dialogue, last message and reply; with the reference only if the study shows it."""
        item = self.item
        shown = self.fill(
            "item",
            dialogue=dialogue_text(item.dialogue),
            message=indented(item.message),
            reply=indented(item.reply) or self.blank,
        )
        if self.settings.show_reference and has_reference(item, self.wordings.part("no_reference")):
            return self.fill("item_reference", item=shown, reference=indented(item.reference))
        return shown

    @cached_property
    def trajectory_values(self) -> Mapping[str, str]:
        """What the trajectory analyst sees: the last turns before the student's last message."""
        item = self.item
        before = dialogue_text(item.before(self.settings.trajectory_turns))
        return {
            "before": before or self.wordings.part("none"),
            "message": indented(item.message),
            "reply": indented(item.reply) or self.blank,
        }

    def question(
        self,
        turn: int,
        stage: str,
        agent: str,
        user: str,
        *,
        read: Callable[[str], T | None],
        salvage: Callable[[str], T | None] = lambda _: None,
        reminder: str,
        system: str = "",
    ) -> Question[T]:
        """A first asking.

        Args:
            turn: Of the call key.
            stage: Of the call key.
            agent: Of the call key; its model answers.
            user: The message.
            read: Reads a reply.
            salvage: Reads what can be read of a second reply.
            reminder: Template of what the second asking adds.
            system: Whose system text it is; the agent's when left out.
        """
        text = self.fill(f"system_{system or agent}", scale=self.fill("scale"))
        asked = (turn, stage, agent, read)
        return self.asking(*asked, system=text, user=user, reminder=reminder, salvage=salvage)

    def drawn_first(self, sides: Sequence[str], stage: str) -> str:
        """The side that a reader is shown first: each of the two about half the time."""
        seed, name = self.loaded.study.seed, self.spec.parent_id
        drawn = sha256(f"{seed}\x1f{name}\x1f{stage}".encode()).digest()
        return sides[drawn[0] % 2]


def dialogue_text(turns: Sequence[SpeakerTurn]) -> str:
    """Speaker turns, a paragraph each."""
    return "\n\n".join(f"{turn.speaker}: {indented(turn.text)}" for turn in turns)


# --- Item progress -------------------------------------------------------------------------------

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
    return {
        "agent": agent,
        "raw": answer.raw,
        "status": answer.status,
        "attempts": answer.attempts,
        "raw_first": answer.raw_first,
    }


def other_critic(critic: str) -> str:
    """The critic on the other side."""
    return CRITICS[1 - CRITICS.index(critic)]
