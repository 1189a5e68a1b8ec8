"""How to record, and the queue from episodes to the endpoint: calls side by side, until a stop."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from dataclasses import dataclass
from typing import Any, TypeVar

import httpx2

from tutorsim.errors import BudgetReached, CallFailed, TutorsimError
from tutorsim.kernel.system_and_loaded_study import LoadedStudy
from tutorsim.model import Call, Model, Reply
from tutorsim.model.batch_api import BatchEndpoint
from tutorsim.model.sdk_model_and_reasons_of_failed_calls import HttpTransport, SdkModel
from tutorsim.records import Failure
from tutorsim.replay.durable_files_folder_lock_key_leaks import refuse_keys
from tutorsim.replay.recording_transport_tapes_and_journals import CassetteStore, Tape
from tutorsim.runner.early_stops_by_signal_cost_cap_or_outage import (
    Attempts,
    Budget,
    Gate,
    Outage,
    Stop,
    stop_on_interrupt,
    stopping,
)
from tutorsim.runner.pieces_of_work_person_heard_event_loop import Person, run_in_loop
from tutorsim.runner.submit_and_poll_batches_in_waves import (
    BatchModel,
    Prepaid,
    Submissions,
    WaveBarrier,
)

P = TypeVar("P")


@dataclass(frozen=True)
class RecordingOptions:
    """How to record."""

    max_connections: int = 16
    """Calls in flight at once; a batch has room for any number."""
    max_retries: int = 4
    """The client's own retries of one call."""
    timeout: float = 120.0
    """Seconds that one attempt at a call may take."""
    batch: bool = False
    """Send calls in waves through the batch endpoint; all episodes are then under way at once."""
    max_outage: float = 600.0
    """Seconds for which the endpoint may answer nothing; 0 waits for nothing."""
    retry_errors: bool = False
    """Take up again what failed."""
    anew: bool = False
    """Record once more what a whole log beside an empty folder is of."""
    relay_name: str | None = None
    """What answers behind a base URL of the user's own."""
    person: Person | None = None
    """Who takes part in the episodes; `None`: nobody."""
    on_warning: Callable[[str], None] = lambda _: None
    on_progress: Callable[[int, int], None] = lambda done, total: None
    """Receives episodes done and in all, after every reply and episode."""


async def check_credentials() -> list[str]:
    """Refuse before a folder is touched.

    The credentials come back, as nothing that is recorded may contain them.
    """
    async with SdkModel() as model:
        return model.secrets


def check_no_keys(loaded: LoadedStudy, options: RecordingOptions) -> None:
    """Refuse a study that contains a key, before a folder is touched or a call is made."""
    secrets = run_in_loop(check_credentials())
    tasks = {name: [task.published() for task in tasks] for name, tasks in loaded.tasks.items()}
    refuse_keys(
        {
            "The study": loaded.study_table(),
            "Its wordings": loaded.wordings(),
            "Its tasks": tasks,
            "--relay": options.relay_name or "",
        },
        secrets,
    )


class CallQueue:
    """Gets the replies that a folder's tapes do not hold."""

    def __init__(
        self, store: CassetteStore, *, study_digest: str, budget: Budget, options: RecordingOptions
    ) -> None:
        self._store = store
        self._budget = budget
        self._options = options
        self._stop = Stop()
        self._outage = Outage(options.max_outage, self._stop, options.on_warning)
        self._submissions = Submissions(
            store.folder,
            study_digest=study_digest,
            stop=self._stop,
            outage=self._outage,
            max_retries=options.max_retries,
            note=options.on_warning,
        )
        self._barrier = WaveBarrier()
        self._free: AbstractAsyncContextManager[object] = (
            nullcontext() if options.batch else asyncio.Semaphore(options.max_connections)
        )
        self._under_way = 0
        self._settled = asyncio.Event()
        """Set, and replaced, when a call under way has come to its end."""

    @asynccontextmanager
    async def open(self) -> AsyncIterator[Model]:
        """What answers the calls that are not on tape, until a signal stops it."""
        with stop_on_interrupt(self._stop, self._say_what_is_waited_for):
            async with self._model() as model:
                yield model

    async def work(self, pieces: Sequence[P], one: Callable[[int, P], Awaitable[None]]) -> None:
        """Do pieces of work side by side: as many as calls may be, in batches all at once.

        `one` does a piece, given its place and the piece. The first reason to stop is raised once
        the pieces under way have ended early.
        """
        waiting = iter(enumerate(pieces))

        async def worker() -> None:
            for index, piece in waiting:
                if self._stop.reason is not None:
                    break
                try:
                    await one(index, piece)
                except TutorsimError as error:
                    self._stop.because(error)
            self._barrier.moves(-1)

        bound = len(pieces) if self._options.batch else self._options.max_connections
        workers = min(bound, len(pieces))
        self._barrier.moves(workers)
        await _all_or_first_bug([worker() for _ in range(workers)])
        self._stop.check()

    async def round(self, tape: Tape, replies: Sequence[Coroutine[Any, Any, P]]) -> tuple[P, ...]:
        """Wait for what is done side by side, then make the tape durable.

        Each of the replies, at least one, gets a reply or those of rounds of its own. Of their
        errors the most serious is raised: a stop before a failed call.
        """
        barrier = self._barrier.round(len(replies))
        results = await asyncio.gather(
            *(barrier.call(reply) for reply in replies), return_exceptions=True
        )
        await tape.sync()
        errors = [result for result in results if isinstance(result, BaseException)]
        for error in sorted(errors, key=lambda error: isinstance(error, CallFailed)):
            raise error
        return tuple(result for result in results if not isinstance(result, BaseException))

    async def paid(self, tape: Tape, call: Call, *, failed: Failure | None) -> Reply:
        """Ask for a reply, once one of the calls in flight leaves room for it.

        `failed` says how the call failed before, if it is not to be made again. `CallFailed` if no
        reply can be had.
        """
        async with self._free:
            if failed is not None:
                raise CallFailed(failed.error, key=failed.key)
            attempts = Attempts()
            while True:
                attempts.answers_before = self._outage.answers
                try:
                    reply = await self._asked(tape, call)
                    self._outage.answered()
                    return reply
                except CallFailed as error:
                    if not await self._is_made_again(error, attempts):
                        raise CallFailed(error.what, why=error.why, key=str(call.key)) from error
                except TutorsimError as error:
                    self._stop.because(error)
                    raise

    async def _is_made_again(self, error: CallFailed, attempts: Attempts) -> bool:
        """Whether a call that failed is made again, because the endpoint was away."""
        try:
            return await self._outage.may_be_over(error, attempts)
        except TutorsimError as reason:
            self._stop.because(reason)
            raise

    async def unless_stopped(self, waiting: Coroutine[Any, Any, P]) -> P:
        """Wait for something that no call brings, such as a person; end as soon as a stop comes."""
        task = asyncio.ensure_future(waiting)
        stopped = asyncio.ensure_future(self._stop.wait())
        with self._barrier.waiting():
            await asyncio.wait((task, stopped), return_when=asyncio.FIRST_COMPLETED)
        stopped.cancel()
        if not task.done():
            task.cancel()
            self._stop.check()
        return await task

    def forget(self) -> None:
        """Forget the batches that were sent: everything is recorded."""
        self._submissions.remove()

    async def _asked(self, tape: Tape, call: Call) -> Reply:
        reservation = await self._reserved(call)
        self._under_way += 1
        try:
            return await tape.reply(tape.episode_id, call)
        finally:
            self._under_way -= 1
            self._budget.release(reservation)
            self._settled.set()
            self._settled = asyncio.Event()

    async def _reserved(self, call: Call) -> float:
        """Set aside what the call can cost, if need be once calls under way have settled."""
        while True:
            self._stop.check()
            try:
                return self._budget.reserve(call)
            except BudgetReached:
                if not self._under_way:
                    raise
                with self._barrier.waiting():
                    await self._settled.wait()

    @asynccontextmanager
    async def _model(self) -> AsyncIterator[Model]:
        options = self._options
        if options.batch:
            async with BatchModel(
                self._batch_endpoint(),
                self._store,
                self._submissions,
                self._barrier,
                self._stop,
                max_retries=options.max_retries,
                on_warning=options.on_warning,
            ) as model:
                yield model
            return
        carrier = self._store.transport(HttpTransport(options.max_connections))
        async with SdkModel(
            transport=self._gate(carrier),
            max_connections=options.max_connections,
            max_retries=options.max_retries,
            timeout=options.timeout,
            on_warning=options.on_warning,
        ) as live:
            yield await self._prepaid(live) if self._submissions.open else live

    def _gate(self, carrier: httpx2.AsyncBaseTransport) -> Gate:
        options = self._options
        return Gate(
            carrier,
            self._stop,
            options.timeout,
            max_retries=options.max_retries,
            longest_wait=options.max_outage,
            note=options.on_warning,
        )

    def _batch_endpoint(self) -> BatchEndpoint:
        options = self._options
        return BatchEndpoint(
            self._gate(self._store.guard(HttpTransport())),
            max_retries=options.max_retries,
            timeout=options.timeout,
        )

    async def _prepaid(self, live: Model) -> Model:
        """A model that answers first from what batches of an earlier command bring."""
        endpoint = self._batch_endpoint()
        try:
            found = await self._submissions.end_early(endpoint)
        finally:
            await endpoint.aclose()
        return Prepaid(live, self._store, found)

    def _say_what_is_waited_for(self) -> None:
        self._options.on_warning(stopping(None if self._options.batch else self._under_way))


async def _all_or_first_bug(workers: list[Coroutine[Any, Any, None]]) -> None:
    """Wait for all workers; an exception that none of them expects ends the others at once."""
    async with asyncio.TaskGroup() as group:
        for worker in workers:
            group.create_task(worker)
