"""What an agent's prompts are built from: the episode's constants, and the conversation so far."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

from tutorsim.catalog import Catalog, Persona, Role
from tutorsim.mechanisms.author_labels import draw_labels, indented
from tutorsim.model import Call, CallKey, Request
from tutorsim.records import Branch
from tutorsim.study import EpisodeSpec
from tutorsim.systems.panel.study import PanelStudy, Study
from tutorsim.systems.panel.study_panels import role_of_copies
from tutorsim.tasks import CodeTask, ScienceTask

__all__ = ["Exchange", "Scene", "scene_of"]


class Exchange(NamedTuple):
    """A message of the student and the reply that it got, if any."""

    attempt: str
    delivered: str | None


@dataclass(frozen=True)
class Scene:
    """One episode's constants."""

    loaded: PanelStudy
    spec: EpisodeSpec

    def under(self, changed: Mapping[str, object]) -> "Scene":
        """The same episode with settings of the study changed."""
        study = self.study.model_copy(update=dict(changed))
        return replace(self, loaded=replace(self.loaded, study=study))

    def alternative(self, branch: Branch) -> "Scene":
        """The same episode under all that a branch changes, as it is once the path is left.

        Rich ballots hold a ballot of every protocol, so another rule leaves their format.
        """
        condition = self.spec.condition
        if branch.rule is not None and condition not in ("baseline", "rich"):
            condition = branch.rule
        return Scene(self.loaded.alternative(branch), replace(self.spec, condition=condition))

    def deciding(self, branch: Branch) -> "Scene":
        """The same episode and panel under the rule, order and tie policy of a branch."""
        return self.alternative(branch.model_copy(update={"roles": None, "model": None}))

    @cached_property
    def study(self) -> Study:
        return self.loaded.study

    @cached_property
    def catalog(self) -> Catalog:
        return self.loaded.catalog

    def role(self, agent: str) -> Role:
        """The role of a member of the panel; copies of a role have it alike."""
        return self.catalog.roles[self._role_of_copies.get(agent, agent)]

    @cached_property
    def _role_of_copies(self) -> dict[str, str]:
        return role_of_copies(self.study.panels)

    @property
    def persona(self) -> Persona:
        return self.catalog.personas[self.spec.variant]

    @property
    def task(self) -> ScienceTask | CodeTask:
        task = self.spec.task
        assert isinstance(task, ScienceTask | CodeTask)
        return task

    @property
    def is_code(self) -> bool:
        return isinstance(self.spec.task, CodeTask)

    @property
    def question(self) -> str:
        """What the student is asked."""
        task = self.task
        return task.prompt.rstrip() if isinstance(task, CodeTask) else task.question

    @property
    def reference(self) -> str:
        """What the judge compares with; no other agent sees it."""
        task = self.task
        if isinstance(task, CodeTask):
            return task.canonical_solution.rstrip()
        return f"{task.correct_answer}\n{task.support}".strip()

    def task_text(self) -> str:
        """The task as prompts show it."""
        return self.catalog.fill(
            "task_code" if self.is_code else "task_science", question=self.question
        )

    def conversation(self, exchanges: Sequence[Exchange]) -> str:
        """Task, messages and replies so far, oldest first."""
        said = tuple(exchanges)
        told = self._texts.get(said)
        if told is None:
            told = self.catalog.fill(
                "conversation", task=self.task_text(), history=self.history(said)
            )
            self._texts[said] = told
        return told

    def history(self, exchanges: Sequence[Exchange]) -> str:
        """Messages and replies as paragraphs that say whose they are."""
        part, lines = self.catalog.part, list[str]()
        for number, (attempt, delivered) in enumerate(exchanges, start=1):
            lines.append(part("student_said", number=number, text=indented(attempt)))
            if delivered is not None:
                lines.append(part("tutor_said", number=number, text=indented(delivered)))
        return "\n\n".join(lines)

    def filled(self, template: str, **values: object) -> str:
        """Fill a template of the catalog that comes again, with the same values, in an episode."""
        key = (template, *values.values())
        text = self._texts.get(key)
        if text is None:
            text = self._texts[key] = self.catalog.fill(template, **values)
        return text

    @cached_property
    def blank(self) -> str:
        """What stands for a text that is empty."""
        return self.catalog.part("no_text")

    def told(self, template: str, role: str) -> str:
        """A system prompt, filled with what the catalog says of a role."""
        key = (template, "role", role)
        text = self._texts.get(key)
        if text is None:
            text = self._texts[key] = self.catalog.fill(template, **vars(self.role(role)))
        return text

    @cached_property
    def _texts(self) -> dict[tuple[object, ...], str]:
        """Texts that come again, by what they are made of."""
        return {}

    def labels(
        self, candidates: Sequence[str], *, turn: int, stage: str, readers: Sequence[str]
    ) -> dict[str, dict[str, str]]:
        """Reader → (label → role), in label order."""
        study, episode = self.study, self.spec.parent_id
        return {
            reader: draw_labels(
                candidates,
                seed=study.seed,
                episode_id=episode,
                turn=turn,
                stage=stage,
                reader=reader,
                blinding=study.blinding,
            )
            for reader in readers
        }

    def call(self, turn: int, stage: str, agent: str, *, system: str, user: str) -> Call:
        """A first asking."""
        named, max_tokens, extra = self._asking
        model = named.get(agent) or named["tutor"]
        request = Request(model, system, user, max_tokens, extra)
        return Call(CallKey(turn, stage, agent, 1), request, self.loaded.if_cut_off)

    @cached_property
    def _asking(self) -> tuple[dict[str, str], int, tuple[tuple[str, float], ...]]:
        """Models by who is asked, and what every request of the episode has."""
        models = self.study.models
        named = {"student": models.student, "judge": models.judge, "tutor": models.tutor}
        extra = () if models.temperature is None else (("temperature", models.temperature),)
        return named, models.max_tokens, extra


def scene_of(loaded: PanelStudy, spec: EpisodeSpec) -> Scene:
    """The scene of an episode, with the panel that teaches in it."""
    return Scene(loaded.of_panel(spec.factor), spec)
