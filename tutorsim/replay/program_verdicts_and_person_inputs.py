"""What is kept beside the cassettes: verdicts on programs, how two differ, a person's words."""

import hashlib
import json
from pathlib import Path
from typing import ClassVar, Final, Generic, NamedTuple, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from tutorsim.errors import ChangedCallError, RecordingError
from tutorsim.kernel.flow_drivers_and_call_log import CodeResult, CodeRun, Listen, PersonInput
from tutorsim.records import VerdictRecord, to_line
from tutorsim.replay.durable_files_folder_lock_key_leaks import AppendFile, write_atomic

K = TypeVar("K", str, tuple[str, int])
L = TypeVar("L", bound="_Line")


class _Line(BaseModel):
    model_config = ConfigDict(defer_build=True, frozen=True, extra="forbid")

    def unchanged(self) -> bool:
        """Whether the digest fits the content."""
        raise NotImplementedError


class _LineStore(Generic[K, L]):
    """A file of lines that are appended as they come, and sorted when the recording ends."""

    file: ClassVar[str]
    line: type[L]
    of: ClassVar[tuple[str, str]]
    """What the lines are, and what is recorded again if they are damaged."""

    def __init__(self, folder: Path) -> None:
        self._file = AppendFile(folder / self.file)
        try:
            lines = self._file.read()
        except OSError as error:
            raise self._refused(error.strerror or str(error)) from error
        parsed = [self._parsed(line, number) for number, line in enumerate(lines, start=1)]
        self._entries: dict[K, L] = {self._key(entry): entry for entry in parsed}

    def __len__(self) -> int:
        return len(self._entries)

    def finish(self) -> str | None:
        """Rewrite the file sorted, one line an entry.

        The file's SHA-256; `None`, and no file, where there is no entry.
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

    def _key(self, entry: L) -> K:
        raise NotImplementedError

    def _keep(self, entry: L) -> None:
        """Keep an entry; it survives a kill of this process from here on."""
        self._file.append(to_line(entry).encode())
        self._entries[self._key(entry)] = entry

    def _parsed(self, line: bytes, number: int) -> L:
        try:
            entry = self.line.model_validate_json(line)
        except ValidationError as error:
            raise self._refused(f"Line {number}: {error.errors()[0]['msg']}.") from error
        if not entry.unchanged():
            raise self._refused(f"Line {number}: its digest does not fit its content.")
        return entry

    def _refused(self, why: str) -> RecordingError:
        lines, recorded = self.of
        return RecordingError(
            f"{self._file.path} is not a whole file of {lines}.",
            why=why,
            hint=f"Restore the file from version control, or record the {recorded} into a new "
            "folder.",
        )


# --- Code verdicts -------------------------------------------------------------------------------

VERDICTS_FILE: Final = "verdicts.jsonl"


class _VerdictLine(_Line):
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

    def unchanged(self) -> bool:
        return self.digest == _program_digest(self.program, self.fingerprint)

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


class VerdictStore(_LineStore[str, _VerdictLine]):
    """The verdict file of a recording.

    `fingerprint` is what would judge a program now; `None` in a replay, which takes any verdict.
    """

    file = VERDICTS_FILE
    line = _VerdictLine
    of = ("verdicts", "study")

    def __init__(self, folder: Path, *, fingerprint: str | None = None) -> None:
        super().__init__(folder)
        self._fingerprint = fingerprint

    def _key(self, entry: _VerdictLine) -> str:
        return entry.program

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
        self._keep(entry)

    def adopt(self, run: CodeRun, other: "VerdictStore") -> CodeResult | None:
        """Keep another recording's verdict on a program as it is; `None` where it has none."""
        entry = other._entries.get(program_digest(run))
        if entry is None:
            return None
        if self._entries.get(entry.program) != entry:
            self._keep(entry)
        return entry.result()


def program_digest(run: CodeRun) -> str:
    """SHA-256 over all that a verdict depends on, except for what judged it."""
    judged = [run.message, run.prompt, run.entry_point, run.test]
    return hashlib.sha256(json.dumps(judged).encode()).hexdigest()


def _program_digest(program: str, fingerprint: str) -> str:
    return hashlib.sha256(f"{program}\n{fingerprint}".encode()).hexdigest()


class VerdictChange(NamedTuple):
    """A program that the sandbox now judges otherwise than recorded."""

    episode_id: str
    turn: int
    recorded: str
    now: str


def verdicts_differ(recorded: CodeResult, now: CodeResult) -> bool:
    """Whether a program is judged otherwise: other code was extracted, or the verdict changed."""
    return (now.code, verdict_words(now)) != (recorded.code, verdict_words(recorded))


def verdict_words(result: CodeResult) -> str:
    """A verdict with its reason."""
    verdict = result.verdict
    return f"{verdict.outcome} ({verdict.reason})" if verdict.reason else verdict.outcome


# --- Person inputs -------------------------------------------------------------------------------

INPUTS_FILE: Final = "inputs.jsonl"


class _InputLine(_Line):
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


class InputStore(_LineStore[tuple[str, int], _InputLine]):
    """The inputs of a recording."""

    file = INPUTS_FILE
    line = _InputLine
    of = ("inputs", "episode")

    def _key(self, entry: _InputLine) -> tuple[str, int]:
        return entry.episode_id, entry.number

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
                hint="Replay with the study of the recording, or record the episode again.",
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
        self._keep(entry.model_copy(update={"digest": _inputs_digest(entry)}))


def inputs_digest(folder: Path) -> str | None:
    """SHA-256 of a recording's file of inputs; `None` where there is none."""
    try:
        return hashlib.sha256((folder / INPUTS_FILE).read_bytes()).hexdigest()
    except FileNotFoundError:
        return None


def _inputs_digest(entry: _InputLine) -> str:
    value = entry.model_dump(mode="json", exclude={"digest"})
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()
