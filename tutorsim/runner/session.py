"""What a recording's folder holds when a command begins: nothing, a part, or a whole recording.

A session file stands in the folder while a recording is being made or taken up again. Without
it a folder with a manifest is a finished recording, every file of which must be as it was.
"""

import hashlib
import json
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tutorsim.errors import RecordingError
from tutorsim.replay import (
    MANIFEST_FILE,
    VERDICTS_FILE,
    EpisodeEntry,
    Manifest,
    check_recordable,
    folder_error,
    package_versions,
    read_manifest,
    write_atomic,
)
from tutorsim.replay.interaction import cassette_name
from tutorsim.study import LoadedStudy, write_study

__all__ = ["SESSION_FILE", "Session", "check_verdicts", "keep_study", "open_session"]

SESSION_FILE = ".recording.json"
STUDY_DRAFT = ".study.tmp"
"""Folder in which the study is written before its files take their places."""
RESTORE = "Restore the file from version control, or record the study into a new folder."


@dataclass(frozen=True)
class Session:
    """What stays the same over all commands that make one recording."""

    folder: Path
    started: str
    """First day, ISO date in UTC."""
    latest: str
    """Day of the command before this one; today for the first."""
    today: str
    packages: dict[str, str]
    earlier: Manifest | None
    """What was finished before, when failed episodes are taken up again."""

    def finish(self) -> None:
        """Forget the session: its manifest is written."""
        (self.folder / SESSION_FILE).unlink(missing_ok=True)


def open_session(loaded: LoadedStudy, folder: Path) -> Session:
    """Begin to record into a folder, or go on with it.

    Raises:
        RecordingError: If the folder holds the recording of another study, or a finished one
            that was edited or compressed; it stays as it is.
        FolderError: If the folder cannot be written.
    """
    check_recordable(folder)
    digest, today = loaded.digest(), datetime.now(UTC).date().isoformat()
    earlier = _finished(folder, digest)
    begun = _begun(folder, digest)
    if earlier is None:
        keep_study(loaded, folder)
    else:
        _check_unedited(folder, earlier, taken_up=begun is not None)
    if begun is None and earlier is not None:
        provenance = earlier.provenance
        begun = {
            "started": provenance.recorded_from or today,
            "latest": provenance.recorded_to or today,
            "packages": dict(earlier.packages),
        }
    begun = begun or {"started": today, "latest": today, "packages": package_versions()}
    head = {"study_digest": digest, **begun, "latest": today}
    write_atomic(folder / SESSION_FILE, json.dumps(head).encode())
    return Session(folder, **begun, today=today, earlier=earlier)


def _finished(folder: Path, digest: str) -> Manifest | None:
    if not (folder / MANIFEST_FILE).exists():
        return None
    manifest = read_manifest(folder)
    if manifest.study_digest != digest:
        raise _another_study(folder, manifest.study_name)
    return manifest


def _begun(folder: Path, digest: str) -> dict[str, Any] | None:
    """What an unfinished session left; `None` where there is none, or nothing came of it."""
    try:
        found = json.loads((folder / SESSION_FILE).read_bytes())
        if found.pop("study_digest") == digest:
            return {name: found[name] for name in ("started", "latest", "packages")}
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise RecordingError(
            f"{folder / SESSION_FILE} cannot be read.",
            why=str(error),
            hint="Record into a new folder, or remove this file to go on.",
        ) from error
    if any(_recorded(folder)):
        raise _another_study(folder, None)
    return None


def _recorded(folder: Path) -> Iterator[Path]:
    yield from folder.glob("*.journal.jsonl")
    yield from folder.glob("*.*.*.*.json")


def _another_study(folder: Path, name: str | None) -> RecordingError:
    return RecordingError(
        f"{folder} holds the recording of another study{f' ({name})' if name else ''}.",
        why="Its study digest differs: settings, prompts or tasks are not the same.",
        hint="Choose another --cassette-dir.",
    )


def _check_unedited(folder: Path, manifest: Manifest, *, taken_up: bool) -> None:
    """Refuse to go on from files that are not those of the manifest.

    Args:
        folder: The recording.
        manifest: Its manifest.
        taken_up: Failed episodes are being recorded again, so that their files may differ.
    """
    if not taken_up:
        check_verdicts(folder, manifest)
    for entry in manifest.episodes:
        if not taken_up or entry.status == "complete":
            _check_cassette(folder, entry)


def _check_cassette(folder: Path, entry: EpisodeEntry) -> None:
    path = folder / cassette_name(entry.episode_id)
    if path.is_file() and _sha256(path) != entry.cassette_sha256:
        raise RecordingError(
            f"{path} was edited after it was recorded.",
            why="Its digest is not the manifest's, so nothing is written over it.",
            hint=RESTORE,
        )


def check_verdicts(folder: Path, manifest: Manifest) -> None:
    """Hold the file of verdicts against the manifest.

    Raises:
        RecordingError: If it is missing, was edited, or leads out of the folder.
    """
    path = folder / VERDICTS_FILE
    found = _sha256(path) if path.is_file() and not path.is_symlink() else None
    if found != manifest.verdicts_sha256:
        raise RecordingError(
            f"{path} is not the file of verdicts that was recorded.",
            why="It is missing or was edited: its digest is not the manifest's.",
            hint="Restore the file from version control.",
        )


def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def keep_study(loaded: LoadedStudy, folder: Path) -> None:
    """Write the study's files into a recording; each takes its place whole.

    Raises:
        FolderError: If a file cannot be written.
    """
    draft = folder / STUDY_DRAFT
    try:
        draft.mkdir(exist_ok=True)
        write_study(loaded, draft)
        for path in sorted(draft.iterdir()):
            path.replace(folder / path.name)
    except OSError as error:
        raise folder_error(folder / "study.toml", error) from error
    finally:
        shutil.rmtree(draft, ignore_errors=True)
