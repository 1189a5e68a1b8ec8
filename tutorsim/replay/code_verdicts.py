"""Verdicts on programs, kept with the recording: one line each, looked up by what was judged.

A replay uses them on any machine. A recording reuses only what was judged by the very sandbox
that it would use itself, which the fingerprint tells.
"""

import hashlib
import json
from pathlib import Path
from typing import Final

from pydantic import BaseModel, ConfigDict, ValidationError

from tutorsim.errors import RecordingError
from tutorsim.mechanisms.flow import CodeResult, CodeRun
from tutorsim.records import VerdictRecord, to_line
from tutorsim.replay.safe_files import AppendFile, write_atomic

__all__ = ["VERDICTS_FILE", "VerdictStore", "program_digest"]

VERDICTS_FILE: Final = "verdicts.jsonl"


class _Entry(BaseModel):
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

    Args:
        folder: The recording.
        fingerprint: What would judge a program now; `None` in a replay, which takes any verdict.

    Raises:
        RecordingError: If the file is there and was edited.
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
        """Keep a verdict; it survives a kill of this process from here on.

        Args:
            run: What was judged.
            result: What came of it.
            fingerprint: What judged it.

        Raises:
            FolderError: If it cannot be written.
        """
        program = program_digest(run)
        entry = _Entry(
            program=program,
            digest=_digest(program, fingerprint),
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

        Returns:
            SHA-256 of the file; `None`, and no file, when no program was judged.

        Raises:
            FolderError: If it cannot be written.
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

    def _read(self) -> list[_Entry]:
        try:
            lines = self._file.read()
        except OSError as error:
            raise self._refused(error.strerror or str(error)) from error
        return [self._parsed(line, number) for number, line in enumerate(lines, start=1)]

    def _parsed(self, line: bytes, number: int) -> _Entry:
        try:
            entry = _Entry.model_validate_json(line)
        except ValidationError as error:
            first = error.errors()[0]
            raise self._refused(f"Line {number}: {first['msg']}.") from error
        if entry.digest != _digest(entry.program, entry.fingerprint):
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


def _digest(program: str, fingerprint: str) -> str:
    return hashlib.sha256(f"{program}\n{fingerprint}".encode()).hexdigest()
