"""The scene of a lesson or a duel, and the conversation in it, about which its agents are asked."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final, TypeVar

from tutorsim.kernel.scene import Scene, indented, nothing
from tutorsim.kernel.study import EpisodeSpec
from tutorsim.kernel.system import LoadedStudy
from tutorsim.model import Question
from tutorsim.systems.group.settings import GroupCatalog, Study
from tutorsim.systems.group.tasks import Lesson, Scenario
from tutorsim.systems.group.timeline import Event, Group, Progress, Timeline

CONTEXT: Final[Mapping[str, int]] = {"manager": 100, "think": 50, "code": 10}
"""Template → how many of the last messages it shows; 15 where it is not named."""
_SEES: Final = 15

T = TypeVar("T")


@dataclass(frozen=True)
class HeldThought:
    """A thought that its agent remembers."""

    event: int
    """The event that set it off; the agent knows the thought as T and this number."""
    text: str


class GroupScene(Scene):
    """One episode's constants.

    Args:
        loaded: The study.
        spec: The episode's place in its grid.
    """

    def __init__(self, loaded: LoadedStudy, spec: EpisodeSpec) -> None:
        study, catalog, task = loaded.study, loaded.catalog, spec.task
        assert isinstance(study, Study)
        assert isinstance(catalog, GroupCatalog)
        assert isinstance(task, Lesson | Scenario)
        self.spec, self.settings, self.task = spec, study.group, task
        super().__init__(catalog, loaded.call)
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
    held: dict[str, list[HeldThought]] = field(default_factory=dict)
    """Agent → its own thoughts, which no other agent sees."""

    @property
    def said(self) -> list[Event]:
        return self.timeline.messages

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

        Args:
            turn: The event that the question follows.
            stage: Of the call key.
            agent: Of the call key.
            read: Reads the reply.
            system: The whole system text.
            template: What is asked; the one named as the stage when left out.
            reminder: What a second asking adds; that of the stage when left out.
            salvage: Reads what can be read of the second reply when `read` cannot.
            **values: What the template shows beside problem, progress and messages.
        """
        name = template or stage
        user = self.scene.wordings.fill(
            name,
            problem=self._problem,
            progress=self._shown_progress(),
            messages=self.shown_messages(name, self.said),
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

    def shown_messages(self, template: str, said: Sequence[Event]) -> str:
        """As many of the last messages as a template shows."""
        window = CONTEXT.get(template, _SEES), len(said)
        if window not in self._windows:
            lines = [self.shown_message(message) for message in said[-window[0] :]]
            self._windows[window] = "\n".join(lines) or self.scene.fill("messages_none")
        return self._windows[window]

    @cached_property
    def _windows(self) -> dict[tuple[int, int], str]:
        """How many messages are shown, and of how many: the conversation only grows."""
        return {}

    def shown_message(self, message: Event) -> str:
        """A message as prompts show it; its later lines are indented, so none can pass for one."""
        said = (message.number, message.who, message.text)
        found = self._lines.get(said)
        if found is None:
            who = self.scene.group.shown(message.who or "")
            found = self._lines[said] = f"M{message.number} {who}: {indented(message.text)}"
        return found

    @cached_property
    def _lines(self) -> dict[tuple[int, str | None, str], str]:
        """Number, speaker and text of a message → how prompts show it.

        Most prompts hold the same messages as the one before.
        """
        return {}
