"""The scene of a debate: its task and settings, who takes part, and how replies are read."""

import json
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, NamedTuple

from tutorsim.kernel.scene import MakeCall, Scene, Wordings, draw_labels, indented
from tutorsim.model import Question
from tutorsim.records.debate import DebateSetup, PersonaRecord
from tutorsim.systems.debate.settings import DebateSettings
from tutorsim.systems.debate.tasks import DebateTask

# --- Reply reading -------------------------------------------------------------------------------

_CONFIDENCE: Final = re.compile(
    r"\n[ \t>*_#]*CONFIDENCE[ \t*_]*:[ \t*_]*([0-9]{1,3})[ \t]*(?:%|/[ \t]*100)?[ \t*_.]*(?=\n|$)",
    re.IGNORECASE,
)


class ReadPersona(NamedTuple):
    """A participant as a reply describes it."""

    role: str
    description: str


class ReadAnswer(NamedTuple):
    """A final answer; the confidence is `None` if the reply states none from 0 to 100."""

    text: str
    confidence: int | None


def read_text(reply: str) -> str | None:
    """The reply without surrounding white space; `None` if it is empty."""
    return reply.strip() or None


def read_answer(reply: str, *, confidence: bool) -> ReadAnswer | None:
    """A final answer, with the line `CONFIDENCE:` taken off if one was asked for.

    Returns:
        `None` if nothing but that line is left.
    """
    if not confidence:
        text = read_text(reply)
        return None if text is None else ReadAnswer(text, None)
    stated = _CONFIDENCE.search(f"\n{reply}")
    text = read_text(_CONFIDENCE.sub("\n", f"\n{reply}"))
    if text is None:
        return None
    value = int(stated[1]) if stated else -1
    return ReadAnswer(text, value if 0 <= value <= 100 else None)


def read_persona(reply: str, taken: Collection[str]) -> ReadPersona | None:
    """The first JSON object that has a role and a description.

    `None` if there is no such object, or its role is taken, whatever its letter case.
    """
    for value in _objects(reply):
        role, description = value.get("role"), value.get("description")
        if not (isinstance(role, str) and isinstance(description, str)):
            continue
        name = " ".join(role.split())
        if not (name and description.strip()):
            continue
        if name.casefold() in {other.casefold() for other in taken}:
            return None
        return ReadPersona(name, description.strip())
    return None


def _objects(text: str) -> Iterator[dict[str, Any]]:
    """JSON objects in a text, in the order of their first characters."""
    decoder, at = json.JSONDecoder(), text.find("{")
    while at != -1:
        with suppress(ValueError, RecursionError):
            value = decoder.raw_decode(text, at)[0]
            if isinstance(value, dict):
                yield value
        at = text.find("{", at + 1)


# --- Scene ---------------------------------------------------------------------------------------

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
