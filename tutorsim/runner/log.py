"""Writing a run folder: `episodes.jsonl` in grid order, then `run.json`, and timings beside them.

A folder shows a whole log or none: lines gather in a file beside it, which takes the log's name
when the last one is there.
"""

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO

from tutorsim.errors import FolderError, LogError
from tutorsim.records import (
    EPISODES_FILE,
    RUN_FILE,
    TIMINGS_FILE,
    RunRecord,
    read_run,
)
from tutorsim.replay import Manifest, folder_error, make_folder, write_atomic
from tutorsim.study import LoadedStudy

__all__ = ["LogWriter", "check_log_folder", "run_record"]


def check_log_folder(folder: Path, study_digest: str) -> None:
    """Refuse to write over a log that is not an earlier one of the same study.

    Raises:
        LogError: If a log is there and damaged; it stays as it is.
        FolderError: If a log of another study is there.
    """
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


class LogWriter:
    """Writes one run folder. A context manager; nothing takes a log's name before `finish`.

    Args:
        folder: The run folder; created where it does not exist.

    Raises:
        FolderError: If the folder cannot be written.
    """

    def __init__(self, folder: Path) -> None:
        make_folder(folder)
        self._folder = folder
        self._partial = folder / f"{EPISODES_FILE}.partial"
        self._digest = hashlib.sha256()
        self._timings: list[Mapping[str, Any]] = []
        self._file: BinaryIO | None = None
        self.count = 0

    def __enter__(self) -> "LogWriter":
        try:
            self._file = self._partial.open("wb")
        except OSError as error:
            raise folder_error(self._partial, error) from error
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._file is not None:
            self._file.close()
            self._partial.unlink(missing_ok=True)

    def add(self, line: str, episode_id: str, seconds: float) -> None:
        """Add the next episode's line, without its line end.

        Raises:
            FolderError: If it cannot be written.
        """
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
        """Give the log its names.

        Args:
            run: The head.
            machine: What ran it, for the first line of the timings.

        Raises:
            FolderError: If a file cannot be written.
        """
        assert self._file is not None
        try:
            self._file.close()
            self._partial.replace(self._folder / EPISODES_FILE)
        except OSError as error:
            raise folder_error(self._folder, error) from error
        text = json.dumps(run.model_dump(mode="json"), ensure_ascii=False, indent=1)
        write_atomic(self._folder / RUN_FILE, f"{text}\n".encode())
        lines = [json.dumps(value, ensure_ascii=False) for value in (machine, *self._timings)]
        write_atomic(self._folder / TIMINGS_FILE, "".join(f"{line}\n" for line in lines).encode())


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
