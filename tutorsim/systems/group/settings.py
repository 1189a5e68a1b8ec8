"""A group's study file: settings, models, learners and roles."""

from collections.abc import Mapping
from fractions import Fraction
from functools import cache
from typing import Annotated, Any, ClassVar, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from tutorsim.catalog import BaseCatalog, read_catalog
from tutorsim.kernel.study_file_and_episode_spec import (
    BaseModels,
    BaseStudy,
    BenchmarkSettings,
    Name,
    Settings,
)
from tutorsim.systems.group.speaker_selection_and_its_reasons import Rule, SelectionRule, Silence

# --- Settings ------------------------------------------------------------------------------------

MemberName = Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]{1,40}$")]
Share = Annotated[float, Field(ge=0, le=1)]
Score = Annotated[float, Field(ge=1, le=5)]
Seconds = Annotated[float, Field(ge=0, le=3600)]

ScoreForm = Literal["six", "two"]
"""Six criteria, or their two sums asked for directly."""
Rubric = Literal["criteria", "reference"]
"""Raters score four criteria, or likeness to the scenario's reference."""
Withdraw = Literal["once", "always"]
"""What becomes of an utterance that is ready when the person has written: it is dropped unless the
one before it was (`once`), or whenever that happens (`always`)."""

PERSON: Final = "person"
"""The learner who is no simulation."""
MIN_AGENTS: Final = 2
MAX_AGENTS: Final = 6
_TAKEN: Final = ("learner", "all", "manager", "evaluator", "predictor")
"""Names that prompts or call keys need for somebody else."""


class GroupModels(BaseModels):
    """`[models]`: identifiers sent with the calls."""

    agent: str = Field(default="claude-haiku-4-5", min_length=1)
    """Peers, stage manager, evaluator and predictor."""
    learner: str = Field(default="claude-haiku-4-5", min_length=1)
    judge: str = Field(default="claude-sonnet-4-5", min_length=1)
    """Judges duels and codes messages."""
    raters: tuple[str, ...] = Field(
        default=("claude-sonnet-4-5", "claude-haiku-4-5", "claude-haiku-4-5"), min_length=1
    )


class GroupSettings(Settings):
    """`[group]`: agents, selection, limits."""

    model_config = ConfigDict(populate_by_name=True)

    agents: tuple[MemberName, ...] = ("bob", "alice", "charlie")
    """2 to 6 roles of the catalog; their order breaks ties."""
    weight: Share = Field(default=0.6, alias="lambda")
    """λ, the share of the external criteria in the total."""
    threshold: Score = 3.5
    interrupt_threshold: Score = 4.0
    silence: Silence = "raise"
    selection: SelectionRule = "prism"
    scores: ScoreForm = "six"
    max_events: int = Field(default=40, ge=2, le=1000, strict=True)
    max_silences: int = Field(default=3, ge=1, le=99, strict=True)
    """Silences in a row after which a simulated lesson ends and a chat waits for the person."""
    learner_patience: int = Field(default=3, ge=1, le=99, strict=True)
    """Messages of others after which the simulated learner is asked."""
    silence_s: Seconds = 10
    pause_s: Seconds = 4
    """What agents wait for the person after a message of theirs."""
    withdraw: Withdraw = "once"
    """Under `always` a person who writes faster than a cycle lasts never gets an answer."""
    person_name: MemberName = "Tom"
    person_lessons: int | None = Field(default=None, ge=1, strict=True)
    """Lessons that have a person, from the first one on; all when left out."""
    person_note: str = Field(default="", max_length=200)
    """Who the person was, for the reader of a report, such as "a script that typed"."""
    show_thoughts: Literal["after", "during", "never"] = "after"
    """When the person may read thoughts and scores."""
    warm_up: bool = True
    """In a duel everybody thinks after each scripted message, so that thoughts have a history."""
    rubric: Rubric = "criteria"
    ipa_codings: int = Field(default=2, ge=0, le=2, strict=True)
    """How often each message of a finished lesson is coded; 0 for no coding."""
    language: str = Field(default="English", min_length=1, max_length=40)

    @model_validator(mode="after")
    def _coherent(self) -> "GroupSettings":
        folded = [name.casefold() for name in self.agents]
        twice = [name for name in self.agents if folded.count(name.casefold()) > 1]
        if twice:
            raise ValueError(f"agents names {twice[0]!r} twice")
        if not MIN_AGENTS <= len(self.agents) <= MAX_AGENTS:
            raise ValueError(
                f"agents names {len(self.agents)}; a group has {MIN_AGENTS} to {MAX_AGENTS}"
            )
        taken = [name for name in self.agents if name.casefold() in _TAKEN]
        if taken:
            raise ValueError(f"agents names {taken[0]!r}, which stands for somebody else")
        if self.person_name.casefold() in (*folded, *_TAKEN):
            raise ValueError(f"person_name {self.person_name!r} is the name of somebody else")
        return self

    def rule(self) -> Rule:
        """How scores become a speaker, in exact numbers."""
        return Rule(
            weight=Fraction(str(self.weight)),
            threshold=Fraction(str(self.threshold)),
            interrupt_threshold=Fraction(str(self.interrupt_threshold)),
            silence=self.silence,
            selection=self.selection,
        )


# --- Roles and learners --------------------------------------------------------------------------

FIRST_TEXTS: Final = {
    "task_of_role": "$number. $text Expected: $expected",
    "learner_among_others": "$name (the learner)",
}
"""What was said before recordings held these templates. A text here never changes."""

ClassroomFunction = Literal["teaching", "discussion", "companionship", "management"]


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class RoleTask(_Part):
    """One of a role's numbered tasks."""

    text: str = Field(min_length=1)
    expected: str = Field(min_length=1)
    """What comes out of it."""
    functions: tuple[ClassroomFunction, ...] = ()
    """Classroom functions that it serves."""


class PeerRole(_Part):
    """A kind of peer."""

    title: str = Field(min_length=1)
    """How prompts name the role, without an article."""
    goal: str = Field(min_length=1)
    expertise: str = Field(min_length=1)
    style: str = Field(min_length=1)
    interests: str = Field(min_length=1)
    tasks: tuple[RoleTask, ...] = Field(min_length=1)


class Learner(_Part):
    """A simulated learner."""

    name: str = Field(pattern=r"^[A-Za-z0-9_-]{1,40}$")
    """Name of the learner in the chat."""
    character: str = Field(min_length=1)
    """How it behaves, in whole sentences."""


class GroupCatalog(BaseCatalog):
    """All roles, learners and templates that a study of groups can name."""

    roles: dict[str, PeerRole]
    learners: dict[str, Learner]


@cache
def load_group_catalog() -> GroupCatalog:
    """The shipped roles, learners and prompts."""
    return read_catalog(GroupCatalog, "tutorsim.systems.group")


# --- Study ---------------------------------------------------------------------------------------

DUEL = "duel"
"""Condition of a scenario, in which both systems meet."""


class Study(BaseStudy):
    """A study file of group lessons and duels."""

    later: ClassVar[Mapping[str, Any]] = {**BaseStudy.later, "group": {"withdraw": "always"}}
    system: Literal["group"] = "group"
    conditions: tuple[Literal["self_select", "next_speaker"], ...] = ("self_select", "next_speaker")
    learners: tuple[Name, ...] = ("tom_average",)
    """Simulated learners of the catalog, or `person`."""
    benchmarks: Mapping[Literal["lesson", "scenario"], BenchmarkSettings]  # type: ignore[assignment]
    group: GroupSettings = GroupSettings()
    models: GroupModels = GroupModels()

    @model_validator(mode="after")
    def _coherent(self) -> "Study":
        for field in ("conditions", "learners"):
            values = getattr(self, field)
            twice = sorted({value for value in values if values.count(value) > 1})
            if twice:
                raise ValueError(f"{field} names {twice[0]!r} twice")
            if not values:
                raise ValueError(f"{field} is empty, so the study has no lesson")
        if not self.benchmarks:
            raise ValueError("benchmarks is empty, so the study has no episode")
        return self
