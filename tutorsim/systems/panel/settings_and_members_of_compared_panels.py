"""A panel's study file, and the panels that it compares."""

from collections.abc import Iterable, Mapping, Sequence
from functools import cache, partial
from hashlib import sha256
from typing import Final, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from tutorsim.catalog import BaseCatalog, read_catalog
from tutorsim.errors import StudyError
from tutorsim.kernel.study_file_and_episode_spec import (
    BaseModels,
    BaseStudy,
    BenchmarkSettings,
    Name,
    Settings,
)
from tutorsim.records import Branch, PanelMakeup
from tutorsim.vocabularies import (
    CUMULATIVE_BUDGET,
    DEFAULT_ROLES,
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

# --- Catalog --------------------------------------------------------------------------------------


class Role(BaseModel):
    """A kind of tutor."""

    model_config = ConfigDict(defer_build=True, frozen=True, extra="forbid")

    title: str = Field(min_length=1)
    """How prompts name the role, without an article."""
    objective: str = Field(min_length=1)
    """What its replies are for; completes "Your objective:"."""
    means: str = Field(min_length=1)
    """How it gets there, in whole sentences."""


class Persona(BaseModel):
    """A kind of student. Dimensions lie between 0 and 1."""

    model_config = ConfigDict(defer_build=True, frozen=True, extra="forbid")

    prior_knowledge: float = Field(ge=0, le=1)
    confidence: float = Field(ge=0, le=1)
    persistence: float = Field(ge=0, le=1)
    frustration_sensitivity: float = Field(ge=0, le=1)
    help_seeking: float = Field(ge=0, le=1)
    character: str = Field(min_length=1)
    """How the student behaves, in whole sentences."""


class PanelCatalog(BaseCatalog):
    """All roles, personas and templates that a panel's study can name."""

    roles: dict[str, Role]
    personas: dict[str, Persona]


@cache
def load_panel_catalog() -> PanelCatalog:
    """The shipped roles, personas and prompts."""
    return read_catalog(PanelCatalog, "tutorsim.systems.panel")


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

    Raises `StudyError` naming the panel and the setting.
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

    Raises `StudyError` if two panels put the same members in another order.
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


# --- Study ---------------------------------------------------------------------------------------

PANEL_STAGES: Final = ("propose", "critique", "vote_initial", "revise", "vote_final")
TIE_STAGES: Final = ("tie_critique", "tie_vote")

FIRST_MODEL_SETTINGS: Final = frozenset({"tutor", "judge", "student", "max_tokens", "temperature"})
"""Settings of `[models]` that every digest covers; later ones only where they are no defaults."""

RESERVED_AGENTS = ("student", "judge", "baseline")
"""Agents that call keys name beside the panel's roles."""


FIRST_FORM_PROMPTS: Final = (
    *("student_system", "student_science", "student_code", "student_reminder"),
    *("judge_system", "judge_science", "judge_code", "judge_reminder"),
    *("tutor_system", "baseline_system", "propose", "propose_baseline", "critique", "revise"),
    *("critique_tied", "propose_reminder", "critique_reminder"),
    *("vote_system", "vote", "vote_tied", "vote_reminder", "vote_criterion"),
    *("ballot_simple", "ballot_ranked", "ballot_cumulative", "ballot_approval", "ballot_rich"),
    *("task_science", "task_code", "situation_first", "situation_next", "conversation"),
)
"""Templates that the digest of a recording of the first form covers, used or not."""

FIRST_TEXTS: Final = {
    "student_said": "Student, message $number: $text",
    "tutor_said": "Tutor, reply $number: $text",
    "notes_on": "On $label:",
    "note_strength": "- Strength: $text",
    "note_weakness": "- Weakness: $text",
    "no_review": "- (no review)",
    "no_text": "(no text)",
}
"""What was said before recordings held these templates. A text here never changes."""


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

    def criterion(self, catalog: PanelCatalog) -> str:
        """The criterion in force, as voters read it."""
        return self.vote_criterion or catalog.prompts["vote_criterion"]

    def alternative(self, branch: Branch) -> "Study":
        """The study with what a branch changes in force, as it is once the path is left."""
        roles = branch.roles or self.roles
        order = branch.fallback_order or self.order
        changed = {
            "roles": roles,
            "fallback_order": tuple(sorted(roles, key=partial(_place, order))),
            "tie_policy": branch.tie_policy or self.tie_policy,
            "rich_protocol": branch.rule or self.rich_protocol,
            "models": self.models.model_copy(update={"tutor": branch.model or self.models.tutor}),
            "branch": None,
        }
        return self.model_copy(update=changed)


def _place(order: Sequence[str], role: str) -> int:
    return order.index(role) if role in order else len(order)
