"""A lesson's events and what they say, and the scene about which its agents are asked."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Final, Literal, NamedTuple, TypeVar, get_args

from tutorsim.kernel.scene_asks_votes_and_blind_labels import Scene, indented, nothing
from tutorsim.kernel.study_file_and_episode_spec import EpisodeSpec
from tutorsim.kernel.system_and_loaded_study import LoadedStudy
from tutorsim.model import Question
from tutorsim.records.group import EventKind
from tutorsim.systems.group.lesson_problem_and_duel_scenario_files import (
    Checklist,
    Lesson,
    Scenario,
    StageTask,
)
from tutorsim.systems.group.settings import GroupCatalog, Study
from tutorsim.systems.group.speaker_selection_and_its_reasons import Moment

# --- Timeline ------------------------------------------------------------------------------------

LEARNER: Final = "learner"
"""How logs and rules name the learner, whatever it is called in the chat."""
MESSAGE_S: Final = 8
SILENCE_S: Final = 10
_TAKES: Final = {"message": MESSAGE_S, "silence": SILENCE_S}


@dataclass(frozen=True)
class Event:
    """One entry of the list."""

    number: int
    kind: EventKind
    at_s: int
    stage: int
    who: str | None = None
    text: str = ""
    to: tuple[str, ...] = ()
    continues: bool = False


@dataclass(frozen=True)
class Group:
    """Who takes part."""

    agents: tuple[str, ...]
    learner_name: str

    def shown(self, who: str) -> str:
        """The name in the chat."""
        return self.learner_name if who == LEARNER else _titled(who)

    def participant(self, name: str) -> str | None:
        """Whom a name means, its letter case ignored; `None` for a stranger."""
        return _names(self.agents, self.learner_name).get(name.strip().casefold())

    def named_in(self, text: str) -> set[str]:
        """Participants whose names stand in a text as whole words."""
        names, folded = _names(self.agents, self.learner_name), text.casefold()
        if not any(name in folded for name in names):
            return set()
        words = _pattern(self.agents, self.learner_name).findall(text)
        return {names[word] for word in map(str.casefold, words) if word in names}


@lru_cache(maxsize=64)
def _titled(agent: str) -> str:
    return agent.replace("_", " ").title()


@lru_cache(maxsize=64)
def _names(agents: tuple[str, ...], learner: str) -> dict[str, str]:
    names = {LEARNER: LEARNER, learner.casefold(): LEARNER}
    for agent in agents:
        names |= {agent.casefold(): agent, agent.replace("_", " ").casefold(): agent}
    return names


@lru_cache(maxsize=64)
def _pattern(agents: tuple[str, ...], learner: str) -> re.Pattern[str]:
    names = [name for name in _names(agents, learner) if name != LEARNER]
    inner = "|".join(re.escape(name) for name in sorted(names, key=len, reverse=True))
    return re.compile(rf"(?<!\w)(?:{inner})(?!\w)", re.IGNORECASE)


_NOBODY: Final = Moment(None)
"""The moment before the first message."""


@dataclass
class Timeline:
    """What happened so far; grows as a lesson runs."""

    group: Group
    events: list[Event] = field(default_factory=list)
    messages: list[Event] = field(default_factory=list)
    """The events that are messages."""
    _wrote: dict[str | None, int] = field(default_factory=dict)
    """Participant → how many messages there were after its last one."""
    _moment: Moment = _NOBODY

    def add(
        self,
        kind: EventKind,
        *,
        stage: int,
        who: str | None = None,
        text: str = "",
        to: Iterable[str] = (),
        continues: bool = False,
    ) -> Event:
        """Append an event; its time follows from what came before."""
        before = self.events[-1] if self.events else None
        at = (before.at_s if before else 0) + _TAKES.get(kind, 0)
        event = Event(len(self.events) + 1, kind, at, stage, who, text, tuple(to), continues)
        self.events.append(event)
        if kind == "message":
            self.messages.append(event)
            self._wrote[who] = len(self.messages)
            self._moment = self._after(event)
        return event

    @property
    def last_message(self) -> Event | None:
        return self.messages[-1] if self.messages else None

    def silences(self) -> int:
        """Silences in a row at the end of the list."""
        count = 0
        for event in reversed(self.events):
            if event.kind == "message":
                break
            count += event.kind == "silence"
        return count

    def silent(self, who: str) -> int:
        """Messages since a participant last wrote; since the start if it never did."""
        return len(self.messages) - self._wrote.get(who, 0)

    def moment(self) -> Moment:
        """The last message, as the selection sees it."""
        return self._moment

    def _after(self, message: Event) -> Moment:
        named = (self.group.named_in(message.text) | set(message.to)) - {message.who}
        order = (*self.group.agents, LEARNER)
        addressed = tuple(name for name in order if name in named)
        return Moment(message.who, message.continues, addressed)


# --- Stage progress ------------------------------------------------------------------------------

Signal = Literal["start", "continue", "close", "next"]
"""What the stage manager says of the current stage."""
SIGNALS: Final[tuple[Signal, ...]] = get_args(Signal)


class Ruling(NamedTuple):
    """A stage manager's reply."""

    reason: str
    signal: Signal
    completed: tuple[str, ...]
    """Ids of tasks that it takes as done, as it wrote them."""


class Progress(NamedTuple):
    """How far a lesson is."""

    stages: Checklist
    stage: int = 1
    """Number of the stage, from 1."""
    done: frozenset[str] = frozenset()
    """Ids of completed tasks."""

    def after(self, ruling: Ruling) -> tuple["Progress", tuple[str, ...]]:
        """The state after a ruling, and the ids in it that no task has."""
        ids = {task.id for stage in self.stages for task in stage.tasks}
        done = self.done | (ids & set(ruling.completed))
        unknown = tuple(name for name in ruling.completed if name not in ids)
        moved = self._replace(done=done)
        if ruling.signal == "next" and moved.stage_done and not moved.is_last:
            moved = moved._replace(stage=self.stage + 1)
        return moved, unknown

    @property
    def is_last(self) -> bool:
        return self.stage == len(self.stages)

    @property
    def stage_done(self) -> bool:
        """Whether every task of the current stage is done."""
        return all(task.id in self.done for task in self.stages[self.stage - 1].tasks)

    @property
    def finished(self) -> bool:
        """Whether all tasks of the last stage are done, and the lesson is in it."""
        return self.is_last and self.stage_done

    @property
    def share(self) -> Fraction:
        """Progress from 0 to 1: an equal share for each stage, within it by tasks done."""
        shares = [self._share_of(number) for number in range(1, len(self.stages) + 1)]
        return sum(shares, Fraction(0)) / len(shares)

    def _share_of(self, number: int) -> Fraction:
        """The share of a stage's tasks that is done."""
        tasks = self.stages[number - 1].tasks
        return Fraction(sum(task.id in self.done for task in tasks), len(tasks))

    def done_ids(self) -> tuple[str, ...]:
        """Completed tasks in the order of the lesson."""
        return tuple(task.id for task in self._tasks() if task.id in self.done)

    def _tasks(self) -> Sequence[StageTask]:
        return [task for stage in self.stages for task in stage.tasks]


# --- Scene ---------------------------------------------------------------------------------------

CONTEXT: Final[Mapping[str, int]] = {"manager": 100, "think": 50, "code": 10}
"""Template → how many of the last messages it shows; 15 where it is not named."""
_SEES: Final = 15
OWN_THOUGHTS: Final = 5
"""How many of its own thoughts an agent sees."""

T = TypeVar("T")


class GroupScene(Scene):
    """One episode's constants."""

    def __init__(self, loaded: LoadedStudy, spec: EpisodeSpec) -> None:
        study, catalog, task = loaded.study, loaded.catalog, spec.task
        assert isinstance(study, Study)
        assert isinstance(catalog, GroupCatalog)
        assert isinstance(task, Lesson | Scenario)
        self.spec, self.settings, self.task = spec, study.group, task
        super().__init__(catalog, loaded.call)
        self.loaded = loaded
        self.catalog = catalog
        self.rule = study.group.rule()
        self.raters = len(study.models.raters)
        learner = catalog.learners.get(spec.variant)
        name = learner.name if learner else study.group.person_name
        self.group = Group(study.group.agents, name)

    @cached_property
    def members(self) -> str:
        """The agents, each with its role and goal."""
        roles = self.catalog.roles
        return "\n".join(
            f"{self.group.shown(who)}: {roles[who].title}; {roles[who].goal}"
            for who in self.group.agents
        )

    @cached_property
    def peers(self) -> dict[str, str]:
        """Agent → its system text."""
        return {agent: self._peer_text(agent) for agent in self.group.agents}

    @cached_property
    def learner_system(self) -> str:
        """The system text of the simulated learner."""
        return self.fill(
            "learner_system",
            name=self.group.learner_name,
            character=self.catalog.learners[self.spec.variant].character,
            language=self.settings.language,
        )

    def _peer_text(self, agent: str) -> str:
        role, group = self.catalog.roles[agent], self.group
        others = [
            f"{group.shown(who)} ({self.catalog.roles[who].title})"
            for who in group.agents
            if who != agent
        ]
        tasks = [
            self.catalog.part("task_of_role", number=number, text=task.text, expected=task.expected)
            for number, task in enumerate(role.tasks, start=1)
        ]
        learner = self.catalog.part("learner_among_others", name=group.learner_name)
        return self.fill(
            "peer_system",
            name=group.shown(agent),
            title=role.title,
            others=", ".join([*others, learner]),
            goal=role.goal,
            expertise=role.expertise,
            style=role.style,
            interests=role.interests,
            tasks="\n".join(tasks),
            language=self.settings.language,
        )


@dataclass
class Conversation:
    """An episode's timeline, stages and memories, as the flow goes, and how its agents are asked.

    A flow asks `yield from ask([talk.question(turn, "think", agent, read_thought, system=…)])`.
    """

    scene: GroupScene
    timeline: Timeline
    progress: Progress | None
    """`None` in a duel, which has no stages."""
    held: dict[str, list[str]] = field(default_factory=dict)
    """Agent → its own thoughts, which no other agent sees, as prompts show them: as T and the
    number of the event that set it off."""

    def question(
        self,
        turn: int,
        stage: str,
        agent: str,
        read: Callable[[str], T | None],
        *,
        system: str,
        template: str = "",
        reminder: str = "",
        salvage: Callable[[str], T | None] = nothing,
        **values: str,
    ) -> Question[T]:
        """Ask an agent about the conversation so far.

        `turn`: the event that the question follows. `template`: what is asked; the one named as the
        stage when left out. `reminder`: what a second asking adds; that of the stage when left out.
        `salvage`: reads what can be read of the second reply when `read` cannot. `values`: what the
        template shows beside problem, progress and messages.
        """
        name = template or stage
        user = self.scene.wordings.fill(
            name,
            problem=self._problem,
            progress=self._shown_progress(),
            messages=self.shown_messages(name, len(self.timeline.messages)),
            **values,
        )
        return self.scene.asking(
            *(turn, stage, agent, read),
            system=system,
            user=user,
            reminder=reminder or f"{stage}_reminder",
            salvage=salvage,
        )

    @cached_property
    def _problem(self) -> str:
        return indented(self.scene.task.problem)

    def _shown_progress(self) -> str:
        progress = self.progress
        if progress is None:
            return self.scene.fill("progress_none")
        state = (progress.stage, progress.done)
        if state not in self._progress_shown:
            self._progress_shown[state] = self._checklist(progress)
        return self._progress_shown[state]

    @cached_property
    def _progress_shown(self) -> dict[tuple[int, frozenset[str]], str]:
        """Stage and completed tasks → how prompts show them."""
        return {}

    def _checklist(self, progress: Progress) -> str:
        stage = progress.stages[progress.stage - 1]
        marks = [
            f"[{'x' if task.id in progress.done else ' '}] {task.id} {indented(task.text)}"
            for task in stage.tasks
        ]
        return self.scene.fill(
            "progress",
            number=progress.stage,
            total=len(progress.stages),
            name=indented(stage.name),
            goals=indented(stage.goals),
            marks="\n".join(marks),
        )

    def shown_messages(self, template: str, count: int) -> str:
        """The last of the first `count` messages, as many as a template shows."""
        window = CONTEXT.get(template, _SEES), count
        if window not in self._windows:
            lines = self.lines[max(0, count - window[0]) : count]
            self._windows[window] = "\n".join(lines) or self.scene.fill("messages_none")
        return self._windows[window]

    @cached_property
    def _windows(self) -> dict[tuple[int, int], str]:
        """How many messages are shown, and of how many: the conversation only grows."""
        return {}

    @property
    def lines(self) -> list[str]:
        """The messages as prompts show them: later lines are indented, so none can pass for one."""
        for message in self.timeline.messages[len(self._lines) :]:
            who = self.scene.group.shown(message.who or "")
            self._lines.append(f"M{message.number} {who}: {indented(message.text)}")
        return self._lines

    @cached_property
    def _lines(self) -> list[str]:
        """Lines of the messages that a prompt has shown so far."""
        return []
