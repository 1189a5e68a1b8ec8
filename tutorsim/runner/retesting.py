"""Retesting a recording: a job whose pieces are the prompts of each episode, asked again."""

from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

from tutorsim.model import CallKey
from tutorsim.records import Failure, Provenance, RetestRecord
from tutorsim.replay import FolderLock
from tutorsim.replay.retest_folder import RetestEntry, RetestManifest, write_retest_manifest
from tutorsim.runner.cost_cap import Budget
from tutorsim.runner.event_loop import run_in_loop
from tutorsim.runner.job import Job
from tutorsim.runner.job_recording import Taping
from tutorsim.runner.recording_queue import RecordingOptions, check_credentials
from tutorsim.runner.retest_cost_plan import Survey, failed_before
from tutorsim.runner.retest_log import RetestLog
from tutorsim.runner.retest_piece import retest_piece
from tutorsim.runner.retest_session import RetestSession, open_retest_session

__all__ = ["Retested", "retest"]


class Retested(NamedTuple):
    """What came of a command."""

    manifest: RetestManifest
    paid: int
    """Calls that this command paid for."""


def retest(
    found: Survey, *, log_dir: Path | None, budget: Budget, options: RecordingOptions
) -> Retested:
    """Ask what is left, and write the retest into its recording and beside a log.

    Args:
        found: What to ask.
        log_dir: The run folder of the recording's log; `None` writes none.
        budget: Counts what is spent and keeps the cap.
        options: How to record.

    Returns:
        The manifest, in which failed calls are marked; they do not raise.

    Raises:
        UsageError: If there are no credentials, a folder cannot be used, or it holds what the
            design does not ask.
        RecordingError: If what is in the folder is damaged or of another study.
        ReplayError: If a recorded call belongs to another request.
        BudgetReached: If the cap is reached; everything paid for is kept.
        Interrupted: After Ctrl-C; everything paid for is kept.
    """
    recording = found.recording
    budget.check_models(recording.loaded.model_names())
    run_in_loop(check_credentials())
    with ExitStack() as stack:
        folders = {recording.folder.resolve(), (log_dir or recording.folder).resolve()}
        for folder in sorted(folders):
            stack.enter_context(FolderLock(folder))
        session = open_retest_session(recording, found.design)
        job = _RetestJob(found, session, retry=options.retry_errors)
        taping = Taping(job, session, budget, options)
        manifest = run_in_loop(taping.run(job.log))
        if log_dir is not None:
            job.log.write(log_dir, manifest)
    return Retested(manifest, taping.paid)


class _RetestJob(Job[RetestRecord, RetestEntry, RetestManifest]):
    """A retest as a job; an earlier one with fewer repeats stands until this one is on tape."""

    stands_until_done = True

    def __init__(self, found: Survey, session: RetestSession, *, retry: bool) -> None:
        self.found = found
        self.study_digest = found.recording.manifest.study_digest
        self.pieces = [
            retest_piece(found.recording, found.design, name, sets)
            for name, sets in found.sets.items()
        ]
        self.session = session
        self.log = RetestLog()
        self._failed = failed_before(session.earlier, retry_errors=retry)

    def failed(self, piece_id: str, key: CallKey) -> Failure | None:
        return self._failed.get((piece_id, str(key)))

    def finish(self, entries: Sequence[RetestEntry], provenance: Provenance) -> RetestManifest:
        recorded = self.found.recording.manifest
        manifest = RetestManifest(
            study_name=recorded.study_name,
            study_digest=recorded.study_digest,
            recording_digest=recorded.recording_digest(),
            **vars(self.found.design),
            provenance=provenance,
            packages=self.session.packages,
            retest_sha256=self.log.sha256,
            episodes=tuple(entries),
        )
        write_retest_manifest(self.session.folder, manifest)
        return manifest
