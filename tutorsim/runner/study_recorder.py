"""Recording a study, or the study of a branch: a job whose pieces are episodes."""

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, closing
from pathlib import Path

from tutorsim.errors import UsageError
from tutorsim.mechanisms.flow import CodeResult, CodeRun
from tutorsim.model import CallKey
from tutorsim.model.failure_causes import OF_THE_MOMENT
from tutorsim.records import EpisodeLine, Failure, Provenance, RunRecord
from tutorsim.replay import EpisodeEntry, FolderLock, Manifest, VerdictStore, write_manifest
from tutorsim.replay.code_verdicts import program_digest
from tutorsim.replay.person_inputs import InputStore
from tutorsim.replay.text_or_compressed import check_regular
from tutorsim.runner.branching import Parent, ParentEpisode, check_parent
from tutorsim.runner.cost_cap import Budget
from tutorsim.runner.event_loop import run_in_loop
from tutorsim.runner.folder_checks import check_folders
from tutorsim.runner.job import Job, study_piece
from tutorsim.runner.job_recording import Taping
from tutorsim.runner.machine_facts import fingerprint_text, machine_facts
from tutorsim.runner.person import Hearing
from tutorsim.runner.recording_queue import RecordingOptions, check_no_keys
from tutorsim.runner.recording_session import (
    Session,
    as_begun,
    check_tasks,
    keep_study,
    open_session,
)
from tutorsim.runner.run_folder_writer import LogWriter, check_log_folder, run_record
from tutorsim.sandbox import Sandbox
from tutorsim.systems import LoadedStudy

__all__ = ["RecordingOptions", "record", "record_episode"]


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
        TaskFileError: If tests of a programming task prove nothing.
        RecordingError, LogError: If what is in a folder is damaged or of another study.
        ReplayError: If a recorded call belongs to another request.
        BudgetReached: If the cap is reached; everything paid for is kept.
        Interrupted: After Ctrl-C; everything paid for is kept.
        SandboxError: If a program cannot be judged.
    """
    check_parent(loaded, parent)
    _check_person(loaded, options)
    budget.check_models(loaded.model_names())
    check_no_keys(loaded, options)
    with ExitStack() as stack:
        for folder in sorted({cassette_dir.resolve(), log_dir.resolve()}):
            stack.enter_context(FolderLock(folder))
        check_regular(cassette_dir, links=True)
        loaded = as_begun(loaded, cassette_dir)
        check_log_folder(log_dir, loaded.digest())
        check_folders(cassette_dir, log_dir, anew=options.anew)
        check_tasks(loaded, cassette_dir, sandbox)
        session = open_session(loaded, cassette_dir, retry_errors=options.retry_errors)
        if parent is not None:
            parent.link_covered(cassette_dir)
        job = _StudyJob(loaded, session, sandbox, options, parent)
        with LogWriter(log_dir) as log, closing(job.inputs):
            job.log = log
            return run_in_loop(Taping(job, session, budget, options).run(log))


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

    Returns:
        The episode's log line.

    Raises:
        TutorsimError: As `record`.
    """
    job = _StudyJob(loaded, session, sandbox, options, None)
    wanted = [piece for piece in job.pieces if piece.id == episode_id]
    with closing(job.inputs):
        [line] = await Taping(job, session, budget, options).put_on_tape(wanted)
    return line


def _check_person(loaded: LoadedStudy, options: RecordingOptions) -> None:
    if loaded.with_person() and options.person is None:
        raise UsageError(
            f"The study {loaded.study.name!r} has a person in it, so it cannot run by itself.",
            why="Nobody would be there to be heard.",
            hint="Serve its lessons with `tutorsim chat`.",
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
        """Those of a finished recording stay, whatever would judge its programs now."""
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
