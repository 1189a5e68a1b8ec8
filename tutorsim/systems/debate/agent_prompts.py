"""What debating agents are asked, and how their replies are read."""

import re
from collections.abc import Mapping, Sequence
from typing import Final

from tutorsim.mechanisms.author_labels import indented, labelled
from tutorsim.model import Question
from tutorsim.records.debate import Message, PersonaRecord
from tutorsim.systems.debate.prompt_context import DebateContext, shown_description, shown_role
from tutorsim.systems.debate.reply_reading import (
    ReadAnswer,
    ReadPersona,
    read_answer,
    read_persona,
    read_text,
)
from tutorsim.vocabularies import Protocol
from tutorsim.voting import RULES, Choice, read_ballot, repair_ballot

__all__ = [
    "Speakers",
    "answer_question",
    "ballot_question",
    "extract_question",
    "message_question",
    "newest_solution",
    "persona_question",
    "said_paragraphs",
]

_GAPS: Final = re.compile(r"\n{3,}")


class Speakers:
    """The participants, as prompts name them.

    Args:
        context: The episode.
        personas: One for each agent, in order.
    """

    def __init__(self, context: DebateContext, personas: Sequence[PersonaRecord]) -> None:
        self._names = {
            persona.agent: f"{persona.agent} ({shown_role(persona.role)})" for persona in personas
        }
        self._systems = {persona.agent: context.persona_system(persona) for persona in personas}

    def name(self, agent: str) -> str:
        """An agent's key with its role."""
        return self._names[agent]

    def system(self, agent: str) -> str:
        """An agent's system text."""
        return self._systems[agent]


def persona_question(
    context: DebateContext, agent: str, made: Sequence[PersonaRecord]
) -> Question[ReadPersona]:
    """Ask for one more participant, who complements those made so far."""
    lines = [f"- {shown_role(one.role)}: {shown_description(one.description)}" for one in made]
    before = context.wordings.fill(
        "persona_made" if lines else "persona_none", personas="\n".join(lines)
    )
    call = context.call(
        0,
        "persona",
        agent,
        system=context.wordings.fill("persona_system"),
        user=context.fill("persona", made=before),
    )
    taken = [one.role for one in made]
    return Question(
        call,
        lambda reply: read_persona(reply, taken),
        context.wordings.fill("persona_reminder"),
    )


def message_question(
    context: DebateContext,
    speakers: Speakers,
    agent: str,
    *,
    turn: int,
    stage: str,
    template: str,
    shown: Sequence[tuple[int, Message]],
) -> Question[str]:
    """Ask an agent to speak.

    Args:
        context: The episode.
        speakers: The participants.
        agent: Who speaks.
        turn: The turn, from 1.
        stage: `message`, or `debate_1` and so on.
        template: What is asked for.
        shown: The messages that the agent sees, each with its turn.
    """
    user = context.fill(
        template,
        said=_said(context, speakers, agent, shown),
        current=_current(context, template, shown),
        think=_think(context, asked=context.settings.chain_of_thought),
    )
    call = context.call(
        turn, stage, agent, system=speakers.system(agent), user=_GAPS.sub("\n\n", user)
    )
    return Question(call, read_text, context.wordings.fill("text_reminder"))


def _think(context: DebateContext, *, asked: bool) -> str:
    return f" {context.wordings.fill('think')}" if asked else ""


def _said(
    context: DebateContext, speakers: Speakers, reader: str, shown: Sequence[tuple[int, Message]]
) -> str:
    if not shown:
        return context.wordings.fill("said_nothing")
    return context.wordings.fill("said", messages=said_paragraphs(context, speakers, reader, shown))


def said_paragraphs(
    context: DebateContext, speakers: Speakers, reader: str, shown: Sequence[tuple[int, Message]]
) -> str:
    """The messages that a reader sees, as named paragraphs with its own ones marked."""
    settings = context.settings
    bare = settings.paradigm == "collective" and settings.collective_shows == "solutions"
    paragraphs = []
    for turn, message in shown:
        text = (message.solution or "") if bare else message.text
        paragraphs.append(
            context.wordings.part(
                "own_message" if message.agent == reader else "other_message",
                name=speakers.name(message.agent),
                turn=turn,
                text=indented(text) or context.blank,
            )
        )
    return "\n\n".join(paragraphs)


def newest_solution(shown: Sequence[tuple[int, Message]]) -> str | None:
    """The solution of the newest proposal among messages; `None` if there is none."""
    return next((message.solution for _, message in reversed(shown) if message.solution), None)


def _current(context: DebateContext, template: str, shown: Sequence[tuple[int, Message]]) -> str:
    solution = newest_solution(shown)
    if solution is not None:
        return context.wordings.fill("current", solution=indented(solution))
    return context.wordings.fill("current_none") if template == "message_free" else ""


def extract_question(
    context: DebateContext, *, turn: int, stage: str, agent: str, text: str
) -> Question[str]:
    """Ask for the bare solution out of a message."""
    call = context.call(
        turn,
        stage,
        agent,
        system=context.wordings.fill("extract_system"),
        user=context.fill("extract", text=indented(text)),
    )
    return Question(call, read_text, context.wordings.fill("text_reminder"))


def answer_question(
    context: DebateContext,
    speakers: Speakers,
    agent: str,
    *,
    turn: int,
    own: Message,
    agreed_to: str | None,
) -> Question[ReadAnswer]:
    """Ask an agent for its final solution.

    Args:
        context: The episode.
        speakers: The participants.
        agent: Who answers.
        turn: The turn that ends.
        own: The agent's last message.
        agreed_to: The solution that it agreed to; `None` if it did not agree.
    """
    wordings, confidence = context.wordings, context.settings.confidence
    agreed = (
        "" if agreed_to is None else wordings.fill("answer_agreed", solution=indented(agreed_to))
    )
    user = context.fill(
        "answer",
        own=indented(own.text) or context.blank,
        agreed=agreed,
        confidence=f" {wordings.fill('answer_confidence')}" if confidence else "",
    )
    call = context.call(
        turn, "answer", agent, system=speakers.system(agent), user=_GAPS.sub("\n\n", user)
    )
    return Question(
        call,
        lambda reply: read_answer(reply, confidence=confidence),
        wordings.fill("answer_reminder"),
    )


def ballot_question(
    context: DebateContext,
    speakers: Speakers,
    agent: str,
    *,
    turn: int,
    stage: str,
    form: Protocol,
    answers: Mapping[str, str],
    labels: Mapping[str, str],
) -> Question[Choice]:
    """Ask an agent for a ballot over final answers.

    Args:
        context: The episode.
        speakers: The participants.
        agent: Who votes.
        turn: The turn that ends.
        stage: `vote_final` or `vote_as_…`.
        form: The ballot's format.
        answers: Author → answer.
        labels: Label → author, as this voter sees them.
    """
    budget, shown = context.settings.cumulative_budget, tuple(labels)
    ballot = context.wordings.fill(
        f"ballot_{form}",
        example=RULES[form].example(shown, budget),
        count=len(shown),
        budget=budget,
    )
    shown_answers = labelled(answers, labels, blank=context.blank)
    user = context.fill("vote", answers=shown_answers, ballot=ballot)
    call = context.call(turn, stage, agent, system=speakers.system(agent), user=user)
    return Question(
        call,
        lambda reply: read_ballot(reply, shown, form=form, budget=budget),
        context.wordings.fill("vote_reminder"),
        lambda reply: repair_ballot(reply, shown, form=form, budget=budget),
    )
