"""What a debate's prompts are built from: the constants of one episode."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final, Protocol

from tutorsim.mechanisms.author_labels import draw_labels
from tutorsim.model import Call
from tutorsim.records.debate import PersonaRecord
from tutorsim.systems.debate.debate_task import DebateTask
from tutorsim.systems.debate.settings import DebateSettings

__all__ = [
    "LABELS",
    "DebateContext",
    "MakeCall",
    "Wordings",
    "agent_names",
    "shown_description",
    "shown_role",
]

LABELS: Final = "PQRSTUVWXY"
"""Labels of answers on a ballot: no letter that an option of a task can have."""
_ROLE_LENGTH: Final = 80
_BRACKETS: Final = str.maketrans('[]{}<>"`', "()()()  ")


class Wordings(Protocol):
    """Templates by name."""

    def fill(self, template: str, **values: object) -> str: ...
    def part(self, template: str, **values: object) -> str: ...


class MakeCall(Protocol):
    """Makes the call of a stage, to the model of its agent."""

    def __call__(self, turn: int, stage: str, agent: str, *, system: str, user: str) -> Call: ...


def agent_names(count: int) -> tuple[str, ...]:
    """`agent_1` and so on."""
    return tuple(f"agent_{number}" for number in range(1, count + 1))


def shown_role(role: str) -> str:
    """A role as prompts show it: on one line, of bounded length, and without brackets or quotes.

    A role comes from a model or a study file, and must forge no tag, speaker or label.
    """
    return shown_description(role)[:_ROLE_LENGTH]


def shown_description(text: str) -> str:
    """A description as prompts show it: as `shown_role`, of any length."""
    plain = "".join(letter if letter.isprintable() else " " for letter in text)
    return " ".join(plain.translate(_BRACKETS).split())


@dataclass(frozen=True)
class DebateContext:
    """One episode's constants."""

    wordings: Wordings
    settings: DebateSettings
    task: DebateTask
    condition: str
    seed: int
    discussion: str
    """The episode's name without its condition: labels are drawn by it, so that they are the same
    under every protocol."""
    call: MakeCall
    challenger: bool = False
    """Whether a model makes up wrong answers for challenges."""
    facts: str | None = None
    """A text on the task for the challenge `facts`; `None` if the study supplies none."""

    @cached_property
    def agents(self) -> tuple[str, ...]:
        return agent_names(self.settings.agents)

    @cached_property
    def task_text(self) -> str:
        """The task as every prompt shows it."""
        task = self.task
        instruction = self.wordings.fill(f"instruction_{task.kind}")
        if not task.options:
            return self.wordings.fill("task_open", instruction=instruction, question=task.shown)
        return self.wordings.fill(
            "task_options",
            instruction=instruction,
            question=task.shown,
            options="\n".join(task.shown_options),
        )

    @property
    def blank(self) -> str:
        """What stands for a text that is empty."""
        return self.wordings.part("no_text")

    def fill(self, template: str, **values: object) -> str:
        """A template with the task and these values."""
        return self.wordings.fill(template, task=self.task_text, **values)

    def persona_system(self, persona: PersonaRecord) -> str:
        """The system text of an agent."""
        return self.wordings.fill(
            "agent_system",
            agent=persona.agent,
            count=len(self.agents),
            role=shown_role(persona.role),
            description=shown_description(persona.description),
        )

    def labels(self, candidates: Sequence[str], *, turn: int, reader: str) -> dict[str, str]:
        """Label → candidate for one voter of a turn, in label order.

        Every format of a turn's ballots has the same labels, and so has every protocol.
        """
        return draw_labels(
            candidates,
            seed=self.seed,
            episode_id=self.discussion,
            turn=turn,
            stage="vote_final",
            reader=reader,
            blinding=self.settings.blinding,
            alphabet=LABELS,
        )
