"""Recordings: making them, replaying them, and knowing what is in them.

What replays without the SDK and vcrpy can be had from here. Recording is in
`tutorsim.replay.recording`, the reader through the SDK in `tutorsim.replay.sdk_reader`, and what
`tutorsim cassette` shows in `tutorsim.replay.inventory`; importing those takes longer.
"""

from tutorsim.replay.cassette import Cassette, read_cassette
from tutorsim.replay.files import FolderLock, folder_error, make_folder, write_atomic
from tutorsim.replay.forms import check_recordable
from tutorsim.replay.manifest import (
    MANIFEST_FILE,
    EpisodeEntry,
    Manifest,
    Outcome,
    check_cassette,
    episode_entry,
    episode_outcome,
    read_manifest,
    write_manifest,
)
from tutorsim.replay.provenance import Witness, package_versions
from tutorsim.replay.reader import FastPlayback, FastReader, Playback, Reader, check_all_used
from tutorsim.replay.verdicts import VERDICTS_FILE, VerdictStore

__all__ = [
    "MANIFEST_FILE",
    "VERDICTS_FILE",
    "Cassette",
    "EpisodeEntry",
    "FastPlayback",
    "FastReader",
    "FolderLock",
    "Manifest",
    "Outcome",
    "Playback",
    "Reader",
    "VerdictStore",
    "Witness",
    "check_all_used",
    "check_cassette",
    "check_recordable",
    "episode_entry",
    "episode_outcome",
    "folder_error",
    "make_folder",
    "package_versions",
    "read_cassette",
    "read_manifest",
    "write_atomic",
    "write_manifest",
]
