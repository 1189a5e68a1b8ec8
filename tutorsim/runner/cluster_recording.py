"""Recording on a cluster: workers put episodes on tape, and the main process finishes as always.

Each worker fills the tapes of some episodes in the recording's folder, which it must see under the
same path, with its own credentials in the environment. Then `record` finds every reply on tape and
writes manifest and log, so the bytes are those of a direct recording by construction. What failed
on a worker is tried once more there. Calls in flight are divided among the workers; cap, verdicts
and the order to stop are shared through the books of `tutorsim.runner.shared_ledger`.
"""

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tutorsim.cost_plan import PriceTable
from tutorsim.dask_cluster import Engine, connect, scattered
from tutorsim.errors import FolderError, Interrupted, TutorsimError, UsageError
from tutorsim.model import Call, Reply
from tutorsim.replay import SESSION_FILE, FolderLock
from tutorsim.replay.episode_recording import Deck
from tutorsim.replay.text_or_compressed import check_regular
from tutorsim.runner.cost_cap import Budget
from tutorsim.runner.folder_checks import check_folders
from tutorsim.runner.machine_facts import fingerprint_text
from tutorsim.runner.recording_queue import RecordingOptions, check_no_keys
from tutorsim.runner.recording_session import (
    Session,
    as_begun,
    check_tasks,
    open_session,
)
from tutorsim.runner.run_folder_writer import check_log_folder
from tutorsim.runner.shared_ledger import (
    Ledger,
    SharedBudget,
    SharedVerdicts,
    at_work,
    check_nobody_at_work,
)
from tutorsim.runner.study_recorder import record_part
from tutorsim.sandbox import Sandbox, Setting
from tutorsim.systems import LoadedStudy, load_recorded_study

__all__ = ["spread"]

PIECES_EACH = 4
"""Pieces per worker thread, so that the last ones are short."""


@dataclass(frozen=True)
class _Piece:
    """Some episodes for a worker to put on tape."""

    folder: Path
    episode_ids: frozenset[str]
    packages: dict[str, str]
    fingerprint: str
    """Of the main process's sandbox; another one might judge differently."""
    reused: str | None
    """Fingerprint of verdicts to reuse; `None`: those of a finished recording, whatever it is."""
    level: Setting
    prices: PriceTable
    max_usd: float | None
    max_connections: int
    max_retries: int
    timeout: float


@dataclass(frozen=True)
class _Spent:
    """What a worker's budget has counted."""

    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    spent: float = 0.0
    unpriced: frozenset[str] = frozenset()

    def add_to(self, budget: Budget) -> None:
        budget.calls += self.calls
        budget.input_tokens += self.input_tokens
        budget.output_tokens += self.output_tokens
        budget.spent += self.spent
        budget.unpriced |= self.unpriced


@dataclass(frozen=True)
class _Done:
    """What came of a piece."""

    episodes: int
    spent: "_Spent"
    warnings: tuple[str, ...]
    error: TutorsimError | None
    """What ended it early."""


def spread(
    loaded: LoadedStudy,
    *,
    cassette_dir: Path,
    log_dir: Path,
    engine: Engine,
    level: Setting,
    budget: Budget,
    options: RecordingOptions,
) -> None:
    """Put the episodes of a study on tape, on a cluster. `record` has to follow.

    Args:
        loaded: The study.
        cassette_dir: The recording's folder, on a file system that every worker sees.
        log_dir: The run folder.
        engine: The cluster.
        level: The workers' sandboxes.
        budget: Counts what the workers spend and holds the cap.
        options: How to record; calls in flight are those of all workers.

    Raises:
        UsageError: If a folder, the cluster or a worker cannot be used.
        TutorsimError: As `record`; everything paid for is kept.
    """
    if options.batch:
        raise UsageError(
            "--batch and --engine cannot go together.",
            why="A wave takes the calls of all episodes from one process.",
            hint="Leave one of them out.",
        )
    budget.check_models(loaded.model_names())
    check_no_keys(loaded, options)
    with ExitStack() as stack:
        for folder in sorted({cassette_dir.resolve(), log_dir.resolve()}):
            stack.enter_context(FolderLock(folder))
        check_regular(cassette_dir, links=True)
        check_nobody_at_work(cassette_dir)
        loaded = as_begun(loaded, cassette_dir)
        check_log_folder(log_dir, loaded.digest())
        check_folders(cassette_dir, log_dir, anew=options.anew)
        with Sandbox(level) as sandbox:
            check_tasks(loaded, cassette_dir, sandbox)
            fingerprint = fingerprint_text(sandbox)
        session = open_session(loaded, cassette_dir.resolve(), retry_errors=options.retry_errors)
        waiting = _waiting(loaded, session, budget, options)
        if not waiting:
            return
        client = stack.enter_context(connect(engine))
        if engine.scheduler is None:
            client.run(_leave_interrupts_to_the_main_process)
        make = _maker(loaded, session, fingerprint, level, budget, options)
        with _books(session.folder, budget.committed, options) as ledger:
            _collect(client, make, waiting, ledger, budget, options)


@contextmanager
def _books(folder: Path, committed: float, options: RecordingOptions) -> Iterator[Ledger]:
    """The books that all share, until nobody writes tapes any more, or nobody waits for it."""
    ledger = Ledger(folder)
    ledger.begin(committed)
    try:
        yield ledger
    except Interrupted:
        raise
    except BaseException:
        ledger.stop()
        _wait_for_workers(folder, options)
        raise
    finally:
        ledger.end()


def _wait_for_workers(folder: Path, options: RecordingOptions) -> None:
    """Let replies under way arrive, for as long as one attempt may take."""
    until = time.monotonic() + options.timeout
    while True:
        try:
            return check_nobody_at_work(folder)
        except FolderError:
            if time.monotonic() > until:
                return options.on_warning(f"workers are still at work in {folder}.")
            time.sleep(0.1)


def _waiting(
    loaded: LoadedStudy, session: Session, budget: Budget, options: RecordingOptions
) -> list[str]:
    """Episodes that are not on tape yet; with a cap, what is on tape is counted."""
    earlier = session.earlier
    done = {e.episode_id for e in earlier.episodes if e.status == "complete"} if earlier else set()
    if earlier is not None and not session.retried:
        return []
    deck = Deck(session.folder, study_digest=loaded.digest(), packages=session.packages)
    waiting = []
    for spec in loaded.grid():
        if budget.max_usd is not None:
            with deck.open(spec.episode_id, _Nobody()) as tape:
                for asked, reply in tape.replies():
                    budget.count_earlier(asked, reply)
        again = earlier is not None and spec.episode_id not in done
        if again or not deck.has_cassette(spec.episode_id):
            waiting.append(spec.episode_id)
    return waiting


class _Nobody:
    """Stands where a model belongs while tapes are only read."""

    async def reply(self, episode_id: str, call: Call) -> Reply:
        raise AssertionError(f"{episode_id}/{call.key} was asked")


def _maker(
    loaded: LoadedStudy,
    session: Session,
    fingerprint: str,
    level: Setting,
    budget: Budget,
    options: RecordingOptions,
) -> Callable[[Sequence[str], int], _Piece]:
    def make(episode_ids: Sequence[str], max_connections: int) -> _Piece:
        return _Piece(
            folder=session.folder,
            episode_ids=frozenset(episode_ids),
            packages=session.packages,
            fingerprint=fingerprint,
            reused=None if session.earlier else fingerprint,
            level=level,
            prices=budget.prices,
            max_usd=budget.max_usd,
            max_connections=max_connections,
            max_retries=options.max_retries,
            timeout=options.timeout,
        )

    return make


def _collect(
    client: Any,
    make: Callable[[Sequence[str], int], _Piece],
    waiting: Sequence[str],
    ledger: Ledger,
    budget: Budget,
    options: RecordingOptions,
) -> None:
    """Have the pieces done; the first reason to stop ends all of them, and is raised."""
    threads = max(1, sum(client.nthreads().values()))
    at_once = min(threads, options.max_connections)
    share = options.max_connections // at_once
    count = at_once
    if threads == at_once:  # no more pieces than connections, where there are few of these
        count = min(threads * PIECES_EACH, max(threads, len(waiting) // share))
    pieces = [make(waiting[place::count], share) for place in range(min(count, len(waiting)))]
    stopped: list[TutorsimError] = []
    writers: list[threading.Thread] = []
    said: set[str] = set()
    done = 0

    def stop(reason: TutorsimError) -> None:
        stopped.append(reason)
        writer = threading.Thread(target=ledger.stop)
        writer.start()  # a signal may come while this thread holds the books
        writers.append(writer)

    with _stopping(lambda: stop(_interrupted()), options.on_warning):
        for found in _done(scattered(client, _put_on_tape, pieces)):
            done += found.episodes
            found.spent.add_to(budget)
            options.on_progress(done, len(waiting))
            for text in sorted(set(found.warnings) - said):
                said.add(text)
                options.on_warning(text)
            if found.error is not None:
                stop(found.error)
    for writer in writers:
        writer.join()
    for reason in sorted(stopped, key=lambda reason: isinstance(reason, Interrupted)):
        raise reason


def _done(results: Iterator[Any]) -> Iterator[_Done]:
    try:
        yield from results
    except Exception as error:  # the cluster's own kinds, which only the engine knows
        raise TutorsimError(
            "The cluster gave up a piece of the recording.",
            why=f"{type(error).__name__}: {error}",
            hint="Look at its workers, then give the same command again; it goes on from here.",
        ) from error


@contextmanager
def _stopping(stop: Callable[[], None], note: Callable[[str], None]) -> Iterator[None]:
    """The first Ctrl-C or SIGTERM stops new calls; a second one waits for nothing."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    numbers = (signal.SIGINT, signal.SIGTERM)
    before = [signal.getsignal(number) for number in numbers]

    def second(*_: object) -> None:
        raise KeyboardInterrupt

    def first(*_: object) -> None:
        for number in numbers:
            signal.signal(number, second)
        stop()
        note("stopping; replies that are under way on the workers are kept.")

    for number in numbers:
        signal.signal(number, first)
    try:
        yield
    except KeyboardInterrupt:
        raise _interrupted() from None
    finally:
        for number, handler in zip(numbers, before, strict=True):
            signal.signal(number, handler)


def _interrupted() -> Interrupted:
    return Interrupted(
        "Interrupted.",
        why="Every reply that arrived is kept.",
        hint="The same command goes on from here.",
    )


# --- On a worker ----------------------------------------------------------------------------


def _leave_interrupts_to_the_main_process() -> None:
    """A terminal sends Ctrl-C to the workers of this machine too."""
    with suppress(ValueError):
        signal.signal(signal.SIGINT, signal.SIG_IGN)


def _put_on_tape(piece: _Piece) -> _Done:
    """Record the episodes of a piece. Errors are values: an exception would hide the rest."""
    ledger = Ledger(piece.folder)
    budget = SharedBudget(piece.prices, piece.max_usd, ledger)
    warnings: list[str] = []
    error = None
    episodes = 0

    def progress(done: int, _: int) -> None:
        nonlocal episodes
        episodes = done

    options = RecordingOptions(
        max_connections=piece.max_connections,
        max_retries=piece.max_retries,
        timeout=piece.timeout,
        on_warning=warnings.append,
        on_progress=progress,
    )
    try:
        with at_work(_seen(piece)):
            _record(piece, ledger, budget, options)
    except TutorsimError as caught:
        error = caught
    spent = _Spent(
        budget.calls,
        budget.input_tokens,
        budget.output_tokens,
        budget.spent,
        frozenset(budget.unpriced),
    )
    return _Done(episodes, spent, tuple(warnings), error)


def _record(piece: _Piece, ledger: Ledger, budget: SharedBudget, options: RecordingOptions) -> None:
    with Sandbox(piece.level) as sandbox:
        _check_sandbox(piece, sandbox)
        try:
            record_part(
                load_recorded_study(piece.folder),
                Session(piece.folder, "", "", "", piece.packages, None),
                episode_ids=piece.episode_ids,
                verdicts=SharedVerdicts(piece.folder, fingerprint=piece.reused, ledger=ledger),
                sandbox=sandbox,
                budget=budget,
                options=options,
            )
        finally:
            budget.close()


def _seen(piece: _Piece) -> Path:
    if not (piece.folder / SESSION_FILE).is_file():
        raise UsageError(
            f"A worker does not find the recording at {piece.folder}.",
            why=f"It runs on {os.uname().nodename}, which sees another file system.",
            hint="Put --cassette-dir where every worker sees it under the same path.",
        )
    return piece.folder


def _check_sandbox(piece: _Piece, sandbox: Sandbox) -> None:
    if fingerprint_text(sandbox) != piece.fingerprint:
        raise UsageError(
            "A worker would judge programs in another sandbox than this process.",
            why=f"It has {fingerprint_text(sandbox)}, and this one {piece.fingerprint}.",
            hint="Use the same machine image for all workers, or another --sandbox.",
        )
