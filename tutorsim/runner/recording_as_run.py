"""A recording's folder in the place of a run folder: replayed beside it first, offline."""

import shutil
from pathlib import Path

from tutorsim.records import RUN_FILE
from tutorsim.records.ratings import RATINGS_FILE
from tutorsim.replay import MANIFEST_FILE

__all__ = ["is_recording", "replay_into"]


def is_recording(path: Path) -> bool:
    """Whether a folder is a recording, and not a run folder too."""
    return (path / MANIFEST_FILE).is_file() and not (path / RUN_FILE).is_file()


def replay_into(recording: Path, folder: Path, *, workers: int | None = None) -> Path:
    """Replay a recording to a run folder of its own name inside `folder`.

    What people said of the recording goes with it.

    Args:
        recording: The recording.
        folder: Where the run folder is made.
        workers: Processes; `None` takes as many as pay off.

    Raises:
        RecordingError: If the recording is damaged, or does not replay.
    """
    from tutorsim.runner.replaying import replay

    run = folder / recording.resolve().name
    replay(recording, log_dir=run, workers=workers)
    if (recording / RATINGS_FILE).is_file():
        shutil.copyfile(recording / RATINGS_FILE, run / RATINGS_FILE)
    return run
