"""The head of a run: its study, what answered, and what it continues."""

from tutorsim.records.base import SCHEMA_VERSION, Record
from tutorsim.types import (
    BENCHMARKS,
    CUMULATIVE_BUDGET,
    DEFAULT_ROLES,
    PUBLISHED_CONDITIONS,
    BallotFormat,
    Benchmark,
    Blinding,
    Condition,
    Protocol,
    ProvenanceKind,
    TiePolicy,
)

__all__ = ["Branch", "BranchedEpisode", "Provenance", "RunRecord", "StudySettings"]


class Provenance(Record):
    """What answered the calls of a recording."""

    kind: ProvenanceKind
    name: str
    """The endpoint's name: `Anthropic API`, the stand-in's version, or the user's word."""
    models: tuple[str, ...] = ()
    """Model identifiers that the replies name, sorted."""
    recorded_from: str | None = None
    """First day of recording, ISO date in UTC; `None` before the first reply."""
    recorded_to: str | None = None


class BranchedEpisode(Record):
    """One episode that a branch takes up again."""

    turn: int
    """The first turn that the alternative decides."""
    winners: tuple[str, ...]
    """Role delivered in each turn of the parent's episode."""


class Branch(Record):
    """What a branch of a recording changes, and from where on."""

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


class StudySettings(Record):
    """The settings that later readers need; the recording's `study.toml` has them all."""

    name: str = "unnamed"
    seed: int = 0
    conditions: tuple[Condition, ...] = PUBLISHED_CONDITIONS
    personas: tuple[str, ...] = ()
    roles: tuple[str, ...] = DEFAULT_ROLES
    baseline_role: str = "baseline"
    benchmarks: tuple[Benchmark, ...] = BENCHMARKS
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


class RunRecord(Record):
    """The head of a run folder."""

    schema_version: int = SCHEMA_VERSION
    study: StudySettings = StudySettings()
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
