"""The scene of a panel's episode: its task, persona and roles, and the conversation so far."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

from tutorsim.kernel import scene as kernel
from tutorsim.kernel.scene import draw_labels, indented
from tutorsim.kernel.study import EpisodeSpec
from tutorsim.kernel.system import LoadedStudy
from tutorsim.model import Call
from tutorsim.records import Branch
from tutorsim.systems.panel.settings import PanelCatalog, Persona, Study, role_of_copies
from tutorsim.tasks import CodeTask, ScienceTask


class Exchange(NamedTuple):
    """A message of the student and the reply that it got, if any."""

    attempt: str
    delivered: str | None


@dataclass(frozen=True)
class Scene(kernel.Scene):
    """One episode's constants."""

    loaded: LoadedStudy
    spec: EpisodeSpec

    # --- the study under another rule ---------------------------------------------------------

    def under(self, changed: Mapping[str, object]) -> "Scene":
        """The same episode with settings of the study changed."""
        return replace(self, loaded=_with(self.loaded, self.study.model_copy(update=dict(changed))))

    def alternative(self, branch: Branch) -> "Scene":
        """The same episode under all that a branch changes, as it is once the path is left.

        Rich ballots hold a ballot of every protocol, so another rule leaves their format.
        """
        condition = self.spec.condition
        if branch.rule is not None and condition not in ("baseline", "rich"):
            condition = branch.rule
        loaded = _with(self.loaded, self.study.alternative(branch))
        return Scene(loaded, replace(self.spec, condition=condition))

    def deciding(self, branch: Branch) -> "Scene":
        """The same episode and panel under the rule, order and tie policy of a branch."""
        return self.alternative(branch.model_copy(update={"roles": None, "model": None}))

    # --- who and what -------------------------------------------------------------------------

    @cached_property
    def study(self) -> Study:
        assert isinstance(self.loaded.study, Study)
        return self.loaded.study

    @cached_property
    def catalog(self) -> PanelCatalog:
        assert isinstance(self.loaded.catalog, PanelCatalog)
        return self.loaded.catalog

    @property
    def wordings(self) -> PanelCatalog:  # type: ignore[override]
        return self.catalog

    @property
    def persona(self) -> Persona:
        return self.catalog.personas[self.spec.variant]

    @property
    def is_code(self) -> bool:
        return isinstance(self.spec.task, CodeTask)

    @property
    def question(self) -> str:
        """What the student is asked."""
        task = self._task
        return task.prompt.rstrip() if isinstance(task, CodeTask) else task.question

    @property
    def reference(self) -> str:
        """What the judge compares with; no other agent sees it."""
        task = self._task
        if isinstance(task, CodeTask):
            return task.canonical_solution.rstrip()
        return f"{task.correct_answer}\n{task.support}".strip()

    @property
    def _task(self) -> ScienceTask | CodeTask:
        task = self.spec.task
        assert isinstance(task, ScienceTask | CodeTask)
        return task

    # --- what prompts show --------------------------------------------------------------------

    @cached_property
    def task_text(self) -> str:
        """The task as prompts show it."""
        template = "task_code" if self.is_code else "task_science"
        return self.fill(template, question=self.question)

    def conversation(self, exchanges: Sequence[Exchange]) -> str:
        """Task, messages and replies so far, oldest first."""
        return self.fill("conversation", task=self.task_text, history=self.history(exchanges))

    def history(self, exchanges: Sequence[Exchange]) -> str:
        """Messages and replies as paragraphs that say whose they are."""
        part, lines = self.catalog.part, list[str]()
        for number, (attempt, delivered) in enumerate(exchanges, start=1):
            lines.append(part("student_said", number=number, text=indented(attempt)))
            if delivered is not None:
                lines.append(part("tutor_said", number=number, text=indented(delivered)))
        return "\n\n".join(lines)

    def told(self, template: str, role: str) -> str:
        """A system prompt, filled with what the catalog says of a role, or of its original."""
        text = self._told.get((template, role))
        if text is None:
            original = self.catalog.roles[role_of_copies(self.study.panels).get(role, role)]
            text = self._told[template, role] = self.fill(template, **vars(original))
        return text

    @cached_property
    def _told(self) -> dict[tuple[str, str], str]:
        """System prompts, which come again in every turn."""
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
        return self.loaded.call(turn, stage, agent, system=system, user=user)


def scene_of(loaded: LoadedStudy, spec: EpisodeSpec) -> Scene:
    """The scene of an episode, with the panel that teaches in it."""
    scene = Scene(loaded, spec)
    if spec.factor is None:
        return scene
    return replace(scene, loaded=_with(loaded, scene.study.of_panel(spec.factor)))


def _with(loaded: LoadedStudy, study: Study) -> LoadedStudy:
    return replace(loaded, study=study)
