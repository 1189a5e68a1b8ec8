"""The end of a turn: final answers, ballots over them, and what a vote comes to."""

from collections.abc import Mapping
from functools import partial
from typing import NamedTuple

from tutorsim.mechanisms.author_labels import indented
from tutorsim.mechanisms.flow import Flow, ask
from tutorsim.mechanisms.scene import vote
from tutorsim.model import Answer, Question
from tutorsim.records import BallotRecord
from tutorsim.records.debate import AnswerRecord, different_answers
from tutorsim.systems.debate.discussion import Discussion
from tutorsim.systems.debate.reply_reading import ReadAnswer, read_answer
from tutorsim.vocabularies import Protocol
from tutorsim.voting import Choice

__all__ = ["Cast", "final_vote"]


class Cast(NamedTuple):
    """Final answers of a turn, and the ballots over them."""

    answers: dict[str, AnswerRecord]
    """Agent → final answer."""
    candidates: tuple[str, ...]
    """Authors of the answers that stand for a vote."""
    confidences: dict[str, int]
    """Agent → stated confidence; agents who stated none are left out."""
    ballots: dict[Protocol, tuple[BallotRecord, ...]]
    """Format → ballots; empty if one candidate stands alone."""


def final_vote(discussion: Discussion, turn: int, stages: Mapping[Protocol, str]) -> Flow[Cast]:
    """Every agent's final answer, then ballots over the answers; each side by side.

    Args:
        discussion: The debate.
        turn: The turn that ends.
        stages: Format → stage of its calls.
    """
    context, agents = discussion.context, discussion.context.agents
    replies = yield from ask([_answer_question(discussion, turn, agent) for agent in agents])
    answers = {
        agent: _answer(discussion, agent, reply)
        for agent, reply in zip(agents, replies, strict=True)
    }
    stated = {agent: answer.confidence for agent, answer in answers.items()}
    first = different_answers(answers)
    merged = context.settings.merge_identical
    candidates = tuple(agent for agent in agents if not merged or first[agent] == agent)
    cast = Cast(answers, candidates, {a: c for a, c in stated.items() if c is not None}, {})
    if len(candidates) == 1:
        return cast
    labels = {agent: context.labels(candidates, turn=turn, reader=agent) for agent in agents}
    texts = {agent: answer.text for agent, answer in answers.items()}

    def ballot(form: Protocol, agent: str) -> Question[Choice]:
        return context.ballot(
            *(turn, stages[form], agent, labels[agent]),
            form=form,
            budget=context.settings.cumulative_budget,
            system=discussion.part_of(agent),
            answers=context.labelled(texts, labels[agent]),
        )

    ballots = yield from vote(agents, candidates, labels, {f: f for f in stages}, ballot)
    return cast._replace(ballots=ballots)


def _answer_question(discussion: Discussion, turn: int, agent: str) -> Question[ReadAnswer]:
    context, own = discussion.context, discussion.last_of(agent)
    agreed_to, asked = discussion.agreed_to(own), context.settings.confidence
    agreed = agreed_to and context.fill("answer_agreed", solution=indented(agreed_to))
    return discussion.question(
        *(turn, "answer", agent, "answer", partial(read_answer, confidence=asked)),
        reminder="answer_reminder",
        own=indented(own.text) or context.blank,
        agreed=agreed or "",
        confidence=context.fill_if(asked, "answer_confidence"),
    )


def _answer(discussion: Discussion, agent: str, answer: Answer[ReadAnswer]) -> AnswerRecord:
    read = answer.value or ReadAnswer(discussion.last_of(agent).text, None)
    return AnswerRecord(
        text=read.text,
        confidence=read.confidence,
        letter=discussion.context.task.score(read.text).letter,
        status="repaired" if answer.value is None else "valid",
        attempts=answer.attempts,
    )
