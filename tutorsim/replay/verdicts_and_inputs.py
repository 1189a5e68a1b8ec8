"""What is kept beside the cassettes: verdicts on programs, and what a person said."""

import hashlib
import json
from pathlib import Path
from typing import Final

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from tutorsim.errors import ChangedCallError, RecordingError
from tutorsim.kernel.flow import CodeResult, CodeRun, Listen, PersonInput
from tutorsim.records import VerdictRecord, to_line
from tutorsim.replay.durable_files_and_key_leaks import AppendFile, write_atomic

# --- Code verdicts -------------------------------------------------------------------------------

VERDICTS_FILE: Final = "verdicts.jsonl"


class _VerdictLine(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    program: str
    """Digest of what was judged."""
    digest: str
    """Digest of `program` and `fingerprint`."""
    fingerprint: str
    """What judged it."""
    code: str | None
    outcome: str
    reason: str
    near_limit: bool
    unsafe: bool

    def result(self) -> CodeResult:
        return CodeResult(
            code=self.code,
            verdict=VerdictRecord(
                outcome=self.outcome,
                reason=self.reason,
                near_limit=self.near_limit,
                unsafe=self.unsafe,
            ),
        )


class VerdictStore:
    """The verdict file of a recording.

    `fingerprint` is what would judge a program now; `None` in a replay, which takes any verdict.
    """

    def __init__(self, folder: Path, *, fingerprint: str | None = None) -> None:
        self._file = AppendFile(folder / VERDICTS_FILE)
        self._fingerprint = fingerprint
        self._entries = {entry.program: entry for entry in self._read()}

    def __len__(self) -> int:
        return len(self._entries)

    def find(self, run: CodeRun) -> CodeResult | None:
        """The kept verdict on a program; `None` where it has to be judged."""
        entry = self._entries.get(program_digest(run))
        if entry is None or self._fingerprint not in (None, entry.fingerprint):
            return None
        return entry.result()

    def add(self, run: CodeRun, result: CodeResult, *, fingerprint: str) -> None:
        """Keep a verdict; it survives a kill of this process from here on."""
        program = program_digest(run)
        entry = _VerdictLine(
            program=program,
            digest=_program_digest(program, fingerprint),
            fingerprint=fingerprint,
            code=result.code,
            **result.verdict.model_dump(),
        )
        self._file.append(to_line(entry).encode())
        self._entries[program] = entry

    def adopt(self, run: CodeRun, other: "VerdictStore") -> CodeResult | None:
        """Keep another recording's verdict on a program as it is; `None` where it has none."""
        entry = other._entries.get(program_digest(run))
        if entry is None:
            return None
        if self._entries.get(entry.program) != entry:
            self._file.append(to_line(entry).encode())
            self._entries[entry.program] = entry
        return entry.result()

    def finish(self) -> str | None:
        """Rewrite the file sorted, one line a program.

        The file's SHA-256; `None`, and no file, when no program was judged.
        """
        self._file.close()
        if not self._entries:
            return None
        lines = [to_line(self._entries[program]) for program in sorted(self._entries)]
        data = "".join(f"{line}\n" for line in lines).encode()
        write_atomic(self._file.path, data)
        return hashlib.sha256(data).hexdigest()

    def close(self) -> None:
        """Release the file."""
        self._file.close()

    def _read(self) -> list[_VerdictLine]:
        try:
            lines = self._file.read()
        except OSError as error:
            raise self._refused(error.strerror or str(error)) from error
        return [self._parsed(line, number) for number, line in enumerate(lines, start=1)]

    def _parsed(self, line: bytes, number: int) -> _VerdictLine:
        try:
            entry = _VerdictLine.model_validate_json(line)
        except ValidationError as error:
            first = error.errors()[0]
            raise self._refused(f"Line {number}: {first['msg']}.") from error
        if entry.digest != _program_digest(entry.program, entry.fingerprint):
            raise self._refused(f"Line {number}: its digest does not fit its content.")
        return entry

    def _refused(self, why: str) -> RecordingError:
        return RecordingError(
            f"{self._file.path} is not a whole file of verdicts.",
            why=why,
            hint="Restore the file from version control, or record the study into a new folder.",
        )


def program_digest(run: CodeRun) -> str:
    """SHA-256 over all that a verdict depends on, except for what judged it."""
    judged = [run.message, run.prompt, run.entry_point, run.test]
    return hashlib.sha256(json.dumps(judged).encode()).hexdigest()


def _program_digest(program: str, fingerprint: str) -> str:
    return hashlib.sha256(f"{program}\n{fingerprint}".encode()).hexdigest()


# --- Person inputs -------------------------------------------------------------------------------

INPUTS_FILE: Final = "inputs.jsonl"


class _InputLine(BaseModel):
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
        return self.digest == _inputs_digest(self)

    def heard(self) -> PersonInput:
        return PersonInput(self.text, self.waited_ms, self.ended, self.message_id)


class InputStore:
    """The inputs of a recording."""

    def __init__(self, folder: Path) -> None:
        self._file = AppendFile(folder / INPUTS_FILE)
        self._entries: dict[tuple[str, int], _InputLine] = {}
        for number, line in enumerate(self._lines(), start=1):
            entry = self._parsed(line, number)
            self._entries[entry.episode_id, entry.number] = entry

    def __len__(self) -> int:
        return len(self._entries)

    def find(self, episode_id: str, number: int, listen: Listen) -> PersonInput | None:
        """What was heard the `number`-th time that an episode listened; `None` if not recorded.

        `ChangedCallError` if the recorded listening was at another place or of another length.
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

    def add(self, episode_id: str, number: int, listen: Listen, heard: PersonInput) -> None:
        """Keep what was heard; it survives a kill of this process from here on."""
        entry = _InputLine(
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
        entry = entry.model_copy(update={"digest": _inputs_digest(entry)})
        self._file.append(to_line(entry).encode())
        self._entries[episode_id, number] = entry

    def finish(self) -> str | None:
        """Rewrite the file sorted by episode and number.

        The file's SHA-256; `None`, and no file, if nobody was listened to.
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

    def _parsed(self, line: bytes, number: int) -> _InputLine:
        try:
            entry = _InputLine.model_validate_json(line)
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


def _inputs_digest(entry: _InputLine) -> str:
    value = entry.model_dump(mode="json", exclude={"digest"})
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()
