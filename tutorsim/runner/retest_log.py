"""The retest beside a log: `retest.json`, its head, and `retest.jsonl`, a line an episode."""

import hashlib
import json
from pathlib import Path

from tutorsim.records import RETEST_FILE, RETEST_HEAD_FILE, RetestHead
from tutorsim.replay import write_atomic
from tutorsim.replay.retest_folder import RetestManifest
from tutorsim.runner.run_folder_writer import remove_retest

__all__ = ["RetestLog", "retest_head"]


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
        """Write both files into a run folder.

        Raises:
            FolderError: If they cannot be written.
        """
        head = retest_head(manifest).model_copy(update={"retest_sha256": self.sha256})
        text = json.dumps(head.model_dump(mode="json"), ensure_ascii=False, indent=1)
        remove_retest(folder)
        write_atomic(folder / RETEST_FILE, self._data)
        write_atomic(folder / RETEST_HEAD_FILE, f"{text}\n".encode())
