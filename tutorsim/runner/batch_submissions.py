"""The batches of a recording: sent, written down, waited for, and found again after a kill.

A file in the recording's folder says of each batch, in this order: that it is about to be sent,
which id it got, and that its replies are on tape. Each is on the disk before the next step. A
kill between the first two leaves a batch whose id nobody wrote down; it is looked for among those
that the endpoint lists as newer than the newest one before it, and known by the mark in its
entries' names. Only a batch that the endpoint takes in after that look would be paid for twice.
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeVar

import orjson

from tutorsim.errors import CallFailed, RecordingError, TutorsimError
from tutorsim.model.batch import BatchEndpoint, BatchResults, BatchTrouble, Entry
from tutorsim.model.batch_call_ids import CustomId
from tutorsim.replay.safe_files import AppendFile
from tutorsim.runner.outage import Attempts, Outage
from tutorsim.runner.recording_stop import Stop

__all__ = ["BATCHES_FILE", "Submission", "Submissions"]

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
    """In the name of each of its entries."""
    entries: int
    after: str | None
    """The newest batch before it; `None` where there was none."""
    batch: str | None = None
    """Its id; `None` until it is known."""


class Submissions:
    """Sends batches and reads their results; remembers those that are not yet on tape.

    Args:
        folder: The recording's folder.
        study_digest: What is recorded; batches of another study are left alone.
        stop: Ends every wait.
        outage: Waits while nothing answers.
        max_retries: Tries of a request after the first.
        note: Receives one sentence for the user.
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

        Raises:
            TutorsimError: If the endpoint does not take it in, or the recording stops.
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
        """Wait until a batch has ended and read its results; `None` where there is none of it.

        Raises:
            TutorsimError: If the endpoint does not answer, or the recording stops.
        """
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

    async def cancel(self, endpoint: BatchEndpoint) -> None:
        """End all open batches early; what they have answered stays to be read."""
        for batch_id in [one.batch for one in self.open if one.batch is not None]:
            await self._patiently(partial(endpoint.cancel, batch_id))

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
