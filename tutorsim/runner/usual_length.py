"""How long episodes usually are: where a recording's calls lie between the fewest and the most."""

from pathlib import Path
from typing import NamedTuple

from tutorsim.bundled_recordings import bundled_recording
from tutorsim.errors import TutorsimError
from tutorsim.replay import read_manifest
from tutorsim.systems import System, load_recorded_study, sum_of

__all__ = ["UsualLength", "length_of", "usual_length"]


class UsualLength(NamedTuple):
    """The length of the episodes of a recording."""

    share: float
    """0 where every episode took its shortest path, 1 where each took its longest."""
    recording: str
    """Its study, and what answered."""


def usual_length(system: System) -> UsualLength | None:
    """The length of a system's bundled episodes; `None` where it has none that can be read."""
    folder = bundled_recording(system.demo) if system.demo else None
    try:
        return None if folder is None else length_of(folder)
    except TutorsimError:
        return None  # a plan needs no recording


def length_of(folder: Path) -> UsualLength | None:
    """The length of a recording's episodes; `None` where only one length is possible.

    Raises:
        RecordingError, StudyError: If the recording cannot be read.
    """
    manifest = read_manifest(folder)
    loaded = load_recorded_study(folder)
    calls = sum_of([loaded.call_range(spec) for spec in loaded.grid()])
    if calls.most <= calls.least:
        return None
    made = sum(entry.calls for entry in manifest.episodes)
    share = (made - calls.least) / (calls.most - calls.least)
    stated = manifest.provenance
    return UsualLength(
        min(1.0, max(0.0, share)), f"{manifest.study_name} ({stated.kind}: {stated.name})"
    )
