"""What each call of a group asks, and how its reply is read."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Final

from tutorsim.kernel.scene import indented
from tutorsim.kernel.study import EpisodeSpec
from tutorsim.model import Call, Question
from tutorsim.systems.group import reply_reading
from tutorsim.systems.group.speaker_selection import CRITERIA, Rule
from tutorsim.systems.group.study import GroupCatalog, GroupSettings
from tutorsim.systems.group.tasks import Lesson, Scenario
from tutorsim.systems.group.timeline import LEARNER, Event, Group, Progress, Ruling

if TYPE_CHECKING:
    from tutorsim.systems.group.study import GroupStudy


CONTEXT: Final[Mapping[str, int]] = {"manager": 100, "think": 50, "code": 10}
"""Stage → how many of the last messages it sees; 15 where it is not named."""
_SEES: Final = 15
_OWN_THOUGHTS: Final = 5


@dataclass(frozen=True)
class HeldThought:
    """A thought that its agent remembers."""

    event: int
    """The event that set it off; the agent knows the thought as T and this number."""
    text: str


@dataclass(frozen=True)
class GroupScene:
    """One episode's constants, and the questions that it asks."""

    loaded: "GroupStudy"
    spec: EpisodeSpec

    @cached_property
    def settings(self) -> GroupSettings:
        return self.loaded.study.group

    @cached_property
    def catalog(self) -> GroupCatalog:
        return self.loaded.catalog

    @cached_property
    def rule(self) -> Rule:
        """How the next speaker is selected."""
        return self.settings.rule()

    @property
    def raters(self) -> int:
        """How many rate each reply of a duel."""
        return len(self.loaded.study.models.raters)

    @cached_property
    def task(self) -> Lesson | Scenario:
        task = self.spec.task
        assert isinstance(task, Lesson | Scenario)
        return task

    @cached_property
    def group(self) -> Group:
        learner = self.catalog.learners.get(self.spec.variant)
        name = learner.name if learner else self.settings.person_name
        return Group(self.settings.agents, name)

    # --- Lessons ----------------------------------------------------------------------------

    def manager(self, turn: int, progress: Progress, said: Sequence[Event]) -> Question[Ruling]:
        """The stage manager on the current stage."""
        user = self._filled("manager", said, progress=progress)
        call = self._call(turn, "manager", "manager", self.catalog.fill("manager_system"), user)
        return Question(call, reply_reading.read_ruling, self._reminder("manager"))

    def think(
        self,
        turn: int,
        agent: str,
        progress: Progress | None,
        said: Sequence[Event],
        own: Sequence[HeldThought],
    ) -> Question[reply_reading.ReadThought]:
        """One agent's private thought; `own` holds nobody else's."""
        held = [f"T{thought.event}: {indented(thought.text)}" for thought in own[-_OWN_THOUGHTS:]]
        thoughts = "\n".join(held) or self.catalog.fill("thoughts_none")
        user = self._filled("think", said, progress=progress, thoughts=thoughts)
        call = self._call(turn, "think", agent, self._peer(agent), user)
        return Question(call, reply_reading.read_thought, self._reminder("think"))

    def evaluate(
        self,
        turn: int,
        progress: Progress | None,
        said: Sequence[Event],
        thoughts: Mapping[str, str],
    ) -> Question[dict[str, dict[str, int]]]:
        """The evaluator on the thoughts that want to speak: agent → thought."""
        form = self.settings.scores
        shown = [f"{self.group.shown(who)}: {indented(text)}" for who, text in thoughts.items()]
        user = self._filled(
            "evaluate",
            said,
            progress=progress,
            members=self._members,
            thoughts="\n".join(shown),
            criteria=self.catalog.fill(f"evaluate_{form}"),
            form=self.catalog.fill(f"evaluate_{form}_form"),
        )
        call = self._call(turn, "evaluate", "evaluator", self.catalog.fill("evaluate_system"), user)
        return self.evaluation(call, tuple(thoughts))

    def evaluation(self, call: Call, agents: Sequence[str]) -> Question[dict[str, dict[str, int]]]:
        """How the evaluator's scores of some agents' thoughts are read."""
        names = [self.group.shown(who) for who in agents]
        criteria = CRITERIA if self.settings.scores == "six" else reply_reading.TWO_SUMS
        return Question(
            call,
            reply_reading.read_scores(names, criteria),
            self._reminder("evaluate"),
            reply_reading.salvage_scores(names, criteria),
        )

    def speak(
        self,
        turn: int,
        agent: str,
        progress: Progress | None,
        said: Sequence[Event],
        thought: str,
    ) -> Question[reply_reading.Said]:
        """The chosen agent on its thought."""
        user = self._filled("speak", said, progress=progress, thought=indented(thought))
        call = self._call(turn, "speak", agent, self._peer(agent), user)
        return Question(call, reply_reading.read_said, self._reminder("speak"))

    def speak_predicted(
        self, turn: int, agent: str, progress: Progress | None, said: Sequence[Event]
    ) -> Question[reply_reading.Said]:
        """The predicted agent, which has no thought."""
        user = self._filled("speak_predicted", said, progress=progress)
        call = self._call(turn, "speak_predicted", agent, self._peer(agent), user)
        return Question(call, reply_reading.read_said, self._reminder("speak"))

    def predict(self, turn: int, progress: Progress | None, said: Sequence[Event]) -> Question[str]:
        """The baseline: who speaks next."""
        shown = {self.group.shown(who): who for who in (*self.group.agents, LEARNER)}
        user = self._filled(
            "predict",
            said,
            progress=progress,
            members=self._members,
            learner=self.group.learner_name,
            names=", ".join(shown),
        )
        call = self._call(turn, "predict", "predictor", self.catalog.fill("predict_system"), user)
        return Question(call, reply_reading.read_name(shown), self._reminder("predict"))

    def learner(self, turn: int, said: Sequence[Event]) -> Question[reply_reading.Contribution]:
        """The simulated learner."""
        name = self.group.learner_name
        system = self.catalog.fill(
            "learner_system",
            name=name,
            character=self.catalog.learners[self.spec.variant].character,
            language=self.settings.language,
        )
        call = self._call(
            turn, "learner", LEARNER, system, self._filled("learner", said, name=name)
        )
        return Question(call, reply_reading.read_contribution, self._reminder("learner"))

    def code(self, coder: str, said: Sequence[Event], message: Event) -> Question[int]:
        """One coder on one message; `said` is what came before it."""
        user = self.catalog.fill(
            "code", messages=self._messages("code", said), message=self._shown(message)
        )
        system = self.catalog.fill("code_system")
        call = self._call(message.number, "code", coder, system, user)
        return Question(call, reply_reading.read_category, self._reminder("code"))

    # --- Duels ------------------------------------------------------------------------------

    def judge(
        self, turn: int, order: str, said: Sequence[Event], first: str, second: str
    ) -> Question[reply_reading.Verdict]:
        """The judge on two continuations, as `continuation` shows them."""
        user = self._filled("judge", said, members=self._members, first=first, second=second)
        call = self._call(turn, "judge", order, self.catalog.fill("judge_system"), user)
        return Question(call, reply_reading.read_verdict, self._reminder("judge"))

    def rate(
        self, turn: int, system: str, rater: int, said: Sequence[Event], reply: str
    ) -> Question[dict[str, int]]:
        """One rater on one system's continuation."""
        assert isinstance(self.task, Scenario)
        rubric = self.settings.rubric
        more: dict[str, str] = (
            {"solution": indented(self.task.solution), "members": self._members}
            if rubric == "criteria"
            else {"reference": indented(self.task.reference)}
        )
        user = self._filled(f"rate_{rubric}", said, progress=None, reply=reply, **more)
        system_text = self.catalog.fill("rate_system")
        call = self._call(turn, f"rate_{system}", f"rater_{rater}", system_text, user)
        criteria = reply_reading.RATINGS if rubric == "criteria" else ("likeness",)
        return Question(call, reply_reading.read_ratings(criteria), self._reminder("rate"))

    def continuation(self, agent: str | None, text: str) -> str:
        """A system's tenth message as judges and raters read it."""
        if agent is None:
            return self.catalog.fill("nobody")
        return f"{self.group.shown(agent)}: {indented(text)}"

    # --- Parts ------------------------------------------------------------------------------

    def _call(self, turn: int, stage: str, agent: str, system: str, user: str) -> Call:
        return self.loaded.call(turn, stage, agent, system=system, user=user)

    def _filled(
        self,
        template: str,
        said: Sequence[Event],
        *,
        progress: Progress | None = None,
        **values: str,
    ) -> str:
        return self.catalog.fill(
            template,
            problem=indented(self.task.problem),
            progress=self._progress(progress),
            messages=self._messages(template, said),
            **values,
        )

    def _progress(self, progress: Progress | None) -> str:
        if progress is None:
            return self.catalog.fill("progress_none")
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
        return self.catalog.fill(
            "progress",
            number=progress.stage,
            total=len(progress.stages),
            name=indented(stage.name),
            goals=indented(stage.goals),
            marks="\n".join(marks),
        )

    def _messages(self, stage: str, said: Sequence[Event]) -> str:
        shown = said[-CONTEXT.get(stage, _SEES) :]
        return "\n".join(map(self._shown, shown)) or self.catalog.fill("messages_none")

    def _shown(self, message: Event) -> str:
        """A message as prompts show it; its later lines are indented, so none can pass for one."""
        said = (message.number, message.who, message.text)
        found = self._lines.get(said)
        if found is None:
            who = self.group.shown(message.who or "")
            found = self._lines[said] = f"M{message.number} {who}: {indented(message.text)}"
        return found

    @cached_property
    def _lines(self) -> dict[tuple[int, str | None, str], str]:
        """Number, speaker and text of a message → how prompts show it.

        Most prompts hold the same messages as the one before.
        """
        return {}

    def _reminder(self, stage: str) -> str:
        return self.catalog.fill(f"{stage}_reminder")

    @cached_property
    def _members(self) -> str:
        roles = self.catalog.roles
        return "\n".join(
            f"{self.group.shown(who)}: {roles[who].title}; {roles[who].goal}"
            for who in self.group.agents
        )

    def _peer(self, agent: str) -> str:
        return self._peers[agent]

    @cached_property
    def _peers(self) -> dict[str, str]:
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
        return self.catalog.fill(
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
