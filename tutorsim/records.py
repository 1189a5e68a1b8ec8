"""What a run logs: one `EpisodeRecord` a line in `episodes.jsonl`, one `RunRecord` in `run.json`.

Candidates and winners are role names, never labels. `None` means that a thing was not
reached or not readable, and is never the same as zero. `read_run` and `read_episodes` are
the only way in, and the one place where an older version of the format would be upgraded.

Logs of other programs are welcome in the same shape. Fields with a default may be left out;
further fields are ignored.
"""

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from tutorsim.errors import LogError
from tutorsim.types import (
    BENCHMARKS,
    CONDITIONS,
    CUMULATIVE_BUDGET,
    DEFAULT_ROLES,
    PROTOCOLS,
    BallotStatus,
    Benchmark,
    Blinding,
    Condition,
    EpisodeStatus,
    Protocol,
    ProvenanceKind,
    ReadStatus,
    Stage,
)
from tutorsim.voting import Choice, Decision, masses_of

__all__ = [
    "EPISODES_FILE",
    "RUN_FILE",
    "SCHEMA_VERSION",
    "TIMINGS_FILE",
    "Attempt",
    "BallotRecord",
    "CallRecord",
    "EpisodeRecord",
    "Failure",
    "Note",
    "Proposal",
    "Provenance",
    "ReviewRecord",
    "RunRecord",
    "StudySettings",
    "TieRound",
    "Turn",
    "VerdictRecord",
    "read_episodes",
    "read_run",
    "to_line",
]

SCHEMA_VERSION = 1
RUN_FILE = "run.json"
EPISODES_FILE = "episodes.jsonl"
TIMINGS_FILE = "timings.jsonl"
LINE_ENDS = {ord(end): f"\\u{ord(end):04x}" for end in "\x85\u2028\u2029"}

R = TypeVar("R", bound=BaseModel)


class _Record(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore", allow_inf_nan=False)


class VerdictRecord(_Record):
    """What the unit tests said of the code in a student's message."""

    outcome: str
    """`pass`, `fail`, `timeout`, `error`, `no_code` or `infra_error`."""
    reason: str = ""
    """Why, in a few words; for `no_code`, why nothing was extracted."""
    near_limit: bool = False
    """The program used more than half of its time or memory."""
    unsafe: bool = False
    """The program ran without the sandbox's protection, on the user's word."""


class Attempt(_Record):
    """One message of the student, and what it was worth. Turn 0 comes before any tutoring."""

    turn: int
    text: str
    score: float | None
    """The judge's score in [0, 1]; `None` when the judge's reply held none."""
    score_rationale: str | None = None
    code: str | None = None
    """The program found in the message; `None` for science questions and where none was found."""
    code_passed: bool | None = None
    """Whether the program passed its tests; `None` for science questions and `infra_error`."""
    verdict: VerdictRecord | None = None
    """`None` for science questions."""


class Proposal(_Record):
    """One role's reply to the student, as drafted or as revised."""

    text: str
    rationale: str | None = None
    confidence: int | None = None
    """0 to 100, as stated by the model; `None` where not asked for or not readable."""
    status: ReadStatus = "valid"
    """`repaired`: no `PROPOSAL:` marker, the whole reply is the text; `missing`: empty text."""
    attempts: int = 1


class Note(_Record):
    """What a reviewer said of one proposal."""

    strength: str | None = None
    weakness: str | None = None


class ReviewRecord(_Record):
    """One reviewer's notes on the proposals it was shown."""

    reviewer: str
    labels: dict[str, str]
    """Label → role, as shown to this reviewer."""
    raw: str
    notes: dict[str, Note]
    """Role → notes, with label mentions as the reviewer wrote them."""
    status: ReadStatus = "valid"
    attempts: int = 1


class BallotRecord(_Record):
    """One voter's ballot."""

    voter: str
    protocol: Protocol
    labels: dict[str, str]
    """Label → role, as shown to this voter, in the order shown."""
    raw: str = ""
    """The last reply, as received."""
    parsed: Choice | None
    """The choice in roles; `None` for an abstention."""
    mass: dict[str, int]
    """Role → mass, every candidate present; empty for an abstention."""
    ballot_status: BallotStatus = "valid"
    attempts: int = 1
    """1, or 2 when the first reply could not be read."""
    raw_first: str | None = None
    """The first reply, where it could not be read and was asked for again."""


class TieRound(_Record):
    """The extra round among tied candidates."""

    candidates: tuple[str, ...]
    reviews: tuple[ReviewRecord, ...] = ()
    ballots: tuple[BallotRecord, ...]


class Turn(_Record):
    """One tutoring turn. The single tutor proposes only: no reviews, ballots or decision."""

    turn: int
    """From 1."""
    proposals_initial: dict[str, Proposal] = {}
    reviews: tuple[ReviewRecord, ...] = ()
    ballots_initial: tuple[BallotRecord, ...] = ()
    """Diagnostic ballots on the first drafts; never used for the decision."""
    proposals_final: dict[str, Proposal] = {}
    ballots_final: tuple[BallotRecord, ...] = ()
    tie_round: TieRound | None = None
    """`None` when the final vote was not tied."""
    decision: Decision | None = None
    """`None` for the single tutor."""
    delivered: str = ""
    """The text that the student saw."""


class CallRecord(_Record):
    """One model call, in call order."""

    key: str
    """`turn/stage/agent/attempt`."""
    stage: Stage
    model: str
    """The model identifier that the reply names."""
    stop_reason: str | None
    input_tokens: int
    output_tokens: int


class Failure(_Record):
    """Why an episode could not be finished."""

    key: str
    """The call that failed."""
    error: str


class EpisodeRecord(_Record):
    """One student, one task, one condition, from the first attempt to the last."""

    schema_version: int = SCHEMA_VERSION
    episode_id: str
    benchmark: Benchmark
    task_id: str
    persona: str
    condition: Condition
    repeat: int = 1
    """From 1."""
    question: str = ""
    """What the student was asked."""
    reference: str = ""
    """What the judge compared with; no other agent saw it."""
    status: EpisodeStatus = "complete"
    failure: Failure | None = None
    """`None` unless the status is `failed`."""
    attempts: tuple[Attempt, ...]
    turns: tuple[Turn, ...]
    turns_taken: int
    """Tutoring turns delivered and answered; 0 when the first attempt succeeded."""
    initial_correctness: float | None = None
    final_correctness: float | None = None
    initial_code_passed: bool | None = None
    code_passed: bool | None = None
    success: bool | None = None
    """`None` for a failed episode."""
    calls: tuple[CallRecord, ...] = ()


class Provenance(_Record):
    """What answered the calls of a recording."""

    kind: ProvenanceKind
    name: str
    """The endpoint's name: `Anthropic API`, the stand-in's version, or the user's word."""
    models: tuple[str, ...] = ()
    """Model identifiers that the replies name, sorted."""
    recorded_from: str | None = None
    """First day of recording, ISO date in UTC; `None` before the first reply."""
    recorded_to: str | None = None


class StudySettings(_Record):
    """The settings that later readers need; the recording's `study.toml` has them all."""

    name: str = "unnamed"
    seed: int = 0
    conditions: tuple[Condition, ...] = CONDITIONS
    personas: tuple[str, ...] = ()
    roles: tuple[str, ...] = DEFAULT_ROLES
    baseline_role: str = "baseline"
    benchmarks: tuple[Benchmark, ...] = BENCHMARKS
    max_turns: int = 3
    success_threshold: float = 0.75
    blinding: Blinding = "per_reader"
    fallback_order: tuple[str, ...] = DEFAULT_ROLES
    cumulative_budget: int = CUMULATIVE_BUDGET
    vote_criterion: str = ""
    repeats: int = 1
    models: dict[str, str] = {}
    """`tutor`, `judge`, `student` → model identifier asked for."""


class RunRecord(_Record):
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


def to_line(record: BaseModel) -> str:
    """A record as one line of JSON without the line end; the same record gives the same bytes.

    Line ends of Unicode are escaped as those of ASCII are, so it is one line to every program.
    """
    value = record.model_dump(mode="json")
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return text.translate(LINE_ENDS)


def read_run(folder: Path) -> RunRecord:
    """Read `run.json` of a run folder, and check that `episodes.jsonl` is the one it names.

    Raises:
        LogError: If a file is missing, truncated, edited, or of another version.
    """
    path, episodes = folder / RUN_FILE, folder / EPISODES_FILE
    try:
        run = _checked(path.read_text(encoding="utf-8"), path, RunRecord, 1)
        with episodes.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
    except (OSError, UnicodeDecodeError) as error:
        raise _unreadable(folder, error) from error
    if run.episodes_sha256 not in (None, digest):
        raise LogError(
            f"{episodes} is not the log that {path.name} names.",
            why="Its SHA-256 is another one: the file was cut or edited.",
            hint="Write it again with `tutorsim replay`, into a new folder.",
        )
    return run


def read_episodes(folder: Path) -> Iterator[EpisodeRecord]:
    """Read `episodes.jsonl` of a run folder, one record at a time.

    Raises:
        LogError: If the file is missing, or a line is truncated, of another version, or no record.
    """
    path = folder / EPISODES_FILE
    try:
        with path.open(encoding="utf-8") as lines:
            for number, line in enumerate(lines, start=1):
                yield _checked(line, path, EpisodeRecord, number)
    except (OSError, UnicodeDecodeError) as error:
        raise _unreadable(path, error) from error


def _unreadable(path: Path, error: Exception) -> LogError:
    return LogError(
        f"{path} cannot be read.",
        why=str(error),
        hint="Point at a folder that `tutorsim run` or `tutorsim replay` wrote.",
    )


def _checked(text: str, path: Path, model: type[R], line: int) -> R:
    try:
        data = json.loads(text)
        if "\\u" in text:
            json.dumps(data, ensure_ascii=False).encode()  # refuses lone surrogates
        version = data["schema_version"]
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise LogError(
            f"{path}, line {line}: this is not a complete record.",
            why=str(error),
            hint="The file was cut or edited; write it again with `tutorsim replay`.",
        ) from error
    if version != SCHEMA_VERSION:
        raise LogError(
            f"{path}, line {line}: the record has format version {version!r}.",
            why=f"This tutorsim reads version {SCHEMA_VERSION}.",
            hint="Write the log again from its recording with `tutorsim replay`.",
        )
    try:
        if model is EpisodeRecord:
            _complete(data)
        return model.model_validate(data)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"])
        raise _misshapen(f"{path}, line {line}: field {place}: {first['msg']}.") from error
    except (AttributeError, TypeError) as error:
        raise _misshapen(f"{path}, line {line}: a turn or a ballot is no object.") from error


def _misshapen(what: str) -> LogError:
    return LogError(
        what,
        why="The record does not have the logged format.",
        hint="The file was edited; write it again with `tutorsim replay`.",
    )


def _complete(data: dict[str, Any]) -> None:
    """Give ballots the protocol and the masses that their episode and choice imply."""
    for turn in data.get("turns") or ():
        tie_round = turn.get("tie_round") or {}
        for name, source in (
            ("ballots_initial", turn),
            ("ballots_final", turn),
            ("ballots", tie_round),
        ):
            for ballot in source.get(name) or ():
                _complete_ballot(ballot, data.get("condition"))


def _complete_ballot(ballot: dict[str, Any], condition: Any) -> None:
    protocol = ballot.setdefault("protocol", condition)
    choice, labels = ballot.get("parsed"), ballot.get("labels") or {}
    if "mass" in ballot or protocol not in PROTOCOLS:
        return
    roles = list(labels.values())
    if ballot.get("ballot_status") == "abstained":
        choice = None
    elif isinstance(choice, list):
        choice = tuple(choice)
    ballot["mass"] = masses_of(choice, roles, protocol=protocol)
