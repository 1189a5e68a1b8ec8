"""Whether a log is the one that a recording gives, head and lines, known by their digests."""

import hashlib
from itertools import zip_longest
from pathlib import Path

from pydantic import BaseModel

from tutorsim.errors import LogError, TutorsimError
from tutorsim.records import (
    EPISODES_FILE,
    RETEST_HEAD_FILE,
    RUN_FILE,
    RunRecord,
    read_retest,
    read_run,
)
from tutorsim.replay import read_manifest
from tutorsim.replay.retest_folder import read_retest_manifest, retest_folder
from tutorsim.runner.find_recording import recording_at_hand
from tutorsim.runner.open_recording import Recording
from tutorsim.runner.retest_log import retest_head
from tutorsim.runner.run_folder_writer import run_record
from tutorsim.systems import load_recorded_study

__all__ = ["check_log_of", "check_tied"]


def check_tied(run: Path) -> str | None:
    """Hold the head of a log, and the digest of its lines, against its recording.

    Args:
        run: A run folder.

    Returns:
        `None` where the log is what a recording at hand gives; otherwise a sentence that says
        why nothing vouches for what it says.

    Raises:
        LogError: If the log is damaged, or is not what its recording gives.
    """
    found = read_run(run)
    folder = recording_at_hand(run, found.recording_digest)
    if folder is None:
        named = found.recording_digest[:12]
        why = f"none at hand has the digest {named}… that it names" if named else "it names none"
        return f"{run} is not tied to a recording, so nothing vouches for what it says: {why}."
    expected = _expected(folder)
    if expected is None:
        return f"{run} is not tied to a recording: the study of {folder} cannot be read."
    _check_head(run / RUN_FILE, found, expected, folder)
    return _check_retest(run, folder)


def check_log_of(run: Path, recording: Recording) -> None:
    """Hold a whole log, line by line, against its recording.

    Args:
        run: A run folder.
        recording: The recording that its log names.

    Raises:
        LogError: If a line or the head is not what the recording gives, naming the episode or the
            field.
    """
    path, entries = run / EPISODES_FILE, iter(recording.manifest.episodes)
    try:
        with path.open("rb") as lines:
            for line, entry in zip_longest(lines, entries):
                digest = None if line is None else hashlib.sha256(line.rstrip(b"\n")).hexdigest()
                if entry is None or digest != entry.record_sha256:
                    raise _edited(path, entry.episode_id if entry else "", recording.folder)
    except OSError as error:
        raise LogError(
            f"{path} cannot be read.",
            why=str(error),
            hint=f"Write it again with `tutorsim replay {recording.folder}`, into a new folder.",
        ) from error
    expected = run_record(recording.loaded, recording.manifest)
    _check_head(run / RUN_FILE, read_run(run), expected, recording.folder)


def _edited(path: Path, episode_id: str, folder: Path) -> LogError:
    return LogError(
        f"{path} is not what its recording gives: {episode_id or 'lines after its last episode'}.",
        why="The line was edited, cut or put elsewhere: its digest is not the one in the manifest "
        f"of {folder}.",
        hint=f"Write it again with `tutorsim replay {folder}`, into a new folder.",
    )


def _check_retest(run: Path, folder: Path) -> str | None:
    """Hold the retest beside a log against that of the recording; as `check_tied`.

    The recording's may have grown since the log was written.
    """
    path, found = run / RETEST_HEAD_FILE, read_retest(run)
    if found is None:
        return None
    manifest = read_retest_manifest(retest_folder(folder))
    if manifest is None or found.head.retest_sha256 != manifest.retest_sha256:
        which = "has none" if manifest is None else "has another one"
        return f"{path} is not tied to the retest of its recording: {folder} {which}."
    _check_head(path, found.head, retest_head(manifest), folder)
    return None


def _check_head(path: Path, found: BaseModel, expected: BaseModel, folder: Path) -> None:
    stated, computed = (one.model_dump(mode="json") for one in (found, expected))
    for name, value in computed.items():
        if stated.get(name) != value:
            raise LogError(
                f"{path} is not what its recording gives: {name}.",
                why=_difference(name, stated.get(name), value, folder),
                hint=f"Write it again with `tutorsim replay {folder}`, into a new folder; "
                "`tutorsim verify` says whether the recording still gives its bytes.",
            )


def _expected(folder: Path) -> RunRecord | None:
    """The head of the log that a recording gives; `None` where its study cannot be read."""
    manifest = read_manifest(folder)
    try:
        loaded = load_recorded_study(folder)
    except TutorsimError:
        return None
    recorded = loaded.with_digest(manifest.study_digest)
    return None if recorded is None else run_record(recorded, manifest)


def _difference(name: str, stated: object, computed: object, folder: Path) -> str:
    if isinstance(stated, dict) and isinstance(computed, dict):
        names = sorted(stated.keys() | computed.keys())
        field = next(field for field in names if stated.get(field) != computed.get(field))
        return _difference(f"{name}.{field}", stated.get(field), computed.get(field), folder)
    return f"{name}: the log says {stated!r}, the recording in {folder} {computed!r}."
