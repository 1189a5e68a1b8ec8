"""One lesson: events, the cycles that they set off, and the end.

A pure generator over the kernel's effects. Every event but a later stage and the end starts a
cycle; a cycle ends with the next such event. A lesson with a person listens at two places: before a
cycle, and when an utterance is ready.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from pydantic import TypeAdapter

from tutorsim.kernel.flow_drivers_and_call_log import Flow, Listen, PersonInput
from tutorsim.kernel.scene_asks_votes_and_blind_labels import ask
from tutorsim.model import Question
from tutorsim.records.group import (
    CodeRecord,
    CycleRecord,
    EventRecord,
    HeardRecord,
    LearnerRecord,
    LessonEnd,
    ManagerRecord,
    StepRecord,
    UtteranceRecord,
)
from tutorsim.systems.group.lesson_events_stage_progress_and_prompts import (
    LEARNER,
    Conversation,
    Event,
    GroupScene,
    Progress,
    Timeline,
)
from tutorsim.systems.group.lesson_problem_and_duel_scenario_files import Lesson
from tutorsim.systems.group.settings import PERSON
from tutorsim.systems.group.speaking_cycle_and_reply_reading import (
    Contribution,
    predicted_speaker,
    read_category,
    read_contribution,
    read_ruling,
    self_selected_speaker,
    thoughts_after,
    utterance_of,
)

SELF_SELECT: Final = "self_select"
NEXT_SPEAKER: Final = "next_speaker"
CODERS: Final = ("coder_1", "coder_2")
_EVENTS: Final = TypeAdapter(tuple[EventRecord, ...])
_CODES: Final = TypeAdapter(tuple[CodeRecord, ...])


@dataclass(frozen=True)
class Board:
    """What the person's page may show when the flow listens, and once the lesson has ended."""

    events: tuple[Event, ...]
    progress: Progress
    cycles: dict[int, CycleRecord]
    """Thoughts and scores by event; empty while the study keeps them from the person."""
    ended: bool
    """Nothing more is said; the messages may still be coded."""


@dataclass
class LessonState:
    """What a lesson has reached; grows as the generator runs."""

    scene: GroupScene
    talk: Conversation = field(init=False)
    cycles: dict[int, dict[str, Any]] = field(default_factory=dict)
    """Event → fields of its `CycleRecord`."""
    ended_by: LessonEnd | None = None
    codes: tuple[CodeRecord, ...] = ()
    withdrawn: bool = False
    """The last utterance that was ready was dropped for what the person wrote."""

    def __post_init__(self) -> None:
        task = self.scene.task
        assert isinstance(task, Lesson)
        timeline = Timeline(self.scene.group)
        self.talk = Conversation(self.scene, timeline, Progress(task.stages))

    @property
    def timeline(self) -> Timeline:
        return self.talk.timeline

    @property
    def progress(self) -> Progress:
        assert self.talk.progress is not None
        return self.talk.progress

    @property
    def with_person(self) -> bool:
        return self.scene.spec.variant == PERSON

    def board(self) -> Board:
        """What the page may show now."""
        ended = self.ended_by is not None
        when = self.scene.settings.show_thoughts
        shown = self.cycles if when == "during" or (when == "after" and ended) else {}
        cycles = {number: CycleRecord(**made) for number, made in shown.items()}
        return Board(tuple(self.timeline.events), self.progress, cycles, ended)

    def records(self) -> tuple[EventRecord, ...]:
        """The events with their cycles, all checked at once."""
        cycles = self.cycles.get
        events = [{**vars(event), "cycle": cycles(event.number)} for event in self.timeline.events]
        return _EVENTS.validate_python(events)


def run_lesson(state: LessonState) -> Flow[None]:
    """Run a lesson to its end, then code its messages."""
    event: Event | None = state.timeline.add("stage", stage=1, text=_stage_name(state))
    while event is not None:
        event = yield from _cycle(state, event)
    state.timeline.add("end", stage=state.progress.stage, text=state.ended_by or "")
    yield from _code(state)


def _stage_name(state: LessonState) -> str:
    progress = state.progress
    return progress.stages[progress.stage - 1].name


def _cycle(state: LessonState, event: Event) -> Flow[Event | None]:
    """One cycle; returns the event that starts the next one, or `None` at the end."""
    trail = state.cycles.setdefault(event.number, {})
    if state.with_person and event.kind != "silence":
        pause = 0 if event.who == LEARNER else state.scene.settings.pause_s
        heard = yield from _listen(state, event, "wait", pause)
        if heard.ended or heard.text is not None:
            return _person_spoke(state, heard)
    if event.kind == "message":
        yield from _manage(state, event, trail)
        if state.progress.finished:
            return _end(state, "tasks_done")
    if not state.with_person and _learner_is_due(state, event):
        said = yield from _ask_learner(state, event, trail)
        if said.action == "write":
            return _post(state, LEARNER, said.text)
    utterance = yield from _speaker(state, event, trail)
    return (yield from _next_event(state, event, utterance, trail))


def _next_event(
    state: LessonState, event: Event, utterance: UtteranceRecord | None, trail: dict[str, Any]
) -> Flow[Event | None]:
    """Post the utterance or a silence, unless the person comes first.

    Of two utterances in a row that were ready too late the second is posted, under `once`; what
    the person wrote meanwhile is heard before the next cycle.
    """
    settings = state.scene.settings
    if utterance is not None:
        if state.with_person and state.withdrawn and settings.withdraw == "once":
            kept = StepRecord(rule="after_withdrawal", kept=(utterance.agent,))
            trail["steps"] = (*trail.get("steps", ()), kept)
        elif state.with_person:
            heard = yield from _listen(state, event, "before_posting", 0)
            if heard.ended or heard.text is not None:
                trail["withdrawn"] = state.withdrawn = True
                return _person_spoke(state, heard)
        state.withdrawn = False
        return _post(
            state, utterance.agent, utterance.text, to=utterance.to, continues=utterance.continues
        )
    if state.with_person:
        waits_on = state.timeline.silences() >= settings.max_silences
        heard = yield from _listen(state, event, "wait", None if waits_on else settings.silence_s)
        if heard.ended or heard.text is not None:
            return _person_spoke(state, heard)
    silence = state.timeline.add("silence", stage=state.progress.stage)
    if not state.with_person and state.timeline.silences() >= settings.max_silences:
        return _end(state, "silences")
    return _unless_full(state, silence)


def _post(
    state: LessonState, who: str, text: str, *, to: Sequence[str] = (), continues: bool = False
) -> Event | None:
    stage = state.progress.stage
    event = state.timeline.add(
        "message", stage=stage, who=who, text=text, to=to, continues=continues
    )
    return _unless_full(state, event)


def _unless_full(state: LessonState, event: Event) -> Event | None:
    full = len(state.timeline.events) >= state.scene.settings.max_events
    return _end(state, "max_events") if full else event


def _end(state: LessonState, why: LessonEnd) -> Event | None:
    """Note why the lesson ends; no event starts another cycle."""
    state.ended_by = why
    return None


# --- The person ---------------------------------------------------------------------------------


def _listen(
    state: LessonState, event: Event, place: str, wait_s: float | None
) -> Flow[PersonInput]:
    sent = yield Listen(event.number, place, wait_s, shown=state.board())
    assert isinstance(sent, PersonInput)
    record = HeardRecord(
        place=place, wait_s=wait_s, text=sent.text, waited_ms=sent.waited_ms, ended=sent.ended
    )
    trail = state.cycles[event.number]
    trail["heard"] = (*trail.get("heard", ()), record)
    return sent


def _person_spoke(state: LessonState, heard: PersonInput) -> Event | None:
    """Post what the person wrote, or end the lesson that the person left."""
    if heard.text is None:
        return _end(state, "person")
    following = _post(state, LEARNER, heard.text)
    return _end(state, "person") if heard.ended else following


# --- Manager and learner ------------------------------------------------------------------------


def _manage(state: LessonState, event: Event, trail: dict[str, Any]) -> Flow[None]:
    """Let the stage manager rule, and move the stages on."""
    question = state.talk.question(
        *(event.number, "manager", "manager", read_ruling),
        system=state.scene.text("manager_system"),
    )
    [answer] = yield from ask([question])
    before, ruling = state.progress, answer.value
    unknown: tuple[str, ...] = ()
    if ruling is not None:
        state.talk.progress, unknown = before.after(ruling)
    trail["manager"] = ManagerRecord(
        status=answer.status,
        reason=ruling.reason if ruling else "",
        signal=ruling.signal if ruling else "",
        completed=ruling.completed if ruling else (),
        unknown=unknown,
        stage_after=state.progress.stage,
        done_after=state.progress.done_ids(),
        attempts=answer.attempts,
    )
    if state.progress.stage != before.stage:
        state.timeline.add("stage", stage=state.progress.stage, text=_stage_name(state))


def _learner_is_due(state: LessonState, event: Event) -> bool:
    """The simulated learner is asked when addressed, long quiet, or after a silence."""
    timeline = state.timeline
    last = timeline.last_message
    if last is not None and last.who == LEARNER and event.kind != "silence":
        return False
    addressed = event.kind == "message" and LEARNER in timeline.moment().addressed
    patient = timeline.silent(LEARNER) < state.scene.settings.learner_patience
    return addressed or not patient or event.kind == "silence"


def _ask_learner(state: LessonState, event: Event, trail: dict[str, Any]) -> Flow[Contribution]:
    question = state.talk.question(
        *(event.number, "learner", LEARNER, read_contribution),
        system=state.scene.learner_system,
        name=state.scene.group.learner_name,
    )
    [answer] = yield from ask([question])
    said = answer.value or Contribution("wait", "")
    trail["learner"] = LearnerRecord(
        status=answer.status, action=said.action, attempts=answer.attempts
    )
    return said


# --- Who speaks ---------------------------------------------------------------------------------


def _speaker(
    state: LessonState, event: Event, trail: dict[str, Any]
) -> Flow[UtteranceRecord | None]:
    """The utterance that the condition brings about; `None` where nobody speaks."""
    moment = state.timeline.moment()
    trail |= {"speaker": moment.speaker, "floor": moment.continues, "addressed": moment.addressed}
    agent, thought = yield from _chosen(state, event, trail)
    trail["chosen"] = agent
    if agent is None:
        return None
    utterance = yield from utterance_of(state.talk, event.number, agent, thought)
    trail["utterance"] = utterance
    return None if utterance.status == "missing" else utterance


def _chosen(
    state: LessonState, event: Event, trail: dict[str, Any]
) -> Flow[tuple[str | None, str | None]]:
    """Who is to speak, and the thought to say; a predicted agent has none."""
    talk = state.talk
    if state.scene.spec.condition == NEXT_SPEAKER:
        prediction = yield from predicted_speaker(talk, event.number)
        trail["prediction"] = prediction
        return (None if prediction.named == LEARNER else prediction.named), None
    thoughts = yield from thoughts_after(talk, event.number)
    trail["thoughts"] = tuple(thoughts)
    scored, selection = yield from self_selected_speaker(talk, event.number, thoughts)
    trail["thoughts"] = tuple(scored)
    trail["steps"] = tuple(StepRecord(rule=rule, kept=kept) for rule, kept in selection.steps)
    by_agent = {thought.agent: thought.thought for thought in scored}
    return selection.chosen, by_agent.get(selection.chosen or "")


# --- Coding -------------------------------------------------------------------------------------


def _code(state: LessonState) -> Flow[None]:
    """Have every message coded by each coder, side by side."""
    messages = state.timeline.messages
    asked = [
        (coder, i)
        for coder in CODERS[: state.scene.settings.ipa_codings]
        for i in range(len(messages))
    ]
    answers = yield from ask(
        [_code_question(state, coder, i) for coder, i in asked],
        shown=state.board() if state.with_person else None,
    )
    state.codes = _CODES.validate_python(
        [
            {
                "event": messages[i].number,
                "coder": coder,
                "category": answer.value,
                "attempts": answer.attempts,
            }
            for (coder, i), answer in zip(asked, answers, strict=True)
        ]
    )


def _code_question(state: LessonState, coder: str, before: int) -> Question[int]:
    """Ask a coder about the message that has so many before it."""
    scene, talk = state.scene, state.talk
    user = scene.fill(
        "code", messages=talk.shown_messages("code", before), message=talk.lines[before]
    )
    return scene.asking(
        *(talk.timeline.messages[before].number, "code", coder, read_category),
        system=scene.text("code_system"),
        user=user,
        reminder="code_reminder",
    )
