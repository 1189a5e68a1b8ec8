"""Putting a job on tape: many pieces side by side, each on its own.

The same command given again goes on where the last one stopped: what is on tape is not asked
again, and the end is the same as if nothing had happened. Calls go one by one, or in waves
through the batch endpoint; either may go on with what the other began.
"""

import time
from collections.abc import Coroutine, Sequence
from functools import partial
from typing import Any, Generic, NamedTuple, TypeVar

from tutorsim.errors import CallFailed
from tutorsim.flow_drivers import drive_async
from tutorsim.mechanisms.call_log import failure_of
from tutorsim.mechanisms.flow import CodeRun, Effect, Listen, Sent
from tutorsim.model import Call, CallKey, Model, Reply
from tutorsim.records import Failure, to_line
from tutorsim.replay import Cassette, Witness
from tutorsim.replay.cassette_file import RecordedBy
from tutorsim.replay.episode_recording import Deck, Tape
from tutorsim.replay.manifest import Digests
from tutorsim.replay.provenance import relay_name
from tutorsim.replay.recorded_call import Interaction
from tutorsim.runner.branching import ParentEpisode
from tutorsim.runner.cost_cap import Budget
from tutorsim.runner.job import Job, Lines, Piece
from tutorsim.runner.recording_queue import Line, RecordingOptions
from tutorsim.runner.recording_session import BaseSession

__all__ = ["Taping"]

R = TypeVar("R")
E = TypeVar("E", bound=Digests)
F = TypeVar("F")


class _Taped(NamedTuple):
    """What came of a piece."""

    record: Any
    order: list[CallKey]
    """Keys on tape, in call order."""
    cassette: Cassette | None
    """`None` until it may be written."""
    seconds: float


class Taping(Generic[R, E, F]):
    """Drives the pieces of one command.

    Args:
        job: What is recorded.
        session: Its folder, and what stays the same over all commands.
        budget: Counts what is spent and keeps the cap.
        options: How to record.
    """

    def __init__(
        self,
        job: Job[R, E, F],
        session: BaseSession,
        budget: Budget,
        options: RecordingOptions,
    ) -> None:
        self.job = job
        self.session = session
        self.budget = budget
        self.options = options
        self.deck = Deck(
            session.folder,
            study_digest=job.study_digest,
            packages=session.packages,
            kept_from=job.kept_from,
            recorded=self._recorded_by,
        )
        self.line = Line(self.deck, study_digest=job.study_digest, budget=budget, options=options)
        self.witness = Witness()
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
        async with self.line.open() as model:
            self._count_earlier(model)
            entries = await self._all(model, log)
        provenance = self.session.provenance(
            self.witness, relay=self.options.relay_name, paid=bool(self.paid)
        )
        finished = self.job.finish(entries, provenance)
        self.line.forget()
        self.session.finish()
        return finished

    async def put_on_tape(self, pieces: Sequence[Piece[R, E]]) -> list[str]:
        """Record pieces without manifest and log; their log lines, in the order given."""
        lines: dict[int, str] = {}
        async with self.line.open() as model:

            async def one(index: int, piece: Piece[R, E]) -> None:
                lines[index], _ = self._described(piece, await self._one(piece, model))
                self._tell()

            await self.line.work(pieces, one)
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
            with self.deck.open(piece.id, model) as tape:
                prior = self.job.prior(piece.id)
                for asked, reply in tape.replies(paid=partial(_was_paid, prior)):
                    self.budget.count_earlier(asked, reply)

    async def _all(self, model: Model, log: Lines) -> list[E]:
        pieces = self.job.pieces
        unwritten: dict[int, _Taped] = {}
        written: dict[int, _Taped] = {}
        entries: list[E] = []

        def log_ready() -> None:
            """Log the pieces whose turn has come, in order."""
            while (ready := written.pop(len(entries), None)) is not None:
                line, entry = self._described(pieces[len(entries)], ready)
                log.add(line, entry.episode_id, ready.seconds)
                entries.append(entry)

        async def one(index: int, piece: Piece[R, E]) -> None:
            taped = await self._one(piece, model)
            (unwritten if taped.cassette is None else written)[index] = taped
            self._tell()
            log_ready()

        await self.line.work(pieces, one)
        for index, taped in sorted(unwritten.items(), key=lambda pair: pair[0]):
            with self.deck.open(pieces[index].id, model) as tape:
                cassette = await tape.finish(taped.order)
            written[index] = taped._replace(cassette=cassette)
            log_ready()
        return entries

    async def _one(self, piece: Piece[R, E], model: Model) -> _Taped:
        """Put a piece on tape, and write its cassette where it may be written."""
        started, cassette = time.perf_counter(), None
        with self.deck.open(piece.id, model) as tape:
            world = _World(self, piece.id, tape)
            record = await drive_async(piece.flow(), world)
            order = piece.order([key for key in world.asked if tape.holds(key)])
            if self.job.stands_until_done:
                await tape.rest()
            else:
                cassette = await tape.finish(order)
            self.paid += tape.paid
        return _Taped(record, order, cassette, time.perf_counter() - started)

    def _described(self, piece: Piece[R, E], taped: _Taped) -> tuple[str, E]:
        """The log line and the entry of a piece whose cassette is written."""
        assert taped.cassette is not None
        self.witness.note(taped.cassette)
        line = to_line(taped.record)
        return line, piece.entry(taped.record, line, taped.cassette)


def _was_paid(prior: ParentEpisode | None, one: Interaction) -> bool:
    """Whether a reply on a tape was paid for by this job, and not by its parent."""
    return prior is None or not prior.gave(one)


class _World:
    """Performs the effects of one piece: calls on its tape, programs in the sandbox."""

    def __init__(self, taping: Taping[Any, Any, Any], piece_id: str, tape: Tape) -> None:
        self.taping = taping
        self.tape = tape
        self.prior = taping.job.prior(piece_id)
        self.hearing = taping.job.hearing(piece_id)
        self.asked: list[CallKey] = []

    async def __call__(self, effect: Effect) -> Sent:
        if isinstance(effect, CodeRun):
            return await self.taping.job.judge(effect)
        if isinstance(effect, Listen):
            assert self.hearing is not None
            return await self.taping.line.unless_stopped(self.hearing.hear(effect))
        self.asked += [call.key for call in effect.calls]
        replies: list[Coroutine[Any, Any, Reply | Failure]] = [
            self._reply(call, fresh=effect.fresh) for call in effect.calls
        ]
        if effect.each:
            replies = [_or_failure(reply) for reply in replies]
        self._asking(effect.calls, effect.shown)
        try:
            return await self.taping.line.round(self.tape, replies)
        finally:
            self._asking(())

    def _asking(self, calls: Sequence[Call], shown: object = None) -> None:
        if self.hearing is not None:
            self.hearing.asking(calls, shown)

    async def _reply(self, call: Call, *, fresh: bool) -> Reply:
        taping, prior, tape = self.taping, self.prior, self.tape
        held = tape.holds(call.key)
        reused = prior is not None and prior.answers(call, tape, fresh=fresh)
        if held or reused:
            reply = await tape.reply(tape.episode_id, call)
        else:
            failed = taping.job.failed(tape.episode_id, call.key)
            reply = await taping.line.paid(tape, call, failed=failed)
        if reused:
            taping.budget.reused += 1
        else:
            taping.budget.count(call.request.model, reply, new=not held)
        taping.witness.models.add(reply.model)
        taping.tell()
        return reply


async def _or_failure(reply: Coroutine[Any, Any, Reply | Failure]) -> Reply | Failure:
    try:
        return await reply
    except CallFailed as error:
        return failure_of(error)
