"""One episode: a debate under one protocol, one that never stops, or a model alone.

A generator over the effects of `tutorsim.mechanisms.flow`. Before it ends, a debate does not
depend on its protocol: no prompt mentions it, and no vote is shown to anybody.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from tutorsim.mechanisms.call_log import CallLog, run_to_failure
from tutorsim.mechanisms.flow import Flow, ask
from tutorsim.records import Failure
from tutorsim.records.debate import (
    AnswerRecord,
    ChallengeRecord,
    DebateRecord,
    DebateTurn,
    EndedBy,
    HeldVote,
    Message,
    PersonaRecord,
    flag,
)
from tutorsim.systems.debate.agent_prompts import persona_question
from tutorsim.systems.debate.challenge import challenges
from tutorsim.systems.debate.discussion import Discussion, speak
from tutorsim.systems.debate.final_vote import FINAL, Cast, confidences, final_answers, vote
from tutorsim.systems.debate.prompt_context import DebateContext
from tutorsim.systems.debate.settings import BASELINES, consensus_rule, vote_protocol
from tutorsim.systems.debate.single_model import SOLO, solve_alone
from tutorsim.vocabularies import PROTOCOLS, Protocol
from tutorsim.voting import agreed, decide, newest_proposal

__all__ = ["EpisodeName", "debate_episode"]

_FULL: Final[Mapping[Protocol, str]] = {form: f"vote_as_{form}" for form in PROTOCOLS}


@dataclass(frozen=True)
class EpisodeName:
    """What a record says of its place in the grid."""

    episode_id: str
    variant: str
    repeat: int = 1


@dataclass
class _Progress:
    """What an episode has reached; grows as the generator runs."""

    personas: list[PersonaRecord] = field(default_factory=list)
    turns: list[DebateTurn] = field(default_factory=list)
    solo: list[str] = field(default_factory=list)
    ended_by: EndedBy | None = None
    decided: bool | None = None
    answer: str | None = None
    answer_of: str | None = None
    challenges: tuple[ChallengeRecord, ...] = ()

    def end(self, by: EndedBy, *, decided: bool | None, answer: str | None, of: str | None) -> None:
        """Note how the debate ended, and with what."""
        self.ended_by, self.decided = by, decided
        self.answer, self.answer_of = answer, of


def debate_episode(context: DebateContext, name: EpisodeName) -> Flow[DebateRecord]:
    """Run one episode.

    Returns:
        The record, with `status` `failed` if a call failed for good.
    """
    progress, calls = _Progress(), CallLog()
    run = _alone if context.condition in BASELINES else _debate
    failure = yield from run_to_failure(run(context, progress), calls)
    return _record(context, name, progress, calls, failure)


def _alone(context: DebateContext, progress: _Progress) -> Flow[None]:
    progress.answer = yield from solve_alone(context, progress.solo)
    progress.answer_of = SOLO


def _debate(context: DebateContext, progress: _Progress) -> Flow[None]:
    yield from _gather(context, progress.personas)
    rule = consensus_rule(context.condition)

    def ask_protocol(turn: int, messages: Sequence[Message]) -> int | None:
        if rule is None:
            return None
        settings = context.settings
        return agreed(
            [flag(message) for message in messages],
            agents=settings.agents,
            rule=rule,
            turn=turn,
            majority=settings.majority,
        )

    discussion = Discussion(context, progress.personas, agreed=ask_protocol, stops=rule is not None)
    for turn in range(1, context.settings.max_turns + 1):
        ended = yield from _turn(discussion, turn, progress)
        if ended:
            break
    progress.challenges = yield from challenges(discussion, len(progress.turns), progress.answer)


def _gather(context: DebateContext, personas: list[PersonaRecord]) -> Flow[None]:
    """Whom the agents play: given, none, or asked for one after another."""
    given = context.settings.given_personas
    for i, agent in enumerate(context.agents):
        if given:
            role, description = given[i].role, given[i].description
            personas.append(PersonaRecord(agent=agent, role=role, description=description))
        elif context.settings.personas == "none":
            personas.append(_participant(context, agent, i + 1))
        else:
            [answer] = yield from ask([persona_question(context, agent, personas)])
            found = answer.value
            personas.append(
                _participant(context, agent, i + 1).model_copy(
                    update={"status": "missing", "attempts": answer.attempts}
                )
                if found is None
                else PersonaRecord(
                    agent=agent,
                    role=found.role,
                    description=found.description,
                    attempts=answer.attempts,
                )
            )


def _participant(context: DebateContext, agent: str, number: int) -> PersonaRecord:
    """Whom an agent plays that has no persona."""
    part = context.wordings.part
    return PersonaRecord(
        agent=agent,
        role=part("participant", number=number),
        description=part("participant_description"),
    )


def _turn(discussion: Discussion, turn: int, progress: _Progress) -> Flow[bool]:
    """One turn of messages, and what its end asks for; whether the debate is over."""
    condition, settings = discussion.context.condition, discussion.context.settings
    reached = yield from speak(discussion, turn)
    logged = DebateTurn(turn=turn, messages=discussion.of_turn(turn))
    last = turn == settings.max_turns
    protocol = vote_protocol(condition)
    if condition == "full":
        logged = yield from _every_ballot(discussion, logged)
        if last:
            progress.end("full", decided=None, answer=None, of=None)
    elif protocol is not None and turn >= settings.vote_from:
        logged = yield from _vote(discussion, logged, protocol, progress)
    elif protocol is None and (last or reached is not None):
        _conclude(discussion, reached, progress)
    progress.turns.append(logged)
    return progress.ended_by is not None


def _conclude(discussion: Discussion, reached: int | None, progress: _Progress) -> None:
    """Consensus: the proposal that was agreed on, or at the limit the newest one."""
    index = reached
    if index is None:
        index = newest_proposal([flag(message) for message in discussion.messages])
    assert index is not None  # the first message of a debate is a proposal
    message = discussion.messages[index]
    by: EndedBy = "limit" if reached is None else "consensus"
    progress.end(by, decided=reached is not None, answer=message.solution, of=message.agent)


def _every_ballot(discussion: Discussion, logged: DebateTurn) -> Flow[DebateTurn]:
    """Final answers, and ballots in all formats, which decide nothing."""
    answers = yield from final_answers(discussion, logged.turn)
    cast = yield from vote(discussion, logged.turn, answers, dict(_FULL))
    return logged.model_copy(
        update={
            "answers": answers,
            "candidates": cast.candidates,
            "confidences": confidences(answers),
            "ballots_as": dict(cast.ballots),
        }
    )


def _vote(
    discussion: Discussion, logged: DebateTurn, protocol: Protocol, progress: _Progress
) -> Flow[DebateTurn]:
    """Final answers and a vote; ends the debate unless it ties before the last turn."""
    context, turn = discussion.context, logged.turn
    answers = yield from final_answers(discussion, turn)
    cast = yield from vote(discussion, turn, answers, {protocol: FINAL})
    logged = logged.model_copy(
        update={
            "answers": answers,
            "candidates": cast.candidates,
            "confidences": confidences(answers),
        }
    )
    if not cast.ballots:
        author = cast.candidates[0]
        progress.end("vote", decided=True, answer=answers[author].text, of=author)
        return logged
    return logged.model_copy(update=_counted(context, cast, protocol, answers, progress, turn=turn))


def _counted(
    context: DebateContext,
    cast: Cast,
    protocol: Protocol,
    answers: Mapping[str, AnswerRecord],
    progress: _Progress,
    *,
    turn: int,
) -> dict[str, Any]:
    """What a vote adds to its turn: the decision, or the vote that was held."""
    ballots = cast.ballots[protocol]
    decision = decide([ballot.mass for ballot in ballots], cast.candidates, order=context.agents)
    tied = decision.tied_in_vote
    winner: str | None = decision.winner
    if tied and turn == context.settings.max_turns:
        author = _undecided(context, tied)
        text = None if author is None else answers[author].text
        progress.end("limit", decided=False, answer=text, of=author)
        winner = author if author in tied else None
    elif tied:
        winner = None
    else:
        progress.end("vote", decided=True, answer=answers[decision.winner].text, of=winner)
    if winner is not None:
        return {"ballots_final": ballots, "decision": decision}
    held = HeldVote(tallies=decision.tallies, tied=tied)
    return {"held": held, "other_votes": {"vote_held": ballots}}


def _undecided(context: DebateContext, tied: Sequence[str]) -> str | None:
    """Whose answer is delivered after a last vote that tied."""
    match context.settings.undecided:
        case "first_agent":
            return context.agents[0]
        case "leader":
            return tied[0]
        case "none":
            return None


def _record(
    context: DebateContext,
    name: EpisodeName,
    progress: _Progress,
    calls: CallLog,
    failure: Failure | None,
) -> DebateRecord:
    task, ended = context.task, failure is None and progress.ended_by != "full"
    score = task.score(progress.answer) if ended else None
    return DebateRecord(
        episode_id=name.episode_id,
        benchmark=task.benchmark,
        task_id=task.task_id,
        variant=name.variant,
        condition=context.condition,
        repeat=name.repeat,
        question=task.shown,
        answer_kind=task.kind,
        options=task.options,
        gold=task.gold,
        status="complete" if failure is None else "failed",
        failure=failure,
        setup=context.settings.setup(),
        personas=tuple(progress.personas),
        turns=tuple(progress.turns),
        turns_taken=len(progress.turns),
        ended_by=progress.ended_by,
        decided=progress.decided,
        answer=progress.answer,
        answer_of=progress.answer_of,
        letter=score.letter if score else None,
        score=score.value if score else None,
        exact=score.exact if score else None,
        readable=score.readable if score and progress.answer is not None else None,
        challenges=progress.challenges,
        solo=tuple(progress.solo),
        calls=calls.records(),
    )
