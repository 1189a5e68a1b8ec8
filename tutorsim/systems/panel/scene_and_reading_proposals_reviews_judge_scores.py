"""The scene of a panel's episode, and how its replies are read.

Ballots: `tutorsim.ballot_reading_and_decisions`.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from typing import NamedTuple

from tutorsim.kernel import scene_asks_votes_and_blind_labels as kernel
from tutorsim.kernel.scene_asks_votes_and_blind_labels import draw_labels, indented
from tutorsim.kernel.study_file_and_episode_spec import EpisodeSpec
from tutorsim.kernel.system_and_loaded_study import LoadedStudy
from tutorsim.records import Branch, Note
from tutorsim.systems.panel.settings_and_members_of_compared_panels import (
    PanelCatalog,
    Persona,
    Study,
    role_of_copies,
)
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
        """This episode with settings of the study changed."""
        return replace(self, loaded=_with(self.loaded, self.study.model_copy(update=dict(changed))))

    def alternative(self, branch: Branch) -> "Scene":
        """This episode under all that a branch changes, as it is once the path is left.

        Rich ballots hold a ballot of every protocol, so another rule leaves their format.
        """
        condition = self.spec.condition
        if branch.rule is not None and condition not in ("baseline", "rich"):
            condition = branch.rule
        loaded = _with(self.loaded, self.study.alternative(branch))
        return Scene(loaded, replace(self.spec, condition=condition))

    def deciding(self, branch: Branch) -> "Scene":
        """This episode and panel under the rule, order and tie policy of a branch."""
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

    @cached_property
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

    @cached_property
    def call(self) -> kernel.MakeCall:  # type: ignore[override]
        return self.loaded.call


def scene_of(loaded: LoadedStudy, spec: EpisodeSpec) -> Scene:
    """The scene of an episode, with the panel that teaches in it."""
    scene = Scene(loaded, spec)
    if spec.factor is None:
        return scene
    return replace(scene, loaded=_with(loaded, scene.study.of_panel(spec.factor)))


def _with(loaded: LoadedStudy, study: Study) -> LoadedStudy:
    return replace(loaded, study=study)


# --- Reply reading -------------------------------------------------------------------------------


class ReadProposal(NamedTuple):
    """A proposal as read; `None` for what the reply does not hold."""

    text: str
    rationale: str | None
    confidence: int | None


class Score(NamedTuple):
    """A judge's score in [0, 1] and its reason."""

    value: float
    rationale: str


# Patterns of a line begin with the line end before it, which is found much faster than a place
# where a line begins; `_lines` puts one before the first line.

_FIELD = re.compile(r"\n[ \t>*_#]*(PROPOSAL|RATIONALE|CONFIDENCE)[ \t*_]*:[ \t*_]*", re.IGNORECASE)


def read_proposal(reply: str) -> ReadProposal | None:
    """Read `PROPOSAL:` / `RATIONALE:` / `CONFIDENCE:` lines.

    Returns the proposal, or `None` when no text follows a `PROPOSAL:` marker. A missing rationale
    or an unreadable confidence is `None` in it.
    """
    fields = _fields(reply)
    if not fields.get("PROPOSAL"):
        return None
    return ReadProposal(
        fields["PROPOSAL"], fields.get("RATIONALE") or None, _confidence(fields.get("CONFIDENCE"))
    )


def salvage_proposal(reply: str) -> ReadProposal | None:
    """Take a reply without the marker as the text itself; `None` when it is empty."""
    head = _FIELD.split(_lines(reply), maxsplit=1)[0].strip()
    fields = _fields(reply)
    if not head:
        return None
    return ReadProposal(
        head, fields.get("RATIONALE") or None, _confidence(fields.get("CONFIDENCE"))
    )


def _lines(reply: str) -> str:
    return f"\n{reply}"


def _fields(reply: str) -> dict[str, str]:
    parts = _FIELD.split(_lines(reply))
    pairs = zip(parts[1::2], parts[2::2], strict=True)
    fields: dict[str, str] = {}
    for name, text in pairs:
        fields.setdefault(name.upper(), text.strip())
    return fields


_PERCENT = re.compile(r"([0-9]{1,3})\s*(?:%|/\s*100)?\.?")


def _confidence(text: str | None) -> int | None:
    match = _PERCENT.fullmatch((text or "").strip())
    value = int(match[1]) if match else -1
    return value if 0 <= value <= 100 else None


def read_reviews(reply: str, labels: Sequence[str]) -> dict[str, Note] | None:
    """Read a block `A:` with `STRENGTH:` and `WEAKNESS:` for each label.

    Returns label → note for every label that has one, or `None` when none has.
    """
    parts = _block_head("".join(labels)).split(_lines(reply))
    notes: dict[str, Note] = {}
    for label, text in zip(parts[1::2], parts[2::2], strict=True):
        note = Note(strength=_line(text, _STRENGTH), weakness=_line(text, _WEAKNESS))
        if label not in notes and (note.strength or note.weakness):
            notes[label] = note
    return {label: notes[label] for label in labels if label in notes} or None


@cache
def _block_head(labels: str) -> re.Pattern[str]:
    word = r"(?:(?i:reply|draft|proposal|label)[ \t]+)?"
    return re.compile(rf"\n[ \t>*_#]*{word}([{labels}])[ \t*_]*:[ \t*_]*")


_STRENGTH, _WEAKNESS = (
    re.compile(rf"{name}[ \t*_]*:[ \t*_]*(\S.*)", re.IGNORECASE)
    for name in ("STRENGTH", "WEAKNESS")
)


def _line(text: str, field: re.Pattern[str]) -> str | None:
    match = field.search(text)
    return match[1].strip() if match else None


_SCORE = re.compile(
    r"\n[ \t*_]*SCORE[ \t*_]*:[ \t*_]*([0-9]+(?:\.[0-9]*)?|\.[0-9]+)[ \t*_\r]*$",
    re.MULTILINE | re.IGNORECASE,
)


def read_score(reply: str) -> Score | None:
    """Read `SCORE: <float>` and the line of rationale after it.

    Returns the score, or `None` when the reply has no score line or its number is outside [0, 1].
    """
    text = _lines(reply)
    match = _SCORE.search(text)
    if match is None or not 0 <= float(match[1]) <= 1:
        return None
    rest = [line.strip() for line in text[match.end() :].splitlines() if line.strip()]
    return Score(float(match[1]), rest[0] if rest else "")
