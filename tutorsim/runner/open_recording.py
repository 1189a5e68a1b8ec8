"""Opening a recording: its study, its grid and its manifest, held against one another."""

import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Final

from tutorsim.catalog.wordings_kept_with_recording import WORDINGS_FILE
from tutorsim.errors import CatalogError, RecordingError, StudyError, TaskFileError
from tutorsim.replay import SESSION_FILE, EpisodeEntry, FastReader, Manifest, read_manifest
from tutorsim.replay.retest_folder import (
    RETEST_MANIFEST_FILE,
    RETEST_SESSION_FILE,
    retest_folder,
)
from tutorsim.replay.text_or_compressed import READ_SUFFIXES, cassette_files, check_regular
from tutorsim.runner.manifest_check import check_verdicts
from tutorsim.study import EpisodeSpec
from tutorsim.systems import LoadedStudy, load_recorded_study

__all__ = ["Recording", "check_drift", "check_kept", "check_links", "open_recording"]

STUDY_FILE: Final = "study.toml"
RESTORE: Final = "Restore the files from version control."


@dataclass(frozen=True)
class Recording:
    """A recording, ready to be replayed."""

    folder: Path
    manifest: Manifest
    loaded: LoadedStudy
    specs: tuple[EpisodeSpec, ...]
    """The grid, in order."""
    entries: Mapping[str, EpisodeEntry]
    """Episode id → what the manifest says of it; one for each of the grid."""
    drifted: bool
    """The recording has no wordings of its own, and those of this tutorsim are not its."""
    without_wordings: bool
    """It has none, though recordings of its form have."""

    @cached_property
    def reader(self) -> FastReader:
        """Reads its cassettes."""
        return FastReader(self.folder)

    @cached_property
    def _by_id(self) -> Mapping[str, EpisodeSpec]:
        return {spec.episode_id: spec for spec in self.specs}

    def spec(self, episode_id: str) -> EpisodeSpec:
        """An episode of the grid."""
        return self._by_id[episode_id]

    @property
    def parent_study(self) -> str | None:
        """Study digest of the recording that a branch continues; `None` where it is no branch."""
        branch = getattr(self.loaded.study, "branch", None)
        return None if branch is None else str(branch.parent_study)


def open_recording(folder: Path) -> Recording:
    """Open a recording and hold its study against its manifest.

    Raises:
        RecordingError: If a part is missing, damaged, edited, or leads out of the folder.
    """
    check_links(folder)
    check_regular(folder, links=False)
    manifest = read_manifest(folder)
    failed = any(entry.status == "failed" for entry in manifest.episodes)
    if failed and (folder / SESSION_FILE).exists():
        raise RecordingError(
            f"{folder} is being recorded.",
            why="Failed episodes are taken up again, and the command that does so was "
            "interrupted or is still at work.",
            hint="Give the same `tutorsim run … --retry-errors` again; nothing is lost.",
        )
    check_verdicts(folder, manifest)
    loaded = _study_of(folder)
    own_wordings, first = loaded.stored is not None, loaded.in_first_form()
    without = not own_wordings and (
        first is loaded or manifest.prompt_digest == loaded.prompt_digest() != first.prompt_digest()
    )
    if not own_wordings and loaded.prompt_digest() != manifest.prompt_digest:
        loaded = first
    drifted = loaded.prompt_digest() != manifest.prompt_digest
    if drifted and own_wordings:
        raise RecordingError(
            f"{folder / WORDINGS_FILE} does not hold the recorded wordings.",
            why=f"They, or entries of [catalog] in {STUDY_FILE}, were edited: their digest is not "
            "the manifest's.",
            hint=f"{RESTORE} To ask in other words, record the study again.",
        )
    if loaded.digest() != manifest.study_digest and not drifted:
        raise RecordingError(
            f"{folder / STUDY_FILE} is not the study that was recorded.",
            why="Settings or tasks differ from those of the manifest.",
            hint=RESTORE,
        )
    specs = tuple(loaded.grid())
    entries = {entry.episode_id: entry for entry in manifest.episodes}
    if [spec.episode_id for spec in specs] != list(entries):
        raise RecordingError(
            f"{folder}: manifest and study disagree on the episodes.",
            why=f"The manifest lists {len(entries)}, the study has {len(specs)}.",
            hint=RESTORE,
        )
    return Recording(folder, manifest, loaded, specs, entries, drifted, without)


def check_drift(recording: Recording) -> None:
    """Refuse a recording whose wordings changed even though no call did.

    Raises:
        RecordingError: If they changed.
    """
    if recording.drifted:
        raise RecordingError(
            f"{recording.folder}: the prompts of this tutorsim are not the recorded ones.",
            why="Every recorded call still matches, but the prompt digest differs, and the "
            "recording has no wordings of its own.",
            hint="`tutorsim cassette convert` of the tutorsim that recorded it adds them.",
        )


def check_kept(recording: Recording) -> None:
    """Refuse a recording of which a file is gone that its other files ask for.

    Raises:
        RecordingError: If its wordings are not there, or the manifest of its retest.
    """
    if recording.without_wordings:
        raise _gone(recording.folder / WORDINGS_FILE, "Today's wordings happen to be the same.")
    folder = retest_folder(recording.folder)
    if not folder.is_dir() or (folder / RETEST_SESSION_FILE).exists():
        return
    names = sorted(path.name for path in folder.iterdir())
    if RETEST_MANIFEST_FILE not in names and any(cassette_files(names)):
        raise _gone(folder / RETEST_MANIFEST_FILE, "The calls of the retest were not played.")


def _gone(path: Path, why: str) -> RecordingError:
    return RecordingError(
        f"{path} is not there.", why=why, hint="Restore the file from version control."
    )


def check_links(folder: Path) -> None:
    """Refuse files that lead out of the folder, before any is read.

    Raises:
        RecordingError: If there is one.
    """
    if not folder.is_dir():
        return  # reading the manifest says so
    inside = folder.resolve()
    with os.scandir(folder) as entries:
        links = [
            Path(one.path)
            for one in entries
            if one.is_symlink() and one.name.endswith(READ_SUFFIXES)
        ]
    for path in sorted(links):
        if not path.resolve().is_relative_to(inside):
            raise RecordingError(
                f"{path} leads out of its folder.",
                why="It is a symbolic link to a file elsewhere.",
                hint="Put the file itself into the folder.",
            )


def _study_of(folder: Path) -> LoadedStudy:
    path = folder / STUDY_FILE
    try:
        _check_tasks(path)
        return load_recorded_study(folder)
    except (StudyError, TaskFileError, CatalogError) as error:
        raise RecordingError(
            f"{folder}: the recording's study cannot be read.",
            why=f"{error.what} {error.why}".strip(),
            hint=RESTORE,
        ) from error


def _check_tasks(path: Path) -> None:
    """Refuse a study that names tasks elsewhere, before they are read."""
    for name in _task_names(path):
        if Path(name).name != name:
            raise RecordingError(
                f"{path} names tasks outside its folder: {name!r}.",
                why="A recording brings its tasks along.",
                hint="Restore the file from version control.",
            )


def _task_names(path: Path) -> list[str]:
    try:
        data: dict[str, Any] = tomllib.loads(path.read_text(encoding="utf-8"))
        return [str(table.get("tasks", "builtin")) for table in data["benchmarks"].values()]
    except (OSError, ValueError, KeyError, AttributeError):
        return []  # loading the study says what is wrong with it
