"""Retesting a recording: its vote prompts asked again, on tapes of their own.

Every asking that no tape holds goes out, side by side. Cassettes are written when all askings are
done, so an earlier retest with fewer repeats stays whole while more are added.
"""

import asyncio
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from tutorsim.model import Call, CallKey, Model, Reply
from tutorsim.records import BallotRecord, Failure, Provenance, RetestRecord
from tutorsim.replay import FolderLock, Witness, read_cassette
from tutorsim.replay.provenance import relay_name
from tutorsim.replay.recording import Deck, Tape
from tutorsim.replay.retest import (
    RetestEntry,
    RetestManifest,
    retest_entry,
    write_retest_manifest,
)
from tutorsim.retest import askings, retest_record
from tutorsim.runner.budget import Budget
from tutorsim.runner.line import Line, RecordingOptions, check_credentials
from tutorsim.runner.retest_plan import Survey, failed_before
from tutorsim.runner.retest_playing import RetestLog, answered, prompts_in
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
    budget.check_models(recording.loaded.study)
    asyncio.run(check_credentials())
    with ExitStack() as stack:
        folders = {recording.folder.resolve(), (log_dir or recording.folder).resolve()}
        for folder in sorted(folders):
            stack.enter_context(FolderLock(folder))
        session = open_retest_session(recording, found.design)
        retester = _Retester(found, session, budget, options)
        manifest, log = asyncio.run(retester.run())
        if log_dir is not None:
            log.write(log_dir, manifest)
    return Retested(manifest, retester.paid)


@dataclass(frozen=True)
class _Asked:
    """What came of one episode, before its cassette is written."""

    record: RetestRecord
    order: tuple[CallKey, ...]
    """Keys on tape, in call order."""


class _Retester:
    """Asks the prompts of all episodes again."""

    def __init__(
        self, found: Survey, session: RetestSession, budget: Budget, options: RecordingOptions
    ) -> None:
        recording = found.recording
        self.found = found
        self.recording = recording
        self.session = session
        self.budget = budget
        self.options = options
        self.deck = Deck(
            session.folder,
            study_digest=recording.manifest.study_digest,
            packages=session.packages,
        )
        self.line = Line(
            self.deck,
            study_digest=recording.manifest.study_digest,
            budget=budget,
            options=options,
        )
        self.skip = failed_before(session.earlier, retry_errors=options.retry_errors)
        self.asked: dict[str, _Asked] = {}
        self.models: set[str] = set()
        """Those that the replies name."""
        self.paid = 0

    async def run(self) -> tuple[RetestManifest, RetestLog]:
        """Ask, then write cassettes and manifest."""
        async with self.line.open() as model:
            self._count_earlier(model)

            async def one(_: int, episode_id: str) -> None:
                self.asked[episode_id] = await self._one(episode_id, model)
                self._tell()

            await self.line.work(tuple(self.found.votes), one)
        return await self._finish(model)

    def _tell(self) -> None:
        self.options.on_progress(len(self.asked), len(self.found.votes))

    def _count_earlier(self, model: Model) -> None:
        """With a cap, count what the retest has cost so far."""
        if self.budget.max_usd is None:
            return
        for episode_id in self.found.votes:
            with self.deck.open(episode_id, model) as tape:
                for asked, reply in tape.replies():
                    self.budget.count_earlier(asked, reply)

    async def _one(self, episode_id: str, model: Model) -> _Asked:
        votes, repeats = self.found.votes[episode_id], self.found.design.repeats
        cassette = read_cassette(self.recording.folder, episode_id)
        prompts = prompts_in(self.recording, cassette, votes)
        with self.deck.open(episode_id, model) as tape:
            worlds = [(_World(self, tape), *one) for one in askings(prompts, repeats)]
            outcomes: tuple[BallotRecord | Failure, ...] = await self.line.round(
                tape, [answered(prompt, repeat, world) for world, prompt, repeat in worlds]
            )
            await tape.rest()
            self.paid += tape.paid
            keys = (key for world, *_ in worlds for key in world.asked if tape.holds(key))
            return _Asked(retest_record(episode_id, votes, repeats, outcomes), tuple(keys))

    async def _finish(self, model: Model) -> tuple[RetestManifest, RetestLog]:
        log, witness = RetestLog(), Witness(models=self.models)
        entries: list[RetestEntry] = []
        for episode_id in self.found.votes:
            asked = self.asked[episode_id]
            with self.deck.open(episode_id, model) as tape:
                cassette = await tape.finish(asked.order)
            witness.note(cassette)
            log.add(asked.record)
            entries.append(retest_entry(asked.record, cassette))
        manifest = self._manifest(log, witness, entries)
        write_retest_manifest(self.session.folder, manifest)
        self.line.forget()
        self.session.finish()
        return manifest, log

    def _manifest(
        self, log: RetestLog, witness: Witness, entries: list[RetestEntry]
    ) -> RetestManifest:
        recorded, design = self.recording.manifest, self.found.design
        return RetestManifest(
            study_name=recorded.study_name,
            study_digest=recorded.study_digest,
            recording_digest=recorded.recording_digest(),
            **vars(design),
            provenance=self._provenance(witness),
            packages=self.session.packages,
            retest_sha256=log.sha256,
            episodes=tuple(entries),
        )

    def _provenance(self, witness: Witness) -> Provenance:
        session = self.session
        before = session.earlier.provenance if session.earlier else None
        return witness.provenance(
            relay_name=self.options.relay_name or relay_name(before),
            recorded_from=session.started,
            recorded_to=session.today if self.paid else session.latest,
        )


class _World:
    """Answers the calls of one asking: from the tape, or for money."""

    def __init__(self, retester: _Retester, tape: Tape) -> None:
        self._retester = retester
        self._tape = tape
        self.asked: list[CallKey] = []

    async def __call__(self, call: Call) -> Reply:
        retester, tape = self._retester, self._tape
        self.asked.append(call.key)
        held = tape.holds(call.key)
        if held:
            reply = await tape.reply(tape.episode_id, call)
        else:
            failed = retester.skip.get((tape.episode_id, str(call.key)))
            reply = await retester.line.paid(tape, call, failed=failed)
        retester.budget.count(call.request.model, reply, new=not held)
        retester.models.add(reply.model)
        retester.options.on_progress(len(retester.asked), len(retester.found.votes))
        return reply
