"""Finding and opening a recording: study, grid, manifest and log, held against one another."""

import hashlib
import json
import os
import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from importlib import resources
from itertools import zip_longest
from pathlib import Path
from typing import Any, Final, NamedTuple

from pydantic import BaseModel

from tutorsim.catalog import WORDINGS_FILE
from tutorsim.errors import (
    CatalogError,
    FalseManifest,
    LogError,
    RecordingError,
    StudyError,
    TaskFileError,
    TutorsimError,
    UsageError,
)
from tutorsim.kernel.load_and_check_study_file import load_recorded_study
from tutorsim.kernel.study_file_and_episode_spec import EpisodeSpec
from tutorsim.kernel.system_and_loaded_study import LoadedStudy, System, sum_of
from tutorsim.records import (
    EPISODES_FILE,
    RETEST_HEAD_FILE,
    RUN_FILE,
    TIMINGS_FILE,
    RunRecord,
    read_retest,
    read_run,
)
from tutorsim.replay import (
    MANIFEST_FILE,
    SESSION_FILE,
    VERDICTS_FILE,
    AnsweredBy,
    Cassette,
    EpisodeEntry,
    Manifest,
    Reader,
    read_manifest,
)
from tutorsim.replay.cassette_file import (
    READ_SUFFIXES,
    cassette_file,
    cassette_files,
    check_regular,
)
from tutorsim.replay.manifests_of_recordings_and_retests_provenance import (
    RETEST_MANIFEST_FILE,
    RETEST_SESSION_FILE,
    Digests,
    RetestManifest,
    read_retest_manifest,
    relay_name,
    retest_folder,
)
from tutorsim.replay.program_verdicts_and_person_inputs import INPUTS_FILE, inputs_digest
from tutorsim.runner.write_run_folder_and_timings import RECORDING, retest_head, run_record

# --- Bundled recordings --------------------------------------------------------------------------

BUNDLED = "demo"
"""Folder of the panel's bundled study."""


def bundled_recordings() -> dict[str, Path]:
    """Every bundled recording: name → folder."""
    folders = (root for root in _bundled_roots() if root.is_dir())
    found = (path.parent for root in folders for path in sorted(root.glob("*/manifest.json")))
    return {path.name: path for path in reversed(list(found))}


def _bundled_roots() -> tuple[Path, Path]:
    package = Path(str(resources.files("tutorsim")))
    return (package.parent / "cassettes", package / "cassettes")


def bundled_recording(name: str = BUNDLED) -> Path | None:
    """A bundled recording's folder: in the checkout, or in the installed package.

    Returns the folder; `None` where neither has it.
    """
    for root in _bundled_roots():
        if (root / name / "manifest.json").is_file():
            return root / name
    return None


def bundled_logs(program: str) -> tuple[Path, ...]:
    """The logs of another program that come with tutorsim: JSON files without a manifest."""
    folders = (root / program for root in _bundled_roots())
    kept = (one for one in folders if one.is_dir() and not (one / MANIFEST_FILE).exists())
    folder = next(kept, None)
    return tuple(sorted(folder.glob("*.json"))) if folder else ()


# --- Find recording ------------------------------------------------------------------------------

USUAL = Path("cassettes")
"""Where recordings are below the working directory."""


def is_recording(path: Path) -> bool:
    """Whether a folder is a recording, and not a run folder too."""
    return (path / MANIFEST_FILE).is_file() and not (path / RUN_FILE).is_file()


def find_recording(run: Path, *, cassette_dir: Path | None) -> Path:
    """The folder of the recording that a log was written from, known by its digest.

    `run` may be the folder of a recording, which is the answer itself. `cassette_dir`, a recording
    or a folder of recordings, is the only place to look at; `None` looks if the log was written
    from, among the bundled recordings, and in `cassettes` below the working directory.
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
    """The recording that a run folder was written from, where it is at hand."""
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


# --- Manifest check ------------------------------------------------------------------------------

Head = Manifest | RetestManifest


def check_origin(manifest: Head, cassette: Cassette, *, parent_study: str | None) -> None:
    """Hold what a cassette says of its own recording against the manifest.

    `parent_study` is the study digest of the recording that a branch continues, whose cassettes may
    stand in the folder.
    """
    if cassette.study_digest == manifest.study_digest:
        check_fact(manifest, "packages", dict(cassette.packages), cassette.name)
    elif cassette.study_digest != parent_study:
        check_fact(manifest, "study_digest", cassette.study_digest, cassette.name)


def check_entry(head: Head, recorded: Digests, computed: Digests) -> None:
    """Hold an episode's entry against what its cassette and its replay give.

    The digest of the record is not compared here.
    """
    one, other = (e.model_dump(mode="json") for e in (recorded, computed))
    other["record_sha256"] = one["record_sha256"]
    _compare(head.file, recorded.episode_id, one, other, "its cassette")


def check_provenance(manifest: Head, answered_by: AnsweredBy) -> None:
    """Hold what a manifest says of who answered against the replies."""
    stated = manifest.provenance
    computed = answered_by.provenance(
        relay_name=relay_name(stated),
        recorded_from=stated.recorded_from,
        recorded_to=stated.recorded_to,
    ).model_copy(update={"limits": stated.limits})
    both = (stated.model_dump(), computed.model_dump())
    _compare(manifest.file, "provenance", *both, "the cassettes")


_CONTINUATION: Final = re.compile(r"(.+)\.c[0-9]{2}")
"""A further future of an episode, by its id."""


def check_files(folder: Path, head: Head) -> None:
    """Refuse cassettes that a head does not name, and a second form of one that it does."""
    named, seen = {entry.episode_id for entry in head.episodes}, set()
    continued = {found[1] for name in named if (found := _CONTINUATION.fullmatch(name))}
    names = sorted(path.name for path in folder.iterdir())
    for episode_id, form in cassette_files(names):
        further = _CONTINUATION.fullmatch(episode_id)
        if episode_id not in named and further and further[1] in continued:
            continue  # of a growth that was stopped, and goes on from it
        if episode_id not in named or episode_id in seen:
            path = cassette_file(folder, episode_id, form)
            raise RecordingError(
                f"{path} is not of the recording.",
                why="Its episode has another file in the folder."
                if episode_id in named
                else f"{head.file} names no such episode.",
                hint="Move it away, or restore the folder from version control.",
            )
        seen.add(episode_id)


def check_head(manifest: Manifest, *, study_name: str, programs: int, log_sha256: str) -> None:
    """Hold the other fields of a manifest's head against the recording.

    `programs` is the number of programs with a verdict; `log_sha256` the digest of the lines that
    the replay gives.
    """
    check_fact(manifest, "study_name", study_name, "study.toml")
    check_fact(manifest, "log_sha256", log_sha256, "the replay")
    if (manifest.sandbox is None) != (programs == 0):
        check_fact(manifest, "sandbox", f"{programs} verdicts", "verdicts.jsonl")


def check_verdicts(folder: Path, manifest: Manifest) -> None:
    """Hold the files of verdicts and of a person's inputs against the manifest."""
    path = folder / VERDICTS_FILE
    found = (
        hashlib.sha256(path.read_bytes()).hexdigest()
        if path.is_file() and not path.is_symlink()
        else None
    )
    inputs = inputs_digest(folder)
    if inputs is not None and inputs != manifest.inputs_sha256:  # a replay misses one that is gone
        raise RecordingError(
            f"{folder / INPUTS_FILE} is not the file of inputs that was recorded.",
            why=f"It was edited, or is not of this recording: its digest is {inputs}.",
            hint="Restore the file from version control.",
        )
    if found != manifest.verdicts_sha256:
        raise RecordingError(
            f"{path} is not the file of verdicts that was recorded.",
            why="It is missing or was edited: its digest is not the manifest's.",
            hint="Restore the file from version control.",
        )


def check_fact(head: Head, field: str, computed: Any, source: str) -> None:
    """Hold one field of a head against what it should be.

    `source` names what the value was computed from.
    """
    _compare(head.file, field, getattr(head, field), computed, source)


def _compare(file: str, field: str, stated: Any, computed: Any, source: str) -> None:
    if stated != computed:
        raise FalseManifest(
            f"{file} does not say what {source} holds: {field}.",
            why=_said_and_is(field, "the manifest", stated, computed, source),
            hint=f"Restore {file} from version control; it is never edited by hand.",
        )


def _said_and_is(field: str, by: str, stated: Any, computed: Any, source: str) -> str:
    """What `by` says of a field and what a source gives, at the first place where they differ."""
    if isinstance(stated, dict) and isinstance(computed, dict):
        names = sorted(stated.keys() | computed.keys())
        name = next(name for name in names if stated.get(name) != computed.get(name))
        inside = (stated.get(name), computed.get(name))
        return _said_and_is(f"{field}.{name}", by, *inside, source)
    return f"{field}: {by} says {stated!r}, {source} {computed!r}."


# --- Open recording ------------------------------------------------------------------------------

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
    """Whether the recording lacks the wordings that recordings of its form have."""

    @cached_property
    def reader(self) -> Reader:
        """Reads its cassettes."""
        return Reader(self.folder)

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

    `RecordingError` if a part is missing, damaged, edited, or leads out of the folder.
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
    """Refuse a recording whose wordings changed even though no call did."""
    if recording.drifted:
        raise RecordingError(
            f"{recording.folder}: the prompts of this tutorsim are not the recorded ones.",
            why="Every recorded call still matches, but the prompt digest differs, and the "
            "recording has no wordings of its own.",
            hint="`tutorsim cassette convert` of the tutorsim that recorded it adds them.",
        )


def check_kept(recording: Recording) -> None:
    """Refuse a recording of which a file is gone that its other files ask for."""
    if recording.without_wordings:
        raise _gone(recording.folder / WORDINGS_FILE, "Today's wordings happen to be the same.")
    folder = retest_folder(recording.folder)
    if (folder / RETEST_SESSION_FILE).exists():
        return
    names = sorted(path.name for path in folder.iterdir()) if folder.is_dir() else []
    made = recording.manifest.retested or any(cassette_files(names))
    if RETEST_MANIFEST_FILE not in names and made:
        raise _gone(folder / RETEST_MANIFEST_FILE, "The calls of the retest were not played.")


def _gone(path: Path, why: str) -> RecordingError:
    return RecordingError(
        f"{path} is not there.", why=why, hint="Restore the file from version control."
    )


def check_links(folder: Path) -> None:
    """Refuse files that lead out of the folder, before any is read."""
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


# --- Log digest check ----------------------------------------------------------------------------


def check_tied(run: Path) -> str | None:
    """Hold the head of a log, and the digest of its lines, against its recording.

    `None` if the log is what a recording at hand gives; otherwise a sentence that says why nothing
    vouches for what it says. `LogError` if it is not what its recording gives.
    """
    found = read_run(run)
    folder = recording_at_hand(run, found.recording_digest)
    if folder is None:
        named = found.recording_digest[:12]
        why = f"no recording at hand has its digest {named}…" if named else "it names no recording"
        return f"{run} is not tied to a recording, so nothing vouches for what it says: {why}."
    expected = _expected(folder)
    if expected is None:
        return f"{run} is not tied to a recording: the study of {folder} cannot be read."
    _check_head(run / RUN_FILE, found, expected, folder)
    return _check_retest(run, folder)


def check_log_of(run: Path, recording: Recording) -> None:
    """Hold a whole log, line by line, against its recording.

    `LogError` names the episode or the field that the recording does not give.
    """
    path, entries = run / EPISODES_FILE, iter(recording.manifest.episodes)
    try:
        with path.open("rb") as lines:
            for line, entry in zip_longest(lines, entries):
                digest = None if line is None else hashlib.sha256(line.rstrip(b"\n")).hexdigest()
                if entry is None or digest != entry.record_sha256:
                    raise _edited(path, entry.episode_id if entry else "", recording.folder)
    except OSError as error:
        raise LogError(
            f"{path} cannot be read.",
            why=str(error),
            hint=f"Write it again with `tutorsim replay {recording.folder}`, into a new folder.",
        ) from error
    expected = run_record(recording.loaded, recording.manifest)
    _check_head(run / RUN_FILE, read_run(run), expected, recording.folder)


def _edited(path: Path, episode_id: str, folder: Path) -> LogError:
    return LogError(
        f"{path} is not what its recording gives: {episode_id or 'lines after its last episode'}.",
        why="The line was edited, cut or put elsewhere: its digest is not the one in the manifest "
        f"of {folder}.",
        hint=f"Write it again with `tutorsim replay {folder}`, into a new folder.",
    )


def _check_retest(run: Path, folder: Path) -> str | None:
    """Hold the retest beside a log against that of the recording, which may have grown since."""
    path, found = run / RETEST_HEAD_FILE, read_retest(run)
    if found is None:
        return None
    manifest = read_retest_manifest(retest_folder(folder))
    if manifest is None or found.head.retest_sha256 != manifest.retest_sha256:
        which = "has none" if manifest is None else "has another one"
        return f"{path} is not tied to the retest of its recording: {folder} {which}."
    _check_head(path, found.head, retest_head(manifest), folder)
    return None


def _check_head(path: Path, found: BaseModel, expected: BaseModel, folder: Path) -> None:
    stated, computed = (one.model_dump(mode="json") for one in (found, expected))
    for name, value in computed.items():
        if stated.get(name) != value:
            raise LogError(
                f"{path} is not what its recording gives: {name}.",
                why=_said_and_is(
                    name, "the log", stated.get(name), value, f"the recording in {folder}"
                ),
                hint=f"Write it again with `tutorsim replay {folder}`, into a new folder; "
                "`tutorsim verify` says whether the recording still gives its bytes.",
            )


def _expected(folder: Path) -> RunRecord | None:
    """The head of the log that a recording gives; `None` where its study cannot be read."""
    manifest = read_manifest(folder)
    try:
        loaded = load_recorded_study(folder)
    except TutorsimError:
        return None
    recorded = loaded.with_digest(manifest.study_digest)
    return None if recorded is None else run_record(recorded, manifest)


# --- Usual length --------------------------------------------------------------------------------


class UsualLength(NamedTuple):
    """The length of the episodes of a recording."""

    share: float
    """0 where every episode took its shortest path, 1 where each took its longest."""
    recording: str
    """Name of its study, and what answered."""


def usual_length(system: System) -> UsualLength | None:
    """The length of a system's bundled episodes; `None` where it has none that can be read."""
    folder = bundled_recording(system.demo) if system.demo else None
    try:
        return None if folder is None else length_of(folder)
    except TutorsimError:
        return None  # a plan needs no recording


def length_of(folder: Path) -> UsualLength | None:
    """The length of a recording's episodes; `None` where only one length is possible."""
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
