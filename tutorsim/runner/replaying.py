"""Replaying a recording: the same flows, answered from cassettes, with no socket and no key."""

import gc
import os
import signal
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from tutorsim.drivers import at_once
from tutorsim.errors import MissingCallError
from tutorsim.records import EpisodeRecord, RunRecord
from tutorsim.replay import FastReader, FolderLock, VerdictStore
from tutorsim.runner.log import LogWriter, check_log_folder, remove_retest, run_record
from tutorsim.runner.machine import machine_facts
from tutorsim.runner.opening import Recording, check_drift, open_recording
from tutorsim.runner.playing import Replayed, Source, VerdictChange, play, played
from tutorsim.runner.retest_playing import RetestLog, open_retest
from tutorsim.sandbox import Sandbox

if TYPE_CHECKING:
    from concurrent.futures import ProcessPoolExecutor

__all__ = ["ReaderName", "default_workers", "replay", "replay_each", "replay_episode"]

ReaderName = Literal["fast", "sdk"]
"""`fast` reads cassettes directly; `sdk` goes through the real client and vcrpy's playback."""

CHUNK = 6
"""Episodes that a process takes at a time; at the end, the others wait for as long as three."""
AHEAD = 16
"""Chunks for each process that may be done before their turn has come in the log."""


def replay(
    folder: Path,
    *,
    log_dir: Path,
    reader: ReaderName = "fast",
    workers: int | None = None,
    sandbox: Sandbox | None = None,
) -> tuple[RunRecord, tuple[VerdictChange, ...]]:
    """Replay a recording and write its log, and beside it its retest where it has one.

    Args:
        folder: The recording.
        log_dir: The run folder to write.
        reader: How cassettes are read; the bytes written are the same.
        workers: Processes; the bytes written are the same for any number. `None` takes as many
            as pay off.
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
        retest = stack.enter_context(open_retest(recording, sdk=reader == "sdk"))
        again = RetestLog()
        for one in replay_each(recording, reader=reader, workers=workers, sandbox=sandbox):
            if one.line is None:
                assert one.error is not None
                raise one.error
            log.add(one.line, one.episode_id, one.seconds)
            changes += one.changes
            if retest is not None and one.episode_id in retest.entries:
                again.add(retest.play(one.line))
        check_drift(recording)
        run = run_record(recording.loaded, recording.manifest)
        run = run.model_copy(update={"episodes_sha256": log.sha256})
        log.finish(run, machine_facts("replay", folder, sandbox, used=sandbox is not None))
        if retest is None:
            remove_retest(log_dir)
        else:
            again.write(log_dir, retest.manifest)
    return run, tuple(changes)


def replay_each(
    recording: Recording,
    *,
    reader: ReaderName = "fast",
    workers: int | None = 1,
    sandbox: Sandbox | None = None,
) -> Iterator[Replayed]:
    """Replay every episode, in grid order; an episode that fails does not end the others.

    A sandbox and the `sdk` reader work in this process, whatever the number of workers.
    """
    if workers is None:
        workers = default_workers(len(recording.specs))
    verdicts = VerdictStore(recording.folder)
    if reader == "sdk":
        return _through_the_sdk(recording, verdicts, sandbox)
    source = Source(recording, verdicts, FastReader(recording.folder), sandbox)
    indices = range(len(recording.specs))
    if sandbox is not None or min(workers, -(-len(indices) // CHUNK)) <= 1:
        return _in_this_process(source, indices)
    return _side_by_side(source, indices, workers)


def _in_this_process(source: Source, indices: Sequence[int]) -> Iterator[Replayed]:
    for index in indices:
        with _uncollected():
            one = at_once(play(source, source.recording.specs[index]))
        yield one


@contextmanager
def _uncollected() -> Iterator[None]:
    """Leave garbage in cycles to the end of an episode.

    An episode hardly makes any, and looking for it again and again takes a tenth of the time.
    """
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collecting:
            gc.enable()


def _through_the_sdk(
    recording: Recording, verdicts: VerdictStore, sandbox: Sandbox | None
) -> Iterator[Replayed]:
    import asyncio

    from tutorsim.replay.sdk_reader import SdkReader

    with asyncio.Runner() as runner:
        reader = SdkReader(recording.folder)
        source = Source(recording, verdicts, reader, sandbox)
        try:
            for spec in recording.specs:
                yield runner.run(play(source, spec))
        finally:
            runner.run(reader.aclose())


def _side_by_side(source: Source, indices: range, workers: int) -> Iterator[Replayed]:
    """Share the episodes among this process and others, which may need time to start.

    Chunks wait in grid order. While the first of them is being replayed elsewhere, this process
    takes the next one that nobody has begun.
    """
    coming = (indices[start : start + CHUNK] for start in range(0, len(indices), CHUNK))
    waiting: deque[tuple[range, Future[list[Replayed]]]] = deque()
    with _processes(workers - 1, source) as pool:
        while True:
            while len(waiting) < AHEAD * workers and (chunk := next(coming, None)):
                waiting.append((chunk, pool.submit(_in_a_worker, chunk)))
            if not waiting:
                return
            if not waiting[0][1].done():
                _take_one(source, waiting)
            yield from waiting.popleft()[1].result()


def _take_one(source: Source, waiting: deque[tuple[range, Future[list[Replayed]]]]) -> None:
    """Replay, in this process, chunks until the first one is done."""
    for place, (chunk, elsewhere) in enumerate(waiting):
        if waiting[0][1].done():
            return
        if elsewhere.cancel():
            here: Future[list[Replayed]] = Future()
            here.set_result(list(_in_this_process(source, chunk)))
            waiting[place] = chunk, here


@contextmanager
def _processes(workers: int, source: Source) -> Iterator["ProcessPoolExecutor"]:
    """Processes that have the source.

    Forked, they have it at once; but that is safe only where this process has no other thread.
    """
    from concurrent.futures import ProcessPoolExecutor
    from multiprocessing import get_context

    pool = ProcessPoolExecutor(
        workers,
        mp_context=get_context("fork" if _threads() == 1 else "spawn"),
        initializer=_begin_work,
        initargs=(source,),
    )
    try:
        yield pool
    finally:
        pool.shutdown(cancel_futures=True)


def _threads() -> int | None:
    """Threads of this process, those of libraries among them; `None` where nothing tells."""
    try:
        return len([*Path("/proc/self/task").iterdir()])
    except OSError:
        return None


_given: list[Source] = []
"""What a worker was given to replay."""


def _begin_work(source: Source) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C ends the first process, and it this one
    _given[:] = [source]


def _in_a_worker(indices: Sequence[int]) -> list[Replayed]:
    return list(_in_this_process(_given[0], indices))


def replay_episode(recording: Recording, episode_id: str) -> EpisodeRecord:
    """Replay one episode.

    Raises:
        ReplayError: If the study has no such episode, or a call is missing or changed.
        RecordingError: If its cassette is damaged or edited.
    """
    folder = recording.folder
    for spec in recording.specs:
        if spec.episode_id == episode_id:
            source = Source(recording, VerdictStore(folder), FastReader(folder))
            record, _ = at_once(played(source, spec))
            return record
    raise MissingCallError(
        f"The recording has no episode {episode_id!r}.",
        hint=f"`tutorsim cassette show {folder}` lists its episodes.",
    )


def default_workers(episodes: int) -> int:
    """Processes that pay off: starting one, unless forked, costs as much as 100 episodes."""
    return max(1, min(_cores(), episodes // 200))


def _cores() -> int:
    """Cores that this process may use; all of them where the system does not tell."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
