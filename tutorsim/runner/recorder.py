"""Recording a study: many episodes side by side, each on its own tape.

The same command given again goes on where the last one stopped: what is on tape is not asked
again, and the end is the same as if nothing had happened. Calls go one by one, or in waves
through the batch endpoint; either may go on with what the other began.
"""

import asyncio
import time
from collections.abc import Collection, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path

from tutorsim.agents.scene import Scene
from tutorsim.drivers import drive_async
from tutorsim.episode import episode
from tutorsim.mechanisms.flow import CodeResult, CodeRun, Effect, Sent
from tutorsim.model import Call, CallKey, Model, Reply
from tutorsim.records import Failure, Provenance, RunRecord, to_line
from tutorsim.replay import (
    EpisodeEntry,
    FolderLock,
    Manifest,
    VerdictStore,
    Witness,
    episode_entry,
    write_manifest,
)
from tutorsim.replay.interaction import Interaction
from tutorsim.replay.provenance import relay_name
from tutorsim.replay.recording import Deck, Tape
from tutorsim.replay.verdicts import program_digest
from tutorsim.runner.budget import Budget
from tutorsim.runner.ledger import check_nobody_at_work
from tutorsim.runner.line import Line, RecordingOptions, check_credentials
from tutorsim.runner.log import LogWriter, check_log_folder, run_record
from tutorsim.runner.machine import fingerprint_text, machine_facts
from tutorsim.runner.parent import Parent, ParentEpisode, check_parent
from tutorsim.runner.session import Session, keep_study, open_session
from tutorsim.sandbox import Sandbox
from tutorsim.study import EpisodeSpec, LoadedStudy

__all__ = ["RecordingOptions", "record", "record_part"]


def record(
    loaded: LoadedStudy,
    *,
    cassette_dir: Path,
    log_dir: Path,
    sandbox: Sandbox,
    budget: Budget,
    options: RecordingOptions,
    parent: Parent | None = None,
) -> RunRecord:
    """Record a study, or go on with recording it.

    Args:
        loaded: The study.
        cassette_dir: The recording's folder.
        log_dir: The run folder.
        sandbox: Judges programs.
        budget: Counts what is spent and keeps the cap.
        options: How to record.
        parent: The recording that a branch continues; its calls are taken over, not paid for.

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
    check_parent(loaded, parent)
    budget.check_models(loaded.study)
    asyncio.run(check_credentials())
    with ExitStack() as stack:
        for folder in sorted({cassette_dir.resolve(), log_dir.resolve()}):
            stack.enter_context(FolderLock(folder))
        check_nobody_at_work(cassette_dir)
        check_log_folder(log_dir, loaded.digest())
        session = open_session(loaded, cassette_dir)
        if parent is not None:
            parent.link_covered(cassette_dir)
        recorder = _Recorder(loaded, session, sandbox, budget, options, parent)
        with LogWriter(log_dir) as log:
            return asyncio.run(recorder.run(log))


def record_part(
    loaded: LoadedStudy,
    session: Session,
    *,
    episode_ids: Collection[str],
    verdicts: VerdictStore,
    sandbox: Sandbox,
    budget: Budget,
    options: RecordingOptions,
) -> None:
    """Put some episodes on tape, and write nothing else: no manifest and no log.

    Args:
        loaded: The study.
        session: The recording that the episodes are of.
        episode_ids: Which episodes.
        verdicts: Where verdicts are kept.
        sandbox: Judges programs.
        budget: Counts what is spent and keeps the cap.
        options: How to record.

    Raises:
        TutorsimError: As `record`.
    """
    recorder = _Recorder(loaded, session, sandbox, budget, options, None, verdicts)
    wanted = [spec for spec in recorder.specs if spec.episode_id in episode_ids]
    asyncio.run(recorder.put_on_tape(wanted))


class _Recorder:
    """Drives the episodes of one command."""

    def __init__(
        self,
        loaded: LoadedStudy,
        session: Session,
        sandbox: Sandbox,
        budget: Budget,
        options: RecordingOptions,
        parent: Parent | None,
        verdicts: VerdictStore | None = None,
    ) -> None:
        folder = session.folder
        self.loaded = loaded
        self.session = session
        self.sandbox = sandbox
        self.budget = budget
        self.options = options
        self.parent = parent
        self.specs = list(loaded.grid())
        self.deck = Deck(
            folder,
            study_digest=loaded.digest(),
            packages=session.packages,
            kept_from=parent.branch.parent_study if parent else None,
        )
        self.fingerprint = fingerprint_text(sandbox)
        self.verdicts = verdicts or VerdictStore(
            folder, fingerprint=None if session.earlier else self.fingerprint
        )
        """Those of a finished recording stay, whatever would judge its programs now."""
        self.judging: dict[str, asyncio.Task[CodeResult]] = {}
        """By program: a verdict is one for all episodes, even where the sandbox is not sure."""
        self.witness = Witness()
        self.line = Line(self.deck, study_digest=loaded.digest(), budget=budget, options=options)
        self.paid = 0
        self.done = 0
        self._skip = self._failed_before()

    def _failed_before(self) -> Mapping[str, Failure]:
        """Episodes to leave failed, with how they failed."""
        earlier = self.session.earlier
        if earlier is None or self.options.retry_errors:
            return {}
        return {e.episode_id: e.failure for e in earlier.episodes if e.failure is not None}

    async def run(self, log: LogWriter) -> RunRecord:
        """Record every episode, then write manifest and log."""
        async with self.line.open() as model:
            self._count_earlier(model)
            entries = await self._all(model, log)
        return self._finish(log, entries)

    async def put_on_tape(self, specs: Sequence[EpisodeSpec]) -> None:
        """Record episodes without manifest and log."""
        async with self.line.open() as model:

            async def one(_: int, spec: EpisodeSpec) -> None:
                await self._one(spec, model)
                self.done += 1

            await self.line.work(specs, one)

    def _count_earlier(self, model: Model) -> None:
        """With a cap, count what the recording has cost so far."""
        if self.budget.max_usd is None:
            return
        for spec in self.specs:
            with self.deck.open(spec.episode_id, model) as tape:
                prior = self.parent.episode(spec) if self.parent else None
                for asked, reply in tape.replies(paid=partial(_was_paid, prior)):
                    self.budget.count_earlier(asked, reply)

    async def _all(self, model: Model, log: LogWriter) -> list[EpisodeEntry]:
        finished: dict[int, tuple[str, EpisodeEntry, float]] = {}
        entries: list[EpisodeEntry] = []

        async def one(index: int, spec: EpisodeSpec) -> None:
            started = time.perf_counter()
            line, entry = await self._one(spec, model)
            finished[index] = line, entry, time.perf_counter() - started
            self._write_ready(finished, entries, log)

        await self.line.work(self.specs, one)
        return entries

    def _write_ready(
        self,
        finished: dict[int, tuple[str, EpisodeEntry, float]],
        entries: list[EpisodeEntry],
        log: LogWriter,
    ) -> None:
        """Write the episodes whose turn has come, in grid order."""
        self.done += 1
        self.options.on_progress(self.done, len(self.specs))
        while (ready := finished.pop(len(entries), None)) is not None:
            line, entry, seconds = ready
            log.add(line, entry.episode_id, seconds)
            entries.append(entry)

    async def _one(self, spec: EpisodeSpec, model: Model) -> tuple[str, EpisodeEntry]:
        """The log line and the entry of an episode, once it is on tape."""
        with self.deck.open(spec.episode_id, model) as tape:
            world = _World(self, spec, tape, self._skip.get(spec.episode_id))
            record = await drive_async(episode(Scene(self.loaded, spec)), world)
            cassette = await tape.finish([key for key in world.asked if tape.holds(key)])
            self.paid += tape.paid
        self.witness.note(cassette)
        line = to_line(record)
        return line, episode_entry(record, line, cassette)

    async def judge(self, run: CodeRun) -> CodeResult:
        """Judge a program and keep the verdict."""
        result = await asyncio.to_thread(self.sandbox.judge, run)
        self.verdicts.add(run, result, fingerprint=self.fingerprint)
        return self.verdicts.find(run) or result

    def _finish(self, log: LogWriter, entries: list[EpisodeEntry]) -> RunRecord:
        provenance = self._provenance()
        manifest = Manifest(
            study_name=self.loaded.study.name,
            study_digest=self.loaded.digest(),
            prompt_digest=self.loaded.prompt_digest(),
            provenance=provenance,
            packages=self.session.packages,
            sandbox=self._judged_by() if len(self.verdicts) else None,
            verdicts_sha256=self.verdicts.finish(),
            log_sha256=log.sha256,
            episodes=tuple(entries),
        )
        if self.parent is not None:
            keep_study(self.loaded, self.session.folder)  # a finished branch may have grown
        write_manifest(self.session.folder, manifest)
        run = run_record(self.loaded, manifest)
        used = bool(len(self.verdicts))
        log.finish(run, machine_facts("run", self.session.folder, self.sandbox, used=used))
        self.line.forget()
        self.session.finish()
        return run

    def _judged_by(self) -> str:
        earlier = self.session.earlier
        return (earlier.sandbox if earlier else None) or self.fingerprint

    def _provenance(self) -> Provenance:
        session = self.session
        before = session.earlier.provenance if session.earlier else None
        return self.witness.provenance(
            relay_name=self.options.relay_name or relay_name(before),
            recorded_from=session.started,
            recorded_to=session.today if self.paid else session.latest,
        )


def _was_paid(prior: ParentEpisode | None, one: Interaction) -> bool:
    """Whether a reply on a tape was paid for by this recording, and not by its parent."""
    return prior is None or not prior.gave(one)


class _World:
    """Performs the effects of one episode: calls on its tape, programs in the sandbox."""

    def __init__(
        self, recorder: _Recorder, spec: EpisodeSpec, tape: Tape, failed: Failure | None
    ) -> None:
        self.recorder = recorder
        self.spec = spec
        self.tape = tape
        self.failed = failed
        self.prior = recorder.parent.episode(spec) if recorder.parent else None
        self.asked: list[CallKey] = []

    async def __call__(self, effect: Effect) -> Sent:
        if isinstance(effect, CodeRun):
            return await self._judged(effect)
        self.asked += [call.key for call in effect.calls]
        replies = [self._reply(call, fresh=effect.fresh) for call in effect.calls]
        return await self.recorder.line.round(self.tape, replies)

    async def _reply(self, call: Call, *, fresh: bool) -> Reply:
        recorder, prior = self.recorder, self.prior
        held = self.tape.holds(call.key)
        reused = prior is not None and prior.answers(call, self.tape, fresh=fresh)
        if held or reused:
            reply = await self.tape.reply(self.tape.episode_id, call)
        else:
            reply = await recorder.line.paid(self.tape, call, failed=self.failed)
        if reused:
            recorder.budget.reused += 1
        else:
            recorder.budget.count(call.request.model, reply, new=not held)
        recorder.witness.models.add(reply.model)
        recorder.options.on_progress(recorder.done, len(recorder.specs))
        return reply

    async def _judged(self, run: CodeRun) -> CodeResult:
        recorder = self.recorder
        kept = recorder.parent.verdict(run, recorder.verdicts) if recorder.parent else None
        kept = kept or recorder.verdicts.find(run)
        if kept is not None:
            return kept
        program = program_digest(run)
        if program not in recorder.judging:
            recorder.judging[program] = asyncio.create_task(recorder.judge(run))
        return await asyncio.shield(recorder.judging[program])
