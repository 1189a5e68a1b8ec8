"""A study of panels: how its episodes go, its grid, and how many calls they ask for.

In an episode the student tries, the judge scores, and a mechanism helps until it succeeds. The
first attempt is judged before any tutoring.
"""

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar

from tutorsim.catalog import WordingNames, overlaid, templates_of
from tutorsim.errors import StudyError
from tutorsim.kernel.flow_drivers_and_call_log import (
    CallLog,
    CodeResult,
    CodeRun,
    Flow,
    run_to_failure,
)
from tutorsim.kernel.load_and_check_study_file import nearest
from tutorsim.kernel.retest_flow_and_drawn_turns import BallotReading
from tutorsim.kernel.scene_asks_votes_and_blind_labels import ask, indented
from tutorsim.kernel.study_file_and_episode_spec import EpisodeSpec
from tutorsim.kernel.system_and_loaded_study import LoadedStudy
from tutorsim.model import Call, Question
from tutorsim.records import (
    Attempt,
    Branch,
    BranchedEpisode,
    BranchPoint,
    EpisodeLine,
    EpisodeRecord,
    Failure,
    StudySettings,
    Turn,
    lasting,
)
from tutorsim.systems.panel.scene_and_reading_proposals_reviews_judge_scores import (
    Exchange,
    Scene,
    Score,
    read_score,
    scene_of,
)
from tutorsim.systems.panel.settings_and_members_of_compared_panels import (
    FIRST_FORM_PROMPTS,
    FIRST_MODEL_SETTINGS,
    FIRST_TEXTS,
    RESERVED_AGENTS,
    PanelCatalog,
    PanelTable,
    Study,
    draw_panels,
    makeups,
    one_order,
    role_of_copies,
)
from tutorsim.systems.panel.turn_of_drafts_reviews_votes_and_notes_per_reader import (
    panel_format,
    panel_turn,
    panel_turn_decided_by,
    single_turn,
)
from tutorsim.tasks import CodeTask, tasks_digest
from tutorsim.vocabularies import LABELS

# --- Episode -------------------------------------------------------------------------------------


@dataclass
class _Progress:
    """What an episode has reached; grows as the generator runs."""

    left: int | None = None
    """Turn of a branch whose winner was another than the parent's."""

    attempts: list[Attempt] = field(default_factory=list)
    turns: list[Turn] = field(default_factory=list)


def episode(scene: Scene) -> Flow[EpisodeRecord]:
    """Run one episode. Returns the record, with `status` `failed` when a call failed for good."""
    progress, calls = _Progress(), CallLog()
    fresh = None if scene.study.branch is None else lambda: progress.left is not None
    failure = yield from run_to_failure(_interaction(scene, progress), calls, fresh=fresh)
    return _record(scene, progress, failure, calls)


def _interaction(scene: Scene, progress: _Progress) -> Flow[None]:
    exchanges: list[Exchange] = []
    while True:
        attempt = yield from _attempt(scene, exchanges)
        progress.attempts.append(attempt)
        if _succeeded(scene, attempt) or len(exchanges) >= scene.study.max_turns:
            return
        exchanges.append(Exchange(attempt.text, None))
        turn = yield from _turn(scene, exchanges, progress)
        progress.turns.append(turn)
        exchanges[-1] = Exchange(attempt.text, turn.delivered)


def _turn(scene: Scene, exchanges: list[Exchange], progress: _Progress) -> Flow[Turn]:
    if scene.spec.condition == "baseline":
        return (yield from single_turn(scene, exchanges))
    branch, parent = scene.study.branch, _parent(scene)
    if branch is None or parent is None or len(exchanges) < parent.turn:
        return (yield from panel_turn(scene, exchanges, panel_format(scene)))
    if progress.left is not None:
        alternative = scene.alternative(branch)
        return (yield from panel_turn(alternative, exchanges, panel_format(alternative)))
    turn = yield from panel_turn_decided_by(
        scene, exchanges, panel_format(scene), deciding=scene.deciding(branch)
    )
    delivered = [turn.decision.winner] if turn.decision else []
    if delivered != [*parent.winners[turn.turn - 1 : turn.turn]]:
        progress.left = turn.turn
    return turn


def _parent(scene: Scene) -> BranchedEpisode | None:
    """Where a branch takes the episode up; `None` for an episode of its own."""
    branch = scene.study.branch
    return None if branch is None else branch.episodes.get(scene.spec.parent_id)


def _attempt(scene: Scene, exchanges: list[Exchange]) -> Flow[Attempt]:
    """The student's next message, the verdict on its code, and the judge's score."""
    turn = len(exchanges)
    [said] = yield from ask([_student_question(scene, exchanges)])
    text = said.value or ""
    tested = yield from _run_code(scene, turn, text)
    [judged] = yield from ask([_judge_question(scene, turn, text)])
    score = judged.value
    return Attempt(
        turn=turn,
        text=text,
        score=score.value if score else None,
        score_rationale=score.rationale if score else None,
        code=tested.code if tested else None,
        code_passed=tested.verdict.outcome == "pass" if tested else None,
        verdict=tested.verdict if tested else None,
    )


def _student_question(scene: Scene, exchanges: Sequence[Exchange]) -> Question[str]:
    """Ask for the student's next message, after the reply that it now reads, if any."""
    situation = {"task": scene.task_text}
    if exchanges:
        last = exchanges[-1]
        before = [*exchanges[:-1], last._replace(delivered=None)]
        situation["history"] = scene.history(before)
        situation["delivered"] = indented(last.delivered or "")
    told = scene.fill("situation_next" if exchanges else "situation_first", **situation)
    task, user = scene.spec.task, {"situation": told}
    if isinstance(task, CodeTask):
        user["entry_point"] = task.entry_point
    return scene.asking(
        len(exchanges),
        "student",
        "student",
        lambda reply: reply.strip() or None,
        system=scene.fill("student_system", **vars(scene.persona)),
        user=scene.fill("student_code" if scene.is_code else "student_science", **user),
        reminder="student_reminder",
    )


def _judge_question(scene: Scene, turn: int, attempt: str) -> Question[Score]:
    """Ask for a score of one attempt, against the reference that only the judge sees.

    For programming tasks the words about the algorithm are scored; tests judge the code.
    """
    user = scene.fill(
        "judge_code" if scene.is_code else "judge_science",
        question=scene.question,
        reference=scene.reference,
        attempt=indented(attempt),
    )
    return scene.asking(
        turn,
        "judge",
        "judge",
        read_score,
        system=scene.fill("judge_system"),
        user=user,
        reminder="judge_reminder",
    )


def _run_code(scene: Scene, turn: int, text: str) -> Flow[CodeResult | None]:
    task = scene.spec.task
    if not isinstance(task, CodeTask):
        return None
    sent = yield CodeRun(
        turn=turn, message=text, prompt=task.prompt, entry_point=task.entry_point, test=task.test
    )
    assert isinstance(sent, CodeResult)
    return sent


def _succeeded(scene: Scene, attempt: Attempt) -> bool:
    """Score at the threshold or above, and for programming tasks a passing verdict."""
    scored = attempt.score is not None and attempt.score >= scene.study.success_threshold
    return scored and (attempt.code_passed is True or not scene.is_code)


def _record(
    scene: Scene, progress: _Progress, failure: Failure | None, calls: CallLog
) -> EpisodeRecord:
    spec, attempts = scene.spec, progress.attempts
    first, last = (attempts[0], attempts[-1]) if attempts else (None, None)
    return EpisodeRecord(
        episode_id=spec.episode_id,
        benchmark=spec.benchmark,
        task_id=spec.task.task_id,
        persona=spec.variant,
        condition=spec.condition,
        panel=spec.factor,
        repeat=spec.repeat,
        question=scene.question,
        reference=scene.reference,
        status="complete" if failure is None else "failed",
        failure=failure,
        branch=_branch_point(scene, progress),
        attempts=tuple(attempts),
        turns=tuple(progress.turns),
        turns_taken=max(len(attempts) - 1, 0),
        initial_correctness=first.score if first else None,
        final_correctness=last.score if last else None,
        initial_code_passed=first.code_passed if first else None,
        code_passed=last.code_passed if last else None,
        success=_succeeded(scene, last) if last and failure is None else None,
        **calls.fields(),
    )


def _branch_point(scene: Scene, progress: _Progress) -> BranchPoint | None:
    parent = _parent(scene)
    if parent is None:
        return None
    return BranchPoint(
        parent_episode=scene.spec.parent_id,
        turn=parent.turn,
        continuation=scene.spec.continuation,
        left=progress.left,
    )


# --- Usual replies -------------------------------------------------------------------------------

SENTENCE = (
    "This stands for about eighteen words of the kind that tutors and students write to others. "
)


def usual_reply(call: Call, count: int, *, longest: bool) -> str:
    """A reply of usual length.

    Ballots, and scores on the longest path, are of no readable form: every vote then ties and
    no attempt succeeds, whatever the protocol and the threshold.
    """
    match call.key.stage:
        case "student":
            return SENTENCE * 6
        case "judge":
            return f"SCORE: {'-' if longest else 1}\n{SENTENCE}"
        case "propose" | "revise":
            return f"PROPOSAL: {SENTENCE * 3}\nRATIONALE: {SENTENCE}\nCONFIDENCE: 70"
        case "critique" | "tie_critique":
            blocks = (f"{label}:\nSTRENGTH: {SENTENCE}\nWEAKNESS: {SENTENCE}" for label in LABELS)
            return "\n".join(list(blocks)[:count])
        case _:
            return "?" * 4 * count


# --- Study ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class PanelStudy(LoadedStudy):
    """A panel's study with everything that it names."""

    study: Study
    catalog: PanelCatalog
    """Shipped entries and the study's own."""

    paths: ClassVar[tuple[str, str]] = (
        "every first attempt succeeds",
        "none does, and every final vote ties",
    )

    def __post_init__(self) -> None:
        if self.study.panels:  # those that are drawn already stay as they are
            alone = {*RESERVED_AGENTS, self.study.baseline_role}
            pool = [role for role in self.catalog.roles if role not in alone]
            panels = draw_panels(self.study.panels, pool, seed=self.study.seed)
            object.__setattr__(self, "study", self.study.model_copy(update={"panels": panels}))

    def episode(self, spec: EpisodeSpec) -> Flow[EpisodeLine]:
        return (yield from episode(scene_of(self, spec)))

    def usual_reply(self, spec: EpisodeSpec, call: Call, *, longest: bool) -> str:
        size = max((len(p.members) for p in self.study.panels.values()), default=0)
        return usual_reply(call, size or len(self.study.roles), longest=longest)

    def model_of(self, agent: str, stage: str) -> str:
        models = self.study.models
        if agent == "student":
            return models.student
        return models.judge if agent == "judge" else models.tutor

    def model_names(self) -> tuple[str, ...]:
        models = self.study.models
        later = (self.study.branch and self.study.branch.model) or models.tutor
        return (models.tutor, models.judge, models.student, later)

    def ballot_reading(self, spec: EpisodeSpec) -> BallotReading:
        return BallotReading(self.catalog.fill("vote_reminder"), self.study.cumulative_budget)

    def check(self, path: Path) -> None:
        _refuse_unknown_names(self.study, self.catalog, path)

    stored: PanelCatalog | None = None

    def used(self) -> WordingNames:
        """The entries of the catalog that some call of the study can contain.

        The study's digest covers these and no other, and a recording stores them.
        """
        return {
            "roles": frozenset(self._roles()),
            "personas": frozenset(self.study.personas),
            "prompts": templates_of("tutorsim.systems.panel", set(self._parts())),
        }

    def _roles(self) -> Iterator[str]:
        study = self.study
        if study.max_turns > 0 and "baseline" in study.conditions:
            yield study.baseline_role
        if self._votes:
            yield from study.catalog_roles
            yield from (study.branch and study.branch.roles) or ()

    @property
    def _votes(self) -> bool:
        """Whether some episode comes to a panel's vote."""
        return self.study.max_turns > 0 and set(self.study.conditions) != {"baseline"}

    def _parts(self) -> Iterator[str]:
        """The parts of a study under which `prompts.toml` has templates."""
        study = self.study
        for benchmark in self.tasks:  # only the form of a science question is renamed
            yield benchmark if benchmark == "humaneval" else "sciq"
        if study.ask_cut_off_again:
            yield "ask_cut_off_again"
        if not study.vote_criterion:
            yield "vote_criterion"  # the settings in the log quote it, even if nobody votes
        if study.max_turns > 0:
            yield "tutoring"
            yield from {"baseline"} & set(study.conditions)
        if self._votes:
            yield "panel"
            yield from (set(study.conditions) | set(study.vote_formats)) - {"baseline"}
            if study.branch is not None and study.branch.rule is not None:
                yield study.branch.rule
            if "tie_round" in (study.tie_policy, study.branch and study.branch.tie_policy):
                yield "tie_round"

    def in_first_form(self) -> "PanelStudy":
        prompts = self.study.catalog.get("prompts", {})
        own = {name: text for name, text in prompts.items() if name in FIRST_TEXTS}
        catalog = overlaid(self.catalog, {"prompts": {**FIRST_TEXTS, **own}})
        later = (self.study.branch and self.study.branch.roles) or ()
        held = catalog.only(
            {
                "roles": {*self.study.catalog_roles, *later, self.study.baseline_role},
                "personas": self.study.personas,
                "prompts": {*FIRST_FORM_PROMPTS, *FIRST_TEXTS},
            }
        )
        return replace(self, catalog=catalog, stored=held)

    def digest(self) -> str:
        """SHA-256 over settings, wordings and tasks.

        Paths are not in it, nor how many futures of which episodes a branch has: it may grow.
        """
        settings = self.settings().model_dump(mode="json")
        if settings["branch"] is not None:
            del settings["branch"]["continuations"], settings["branch"]["episodes"]
        models = lasting(self.study.models, FIRST_MODEL_SETTINGS)
        tasks = {name: tasks_digest(tasks) for name, tasks in self.tasks.items()}
        value = [settings, models, self.prompt_digest(), tasks]
        text = json.dumps(value, sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()

    def settings(self) -> StudySettings:
        """The settings that the run log carries."""
        study = self.study
        same = StudySettings.model_fields.keys() & Study.model_fields.keys()
        changed = {
            "roles": self._seated(),
            "benchmarks": tuple(self.tasks),
            "fallback_order": one_order(study.panels) if study.panels else study.order,
            "vote_criterion": study.criterion(self.catalog),
            "models": study.models.model_dump(include={"tutor", "judge", "student"}),
            "panels": makeups(study.panels),
        }
        return StudySettings(**{name: getattr(study, name) for name in same} | changed)

    def _seated(self) -> tuple[str, ...]:
        """Everybody who sits on a panel, each once."""
        members = (m for panel in self.study.panels.values() for m in panel.members)
        return tuple(dict.fromkeys(members)) or self.study.roles

    @property
    def branch(self) -> Branch | None:
        """What its recording continues and changes."""
        return self.study.branch

    def grid(self) -> Iterator[EpisodeSpec]:
        """Every episode, tasks outermost, repeats innermost: the order of the log.

        A branch has the episodes that it covers or continues, each continuation one.
        """
        for spec in super().grid():
            yield from _continued(spec, self.study.branch)

    def variants(self) -> tuple[str, ...]:
        return self.study.personas

    def factors(self, condition: str) -> tuple[str | None, ...]:
        """The panels that teach under a condition; the single tutor is on none."""
        return (None,) if condition == "baseline" else tuple(self.study.panels) or (None,)

    def study_table(self) -> dict[str, Any]:
        """The study's file; the panel's files need not name their system.

        A study of one panel has no `panels`, and one of several no `roles` beside them.
        """
        out = ("roles", "fallback_order") if self.study.panels else ("panels",)
        table = super().study_table().items()
        return {name: value for name, value in table if name not in ("system", *out)}


def panel_study(loaded: LoadedStudy, *, command: str) -> PanelStudy:
    """The study as a panel's.

    Raises `UsageError` if it is of another system, naming the command that needs a panel.
    """
    loaded.system.check_command(command)
    assert isinstance(loaded, PanelStudy)
    return loaded


def _continued(spec: EpisodeSpec, branch: Branch | None) -> Iterator[EpisodeSpec]:
    if branch is None or spec.episode_id in branch.covered:
        yield spec
    elif spec.episode_id in branch.episodes:
        for number in range(1, branch.continuations + 1):
            name = f"{spec.episode_id}.c{number:02d}"
            yield replace(spec, episode_id=name, continuation=number)


def _refuse_unknown_names(study: Study, catalog: PanelCatalog, path: Path) -> None:
    personas, roles = tuple(catalog.personas), tuple(catalog.roles)
    wanted = [("personas", name, personas) for name in study.personas]
    later = (study.branch and study.branch.roles) or ()
    wanted += [("roles", name, roles) for name in (*(() if study.panels else study.roles), *later)]
    for panel, table in study.panels.items():
        _check_panel(panel, table, path)
        wanted += [(f"panels.{panel}.roles", name, roles) for name in table.roles]
    namesake = next((m for m in role_of_copies(study.panels) if m in catalog.roles), None)
    if namesake is not None:
        raise StudyError(
            f"{path}: panels: a copy and a role of the catalog are both called {namesake!r}.",
            why="Members of a copied panel have the role's name and a number.",
            hint=f"Give [catalog.roles.{namesake}] another name.",
        )
    wanted += [("baseline_role", study.baseline_role, roles)]
    for setting, name, known in wanted:
        if name not in known:
            part = "personas" if setting == "personas" else "roles"
            raise StudyError(
                f"{path}: {setting}: the catalog has no {name!r}.",
                why=nearest(name, known),
                hint=f"Own ones are defined under [catalog.{part}.{name}].",
            )


def _check_panel(name: str, table: PanelTable, path: Path) -> None:
    """Refuse a random panel for which the catalog has too few roles."""
    if table.placebo == "random" and len(table.roles) != table.size:
        raise StudyError(
            f"{path}: panels.{name}: {table.size} roles cannot be drawn.",
            why=f"The catalog has {len(table.roles)} for a panel: {', '.join(table.roles)}.",
            hint="Lower size, or define more under [catalog.roles.NAME].",
        )
