"""Writing a run folder: `episodes.jsonl` in grid order, `run.json`, `retest.jsonl`, and timings."""

import hashlib
import json
import os
import platform
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Final

from tutorsim.errors import FolderError, LogError
from tutorsim.kernel.system_and_loaded_study import LoadedStudy
from tutorsim.records import (
    EPISODES_FILE,
    RETEST_FILE,
    RETEST_HEAD_FILE,
    RUN_FILE,
    TIMINGS_FILE,
    RetestHead,
    RunRecord,
    read_run,
)
from tutorsim.replay import Manifest, folder_error, make_folder, package_versions, write_atomic
from tutorsim.replay.cassette_file import check_regular
from tutorsim.replay.durable_files_folder_lock_key_leaks import create_file
from tutorsim.replay.manifests_of_recordings_and_retests_provenance import RetestManifest

if TYPE_CHECKING:
    from tutorsim.sandbox import Sandbox

# --- Run folder writer ---------------------------------------------------------------------------

PARTIAL = ".partial"


def check_log_folder(folder: Path, study_digest: str) -> None:
    """Refuse to write over a log that is not an earlier one of the same study.

    A damaged log stays as it is and is a `LogError`; one of another study a `FolderError`.
    """
    check_regular(folder, links=False)
    _finish_renaming(folder)
    if not (folder / RUN_FILE).exists():
        if (folder / EPISODES_FILE).exists():
            raise LogError(
                f"{folder} holds {EPISODES_FILE} without {RUN_FILE}.",
                why="It is not a whole log, and nothing is written over it.",
                hint="Choose another --log-dir, or move the file away.",
            )
        return
    found = read_run(folder)
    if found.study_digest != study_digest:
        raise FolderError(
            f"{folder} holds the log of another study ({found.study.name}).",
            why="Its study digest differs: settings, prompts or tasks are not the same.",
            hint="Choose another --log-dir.",
        )


def _finish_renaming(folder: Path) -> None:
    """Give the head its name where a kill left it without, and only the lines have theirs."""
    partial = folder / f"{RUN_FILE}{PARTIAL}"
    try:
        wanted = json.loads(partial.read_bytes())["episodes_sha256"]
        with (folder / EPISODES_FILE).open("rb") as lines:
            found = hashlib.file_digest(lines, "sha256").hexdigest()
    except (OSError, ValueError, KeyError, TypeError):
        return  # it was not reached, or the kill came before the lines had their name
    if found == wanted:
        _renamed(partial, folder / RUN_FILE)


def _renamed(partial: Path, path: Path) -> None:
    try:
        partial.replace(path)
    except OSError as error:
        raise folder_error(path, error) from error


class LogWriter:
    """Writes one run folder. A context manager; nothing takes a log's name before `finish`.

    The folder is created if it does not exist.
    """

    def __init__(self, folder: Path) -> None:
        self._made = not folder.exists()
        make_folder(folder)
        self._folder = folder
        self._partial = folder / f"{EPISODES_FILE}{PARTIAL}"
        self._head = folder / f"{RUN_FILE}{PARTIAL}"
        self._digest = hashlib.sha256()
        self._timings: list[Mapping[str, Any]] = []
        self._file: BinaryIO | None = None
        self.count = 0

    def __enter__(self) -> "LogWriter":
        try:
            self._file = os.fdopen(create_file(self._partial), "wb")
        except OSError as error:
            raise folder_error(self._partial, error) from error
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if self._file is not None:
            with suppress(OSError):  # a full disk refuses what is left in the buffer once more
                self._file.close()
            self._partial.unlink(missing_ok=True)
            self._head.unlink(missing_ok=True)
            if error is not None and self._made:
                with suppress(OSError):  # something else may lie there by now
                    self._folder.rmdir()

    def add(self, line: str, episode_id: str, seconds: float) -> None:
        """Add the next episode's line, without its line end."""
        assert self._file is not None
        data = f"{line}\n".encode()
        try:
            self._file.write(data)
        except OSError as error:
            raise folder_error(self._partial, error) from error
        self._digest.update(data)
        self._timings.append({"episode_id": episode_id, "seconds": round(seconds, 6)})
        self.count += 1

    @property
    def sha256(self) -> str:
        """Digest of the lines so far."""
        return self._digest.hexdigest()

    def finish(self, run: RunRecord, machine: Mapping[str, Any]) -> None:
        """Give the log its names."""
        assert self._file is not None
        text = json.dumps(run.model_dump(mode="json"), ensure_ascii=False, indent=1)
        try:
            self._file.flush()
            os.fsync(self._file.fileno())
            self._file.close()
        except OSError as error:
            raise folder_error(self._partial, error) from error
        write_atomic(self._head, f"{text}\n".encode())
        _renamed(self._partial, self._folder / EPISODES_FILE)
        _renamed(self._head, self._folder / RUN_FILE)
        _remove_other_retest(self._folder, run.recording_digest)
        lines = [json.dumps(value, ensure_ascii=False) for value in (machine, *self._timings)]
        write_atomic(self._folder / TIMINGS_FILE, "".join(f"{line}\n" for line in lines).encode())


def _remove_other_retest(folder: Path, recording_digest: str) -> None:
    """Take away the retest of a recording that this log is no longer of."""
    try:
        found = json.loads((folder / RETEST_HEAD_FILE).read_bytes())["recording_digest"]
    except (OSError, ValueError, KeyError, TypeError):
        return  # there is none; or it is damaged, and whoever reads it says so
    if found != recording_digest:
        remove_retest(folder)


def remove_retest(folder: Path) -> None:
    """Take the files of a retest out of a run folder: they are not of its log any more."""
    (folder / RETEST_HEAD_FILE).unlink(missing_ok=True)
    (folder / RETEST_FILE).unlink(missing_ok=True)


def run_record(loaded: LoadedStudy, manifest: Manifest) -> RunRecord:
    """The head of the log that a recording gives; the same for its run and its replays."""
    return RunRecord(
        study=loaded.settings(),
        study_digest=manifest.study_digest,
        recording_digest=manifest.recording_digest(),
        episodes_sha256=manifest.log_sha256,
        provenance=manifest.provenance,
        packages=manifest.packages,
        episodes=len(manifest.episodes),
    )


# --- Machine facts -------------------------------------------------------------------------------

RECORDING: Final = "recording"
"""Names the folder of the recording, which only this machine can find under that path."""


def machine_facts(
    command: str, recording: Path, sandbox: "Sandbox | None", *, used: bool
) -> dict[str, Any]:
    """The first line of `timings.jsonl`, the one place beside a log that may hold a path.

    A sandbox that was not needed, so that no program was judged (`used`), is not started for it.
    """
    return {
        "command": command,
        RECORDING: str(recording.resolve()),
        "python": platform.python_version(),
        "platform": f"{platform.system()} {platform.machine()}",
        "cores": os.cpu_count(),
        "packages": package_versions(),
        "sandbox": sandbox.report() if sandbox is not None and used else None,
    }


def fingerprint_text(sandbox: "Sandbox") -> str:
    """A sandbox's fingerprint as one line, as recorded verdicts carry it."""
    return json.dumps(sandbox.fingerprint, sort_keys=True, separators=(",", ":"))


# --- Retest log ----------------------------------------------------------------------------------


def retest_head(manifest: RetestManifest) -> RetestHead:
    """The head that a retest gives; the same when it is made and when it is replayed."""
    stated = RetestHead.model_fields.keys() - {"schema_version"}
    return RetestHead(**{name: getattr(manifest, name) for name in stated})


class RetestLog:
    """Gathers the lines of `retest.jsonl`, in grid order."""

    def __init__(self) -> None:
        self._lines: list[str] = []

    def add(self, line: str, episode_id: str, seconds: float) -> None:
        """Add the next episode's line, without its line end."""
        self._lines.append(f"{line}\n")

    @property
    def sha256(self) -> str:
        """Digest of the lines so far."""
        return hashlib.sha256(self._data).hexdigest()

    @property
    def _data(self) -> bytes:
        return "".join(self._lines).encode()

    def write(self, folder: Path, manifest: RetestManifest) -> None:
        """Write both files into a run folder."""
        head = retest_head(manifest).model_copy(update={"retest_sha256": self.sha256})
        text = json.dumps(head.model_dump(mode="json"), ensure_ascii=False, indent=1)
        remove_retest(folder)
        write_atomic(folder / RETEST_FILE, self._data)
        write_atomic(folder / RETEST_HEAD_FILE, f"{text}\n".encode())
