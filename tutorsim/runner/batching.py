"""Recording through batches: calls wait until every episode does, and go together.

A wave is everything that is waited for when no episode can move on without a reply: one batch, or
as many as the endpoint's limits make of it. Replies are put on the same tapes, in the same form,
as those of direct calls. What expired or failed for the moment goes with the next wave.
"""

import asyncio
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from types import TracebackType
from typing import Any, Final

import httpx2

from tutorsim.errors import TutorsimError
from tutorsim.model import Call, Model, Reply
from tutorsim.model.batch import (
    LARGEST_BATCH,
    MOST_ENTRIES,
    BatchEndpoint,
    BatchResults,
    Entry,
    EntryError,
    request_text,
)
from tutorsim.model.batch_call_ids import CustomId, new_mark
from tutorsim.model.json_bodies import json_value
from tutorsim.model.sdk_model import call_failed, refusal, retirement
from tutorsim.replay.episode_recording import Deck
from tutorsim.runner.batch_submissions import Submission, Submissions
from tutorsim.runner.recording_stop import Stop
from tutorsim.runner.wave_barrier import Muster

__all__ = ["BatchModel", "Prepaid"]

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
    """Of the batch that it was sent in last."""
    tries: int = 0
    trouble: str = ""
    """What was in the way the last time."""


class BatchModel:
    """Answers calls in waves. A context manager; a `Model` for tapes.

    Args:
        endpoint: Closed with the model.
        deck: Where replies are recorded.
        submissions: Sends the batches.
        muster: Tells when everyone waits.
        stop: Ends it.
        max_retries: Waves that a call may go with after its first.
        on_warning: Receives one sentence for each retiring model that is called.
    """

    def __init__(
        self,
        endpoint: BatchEndpoint,
        deck: Deck,
        submissions: Submissions,
        muster: Muster,
        stop: Stop,
        *,
        max_retries: int,
        on_warning: Callable[[str], None],
    ) -> None:
        self._endpoint = endpoint
        self._deck = deck
        self._submissions = submissions
        self._muster = muster
        self._stop = stop
        self._max_retries = max_retries
        self._on_warning = on_warning
        self._warned: set[str] = set()
        self._queue: dict[Slot, _Waiting] = {}
        self._taken: list[Submission] = []
        """Their replies are with the episodes, and on the disk before the next wave."""

    async def __aenter__(self) -> "BatchModel":
        self._conductor = asyncio.create_task(self._conduct())
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._conductor.cancel()
        await asyncio.gather(self._conductor, return_exceptions=True)
        if error is None:
            self._submissions.on_tape(self._taken)
        await self._endpoint.aclose()

    async def reply(self, episode_id: str, call: Call) -> Reply:
        self._stop.check()
        self._warn_once(call.request.model)
        name, text = f"{episode_id}/{call.key}", request_text(call.request)
        waiting = _Waiting(name, call, text, asyncio.get_running_loop().create_future())
        self._queue[_slot(name, text)] = waiting
        self._muster.moves(-1)
        return await waiting.answer

    def _warn_once(self, model: str) -> None:
        said = retirement(model)
        if said is not None and model not in self._warned:
            self._warned.add(model)
            self._on_warning(said)

    async def _conduct(self) -> None:
        """Send wave after wave, until the block is left or the recording stops."""
        try:
            while True:
                await self._muster.complete()
                self._stop.check()
                if self._queue:
                    await self._wave()
                else:
                    self._muster.heard()
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
            tapes = [self._deck.tape_for(name)[0] for name in episodes.values()]
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
            reply = _recorded(self._deck, results, waiting.name, waiting.text, result)
            if reply is not None:
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
        self._muster.moves(1)
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
    """Answers from batches that an earlier command sent, and otherwise from another model.

    Args:
        live: Asked for what the batches did not bring.
        deck: Where replies are recorded.
        batches: Results of the earlier batches.
    """

    def __init__(self, live: Model, deck: Deck, batches: Sequence[BatchResults]) -> None:
        self._live = live
        self._deck = deck
        self._found = {
            slot: (results, result)
            for results in batches
            for slot, result in _by_slot(results).items()
            if result.get("type") == "succeeded"
        }

    async def reply(self, episode_id: str, call: Call) -> Reply:
        name, text = f"{episode_id}/{call.key}", request_text(call.request)
        held = self._found.pop(_slot(name, text), None)
        reply = _recorded(self._deck, held[0], name, text, held[1]) if held else None
        return reply or await self._live.reply(episode_id, call)


def _recorded(deck: Deck, results: BatchResults, name: str, text: str, result: Any) -> Reply | None:
    """Put the reply in a result on its tape; `None` where it is no message.

    Raises:
        RecordingRefused: If it contains the credential.
        FolderError: If it cannot be written.
    """
    request, response = results.exchange(name, text, result.get("message"))
    try:
        on_tape = deck.record(request, response, response.content)
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
