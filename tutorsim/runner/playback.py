"""Playing one piece of a recorded job, answered from its cassette, its verdicts and its inputs.

`recorded_prefix` plays as far as the recording reaches, before anything is sent.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

from tutorsim.errors import CallFailed, MissingCallError, TutorsimError
from tutorsim.kernel.flow import (
    CodeResult,
    CodeRun,
    Effect,
    Flow,
    Listen,
    PersonInput,
    Round,
    Sent,
    drive,
    drive_async,
)
from tutorsim.model import Call, Reply
from tutorsim.records import Failure, to_line
from tutorsim.replay import (
    AnsweredBy,
    Cassette,
    Manifest,
    Playback,
    Reader,
    VerdictStore,
    check_all_used,
    check_cassette,
)
from tutorsim.replay.manifest import Digests, RetestManifest
from tutorsim.replay.verdicts_and_inputs import InputStore
from tutorsim.runner.job import Piece
from tutorsim.runner.open_recording import check_origin

if TYPE_CHECKING:
    from tutorsim.sandbox import Sandbox


# --- Piece playback ------------------------------------------------------------------------------

R = TypeVar("R")


@dataclass(frozen=True)
class VerdictChange:
    """A program that the sandbox now judges otherwise than recorded."""

    episode_id: str
    turn: int
    recorded: str
    now: str


@dataclass(frozen=True)
class Replayed:
    """What came of one piece."""

    episode_id: str
    line: str | None
    """The log line; `None` when the replay failed."""
    error: TutorsimError | None
    seconds: float
    changes: tuple[VerdictChange, ...] = ()
    """Verdicts that were run again and differ."""
    answered_by: AnsweredBy | None = None
    """What answered; `None` when the replay failed."""
    entry: Digests | None = None
    """What the manifest should say of it; `None` where nobody asked or the replay failed."""


@dataclass(frozen=True)
class Source:
    """Where the effects of a job's pieces are answered from."""

    head: Manifest | RetestManifest
    """What is said of its cassettes."""
    reader: Reader
    parent_study: str | None = None
    """Study digest of cassettes that stand there as another recording wrote them."""
    verdicts: VerdictStore | None = None
    """`None` for a job without programs."""
    inputs: InputStore | None = None
    """`None` for a job that hears nobody."""
    sandbox: "Sandbox | None" = None
    """Runs recorded programs again, for comparison."""


class Played(NamedTuple, Generic[R]):
    """A piece that was played to its end."""

    record: R
    changes: tuple[VerdictChange, ...]
    """Verdicts that differ when run again."""
    cassette: Cassette
    answered_by: AnsweredBy
    """What answered."""


async def play(
    source: Source, piece: Piece[Any, Any], entry: Digests, *, with_entry: bool
) -> Replayed:
    """Play a piece and write its log line, or say why it cannot be played.

    With a reader that answers at once, this never waits. `with_entry` computes what the manifest
    should say, too.
    """
    started = time.perf_counter()
    try:
        done = await played(source, piece, entry)
    except TutorsimError as error:
        return Replayed(piece.id, None, error, time.perf_counter() - started)
    line = to_line(done.record)
    seconds = time.perf_counter() - started
    computed = piece.entry(done.record, line, done.cassette) if with_entry else None
    return Replayed(piece.id, line, None, seconds, done.changes, done.answered_by, computed)


async def played(source: Source, piece: Piece[R, Any], entry: Digests) -> Played[R]:
    """Play a piece.

    Calls that are missing, changed or never made raise, and so does an edited cassette.
    """
    playback = source.reader.open(piece.id)
    try:
        edited = check_cassette(entry, playback.cassette)
        if edited is None:
            check_origin(source.head, playback.cassette, parent_study=source.parent_study)
        world = _World(source, piece.id, playback, entry)
        record = await drive_async(piece.flow(), world)
        check_all_used(playback)
    finally:
        source.reader.close(playback)
    if edited is not None:
        raise edited
    answered_by = AnsweredBy(models={reply.model for reply in world.replies})
    answered_by.note(playback.cassette)
    return Played(record, tuple(world.changes), playback.cassette, answered_by)


@dataclass
class _World:
    """Performs the effects of one piece from its recording."""

    source: Source
    piece_id: str
    playback: Playback
    entry: Digests
    changes: list[VerdictChange] = field(default_factory=list)
    listened: int = 0
    replies: list[Reply] = field(default_factory=list)

    async def __call__(self, effect: Effect) -> Sent:
        if not isinstance(effect, Round):
            return self._judged(effect) if isinstance(effect, CodeRun) else self._heard(effect)
        failures = self._failures(effect.calls) if self.entry.has_failures else {}
        reply, piece_id = self.playback.reply, self.piece_id
        calls = effect.calls
        if failures:
            calls = tuple(call for call in calls if str(call.key) not in failures)
        answered = [await reply(piece_id, call) for call in calls]
        self.replies += answered
        if not failures:
            return tuple(answered)
        if not effect.each:
            first = next(iter(failures.values()))
            raise CallFailed(first.error, key=first.key)
        coming = iter(answered)
        return tuple(failures.get(str(call.key)) or next(coming) for call in effect.calls)

    def _failures(self, calls: Sequence[Call]) -> dict[str, Failure]:
        """The calls that failed when they were recorded, with how they did."""
        held = self.playback.cassette.interactions
        failed = {
            key: self.entry.failed(key) for call in calls if (key := str(call.key)) not in held
        }
        return {key: failure for key, failure in failed.items() if failure is not None}

    def _heard(self, listen: Listen) -> PersonInput:
        self.listened += 1
        assert self.source.inputs is not None
        heard = self.source.inputs.find(self.piece_id, self.listened, listen)
        if heard is None:
            raise MissingCallError(
                f"{self.piece_id}: input {self.listened} of the person is not in the recording.",
                hint="Restore inputs.jsonl from version control, or record the lesson again.",
            )
        return heard

    def _judged(self, run: CodeRun) -> CodeResult:
        assert self.source.verdicts is not None
        recorded = self.source.verdicts.find(run)
        if recorded is None:
            raise MissingCallError(
                f"{self.piece_id}: the verdict on the program of turn {run.turn} is not in "
                "the recording.",
                hint="Replay with the tasks of the recording, or record the study again.",
            )
        if self.source.sandbox is not None:
            now = self.source.sandbox.judge(run)
            if (now.code, _said(now)) != (recorded.code, _said(recorded)):
                self.changes.append(
                    VerdictChange(self.piece_id, run.turn, _said(recorded), _said(now))
                )
        return recorded


def _said(result: CodeResult) -> str:
    verdict = result.verdict
    return f"{verdict.outcome} ({verdict.reason})" if verdict.reason else verdict.outcome


# --- Recorded prefix -----------------------------------------------------------------------------


class RecordedPrefix(NamedTuple):
    """How far a recording answers a flow."""

    answered: int
    """Calls that are recorded."""
    missing: tuple[Call, ...]
    """Those of the first round that is not recorded whole; empty where the flow came to its end."""


class _NotThere(Exception):
    """Some calls of a round are not recorded."""

    def __init__(self, calls: Sequence[Call]) -> None:
        super().__init__(str(calls[0].key))
        self.calls = tuple(calls)


def _no_programs(run: CodeRun) -> CodeResult:
    raise AssertionError(f"a flow without programs has one on turn {run.turn}")


def recorded_prefix(
    flow: Flow[Any],
    recorded: Callable[[Call, bool], Reply | None],
    *,
    judged: Callable[[CodeRun], CodeResult] = _no_programs,
) -> RecordedPrefix:
    """Drive a flow until the first round that is not recorded whole.

    `recorded` goes from a call, and whether its path has left the recording, to the reply; `None`
    if it is not recorded. The flow hears nobody.
    """
    answered = 0

    def world(effect: Effect) -> Sent:
        nonlocal answered
        if isinstance(effect, CodeRun):
            return judged(effect)
        assert isinstance(effect, Round)
        replies = [recorded(call, effect.fresh) for call in effect.calls]
        there = tuple(reply for reply in replies if reply is not None)
        answered += len(there)
        if len(there) < len(replies):
            pairs = zip(effect.calls, replies, strict=True)
            raise _NotThere([call for call, reply in pairs if reply is None])
        return there

    try:
        drive(flow, world)
    except _NotThere as stop:
        return RecordedPrefix(answered, stop.calls)
    return RecordedPrefix(answered, ())
