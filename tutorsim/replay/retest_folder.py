"""The retest of a recording: a folder inside it, with cassettes and a manifest of its own.

The recording itself stays as it is, byte for byte. The manifest has another name than a
recording's, so nothing takes the folder for a recording.
"""

import hashlib
from pathlib import Path
from typing import Final

from pydantic import Field

from tutorsim.errors import RecordingError
from tutorsim.records import Failure, Provenance, RetestRecord
from tutorsim.replay.cassette_file import Cassette
from tutorsim.replay.manifest import SHA256, Entry, Head, load_head, save_head

__all__ = [
    "RETEST_FOLDER",
    "RETEST_MANIFEST_FILE",
    "RETEST_SESSION_FILE",
    "RetestEntry",
    "RetestManifest",
    "read_retest_manifest",
    "retest_entry",
    "retest_folder",
    "write_retest_manifest",
]

RETEST_FOLDER: Final = "retest"
RETEST_MANIFEST_FILE: Final = "retest.manifest.json"
RETEST_SESSION_FILE: Final = ".retest.json"
"""Stands in a retest's folder while it is being made."""
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
    """Those with a vote that was asked again, in grid order."""


def retest_folder(recording: Path) -> Path:
    """Where the retest of a recording is kept.

    Raises:
        RecordingError: If that leads out of the recording.
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
    """Describe the further askings of an episode.

    Args:
        record: Their record.
        line: The record's line.
        cassette: Their cassette.
    """
    return RetestEntry(
        episode_id=record.episode_id,
        calls=len(cassette.interactions),
        failures=tuple(failure for vote in record.votes for failure in vote.failures),
        cassette_sha256=cassette.sha256,
        requests_sha256=cassette.requests_sha256(),
        record_sha256=hashlib.sha256(line.encode()).hexdigest(),
    )


def write_retest_manifest(folder: Path, manifest: RetestManifest) -> None:
    """Write the manifest of a retest into its folder.

    Raises:
        FolderError: If it cannot be written.
    """
    save_head(folder, manifest)


def read_retest_manifest(folder: Path) -> RetestManifest | None:
    """Read the manifest of a retest.

    Returns:
        The manifest; `None` where the folder holds no finished retest.

    Raises:
        RecordingError: If it is truncated, of another version, or names an episode twice or one
            whose name could leave the folder.
    """
    return load_head(folder, RetestManifest, schema=RETEST_MANIFEST_SCHEMA)
