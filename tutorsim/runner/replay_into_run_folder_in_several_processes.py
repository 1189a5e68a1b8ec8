"""Replaying a recording: the same flows, answered from cassettes, with no socket and no key.

A recording's folder stands in the place of a run folder wherever a command wants one.
"""

import os
import shutil
from collections import deque
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from tutorsim.errors import MissingCallError
from tutorsim.kernel.flow_drivers_and_call_log import at_once
from tutorsim.kernel.study_file_and_episode_spec import EpisodeSpec
from tutorsim.records import EpisodeLine, RunRecord, uncollected
from tutorsim.replay import AnsweredBy, FolderLock, VerdictStore
from tutorsim.replay.program_verdicts_and_person_inputs import InputStore, VerdictChange
from tutorsim.runner.find_and_check_recording import (
    Recording,
    check_drift,
    check_provenance,
    open_recording,
)
from tutorsim.runner.pieces_of_work_person_heard_event_loop import Lines, study_piece
from tutorsim.runner.play_recorded_episodes_and_retests import (
    Replayed,
    Source,
    open_retest,
    play,
    played,
)
from tutorsim.runner.write_run_folder_and_timings import (
    LogWriter,
    RetestLog,
    check_log_folder,
    machine_facts,
    remove_retest,
    run_record,
)

if TYPE_CHECKING:
    from concurrent.futures import Future, ProcessPoolExecutor

    from tutorsim.sandbox import Sandbox


# --- Replaying -----------------------------------------------------------------------------------

OnProgress = Callable[[int, int], None]
"""Told how many of how many episodes are done."""

CHUNK = 6
"""Episodes that a process takes at a time; at the end, the others wait for as long as three."""
AHEAD = 16
"""Chunks for each process that may be done before their turn has come in the log."""


def replay(
    folder: Path,
    *,
    log_dir: Path,
    workers: int | None = None,
    sandbox: "Sandbox | None" = None,
    on_progress: OnProgress = lambda done, total: None,
) -> tuple[RunRecord, tuple[VerdictChange, ...]]:
    """Replay a recording and write its log, and beside it its retest where it has one.

    Gives the head of the log, and the verdicts that differ when `sandbox` runs recorded programs
    again; the log keeps recorded ones. The bytes written are the same for any number of `workers`;
    `None` takes as many as pay off. A call that is missing or changed is a `ReplayError`, one that
    the replay never made an `UnusedCallError`, a damaged or edited recording a `RecordingError`.
    """
    recording = open_recording(folder)
    changes: list[VerdictChange] = []
    answered_by = AnsweredBy()
    with ExitStack() as stack:
        stack.enter_context(FolderLock(log_dir))
        check_log_folder(log_dir, recording.manifest.study_digest)
        log = stack.enter_context(LogWriter(log_dir))
        retest = open_retest(recording)
        again = RetestLog()
        for one in replay_each(
            recording, workers=workers, sandbox=sandbox, on_progress=on_progress
        ):
            _add(log, one)
            answered_by.join(one.answered_by or AnsweredBy())
            changes += one.changes
            if retest is not None and one.episode_id in retest.entries:
                _add(again, retest.play(retest.record_of(one)))
        check_drift(recording)
        check_provenance(recording.manifest, answered_by)
        run = run_record(recording.loaded, recording.manifest)
        run = run.model_copy(update={"episodes_sha256": log.sha256})
        log.finish(run, machine_facts("replay", folder, sandbox, used=sandbox is not None))
        if retest is None:
            remove_retest(log_dir)
        else:
            again.write(log_dir, retest.manifest)
    return run, tuple(changes)


def _add(log: Lines, one: Replayed) -> None:
    """Log a piece that was played."""
    if one.line is None:
        assert one.error is not None
        raise one.error
    log.add(one.line, one.episode_id, one.seconds)


def replay_each(
    recording: Recording,
    *,
    workers: int | None = 1,
    sandbox: "Sandbox | None" = None,
    with_entries: bool = False,
    on_progress: OnProgress = lambda done, total: None,
) -> Iterator[Replayed]:
    """Replay every episode, in grid order; an episode that fails does not end the others.

    A sandbox works in this process, whatever the number of workers. `workers=None` takes as many
    processes as pay off; `with_entries` computes what the manifest should say of each episode;
    `on_progress` is told how many of how many are done.
    """
    replayed = _replayed(recording, workers=workers, sandbox=sandbox, with_entries=with_entries)
    for done, one in enumerate(replayed, start=1):
        on_progress(done, len(recording.specs))
        yield one


def _replayed(
    recording: Recording, *, workers: int | None, sandbox: "Sandbox | None", with_entries: bool
) -> Iterator[Replayed]:
    if workers is None:
        workers = default_workers(len(recording.specs))
    source = _source(recording, sandbox)
    work = _Work(recording, source, with_entries)
    indices = range(len(recording.specs))
    if sandbox is not None or min(workers, -(-len(indices) // CHUNK)) <= 1:
        return _in_this_process(work, indices)
    return _side_by_side(work, indices, workers)


def _source(recording: Recording, sandbox: "Sandbox | None" = None) -> Source:
    """Where the effects of a recording's episodes are answered from."""
    return Source(
        head=recording.manifest,
        reader=recording.reader,
        parent_study=recording.parent_study,
        verdicts=VerdictStore(recording.folder),
        inputs=InputStore(recording.folder),
        sandbox=sandbox,
    )


class _Work(NamedTuple):
    """What is replayed, in any process."""

    recording: Recording
    source: Source
    with_entries: bool

    def play(self, spec: EpisodeSpec) -> Coroutine[Any, Any, Replayed]:
        """Play an episode."""
        piece = study_piece(self.recording.loaded, spec)
        entry = self.recording.entries[piece.id]
        return play(self.source, piece, entry, with_entry=self.with_entries)


def _in_this_process(work: _Work, indices: Sequence[int]) -> Iterator[Replayed]:
    for index in indices:
        with uncollected():
            one = at_once(work.play(work.recording.specs[index]))
        yield one


def _side_by_side(work: _Work, indices: range, workers: int) -> Iterator[Replayed]:
    """Share the episodes among this process and others, which may need time to start.

    Chunks wait in grid order. While the first of them is being replayed elsewhere, this process
    takes the next one that nobody has begun.
    """
    coming = (indices[start : start + CHUNK] for start in range(0, len(indices), CHUNK))
    waiting: deque[tuple[range, Future[list[Replayed]]]] = deque()
    with _processes(workers - 1, work) as pool:
        while True:
            while len(waiting) < AHEAD * workers and (chunk := next(coming, None)):
                waiting.append((chunk, pool.submit(_in_a_worker, chunk)))
            if not waiting:
                return
            if not waiting[0][1].done():
                _take_one(work, waiting)
            yield from waiting.popleft()[1].result()


def _take_one(work: _Work, waiting: deque[tuple[range, "Future[list[Replayed]]"]]) -> None:
    """Replay, in this process, chunks until the first one is done."""
    from concurrent.futures import Future

    for place, (chunk, elsewhere) in enumerate(waiting):
        if waiting[0][1].done():
            return
        if elsewhere.cancel():
            here: Future[list[Replayed]] = Future()
            here.set_result(list(_in_this_process(work, chunk)))
            waiting[place] = chunk, here


@contextmanager
def _processes(workers: int, work: _Work) -> Iterator["ProcessPoolExecutor"]:
    """Processes that have the work: forked, if this process has no other thread."""
    from concurrent.futures import ProcessPoolExecutor
    from multiprocessing import get_context

    pool = ProcessPoolExecutor(
        workers,
        mp_context=get_context("fork" if _threads() == 1 else "spawn"),
        initializer=_begin_work,
        initargs=(work,),
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


_given: list[_Work] = []
"""What a worker was given to replay."""


def _begin_work(work: _Work) -> None:
    import signal

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C ends the first process, and it this one
    _given[:] = [work]


def _in_a_worker(indices: Sequence[int]) -> list[Replayed]:
    """Replay episodes; a line travels to the other process faster than a record."""
    return [one._replace(record=None) for one in _in_this_process(_given[0], indices)]


def replay_episode(recording: Recording, episode_id: str) -> EpisodeLine:
    """Replay one episode. `ReplayError` if the study has no such episode."""
    if episode_id not in recording.entries:
        raise MissingCallError(
            f"The recording has no episode {episode_id!r}.",
            hint=f"`tutorsim cassette show {recording.folder}` lists its episodes.",
        )
    source = _source(recording)
    piece = study_piece(recording.loaded, recording.spec(episode_id))
    return at_once(played(source, piece, recording.entries[episode_id])).record


def default_workers(episodes: int) -> int:
    """Processes that pay off: starting one, unless forked, costs as much as 100 episodes."""
    return max(1, min(_cores(), episodes // 200))


def _cores() -> int:
    """Cores that this process may use; all of them where the system does not tell."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


# --- Recording as run ----------------------------------------------------------------------------


def replay_into(recording: Path, folder: Path, *, workers: int | None = None) -> Path:
    """Replay a recording to a run folder of its own name inside `folder`.

    What people said of the recording goes with it.
    """
    from tutorsim.records.ratings import RATINGS_FILE

    run = folder / recording.resolve().name
    replay(recording, log_dir=run, workers=workers)
    if (recording / RATINGS_FILE).is_file():
        shutil.copyfile(recording / RATINGS_FILE, run / RATINGS_FILE)
    return run
