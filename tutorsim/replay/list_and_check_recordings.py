"""What recordings there are, what is in them, and what belongs to no study."""

import hashlib
import os
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from tutorsim.errors import RecordingError, ReplayError, TutorsimError
from tutorsim.model import json_value
from tutorsim.replay.cassette_file import (
    READ_SUFFIXES,
    Cassette,
    cassette_file,
    cassette_files,
    cassettes_by_content,
    check_inside,
    decompressed,
    read_cassette,
    unreadable_reply,
)
from tutorsim.replay.durable_files_folder_lock_key_leaks import key_shaped
from tutorsim.replay.manifests_of_recordings_and_retests_provenance import (
    MANIFEST_FILE,
    RETEST_FOLDER,
    RETEST_MANIFEST_FILE,
    SESSION_FILE,
    EpisodeEntry,
    Manifest,
    RetestEntry,
    RetestManifest,
    read_manifest,
    read_retest_manifest,
    retest_folder,
    today,
)
from tutorsim.replay.program_verdicts_and_person_inputs import VERDICTS_FILE
from tutorsim.replay.recorded_calls_event_streams_and_mismatches import (
    MESSAGES_URI,
    cassette_name,
    is_episode_id,
    response_values,
)

JOURNAL_SUFFIX = ".journal.jsonl"
_LONGEST_HEAD: Final = 4096
"""Bytes of the first line of a journal that are read."""


@dataclass(frozen=True)
class Retest:
    """The folder inside a recording that is, or was meant to be, its retest."""

    manifest: RetestManifest | None
    """`None` when it cannot be read or was not written yet."""
    problem: str | None
    """Why there is no manifest."""
    cassettes: tuple[str, ...]
    """Episode ids that have a cassette file, sorted."""
    journals: tuple[str, ...]
    """Episode ids that are half recorded, sorted."""


@dataclass(frozen=True)
class Recording:
    """A folder that is, or was meant to be, a recording."""

    folder: Path
    manifest: Manifest | None
    """`None` when it cannot be read or was not written yet."""
    problem: str | None
    """Why there is no manifest, or what of it a cassette contradicts."""
    cassettes: tuple[str, ...]
    """Episode ids that have a cassette file, in text or compressed, sorted."""
    journals: tuple[str, ...]
    """Episode ids that are half recorded, sorted."""
    size: int
    """Bytes of all cassettes."""
    retest: Retest | None
    """`None` where it has none."""
    loose: tuple[Cassette, ...] = ()
    """Cassettes of a panel of one's own, which stand for themselves, without a manifest."""
    loose_journals: tuple[str, ...] = ()
    """Names of such cassettes whose recording was interrupted, sorted."""


@dataclass(frozen=True)
class CallSummary:
    """One recorded call, in figures."""

    key: str
    model: str
    """What the request was for, where neither it nor the reply names a model."""
    stop_reason: str | None
    input_tokens: int | None
    """`None` where the reply does not say it."""
    output_tokens: int | None
    request_bytes: int
    response_bytes: int


@dataclass(frozen=True)
class Finding:
    """Something wrong with one file of a recording."""

    file: str
    problem: str


@dataclass(frozen=True)
class StudyEpisodes:
    """The episodes that a study would have."""

    name: str
    digest: str
    episode_ids: tuple[str, ...]


@dataclass(frozen=True)
class Orphans:
    """Recordings without a study, and episodes without a recording."""

    recordings: tuple[Path, ...]
    """Folders whose study is none of those given, or has changed since."""
    cassettes: tuple[tuple[Path, str], ...]
    """Folder and file name of cassettes that their own manifest does not name."""
    episodes: tuple[tuple[str, str], ...]
    """Study and episode id of episodes that no recording of that study has."""


def list_recordings(root: Path) -> tuple[Recording, ...]:
    """Find the recordings in a folder and the folders below it, sorted by path."""
    return tuple(_recording(folder, names) for folder, names in _folders(root))


def list_calls(cassette: Cassette) -> tuple[CallSummary, ...]:
    """Summarise the calls of a cassette, in its order."""
    return tuple(_summaries(cassette))


def loose_cassettes(folder: Path) -> tuple[tuple[Cassette, ...], tuple[Finding, ...]]:
    """Read the cassettes of a folder without manifest that are no study's.

    Those that can be read, by name, and what is wrong with the others; none of either if the folder
    is a recording, whole or unfinished.
    """
    names = sorted(path.name for path in folder.iterdir()) if folder.is_dir() else []
    return _loose(folder, names)


def _loose(folder: Path, names: list[str]) -> tuple[tuple[Cassette, ...], tuple[Finding, ...]]:
    if {MANIFEST_FILE, SESSION_FILE} & set(names):
        return (), ()
    read: list[Cassette] = []
    findings: list[Finding] = []
    for name in dict(cassettes_by_content(folder, names)):
        try:
            read.append(read_cassette(folder, name))
        except (RecordingError, ReplayError) as error:
            findings.append(Finding(cassette_name(name), _one_line(error)))
    return ((), ()) if any(one.study_digest for one in read) else (tuple(read), tuple(findings))


def verify_files(folder: Path) -> tuple[Finding, ...]:
    """Hold every file of a recording against its manifest, without replaying anything.

    Of cassettes that no manifest names it tells those that cannot be read or hold a key.
    """
    loose, unreadable = loose_cassettes(folder)
    if loose or unreadable:
        names = sorted(path.name for path in folder.iterdir())
        files = [cassette_file(folder, *one) for one in cassettes_by_content(folder, names)]
        return (*unreadable, *_check_keys(folder, files))
    manifest = read_manifest(folder)
    findings = [found for entry in manifest.episodes for found in _check_entry(folder, entry)]
    findings += _check_kinds(folder, {entry.episode_id for entry in manifest.episodes})
    findings += _check_keys(folder, sorted(folder.rglob("*")))
    findings += _check_verdicts(folder, manifest)
    names = sorted(path.name for path in folder.iterdir())
    found = _recording(folder, names)
    known = {entry.episode_id for entry in manifest.episodes}
    findings += [
        Finding(cassette_name(name), "the manifest does not name it")
        for name in found.cassettes
        if name not in known
    ]
    findings += [
        Finding(cassette_name(name), "it is there in text and compressed; only the text counts")
        for name, forms in Counter(name for name, _ in cassette_files(names)).items()
        if forms > 1
    ]
    findings += [
        Finding(name + JOURNAL_SUFFIX, "the episode is half recorded") for name in found.journals
    ]
    if found.retest is not None:
        findings += _check_retest(folder, manifest, found.retest)
    elif manifest.retested:
        findings.append(Finding(RETEST_FOLDER, "it is not there, and a retest was made"))
    return tuple(findings)


def unasked_calls(folder: Path) -> tuple[Finding, ...]:
    """Cassettes of panels of one's own with calls that their program no longer asks for."""
    return tuple(
        Finding(one.name, f"nobody asked for {', '.join(one.unasked)} when it was last added to")
        for one in loose_cassettes(folder)[0]
        if one.unasked
    )


def earliest_day(age: str) -> str:
    """The day that lies an age such as `90d` before today; `ValueError` for any other text."""
    days = age.removesuffix("d")
    if not (days.isascii() and days.isdigit() and len(days) < 6):
        raise ValueError(f"{age!r} is no number of days; write for example 90d.")
    return str(date.fromisoformat(today()) - timedelta(days=int(days)))


def recorded_before(folder: Path, day: str) -> tuple[Finding, ...]:
    """Recordings whose first reply is older than a day, and those that do not say how old they are.

    The day is an ISO date in UTC.
    """
    loose, _ = loose_cassettes(folder)
    if loose:
        days = {one.name: one.recorded and one.recorded.first for one in loose}
    else:
        days = {MANIFEST_FILE: read_manifest(folder).provenance.recorded_from}
    return tuple(
        Finding(name, f"it was recorded on {first}" if first else "it does not say its age")
        for name, first in days.items()
        if not first or first < day
    )


def orphans(recordings: Sequence[Recording], studies: Iterable[StudyEpisodes]) -> Orphans:
    """Tell what belongs to nothing. A recording belongs to the study whose digest it has."""
    wanted = {study.digest: study for study in studies}
    by_digest: dict[str, set[str]] = {digest: set() for digest in wanted}
    unused: list[Path] = []
    strays: list[tuple[Path, str]] = []
    for recording in recordings:
        manifest = recording.manifest
        if recording.loose:
            continue  # they are no study's
        if manifest is None or manifest.study_digest not in wanted:
            unused.append(recording.folder)
            continue
        named = {entry.episode_id for entry in manifest.episodes}
        by_digest[manifest.study_digest] |= named & set(recording.cassettes)
        strays += [
            (recording.folder, cassette_name(name))
            for name in recording.cassettes
            if name not in named
        ]
    without = [
        (study.name, episode)
        for digest, study in wanted.items()
        for episode in study.episode_ids
        if episode not in by_digest[digest]
    ]
    return Orphans(tuple(unused), tuple(strays), tuple(without))


def _folders(root: Path) -> Iterator[tuple[Path, list[str]]]:
    """Folders with a manifest, cassette or journal, and their files; retests stand inside."""
    for folder, below, names in os.walk(root):
        below.sort()
        if MANIFEST_FILE in names and RETEST_FOLDER in below:
            below.remove(RETEST_FOLDER)
        here = {MANIFEST_FILE, SESSION_FILE} & set(names) or any(map(_is_journal, names))
        path = Path(folder)
        if here or any(cassettes_by_content(path, names)) or _loose_journals(path, names):
            yield path, sorted(names)


def _recording(folder: Path, names: list[str]) -> Recording:
    manifest, problem = None, None
    try:
        manifest = read_manifest(folder)
    except RecordingError as error:
        problem = f"{error.what} {error.why}"
    loose, _ = _loose(folder, names)
    loose_journals = _loose_journals(folder, names)
    files = [*(cassettes_by_content(folder, names) if loose else cassette_files(names))]
    cassettes = dict(files)
    if manifest is not None and cassettes:
        problem = _contradicted(folder, manifest, next(iter(cassettes)))
    return Recording(
        folder=folder,
        manifest=manifest,
        problem=None if loose or loose_journals else problem,
        cassettes=tuple(cassettes),
        journals=tuple(name for name in _journals(names) if name not in loose_journals),
        size=sum(cassette_file(folder, *one).lstat().st_size for one in files),
        retest=_retest(folder),
        loose=loose,
        loose_journals=loose_journals,
    )


def _contradicted(folder: Path, manifest: Manifest, episode_id: str) -> str | None:
    """What a whole cassette of the study says against the manifest's word on who answered."""
    stated = manifest.provenance.kind
    try:
        cassette = read_cassette(folder, episode_id)
    except (RecordingError, ReplayError):
        return None
    if cassette.kind == stated or cassette.study_digest != manifest.study_digest:
        return None
    return f"The manifest says that {stated} answered, {cassette.name} says {cassette.kind}."


def _retest(folder: Path) -> Retest | None:
    inside = folder / RETEST_FOLDER
    if not inside.is_dir():
        return None
    names = sorted(path.name for path in inside.iterdir())
    manifest, problem = None, None
    try:
        manifest = read_retest_manifest(retest_folder(folder))
    except RecordingError as error:
        problem = _one_line(error)
    return Retest(
        manifest=manifest,
        problem=problem,
        cassettes=tuple(dict(cassette_files(names))),
        journals=_journals(names),
    )


def _journals(names: list[str]) -> tuple[str, ...]:
    return tuple(name.removesuffix(JOURNAL_SUFFIX) for name in names if _is_journal(name))


def _is_journal(name: str) -> bool:
    return name.endswith(JOURNAL_SUFFIX) and is_episode_id(name.removesuffix(JOURNAL_SUFFIX))


def _loose_journals(folder: Path, names: list[str]) -> tuple[str, ...]:
    journals = [name for name in names if name.endswith(JOURNAL_SUFFIX)]
    return tuple(
        name.removesuffix(JOURNAL_SUFFIX) for name in journals if _is_of_no_study(folder / name)
    )


def _is_of_no_study(journal: Path) -> bool:
    try:
        check_inside(journal)
        with journal.open("rb") as file:
            head = json_value(file.readline(_LONGEST_HEAD))
    except (RecordingError, OSError, ValueError):
        return False
    return isinstance(head, dict) and head.get("study_digest") == ""


def _summaries(cassette: Cassette) -> Iterator[CallSummary]:
    for key, one in cassette.interactions.items():
        try:
            said = response_values(one.response, one.response_headers.get("content-type", ""))
            if one.uri == MESSAGES_URI and len(said) == 1:
                one.reply()
            asked = json_value(one.request or "{}")
        except ValueError as error:
            raise unreadable_reply(cassette.name, key, error) from error
        figures = {name: _last(said, fields) for name, fields in _SUMMARISED.items()}
        named = _last([asked], ("model",)) if figures["model"] is None else figures["model"]
        yield CallSummary(
            key=key,
            model=named or f"{one.method} {urlsplit(one.uri).path}",
            stop_reason=figures["stop_reason"],
            input_tokens=figures["input_tokens"],
            output_tokens=figures["output_tokens"],
            request_bytes=len(one.request.encode()),
            response_bytes=len(one.response.encode()),
        )


_SUMMARISED: Final = {
    "model": ("model", "modelVersion"),
    "stop_reason": ("stop_reason", "finish_reason", "finishReason"),
    "input_tokens": ("input_tokens", "prompt_tokens", "promptTokenCount"),
    "output_tokens": ("output_tokens", "completion_tokens", "candidatesTokenCount"),
}
"""What is told of a call → the fields of a reply that say it, in the APIs that people record."""


def _last(value: Any, fields: tuple[str, ...]) -> Any:
    """The last text or number under one of the fields; `None` where there is none."""
    found = None
    inner = value.items() if isinstance(value, dict) else enumerate(value)
    for name, one in inner:
        if isinstance(one, dict | list):
            deeper = _last(one, fields)
            found = found if deeper is None else deeper
        elif name in fields and one is not None:
            found = one
    return found


def _check_entry(folder: Path, entry: EpisodeEntry | RetestEntry) -> Iterator[Finding]:
    try:
        cassette = read_cassette(folder, entry.episode_id)
        if cassette.sha256 != entry.cassette_sha256:
            same = cassette.requests_sha256() == entry.requests_sha256
            what = "its replies were edited" if same else "its requests were edited"
            yield Finding(cassette.name, what)
    except (RecordingError, ReplayError) as error:
        yield Finding(cassette_name(entry.episode_id), _one_line(error))


def _check_retest(folder: Path, manifest: Manifest, found: Retest) -> Iterator[Finding]:
    """Hold the files of a retest against its manifest, and that against the recording's."""
    if found.problem is not None:
        yield Finding(f"{RETEST_FOLDER}/{RETEST_MANIFEST_FILE}", found.problem)
        return
    entries = found.manifest.episodes if found.manifest else ()
    if found.manifest and found.manifest.recording_digest != manifest.recording_digest():
        yield Finding(RETEST_FOLDER, "it is the retest of another recording")
    for entry in entries:
        for one in _check_entry(folder / RETEST_FOLDER, entry):
            yield Finding(f"{RETEST_FOLDER}/{one.file}", one.problem)
    known = {entry.episode_id for entry in entries}
    for name in found.cassettes:
        if name not in known:
            yield Finding(f"{RETEST_FOLDER}/{cassette_name(name)}", "the manifest does not name it")
    for name in found.journals:
        yield Finding(f"{RETEST_FOLDER}/{name}{JOURNAL_SUFFIX}", "the retest is half recorded")


def _check_kinds(folder: Path, checked: Collection[str]) -> Iterator[Finding]:
    """Links out of the folder, and pipes, beside the cassettes of the episodes `checked`."""
    for path in sorted(folder.iterdir()):
        episodes = {episode for episode, _ in cassette_files([path.name])}
        if path.suffix in READ_SUFFIXES and not episodes & set(checked):
            try:
                check_inside(path)
            except RecordingError as error:
                yield Finding(path.name, _one_line(error))


def _check_keys(folder: Path, paths: Iterable[Path]) -> Iterator[Finding]:
    """Strings in the shape of a key, in files of a folder."""
    for path in paths:
        if path.is_symlink() or not path.is_file():
            continue
        data = path.read_bytes()
        try:
            text = decompressed(data, path.name) if path.suffix == ".zst" else data
        except RecordingError:
            continue  # the check of its entry says so
        for shaped in key_shaped(text.decode(errors="replace")):
            yield Finding(
                str(path.relative_to(folder)), f"it holds a string in the shape of a key, {shaped}"
            )


def _check_verdicts(folder: Path, manifest: Manifest) -> Iterator[Finding]:
    path = folder / VERDICTS_FILE
    found = hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else None
    if found != manifest.verdicts_sha256:
        yield Finding(VERDICTS_FILE, "it is missing" if found is None else "it was edited")


def _one_line(error: TutorsimError) -> str:
    return " ".join(part for part in (error.what, error.why) if part)
