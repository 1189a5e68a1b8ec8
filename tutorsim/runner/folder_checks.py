"""Whether a command may write into the folders that it was given: nothing of others is lost."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from tutorsim.catalog.wordings_kept_with_recording import WORDINGS_FILE
from tutorsim.errors import FolderError, RecordingError
from tutorsim.records import RUN_FILE, TIMINGS_FILE
from tutorsim.replay import MANIFEST_FILE, VERDICTS_FILE
from tutorsim.replay.recorded_call import is_episode_id
from tutorsim.replay.text_or_compressed import READ_SUFFIXES, cassette_files
from tutorsim.runner.shared_ledger import LEDGER_FILE
from tutorsim.systems.study_loading import STUDY_FILE

__all__ = ["SESSION_FILE", "check_folders", "check_regular", "is_begun"]

SESSION_FILE: Final = ".recording.json"
"""Stands in a recording's folder while it is being made or taken up again."""
_JOURNAL: Final = ".journal.jsonl"
_OURS: Final = (
    STUDY_FILE,
    WORDINGS_FILE,
    VERDICTS_FILE,
    MANIFEST_FILE,
    SESSION_FILE,
    LEDGER_FILE,
)


def is_begun(folder: Path) -> bool:
    """Whether a folder holds a recording, finished or not."""
    return (folder / MANIFEST_FILE).exists() or (folder / SESSION_FILE).exists()


def check_folders(cassette_dir: Path, log_dir: Path, *, anew: bool) -> None:
    """Refuse folders in which a recording would overwrite or pay for what it should not.

    Args:
        cassette_dir: Where the recording is made or gone on with.
        log_dir: The run folder, whose log is of this study if it has one.
        anew: The user wants to pay again for a study whose whole log is there.

    Raises:
        FolderError: If a file of ours would be written over one that is not, or a whole log
            stands beside an empty folder.
    """
    if is_begun(cassette_dir):
        return
    foreign = sorted(_named_like_ours(cassette_dir))
    if foreign:
        raise FolderError(
            f"{cassette_dir} holds {foreign[0]}, and no recording was begun there.",
            why="The recording has a file of that name, and would be written over yours.",
            hint="Choose a --cassette-dir of its own, or move the file away.",
        )
    if (log_dir / TIMINGS_FILE).exists() and not (log_dir / RUN_FILE).exists():
        raise FolderError(
            f"{log_dir} holds {TIMINGS_FILE}, and no log.",
            why="The log has a file of that name, and would be written over yours.",
            hint="Choose another --log-dir, or move the file away.",
        )
    if (log_dir / RUN_FILE).exists() and not anew:
        raise FolderError(
            f"{log_dir} holds the whole log of this study, and {cassette_dir} no recording.",
            why="Every call would be paid for again.",
            hint="Give the folder of its recording with --cassette-dir, or add --anew to record "
            "it once more.",
        )


def check_regular(folder: Path, *, links: bool) -> None:
    """Refuse what is no regular file, before anything is read: a pipe would be waited for.

    Args:
        folder: A recording's folder, or a run folder.
        links: Refuse symbolic links too, wherever they lead.

    Raises:
        RecordingError: Naming the first such file.
    """
    if not folder.is_dir():
        return
    with os.scandir(folder) as entries:
        odd = [
            entry.name
            for entry in entries
            if entry.name.endswith(READ_SUFFIXES)
            and ((links and entry.is_symlink()) or not (entry.is_file() or _leads_nowhere(entry)))
        ]
    if odd:
        raise RecordingError(
            f"{folder / min(odd)} is no regular file.",
            why="It is a link, a pipe, a folder or a device, which is not followed.",
            hint="Put the file itself into the folder, or move this one away.",
        )


def _leads_nowhere(entry: "os.DirEntry[str]") -> bool:
    return entry.is_symlink() and not Path(entry.path).exists()


def _named_like_ours(folder: Path) -> Iterator[str]:
    names = [path.name for path in folder.iterdir()] if folder.is_dir() else []
    cassettes = {f"{episode}.json" for episode, form in cassette_files(names) if form == "text"}
    for name in names:
        is_journal = name.endswith(_JOURNAL) and is_episode_id(name.removesuffix(_JOURNAL))
        is_tasks = name.startswith("tasks.") and name.endswith(".jsonl")
        if name in _OURS or name in cassettes or is_journal or is_tasks:
            yield name
