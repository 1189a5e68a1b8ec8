"""The scene of a debate: its task and settings, who takes part, and how replies are read."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from tutorsim.kernel.scene import MakeCall, Scene, Wordings, draw_labels, indented
from tutorsim.model import Question
from tutorsim.records.debate import DebateSetup, PersonaRecord
from tutorsim.systems.debate.reply_reading import read_text
from tutorsim.systems.debate.settings import DebateSettings
from tutorsim.systems.debate.tasks import DebateTask

LABELS: Final = "PQRSTUVWXY"
"""Labels of answers on a ballot: no letter that an option of a task can have."""
_ROLE_LENGTH: Final = 80
_BRACKETS: Final = str.maketrans('[]{}<>"`', "()()()  ")


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


@dataclass(frozen=True, kw_only=True)
class DebateContext(Scene):
    """One episode's constants."""

    wordings: Wordings
    call: MakeCall
    seed: int
    settings: DebateSettings
    task: DebateTask
    condition: str
    discussion: str
    """The episode's name without its condition: labels are drawn by it, so that they are the same
    under every protocol."""
    challenger: bool = False
    """Whether a model makes up wrong answers for challenges."""
    facts: str | None = None
    """A text on the task for the challenge `facts`; `None` if the study supplies none."""

    @cached_property
    def agents(self) -> tuple[str, ...]:
        return agent_names(self.settings.agents)

    @cached_property
    def setup(self) -> DebateSetup:
        """The settings that the record carries."""
        return self.settings.setup()

    @cached_property
    def shared(self) -> Mapping[str, object]:
        """The task as every prompt shows it."""
        task, fill = self.task, self.wordings.fill
        return {
            "task": fill(
                "task_options" if task.options else "task_open",
                instruction=fill(f"instruction_{task.kind}"),
                question=task.shown,
                options="\n".join(task.shown_options),
            )
        }

    def part_played(self, persona: PersonaRecord) -> str:
        """The system text of an agent."""
        return self.wordings.fill(
            "agent_system",
            agent=persona.agent,
            count=len(self.agents),
            role=shown_role(persona.role),
            description=shown_description(persona.description),
        )

    def extract(self, turn: int, stage: str, agent: str, text: str) -> Question[str]:
        """Ask for the bare solution out of a text."""
        system, user = self.fill("extract_system"), self.fill("extract", text=indented(text))
        return self.asking(turn, stage, agent, read_text, system=system, user=user)

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
