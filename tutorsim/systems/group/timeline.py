"""A lesson's events, and what they say: who spoke when, and how far the stages have come."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from typing import Final, Literal, NamedTuple, get_args

from tutorsim.records.group import EventKind
from tutorsim.systems.group.speaker_selection import Moment
from tutorsim.systems.group.tasks import Checklist, StageTask

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
        return self.learner_name if who == LEARNER else who.replace("_", " ").title()

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
"""Before the first message."""


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
    """From 1."""
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
        """Of the tasks of a stage, the share that is done."""
        tasks = self.stages[number - 1].tasks
        return Fraction(sum(task.id in self.done for task in tasks), len(tasks))

    def done_ids(self) -> tuple[str, ...]:
        """Completed tasks in the order of the lesson."""
        return tuple(task.id for task in self._tasks() if task.id in self.done)

    def _tasks(self) -> Sequence[StageTask]:
        return [task for stage in self.stages for task in stage.tasks]
