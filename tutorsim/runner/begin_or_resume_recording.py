"""What a folder holds when a command begins to record: nothing, a part, or a whole recording."""

import hashlib
import json
import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final, NamedTuple

from pydantic import ValidationError

from tutorsim.catalog import WORDINGS_FILE, WordingNames, Wordings, read_wordings
from tutorsim.errors import FolderError, RecordingError
from tutorsim.kernel.load_and_check_study_file import STUDY_FILE, write_study
from tutorsim.kernel.system_and_loaded_study import LoadedStudy
from tutorsim.records import RUN_FILE, TIMINGS_FILE, Provenance
from tutorsim.replay import (
    MANIFEST_FILE,
    SESSION_FILE,
    VERDICTS_FILE,
    AnsweredBy,
    FolderLock,
    Manifest,
    check_recordable,
    folder_error,
    package_versions,
    read_manifest,
    write_atomic,
)
from tutorsim.replay.cassette_file import cassette_files, check_regular
from tutorsim.replay.manifests_of_recordings_and_retests_provenance import (
    Digests,
    RetestManifest,
    relay_name,
    today,
)
from tutorsim.replay.recorded_calls_event_streams_and_mismatches import cassette_name, is_episode_id
from tutorsim.runner.early_stops_by_signal_cost_cap_or_outage import Budget
from tutorsim.runner.find_and_check_recording import check_verdicts
from tutorsim.runner.recording_options_and_queue_of_episodes_and_calls import (
    RecordingOptions,
    check_no_keys,
)
from tutorsim.runner.write_run_folder_and_timings import check_log_folder

if TYPE_CHECKING:
    from tutorsim.sandbox import Sandbox


# --- Begin or go on ------------------------------------------------------------------------------


class Begun(NamedTuple):
    """A recording that is begun or gone on with, its folders locked."""

    loaded: LoadedStudy
    """The study in the words in which the folder began to record it."""
    session: "Session"


@contextmanager
def recording(
    loaded: LoadedStudy,
    cassette_dir: Path,
    log_dir: Path,
    *,
    sandbox: "Sandbox",
    budget: Budget,
    options: RecordingOptions,
) -> Iterator[Begun]:
    """Begin to record a study, or go on with it: nothing is paid for before all is checked.

        with recording(loaded, cassettes, log, sandbox=…, budget=…, options=…) as begun:
            job = StudyJob(begun.loaded, begun.session, …)

    Raises the errors that `tutorsim.runner.record.record` names.
    """
    budget.check_models(loaded.model_names())
    check_no_keys(loaded, options)
    with locked(cassette_dir, log_dir):
        check_regular(cassette_dir, links=True)
        loaded = as_begun(loaded, cassette_dir)
        check_log_folder(log_dir, loaded.digest())
        check_folders(cassette_dir, log_dir, anew=options.anew)
        if not (cassette_dir / MANIFEST_FILE).exists():  # a finished one is taken up as it is
            _check_tasks(loaded, sandbox)
        yield Begun(loaded, open_session(loaded, cassette_dir, retry_errors=options.retry_errors))


@contextmanager
def locked(*folders: Path) -> Iterator[None]:
    """Keep other processes of ours out of some folders, which may be one and the same."""
    with ExitStack() as stack:
        for folder in sorted({folder.resolve() for folder in folders}):
            stack.enter_context(FolderLock(folder))
        yield


def _check_tasks(loaded: LoadedStudy, sandbox: "Sandbox") -> None:
    """Refuse programming tasks that cannot be judged, or whose tests prove nothing."""
    from tutorsim.sandbox import require_provable

    require_provable(sandbox, chain.from_iterable(loaded.tasks.values()))


# --- Recording session ---------------------------------------------------------------------------

RETRIED = "retry_errors"
STUDY_DRAFT = ".study.tmp"
"""Folder in which the study is written before its files take their places."""
RESTORE = "Restore the file from version control, or record the study into a new folder."


@dataclass(frozen=True)
class BaseSession:
    """What stays the same over all commands that make one job's folder."""

    file: ClassVar[str]
    """Name of the session file, which is in the folder while the job is unfinished."""

    folder: Path
    started: str
    """First day, ISO date in UTC."""
    latest: str
    """Day of the command before this one; today for the first."""
    today: str
    packages: dict[str, str]

    earlier: Manifest | RetestManifest | None
    """What was finished before."""

    def provenance(self, answered_by: AnsweredBy, *, relay: str | None, paid: bool) -> Provenance:
        """What answered, and on which days. `paid`: something was answered today."""
        before = self.earlier.provenance if self.earlier else None
        return answered_by.provenance(
            relay_name=relay or relay_name(before),
            recorded_from=self.started,
            recorded_to=self.today if paid else self.latest,
        )

    def finish(self) -> None:
        """Forget the session: its manifest is written."""
        (self.folder / self.file).unlink(missing_ok=True)


@dataclass(frozen=True)
class Session(BaseSession):
    """What stays the same over all commands that make one recording.

    session = open_session(loaded, folder)   # the session file is written, or read again
    session.provenance(answered_by, relay=None, paid=True)
    session.finish()                         # the manifest is written
    """

    file = SESSION_FILE

    earlier: Manifest | None
    """What was finished before, when failed episodes are taken up again."""
    retried: bool
    """Whether failed episodes are taken up again, by this command or by an interrupted one."""


def days_and_packages(earlier: Manifest | RetestManifest | None) -> dict[str, Any]:
    """`started`, `latest` and `packages` of a session of which nothing is left."""
    if earlier is None:
        return {"started": today(), "latest": today(), "packages": package_versions()}
    return {
        "started": earlier.provenance.recorded_from or today(),
        "latest": earlier.provenance.recorded_to or today(),
        "packages": dict(earlier.packages),
    }


def as_begun(loaded: LoadedStudy, folder: Path) -> LoadedStudy:
    """The study in the words and the form of digest in which a folder began to record it.

    With the folder's wordings, or in the first form, if that is what the folder holds; otherwise as
    it is.
    """
    digest = _digest_in(folder)
    if digest is None or digest == loaded.digest():
        return loaded
    wordings = read_wordings(folder)
    earlier = loaded.with_earlier_settings()
    others = [earlier, earlier.in_first_form()]
    for form in (loaded, earlier):
        if wordings is not None and _has(form.completed(wordings), form.used()):
            with suppress(ValidationError):  # opening the session refuses them
                others.append(form.with_wordings(wordings))
    return next((other for other in others if other.digest() == digest), loaded)


def _has(wordings: Wordings, names: WordingNames) -> bool:
    """Whether wordings hold every entry of the names; those of another study may not."""
    return all(set(used) <= set(wordings.get(part, {})) for part, used in names.items())


def _digest_in(folder: Path) -> str | None:
    """The study digest that a folder names; `None` where it names none that can be read."""
    for name in (MANIFEST_FILE, SESSION_FILE):
        try:
            return str(json.loads((folder / name).read_bytes())["study_digest"])
        except (OSError, ValueError, KeyError, TypeError):
            continue
    return None


def open_session(loaded: LoadedStudy, folder: Path, *, retry_errors: bool = False) -> Session:
    """Begin to record into a folder, or go on with it.

    A folder of another study, or a finished recording that was edited or compressed, is refused and
    stays as it is. An interrupted command that retried errors goes on so.
    """
    check_recordable(folder)
    digest, day = loaded.digest(), today()
    earlier = _finished(folder, digest)
    begun = _begun(folder, digest)
    retried = retry_errors or bool(begun and begun.pop(RETRIED, False))
    if earlier is not None:
        _check_unedited(folder, earlier, taken_up=begun is not None)
        _check_wordings(loaded, folder)
    if begun is None:
        begun = days_and_packages(earlier)
    head = {"study_digest": digest, **begun, "latest": day}
    if retried:
        head[RETRIED] = True
    write_atomic(folder / SESSION_FILE, json.dumps(head).encode())
    if earlier is None:
        keep_study(loaded, folder)
    return Session(folder, **begun, today=day, earlier=earlier, retried=retried)


def _finished(folder: Path, digest: str) -> Manifest | None:
    if not (folder / MANIFEST_FILE).exists():
        return None
    manifest = read_manifest(folder)
    if manifest.study_digest != digest:
        raise _another_study(folder, manifest.study_name)
    return manifest


def _begun(folder: Path, digest: str) -> dict[str, Any] | None:
    """What an unfinished session left; `None` where there is none, or nothing came of it."""
    try:
        found = json.loads((folder / SESSION_FILE).read_bytes())
        if found.pop("study_digest") == digest:
            known = {name: found[name] for name in ("started", "latest", "packages")}
            return known | {RETRIED: True} if found.get(RETRIED) else known
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise RecordingError(
            f"{folder / SESSION_FILE} cannot be read.",
            why=str(error),
            hint="Record into a new folder, or remove this file to go on.",
        ) from error
    if any(_recorded(folder)):
        raise _another_study(folder, None)
    return None


def _recorded(folder: Path) -> Iterator[Path]:
    yield from folder.glob("*.journal.jsonl")
    yield from folder.glob("*.*.*.*.json")


def _another_study(folder: Path, name: str | None) -> RecordingError:
    return RecordingError(
        f"{folder} holds the recording of another study{f' ({name})' if name else ''}.",
        why="Its study digest differs: settings, prompts or tasks are not the same.",
        hint="Choose another --cassette-dir.",
    )


def _check_unedited(folder: Path, manifest: Manifest, *, taken_up: bool) -> None:
    """Refuse to go on from other files than the manifest's; those `taken_up` may differ."""
    if not taken_up:
        check_verdicts(folder, manifest)
    for entry in manifest.episodes:
        if not taken_up or entry.status == "complete":
            check_as_recorded(folder, entry, restore=RESTORE)


def _check_wordings(loaded: LoadedStudy, folder: Path) -> None:
    stored = read_wordings(folder)
    if stored is not None and loaded.completed(stored) != loaded.wordings():
        raise RecordingError(
            f"{folder / WORDINGS_FILE} does not hold the recorded wordings.",
            why="It was edited, so nothing is asked in its words.",
            hint=RESTORE,
        )


def check_as_recorded(folder: Path, entry: Digests, *, restore: str) -> None:
    """Refuse to go on from a cassette that is not the manifest's.

    One that is not there is asked for again; `restore` is what the user can do.
    """
    path = folder / cassette_name(entry.episode_id)
    if path.is_file() and hashlib.sha256(path.read_bytes()).hexdigest() != entry.cassette_sha256:
        raise RecordingError(
            f"{path} was edited after it was recorded.",
            why="Its digest is not the manifest's, so nothing is written over it.",
            hint=restore,
        )


def keep_study(loaded: LoadedStudy, folder: Path) -> None:
    """Write the study's files into a recording; each takes its place whole."""
    draft = folder / STUDY_DRAFT
    try:
        shutil.rmtree(draft, ignore_errors=True)  # of a killed run; a link is not followed
        draft.mkdir()
        write_study(loaded, draft)
        for path in sorted(draft.iterdir()):
            path.replace(folder / path.name)
    except OSError as error:
        raise folder_error(folder / "study.toml", error) from error
    finally:
        shutil.rmtree(draft, ignore_errors=True)


# --- Folder checks -------------------------------------------------------------------------------

_JOURNAL: Final = ".journal.jsonl"
_OURS: Final = (STUDY_FILE, WORDINGS_FILE, VERDICTS_FILE, MANIFEST_FILE, SESSION_FILE)


def is_begun(folder: Path) -> bool:
    """Whether a folder holds a recording, finished or not."""
    return (folder / MANIFEST_FILE).exists() or (folder / SESSION_FILE).exists()


def check_folders(cassette_dir: Path, log_dir: Path, *, anew: bool) -> None:
    """Refuse folders in which a recording would overwrite or pay for what it should not.

    `anew`: the user wants to pay again for a study whose whole log is there.
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
