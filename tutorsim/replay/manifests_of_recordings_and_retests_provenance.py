"""The manifest of a recording and of its retest: what it is of, what answered it, and digests."""

import hashlib
import importlib.metadata
import json
import platform
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, ClassVar, Final, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from tutorsim.errors import RecordingError
from tutorsim.model import json_value
from tutorsim.records import EpisodeLine, Failure, Provenance, RetestRecord, to_line
from tutorsim.records.run_head_and_reading_run_folders_and_retests import MIXED
from tutorsim.replay.cassette_file import Cassette, read_inside
from tutorsim.replay.durable_files_folder_lock_key_leaks import write_atomic
from tutorsim.replay.recorded_calls_event_streams_and_mismatches import (
    STANDIN_HEADER,
    cassette_name,
    is_episode_id,
)
from tutorsim.vocabularies import EpisodeStatus, ProvenanceKind

# --- Manifest ------------------------------------------------------------------------------------

MANIFEST_FILE: Final = "manifest.json"
SESSION_FILE: Final = ".recording.json"
"""Stands in a recording's folder while it is being made or taken up again."""
MANIFEST_SCHEMA: Final = 1
SHA256: Final = r"^[0-9a-f]{64}$"
"""A digest, in hexadecimal."""


class Part(BaseModel):
    """A frozen model of a part of a manifest; fields that it does not know are refused."""

    model_config = ConfigDict(defer_build=True, frozen=True, extra="forbid")


class Entry(Part):
    """One episode of a folder."""

    episode_id: str


class Head(Part):
    """The head of a folder of cassettes."""

    file: ClassVar[str]
    """Name of the file in the folder."""
    later: ClassVar[tuple[str, ...]] = ()
    """Fields that came later, and are left out while they say nothing."""

    episodes: Sequence[Entry]


H = TypeVar("H", bound=Head)


class EpisodeEntry(Entry):
    """One episode of a recording."""

    status: EpisodeStatus
    failure: Failure | None
    """`None` unless the status is `failed`."""
    calls: int
    """Recorded replies."""
    cassette_sha256: str = Field(pattern=SHA256)
    """Digest of the cassette's text, in whichever form its file is."""
    requests_sha256: str = Field(pattern=SHA256)
    """Digest of the cassette's keys and requests."""
    record_sha256: str = Field(pattern=SHA256)
    """Digest of the episode's log line."""
    outcome: dict[str, Any]
    """What came of the episode in its system's words, short enough to review in a diff."""

    @property
    def has_failures(self) -> bool:
        """Whether some call failed for good."""
        return self.failure is not None

    def failed(self, key: str) -> Failure | None:
        """How a call failed that the cassette does not hold; `None` where none failed."""
        return self.failure


class Manifest(Head):
    """The head of a recording's folder.

    manifest = read_manifest(Path("cassettes/demo"))
    manifest.episodes[0].cassette_sha256
    manifest.recording_digest()  # over everything that a replay plays
    """

    file = MANIFEST_FILE
    later = ("inputs_sha256", "retested")

    schema_version: int = MANIFEST_SCHEMA
    study_name: str
    study_digest: str
    prompt_digest: str
    provenance: Provenance
    packages: dict[str, str]
    """Package → version at the time of recording."""
    sandbox: str | None
    """Fingerprint of what judged the programs; `None` where there were none."""
    verdicts_sha256: str | None = Field(pattern=SHA256)
    """Digest of the verdict file; `None` where there is none."""
    inputs_sha256: str | None = Field(default=None, pattern=SHA256)
    """Digest of the file of a person's inputs; left out where there is none."""
    retested: bool = False
    """Whether a retest was made, so that one that is gone is missed; left out where none was."""
    log_sha256: str = Field(pattern=SHA256)
    """Digest of the `episodes.jsonl` that the recording gives."""
    episodes: tuple[EpisodeEntry, ...]
    """Episodes in grid order."""

    def recording_digest(self) -> str:
        """SHA-256 over everything that a replay plays: cassettes, failures, verdicts, inputs."""
        episodes = [
            [e.episode_id, e.cassette_sha256, e.failure and [e.failure.key, e.failure.error]]
            for e in self.episodes
        ]
        played = [self.schema_version, self.study_digest, self.verdicts_sha256, episodes]
        if self.inputs_sha256 is not None:
            played.append(self.inputs_sha256)
        return hashlib.sha256(json.dumps(played).encode()).hexdigest()


def episode_entry(
    record: EpisodeLine, line: str, cassette: Cassette, outcome: dict[str, Any]
) -> EpisodeEntry:
    """Describe a recorded episode."""
    return EpisodeEntry(
        episode_id=record.episode_id,
        status=record.status,
        failure=record.failure,
        calls=len(cassette.interactions),
        cassette_sha256=cassette.sha256,
        requests_sha256=cassette.requests_sha256(),
        record_sha256=hashlib.sha256(line.encode()).hexdigest(),
        outcome=outcome,
    )


def check_cassette(entry: "Digests", cassette: Cassette) -> RecordingError | None:
    """Hold a cassette against the manifest before it is replayed.

    `None` when the file is the recorded one. When its requests differ, the error to raise after the
    replay: the replay itself can first say which call is missing or changed. When they do not and
    the rest of the file does, it raises at once: no replay could tell.
    """
    if cassette.sha256 == entry.cassette_sha256:
        return None
    digests = f"Its digest is {cassette.sha256}, the manifest has {entry.cassette_sha256}."
    if cassette.requests_sha256() == entry.requests_sha256:
        raise edited(
            cassette.name, f"Its requests are the recorded ones, its replies not. {digests}"
        )
    return edited(cassette.name, digests)


def edited(cassette: str, why: str) -> RecordingError:
    """The error for a cassette that is not the manifest's, by its file name."""
    return RecordingError(
        f"{cassette} was edited after it was recorded.",
        why=why,
        hint="Restore the file from version control, or record the study into a new folder.",
    )


def read_manifest(folder: Path) -> Manifest:
    """Read the manifest of a recording.

    `RecordingError` if the folder is no recording, or the manifest is damaged or names what could
    leave the folder.
    """
    found = load_head(folder, Manifest)
    if found is None:
        raise RecordingError(
            f"{folder} is not a recording.",
            why=f"It has no {MANIFEST_FILE}.",
            hint="Point at a folder that `tutorsim run` finished; "
            "an interrupted one goes on with the same command.",
        )
    return found


def write_manifest(folder: Path, head: Head) -> None:
    """Write a manifest into its folder, one episode a line; the same one gives the same bytes."""
    kind = type(head)
    unsaid = {name for name in kind.later if getattr(head, name) == kind.model_fields[name].default}
    fields = head.model_dump(mode="json", exclude={"episodes", *unsaid}) | {"episodes": []}
    text = json.dumps(fields, ensure_ascii=False, indent=1)
    lines = ",\n  ".join(to_line(entry) for entry in head.episodes)
    if lines:
        text = text.removesuffix("[]\n}") + f"[\n  {lines}\n ]\n}}"
    write_atomic(folder / head.file, f"{text}\n".encode())


def load_head(folder: Path, kind: type[H]) -> H | None:
    """Read a head and check that its episodes can be used to open files.

    `None` if there is no file.
    """
    path, schema = folder / kind.file, kind.model_fields["schema_version"].default
    content = read_inside(path)
    if content is None:
        return None
    try:
        data = json_value(content)
        version = data["schema_version"]
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise _refused(path, f"It is truncated or was edited ({error}).") from error
    if version != schema:
        raise RecordingError(
            f"{path} has format version {version!r}.",
            why=f"This tutorsim reads version {schema}.",
            hint="Use the tutorsim that wrote it, or record the study again.",
        )
    return _checked(path, data, kind)


def _checked(path: Path, data: dict[str, Any], kind: type[H]) -> H:
    try:
        head = kind.model_validate(data)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"])
        raise _refused(path, f"Field {place}: {first['msg']}.") from error
    seen: set[str] = set()
    for entry in head.episodes:
        if not is_episode_id(entry.episode_id):
            raise _refused(path, f"{entry.episode_id!r} is not an episode id.")
        if entry.episode_id in seen:
            raise _refused(path, f"It names {cassette_name(entry.episode_id)} twice.")
        seen.add(entry.episode_id)
    return head


def _refused(path: Path, why: str) -> RecordingError:
    return RecordingError(
        f"{path} is not a whole manifest.",
        why=why,
        hint="Restore the file from version control, or record the study into a new folder.",
    )


# --- Retest folder -------------------------------------------------------------------------------

RETEST_FOLDER: Final = "retest"
RETEST_MANIFEST_FILE: Final = "retest.manifest.json"
RETEST_SESSION_FILE: Final = ".retest.json"
"""Name of the session file, which is in a retest's folder while the retest is unfinished."""
RETEST_MANIFEST_SCHEMA: Final = 1


class RetestEntry(Entry):
    """The further askings of one episode's votes."""

    calls: int
    """Recorded replies."""
    failures: tuple[Failure, ...]
    """Calls that failed for good, in call order."""
    cassette_sha256: str = Field(pattern=SHA256)
    """Digest of the cassette's text."""
    requests_sha256: str = Field(pattern=SHA256)
    """Digest of the cassette's keys and requests."""
    record_sha256: str = Field(pattern=SHA256)
    """Digest of the episode's line in `retest.jsonl`."""

    @property
    def has_failures(self) -> bool:
        """Whether some call failed for good."""
        return bool(self.failures)

    def failed(self, key: str) -> Failure | None:
        """How a call failed that the cassette does not hold; `None` where it did not fail."""
        return next((failure for failure in self.failures if failure.key == key), None)


Digests = EpisodeEntry | RetestEntry
"""What every manifest says of a cassette, and of the record that its replay gives."""


class RetestManifest(Head):
    """The head of a retest's folder."""

    file = RETEST_MANIFEST_FILE
    later = ("ask_cut_off_again",)

    schema_version: int = RETEST_MANIFEST_SCHEMA
    study_name: str
    study_digest: str
    recording_digest: str
    """The recording whose prompts were asked again."""
    repeats: int
    stages: tuple[str, ...]
    sample: int | None
    seed: int
    ask_cut_off_again: bool = False
    """Whether replies that were cut off were asked for once more."""
    provenance: Provenance
    packages: dict[str, str]
    """Package → version at the time of the retest."""
    retest_sha256: str = Field(pattern=SHA256)
    """Digest of the `retest.jsonl` that the retest gives."""
    episodes: tuple[RetestEntry, ...]
    """Episodes with a vote that was asked again, in grid order."""


def retest_folder(recording: Path) -> Path:
    """Where the retest of a recording is kept.

    A link that leads out of the recording is refused.
    """
    folder = recording / RETEST_FOLDER
    if folder.is_symlink():
        raise RecordingError(
            f"{folder} leads out of its recording.",
            why="It is a symbolic link.",
            hint="Put the folder itself into the recording.",
        )
    return folder


def retest_entry(record: RetestRecord, line: str, cassette: Cassette) -> RetestEntry:
    """Describe the further askings of an episode."""
    return RetestEntry(
        episode_id=record.episode_id,
        calls=len(cassette.interactions),
        failures=tuple(failure for vote in record.votes for failure in vote.failures),
        cassette_sha256=cassette.sha256,
        requests_sha256=cassette.requests_sha256(),
        record_sha256=hashlib.sha256(line.encode()).hexdigest(),
    )


def read_retest_manifest(folder: Path) -> RetestManifest | None:
    """Read the manifest of a retest. `None` if the folder holds no finished retest."""
    return load_head(folder, RetestManifest)


# --- Provenance ----------------------------------------------------------------------------------

PACKAGES: Final = ("anthropic", "httpx2", "tutorsim", "vcrpy")
API_NAME: Final = "Anthropic API"
STANDIN_NAME: Final = "tutorsim stand-in"
UNNAMED: Final = "unnamed"


@dataclass
class AnsweredBy:
    """Gathers what answered the calls of cassettes, so that a manifest is held against it.

    answered_by = AnsweredBy(models={"claude-haiku-4-5"})
    answered_by.note(cassette)
    stated = answered_by.provenance()
    """

    kinds: set[ProvenanceKind] = field(default_factory=set)
    models: set[str] = field(default_factory=set)
    """Models that replies name; added by whoever reads the replies."""
    standins: set[str] = field(default_factory=set)
    days: set[str] = field(default_factory=set)
    """First and last days of the recording that cassettes name."""
    relays: set[str] = field(default_factory=set)
    """Names of a user's own server that cassettes have."""
    silent: bool = False
    """Whether a cassette says nothing of days and names, being from before they did."""

    def note(self, cassette: Cassette) -> None:
        """Take in one cassette; an empty one says nothing."""
        if not cassette.interactions:
            return
        self.kinds.add(cassette.kind)
        named = {one.response_headers.get(STANDIN_HEADER) for one in cassette.interactions.values()}
        self.standins |= {name for name in named if name is not None}
        if cassette.recorded is None:
            self.silent = True
        else:
            self.days |= {cassette.recorded.first, cassette.recorded.last}
            self.relays |= {cassette.recorded.relay or ""} - {""}

    def join(self, other: "AnsweredBy") -> None:
        """Take in what another one gathered."""
        for name, value in vars(other).items():
            setattr(self, name, getattr(self, name) | value)

    def provenance(
        self,
        *,
        relay_name: str | None = None,
        recorded_from: str | None = None,
        recorded_to: str | None = None,
    ) -> Provenance:
        """Say what answered. A mixture counts as a relay and says what was mixed.

        What the cassettes say goes before what is given. The days are ISO dates in UTC.
        """
        if self._speak and relay_name not in self.relays:
            relay_name = min(self.relays, default=None)
        kind, name = self._named(relay_name)
        if self._speak:
            recorded_from, recorded_to = min(self.days), max(self.days)
        return Provenance(
            kind=kind,
            name=name,
            models=tuple(sorted(self.models)),
            recorded_from=recorded_from,
            recorded_to=recorded_to,
        )

    @property
    def _speak(self) -> bool:
        """Whether the cassettes say days and names."""
        return bool(self.days) and not self.silent

    def unvouched(self, stated: Provenance) -> tuple[str, ...]:
        """What a provenance says and no cassette does."""
        parts = {
            "the days of recording": not self._speak,
            "the relay's name": stated.kind == "relay" and not self._speak,
            "its limits": bool(stated.limits),
        }
        return tuple(part for part, is_open in parts.items() if is_open)

    def _named(self, relay_name: str | None) -> tuple[ProvenanceKind, str]:
        if self.kinds == {"stand-in"}:
            return "stand-in", f"{STANDIN_NAME} {', '.join(sorted(self.standins))}"
        if self.kinds == {"api"}:
            return "api", API_NAME
        name = relay_name or UNNAMED
        return "relay", name if self.kinds <= {"relay"} else f"{name} ({_mixture(self.kinds)})"


def relay_name(earlier: Provenance | None) -> str | None:
    """What an earlier provenance calls the user's server, without what was mixed into it.

    `None` where there is none, it was not named, or something else answered.
    """
    if earlier is None or earlier.kind != "relay":
        return None
    name = earlier.name.partition(f" ({MIXED}")[0]
    return None if name == UNNAMED else name


def _mixture(kinds: set[ProvenanceKind]) -> str:
    return f"{MIXED}{', '.join(sorted(kinds))}"


def package_versions() -> dict[str, str]:
    """The versions that shape a recording: of Python, the client, the format and tutorsim."""
    found = {name: importlib.metadata.version(name) for name in PACKAGES}
    return dict(sorted({**found, "python": platform.python_version()}.items()))


def today() -> str:
    """The day in UTC, as an ISO date."""
    return datetime.now(UTC).date().isoformat()
