"""Converting a recording's cassettes from one form of file to the other."""

import hashlib
from pathlib import Path

from tutorsim.errors import FolderError, RecordingError
from tutorsim.replay.files import FolderLock, folder_error, make_folder, write_atomic
from tutorsim.replay.forms import (
    CassetteForm,
    cassette_file,
    read_cassette_file,
    write_cassette_file,
)
from tutorsim.replay.interaction import cassette_name
from tutorsim.replay.manifest import MANIFEST_FILE, EpisodeEntry, read_manifest
from tutorsim.replay.retest import (
    RETEST_FOLDER,
    RETEST_MANIFEST_FILE,
    RetestEntry,
    RetestManifest,
    read_retest_manifest,
    retest_folder,
)

__all__ = ["convert"]

ALONGSIDE = (".toml", ".jsonl")
"""Suffixes of the files that belong to a finished recording besides manifest and cassettes."""


def convert(folder: Path, into: Path, form: CassetteForm) -> int:
    """Write a finished recording anew with its cassettes in a form; all else stays as it is.

    A finished retest goes with it.

    Each cassette's text is held against the manifest, whose digests are of texts and so the same
    in either form. The manifest is written last, so a folder that has one is whole.

    Args:
        folder: The recording, in either form.
        into: A folder that does not exist or is empty.
        form: The form wanted.

    Returns:
        Bytes of the cassettes written.

    Raises:
        MissingCallError: If a cassette is missing.
        RecordingError: If the recording is unfinished, damaged or edited.
        FolderError: If `into` holds anything or cannot be written.
    """
    manifest = read_manifest(folder)
    retest = read_retest_manifest(retest_folder(folder))
    _check_empty(into)
    with FolderLock(into):
        size = sum(_converted(folder, into, entry, form) for entry in manifest.episodes)
        if retest is not None:
            size += _retest_converted(retest_folder(folder), into / RETEST_FOLDER, retest, form)
        for path in sorted(folder.iterdir()):
            if path.suffix in ALONGSIDE and path.is_file() and not path.is_symlink():
                write_atomic(into / path.name, path.read_bytes())
        write_atomic(into / MANIFEST_FILE, (folder / MANIFEST_FILE).read_bytes())
    return size


def _check_empty(into: Path) -> None:
    try:
        taken = into.is_file() or (into.is_dir() and any(into.iterdir()))
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
        raise RecordingError(
            f"{cassette_name(entry.episode_id)} was edited after it was recorded.",
            why="The digest of its text is not the manifest's.",
            hint="Restore the file from version control, or record the study into a new folder.",
        )
    write_cassette_file(into, entry.episode_id, text, form)
    return cassette_file(into, entry.episode_id, form).stat().st_size
