"""Converting a recording's cassettes from one form of file to the other.

A recording of the first form, which has no wordings of its own, gets them on the way; one that was
made before a template was gets the words that stood in its place.
"""

import hashlib
from pathlib import Path
from typing import Literal, NamedTuple

from tutorsim.catalog import WORDINGS_FILE, read_wordings, wordings_text
from tutorsim.errors import FolderError, TutorsimError
from tutorsim.kernel.load_and_check_study_file import load_recorded_study, write_study
from tutorsim.kernel.system_and_loaded_study import LoadedStudy
from tutorsim.replay.cassette_file import (
    CassetteForm,
    cassette_file,
    read_cassette_file,
    write_cassette_file,
)
from tutorsim.replay.durable_files_folder_lock_key_leaks import (
    LOCK_FILE,
    TEMPORARY,
    FolderLock,
    folder_error,
    make_folder,
    write_atomic,
)
from tutorsim.replay.manifests_of_recordings_and_retests_provenance import (
    MANIFEST_FILE,
    RETEST_FOLDER,
    RETEST_MANIFEST_FILE,
    EpisodeEntry,
    Manifest,
    RetestEntry,
    RetestManifest,
    edited,
    read_manifest,
    read_retest_manifest,
    retest_folder,
)
from tutorsim.replay.recorded_calls_event_streams_and_mismatches import cassette_name

_MARKER = ".converting"
"""Stands in the new folder until it is whole."""
ALONGSIDE = ("*.toml", "*.jsonl", "tasks.*")
"""Files that belong to a finished recording besides manifest and cassettes."""


WordingsWritten = Literal["kept", "added", "completed", "unknown"]
"""What became of a recording's wordings: as they were; today's, where it had none; with the words
that stood where templates are today; or none, where the recorded ones are not known."""


class Converted(NamedTuple):
    """What came of converting a recording."""

    size: int
    """Bytes of the cassettes written."""
    wordings: WordingsWritten


def convert(folder: Path, into: Path, form: CassetteForm) -> Converted:
    """Write a finished recording again with its cassettes in a form; all else stays as it is.

    A finished retest goes with it. Wordings and tasks that the recording does not have in its
    folder are added, where they are the recorded ones.

    Each cassette's text is held against the manifest, whose digests are of texts and so the same in
    either form. The manifest is written last, so a folder that has one is whole. `into` does not
    exist or is empty.
    """
    manifest = read_manifest(folder)
    retest = read_retest_manifest(retest_folder(folder))
    _check_empty(into, source=manifest, form=form)
    with FolderLock(into):
        write_atomic(into / _MARKER, _marker(manifest, form))
        size = sum(_converted(folder, into, entry, form) for entry in manifest.episodes)
        if retest is not None:
            size += _retest_converted(retest_folder(folder), into / RETEST_FOLDER, retest, form)
        for path in sorted(folder.iterdir()):
            alongside = any(path.match(pattern) for pattern in ALONGSIDE)
            if alongside and path.is_file() and not path.is_symlink():
                write_atomic(into / path.name, path.read_bytes())
        wordings = _wordings_written(folder, into, manifest)
        write_atomic(into / MANIFEST_FILE, (folder / MANIFEST_FILE).read_bytes())
        (into / _MARKER).unlink(missing_ok=True)
    return Converted(size, wordings)


def _wordings_written(folder: Path, into: Path, manifest: Manifest) -> WordingsWritten:
    """Write the wordings that the recording does not hold, where they are known."""
    study = _as_recorded(folder, manifest)
    if study is None:
        return "kept" if (into / WORDINGS_FILE).exists() else "unknown"
    held = read_wordings(folder)
    if held is None:
        write_study(study, into)
        return "added"
    write_atomic(into / WORDINGS_FILE, wordings_text(study.wordings()).encode())
    return "kept" if held == study.wordings() else "completed"


def _as_recorded(folder: Path, manifest: Manifest) -> LoadedStudy | None:
    """The study in the recorded wordings; `None` where they are not known."""
    try:
        loaded = load_recorded_study(folder)
    except TutorsimError:
        return None  # the form of the cassettes can be changed all the same
    return loaded.with_digest(manifest.study_digest)


def _marker(manifest: Manifest, form: CassetteForm) -> bytes:
    """What a folder holds while a recording is being converted into it."""
    return f"{manifest.recording_digest()} {form}\n".encode()


def _check_empty(into: Path, *, source: Manifest, form: CassetteForm) -> None:
    """Refuse a folder that holds anything but what an interrupted command of the same left."""
    try:
        marker = into / _MARKER
        begun = marker.is_file() and marker.read_bytes() == _marker(source, form)
        names = {path.name for path in into.iterdir()} if into.is_dir() else set()
        ours = {LOCK_FILE, _MARKER + TEMPORARY}  # the mark itself may have been cut short
        taken = into.is_file() or (bool(names - ours) and not begun)
    except OSError as error:
        raise folder_error(into, error) from error
    if taken:
        raise FolderError(
            f"{into} is not empty.",
            why="A recording is converted into a folder of its own.",
            hint="Name a folder that does not exist.",
        )


def _retest_converted(folder: Path, into: Path, retest: RetestManifest, form: CassetteForm) -> int:
    make_folder(into)
    size = sum(_converted(folder, into, entry, form) for entry in retest.episodes)
    data = (folder / RETEST_MANIFEST_FILE).read_bytes()
    write_atomic(into / RETEST_MANIFEST_FILE, data)
    return size


def _converted(
    folder: Path, into: Path, entry: EpisodeEntry | RetestEntry, form: CassetteForm
) -> int:
    text = read_cassette_file(folder, entry.episode_id)
    if hashlib.sha256(text).hexdigest() != entry.cassette_sha256:
        why = "The digest of its text is not the manifest's."
        raise edited(cassette_name(entry.episode_id), why)
    write_cassette_file(into, entry.episode_id, text, form)
    return cassette_file(into, entry.episode_id, form).stat().st_size
