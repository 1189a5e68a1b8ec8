"""A run folder: its head (`run.json`), and reading it.

`read_run` and `read_lines` are the only way in, and the place where an older format is upgraded.

A retest stands in the folder beside the log: recorded prompts asked again, and what was said this
time. `retest.json` is its head, and `retest.jsonl` has one `RetestRecord` a line in the order of
the log. The answers that the log holds are not repeated there; they are the first asking, and these
are the further ones.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, fields, is_dataclass
from functools import cache, reduce
from operator import or_
from pathlib import Path
from types import GenericAlias, MappingProxyType, new_class
from typing import (
    Any,
    ClassVar,
    Final,
    Literal,
    NamedTuple,
    TypeVar,
    get_args,
    get_origin,
    get_type_hints,
)

from pydantic import BaseModel, SerializeAsAny, ValidationError, field_validator
from pydantic_core import PydanticUndefined

from tutorsim.ballot_reading_and_decisions import masses_of
from tutorsim.errors import LogError
from tutorsim.records.base_record_its_line_and_fields_added_later import (
    SCHEMA_VERSION,
    LastingRecord,
    Record,
    part_of_record,
)
from tutorsim.records.panel_episode_and_base_of_any_episode import (
    BallotRecord,
    EpisodeRecord,
    Failure,
)
from tutorsim.regular_files_and_digests import read_named, sha256_named
from tutorsim.system_registry import DEFAULT_SYSTEM
from tutorsim.vocabularies import (
    BENCHMARKS,
    CUMULATIVE_BUDGET,
    DEFAULT_ROLES,
    PROTOCOLS,
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

# --- Run head ------------------------------------------------------------------------------------


MIXED: Final = "mixed: "
"""Stands in the name of a recording that several kinds answered, before the kinds."""


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

    @property
    def kinds(self) -> tuple[ProvenanceKind, ...]:
        """Kinds of what answered: of a mixture, a relay, also those that its name says."""
        said = self.name.rpartition(MIXED)[2] if MIXED in self.name else ""
        return (self.kind, *(kind for kind in get_args(ProvenanceKind) if kind in said))


class Inputs(Record):
    """The run whose texts a study is of, such as the replies that an audit labels."""

    run: str
    """Name of its study."""
    provenance: Provenance
    """What gave the texts."""
    recording_digest: str = ""
    """Digest of the run's recording."""


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


class VotingSettings(Record):
    """What a recount needs to know of the votes of a system's runs."""

    fallback_order: tuple[str, ...]
    """Who is preferred among tied candidates, first to last."""
    cumulative_budget: int | None = CUMULATIVE_BUDGET
    """`None` if the log of another program does not say it."""
    label_order: LabelOrder | None = "per_reader"
    """`None` likewise."""


class PanelMakeup(Record):
    """One panel of a study that compares several."""

    roles: tuple[str, ...]
    """Who sits on it, by the names that ballots have."""
    fallback_order: tuple[str, ...]
    placebo: Placebo | None = None
    """`None` for a panel of chosen roles."""
    copied: str | None = None
    """The role that all members of a `copied` panel have; `None` for any other."""


class SuccessSettings(NamedTuple):
    """What decides whether a student succeeds."""

    threshold: float
    """The least score of the judge that is a success."""
    max_turns: int
    """Tutoring turns after which an episode ends without one."""
    programs: bool
    """Whether some answers are programs, whose tests have to pass too."""


class StudyFacts(NamedTuple):
    """What later readers ask of a study of any system."""

    voting: VotingSettings | None = None
    """`None` where nobody votes."""
    success: SuccessSettings | None = None
    """`None` where no student is taught up to a score."""
    branch: Branch | None = None
    """What a branch of another recording changes; `None` for a study of its own."""
    panels: Mapping[str, PanelMakeup] = MappingProxyType({})
    """The panels that the study compares by name; empty for a study of one panel or none."""


class StudyHead(Record):
    """What a run says of its study, whatever the system."""

    name: str = "unnamed"
    seed: int = 0

    @property
    def system_name(self) -> str:
        """The system that the study is of."""
        return DEFAULT_SYSTEM

    @property
    def inputs(self) -> Inputs | None:
        """The run whose texts the study is of; `None` for a study of its own tasks."""
        return None

    @property
    def facts(self) -> StudyFacts:
        """What of its settings the readers of any run ask for."""
        return StudyFacts()

    @property
    def of_panel(self) -> "StudySettings":
        """The settings of a panel's study. `LogError` if the study is of another system."""
        raise LogError(
            f"The run is of the system {self.system_name!r}.",
            why="What is asked needs a panel of tutors.",
            hint="Use the views of its own system: `tutorsim summary`, `report`, `export`.",
        )


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
        told = self.settings.get("inputs")
        return None if told is None else Inputs.model_validate(told)

    @property
    def system_name(self) -> str:
        return self.system

    @property
    def facts(self) -> StudyFacts:
        return StudyFacts(self.voting)


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

    @property
    def of_panel(self) -> "StudySettings":
        return self

    @property
    def deciding_order(self) -> tuple[str, ...]:
        """The fallback order that decides: a branch's own where it changes the order.

        What a branch keeps as logged has the same winners under both.
        """
        branch = self.branch
        if branch is None:
            return self.fallback_order
        order = branch.fallback_order or self.fallback_order
        rest = (*(branch.roles or ()), *self.roles)
        return tuple(dict.fromkeys((*order, *rest)))

    @property
    def facts(self) -> StudyFacts:
        voting = VotingSettings(
            fallback_order=self.deciding_order,
            cumulative_budget=self.cumulative_budget,
            label_order=self.blinding,
        )
        programs = "humaneval" in self.benchmarks
        success = SuccessSettings(self.success_threshold, self.max_turns, programs)
        return StudyFacts(voting, success, self.branch, self.panels)


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
        return self.study.inputs

    @property
    def kinds(self) -> tuple[ProvenanceKind, ...]:
        """Kinds of what answered its calls, and of what gave the texts that it is of."""
        stated = (self.provenance, *([self.inputs.provenance] if self.inputs else []))
        return tuple(dict.fromkeys(kind for one in stated for kind in one.kinds))

    @property
    def branch(self) -> Branch | None:
        """What a branch of another recording changes; `None` for a study of its own."""
        return self.study.facts.branch

    @property
    def panels(self) -> Mapping[str, PanelMakeup]:
        """The panels that the study compares by name; empty for a study of one panel or none."""
        return self.study.facts.panels

    @property
    def voting(self) -> VotingSettings | None:
        """What a recount needs to know of the votes; `None` where nobody votes."""
        return self.study.facts.voting

    @property
    def success(self) -> SuccessSettings | None:
        """What decides whether a student succeeds; `None` where no student is taught."""
        return self.study.facts.success

    @property
    def panel(self) -> StudySettings:
        """The settings of a panel's study. `LogError` if the run is of another system."""
        return self.study.of_panel

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


# --- Run folder ----------------------------------------------------------------------------------

RUN_FILE = "run.json"
EPISODES_FILE = "episodes.jsonl"
TIMINGS_FILE = "timings.jsonl"
OWN = f'{{"schema_version":{SCHEMA_VERSION},'.encode()
"""How each line starts that `tutorsim.records.to_line` writes."""
AT_ONCE = 1 << 20
"""Bytes of a log that are read at once; its lines are long."""

R = TypeVar("R", bound=BaseModel)


def read_run(folder: Path) -> RunRecord:
    """Read `run.json` of a run folder, and check that `episodes.jsonl` is the one it names.

    `LogError` if a file is missing, truncated, edited, or of another version.
    """
    path, episodes = folder / RUN_FILE, folder / EPISODES_FILE
    try:
        run = _checked(read_named(path).decode(), path, RunRecord, 1)
        digest = sha256_named(episodes)
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
    """Read `episodes.jsonl` of a panel's run folder, one record at a time."""
    yield from read_lines(folder, EpisodeRecord)


def read_lines(
    folder: Path, record: type[R], *, without: frozenset[str] = frozenset()
) -> Iterator[R]:
    """Read `episodes.jsonl` of any system's run folder, one record at a time.

    Fields in `without`, such as `calls.model`, are not read and have their default. `LogError` if a
    line is no record.
    """
    path, record = folder / EPISODES_FILE, _without(record, without)
    try:
        with path.open("rb", buffering=AT_ONCE) as lines:
            for number, line in enumerate(lines, start=1):
                yield _as_written(line, record) or _checked(line.decode(), path, record, number)
    except (OSError, UnicodeDecodeError) as error:
        raise _unreadable(path, error) from error


@cache
def _without(model: type[R], absent: frozenset[str]) -> type[R]:
    """A model without some fields: each is its default on the class, and in no line.

    One without a default is missing, so that whoever looks at it all the same fails at once.
    """
    if not absent:
        return model
    own = {name for name in absent if "." not in name}
    inner: dict[str, set[str]] = {}
    for name, _, rest in (name.partition(".") for name in absent - own):
        inner.setdefault(name, set()).add(rest)
    kept = inner.keys() - own
    types = {n: _typed_without(model.model_fields[n].annotation, frozenset(inner[n])) for n in kept}
    defaults = {name: model.model_fields[name].get_default() for name in own | kept}
    space = {
        **{name: value for name, value in defaults.items() if value is not PydanticUndefined},
        "__annotations__": {**dict.fromkeys(own, ClassVar[Any]), **types},
    }
    return new_class(model.__name__, (model,), exec_body=lambda body: body.update(space))


def _typed_without(type_: Any, absent: frozenset[str]) -> Any:
    """The type of a field whose records lack some fields.

    These are `M`, `M | None`, `tuple[M, ...]` or `dict[K, M]`.
    """
    if isinstance(type_, type) and issubclass(type_, BaseModel):
        return _without(type_, absent)
    if isinstance(type_, type) and is_dataclass(type_):
        return _part_without(type_, absent)
    origin = get_origin(type_)
    if origin is None or origin is Literal:
        return type_
    parts = tuple(_typed_without(part, absent) for part in get_args(type_))
    return GenericAlias(origin, parts) if origin in (tuple, dict) else reduce(or_, parts)


@cache
def _part_without(part: Any, absent: frozenset[str]) -> Any:
    """A part of a record without some fields: likewise, and with no room for them."""
    space: dict[str, Any] = {n: v for n, v in vars(part).items() if isinstance(v, property)}
    defaults = {one.name: one.default for one in fields(part) if one.default is not MISSING}
    types = get_type_hints(part)
    kept = {
        one.name: ClassVar[Any] if one.name in absent else types[one.name] for one in fields(part)
    }
    space |= {**defaults, "__annotations__": kept, "__module__": part.__module__}
    return part_of_record(type(part.__name__, (), space))


def _as_written(line: bytes, model: type[R]) -> R | None:
    """A record of this version that leaves nothing out; `None` for any other text."""
    if not line.startswith(OWN):
        return None
    try:
        record = model.model_validate_json(line)
    except ValidationError:
        return None
    return record if getattr(record, "schema_version", None) == SCHEMA_VERSION else None


def _unreadable(path: Path, error: Exception) -> LogError:
    is_file = isinstance(error, NotADirectoryError)
    return LogError(
        f"{path} cannot be read.",
        why="It is a file, and a run is a folder." if is_file else str(error),
        hint="Point at a folder that `tutorsim run` or `tutorsim replay` wrote.",
    )


def _checked(text: str, path: Path, model: type[R], line: int) -> R:
    try:
        data = json.loads(text)
        if "\\u" in text:
            json.dumps(data, ensure_ascii=False).encode()  # refuses lone surrogates
        version = data["schema_version"]
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        lacks = "It has no schema_version." if isinstance(error, KeyError | TypeError) else None
        raise LogError(
            f"{path}, line {line}: this is not a complete record.",
            why=lacks or str(error),
            hint="The file was cut or edited; write it again with `tutorsim replay`.",
        ) from error
    if version != SCHEMA_VERSION:
        raise LogError(
            f"{path}, line {line}: the record has format version {version!r}.",
            why=f"This tutorsim reads version {SCHEMA_VERSION}.",
            hint="Write the log again from its recording with `tutorsim replay`.",
        )
    try:
        if issubclass(model, EpisodeRecord):
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


# --- Run panels ----------------------------------------------------------------------------------


def panels_of(run: RunRecord | None) -> Mapping[str, PanelMakeup]:
    """The panels that a run compares, by name; empty where it has one panel or is no run."""
    return {} if run is None else run.panels


def sizes_of(run: RunRecord) -> tuple[int, ...]:
    """How many tutors a panel of a run has; every size where it compares panels."""
    sizes = {len(made.roles) for made in run.panels.values()} or {len(run.panel.roles)}
    return tuple(sorted(sizes))


def makeup_words(makeup: PanelMakeup) -> str:
    """Who sits on a panel, in its order, for a table."""
    if makeup.placebo == "copied":
        return f"{makeup.copied}, {len(makeup.roles)} times"
    drawn = " (drawn by lot)" if makeup.placebo == "random" else ""
    return " › ".join(makeup.fallback_order) + drawn


def of_one_panel(run: RunRecord, name: str) -> RunRecord:
    """The head of a run as if its study had one of its panels alone, and were named so."""
    study, makeup = run.panel, run.panels[name]
    branch = study.branch
    if branch is not None and branch.fallback_order is not None:
        seated = {*makeup.roles, *(branch.roles or ())}
        order = tuple(role for role in branch.fallback_order if role in seated)
        branch = branch.model_copy(update={"fallback_order": order})
    changed: dict[str, object] = {
        "name": f"{study.name}, panel {name}",
        "roles": makeup.roles,
        "fallback_order": makeup.fallback_order,
        "panels": {},
        "branch": branch,
    }
    return run.model_copy(update={"study": study.model_copy(update=changed)})


# --- Retest --------------------------------------------------------------------------------------

RETEST_HEAD_FILE: Final = "retest.json"
RETEST_FILE: Final = "retest.jsonl"


class RetestVote(Record):
    """One vote of one turn, asked again of all its voters."""

    turn: int
    stage: str
    """The vote's, as the ballots of a log name it."""
    repeats: tuple[tuple[BallotRecord, ...], ...]
    """One entry per repeat: a ballot of every voter, in the order of the log."""
    failures: tuple[Failure, ...] = ()
    """Calls that failed for good. Repeats that lack a ballot for it are not among `repeats`."""


class RetestReply(Record):
    """One prompt whose reply is no ballot, asked again."""

    turn: int
    stage: str
    """Stage of the call."""
    agent: str
    """Who was asked."""
    values: tuple[Any, ...]
    """One entry per repeat: what was read of the reply, in its system's form; `None` where nothing
    could be."""
    failures: tuple[Failure, ...] = ()
    """Calls that failed for good, which have no entry among `values`."""


class RetestRecord(Record):
    """What was asked again of one episode."""

    schema_version: int = SCHEMA_VERSION
    episode_id: str
    votes: tuple[RetestVote | RetestReply, ...]
    """A vote of several voters each, or a single prompt."""


class RetestHead(Record):
    """What was asked again, and what answered."""

    schema_version: int = SCHEMA_VERSION
    recording_digest: str
    """The recording whose prompts were asked again."""
    repeats: int
    """Further askings of every prompt; fewer of a vote where a call failed."""
    stages: tuple[str, ...]
    sample: int | None = None
    """Number of turns drawn; `None` for all."""
    seed: int = 0
    """What the turns were drawn by."""
    provenance: Provenance
    """What answered this time."""
    retest_sha256: str | None = None
    """SHA-256 of `retest.jsonl`."""


class Retest(NamedTuple):
    """A retest as read from a run folder."""

    head: RetestHead
    episodes: tuple[RetestRecord, ...]


def read_retest(folder: Path) -> Retest | None:
    """Read the retest of a run folder.

    `None` if the run has none; `LogError` if its files are damaged or one of the two is missing.
    """
    head_path, path = folder / RETEST_HEAD_FILE, folder / RETEST_FILE
    if not head_path.exists() and not path.exists():
        return None
    try:
        head = RetestHead.model_validate(json.loads(read_named(head_path)))
        data = read_named(path)
        if head.retest_sha256 not in (None, hashlib.sha256(data).hexdigest()):
            raise ValueError(f"{path.name} is not the file that {head_path.name} names")
        lines = data.decode().splitlines()
        return Retest(head, tuple(RetestRecord.model_validate_json(line) for line in lines))
    except (OSError, ValueError, ValidationError) as error:
        raise LogError(
            f"{folder}: the retest beside the log cannot be read.",
            why=str(error).partition("\n")[0],
            hint="Write it again from its recording with `tutorsim replay`.",
        ) from error
