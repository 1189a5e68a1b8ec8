"""The stage manager's state: which stage a lesson is in, and which tasks are done.

A task once done stays done, and a lesson moves on by exactly one stage, only when the manager
signals it and every task of the stage is done. No reply can break either rule.
"""

from collections.abc import Sequence
from fractions import Fraction
from typing import Final, Literal, NamedTuple, get_args

from tutorsim.systems.group.tasks import Checklist, StageTask

__all__ = ["SIGNALS", "Progress", "Ruling", "Signal"]

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
