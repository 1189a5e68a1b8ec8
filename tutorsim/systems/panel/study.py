"""A panel's study file, the panels that it compares, and its grid of episodes."""

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any, ClassVar, Final, Literal

from pydantic import Field, model_validator

from tutorsim.catalog import Catalog, overlaid
from tutorsim.catalog.wordings_kept_with_recording import WordingNames
from tutorsim.errors import StudyError
from tutorsim.kernel.flow import Flow
from tutorsim.kernel.retest import BallotReading
from tutorsim.kernel.study import (
    BaseModels,
    BaseStudy,
    BenchmarkSettings,
    EpisodeSpec,
    Name,
    Settings,
    nearest,
)
from tutorsim.kernel.system import CallRange, LoadedStudy
from tutorsim.model import Call
from tutorsim.records import Branch, EpisodeLine, PanelMakeup, StudySettings, lasting
from tutorsim.systems.panel.wordings_used import FIRST_TEXTS, first_form, panel_wordings
from tutorsim.tasks import tasks_digest
from tutorsim.vocabularies import (
    CUMULATIVE_BUDGET,
    DEFAULT_ROLES,
    LABELS,
    MAX_ROLES,
    MIN_ROLES,
    PUBLISHED_CONDITIONS,
    BallotFormat,
    Blinding,
    Condition,
    Placebo,
    Protocol,
    TiePolicy,
)

# --- Study panels --------------------------------------------------------------------------------


class PanelTable(Settings):
    """`[panels.NAME]`: who sits on one panel."""

    roles: tuple[Name, ...] = ()
    """The panel. Of a `copied` one the one role; of a `random` one the roles to draw from, every
    role of the catalog for a panel when left out."""
    placebo: Placebo | None = None
    """`copied` or `random`; chosen roles when left out."""
    size: int | None = Field(default=None, strict=True)
    """Members of a placebo."""
    fallback_order: tuple[Name, ...] = ()
    """Fallback order; the order of the members when left out."""

    @property
    def members(self) -> tuple[str, ...]:
        """The panel by the names that ballots have."""
        if self.placebo == "copied":
            return tuple(f"{self.roles[0]}-{i}" for i in range(1, (self.size or 0) + 1))
        return self.roles

    @property
    def order(self) -> tuple[str, ...]:
        """The fallback order in force."""
        return self.fallback_order or self.members


Tables = Mapping[str, PanelTable]


def check_panels(panels: Tables) -> None:
    """Refuse panels that cannot sit, or that no one order fits.

    Raises:
        StudyError: Naming the panel and the setting.
    """
    for name, panel in panels.items():
        where = f"panels.{name}"
        _check_roles(panel, where)
        if panel.placebo is None:
            _check_chosen(panel, where)
        else:
            _check_placebo(panel, where)
        if panel.fallback_order and sorted(panel.fallback_order) != sorted(panel.members):
            raise StudyError(
                f"{where}.fallback_order is {_listing(panel.fallback_order)}.",
                why=f"It does not name every member of the panel once: {_listing(panel.members)}.",
                hint="Name each of them, the one that wins a last tie first, or leave it out.",
            )
    one_order({name: panel for name, panel in panels.items() if panel.placebo != "random"})


def _check_roles(panel: PanelTable, where: str) -> None:
    roles = panel.roles
    twice = next((role for role in roles if roles.count(role) > 1), None)
    if twice is not None:
        raise StudyError(
            f"{where}.roles names {twice!r} {roles.count(twice)} times.",
            why="Ballots would not tell its copies apart; a panel of one role is a placebo.",
            hint=f'Write placebo = "copied", roles = ["{twice}"], size = {len(roles)}.',
        )


def _check_chosen(panel: PanelTable, where: str) -> None:
    if panel.size is not None:
        raise StudyError(
            f"{where}.size is {panel.size}.",
            why="size is for a placebo; a panel of chosen roles has as many members as roles.",
            hint='Leave size out, or say placebo = "copied" or placebo = "random".',
        )
    _check_size(len(panel.roles), f"{where}.roles names {_counted(len(panel.roles), 'role')}.")


def _check_placebo(panel: PanelTable, where: str) -> None:
    if panel.size is None:
        raise StudyError(
            f"{where} has no size.",
            why=f"A {panel.placebo} panel has as many members as its size says.",
            hint=f"Give it one from {MIN_ROLES} to {MAX_ROLES}.",
        )
    _check_size(panel.size, f"{where}.size is {panel.size}.")
    if panel.placebo == "copied" and len(panel.roles) != 1:
        raise StudyError(
            f"{where}.roles names {_counted(len(panel.roles), 'role')}.",
            why="A copied panel has one role, as many times as its size says.",
            hint='Name one role, as in roles = ["scaffolding"].',
        )
    if panel.placebo == "random" and 0 < len(panel.roles) < panel.size:
        raise StudyError(
            f"{where}.roles names {_counted(len(panel.roles), 'role')}.",
            why=f"The panel's size is {panel.size}, and no role is drawn twice.",
            hint="Name more roles to draw from, or leave roles out to draw from the catalog.",
        )
    if panel.placebo == "random" and panel.fallback_order:
        raise StudyError(
            f"{where}.fallback_order is {_listing(panel.fallback_order)}.",
            why="Nobody knows before the draw who sits on a random panel.",
            hint="Leave it out: drawn roles stand in the order of the other panels.",
        )


def _check_size(size: int, what: str) -> None:
    if not MIN_ROLES <= size <= MAX_ROLES:
        raise StudyError(
            what,
            why=f"A panel has {MIN_ROLES} to {MAX_ROLES} members.",
            hint="Name more roles." if size < MIN_ROLES else "Name fewer.",
        )


def _listing(names: Sequence[str]) -> str:
    """Names as one text."""
    return ", ".join(names) or "empty"


def _counted(n: int, noun: str) -> str:
    """`1 role`, `2 roles`."""
    return f"{n} {noun}" if n == 1 else f"{n} {noun}s"


def makeups(panels: Tables) -> dict[str, PanelMakeup]:
    """The panels as a run's head has them."""
    return {
        name: PanelMakeup(
            roles=panel.members,
            fallback_order=panel.order,
            placebo=panel.placebo,
            copied=panel.roles[0] if panel.placebo == "copied" else None,
        )
        for name, panel in panels.items()
    }


def role_of_copies(panels: Tables) -> dict[str, str]:
    """Members of copied panels → the role that they have."""
    return {
        member: panel.roles[0]
        for panel in panels.values()
        if panel.placebo == "copied"
        for member in panel.members
    }


def one_order(panels: Tables) -> tuple[str, ...]:
    """The order over all members of which every panel's order is a part.

    A run is counted under one fallback order, so that its panels must agree on whom they
    prefer of two. What they leave open goes by first appearance.

    Raises:
        StudyError: If two panels put the same members in another order.
    """
    orders = [panel.order for panel in panels.values()]
    left = list(dict.fromkeys(member for order in orders for member in order))
    found: list[str] = []
    while left:
        free = next((m for m in left if not _behind(m, left, orders)), None)
        if free is None:
            raise _disagreement(panels)
        left.remove(free)
        found.append(free)
    return tuple(found)


def _behind(member: str, left: Sequence[str], orders: Iterable[Sequence[str]]) -> bool:
    """Whether an order puts somebody who is left before the member."""
    before = (order[: order.index(member)] for order in orders if member in order)
    return any(other in left for some in before for other in some)


def _disagreement(panels: Tables) -> StudyError:
    """Which two panels disagree, and on whom; of longer circles that there is one."""
    what = "panels: no order over all members fits the orders of the panels."
    seen: dict[tuple[str, str], str] = {}
    for name, panel in panels.items():
        for i, first in enumerate(panel.order):
            for second in panel.order[i + 1 :]:
                seen.setdefault((first, second), name)
    for (first, second), name in seen.items():
        other = seen.get((second, first))
        if other is not None:
            what = (
                f"panels.{name} puts {first} before {second}, and panels.{other} {second} before "
                f"{first}."
            )
            break
    return StudyError(
        what,
        why="Ties of a run go to one fallback order, of which each panel's is a part.",
        hint="Give them one order with fallback_order. What others would have decided needs no "
        "recording: `tutorsim recount RUN --fallback-order`.",
    )


def draw_panels(panels: Tables, catalog: Sequence[str], *, seed: int) -> dict[str, PanelTable]:
    """The panels with the roles of random ones drawn, those that are drawn already as they are.

    Roles are drawn by a SHA-256 hash of the seed, the panel's name and the role's, so that every
    set of roles is equally likely. They stand in the order of the other panels, then by name.

    Args:
        panels: Name → panel.
        catalog: Every role that may be drawn.
        seed: The study's seed.
    """
    chosen = one_order({name: p for name, p in panels.items() if p.placebo != "random"})

    def place(role: str) -> tuple[int, str]:
        return (chosen.index(role) if role in chosen else len(chosen), role)

    found = {}
    for name, panel in panels.items():
        if panel.placebo == "random":
            pool = sorted(panel.roles or catalog, key=partial(_lot, seed, name))
            drawn = tuple(sorted(pool[: panel.size], key=place))
            panel = panel.model_copy(update={"roles": drawn})
        found[name] = panel
    return found


def _lot(seed: int, panel: str, role: str) -> bytes:
    return sha256(f"{seed}\x1fpanel\x1f{panel}\x1f{role}".encode()).digest()


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

PANEL_STAGES: Final = ("propose", "critique", "vote_initial", "revise", "vote_final")
TIE_STAGES: Final = ("tie_critique", "tie_vote")

FIRST_MODEL_SETTINGS: Final = frozenset({"tutor", "judge", "student", "max_tokens", "temperature"})
"""Settings of `[models]` that every digest covers; later ones only where they are no defaults."""

RESERVED_AGENTS = ("student", "judge", "baseline")
"""Agents that call keys name beside the panel's roles."""


class ModelSettings(BaseModels):
    """`[models]`: identifiers sent with the calls."""

    tutor: str = Field(default="claude-sonnet-4-5", min_length=1)
    judge: str = Field(default="claude-sonnet-4-5", min_length=1)
    student: str = Field(default="claude-haiku-4-5", min_length=1)


class Study(BaseStudy):
    """A study file's content. Defaults are the published study's settings."""

    system: Literal["panel"] = "panel"
    conditions: tuple[Condition, ...] = PUBLISHED_CONDITIONS
    personas: tuple[Name, ...] = (
        "low_confidence_novice",
        "overconfident_misconception",
        "high_persistence_reflective",
        "easily_frustrated_beginner",
        "help_avoidant",
        "hint_seeking_dependent",
    )
    roles: tuple[Name, ...] = DEFAULT_ROLES
    """The panel, 3 to 8 roles of the catalog; also the default fallback order."""
    panels: Mapping[Name, PanelTable] = {}
    """`[panels.NAME]`: several panels to compare, each with its roles; `roles` is then left out."""
    baseline_role: Name = "baseline"
    """The role of the single tutor in the `baseline` condition."""
    max_turns: int = Field(default=3, ge=0, le=99, strict=True)
    success_threshold: float = Field(default=0.75, ge=0, le=1, strict=True)
    blinding: Blinding = "per_reader"
    fallback_order: tuple[Name, ...] = ()
    """Fallback order; the order of `roles` when left out."""
    tie_policy: TiePolicy = "tie_round"
    """What a tied final vote goes to."""
    cumulative_budget: int = Field(default=CUMULATIVE_BUDGET, ge=1, le=1_000_000, strict=True)
    rich_protocol: Protocol = "cumulative"
    """The protocol that decides in the `rich` condition."""
    vote_formats: tuple[BallotFormat, ...] = ()
    """Formats in which every voter is asked about the same final proposals once more.

    Diagnostic, never used for the decision; the condition's own format is not asked again."""
    vote_criterion: str = ""
    """The criterion given to voters; the catalog's when left out."""
    benchmarks: Mapping[Name, BenchmarkSettings]
    models: ModelSettings = ModelSettings()
    branch: Branch | None = None
    """Written by `tutorsim branch`: what this recording continues, and what it changes."""

    @model_validator(mode="after")
    def _coherent(self) -> "Study":
        for field in ("conditions", "personas", "roles", "fallback_order", "vote_formats"):
            values = getattr(self, field)
            twice = sorted({value for value in values if values.count(value) > 1})
            if twice:
                raise ValueError(f"{field} names {twice[0]!r} twice")
        for field in ("conditions", "personas", "benchmarks"):
            if not getattr(self, field):
                raise ValueError(f"{field} is empty, so the study has no episode")
        if not MIN_ROLES <= len(self.roles) <= MAX_ROLES:
            raise ValueError(
                f"roles names {len(self.roles)}; a panel has {MIN_ROLES} to {MAX_ROLES} roles"
            )
        taken = [role for role in self.catalog_roles if role in RESERVED_AGENTS]
        if taken:
            raise ValueError(f"roles names {taken[0]!r}, which call keys need for another agent")
        if self.fallback_order and sorted(self.fallback_order) != sorted(self.roles):
            raise ValueError(
                f"fallback_order {list(self.fallback_order)} must name every role of "
                f"{list(self.roles)} once"
            )
        if self.panels:
            self._check_panels()
        return self

    def _check_panels(self) -> None:
        given = [name for name in ("roles", "fallback_order") if name in self.model_fields_set]
        if given:
            raise StudyError(
                f"{given[0]} stands beside [panels].",
                why=f"It is for a study of one panel; here every panel says its own {given[0]}.",
                hint=f"Leave {given[0]} out, or make it a panel: [panels.NAME].",
            )
        if set(self.conditions) == {"baseline"}:
            raise StudyError(
                "panels: no condition has a panel.",
                why="baseline is one tutor alone.",
                hint="Add a condition that votes, such as ranked, or leave [panels] out.",
            )
        check_panels(self.panels)

    @property
    def catalog_roles(self) -> tuple[str, ...]:
        """The roles that the tutors of its panels have, each once."""
        if not self.panels:
            return self.roles
        return tuple(dict.fromkeys(r for panel in self.panels.values() for r in panel.roles))

    def of_panel(self, panel: str | None) -> "Study":
        """The study as it is for the episodes of one of its panels; as it is for `None`."""
        if panel is None:
            return self
        table = self.panels[panel]
        return self.model_copy(update={"roles": table.members, "fallback_order": table.order})

    @property
    def order(self) -> tuple[str, ...]:
        """The fallback order in force."""
        return self.fallback_order or self.roles


@dataclass(frozen=True)
class PanelStudy(LoadedStudy):
    """A panel's study with everything that it names."""

    study: Study
    catalog: Catalog
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
        from tutorsim.systems.panel.episode import episode  # its scenes are made of studies
        from tutorsim.systems.panel.scene import scene_of

        return (yield from episode(scene_of(self, spec)))

    def call_range(self, spec: EpisodeSpec) -> CallRange:
        """A student and a judge call around every turn, and the turn's own."""
        study = self.study.of_panel(spec.factor)
        further = sum(form != spec.condition for form in study.vote_formats)
        panel = len(study.roles) * (len(PANEL_STAGES) + further + len(TIE_STAGES))
        in_turn = 1 if spec.condition == "baseline" else panel
        return CallRange.of(2, 2 + study.max_turns * (in_turn + 2))

    def usual_reply(self, call: Call, *, longest: bool) -> str:
        size = max((len(p.members) for p in self.study.panels.values()), default=0)
        return usual_reply(call, size or len(self.study.roles), longest=longest)

    def model_of(self, agent: str, stage: str) -> str:
        models = self.study.models
        return {"student": models.student, "judge": models.judge}.get(agent, models.tutor)

    def model_names(self) -> tuple[str, ...]:
        models = self.study.models
        later = (self.study.branch and self.study.branch.model) or models.tutor
        return (models.tutor, models.judge, models.student, later)

    def ballot_reading(self, spec: EpisodeSpec) -> BallotReading:
        return BallotReading(self.catalog.fill("vote_reminder"), self.study.cumulative_budget)

    def check(self, path: Path) -> None:
        _refuse_unknown_names(self.study, self.catalog, path)

    @property
    def criterion(self) -> str:
        """The criterion in force, as voters read it."""
        return self.study.vote_criterion or self.catalog.prompts["vote_criterion"]

    stored: Catalog | None = None

    def used(self) -> WordingNames:
        return panel_wordings(self.study, self.tasks.keys())

    def in_first_form(self) -> "PanelStudy":
        prompts = self.study.catalog.get("prompts", {})
        own = {name: text for name, text in prompts.items() if name in FIRST_TEXTS}
        catalog = overlaid(self.catalog, {"prompts": {**FIRST_TEXTS, **own}})
        return replace(self, catalog=catalog, stored=catalog.only(first_form(self.study)))

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
        models = study.models
        return StudySettings(
            name=study.name,
            seed=study.seed,
            conditions=study.conditions,
            personas=study.personas,
            roles=self._seated(),
            baseline_role=study.baseline_role,
            benchmarks=tuple(self.tasks),
            max_turns=study.max_turns,
            success_threshold=study.success_threshold,
            blinding=study.blinding,
            fallback_order=one_order(study.panels) if study.panels else study.order,
            cumulative_budget=study.cumulative_budget,
            vote_criterion=self.criterion,
            repeats=study.repeats,
            tie_policy=study.tie_policy,
            rich_protocol=study.rich_protocol,
            vote_formats=study.vote_formats,
            models={"tutor": models.tutor, "judge": models.judge, "student": models.student},
            branch=study.branch,
            ask_cut_off_again=study.ask_cut_off_again,
            panels=makeups(study.panels),
        )

    def _seated(self) -> tuple[str, ...]:
        """Everybody who sits on a panel, each once."""
        members = (m for panel in self.study.panels.values() for m in panel.members)
        return tuple(dict.fromkeys(members)) or self.study.roles

    def of_panel(self, panel: str | None) -> "PanelStudy":
        """The study as it is for the episodes of one of its panels; as it is for `None`."""
        return self if panel is None else replace(self, study=self.study.of_panel(panel))

    @property
    def branch(self) -> Branch | None:
        """What its recording continues and changes."""
        return self.study.branch

    def alternative(self, branch: Branch) -> "PanelStudy":
        """The study with what a branch changes in force, as it is once the path is left."""
        study = self.study
        roles = branch.roles or study.roles
        order = branch.fallback_order or study.order
        changed = {
            "roles": roles,
            "fallback_order": tuple(sorted(roles, key=partial(_place, order))),
            "tie_policy": branch.tie_policy or study.tie_policy,
            "rich_protocol": branch.rule or study.rich_protocol,
            "models": study.models.model_copy(update={"tutor": branch.model or study.models.tutor}),
            "branch": None,
        }
        return replace(self, study=study.model_copy(update=changed))

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
        """As every study; the panel's files need not name their system.

        A study of one panel has no `panels`, and one of several no `roles` beside them.
        """
        out = ("roles", "fallback_order") if self.study.panels else ("panels",)
        table = super().study_table().items()
        return {name: value for name, value in table if name not in ("system", *out)}


def panel_study(loaded: LoadedStudy, *, command: str) -> PanelStudy:
    """The study as a panel's.

    Raises:
        UsageError: If it is of another system, naming the command that needs a panel.
    """
    loaded.system.check_command(command)
    assert isinstance(loaded, PanelStudy)
    return loaded


def _place(order: Sequence[str], role: str) -> int:
    return order.index(role) if role in order else len(order)


def _continued(spec: EpisodeSpec, branch: Branch | None) -> Iterator[EpisodeSpec]:
    if branch is None or spec.episode_id in branch.covered:
        yield spec
    elif spec.episode_id in branch.episodes:
        for number in range(1, branch.continuations + 1):
            name = f"{spec.episode_id}.c{number:02d}"
            yield replace(spec, episode_id=name, continuation=number)


def _refuse_unknown_names(study: Study, catalog: Catalog, path: Path) -> None:
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
    for field, name, known in wanted:
        if name not in known:
            part = "personas" if field == "personas" else "roles"
            raise StudyError(
                f"{path}: {field}: the catalog has no {name!r}.",
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
