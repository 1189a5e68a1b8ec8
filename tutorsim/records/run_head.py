"""The head of a run: its study, what answered, and what it continues."""

from typing import Any, ClassVar

from pydantic import SerializeAsAny, field_validator

from tutorsim.errors import LogError
from tutorsim.records.base_record import SCHEMA_VERSION, LastingRecord, Record
from tutorsim.system_registry import DEFAULT_SYSTEM
from tutorsim.vocabularies import (
    BENCHMARKS,
    CUMULATIVE_BUDGET,
    DEFAULT_ROLES,
    PUBLISHED_CONDITIONS,
    BallotFormat,
    Blinding,
    Condition,
    LabelOrder,
    Placebo,
    Protocol,
    ProvenanceKind,
    TiePolicy,
)

__all__ = [
    "Branch",
    "BranchedEpisode",
    "Inputs",
    "PanelMakeup",
    "Provenance",
    "RunRecord",
    "StudyHead",
    "StudySettings",
    "SystemSettings",
    "VotingSettings",
]


class Provenance(LastingRecord):
    """What answered the calls of a recording."""

    first_form: ClassVar = frozenset({"kind", "name", "models", "recorded_from", "recorded_to"})

    kind: ProvenanceKind
    name: str
    """The endpoint's name: `Anthropic API`, the stand-in's version, or the user's word."""
    models: tuple[str, ...] = ()
    """Model identifiers that the replies name, sorted."""
    recorded_from: str | None = None
    """First day of recording, ISO date in UTC; `None` before the first reply."""
    recorded_to: str | None = None
    limits: str = ""
    """What the recording cannot tell, in the words of who made it; shown with its figures."""


class Inputs(Record):
    """The run whose texts a study is of, such as the replies that an audit labels."""

    run: str
    """Name of its study."""
    provenance: Provenance
    """What gave the texts."""
    recording_digest: str = ""
    """Of the run."""


class BranchedEpisode(Record):
    """One episode that a branch takes up again."""

    turn: int
    """The first turn that the alternative decides."""
    winners: tuple[str, ...]
    """Role delivered in each turn of the parent's episode."""


class Branch(LastingRecord):
    """What a branch of a recording changes, and from where on."""

    first_form: ClassVar = frozenset(
        {
            *("parent", "parent_study", "parent_recording", "rule", "fallback_order"),
            *("tie_policy", "roles", "model", "continuations", "covered", "episodes"),
        }
    )

    parent: str
    """Name of the study that it continues."""
    parent_study: str
    """Study digest of the parent."""
    parent_recording: str
    """Recording digest of the parent."""
    rule: Protocol | None = None
    """The rule that decides; `None` for the logged one."""
    fallback_order: tuple[str, ...] | None = None
    tie_policy: TiePolicy | None = None
    roles: tuple[str, ...] | None = None
    """The panel after the path was left; `None` for the logged one."""
    model: str | None = None
    """The tutors' model after the path was left; `None` for the logged one."""
    continuations: int = 1
    """Draws of each episode's future."""
    covered: tuple[str, ...] = ()
    """Episodes that the alternative cannot change, kept as they were logged."""
    episodes: dict[str, BranchedEpisode] = {}
    """Parent's episode id → where it is taken up again."""


class StudyHead(Record):
    """What a run says of its study, whatever the system."""

    name: str = "unnamed"
    seed: int = 0

    @property
    def system_name(self) -> str:
        """The system that the study is of."""
        return DEFAULT_SYSTEM


class VotingSettings(Record):
    """What a recount needs to know of the votes of a system's runs."""

    fallback_order: tuple[str, ...]
    """Who is preferred among tied candidates, first to last."""
    cumulative_budget: int | None = CUMULATIVE_BUDGET
    """`None` if the log of another program does not say it."""
    label_order: LabelOrder | None = "per_reader"
    """`None` likewise."""


class SystemSettings(StudyHead):
    """The settings of a study of any system but the panel."""

    system: str
    conditions: tuple[str, ...]
    repeats: int = 1
    benchmarks: tuple[str, ...] = ()
    settings: dict[str, Any] = {}
    """The system's settings that are not their default."""
    voting: VotingSettings | None = None
    """`None` where nobody votes."""

    @property
    def inputs(self) -> Inputs | None:
        """The run whose texts the study is of; `None` for a study of its own tasks."""
        told = self.settings.get("inputs")
        return None if told is None else Inputs.model_validate(told)

    @property
    def system_name(self) -> str:
        return self.system


class PanelMakeup(Record):
    """One panel of a study that compares several."""

    roles: tuple[str, ...]
    """Who sits on it, by the names that ballots have."""
    fallback_order: tuple[str, ...]
    placebo: Placebo | None = None
    """`None` for a panel of chosen roles."""
    copied: str | None = None
    """The role that all members of a `copied` panel have; `None` for any other."""


class StudySettings(StudyHead, LastingRecord):
    """The panel's settings that later readers need; the recording's `study.toml` has them all."""

    first_form: ClassVar = frozenset(
        {
            *("name", "seed", "conditions", "personas", "roles", "baseline_role", "benchmarks"),
            *("max_turns", "success_threshold", "blinding", "fallback_order", "tie_policy"),
            *("cumulative_budget", "rich_protocol", "vote_formats", "vote_criterion", "repeats"),
            *("models", "branch"),
        }
    )

    conditions: tuple[Condition, ...] = PUBLISHED_CONDITIONS
    personas: tuple[str, ...] = ()
    roles: tuple[str, ...] = DEFAULT_ROLES
    baseline_role: str = "baseline"
    benchmarks: tuple[str, ...] = BENCHMARKS
    max_turns: int = 3
    success_threshold: float = 0.75
    blinding: Blinding = "per_reader"
    fallback_order: tuple[str, ...] = DEFAULT_ROLES
    tie_policy: TiePolicy = "tie_round"
    cumulative_budget: int = CUMULATIVE_BUDGET
    rich_protocol: Protocol = "cumulative"
    """The protocol that decides where ballots are rich."""
    vote_formats: tuple[BallotFormat, ...] = ()
    """Formats of the diagnostic ballots on the final proposals."""
    vote_criterion: str = ""
    repeats: int = 1
    models: dict[str, str] = {}
    """`tutor`, `judge`, `student` → model identifier asked for."""
    branch: Branch | None = None
    """What a branch of another recording changes; `None` for a study of its own."""
    ask_cut_off_again: bool = False
    """Whether a reply that reached `max_tokens` was asked for once more."""
    panels: dict[str, PanelMakeup] = {}
    """The panels that the study compares; empty for a study of one. `roles` and `fallback_order`
    are then those of all panels together."""


class RunRecord(LastingRecord):
    """The head of a run folder."""

    first_form: ClassVar = frozenset(
        {
            *("schema_version", "study", "study_digest", "recording_digest", "episodes_sha256"),
            *("provenance", "packages", "episodes"),
        }
    )

    @field_validator("study", mode="before")
    @classmethod
    def _of_its_system(cls, value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        kind = SystemSettings if "system" in value else StudySettings
        return kind.model_validate(value)

    @property
    def system(self) -> str:
        """The system that the run is of."""
        return self.study.system_name

    @property
    def inputs(self) -> Inputs | None:
        """The run whose texts the study is of; `None` for a study of its own tasks."""
        return self.study.inputs if isinstance(self.study, SystemSettings) else None

    @property
    def branch(self) -> Branch | None:
        """What a branch of another recording changes; `None` for a study of its own."""
        return self.study.branch if isinstance(self.study, StudySettings) else None

    @property
    def panels(self) -> dict[str, PanelMakeup]:
        """The panels that the study compares by name; empty for a study of one panel or none."""
        return self.study.panels if isinstance(self.study, StudySettings) else {}

    @property
    def voting(self) -> VotingSettings | None:
        """What a recount needs to know of the votes; `None` where nobody votes."""
        study = self.study
        if isinstance(study, StudySettings):
            return VotingSettings(
                fallback_order=study.fallback_order,
                cumulative_budget=study.cumulative_budget,
                label_order=study.blinding,
            )
        return study.voting if isinstance(study, SystemSettings) else None

    @property
    def panel(self) -> StudySettings:
        """The settings of a panel's study.

        Raises:
            LogError: If the run is of another system.
        """
        if isinstance(self.study, StudySettings):
            return self.study
        raise LogError(
            f"The run is of the system {self.system!r}.",
            why="What is asked needs a panel of tutors.",
            hint="Use the views of its own system: `tutorsim summary`, `report`, `export`.",
        )

    schema_version: int = SCHEMA_VERSION
    study: SerializeAsAny[StudyHead] = StudySettings()
    """`StudySettings` of a panel; `SystemSettings`, which name their system, of any other."""
    study_digest: str = ""
    """SHA-256 over settings, prompts and tasks."""
    recording_digest: str = ""
    """SHA-256 over the recording's cassettes and verdicts."""
    episodes_sha256: str | None = None
    """SHA-256 of `episodes.jsonl`; a log that says none is not checked for edits."""
    provenance: Provenance = Provenance(kind="relay", name="unnamed")
    packages: dict[str, str] = {}
    """Package → version at the time of recording."""
    episodes: int = 0
