"""Finding the recording that a run folder's log was written from."""

import json
from collections.abc import Iterator
from pathlib import Path

from tutorsim.bundled_recordings import bundled_recording
from tutorsim.errors import RecordingError, UsageError
from tutorsim.records import TIMINGS_FILE, read_run
from tutorsim.replay import MANIFEST_FILE, read_manifest
from tutorsim.runner.machine_facts import RECORDING

__all__ = ["find_recording", "recording_at_hand"]

USUAL = Path("cassettes")
"""Where recordings are below the working directory."""


def find_recording(run: Path, *, cassette_dir: Path | None) -> Path:
    """The folder of the recording that a log was written from, known by its digest.

    Args:
        run: A run folder, or the folder of a recording, which is the answer itself.
        cassette_dir: The recording, or a folder of recordings, and the only place to look at;
            `None` looks where the log was written from, among the bundled recordings, and in
            `cassettes` below the working directory.

    Raises:
        LogError: If the run folder holds no whole log.
        UsageError: If no recording with the log's digest is there.
    """
    if (run / MANIFEST_FILE).exists():
        return run
    wanted = read_run(run).recording_digest
    places = _places(run) if cassette_dir is None else _in(cassette_dir)
    found = _with_digest(wanted, places)
    if found is not None:
        return found
    raise UsageError(
        f"The recording of {run} is not found.",
        why="Its log does not say which recording it is of."
        if not wanted
        else f"No recording {'there' if cassette_dir else 'at hand'} has the digest "
        f"{wanted[:12]}… that the log names.",
        hint="Give its folder, or the folder above, with --cassette-dir DIR.",
    )


def recording_at_hand(run: Path, digest: str) -> Path | None:
    """The recording that a run folder was written from, where it is at hand.

    Args:
        run: The run folder.
        digest: The recording's, as the log names it; empty where it names none.
    """
    return _with_digest(digest, _places(run))


def _with_digest(digest: str, places: Iterator[Path]) -> Path | None:
    return next((folder for folder in places if digest and _digest(folder) == digest), None)


def _places(run: Path) -> Iterator[Path]:
    written_from = _written_from(run)
    if written_from is not None:
        yield written_from
    bundled = bundled_recording()
    if bundled is not None:
        yield from _in(bundled.parent)
    yield from _in(USUAL)


def _in(folder: Path) -> Iterator[Path]:
    yield folder
    yield from (path.parent for path in sorted(folder.glob(f"*/{MANIFEST_FILE}")))


def _written_from(run: Path) -> Path | None:
    """The folder that the timings beside the log name; `None` where they name none."""
    try:
        with (run / TIMINGS_FILE).open(encoding="utf-8") as lines:
            named = json.loads(lines.readline())[RECORDING]
        return Path(named)
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _digest(folder: Path) -> str | None:
    """The recording's digest; `None` where the folder is no recording that can be read."""
    try:
        return read_manifest(folder).recording_digest()
    except RecordingError:
        return None
