"""The journal of an episode being recorded: one line a reply, written before it is handed on.

The first line says what the journal belongs to. A journal lives until its cassette is written.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, get_args

import orjson

from tutorsim.errors import RecordingError
from tutorsim.model import CALL_HEADER, CallKey, json_value
from tutorsim.replay.recorded_call import Interaction
from tutorsim.replay.safe_files import AppendFile
from tutorsim.vocabularies import ProvenanceKind

__all__ = ["JOURNAL_SCHEMA", "Journal", "journal_path"]

JOURNAL_SCHEMA: Final = 1
_FIELDS: Final = frozenset(Interaction._fields)
_OPTIONAL: Final = frozenset(Interaction._field_defaults)


def journal_path(folder: Path, episode_id: str) -> Path:
    """Where an episode's journal is kept."""
    return folder / f"{episode_id}.journal.jsonl"


class Journal:
    """Appends interactions to an episode's journal, and reads what an earlier run left.

    Args:
        folder: The recording's folder.
        episode_id: The episode.
        study_digest: What the recording is of; a journal of another study is refused.
    """

    def __init__(self, folder: Path, episode_id: str, study_digest: str) -> None:
        self._file = AppendFile(journal_path(folder, episode_id))
        self._head = {
            "schema": JOURNAL_SCHEMA,
            "episode_id": episode_id,
            "study_digest": study_digest,
        }
        self._started = False

    def read(self) -> dict[str, Interaction]:
        """What is recorded so far, by call key. A torn last line counts as never written.

        Raises:
            RecordingError: If the journal is of another study or version, or was edited.
        """
        try:
            lines = self._file.read()
        except OSError as error:
            raise self._refused(error.strerror or str(error)) from error
        self._started = bool(lines)
        if lines:
            self._check_head(lines[0])
        found: dict[str, Interaction] = {}
        for number, line in enumerate(lines[1:], start=2):
            one = self._parsed(line, number)
            if one.key in found:
                raise self._refused(f"Line {number} holds call {one.key} a second time.")
            found[one.key] = one
        return found

    def append(self, one: Interaction) -> None:
        """Write a reply down; it survives a kill from here on.

        Raises:
            FolderError: If it cannot be written.
        """
        if not self._started:
            self._file.append(orjson.dumps(self._head))
            self._started = True
        self._file.append(orjson.dumps(one._asdict()))

    @property
    def unsynced(self) -> bool:
        """Whether replies were added since the last `sync`."""
        return self._file.unsynced

    def sync(self) -> None:
        """Make the replies survive a failure of the machine."""
        self._file.sync()

    def close(self) -> None:
        """Release the file."""
        self._file.close()

    def remove(self) -> None:
        """Delete the file, once the cassette holds all of it."""
        self._file.remove()
        self._started = False

    def _check_head(self, line: bytes) -> None:
        try:
            head = orjson.loads(line)
        except orjson.JSONDecodeError as error:
            raise self._refused("Its first line is not a journal's.") from error
        if head != self._head:
            raise self._refused(f"It begins with {head!r}, not with {self._head!r}.")

    def _parsed(self, line: bytes, number: int) -> Interaction:
        try:
            fields: Mapping[str, Any] = orjson.loads(line)
            if not _FIELDS - _OPTIONAL <= fields.keys() <= _FIELDS:
                raise ValueError("fields are missing or unknown")
            one = Interaction(**fields)
            self._check(one)
            return one
        except (ValueError, AttributeError, TypeError, KeyError) as error:
            raise self._refused(f"Line {number}: {error}.") from error

    def _check(self, one: Interaction) -> None:
        """Hold a line against what is written: a request of this episode, and the reply to it."""
        CallKey.parse(one.key)
        if one.kind not in get_args(ProvenanceKind):
            raise ValueError(f"{one.kind!r} answered, which is of no known kind")
        if one.status not in range(200, 300):
            raise ValueError(f"the reply to call {one.key} is not a success")
        for headers in (one.request_headers, one.response_headers):
            if not all(isinstance(value, str) for value in headers.values()):
                raise ValueError(f"a header of call {one.key} is no text")
        called = one.request_headers[CALL_HEADER]
        if called != f"{self._head['episode_id']}/{one.key}":
            raise ValueError(f"call {one.key} was made as {called}")
        if self._head["study_digest"] == "":
            return
        if not isinstance(json_value(one.request), dict):
            raise ValueError(f"the request of call {one.key} is no JSON object")
        one.reply()

    def _refused(self, why: str) -> RecordingError:
        return RecordingError(
            f"{self._file.path.name} is not a journal of this recording.",
            why=why,
            hint="Record into a new folder, or move this file away to ask its calls again.",
        )
