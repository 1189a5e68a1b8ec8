"""What a person said while an episode was recorded, one line for each time that a flow listened.

A line is on disk before the flow goes on, so a lesson that was cut off goes on where it was, and
a replay hears the same. Each line has a digest; the manifest has one of the whole file.
"""

import hashlib
import json
from pathlib import Path
from typing import Final

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from tutorsim.errors import ChangedCallError, RecordingError
from tutorsim.mechanisms.flow import Heard, Listen
from tutorsim.records import to_line
from tutorsim.replay.safe_files import AppendFile, write_atomic

__all__ = ["INPUTS_FILE", "InputStore", "inputs_digest"]

INPUTS_FILE: Final = "inputs.jsonl"


class _Entry(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    episode_id: str
    number: int = Field(ge=1)
    """From 1: how often the episode's flow had listened."""
    turn: int
    place: str
    wait_s: float | None
    text: str | None
    waited_ms: int
    ended: bool
    message_id: str
    digest: str
    """Digest of all other fields."""

    def unchanged(self) -> bool:
        return self.digest == _digest(self)

    def heard(self) -> Heard:
        return Heard(self.text, self.waited_ms, self.ended, self.message_id)


class InputStore:
    """The inputs of a recording.

    Args:
        folder: The recording.

    Raises:
        RecordingError: If the file is there and was edited.
    """

    def __init__(self, folder: Path) -> None:
        self._file = AppendFile(folder / INPUTS_FILE)
        self._entries: dict[tuple[str, int], _Entry] = {}
        for number, line in enumerate(self._lines(), start=1):
            entry = self._parsed(line, number)
            self._entries[entry.episode_id, entry.number] = entry

    def __len__(self) -> int:
        return len(self._entries)

    def find(self, episode_id: str, number: int, listen: Listen) -> Heard | None:
        """What was heard the `number`-th time that an episode listened; `None` if not recorded.

        Raises:
            ChangedCallError: If the recorded listening was at another place or of another length.
        """
        entry = self._entries.get((episode_id, number))
        if entry is None:
            return None
        recorded = (entry.turn, entry.place, entry.wait_s)
        if recorded != (listen.turn, listen.place, listen.wait_s):
            raise ChangedCallError(
                f"{episode_id}: input {number} was heard at {recorded}, and the flow now listens "
                f"at {(listen.turn, listen.place, listen.wait_s)}.",
                why="The settings or the program are not those of the recording.",
                hint="Replay with the study of the recording, or record the lesson again.",
            )
        return entry.heard()

    def heard(self, episode_id: str) -> bool:
        """Whether an episode has listened before."""
        return (episode_id, 1) in self._entries

    def message_ids(self, episode_id: str) -> set[str]:
        """The page's names of the messages that an episode has heard."""
        entries = (entry for (name, _), entry in self._entries.items() if name == episode_id)
        return {entry.message_id for entry in entries if entry.message_id}

    def add(self, episode_id: str, number: int, listen: Listen, heard: Heard) -> None:
        """Keep what was heard; it survives a kill of this process from here on.

        Raises:
            FolderError: If it cannot be written.
        """
        entry = _Entry(
            episode_id=episode_id,
            number=number,
            turn=listen.turn,
            place=listen.place,
            wait_s=listen.wait_s,
            text=heard.text,
            waited_ms=heard.waited_ms,
            ended=heard.ended,
            message_id=heard.message_id,
            digest="",
        )
        entry = entry.model_copy(update={"digest": _digest(entry)})
        self._file.append(to_line(entry).encode())
        self._entries[episode_id, number] = entry

    def finish(self) -> str | None:
        """Rewrite the file sorted by episode and number.

        Returns:
            SHA-256 of the file; `None`, and no file, where nobody was listened to.

        Raises:
            FolderError: If it cannot be written.
        """
        self._file.close()
        if not self._entries:
            return None
        lines = [to_line(self._entries[key]) for key in sorted(self._entries)]
        data = "".join(f"{line}\n" for line in lines).encode()
        write_atomic(self._file.path, data)
        return hashlib.sha256(data).hexdigest()

    def close(self) -> None:
        """Release the file."""
        self._file.close()

    def _lines(self) -> list[bytes]:
        try:
            return self._file.read()
        except OSError as error:
            raise self._refused(error.strerror or str(error)) from error

    def _parsed(self, line: bytes, number: int) -> _Entry:
        try:
            entry = _Entry.model_validate_json(line)
        except ValidationError as error:
            raise self._refused(f"Line {number}: {error.errors()[0]['msg']}.") from error
        if not entry.unchanged():
            raise self._refused(f"Line {number}: its digest does not fit its content.")
        return entry

    def _refused(self, why: str) -> RecordingError:
        return RecordingError(
            f"{self._file.path} is not a whole file of inputs.",
            why=why,
            hint="Restore the file from version control, or record the lesson into a new folder.",
        )


def inputs_digest(folder: Path) -> str | None:
    """SHA-256 of a recording's file of inputs; `None` where there is none."""
    try:
        return hashlib.sha256((folder / INPUTS_FILE).read_bytes()).hexdigest()
    except FileNotFoundError:
        return None


def _digest(entry: _Entry) -> str:
    value = entry.model_dump(mode="json", exclude={"digest"})
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()
