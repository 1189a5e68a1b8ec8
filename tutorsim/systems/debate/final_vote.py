"""The end of a turn: final answers, ballots over them, and what a vote comes to."""

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from tutorsim.mechanisms.ballot_answers import ballot_from
from tutorsim.mechanisms.flow import Flow, ask
from tutorsim.model import Answer
from tutorsim.records import BallotRecord
from tutorsim.records.debate import AnswerRecord, different_answers
from tutorsim.systems.debate.agent_prompts import answer_question, ballot_question
from tutorsim.systems.debate.discussion import Discussion
from tutorsim.systems.debate.reply_reading import ReadAnswer
from tutorsim.vocabularies import Protocol
from tutorsim.voting import Choice

__all__ = ["FINAL", "Cast", "confidences", "final_answers", "vote"]

FINAL: Final = "vote_final"
"""Stage of a vote that can decide."""


class Cast(NamedTuple):
    """Candidates and ballots of a turn."""

    candidates: tuple[str, ...]
    """Authors of the answers that stand for a vote."""
    ballots: dict[Protocol, tuple[BallotRecord, ...]]
    """Format → ballots; empty if one candidate stands alone."""


def final_answers(discussion: Discussion, turn: int) -> Flow[dict[str, AnswerRecord]]:
    """Every agent's final answer, asked side by side."""
    agents = discussion.context.agents
    own = {agent: discussion.last_of(agent) for agent in agents}
    answers = yield from ask(
        [
            answer_question(
                discussion.context,
                discussion.speakers,
                agent,
                turn=turn,
                own=own[agent],
                agreed_to=discussion.agreed_to(own[agent]),
            )
            for agent in agents
        ]
    )
    return {
        agent: _answer(discussion, answer, own[agent].text)
        for agent, answer in zip(agents, answers, strict=True)
    }


def _answer(discussion: Discussion, answer: Answer[ReadAnswer], own: str) -> AnswerRecord:
    read = answer.value or ReadAnswer(own, None)
    return AnswerRecord(
        text=read.text,
        confidence=read.confidence,
        letter=discussion.context.task.score(read.text).letter,
        status="repaired" if answer.value is None else "valid",
        attempts=answer.attempts,
    )


def confidences(answers: Mapping[str, AnswerRecord]) -> dict[str, int]:
    """Agent → stated confidence; agents who stated none are left out."""
    said = {agent: answer.confidence for agent, answer in answers.items()}
    return {agent: stated for agent, stated in said.items() if stated is not None}


def vote(
    discussion: Discussion,
    turn: int,
    answers: dict[str, AnswerRecord],
    stages: dict[Protocol, str],
) -> Flow[Cast]:
    """Ballots over the final answers, all side by side.

    Args:
        discussion: The debate.
        turn: The turn that ends.
        answers: Agent → final answer.
        stages: Format → stage of its calls.
    """
    context = discussion.context
    first = different_answers(answers)
    merged = context.settings.merge_identical
    candidates = tuple(agent for agent in context.agents if not merged or first[agent] == agent)
    if len(candidates) == 1:
        return Cast(candidates, {})
    labels = {
        agent: context.labels(candidates, turn=turn, reader=agent) for agent in context.agents
    }
    texts = {agent: answer.text for agent, answer in answers.items()}
    replies = yield from ask(
        [
            ballot_question(
                context,
                discussion.speakers,
                agent,
                turn=turn,
                stage=stage,
                form=form,
                answers=texts,
                labels=labels[agent],
            )
            for form, stage in stages.items()
            for agent in context.agents
        ]
    )
    return Cast(candidates, _cast(context.agents, candidates, labels, stages, replies))


def _cast(
    voters: Sequence[str],
    candidates: Sequence[str],
    labels: dict[str, dict[str, str]],
    stages: dict[Protocol, str],
    replies: Sequence[Answer[Choice]],
) -> dict[Protocol, tuple[BallotRecord, ...]]:
    size = len(voters)
    return {
        form: tuple(
            ballot_from(voter, labels[voter], candidates, reply, form=form, rule=form)
            for voter, reply in zip(voters, replies[i * size : (i + 1) * size], strict=True)
        )
        for i, form in enumerate(stages)
    }
