"""Recording through batches: calls wait until every episode waits, and go together.

Batches are sent, written down, waited for, and found again after a kill.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import Any, Final, TypeVar

import httpx2
import orjson

from tutorsim.errors import CallFailed, RecordingError, TutorsimError
from tutorsim.model import Call, Model, Reply, json_value
from tutorsim.model.batch_api import (
    LARGEST_BATCH,
    MOST_ENTRIES,
    BatchEndpoint,
    BatchResults,
    BatchTrouble,
    CustomId,
    Entry,
    EntryError,
    new_mark,
    request_text,
)
from tutorsim.model.sdk_model_and_reasons_of_failed_calls import (
    ToldOnce,
    another_model,
    call_failed,
    refusal,
    retirement,
)
from tutorsim.replay.durable_files_folder_lock_key_leaks import AppendFile
from tutorsim.replay.recording_transport_tapes_and_journals import CassetteStore
from tutorsim.runner.early_stops_by_signal_cost_cap_or_outage import Attempts, Outage, Stop

# --- Batch submissions ---------------------------------------------------------------------------

BATCHES_FILE: Final = ".batches.jsonl"
FIRST_POLL: Final = 0.1
LONGEST_POLL: Final = 60.0
GROWTH: Final = 1.5
FIRST_RETRY: Final = 0.5
LONGEST_RETRY: Final = 30.0

T = TypeVar("T")


@dataclass
class Submission:
    """A batch of this recording."""

    mark: str
    """Mark in the name of each of its entries."""
    entries: int
    after: str | None
    """The newest batch before it; `None` where there was none."""
    batch: str | None = None
    """Id of the batch; `None` until it is known."""


class Submissions:
    """Sends batches and reads their results; remembers those that are not yet on tape.

    Batches of another study are left alone; `max_retries` counts tries after the first.
    """

    def __init__(
        self,
        folder: Path,
        *,
        study_digest: str,
        stop: Stop,
        outage: Outage,
        max_retries: int,
        note: Callable[[str], None],
    ) -> None:
        self._file = AppendFile(folder / BATCHES_FILE)
        self._study_digest = study_digest
        self._stop = stop
        self._outage = outage
        self._max_retries = max_retries
        self._note = note
        self.open = self._read()
        """Sent, in order, and not on tape yet."""

    async def send(self, endpoint: BatchEndpoint, mark: str, entries: Sequence[Entry]) -> None:
        """Send a batch, and make sure that it is sent once.

        Raises if the endpoint does not take it in, or the recording stops.
        """
        after = await self._patiently(endpoint.newest)
        one = Submission(mark, len(entries), after)
        self._write(mark=mark, study=self._study_digest, entries=len(entries), after=after)
        self.open.append(one)

        async def sent() -> str:
            try:
                return (await endpoint.send(entries)).id
            except BatchTrouble:
                lost = await self._lost(endpoint, one)
                if lost is None:
                    raise
                return lost

        self._know(one, await self._patiently(sent))
        self._note(f"sent {len(entries):,} calls as batch {one.batch}.")

    async def results(self, endpoint: BatchEndpoint, one: Submission) -> BatchResults | None:
        """Wait until a batch has ended and read its results; `None` where there is none of it."""
        if one.batch is None:
            lost = await self._lost(endpoint, one)
            if lost is None:
                return None
            self._know(one, lost)
        assert one.batch is not None
        found = await self._ended(endpoint, one.batch)
        if found is None:
            self._note(f"batch {one.batch} is gone; its calls are made again.")
        return found

    async def end_early(self, endpoint: BatchEndpoint) -> list[BatchResults]:
        """End the batches of an earlier command, and read what they have answered."""
        self._note(f"an earlier command sent {len(self.open)} batches; they are ended now.")
        for batch_id in [one.batch for one in self.open if one.batch is not None]:
            await self._patiently(partial(endpoint.cancel, batch_id))
        found = [await self.results(endpoint, one) for one in self.open]
        return [results for results in found if results is not None]

    def on_tape(self, taken: Sequence[Submission]) -> None:
        """Forget batches whose replies are on tape, durably."""
        for one in taken:
            self._write(mark=one.mark, done=True)
            self.open.remove(one)

    def close(self) -> None:
        """Release the file."""
        self._file.close()

    def remove(self) -> None:
        """Delete the file: the recording is whole."""
        self._file.remove()

    async def _ended(self, endpoint: BatchEndpoint, batch_id: str) -> BatchResults | None:
        wait = FIRST_POLL
        while True:
            batch = await self._patiently(lambda: endpoint.find(batch_id))
            if batch is None:
                return None
            if batch.ended:
                return await self._patiently(lambda: endpoint.results(batch_id))
            await self._stop.pause(wait)
            wait = min(wait * GROWTH, LONGEST_POLL)

    async def _lost(self, endpoint: BatchEndpoint, one: Submission) -> str | None:
        """The id of a batch that was sent, and whose id never arrived; `None`: it was not."""
        known = {other.batch for other in self.open}
        for batch in await self._patiently(lambda: endpoint.since(one.after)):
            if batch.entries == one.entries and batch.id not in known:
                self._note(f"batch {batch.id} may be one whose id was lost; its results will tell.")
                found = await self._ended(endpoint, batch.id)
                ids = map(CustomId.parse, found.by_id if found else ())
                if any(found_id and found_id.mark == one.mark for found_id in ids):
                    return batch.id
        return None

    async def _patiently(self, ask: Callable[[], Awaitable[T]]) -> T:
        """Ask until there is an answer: a few times, and for as long as an outage may last."""
        attempts = Attempts()
        while True:
            attempts.answers_before = self._outage.answers
            try:
                found = await self._tried(ask)
            except BatchTrouble as trouble:
                failed = CallFailed(
                    f"The batch endpoint does not answer ({trouble}).", away=trouble.away
                )
                if not await self._outage.may_be_over(failed, attempts):
                    raise TutorsimError(
                        "The batch endpoint does not answer.",
                        why=f"{trouble}, {self._max_retries + 1} times.",
                        hint="The same command goes on from here; batches that were sent are kept.",
                    ) from trouble
            else:
                self._outage.answered()
                return found

    async def _tried(self, ask: Callable[[], Awaitable[T]]) -> T:
        wait = FIRST_RETRY
        for _ in range(self._max_retries):
            self._stop.check()
            try:
                return await ask()
            except BatchTrouble:
                await self._stop.pause(wait)
                wait = min(2 * wait, LONGEST_RETRY)
        self._stop.check()
        return await ask()

    def _know(self, one: Submission, batch_id: str) -> None:
        one.batch = batch_id
        self._write(mark=one.mark, batch=batch_id)

    def _write(self, **line: Any) -> None:
        self._file.append(orjson.dumps(line))
        self._file.sync()

    def _read(self) -> list[Submission]:
        found: dict[str, Submission] = {}
        try:
            for line in map(orjson.loads, self._file.read()):
                mark = str(line["mark"])
                if "entries" in line and line["study"] == self._study_digest:
                    found[mark] = Submission(mark, int(line["entries"]), line["after"])
                elif "batch" in line and mark in found:
                    found[mark].batch = str(line["batch"])
                elif "done" in line:
                    found.pop(mark, None)
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise RecordingError(
                f"{self._file.path} cannot be read.",
                why=str(error),
                hint="Remove this file to go on; the calls of its batches are then made again.",
            ) from error
        return [*found.values()]


# --- Wave barrier --------------------------------------------------------------------------------


class WaveBarrier:
    """Counts the episodes and calls that are under way, so that a wave goes when all of them wait.

    with barrier.waiting():    # whoever waits for something else does not hold the wave up
        ...
    await barrier.complete()   # everybody waits: send the wave
    """

    def __init__(self) -> None:
        self._moving = 0
        self._complete = asyncio.Event()
        self._complete.set()

    def moves(self, number: int) -> None:
        """Count so many more as under way; fewer, if the number is negative."""
        self._moving += number
        if self._moving:
            self._complete.clear()
        else:
            self._complete.set()

    async def complete(self) -> None:
        """Return when nothing is under way."""
        await self._complete.wait()

    def reset(self) -> None:
        """Reset after an empty wave: `complete` waits for the next one."""
        self._complete.clear()

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """Count the caller as waiting while the block runs."""
        self.moves(-1)
        try:
            yield
        finally:
            self.moves(1)

    def round(self, calls: int) -> "RoundBarrier":
        """Count the calls of an episode's round, at least one, in the episode's place."""
        self.moves(calls - 1)
        return RoundBarrier(self, calls)


class RoundBarrier:
    """The calls of one round. After the last reply their episode counts in their place again."""

    def __init__(self, barrier: WaveBarrier, calls: int) -> None:
        self._barrier = barrier
        self._left = calls

    async def call(self, asked: Awaitable[T]) -> T:
        """Make one call of the round."""
        try:
            return await asked
        finally:
            self._left -= 1
            if self._left:
                self._barrier.moves(-1)


# --- Batching ------------------------------------------------------------------------------------

SIDE_BY_SIDE: Final = 64
"""Episodes whose files are open at once while replies are put on tape."""
FRAME: Final = 128
"""Bytes of an entry besides its request, at most."""
TROUBLES: Final = {
    "expired": "The batch ended before it reached the call",
    "canceled": "The batch was cancelled before it reached the call",
}

Slot = tuple[str, str]
"""Digests of a call's name and of its request."""


@dataclass
class _Waiting:
    name: str
    """`<episode>/<key>`."""
    call: Call
    text: str
    """The request's body."""
    answer: asyncio.Future[Reply]
    mark: str = ""
    """Mark of the batch that it was sent in last."""
    tries: int = 0
    trouble: str = ""
    """What was in the way the last time."""


class BatchModel:
    """Answers calls in waves. A context manager; a `Model` for tapes.

    It closes the endpoint with itself; a call goes with `max_retries` waves after its first.
    """

    def __init__(
        self,
        endpoint: BatchEndpoint,
        store: CassetteStore,
        submissions: Submissions,
        barrier: WaveBarrier,
        stop: Stop,
        *,
        max_retries: int,
        on_warning: Callable[[str], None],
    ) -> None:
        self._endpoint = endpoint
        self._store = store
        self._submissions = submissions
        self._barrier = barrier
        self._stop = stop
        self._max_retries = max_retries
        self._tell = ToldOnce(on_warning)
        self._queue: dict[Slot, _Waiting] = {}
        self._taken: list[Submission] = []
        """Batches whose replies are with the episodes, and on the disk before the next wave."""

    async def __aenter__(self) -> "BatchModel":
        self._conductor = asyncio.create_task(self._conduct())
        return self

    async def __aexit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        self._conductor.cancel()
        await asyncio.gather(self._conductor, return_exceptions=True)
        if error is None:
            self._submissions.on_tape(self._taken)
        await self._endpoint.aclose()

    async def reply(self, episode_id: str, call: Call) -> Reply:
        self._stop.check()
        self._tell(retirement(call.request.model))
        name, text = f"{episode_id}/{call.key}", request_text(call.request)
        waiting = _Waiting(name, call, text, asyncio.get_running_loop().create_future())
        self._queue[_slot(name, text)] = waiting
        self._barrier.moves(-1)
        return await waiting.answer

    async def _conduct(self) -> None:
        """Send wave after wave, until the block is left or the recording stops."""
        try:
            while True:
                await self._barrier.complete()
                self._stop.check()
                if self._queue:
                    await self._wave()
                else:
                    self._barrier.reset()
        except TutorsimError as error:
            self._stop.because(error)
            self._give_up(error)
        except Exception as error:
            self._give_up(error)
            raise

    async def _wave(self) -> None:
        self._submissions.on_tape(self._taken)
        self._taken = []
        if not self._submissions.open:
            await self._send()
        for one in [*self._submissions.open]:
            results = await self._submissions.results(self._endpoint, one)
            await self._take(one, results)
            self._taken.append(one)

    async def _send(self) -> None:
        for part in _parts(self._queue.values()):
            mark = new_mark()
            for waiting in part:
                waiting.mark = mark
                waiting.tries += 1
            entries = [Entry(str(CustomId.of(w.name, w.text, mark)), w.text) for w in part]
            await self._submissions.send(self._endpoint, mark, entries)

    async def _take(self, one: Submission, results: BatchResults | None) -> None:
        """Hand results to the calls that wait for them, a few episodes at a time."""
        by_slot = _by_slot(results)
        reached = [
            waiting
            for slot, waiting in self._queue.items()
            if slot in by_slot or waiting.mark == one.mark
        ]
        reached.sort(key=lambda waiting: waiting.name)
        for group in _by_episodes(reached):
            outcomes = [
                self._outcome(waiting, by_slot.get(_slot(waiting.name, waiting.text)), results)
                for waiting in group
            ]
            episodes = {waiting.name.partition("/")[0]: waiting.name for waiting in group}
            tapes = [self._store.tape_for(name)[0] for name in episodes.values()]
            await asyncio.gather(*(tape.rest() for tape in tapes))
            for waiting, outcome in zip(group, outcomes, strict=True):
                self._settle(waiting, outcome)

    def _outcome(
        self, waiting: _Waiting, result: Any, results: BatchResults | None
    ) -> Reply | TutorsimError | None:
        """What became of a call; `None`: it goes with the next wave."""
        waiting.mark = ""
        kind = result.get("type") if result is not None else None
        if kind == "succeeded" and results is not None:
            reply = _recorded(self._store, results, waiting.name, waiting.text, result)
            if reply is not None:
                self._tell(another_model(waiting.call.request.model, reply.model))
                return reply
        if kind == "errored":
            error = EntryError.of(result, results.secrets if results else ())
            refused = refusal(error.status, error.said, waiting.call.request.model)
            waiting.trouble = f"HTTP {error.status}{error.said}"
            if refused is not None or error.lasting:
                return refused or call_failed(waiting.call, waiting.trouble)
        else:
            waiting.trouble = TROUBLES.get(str(kind), "The batch brought no reply to the call")
        if waiting.tries <= self._max_retries:
            return None
        return call_failed(waiting.call, waiting.trouble)

    def _settle(self, waiting: _Waiting, outcome: Reply | BaseException | None) -> None:
        if outcome is None:
            return
        del self._queue[_slot(waiting.name, waiting.text)]
        self._barrier.moves(1)
        if waiting.answer.done():
            return  # nobody waits any more: a second Ctrl-C
        if isinstance(outcome, Reply):
            waiting.answer.set_result(outcome)
        else:
            waiting.answer.set_exception(outcome)

    def _give_up(self, error: BaseException) -> None:
        for waiting in [*self._queue.values()]:
            self._settle(waiting, error)


class Prepaid:
    """Answers from batches that an earlier command sent, and otherwise from another model."""

    def __init__(self, live: Model, store: CassetteStore, batches: Sequence[BatchResults]) -> None:
        self._live = live
        self._store = store
        self._found = {
            slot: (results, result)
            for results in batches
            for slot, result in _by_slot(results).items()
            if result.get("type") == "succeeded"
        }

    async def reply(self, episode_id: str, call: Call) -> Reply:
        name, text = f"{episode_id}/{call.key}", request_text(call.request)
        held = self._found.pop(_slot(name, text), None)
        reply = _recorded(self._store, held[0], name, text, held[1]) if held else None
        return reply or await self._live.reply(episode_id, call)


def _recorded(
    store: CassetteStore, results: BatchResults, name: str, text: str, result: Any
) -> Reply | None:
    """Put the reply in a result on its tape; `None` where it is no message."""
    request, response = results.exchange(name, text, result.get("message"))
    try:
        on_tape = store.record(request, response, response.content)
    except httpx2.RemoteProtocolError:
        return None
    return Reply.from_body(json_value(on_tape.content))


def _slot(name: str, text: str) -> Slot:
    found = CustomId.of(name, text, "")
    return found.call, found.request


def _by_slot(results: BatchResults | None) -> dict[Slot, Any]:
    by_id = results.by_id if results else {}
    named = ((CustomId.parse(text), result) for text, result in by_id.items())
    return {(found.call, found.request): result for found, result in named if found}


def _parts(queue: Iterable[_Waiting]) -> Iterator[list[_Waiting]]:
    """Calls in order of their names, in parts that the endpoint takes."""
    part: list[_Waiting] = []
    size = FRAME
    for waiting in sorted(queue, key=lambda waiting: waiting.name):
        more = len(waiting.text.encode()) + FRAME
        if part and (len(part) == MOST_ENTRIES or size + more > LARGEST_BATCH):
            yield part
            part, size = [], FRAME
        part.append(waiting)
        size += more
    if part:
        yield part


def _by_episodes(calls: Iterable[_Waiting]) -> Iterator[list[_Waiting]]:
    """Sorted calls in groups of so many whole episodes."""
    group: list[_Waiting] = []
    episodes = 0
    for _, of_one in groupby(calls, key=lambda waiting: waiting.name.partition("/")[0]):
        if episodes == SIDE_BY_SIDE:
            yield group
            group, episodes = [], 0
        group += of_one
        episodes += 1
    if group:
        yield group
