"""What an item's prompts are built from."""

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from hashlib import sha256
from typing import TYPE_CHECKING, TypeVar

from tutorsim.mechanisms.author_labels import indented
from tutorsim.mechanisms.scene import Scene
from tutorsim.model import Question
from tutorsim.study import EpisodeSpec
from tutorsim.systems.oversight.acts_by_condition import SCRIPTS, Script
from tutorsim.systems.oversight.labelled_item import Item, SpeakerTurn, has_reference
from tutorsim.systems.oversight.settings import OversightSettings

if TYPE_CHECKING:
    from tutorsim.systems.oversight.study import OversightStudy

__all__ = ["ItemScene", "dialogue_text"]

T = TypeVar("T")


class ItemScene(Scene):
    """One item under one condition: what every prompt of it shares.

    Args:
        loaded: The study.
        spec: The item's place in its grid.
    """

    def __init__(self, loaded: "OversightStudy", spec: EpisodeSpec) -> None:
        self.loaded, self.spec = loaded, spec
        self.wordings, self.call = loaded.catalog, loaded.call

    @cached_property
    def item(self) -> Item:
        """What is labelled."""
        assert isinstance(self.spec.task, Item)
        return self.spec.task

    @property
    def settings(self) -> OversightSettings:
        return self.loaded.study.oversight

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
