"""Logs of other programs become a run folder: what is read, what is left out, and why."""

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Literal, NamedTuple

from tutorsim.errors import LogError
from tutorsim.kernel.system_and_loaded_study import Imported, LogFormat, LogReading, System
from tutorsim.records import (
    BallotRecord,
    EpisodeLine,
    Provenance,
    RunRecord,
    SystemSettings,
    VotingSettings,
    to_line,
)
from tutorsim.regular_files_and_digests import open_named
from tutorsim.runner.write_run_folder_and_timings import LogWriter, check_log_folder


class ImportResult(NamedTuple):
    """What came of an import."""

    episodes: int
    skipped: tuple[LogError, ...]
    """Why files, and episodes in files, were left out, in their order."""
    notes: dict[str, tuple[str, ...]]
    """Known fault of the program → where the episodes stand that show it: file, and place in it."""


def log_files(paths: Iterable[Path]) -> list[Path]:
    """The files named, and all files in the folders named, in the order of their names."""
    return [file for path in paths for file in (_files_in(path) if path.is_dir() else [path])]


def _files_in(folder: Path) -> list[Path]:
    """Files of a folder and those below; hidden ones are nobody's logs."""
    return sorted(
        path
        for path in folder.rglob("*")
        if path.is_file() and not any(p.startswith(".") for p in path.relative_to(folder).parts)
    )


def import_logs(
    system: System,
    form: LogFormat,
    files: Iterable[Path],
    folder: Path,
    *,
    spelling: Literal["one", "apart"] | None = None,
    on_progress: Callable[[int, int], None] = lambda done, total: None,
) -> ImportResult:
    """Write the episodes of logs into a run folder.

    A file that is no log is left out whole, and a garbled episode alone. If no file can be used
    nothing is written, and `LogError` says why.
    """
    files = list(files)
    digests = {path: _digest_of(path) for path in files}
    digest = hashlib.sha256(b"".join(digests.values())).hexdigest()
    check_log_folder(folder, digest)
    gathering = _Gathering()
    reading = LogReading(gathering.repeat_of, set(), spelling)
    skipped: list[LogError] = []
    with LogWriter(folder) as log:
        first: dict[bytes, Path] = {}
        stands: dict[str, str] = {}
        for done, file in enumerate(files, start=1):
            on_progress(done, len(files))
            try:
                said = _content_of(file, digests[file])
                _refuse_twice(file, first.setdefault(said, file))
                found = list(form.read(file, reading))
            except LogError as error:
                skipped.append(error)
                continue
            for one in found:
                if isinstance(one, LogError):
                    skipped.append(one)
                    continue
                where = f"{file}, {one.place}" if one.place else str(file)
                before = where if one.said is None else stands.setdefault(one.said, where)
                if before != where:
                    skipped.append(_said_before(where, before))
                    continue
                gathering.add(one, where)
                log.add(to_line(one.record), one.record.episode_id, 0.0)
        if log.count == 0:
            raise _nothing_read(skipped)
        head = gathering.head(system, form, folder.resolve().name, digest)
        log.finish(head.model_copy(update={"episodes_sha256": log.sha256}), {})
    notes = {note: tuple(places) for note, places in gathering.notes.items()}
    return ImportResult(log.count, tuple(skipped), notes)


def _nothing_read(skipped: list[LogError]) -> LogError:
    if not skipped:
        return LogError(
            "No log was named.", hint="Name files of logs, or a folder that holds them."
        )
    if len(skipped) == 1:
        return skipped[0]
    reasons = "\n".join(f"- {error.what} {error.why}" for error in skipped)
    return LogError("No log could be read.", why=reasons, hint=skipped[0].hint)


class _Gathering:
    """What the head of the run says of its episodes."""

    def __init__(self) -> None:
        self.notes: dict[str, list[str]] = {}
        self._names: Counter[str] = Counter()
        self._models: set[str] = set()
        self._conditions: dict[str, None] = {}
        self._benchmarks: dict[str, None] = {}
        self._voters: set[str] = set()
        self._episodes = 0

    def repeat_of(self, name: str) -> int:
        """Number the episodes of one name, from 1."""
        self._names[name] += 1
        return self._names[name]

    def add(self, one: Imported, where: str) -> None:
        for note in one.notes:
            self.notes.setdefault(note, []).append(where)
        self._models.update(one.models)
        self._conditions[one.record.condition] = None
        self._benchmarks[one.record.benchmark] = None
        self._voters.update(ballot.voter for ballot in _ballots(one.record))
        self._episodes += 1

    def _voting(self, form: LogFormat) -> VotingSettings | None:
        """The program's settings of votes, with the order of those who voted."""
        if form.voting is None:
            return None
        order = tuple(name for name in form.voting.fallback_order if name in self._voters)
        return form.voting.model_copy(update={"fallback_order": order})

    def head(self, system: System, form: LogFormat, name: str, digest: str) -> RunRecord:
        """The head of the run."""
        return RunRecord(
            study=SystemSettings(
                name=name,
                system=system.name,
                conditions=tuple(self._conditions),
                repeats=max(self._names.values()),
                benchmarks=tuple(self._benchmarks),
                voting=self._voting(form),
            ),
            study_digest=digest,
            recording_digest=digest,
            provenance=Provenance(
                kind="imported", name=f"logs of {form.program}", models=tuple(sorted(self._models))
            ),
            episodes=self._episodes,
        )


def _ballots(record: EpisodeLine) -> Iterator[BallotRecord]:
    for turn in record.turns:
        for ballots in (turn.ballots_final, *turn.ballots_as.values(), *turn.other_votes.values()):
            yield from ballots


def _refuse_twice(path: Path, first: Path) -> None:
    """Refuse a file that was read already under another name."""
    if path != first:
        raise LogError(
            f"{path} is left out.",
            why=f"It says the same as {first}.",
            hint="Leave it out, or give the two runs of one question different files.",
        )


def _said_before(where: str, before: str) -> LogError:
    return LogError(
        f"{where} is left out.",
        why=f"It has the question, the answers and the votes of {before}, word for word.",
        hint="It was copied, or replied to once more; the first one counts.",
    )


def _digest_of(path: Path) -> bytes:
    """SHA-256 of a file's content; a file that cannot be read has a text of its own."""
    try:
        with open_named(path) as file:
            return hashlib.file_digest(file, "sha256").digest()
    except OSError:
        return f"unreadable: {path}".encode()


def _content_of(path: Path, digest: bytes) -> bytes:
    """SHA-256 of the value of a JSON file, which spaces and the order of keys leave as it is; of
    any other file that of its bytes, which is given."""
    try:
        with open_named(path) as file:
            value = json.load(file)
        return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).digest()
    except (OSError, ValueError, RecursionError):
        return digest
