"""A study of debates: how its episodes go, its file, its grid, and what they cost.

An episode is a debate under one protocol, one that never stops, or a model alone. Before it ends,
a debate does not depend on its protocol: no prompt mentions it, and no vote is shown to anybody.
"""

import re
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any, ClassVar, Final, Literal, NamedTuple

from pydantic import Field, model_validator

from tutorsim.ballot_reading_and_decisions import Choice, Decision, decide
from tutorsim.catalog import BaseCatalog, WordingNames, templates_of
from tutorsim.errors import StudyError
from tutorsim.kernel.flow_drivers_and_call_log import CallLog, Flow, run_to_failure
from tutorsim.kernel.retest_flow_and_drawn_turns import BallotReading
from tutorsim.kernel.scene_asks_votes_and_blind_labels import ask, indented, vote
from tutorsim.kernel.study_file_and_episode_spec import (
    BaseModels,
    BaseStudy,
    BenchmarkSettings,
    EpisodeSpec,
)
from tutorsim.kernel.system_and_loaded_study import LoadedStudy
from tutorsim.model import Answer, Call, Question
from tutorsim.records import BallotRecord, EpisodeLine, Failure, VotingSettings
from tutorsim.records.debate import (
    AnswerRecord,
    ChallengeRecord,
    DebateRecord,
    DebateTurn,
    EndedBy,
    HeldVote,
    PersonaRecord,
)
from tutorsim.systems.debate.agreement_reading_consensus_and_end_of_debate import (
    End,
    consensus_rule,
    different_answers,
)
from tutorsim.systems.debate.discussion_challenges_and_reply_reading import (
    CHALLENGER,
    DebateContext,
    Discussion,
    ReadAnswer,
    ReadPersona,
    agent_names,
    challenges,
    read_answer,
    read_persona,
    read_text,
    shown_description,
    shown_role,
    speak,
)
from tutorsim.systems.debate.published_question_sets import (
    DebateBenchmark,
    DebateTask,
    in_drawn_order,
    sampled,
)
from tutorsim.systems.debate.settings import (
    BASELINES,
    Condition,
    DebateTable,
    DebateVariant,
    idle_settings,
    parts_of,
    vote_protocol,
)
from tutorsim.tasks import Task, safe_id
from tutorsim.vocabularies import PROTOCOLS, Protocol

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


# --- The episode ----------------------------------------------------------------------------------


SOLO: Final = "baseline"
"""The agent of a model alone."""


@dataclass
class _Progress:
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
            _, message = discussion.said[end.message]
            self.answer_of, self.answer = message.agent, message.solution


def debate_episode(
    context: DebateContext, episode_id: str, variant: str, repeat: int = 1
) -> Flow[DebateRecord]:
    """Run one episode. Returns the record, with `status` `failed` if a call failed for good."""
    progress, calls = _Progress(), CallLog()
    run = _alone if context.condition in BASELINES else _debate
    failure = yield from run_to_failure(run(context, progress), calls)
    place = {"episode_id": episode_id, "variant": variant, "repeat": repeat}
    return _record(context, place, progress, calls, failure)


# --- A model alone --------------------------------------------------------------------------


def _alone(context: DebateContext, progress: _Progress) -> Flow[None]:
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
        progress.solo.append(own)
    if own:
        [solution] = yield from ask([context.extract(turn, "extract", SOLO, own)])
        own = solution.value or own
    progress.answer, progress.answer_of = own, SOLO


# --- A debate -------------------------------------------------------------------------------


def _debate(context: DebateContext, progress: _Progress) -> Flow[None]:
    yield from _gather(context, progress.personas)
    discussion, turn = Discussion(context, progress.personas), 0
    while progress.ended_by is None:
        turn += 1
        logged = yield from _turn(discussion, turn, progress)
        progress.turns.append(logged)
    progress.challenges = yield from challenges(discussion, turn, progress.answer)


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


def _turn(discussion: Discussion, turn: int, progress: _Progress) -> Flow[DebateTurn]:
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
        progress.end(end, discussion, logged.get("answers", {}))
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
    place: Mapping[str, Any],
    progress: _Progress,
    calls: CallLog,
    failure: Failure | None,
) -> DebateRecord:
    task, ended = context.task, failure is None and progress.ended_by != "full"
    score = task.score(progress.answer) if ended else None
    return DebateRecord(
        **place,
        **vars(progress),
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
        turns_taken=len(progress.turns),
        letter=score.letter if score else None,
        score=score.value if score else None,
        exact=score.exact if score else None,
        readable=score.readable if score and progress.answer is not None else None,
        **calls.fields(),
    )


# --- Replies of usual length along the shortest and the longest path ------------------------------


_SENTENCE: Final = (
    "This stands for about eighteen words of the kind that agents write when they discuss a task. "
)
_FIRST: Final = re.compile(r"^([P-Y]): agent_1$", re.MULTILINE)


def _usual_reply(call: Call, *, longest: bool) -> str:
    """A reply of usual length.

    On the longest path nobody agrees, no ballot can be read, so that every vote ties, and every
    answer is challenged. On the shortest one everybody agrees and votes for the first agent.
    """
    stage = call.key.stage
    if stage.startswith("vote_"):
        return "?" * len(call.key.agent) if longest else _ballot(call)
    if stage == "persona":
        return f'{{"role": "Expert {call.key.agent}", "description": "{_SENTENCE}"}}'
    if stage in ("solve", "refine"):
        return f"{_SENTENCE * 8}\nFinal solution: B"
    if stage == "challenge":
        return "DISAGREE" if longest else "AGREE"
    if stage.startswith(("message", "debate_")):
        return f"{'[DISAGREE]' if longest else '[AGREE]'} {_SENTENCE * 5}"
    return call.key.agent


def _ballot(call: Call) -> str:
    """A ballot that ranks the first agent's answer first, in the form that the prompt shows."""
    user = call.request.user
    first = _FIRST.search(user)
    example = user.rpartition("for example: ")[2].split("\n")[0].partition(". Reply")[0]
    if first is None or not example:
        return "none"
    shown, label = example[0], first[1]
    if "=" not in example and len(example) > 1 and "Approve" in user:
        return label
    swap = {shown: label, label: shown}
    return "".join(swap.get(letter, letter) for letter in example)


# --- The study ------------------------------------------------------------------------------------


STAGES: Final = (
    *("persona", "message", *(f"debate_{number}" for number in range(1, 10))),
    *("extract", *(f"extract_{number}" for number in range(1, 10))),
    *("answer", "vote_final", *(f"vote_as_{form}" for form in PROTOCOLS)),
    *("challenge", "counter", "wrong", "solve", "refine"),
)
"""Stages of a debate's calls; `extract_1` belongs to `debate_1`, and so on."""


class DebateModels(BaseModels):
    """`[models]`: identifiers sent with the calls."""

    agent: str = Field(default="claude-haiku-4-5", min_length=1)
    challenger: str | None = Field(default=None, min_length=1)
    """Makes up the wrong answers of challenges; without it an option that is not right is taken."""


class DebateBenchmarks(BenchmarkSettings):
    """`[benchmarks.NAME]`: which tasks."""

    sample: int | Literal["formula"] | None = None
    """Draw so many, or as many as the debate study's formula says; all when left out."""


class DebateStudyFile(BaseStudy):
    """A study file's content."""

    system: Literal["debate"] = "debate"
    conditions: tuple[Condition, ...]
    benchmarks: Mapping[DebateBenchmark, DebateBenchmarks]  # type: ignore[assignment]
    models: DebateModels = DebateModels()
    debate: DebateTable = DebateTable()
    facts: dict[str, str] = Field(default_factory=dict)
    """`[facts]`: task id → a text on the task, for the challenge `facts`."""

    @model_validator(mode="after")
    def _coherent(self) -> "DebateStudyFile":
        for name in ("conditions", "benchmarks"):
            if not getattr(self, name):
                raise ValueError(f"{name} is empty, so the study has no episode")
        twice = [one for one in self.conditions if self.conditions.count(one) > 1]
        if twice:
            raise ValueError(f"conditions names {twice[0]!r} twice")
        for name, settings in self.benchmarks.items():
            if isinstance(settings.sample, int) and settings.sample < 1:
                raise ValueError(f"benchmarks.{name}.sample = {settings.sample} draws no task")
        self.variants  # noqa: B018  # refuses variants that cannot be run
        return self

    @cached_property
    def variants(self) -> tuple[DebateVariant, ...]:
        """Every variant with its settings and conditions."""
        return self.debate.resolved(self.conditions)


class _Drawn(dict[str, tuple[Task, ...]]):
    """Tasks that have been drawn: a draw of a draw would be another one."""


@dataclass(frozen=True)
class DebateStudy(LoadedStudy):
    """A study of debates with everything that it names."""

    study: DebateStudyFile
    catalog: BaseCatalog

    paths: ClassVar[tuple[str, str]] = (
        "everybody agrees, and every vote decides",
        "nobody does, and every vote ties",
    )

    def __post_init__(self) -> None:
        if not isinstance(self.tasks, _Drawn):
            drawn = _Drawn({name: self._drawn(name) for name in self.tasks})
            object.__setattr__(self, "tasks", drawn)

    def _drawn(self, benchmark: str) -> tuple[Task, ...]:
        seed = self.study.seed
        tasks = [task for task in self.tasks[benchmark] if isinstance(task, DebateTask)]
        sample = next(
            (one.sample for name, one in self.study.benchmarks.items() if name == benchmark), None
        )
        return tuple(in_drawn_order(task, seed) for task in sampled(tasks, sample, seed=seed))

    def episode(self, spec: EpisodeSpec) -> Flow[EpisodeLine]:
        place = (spec.episode_id, spec.variant, spec.repeat)
        return (yield from debate_episode(self.context(spec), *place))

    def context(self, spec: EpisodeSpec) -> DebateContext:
        """The constants of one episode."""
        assert isinstance(spec.task, DebateTask)
        parts = (spec.benchmark, safe_id(spec.task.task_id), spec.variant, f"r{spec.repeat:02d}")
        return DebateContext(
            wordings=self.catalog,
            settings=self._variants[spec.variant].settings,
            task=spec.task,
            condition=spec.condition,
            seed=self.study.seed,
            discussion=".".join(parts),
            call=self.call,
            challenger=self.study.models.challenger is not None,
            facts=self.study.facts.get(spec.task.task_id),
        )

    @cached_property
    def _variants(self) -> dict[str, DebateVariant]:
        return {variant.name: variant for variant in self.study.variants}

    def check(self, path: Any) -> None:
        wants = [one.name for one in self.study.variants if "facts" in one.settings.challenge]
        if not wants:
            return
        for tasks in self.tasks.values():
            for task in tasks:
                if task.task_id not in self.study.facts:
                    raise StudyError(
                        f"{path}: the variant {wants[0]!r} challenges with facts, and [facts] has "
                        f"none on task {task.task_id!r}.",
                        hint=f'Add "{task.task_id}" = "…" under [facts], or leave out the setting.',
                    )

    def remarks(self) -> Iterator[str]:
        yield from idle_settings(self.study.variants)
        for benchmark, tasks in self.tasks.items():
            equal = [
                task
                for task in tasks
                if isinstance(task, DebateTask) and len(set(task.options)) < len(task.options)
            ]
            if equal:
                yield (
                    f"{len(equal)} of {len(tasks)} tasks of {benchmark} have equal options, "
                    f"{equal[0].task_id!r} for one. They are kept as published, by their place."
                )

    def used(self) -> WordingNames:
        parts = {part for variant in self.study.variants for part in parts_of(variant)}
        if self.study.ask_cut_off_again:
            parts.add("ask_cut_off_again")
        return {"prompts": templates_of("tutorsim.systems.debate", parts)}

    def variants(self) -> tuple[str, ...]:
        return tuple(self._variants)

    def cells(self) -> Iterator[tuple[str, Task, str, str]]:
        for benchmark, tasks in self.tasks.items():
            for task in tasks:
                for variant in self.study.variants:
                    for condition in variant.conditions:
                        yield benchmark, task, variant.name, condition

    def alike(self, spec: EpisodeSpec) -> Hashable:
        """Tasks differ in having wrong options."""
        assert isinstance(spec.task, DebateTask)
        return (spec.benchmark, spec.variant, spec.condition, bool(spec.task.wrong_options()))

    def usual_reply(self, spec: EpisodeSpec, call: Call, *, longest: bool) -> str:
        settings = self._variants[spec.variant].settings
        place = (call.key.stage, call.key.agent)
        last = (f"debate_{settings.rounds - 1}", agent_names(settings.agents)[-1])
        proposes = consensus_rule(spec.condition) is not None and place == last
        same = call.key.stage == "answer" and settings.merge_identical
        if longest or not (proposes or same):
            return _usual_reply(call, longest=longest)
        # after several rounds, agreement is counted from a proposal in the last one but one
        return "B" if same else "[DISAGREE]"

    def model_of(self, agent: str, stage: str) -> str:
        models = self.study.models
        return models.challenger or models.agent if agent == CHALLENGER else models.agent

    def model_names(self) -> tuple[str, ...]:
        models = self.study.models
        return tuple(filter(None, (models.agent, models.challenger)))

    def ballot_reading(self, spec: EpisodeSpec) -> BallotReading:
        settings = self._variants[spec.variant].settings
        return BallotReading(self.catalog.fill("vote_reminder"), settings.cumulative_budget)

    def voting(self) -> VotingSettings | None:
        """The agents in order decide among the tied; points and labels are the first variant's."""
        if not any(vote_protocol(name) or name == "full" for name in self.study.conditions):
            return None
        first = self.study.variants[0].settings
        return VotingSettings(
            fallback_order=agent_names(max(one.settings.agents for one in self.study.variants)),
            cumulative_budget=first.cumulative_budget,
            label_order=first.blinding,
        )

    def study_table(self) -> dict[str, Any]:
        """The study's file; the tasks that are written beside it are those that were drawn."""
        table = super().study_table()
        for settings in table["benchmarks"].values():
            settings.pop("sample", None)
        return table
