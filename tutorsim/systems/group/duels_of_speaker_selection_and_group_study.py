"""A study of groups: its lessons and duels, its grid, and how many calls it asks for."""

import json
import re
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import Any, ClassVar, Final, TypeVar

from tutorsim.catalog import WordingNames
from tutorsim.errors import StudyError, TaskFileError
from tutorsim.kernel.flow_drivers_and_call_log import CallLog, Flow, run_to_failure
from tutorsim.kernel.load_and_check_study_file import nearest
from tutorsim.kernel.retest_flow_and_drawn_turns import AskedTogether
from tutorsim.kernel.scene_asks_votes_and_blind_labels import ask, indented
from tutorsim.kernel.study_file_and_episode_spec import EpisodeSpec
from tutorsim.kernel.system_and_loaded_study import CUT_OFF_REMINDER, LoadedStudy
from tutorsim.model import Answer, Call, Question
from tutorsim.records import EpisodeLine, Failure
from tutorsim.records.group import (
    CycleRecord,
    DuelRecord,
    DuelResult,
    EventRecord,
    GroupRecord,
    JudgmentRecord,
    LessonRecord,
    PredictionRecord,
    RatingRecord,
    StepRecord,
    UtteranceRecord,
    WarmUpRecord,
)
from tutorsim.systems.group.lesson_events_stage_progress_and_prompts import (
    LEARNER,
    Conversation,
    Group,
    GroupScene,
    Timeline,
)
from tutorsim.systems.group.lesson_flow import NEXT_SPEAKER, SELF_SELECT, LessonState, run_lesson
from tutorsim.systems.group.lesson_problem_and_duel_scenario_files import N_MESSAGES, Scenario
from tutorsim.systems.group.settings import DUEL, PERSON, GroupCatalog, GroupSettings, Study
from tutorsim.systems.group.speaker_selection_and_its_reasons import CRITERIA
from tutorsim.systems.group.speaking_cycle_and_reply_reading import (
    RATINGS,
    Verdict,
    evaluations_again,
    predicted_speaker,
    read_ratings,
    read_verdict,
    self_selected_speaker,
    thoughts_after,
    utterance_of,
)
from tutorsim.tasks import Task

R = TypeVar("R", LessonRecord, DuelRecord)

# --- Selection duel ------------------------------------------------------------------------------

ORDERS: Final = {"order_1": (SELF_SELECT, NEXT_SPEAKER), "order_2": (NEXT_SPEAKER, SELF_SELECT)}
"""Asking of the judge → systems in the order shown."""


@dataclass
class DuelState:
    """What a duel has reached; grows as the generator runs."""

    scene: GroupScene
    talk: Conversation = field(init=False)
    warm_up: list[WarmUpRecord] = field(default_factory=list)
    trail: dict[str, Any] = field(default_factory=dict)
    """Fields of the ninth message's `CycleRecord`."""
    prediction: PredictionRecord | None = None
    predicted: UtteranceRecord | None = None
    judgments: list[JudgmentRecord] = field(default_factory=list)
    ratings: list[RatingRecord] = field(default_factory=list)
    judged: bool = False
    """Every question about the two continuations has been asked."""

    def __post_init__(self) -> None:
        self.talk = Conversation(self.scene, Timeline(self.scene.group), None)

    @property
    def scenario(self) -> Scenario:
        assert isinstance(self.scene.task, Scenario)
        return self.scene.task

    def records(self) -> tuple[EventRecord, ...]:
        """The scripted messages, the last one with the cycle of self-selection."""
        return tuple(
            EventRecord(
                number=event.number,
                kind=event.kind,
                at_s=event.at_s,
                stage=0,
                who=event.who,
                text=event.text,
                cycle=CycleRecord(**self.trail) if event.number == N_MESSAGES else None,
            )
            for event in self.talk.timeline.events
        )


def run_duel(state: DuelState) -> Flow[None]:
    """Run a duel to its end."""
    yield from _play_script(state)
    yield from _self_select(state)
    yield from _predict(state)
    yield from _judge(state)
    state.judged = True


def _play_script(state: DuelState) -> Flow[None]:
    """Post the nine messages; with a warm-up, think after each but the last."""
    for message in state.scenario.messages:
        who = state.scene.group.participant(message.name) or LEARNER
        event = state.talk.timeline.add("message", stage=0, who=who, text=message.text)
        if state.scene.settings.warm_up and event.number < N_MESSAGES:
            thoughts = yield from thoughts_after(state.talk, event.number)
            state.warm_up.append(WarmUpRecord(event=event.number, thoughts=tuple(thoughts)))


def _self_select(state: DuelState) -> Flow[None]:
    talk, trail = state.talk, state.trail
    moment = talk.timeline.moment()
    trail |= {"speaker": moment.speaker, "addressed": moment.addressed}
    thoughts = yield from thoughts_after(talk, N_MESSAGES)
    trail["thoughts"] = tuple(thoughts)
    scored, selection = yield from self_selected_speaker(talk, N_MESSAGES, thoughts)
    trail["thoughts"] = tuple(scored)
    trail["steps"] = tuple(StepRecord(rule=rule, kept=kept) for rule, kept in selection.steps)
    trail["chosen"] = selection.chosen
    if selection.chosen is not None:
        [thought] = [one.thought for one in scored if one.agent == selection.chosen]
        trail["utterance"] = yield from utterance_of(talk, N_MESSAGES, selection.chosen, thought)


def _predict(state: DuelState) -> Flow[None]:
    state.prediction = yield from predicted_speaker(state.talk, N_MESSAGES)
    named = state.prediction.named
    if named is not None and named != LEARNER:
        state.predicted = yield from utterance_of(state.talk, N_MESSAGES, named, None)


def _judge(state: DuelState) -> Flow[None]:
    """Judge in both orders and rate each reply, all side by side."""
    scene = state.scene
    shown = {
        SELF_SELECT: _shown(scene, state.trail.get("utterance")),
        NEXT_SPEAKER: _shown(scene, state.predicted),
    }
    spoke = {SELF_SELECT: state.trail.get("utterance"), NEXT_SPEAKER: state.predicted}
    orders = ORDERS if any(_spoke(one) for one in spoke.values()) else {}
    rated = [
        (system, rater)
        for system, utterance in spoke.items()
        if _spoke(utterance)
        for rater in range(1, scene.raters + 1)
    ]
    verdicts = [
        state.talk.question(
            *(N_MESSAGES, "judge", order, read_verdict),
            system=scene.fill("judge_system"),
            members=scene.members,
            first=shown[first],
            second=shown[second],
        )
        for order, (first, second) in orders.items()
    ]
    ratings = [_rate(state, system, n, shown[system]) for system, n in rated]
    questions: list[Question[Any]] = [*verdicts, *ratings]
    answers = yield from ask(questions)
    judged = zip(orders.values(), answers[: len(verdicts)], strict=True)
    state.judgments += [_judgment(systems[0], answer) for systems, answer in judged]
    scored = zip(rated, answers[len(verdicts) :], strict=True)
    state.ratings += [_rating(system, rater, answer) for (system, rater), answer in scored]


def _rate(state: DuelState, system: str, rater: int, reply: str) -> Question[dict[str, int]]:
    """Ask a rater about one system's continuation."""
    scene, scenario, rubric = state.scene, state.scenario, state.scene.settings.rubric
    by_criteria = rubric == "criteria"
    more: dict[str, Any] = (
        {"solution": indented(scenario.solution), "members": scene.members}
        if by_criteria
        else {"reference": indented(scenario.reference)}
    )
    read = read_ratings(RATINGS if by_criteria else ("likeness",))
    return state.talk.question(
        *(N_MESSAGES, f"rate_{system}", f"rater_{rater}", read),
        system=scene.fill("rate_system"),
        template=f"rate_{rubric}",
        reminder="rate_reminder",
        reply=reply,
        **more,
    )


def _spoke(utterance: UtteranceRecord | None) -> bool:
    return utterance is not None and utterance.status != "missing"


def _shown(scene: GroupScene, utterance: UtteranceRecord | None) -> str:
    """A system's tenth message as judges and raters read it."""
    if utterance is None or not _spoke(utterance):
        return scene.fill("nobody")
    return f"{scene.group.shown(utterance.agent)}: {indented(utterance.text)}"


def _judgment(first: str, answer: Answer[Verdict]) -> JudgmentRecord:
    verdict = answer.value
    return JudgmentRecord(
        first=first,
        better=verdict.better if verdict else None,
        reason=verdict.reason if verdict else "",
        attempts=answer.attempts,
    )


def _rating(system: str, rater: int, answer: Answer[dict[str, int]]) -> RatingRecord:
    tenths = answer.value
    return RatingRecord(
        system=system,
        rater=f"rater_{rater}",
        scores=None if tenths is None else {name: value / 10 for name, value in tenths.items()},
        attempts=answer.attempts,
    )


def first_order_result(judgment: JudgmentRecord, system: str = SELF_SELECT) -> DuelResult | None:
    """What one asking says of a system; `None` where it could not be read."""
    if judgment.better is None:
        return None
    if judgment.better == "same":
        return "draw"
    return "win" if (judgment.better == "first") == (judgment.first == system) else "loss"


def duel_result(
    judgments: Sequence[JudgmentRecord], system: str = SELF_SELECT
) -> tuple[DuelResult | None, bool]:
    """The result over both orders, and whether it depended on the order.

    Both agree: that. One says `same`: the other. Opposite: a draw that depended on the order.
    Nobody spoke in either system, so nobody was asked: a draw.

    Returns result from the view of `system`, `None` where an asking could not be read; and whether
    the two orders said the opposite.
    """
    if not judgments:
        return "draw", False
    results = [first_order_result(judgment, system) for judgment in judgments]
    if None in results:
        return None, False
    decided = {result for result in results if result != "draw"}
    if len(decided) > 1:
        return "draw", True
    return (decided.pop() if decided else "draw"), False


# --- Episode -------------------------------------------------------------------------------------


def group_episode(scene: GroupScene) -> Flow[LessonRecord | DuelRecord]:
    """Run a lesson or a duel, whichever the task is of.

    Returns the record, with `status` `failed` when a call failed for good.
    """
    if isinstance(scene.task, Scenario):
        return (yield from duel_episode(scene))
    return (yield from lesson_episode(scene))


def lesson_episode(scene: GroupScene) -> Flow[LessonRecord]:
    """Run one lesson."""
    state, calls = LessonState(scene), CallLog()
    failure = yield from run_to_failure(run_lesson(state), calls)
    return _record(
        *(scene, LessonRecord, calls, failure),
        events=state.records(),
        ended_by=None if failure else state.ended_by,
        stage_reached=state.progress.stage,
        tasks_done=state.progress.done_ids(),
        progress=float(round(state.progress.share, 4)),
        codes=state.codes,
    )


def duel_episode(scene: GroupScene) -> Flow[DuelRecord]:
    """Run one duel."""
    state, calls = DuelState(scene), CallLog()
    failure = yield from run_to_failure(run_duel(state), calls)
    judgments, scenario = state.judgments, state.scenario
    result, dependent = duel_result(judgments) if state.judged else (None, False)
    return _record(
        *(scene, DuelRecord, calls, failure),
        events=state.records(),
        kind=scenario.kind,
        difficulty=scenario.difficulty,
        expected_speaker=scene.group.participant(scenario.expected.speaker) or "",
        warm_up=tuple(state.warm_up),
        prediction=state.prediction,
        predicted=state.predicted,
        judgments=tuple(judgments),
        result=result,
        order_dependent=dependent,
        first_order=first_order_result(judgments[0]) if judgments else result,
        ratings=tuple(state.ratings),
    )


def _record(
    scene: GroupScene, form: type[R], calls: CallLog, failure: Failure | None, **logged: Any
) -> R:
    group = {"agents": scene.group.agents, "learner_name": scene.group.learner_name}
    logged |= {**group, "problem": scene.task.problem}
    return scene.loaded.record(form, scene.spec, calls, failure, **logged)


# --- Usual replies -------------------------------------------------------------------------------

SENTENCE = "This stands for about eighteen words of the kind that learners write to one another. "


def usual_reply(call: Call, names: Sequence[str], *, longest: bool) -> str:
    """A reply of usual length.

    On the longest path everybody wants to speak and somebody does, to the learner, who is asked
    then; on the shortest nobody.

    `names`: the agents as prompts show them.
    """
    stage = call.key.stage
    if stage.startswith("rate_"):
        asked = re.findall(r'"(\w+)": 1\.0', call.request.user)
        return json.dumps(dict.fromkeys(asked, 7.0))
    match stage:
        case "manager":
            return json.dumps({"reason": SENTENCE, "signal": "continue", "completed": []})
        case "think":
            action = "speak" if longest else "listen"
            return json.dumps(
                {"stimuli": ["M1"], "thought": SENTENCE * 2, "action": action, "corrects": False}
            )
        case "evaluate":
            criteria = ("internal", "external") if '"internal"' in call.request.user else CRITERIA
            return json.dumps([{"agent": name} | dict.fromkeys(criteria, 4.0) for name in names])
        case "speak" | "speak_predicted":
            return json.dumps(
                {
                    "message": SENTENCE * 2,
                    "to": ["learner" if longest else "all"],
                    "continues": longest,
                }
            )
        case "predict":
            return names[0] if longest else "learner"
        case "learner":
            return json.dumps({"action": "wait", "message": ""})
        case "judge":
            return f"BETTER: same\n{SENTENCE}"
        case _:
            return "CATEGORY: 6"


# --- Study ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class GroupStudy(LoadedStudy):
    """A group's study with everything that it names."""

    study: Study
    catalog: GroupCatalog
    stored: GroupCatalog | None = None

    paths: ClassVar[tuple[str, str]] = (
        "nobody ever wants to speak",
        "somebody speaks in every cycle, and every list is filled",
    )

    def episode(self, spec: EpisodeSpec) -> Flow[EpisodeLine]:
        return (yield from group_episode(GroupScene(self, spec)))

    def asked_again(self, spec: EpisodeSpec, record: EpisodeLine) -> Iterator[AskedTogether[Any]]:
        """The evaluations of thoughts, from which the next speaker follows."""
        assert isinstance(record, GroupRecord)
        yield from evaluations_again(GroupScene(self, spec), record)

    def alike(self, spec: EpisodeSpec) -> Hashable:
        """A person takes part in some; a scenario has as many calls as its speakers ask for."""
        scenario = spec.task.task_id if isinstance(spec.task, Scenario) else ""
        return (spec.variant == PERSON, spec.condition, scenario)

    def usual_reply(self, spec: EpisodeSpec, call: Call, *, longest: bool) -> str:
        shown = Group(self.study.group.agents, "").shown
        names = [shown(agent) for agent in self.study.group.agents]
        return usual_reply(call, names, longest=longest)

    def model_of(self, agent: str, stage: str) -> str:
        models = self.study.models
        if stage.startswith("rate_"):
            return models.raters[int(agent.removeprefix("rater_")) - 1]
        if stage in ("judge", "code"):
            return models.judge
        return models.learner if stage == LEARNER else models.agent

    def model_names(self) -> tuple[str, ...]:
        models = self.study.models
        return (models.agent, models.learner, models.judge, *models.raters)

    def with_person(self) -> Iterator[EpisodeSpec]:
        return (spec for spec in self.grid() if spec.variant == PERSON)

    def cells(self) -> Iterator[tuple[str, Task, str, str]]:
        """Lessons by learner and condition; a scenario is one duel of both conditions."""
        most, persons = self.study.group.person_lessons, 0
        lessons = self.tasks.get("lesson", ())
        for cell in product(("lesson",), lessons, self.study.learners, self.study.conditions):
            persons += cell[2] == PERSON
            if cell[2] != PERSON or most is None or persons <= most:
                yield cell
        yield from (("scenario", task, "none", DUEL) for task in self.tasks.get("scenario", ()))

    def used(self) -> WordingNames:
        """All prompts that the settings leave in use; roles and learners that the study names."""
        unused = set() if self.study.ask_cut_off_again else {CUT_OFF_REMINDER}
        return {
            "prompts": frozenset(self.catalog.prompts) - unused,
            "roles": frozenset(self.study.group.agents),
            "learners": frozenset(set(self.study.learners) - {PERSON}),
        }

    def check(self, path: Path) -> None:
        study, catalog = self.study, self.catalog
        wanted = [("group.agents", "roles", name) for name in study.group.agents]
        wanted += [("learners", "learners", name) for name in study.learners if name != PERSON]
        for setting, part, name in wanted:
            known = tuple(getattr(catalog, part))
            if name not in known:
                raise StudyError(
                    f"{path}: {setting}: the catalog has no {name!r}.",
                    why=nearest(name, known),
                    hint=f"Own ones are defined under [catalog.{part}.{name}].",
                )
        self._check_names(path)
        self._check_speakers(path)
        self._check_idle(path)

    def _check_idle(self, path: Path) -> None:
        """A setting that the selection would not look at must be as it always is."""
        group, usual = self.study.group, GroupSettings()
        changed = group.interrupt_threshold != usual.interrupt_threshold
        if changed and group.selection == "inner_thoughts":
            raise StudyError(
                f"{path}: group.interrupt_threshold does nothing under {group.selection!r}.",
                why="That selection knows no interruption; only the lesson study's own has one.",
                hint='Leave it out, or write selection = "prism".',
            )

    def _check_names(self, path: Path) -> None:
        """A learner must not be called as an agent is."""
        agents = {agent.casefold() for agent in self.study.group.agents}
        for name in set(self.study.learners) - {PERSON}:
            if self.catalog.learners[name].name.casefold() in agents:
                raise StudyError(
                    f"{path}: catalog.learners.{name}: its name is that of an agent, "
                    f"{self.catalog.learners[name].name!r}.",
                    why="Messages could not be told apart.",
                    hint="Give the learner another name.",
                )

    def _check_speakers(self, path: Path) -> None:
        group = Group(self.study.group.agents, self.study.group.person_name)
        for task in self.tasks.get("scenario", ()):
            assert isinstance(task, Scenario)
            strangers = sorted(name for name in task.speakers if group.participant(name) is None)
            if strangers:
                raise TaskFileError(
                    f"{path}: scenario {task.id!r} has the speaker {strangers[0]!r}.",
                    why=f"The group is {', '.join(group.agents)} and the learner.",
                    hint="Name an agent of [group] agents, or `learner`.",
                )
