"""Recording a study: many episodes side by side, each on its own tape.

The same command given again goes on where the last one stopped: what is on tape is not asked
again, and the end is the same as if nothing had happened. A stop (Ctrl-C, the cap, a fault of
this machine) lets replies under way arrive first, because they are paid for.
"""

import asyncio
import json
import signal
import time
from collections.abc import Callable, Coroutine, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx2

from tutorsim.agents.scene import Scene
from tutorsim.drivers import drive_async
from tutorsim.episode import episode
from tutorsim.errors import CallFailed, Interrupted, RecordingError, TutorsimError
from tutorsim.mechanisms.flow import CodeResult, CodeRun, Effect, Sent
from tutorsim.model import Call, CallKey, Reply
from tutorsim.model.sdk import HttpTransport, SdkModel
from tutorsim.records import EpisodeRecord, Failure, Provenance, RunRecord, to_line
from tutorsim.replay import (
    MANIFEST_FILE,
    EpisodeEntry,
    FolderLock,
    Manifest,
    VerdictStore,
    Witness,
    episode_entry,
    folder_error,
    package_versions,
    read_manifest,
    write_atomic,
    write_manifest,
)
from tutorsim.replay.recording import Deck, Tape
from tutorsim.runner.budget import Budget
from tutorsim.runner.log import LogWriter, check_log_folder, run_record
from tutorsim.runner.machine import fingerprint_text, machine_facts
from tutorsim.sandbox import Sandbox
from tutorsim.study import EpisodeSpec, LoadedStudy, write_study

__all__ = ["RecordingOptions", "record"]

SESSION_FILE = ".recording.json"
"""What an unfinished recording began with; gone when the manifest is written."""


@dataclass(frozen=True)
class RecordingOptions:
    """How to record."""

    max_connections: int = 16
    """Calls in flight at once."""
    max_retries: int = 4
    """The client's own retries of one call."""
    timeout: float = 120.0
    """Seconds that one attempt at a call may take."""
    retry_errors: bool = False
    """Take failed episodes up again."""
    relay_name: str | None = None
    """What answers behind a base URL of the user's own."""
    on_warning: Callable[[str], None] = lambda _: None
    on_progress: Callable[[int, int], None] = lambda done, total: None
    """Receives episodes done and in all, after every reply and episode."""


@dataclass
class _Session:
    """What stays the same over all commands that make one recording."""

    started: str
    packages: dict[str, str]
    today: str = field(default_factory=lambda: datetime.now(UTC).date().isoformat())


def record(
    loaded: LoadedStudy,
    *,
    cassette_dir: Path,
    log_dir: Path,
    sandbox: Sandbox,
    budget: Budget,
    options: RecordingOptions,
) -> RunRecord:
    """Record a study, or go on with recording it.

    Args:
        loaded: The study.
        cassette_dir: The recording's folder.
        log_dir: The run folder.
        sandbox: Judges programs.
        budget: Counts what is spent and keeps the cap.
        options: How to record.

    Returns:
        The head of the log. Failed episodes are marked in it and do not raise.

    Raises:
        UsageError: If there are no credentials, or a folder cannot be used.
        RecordingError, LogError: If what is in a folder is damaged or of another study.
        ReplayError: If a recorded call belongs to another request.
        BudgetReached: If the cap is reached; everything paid for is kept.
        Interrupted: After Ctrl-C; everything paid for is kept.
        SandboxError: If a program cannot be judged.
    """
    budget.check_models(loaded.study)
    with ExitStack() as stack:
        for folder in sorted({cassette_dir.resolve(), log_dir.resolve()}):
            stack.enter_context(FolderLock(folder))
        digest = loaded.digest()
        check_log_folder(log_dir, digest)
        earlier = _earlier(cassette_dir, digest)
        session = _session(cassette_dir, digest, earlier)
        _write_study(loaded, cassette_dir)
        recorder = _Recorder(
            loaded, cassette_dir, sandbox, budget, options, session=session, earlier=earlier
        )
        with LogWriter(log_dir) as log:
            return asyncio.run(recorder.run(log))


def _earlier(folder: Path, digest: str) -> Manifest | None:
    if not (folder / MANIFEST_FILE).exists():
        return None
    manifest = read_manifest(folder)
    if manifest.study_digest != digest:
        raise RecordingError(
            f"{folder} holds the recording of another study ({manifest.study_name}).",
            why="Its study digest differs: settings, prompts or tasks are not the same.",
            hint="Choose another --cassette-dir.",
        )
    return manifest


def _session(folder: Path, digest: str, earlier: Manifest | None) -> _Session:
    path = folder / SESSION_FILE
    packages = package_versions()
    if earlier is not None:
        days = earlier.provenance.recorded_from
        return _Session(days or _Session("", {}).today, dict(earlier.packages))
    with suppress(OSError, ValueError, KeyError, TypeError):
        found = json.loads(path.read_text(encoding="utf-8"))
        if found["study_digest"] == digest:
            return _Session(str(found["started"]), dict(found["packages"]))
    session = _Session("", packages)
    session.started = session.today
    head = {"study_digest": digest, "started": session.started, "packages": packages}
    write_atomic(path, json.dumps(head).encode())
    return session


def _write_study(loaded: LoadedStudy, folder: Path) -> None:
    try:
        write_study(loaded, folder)
    except OSError as error:
        raise folder_error(folder / "study.toml", error) from error


class _Recorder:
    """Drives the episodes of one command."""

    def __init__(
        self,
        loaded: LoadedStudy,
        folder: Path,
        sandbox: Sandbox,
        budget: Budget,
        options: RecordingOptions,
        *,
        session: _Session,
        earlier: Manifest | None,
    ) -> None:
        self.loaded = loaded
        self.folder = folder
        self.sandbox = sandbox
        self.budget = budget
        self.options = options
        self.session = session
        self.earlier = earlier
        self.specs = list(loaded.grid())
        self.deck = Deck(folder, study_digest=loaded.digest(), packages=session.packages)
        self.fingerprint = fingerprint_text(sandbox)
        self.verdicts = VerdictStore(folder, fingerprint=self.fingerprint)
        self.witness = Witness()
        self.paid = 0
        self.done = 0
        self.stop: BaseException | None = None
        self._skip = self._failed_before()

    def _failed_before(self) -> Mapping[str, Failure]:
        """Episodes to leave failed, with how they failed."""
        if self.earlier is None or self.options.retry_errors:
            return {}
        return {e.episode_id: e.failure for e in self.earlier.episodes if e.failure is not None}

    async def run(self, log: LogWriter) -> RunRecord:
        """Record every episode, then write manifest and log."""
        carrier: httpx2.AsyncBaseTransport = HttpTransport(self.options.max_connections)
        model = SdkModel(
            transport=self.deck.transport(carrier),
            max_connections=self.options.max_connections,
            max_retries=self.options.max_retries,
            timeout=self.options.timeout,
            on_warning=self.options.on_warning,
        )
        async with model:
            self._count_earlier(model)
            entries = await self._all(model, log)
        return self._finish(log, entries)

    def _count_earlier(self, model: SdkModel) -> None:
        """With a cap, count what the recording has cost so far."""
        if self.budget.max_usd is None:
            return
        for spec in self.specs:
            with self.deck.open(spec.episode_id, model) as tape:
                for asked, reply in tape.replies():
                    self.budget.count_earlier(asked, reply)

    async def _all(self, model: SdkModel, log: LogWriter) -> list[EpisodeEntry]:
        finished: dict[int, tuple[EpisodeRecord, EpisodeEntry, float]] = {}
        entries: list[EpisodeEntry] = []
        waiting = iter(enumerate(self.specs))

        async def worker() -> None:
            for index, spec in waiting:
                if self.stop is not None:
                    return
                started = time.perf_counter()
                try:
                    record, entry = await self._one(spec, model)
                except TutorsimError as error:
                    self.stop = self.stop or error
                    return
                finished[index] = record, entry, time.perf_counter() - started
                self._write_ready(finished, entries, log)

        with _stop_on_interrupt(self):
            await _all_or_first_bug([worker() for _ in range(self.options.max_connections)])
        if self.stop is not None:
            raise self.stop
        return entries

    def _write_ready(
        self,
        finished: dict[int, tuple[EpisodeRecord, EpisodeEntry, float]],
        entries: list[EpisodeEntry],
        log: LogWriter,
    ) -> None:
        """Write the episodes whose turn has come, in grid order."""
        self.done += 1
        self.options.on_progress(self.done, len(self.specs))
        while (ready := finished.pop(len(entries), None)) is not None:
            record, entry, seconds = ready
            log.add(to_line(record), record.episode_id, seconds)
            entries.append(entry)

    async def _one(self, spec: EpisodeSpec, model: SdkModel) -> tuple[EpisodeRecord, EpisodeEntry]:
        with self.deck.open(spec.episode_id, model) as tape:
            world = _World(self, tape, self._skip.get(spec.episode_id))
            record = await drive_async(episode(Scene(self.loaded, spec)), world)
            cassette = await tape.finish([key for key in world.asked if tape.holds(key)])
            self.paid += tape.paid
        self.witness.note(cassette)
        return record, episode_entry(record, cassette)

    def _finish(self, log: LogWriter, entries: list[EpisodeEntry]) -> RunRecord:
        provenance = self._provenance()
        manifest = Manifest(
            study_name=self.loaded.study.name,
            study_digest=self.loaded.digest(),
            prompt_digest=self.loaded.prompt_digest(),
            provenance=provenance,
            packages=self.session.packages,
            sandbox=self.fingerprint if len(self.verdicts) else None,
            verdicts_sha256=self.verdicts.finish(),
            log_sha256=log.sha256,
            episodes=tuple(entries),
        )
        write_manifest(self.folder, manifest)
        (self.folder / SESSION_FILE).unlink(missing_ok=True)
        run = run_record(self.loaded, manifest)
        log.finish(run, machine_facts("run", self.sandbox, used=bool(len(self.verdicts))))
        return run

    def _provenance(self) -> Provenance:
        earlier = self.earlier.provenance if self.earlier else None
        unpaid = earlier.recorded_to if earlier else self.session.started
        return self.witness.provenance(
            relay_name=self.options.relay_name or (earlier.name if earlier else None),
            recorded_from=self.session.started,
            recorded_to=self.session.today if self.paid else unpaid,
        )


class _World:
    """Performs the effects of one episode: calls on its tape, programs in the sandbox."""

    def __init__(self, recorder: _Recorder, tape: Tape, failed: Failure | None) -> None:
        self.recorder = recorder
        self.tape = tape
        self.failed = failed
        self.asked: list[CallKey] = []

    async def __call__(self, effect: Effect) -> Sent:
        if isinstance(effect, CodeRun):
            return await self._judged(effect)
        self.asked += [call.key for call in effect.calls]
        results = await asyncio.gather(
            *(self._reply(call) for call in effect.calls), return_exceptions=True
        )
        await self.tape.sync()
        return _replies(effect.calls, results)

    async def _reply(self, call: Call) -> Reply:
        recorder = self.recorder
        held = self.tape.holds(call.key)
        if held:
            reply = await self.tape.reply(self.tape.episode_id, call)
        else:
            reply = await self._paid(call)
        recorder.budget.count(call.request.model, reply, new=not held)
        recorder.options.on_progress(recorder.done, len(recorder.specs))
        return reply

    async def _paid(self, call: Call) -> Reply:
        recorder = self.recorder
        if recorder.stop is not None:
            raise recorder.stop
        if self.failed is not None:
            raise CallFailed(self.failed.error, key=self.failed.key)
        reservation = recorder.budget.reserve(call)
        try:
            return await self.tape.reply(self.tape.episode_id, call)
        except CallFailed as error:
            raise CallFailed(error.what, why=error.why, key=str(call.key)) from error
        finally:
            recorder.budget.release(reservation)

    async def _judged(self, run: CodeRun) -> CodeResult:
        recorder = self.recorder
        kept = recorder.verdicts.find(run)
        if kept is not None:
            return kept
        result = await asyncio.to_thread(recorder.sandbox.judge, run)
        if recorder.verdicts.find(run) is None:
            recorder.verdicts.add(run, result, fingerprint=recorder.fingerprint)
        return result


def _replies(calls: tuple[Call, ...], results: list[Reply | BaseException]) -> tuple[Reply, ...]:
    """The replies of a round, or its most serious error: a stop before a failed call."""
    errors = [result for result in results if isinstance(result, BaseException)]
    for error in sorted(errors, key=lambda error: isinstance(error, CallFailed)):
        raise error
    return tuple(result for result in results if isinstance(result, Reply))


async def _all_or_first_bug(workers: list[Coroutine[Any, Any, None]]) -> None:
    """Wait for all workers; an exception that none of them expects ends the others at once."""
    async with asyncio.TaskGroup() as group:
        for worker in workers:
            group.create_task(worker)


@contextmanager
def _stop_on_interrupt(recorder: _Recorder) -> Iterator[None]:
    """The first Ctrl-C stops new calls and lets those under way arrive; a second one is final."""
    loop = asyncio.get_running_loop()
    main = asyncio.current_task()

    def interrupted() -> None:
        if recorder.stop is not None and main is not None:
            main.cancel()
        recorder.stop = recorder.stop or Interrupted(
            "Interrupted.",
            why="Everything paid for is kept.",
            hint="The same command goes on from here.",
        )

    try:
        loop.add_signal_handler(signal.SIGINT, interrupted)
    except (ValueError, RuntimeError, NotImplementedError):
        yield  # not the main thread: nobody sends it a Ctrl-C
        return
    try:
        yield
    finally:
        loop.remove_signal_handler(signal.SIGINT)
