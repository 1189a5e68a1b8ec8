"""Recordings: making them, replaying them, and knowing what is in them.

What replays without the SDK and vcrpy can be had from here. Recording is in
`tutorsim.replay.recording_transport_tapes_and_journals`, and what `tutorsim cassette` shows in
`tutorsim.replay.list_and_check_recordings`; importing those takes longer.
"""

from tutorsim.replay.cassette_file import (
    Cassette,
    Playback,
    Reader,
    check_recordable,
    read_cassette,
)
from tutorsim.replay.durable_files_folder_lock_key_leaks import (
    FolderLock,
    folder_error,
    make_folder,
    write_atomic,
)
from tutorsim.replay.manifests_of_recordings_and_retests_provenance import (
    MANIFEST_FILE,
    SESSION_FILE,
    AnsweredBy,
    EpisodeEntry,
    Manifest,
    check_cassette,
    episode_entry,
    package_versions,
    read_manifest,
    write_manifest,
)
from tutorsim.replay.program_verdicts_and_person_inputs import VERDICTS_FILE, VerdictStore

__all__ = [
    "MANIFEST_FILE",
    "SESSION_FILE",
    "VERDICTS_FILE",
    "AnsweredBy",
    "Cassette",
    "EpisodeEntry",
    "FolderLock",
    "Manifest",
    "Playback",
    "Reader",
    "VerdictStore",
    "check_cassette",
    "check_recordable",
    "episode_entry",
    "folder_error",
    "make_folder",
    "package_versions",
    "read_cassette",
    "read_manifest",
    "write_atomic",
    "write_manifest",
]
