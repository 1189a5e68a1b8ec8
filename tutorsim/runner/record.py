"""Recording a job: many pieces side by side, each with a recorder; and a study as such a job."""

import asyncio
import time
from collections.abc import Coroutine, Mapping, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any, Generic, NamedTuple, TypeVar

from tutorsim.errors import CallFailed, UsageError
from tutorsim.kernel.flow_drivers_and_call_log import (
    CodeResult,
    CodeRun,
    Effect,
    Listen,
    Sent,
    drive_async,
    failure_of,
)
from tutorsim.kernel.system_and_loaded_study import LoadedStudy
from tutorsim.model import Call, CallKey, Model, Reply
from tutorsim.model.sdk_model_and_reasons_of_failed_calls import OF_THE_MOMENT
from tutorsim.records import EpisodeLine, Failure, Provenance, RunRecord, to_line
from tutorsim.replay import (
    AnsweredBy,
    Cassette,
    EpisodeEntry,
    Manifest,
    VerdictStore,
    write_manifest,
)
from tutorsim.replay.cassette_file import RecordedBy
from tutorsim.replay.manifests_of_recordings_and_retests_provenance import Digests, relay_name
from tutorsim.replay.program_verdicts_and_person_inputs import InputStore, program_digest
from tutorsim.replay.recorded_calls_event_streams_and_mismatches import Interaction
from tutorsim.replay.recording_transport_tapes_and_journals import CassetteStore, Tape
from tutorsim.runner.begin_or_resume_recording import BaseSession, Session, keep_study, recording
from tutorsim.runner.branch_plan_and_answers_from_parent import Parent, ParentEpisode, check_parent
from tutorsim.runner.early_stops_by_signal_cost_cap_or_outage import Budget
from tutorsim.runner.pieces_of_work_person_heard_event_loop import (
    Hearing,
    Lines,
    Piece,
    run_in_loop,
    study_piece,
)
from tutorsim.runner.recording_options_and_queue_of_episodes_and_calls import (
    CallQueue,
    RecordingOptions,
)
from tutorsim.runner.write_run_folder_and_timings import (
    LogWriter,
    fingerprint_text,
    machine_facts,
    run_record,
)
from tutorsim.sandbox import Sandbox

# --- Job recording -------------------------------------------------------------------------------

R = TypeVar("R")
E = TypeVar("E", bound=Digests)
F = TypeVar("F")
"""What a finished job comes to."""


class Job(Generic[R, E, F]):
    """A job that is being recorded: its pieces, and what its flows ask for beside replies."""

    study_digest: str
    """Digest of the study that the job is of."""
    pieces: Sequence[Piece[R, E]]
    """Pieces in the order of the log."""
    kept_from: str | None = None
    """Study digest of cassettes that stand in the folder as another recording wrote them."""
    stands_until_done: bool = False
    """What an earlier command finished stays whole until all of this one is on tape."""

    def failed(self, piece_id: str, key: CallKey) -> Failure | None:
        """How a call failed before; `None` for a call that is to be made."""
        return None

    def prior(self, piece_id: str) -> ParentEpisode | None:
        """What a parent holds of a piece."""
        return None

    def hearing(self, piece_id: str) -> Hearing | None:
        """Who hears a person in a piece."""
        return None

    async def judge(self, run: CodeRun) -> CodeResult:
        """The verdict on a program."""
        raise NotImplementedError

    def finish(self, entries: Sequence[E], provenance: Provenance) -> F:
        """Write manifest and log, once every piece is on tape and every line in the log."""
        raise NotImplementedError


class _Recorded(NamedTuple):
    """What came of a piece."""

    record: Any
    order: list[CallKey]
    """Keys on tape, in call order."""
    cassette: Cassette | None
    """`None` until it may be written."""
    seconds: float


class Recorder(Generic[R, E, F]):
    """Drives the pieces of one command, several side by side, each onto its tape.

    recorder = Recorder(job, session, budget, options)
    finished = run_in_loop(recorder.run(log))
    """

    def __init__(
        self, job: Job[R, E, F], session: BaseSession, budget: Budget, options: RecordingOptions
    ) -> None:
        self.job = job
        self.session = session
        self.budget = budget
        self.options = options
        self.store = CassetteStore(
            session.folder,
            study_digest=job.study_digest,
            packages=session.packages,
            kept_from=job.kept_from,
            recorded=self._recorded_by,
        )
        self.queue = CallQueue(
            self.store, study_digest=job.study_digest, budget=budget, options=options
        )
        self.answered_by = AnsweredBy()
        self.paid = 0
        """Calls that this command paid for."""
        self.done = 0
        """Pieces that are on tape."""

    def _recorded_by(self, paid: bool) -> RecordedBy:
        """What a cassette says of the recording; `paid` for one with replies of today."""
        relay, before = self.options.relay_name, self.session.earlier
        named = relay or relay_name(before.provenance if before else None)
        last = self.session.today if paid or self.paid else self.session.latest
        return RecordedBy(self.session.started, last, named)

    async def run(self, log: Lines) -> F:
        """Record every piece, then write manifest and log."""
        async with self.queue.open() as model:
            self._count_earlier(model)
            entries = await self._all(model, log)
        provenance = self.session.provenance(
            self.answered_by, relay=self.options.relay_name, paid=bool(self.paid)
        )
        finished = self.job.finish(entries, provenance)
        self.queue.forget()
        self.session.finish()
        return finished

    async def put_on_tape(self, pieces: Sequence[Piece[R, E]]) -> list[str]:
        """Record pieces without manifest and log; their log lines, in the order given."""
        lines: dict[int, str] = {}
        async with self.queue.open() as model:

            async def one(index: int, piece: Piece[R, E]) -> None:
                lines[index], _ = self._described(piece, await self._one(piece, model))
                self._tell()

            await self.queue.work(pieces, one)
        return [lines[index] for index in range(len(pieces))]

    def tell(self) -> None:
        """Say how many pieces are on tape."""
        self.options.on_progress(self.done, len(self.job.pieces))

    def _tell(self) -> None:
        self.done += 1
        self.tell()

    def _count_earlier(self, model: Model) -> None:
        """With a cap, count what the job has cost so far."""
        if self.budget.max_usd is None:
            return
        for piece in self.job.pieces:
            with self.store.open(piece.id, model) as tape:
                prior = self.job.prior(piece.id)
                for asked, reply in tape.replies(paid=partial(_was_paid, prior)):
                    self.budget.count_earlier(asked, reply)

    async def _all(self, model: Model, log: Lines) -> list[E]:
        pieces = self.job.pieces
        unwritten: dict[int, _Recorded] = {}
        written: dict[int, _Recorded] = {}
        entries: list[E] = []

        def log_ready() -> None:
            """Log the pieces whose turn has come, in order."""
            while (ready := written.pop(len(entries), None)) is not None:
                line, entry = self._described(pieces[len(entries)], ready)
                log.add(line, entry.episode_id, ready.seconds)
                entries.append(entry)

        async def one(index: int, piece: Piece[R, E]) -> None:
            done = await self._one(piece, model)
            (unwritten if done.cassette is None else written)[index] = done
            self._tell()
            log_ready()

        await self.queue.work(pieces, one)
        for index, done in sorted(unwritten.items(), key=lambda pair: pair[0]):
            with self.store.open(pieces[index].id, model) as tape:
                cassette = await tape.finish(done.order)
            written[index] = done._replace(cassette=cassette)
            log_ready()
        return entries

    async def _one(self, piece: Piece[R, E], model: Model) -> _Recorded:
        """Put a piece on tape, and write its cassette where it may be written."""
        started, cassette = time.perf_counter(), None
        with self.store.open(piece.id, model) as tape:
            world = _World(self, piece.id, tape)
            record = await drive_async(piece.flow(), world)
            order = piece.order([key for key in world.asked if tape.holds(key)])
            if self.job.stands_until_done:
                await tape.rest()
            else:
                cassette = await tape.finish(order)
            self.paid += tape.paid
        return _Recorded(record, order, cassette, time.perf_counter() - started)

    def _described(self, piece: Piece[R, E], done: _Recorded) -> tuple[str, E]:
        """The log line and the entry of a piece whose cassette is written."""
        assert done.cassette is not None
        self.answered_by.note(done.cassette)
        line = to_line(done.record)
        return line, piece.entry(done.record, line, done.cassette)


def _was_paid(prior: ParentEpisode | None, one: Interaction) -> bool:
    """Whether a reply on a tape was paid for by this job, and not by its parent."""
    return prior is None or not prior.gave(one)


class _World:
    """Performs the effects of one piece: calls on its tape, programs in the sandbox."""

    def __init__(self, recorder: Recorder[Any, Any, Any], piece_id: str, tape: Tape) -> None:
        self.recorder = recorder
        self.tape = tape
        self.prior = recorder.job.prior(piece_id)
        self.hearing = recorder.job.hearing(piece_id)
        self.asked: list[CallKey] = []

    async def __call__(self, effect: Effect) -> Sent:
        if isinstance(effect, CodeRun):
            return await self.recorder.job.judge(effect)
        if isinstance(effect, Listen):
            assert self.hearing is not None
            return await self.recorder.queue.unless_stopped(self.hearing.hear(effect))
        self.asked += [call.key for call in effect.calls]
        replies: list[Coroutine[Any, Any, Reply | Failure]] = [
            self._reply(call, fresh=effect.fresh) for call in effect.calls
        ]
        if effect.each:
            replies = [_or_failure(reply) for reply in replies]
        self._asking(effect.calls, effect.shown)
        try:
            return await self.recorder.queue.round(self.tape, replies)
        finally:
            self._asking(())

    def _asking(self, calls: Sequence[Call], shown: object = None) -> None:
        if self.hearing is not None:
            self.hearing.asking(calls, shown)

    async def _reply(self, call: Call, *, fresh: bool) -> Reply:
        recorder, prior, tape = self.recorder, self.prior, self.tape
        held = tape.holds(call.key)
        reused = prior is not None and prior.answers(call, tape, fresh=fresh)
        if held or reused:
            reply = await tape.reply(tape.episode_id, call)
        else:
            failed = recorder.job.failed(tape.episode_id, call.key)
            reply = await recorder.queue.paid(tape, call, failed=failed)
        if reused:
            recorder.budget.reused += 1
        else:
            recorder.budget.count(call.request.model, reply, new=not held)
        recorder.answered_by.models.add(reply.model)
        recorder.tell()
        return reply


async def _or_failure(reply: Coroutine[Any, Any, Reply | Failure]) -> Reply | Failure:
    try:
        return await reply
    except CallFailed as error:
        return failure_of(error)


# --- Study recorder ------------------------------------------------------------------------------


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
    """Record a study, or go on with recording it, and give the head of the log.

    Failed episodes are marked in it and do not raise. `parent` is the recording that a branch
    continues: its calls are taken over, not paid for. At the cap (`BudgetReached`) and after Ctrl-C
    (`Interrupted`) everything paid for is kept. Credentials, folders, tests of tasks that prove
    nothing, damaged or foreign recordings and logs, calls that belong to another request and
    programs that cannot be judged are refused, each by its own error.
    """
    check_parent(loaded, parent)
    _check_person(loaded, options)
    with recording(
        loaded, cassette_dir, log_dir, sandbox=sandbox, budget=budget, options=options
    ) as begun:
        if parent is not None:
            parent.link_covered(cassette_dir)
        job = _StudyJob(begun.loaded, begun.session, sandbox, options, parent)
        with LogWriter(log_dir) as log, closing(job.inputs):
            job.log = log
            return run_in_loop(Recorder(job, begun.session, budget, options).run(log))


async def record_episode(
    loaded: LoadedStudy,
    session: Session,
    *,
    episode_id: str,
    sandbox: Sandbox,
    budget: Budget,
    options: RecordingOptions,
) -> str:
    """Put one episode on tape, in a loop that does other things too; no manifest and no log.

    It gives the episode's log line and raises as `record`.
    """
    job = _StudyJob(loaded, session, sandbox, options, None)
    wanted = [piece for piece in job.pieces if piece.id == episode_id]
    with closing(job.inputs):
        [line] = await Recorder(job, session, budget, options).put_on_tape(wanted)
    return line


def _check_person(loaded: LoadedStudy, options: RecordingOptions) -> None:
    """Refuse a study with a person in it where nobody is there to be heard."""
    if options.person is None and next(loaded.with_person(), None) is not None:
        raise UsageError(
            f"The study {loaded.study.name!r} has a person in it, so it cannot run by itself.",
            why="Nobody would be there to be heard.",
            hint="Serve it with `tutorsim chat`.",
        )


class _StudyJob(Job[EpisodeLine, EpisodeEntry, RunRecord]):
    """A study as a job; with a parent, that of a branch."""

    log: LogWriter

    def __init__(
        self,
        loaded: LoadedStudy,
        session: Session,
        sandbox: Sandbox,
        options: RecordingOptions,
        parent: Parent | None,
    ) -> None:
        folder = session.folder
        self.loaded = loaded
        self.study_digest = loaded.digest()
        self.kept_from = parent.branch.parent_study if parent else None
        self.specs = {spec.episode_id: spec for spec in loaded.grid()}
        self.pieces = [study_piece(loaded, spec) for spec in self.specs.values()]
        self.session = session
        self.sandbox = sandbox
        self.options = options
        self.parent = parent
        self.fingerprint = fingerprint_text(sandbox)
        self.verdicts = VerdictStore(
            folder, fingerprint=None if session.earlier else self.fingerprint
        )
        """Verdicts of a finished recording stay, whatever would judge its programs now."""
        self.inputs = InputStore(folder)
        self.judging: dict[str, asyncio.Task[CodeResult]] = {}
        """By program: a verdict is one for all episodes, even where the sandbox is not sure."""
        self._failed = self._failed_before()

    def _failed_before(self) -> Mapping[str, Failure]:
        """Episodes to leave failed, with how they failed: not those that an outage failed."""
        earlier = self.session.earlier
        if earlier is None or self.session.retried:
            return {}
        return {
            e.episode_id: e.failure
            for e in earlier.episodes
            if e.failure is not None and not e.failure.error.startswith(OF_THE_MOMENT)
        }

    def failed(self, piece_id: str, key: CallKey) -> Failure | None:
        return self._failed.get(piece_id)

    def prior(self, piece_id: str) -> ParentEpisode | None:
        return self.parent.episode(self.specs[piece_id]) if self.parent else None

    def hearing(self, piece_id: str) -> Hearing:
        return Hearing(piece_id, self.inputs, self.options.person)

    async def judge(self, run: CodeRun) -> CodeResult:
        """The verdict that is kept, the parent's, or a new one, which is kept then."""
        kept = self.parent.verdict(run, self.verdicts) if self.parent else None
        kept = kept or self.verdicts.find(run)
        if kept is not None:
            return kept
        program = program_digest(run)
        if program not in self.judging:
            self.judging[program] = asyncio.create_task(self._judged_now(run))
        return await asyncio.shield(self.judging[program])

    async def _judged_now(self, run: CodeRun) -> CodeResult:
        result = await asyncio.to_thread(self.sandbox.judge, run)
        self.verdicts.add(run, result, fingerprint=self.fingerprint)
        return self.verdicts.find(run) or result

    def finish(self, entries: Sequence[EpisodeEntry], provenance: Provenance) -> RunRecord:
        manifest = Manifest(
            study_name=self.loaded.study.name,
            study_digest=self.study_digest,
            prompt_digest=self.loaded.prompt_digest(),
            provenance=provenance,
            packages=self.session.packages,
            sandbox=self._judged_by() if len(self.verdicts) else None,
            verdicts_sha256=self.verdicts.finish(),
            inputs_sha256=self.inputs.finish(),
            retested=self.session.earlier is not None and self.session.earlier.retested,
            log_sha256=self.log.sha256,
            episodes=tuple(entries),
        )
        if self.parent is not None:
            keep_study(self.loaded, self.session.folder)  # a finished branch may have grown
        write_manifest(self.session.folder, manifest)
        run = run_record(self.loaded, manifest)
        used = bool(len(self.verdicts))
        self.log.finish(run, machine_facts("run", self.session.folder, self.sandbox, used=used))
        return run

    def _judged_by(self) -> str:
        earlier = self.session.earlier
        return (earlier.sandbox if earlier else None) or self.fingerprint
