"""Replaying a recording: the same flows, answered from cassettes, with no socket and no key."""

import asyncio
import os
import signal
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass, field
from functools import cache, partial
from multiprocessing import get_context
from pathlib import Path
from typing import Literal

from tutorsim.agents.scene import Scene
from tutorsim.drivers import drive_async
from tutorsim.episode import episode
from tutorsim.errors import CallFailed, MissingCallError, TutorsimError
from tutorsim.mechanisms.flow import CodeResult, CodeRun, Effect, Sent
from tutorsim.model import Call, Reply
from tutorsim.records import EpisodeRecord, Failure, RunRecord, to_line
from tutorsim.replay import (
    FastReader,
    FolderLock,
    Playback,
    Reader,
    VerdictStore,
    check_all_used,
    check_cassette,
)
from tutorsim.runner.log import LogWriter, check_log_folder, run_record
from tutorsim.runner.machine import machine_facts
from tutorsim.runner.opening import Recording, check_drift, open_recording
from tutorsim.sandbox import Sandbox
from tutorsim.study import EpisodeSpec

__all__ = [
    "ReaderName",
    "Replayed",
    "VerdictChange",
    "default_workers",
    "replay",
    "replay_each",
    "replay_episode",
]

ReaderName = Literal["fast", "sdk"]
"""`fast` reads cassettes directly; `sdk` goes through the real client and vcrpy's playback."""

CHUNK = 8
"""Episodes that a worker process takes at a time."""


@dataclass(frozen=True)
class VerdictChange:
    """A program that the sandbox now judges otherwise than recorded."""

    episode_id: str
    turn: int
    recorded: str
    now: str


@dataclass(frozen=True)
class Replayed:
    """What came of one episode."""

    episode_id: str
    line: str | None
    """The log line; `None` when the replay failed."""
    error: TutorsimError | None
    seconds: float
    changes: tuple[VerdictChange, ...] = ()
    """Verdicts that were run again and differ."""


def replay(
    folder: Path,
    *,
    log_dir: Path,
    reader: ReaderName = "fast",
    workers: int = 1,
    sandbox: Sandbox | None = None,
) -> tuple[RunRecord, tuple[VerdictChange, ...]]:
    """Replay a recording and write its log.

    Args:
        folder: The recording.
        log_dir: The run folder to write.
        reader: How cassettes are read; the bytes written are the same.
        workers: Processes; the bytes written are the same for any number.
        sandbox: Runs recorded programs again, for comparison; the log keeps recorded verdicts.

    Returns:
        The head of the log, and the verdicts that differ when run again.

    Raises:
        ReplayError: If a call is missing from the recording or changed.
        UnusedCallError: If the recording holds a call that the replay never made.
        RecordingError: If the recording is damaged or edited.
        LogError, FolderError: If the run folder cannot be written.
    """
    recording = open_recording(folder)
    changes: list[VerdictChange] = []
    with ExitStack() as stack:
        stack.enter_context(FolderLock(log_dir))
        check_log_folder(log_dir, recording.manifest.study_digest)
        log = stack.enter_context(LogWriter(log_dir))
        for one in replay_each(recording, reader=reader, workers=workers, sandbox=sandbox):
            if one.line is None:
                assert one.error is not None
                raise one.error
            log.add(one.line, one.episode_id, one.seconds)
            changes += one.changes
        check_drift(recording)
        run = run_record(recording.loaded, recording.manifest)
        run = run.model_copy(update={"episodes_sha256": log.sha256})
        log.finish(run, machine_facts("replay", folder, sandbox, used=sandbox is not None))
    return run, tuple(changes)


def replay_each(
    recording: Recording,
    *,
    reader: ReaderName = "fast",
    workers: int = 1,
    sandbox: Sandbox | None = None,
) -> Iterator[Replayed]:
    """Replay every episode, in grid order; an episode that fails does not end the others.

    A sandbox and the `sdk` reader work in this process, whatever the number of workers.
    """
    indices = range(len(recording.specs))
    if workers <= 1 or sandbox is not None or reader == "sdk":
        yield from _in_this_process(recording, indices, reader, sandbox)
        return
    chunks = [indices[start : start + CHUNK] for start in range(0, len(indices), CHUNK)]
    with ProcessPoolExecutor(
        min(workers, len(chunks)),
        mp_context=get_context("spawn"),
        initializer=signal.signal,
        initargs=(signal.SIGINT, signal.SIG_IGN),  # Ctrl-C ends this process, and it the workers
    ) as pool:
        for replayed in pool.map(partial(_in_a_worker, recording.folder), chunks):
            yield from replayed


def _in_this_process(
    recording: Recording, indices: Sequence[int], reader: ReaderName, sandbox: Sandbox | None
) -> Iterator[Replayed]:
    verdicts = VerdictStore(recording.folder)
    with asyncio.Runner() as runner:
        opening = _reader(recording, reader)
        opened = runner.run(opening.__aenter__())
        try:
            for index in indices:
                world = _Source(recording, verdicts, opened, sandbox)
                yield runner.run(_timed(world, recording.specs[index]))
        finally:
            runner.run(opening.__aexit__(None, None, None))


@cache
def _opened_in_worker(folder: Path) -> Recording:
    return open_recording(folder)


def _in_a_worker(folder: Path, indices: Sequence[int]) -> list[Replayed]:
    return list(_in_this_process(_opened_in_worker(folder), indices, "fast", None))


@asynccontextmanager
async def _reader(recording: Recording, name: ReaderName) -> AsyncIterator[Reader]:
    if name == "fast":
        yield FastReader(recording.folder)
        return
    from tutorsim.replay.sdk_reader import SdkReader

    async with SdkReader(recording.folder) as reader:
        yield reader


@dataclass(frozen=True)
class _Source:
    """Where the effects of an episode are answered from."""

    recording: Recording
    verdicts: VerdictStore
    reader: Reader
    sandbox: Sandbox | None


async def _timed(source: _Source, spec: EpisodeSpec) -> Replayed:
    started = time.perf_counter()
    try:
        record, changes = await _replayed(source, spec)
    except TutorsimError as error:
        return Replayed(spec.episode_id, None, error, time.perf_counter() - started)
    line = to_line(record)
    return Replayed(spec.episode_id, line, None, time.perf_counter() - started, changes)


async def _replayed(
    source: _Source, spec: EpisodeSpec
) -> tuple[EpisodeRecord, tuple[VerdictChange, ...]]:
    entry = source.recording.entries[spec.episode_id]
    playback = source.reader.open(spec.episode_id)
    try:
        edited = check_cassette(entry, playback.cassette)
        world = _World(source, spec, playback, entry.failure)
        record = await drive_async(episode(Scene(source.recording.loaded, spec)), world)
        check_all_used(playback)
    finally:
        source.reader.close(playback)
    if edited is not None:
        raise edited
    return record, tuple(world.changes)


@dataclass
class _World:
    """Performs the effects of one episode from its recording."""

    source: _Source
    spec: EpisodeSpec
    playback: Playback
    failure: Failure | None
    """How the episode failed when it was recorded; `None` for a complete one."""
    changes: list[VerdictChange] = field(default_factory=list)

    async def __call__(self, effect: Effect) -> Sent:
        if isinstance(effect, CodeRun):
            return self._judged(effect)
        replies = [await self._reply(call) for call in effect.calls]
        answered = tuple(reply for reply in replies if reply is not None)
        if len(answered) < len(replies):
            assert self.failure is not None
            raise CallFailed(self.failure.error, key=self.failure.key)
        return answered

    async def _reply(self, call: Call) -> Reply | None:
        """The recorded reply; `None` for a call that failed when it was recorded."""
        held = self.playback.cassette.interactions
        if self.failure is not None and str(call.key) not in held:
            return None
        return await self.playback.reply(self.spec.episode_id, call)

    def _judged(self, run: CodeRun) -> CodeResult:
        recorded = self.source.verdicts.find(run)
        if recorded is None:
            raise MissingCallError(
                f"{self.spec.episode_id}: the verdict on the program of turn {run.turn} is not in "
                "the recording.",
                hint="Replay with the tasks of the recording, or record the study anew.",
            )
        if self.source.sandbox is not None:
            now = self.source.sandbox.judge(run)
            if (now.code, _said(now)) != (recorded.code, _said(recorded)):
                self.changes.append(
                    VerdictChange(self.spec.episode_id, run.turn, _said(recorded), _said(now))
                )
        return recorded


def _said(result: CodeResult) -> str:
    verdict = result.verdict
    return f"{verdict.outcome} ({verdict.reason})" if verdict.reason else verdict.outcome


def replay_episode(recording: Recording, episode_id: str) -> EpisodeRecord:
    """Replay one episode.

    Raises:
        ReplayError: If the study has no such episode, or a call is missing or changed.
        RecordingError: If its cassette is damaged or edited.
    """
    for spec in recording.specs:
        if spec.episode_id == episode_id:
            source = _Source(
                recording, VerdictStore(recording.folder), FastReader(recording.folder), None
            )
            record, _ = asyncio.run(_replayed(source, spec))
            return record
    raise MissingCallError(
        f"The recording has no episode {episode_id!r}.",
        hint=f"`tutorsim cassette show {recording.folder}` lists its episodes.",
    )


def default_workers(episodes: int) -> int:
    """Processes that pay off: starting one costs about as much as replaying 400 episodes."""
    return max(1, min(_cores(), episodes // 400))


def _cores() -> int:
    """Cores that this process may use; all of them where the system does not tell."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
