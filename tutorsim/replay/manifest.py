"""The manifest of a recording: what it is of, what answered it, and a digest of each part.

`read_manifest` is the only way in. It refuses anything that could lead out of the folder, so
what it returns can be used to open files. `check_cassette` holds a cassette against its entry.
"""

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar, Final, Protocol, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from tutorsim.errors import RecordingError
from tutorsim.model.json_bodies import json_value
from tutorsim.records import EpisodeLine, Failure, Provenance, to_line
from tutorsim.replay.cassette_file import Cassette
from tutorsim.replay.recorded_call import cassette_name, is_episode_id
from tutorsim.replay.safe_files import write_atomic
from tutorsim.replay.text_or_compressed import read_inside
from tutorsim.vocabularies import EpisodeStatus

__all__ = [
    "MANIFEST_FILE",
    "MANIFEST_SCHEMA",
    "SESSION_FILE",
    "SHA256",
    "Digests",
    "Entry",
    "EpisodeEntry",
    "Head",
    "Manifest",
    "Part",
    "check_cassette",
    "episode_entry",
    "load_head",
    "read_manifest",
    "save_head",
    "write_manifest",
]

MANIFEST_FILE: Final = "manifest.json"
SESSION_FILE: Final = ".recording.json"
"""Stands in a recording's folder while it is being made or taken up again."""
MANIFEST_SCHEMA: Final = 1
SHA256: Final = r"^[0-9a-f]{64}$"
"""A digest, in hexadecimal."""


class Part(BaseModel):
    """A frozen model of a part of a manifest; fields that it does not know are refused."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Entry(Part):
    """One episode of a folder."""

    episode_id: str


class Head(Part):
    """The head of a folder of cassettes."""

    file: ClassVar[str]
    """Its name in the folder."""
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
    """The head of a recording's folder."""

    file = MANIFEST_FILE
    later = ("inputs_sha256",)

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
    log_sha256: str = Field(pattern=SHA256)
    """Digest of the `episodes.jsonl` that the recording gives."""
    episodes: tuple[EpisodeEntry, ...]
    """In grid order."""

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
    """Describe a recorded episode.

    Args:
        record: Its log record.
        line: The record's line.
        cassette: Its cassette.
        outcome: What came of it, in its system's words.
    """
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


class Digests(Protocol):
    """What every manifest says of a cassette, and of the record that its replay gives."""

    @property
    def episode_id(self) -> str: ...

    @property
    def calls(self) -> int: ...

    @property
    def cassette_sha256(self) -> str: ...

    @property
    def requests_sha256(self) -> str: ...

    @property
    def record_sha256(self) -> str: ...

    @property
    def has_failures(self) -> bool: ...

    def failed(self, key: str) -> Failure | None: ...

    def model_dump(self, *, mode: str) -> dict[str, Any]: ...


def check_cassette(entry: Digests, cassette: Cassette) -> RecordingError | None:
    """Hold a cassette against the manifest before it is replayed.

    Returns:
        `None` when the file is the recorded one. When its requests differ, the error to raise
        after the replay: the replay itself can first say which call is missing or changed.

    Raises:
        RecordingError: If the requests are the recorded ones and the rest of the file is not.
            No replay could tell, because every call would be answered.
    """
    if cassette.sha256 == entry.cassette_sha256:
        return None
    digests = f"Its digest is {cassette.sha256}, the manifest has {entry.cassette_sha256}."
    if cassette.requests_sha256() == entry.requests_sha256:
        raise _edited(cassette, f"Its requests are the recorded ones, its replies not. {digests}")
    return _edited(cassette, digests)


def _edited(cassette: Cassette, why: str) -> RecordingError:
    return RecordingError(
        f"{cassette.name} was edited after it was recorded.",
        why=why,
        hint="Restore the file from version control, or record the study into a new folder.",
    )


def write_manifest(folder: Path, manifest: Manifest) -> None:
    """Write `manifest.json`, one episode a line; the same manifest gives the same bytes.

    Raises:
        FolderError: If it cannot be written.
    """
    save_head(folder, manifest)


def read_manifest(folder: Path) -> Manifest:
    """Read the manifest of a recording.

    Raises:
        RecordingError: If the folder is no recording, or the manifest is truncated, of another
            version, or names an episode twice or one whose name could leave the folder.
    """
    found = load_head(folder, Manifest, schema=MANIFEST_SCHEMA)
    if found is None:
        raise RecordingError(
            f"{folder} is not a recording.",
            why=f"It has no {MANIFEST_FILE}.",
            hint="Point at a folder that `tutorsim run` finished; "
            "an interrupted one goes on with the same command.",
        )
    return found


def save_head(folder: Path, head: Head) -> None:
    """Write a head into its folder, one episode a line; the same head gives the same bytes.

    Raises:
        FolderError: If it cannot be written.
    """
    kind = type(head)
    unsaid = {name for name in kind.later if getattr(head, name) == kind.model_fields[name].default}
    fields = head.model_dump(mode="json", exclude={"episodes", *unsaid}) | {"episodes": []}
    text = json.dumps(fields, ensure_ascii=False, indent=1)
    lines = ",\n  ".join(to_line(entry) for entry in head.episodes)
    if lines:
        text = text.removesuffix("[]\n}") + f"[\n  {lines}\n ]\n}}"
    write_atomic(folder / head.file, f"{text}\n".encode())


def load_head(folder: Path, kind: type[H], *, schema: int) -> H | None:
    """Read a head and check that its episodes can be used to open files.

    Args:
        folder: Where it is.
        kind: What it is.
        schema: Version that can be read.

    Returns:
        The head; `None` where there is no file.

    Raises:
        RecordingError: As `read_manifest`.
    """
    path = folder / kind.file
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
