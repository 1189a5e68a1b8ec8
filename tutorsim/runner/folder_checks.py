"""Whether a command may write into the folders that it was given: nothing of others is lost."""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from tutorsim.catalog.wordings_kept_with_recording import WORDINGS_FILE
from tutorsim.errors import FolderError
from tutorsim.records import RUN_FILE, TIMINGS_FILE
from tutorsim.replay import MANIFEST_FILE, SESSION_FILE, VERDICTS_FILE
from tutorsim.replay.recorded_call import is_episode_id
from tutorsim.replay.text_or_compressed import cassette_files
from tutorsim.systems.study_loading import STUDY_FILE

__all__ = ["check_folders", "is_begun"]

_JOURNAL: Final = ".journal.jsonl"
_OURS: Final = (
    STUDY_FILE,
    WORDINGS_FILE,
    VERDICTS_FILE,
    MANIFEST_FILE,
    SESSION_FILE,
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


def _named_like_ours(folder: Path) -> Iterator[str]:
    names = [path.name for path in folder.iterdir()] if folder.is_dir() else []
    cassettes = {f"{episode}.json" for episode, form in cassette_files(names) if form == "text"}
    for name in names:
        is_journal = name.endswith(_JOURNAL) and is_episode_id(name.removesuffix(_JOURNAL))
        is_tasks = name.startswith("tasks.") and name.endswith(".jsonl")
        if name in _OURS or name in cassettes or is_journal or is_tasks:
            yield name
