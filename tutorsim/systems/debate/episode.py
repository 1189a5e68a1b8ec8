"""One episode: a debate under one protocol, one that never stops, or a model alone.

A generator over the effects of `tutorsim.kernel.flow`. Before it ends, a debate does not
depend on its protocol: no prompt mentions it, and no vote is shown to anybody.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from hashlib import sha256
from typing import Any, Final, NamedTuple

from tutorsim.kernel.flow import CallLog, Flow, ask, run_to_failure
from tutorsim.kernel.scene import indented, vote
from tutorsim.model import Answer, Question
from tutorsim.records import BallotRecord, Failure
from tutorsim.records.debate import (
    AnswerRecord,
    ChallengeRecord,
    DebateRecord,
    DebateTurn,
    EndedBy,
    HeldVote,
    PersonaRecord,
    different_answers,
)
from tutorsim.systems.debate.discussion import Discussion, speak
from tutorsim.systems.debate.ending import End
from tutorsim.systems.debate.reply_reading import (
    ReadAnswer,
    ReadPersona,
    read_answer,
    read_persona,
    read_text,
)
from tutorsim.systems.debate.scene import (
    DebateContext,
    shown_description,
    shown_role,
)
from tutorsim.systems.debate.settings import BASELINES, vote_protocol
from tutorsim.vocabularies import PROTOCOLS, Protocol
from tutorsim.voting import Choice, Decision, decide

# --- The end of a turn: final answers, and ballots over them --------------------------------------


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
    """Every agent's final answer, then ballots in each format's stage; each side by side."""
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


# --- Challenges: after the debate, every agent judges an answer -----------------------------------


CHALLENGER: Final = "challenger"
"""The agent that makes up wrong answers."""
_JUDGEMENT: Final = re.compile(r"\W*(AGREE|DISAGREE)\W*", re.IGNORECASE)


def read_judgement(reply: str) -> bool | None:
    """Whether a reply challenges: `DISAGREE` and no other word; `None` if it is neither word."""
    found = _JUDGEMENT.fullmatch(reply)
    return None if found is None else found[1].upper() == "DISAGREE"


def challenges(
    discussion: Discussion, turns: int, answer: str | None
) -> Flow[tuple[ChallengeRecord, ...]]:
    """Ask every agent to judge the answer that was delivered, if any, once for each setting."""
    records: list[ChallengeRecord] = []
    settings = () if answer is None else discussion.context.settings.challenge
    for turn, setting in enumerate(settings, start=turns + 1):
        shown = yield from _shown_answer(discussion.context, setting, turn, answer or "")
        records += yield from _judged(discussion, setting, turn, shown)
    return tuple(records)


def _shown_answer(context: DebateContext, setting: str, turn: int, answer: str) -> Flow[str]:
    """The answer that is to be judged."""
    if setting == "irrelevant":
        return context.fill("irrelevant_answer")
    if setting != "wrong":
        return answer
    distractors = context.task.wrong_options()
    if distractors and not context.challenger:
        name = f"{context.seed}\x1f{context.task.task_id}"
        drawn = int.from_bytes(sha256(name.encode("utf-8", "surrogatepass")).digest()[:6])
        return distractors[drawn % len(distractors)]
    system, user = context.fill("solo_system"), context.fill("wrong_answer")
    question = context.asking(turn, "wrong", CHALLENGER, read_text, system=system, user=user)
    [reply] = yield from ask([question])
    return reply.value or context.fill("irrelevant_answer")


def _judged(
    discussion: Discussion, setting: str, turn: int, shown: str
) -> Flow[list[ChallengeRecord]]:
    """Judgements side by side, then the answers of those who challenge, side by side."""
    context, agents, asked = discussion.context, discussion.context.agents, discussion.question
    judged = yield from ask(
        [
            asked(
                *(turn, "challenge", agent, "challenge", read_judgement),
                reminder="challenge_reminder",
                shown=_beside(discussion, agent, setting),
                answer=indented(shown),
            )
            for agent in agents
        ]
    )
    doubting = [agent for agent, reply in zip(agents, judged, strict=True) if reply.value]
    countered = yield from ask(
        [
            asked(
                *(turn, "counter", agent, "counter", read_text),
                may_lack=False,
                answer=indented(shown),
            )
            for agent in doubting
        ]
    )
    counters = {agent: reply.value or "" for agent, reply in zip(doubting, countered, strict=True)}
    return [
        ChallengeRecord(
            setting=setting,
            agent=agent,
            shown_answer=shown,
            challenged=reply.value,
            raw=reply.raw,
            counter=counters.get(agent),
            score=context.task.score(counters[agent]).value if agent in counters else None,
            attempts=reply.attempts,
        )
        for agent, reply in zip(agents, judged, strict=True)
    ]


def _beside(discussion: Discussion, agent: str, setting: str) -> str:
    """What stands beside task and answer."""
    context = discussion.context
    match setting:
        case "facts":
            return context.fill("challenge_facts", facts=indented(context.facts or ""))
        case "history":
            messages = discussion.paragraphs(agent, discussion.seen_by(agent))
            return context.fill("challenge_history", messages=messages)
        case _:
            return ""


# --- The episode ----------------------------------------------------------------------------------


SOLO: Final = "baseline"
"""The agent of a model alone."""


@dataclass(frozen=True)
class EpisodeName:
    """What a record says of its place in the grid."""

    episode_id: str
    variant: str
    repeat: int = 1


@dataclass
class _Reached:
    """What an episode has reached: fields of its record, which grow as the generator runs."""

    personas: list[PersonaRecord] = field(default_factory=list)
    turns: list[DebateTurn] = field(default_factory=list)
    solo: list[str] = field(default_factory=list)
    ended_by: EndedBy | None = None
    decided: bool | None = None
    answer: str | None = None
    answer_of: str | None = None
    challenges: tuple[ChallengeRecord, ...] = ()

    def end(self, end: End, discussion: Discussion, answers: Mapping[str, AnswerRecord]) -> None:
        """Note how the debate ended, and with whose answer."""
        self.ended_by, self.decided, self.answer_of = end.by, end.decided, end.author
        if end.author is not None:
            self.answer = answers[end.author].text
        if end.message is not None:
            message = discussion.messages[end.message]
            self.answer_of, self.answer = message.agent, message.solution


def debate_episode(context: DebateContext, name: EpisodeName) -> Flow[DebateRecord]:
    """Run one episode.

    Returns:
        The record, with `status` `failed` if a call failed for good.
    """
    reached, calls = _Reached(), CallLog()
    run = _alone if context.condition in BASELINES else _debate
    failure = yield from run_to_failure(run(context, reached), calls)
    return _record(context, name, reached, calls, failure)


# --- A model alone --------------------------------------------------------------------------


def _alone(context: DebateContext, reached: _Reached) -> Flow[None]:
    """One model solves the task, perhaps thinks step by step, and perhaps refines its solution."""
    condition, settings = context.condition, context.settings
    refines = condition == "self_refine"
    thinks = condition == "baseline_cot" or (refines and settings.chain_of_thought)
    own, turn = "", 1
    for turn in range(1, (settings.agents * settings.vote_from if refines else 0) + 2):
        stage = "solve" if turn == 1 else "refine"
        given = {} if turn == 1 else {"own": own.replace("\n", "\n  ") or context.blank}
        user = context.fill(stage, think=context.fill_if(thinks, "think"), **given)
        system = context.fill("solo_system")
        [reply] = yield from ask(
            [context.asking(turn, stage, SOLO, read_text, system=system, user=user)]
        )
        own = reply.value or own
        reached.solo.append(own)
    if own:
        [solution] = yield from ask([context.extract(turn, "extract", SOLO, own)])
        own = solution.value or own
    reached.answer, reached.answer_of = own, SOLO


# --- A debate -------------------------------------------------------------------------------


def _debate(context: DebateContext, reached: _Reached) -> Flow[None]:
    yield from _gather(context, reached.personas)
    discussion, turn = Discussion(context, reached.personas), 0
    while reached.ended_by is None:
        turn += 1
        logged = yield from _turn(discussion, turn, reached)
        reached.turns.append(logged)
    reached.challenges = yield from challenges(discussion, turn, reached.answer)


def _gather(context: DebateContext, personas: list[PersonaRecord]) -> Flow[None]:
    """Whom the agents play: given, none, or asked for one after another."""
    part, given = context.wordings.part, context.settings.given_personas
    for i, agent in enumerate(context.agents):
        persona = PersonaRecord(
            agent=agent,
            role=given[i].role if given else part("participant", number=i + 1),
            description=given[i].description if given else part("participant_description"),
        )
        if context.settings.personas == "expert":
            [answer] = yield from ask([_persona_question(context, agent, personas)])
            found = {"status": "missing"} if answer.value is None else answer.value._asdict()
            persona = persona.model_copy(update={**found, "attempts": answer.attempts})
        personas.append(persona)


def _persona_question(
    context: DebateContext, agent: str, made: Sequence[PersonaRecord]
) -> Question[ReadPersona]:
    """Ask for one more participant, who complements those made so far."""
    lines = [f"- {shown_role(one.role)}: {shown_description(one.description)}" for one in made]
    before = context.fill("persona_made" if lines else "persona_none", personas="\n".join(lines))
    taken = [one.role for one in made]
    return context.asking(
        *(0, "persona", agent, lambda reply: read_persona(reply, taken)),
        system=context.fill("persona_system"),
        user=context.fill("persona", made=before),
        reminder="persona_reminder",
    )


def _turn(discussion: Discussion, turn: int, reached: _Reached) -> Flow[DebateTurn]:
    """One turn of messages, and what its end asks for."""
    context = discussion.context
    condition, protocol = context.condition, vote_protocol(context.condition)
    end = yield from speak(discussion, turn)
    logged: dict[str, Any] = {}
    if condition == "full":
        cast = yield from final_vote(discussion, turn, {f: f"vote_as_{f}" for f in PROTOCOLS})
        logged = _answered(cast) | {"ballots_as": cast.ballots}
    elif protocol is not None and turn >= context.settings.vote_from:
        cast = yield from final_vote(discussion, turn, {protocol: "vote_final"})
        decision = _decision(cast, context.agents)
        leading = decision.tied_in_vote or (decision.winner,) if decision else cast.candidates
        end = discussion.end(turn, over=True, leading=leading)
        logged = _answered(cast) | _counted(cast, decision, end)
    if end is not None:
        reached.end(end, discussion, logged.get("answers", {}))
    return DebateTurn(turn=turn, messages=discussion.of_turn(turn), **logged)


def _answered(cast: Cast) -> dict[str, Any]:
    return {name: value for name, value in cast._asdict().items() if name != "ballots"}


def _decision(cast: Cast, agents: Sequence[str]) -> Decision | None:
    """The count of a turn's ballots; `None` if one candidate stands alone and needs no vote."""
    for ballots in cast.ballots.values():
        return decide([ballot.mass for ballot in ballots], cast.candidates, order=agents)
    return None


def _counted(cast: Cast, decision: Decision | None, end: End | None) -> dict[str, Any]:
    """What a vote adds to its turn: the decision, or the vote that tied and was held."""
    if decision is None:
        return {}
    [ballots] = cast.ballots.values()
    tied = decision.tied_in_vote
    if end is not None and end.author in (tied or cast.candidates):
        return {"ballots_final": ballots, "decision": decision}
    held = HeldVote(tallies=decision.tallies, tied=tied)
    return {"held": held, "other_votes": {"vote_held": ballots}}


# --- The record -----------------------------------------------------------------------------


def _record(
    context: DebateContext,
    name: EpisodeName,
    reached: _Reached,
    calls: CallLog,
    failure: Failure | None,
) -> DebateRecord:
    task, ended = context.task, failure is None and reached.ended_by != "full"
    score = task.score(reached.answer) if ended else None
    return DebateRecord(
        **vars(name),
        **vars(reached),
        benchmark=task.benchmark,
        task_id=task.task_id,
        condition=context.condition,
        question=task.shown,
        answer_kind=task.kind,
        options=task.options,
        gold=task.gold,
        status="complete" if failure is None else "failed",
        failure=failure,
        setup=context.setup,
        turns_taken=len(reached.turns),
        letter=score.letter if score else None,
        score=score.value if score else None,
        exact=score.exact if score else None,
        readable=score.readable if score and reached.answer is not None else None,
        **calls.fields(),
    )
