"""Playing one episode of a recording: its flow, answered from its cassette and its verdicts."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from tutorsim.agents.scene import Scene
from tutorsim.drivers import drive_async
from tutorsim.episode import episode
from tutorsim.errors import CallFailed, MissingCallError, TutorsimError
from tutorsim.mechanisms.flow import CodeResult, CodeRun, Effect, Sent
from tutorsim.model import Call
from tutorsim.records import EpisodeRecord, Failure, to_line
from tutorsim.replay import Playback, Reader, VerdictStore, check_all_used, check_cassette
from tutorsim.runner.opening import Recording
from tutorsim.sandbox import Sandbox
from tutorsim.study import EpisodeSpec

__all__ = ["Replayed", "Source", "VerdictChange", "play", "played"]


@dataclass(frozen=True)
class VerdictChange:
    """A program that the sandbox now judges otherwise than recorded."""

    episode_id: str
    turn: int
    recorded: str
    now: str


@dataclass(frozen=True)
class Replayed:
    """What came of one episode."""

    episode_id: str
    line: str | None
    """The log line; `None` when the replay failed."""
    error: TutorsimError | None
    seconds: float
    changes: tuple[VerdictChange, ...] = ()
    """Verdicts that were run again and differ."""


@dataclass(frozen=True)
class Source:
    """Where the effects of a recording's episodes are answered from."""

    recording: Recording
    verdicts: VerdictStore
    reader: Reader
    sandbox: Sandbox | None = None
    """Runs recorded programs again, for comparison."""


async def play(source: Source, spec: EpisodeSpec) -> Replayed:
    """Play an episode and write its log line, or say why it cannot be played.

    With a reader that answers at once, this never waits.
    """
    started = time.perf_counter()
    try:
        record, changes = await played(source, spec)
    except TutorsimError as error:
        return Replayed(spec.episode_id, None, error, time.perf_counter() - started)
    line = to_line(record)
    return Replayed(spec.episode_id, line, None, time.perf_counter() - started, changes)


async def played(
    source: Source, spec: EpisodeSpec
) -> tuple[EpisodeRecord, tuple[VerdictChange, ...]]:
    """Play an episode.

    Returns:
        The record, and the verdicts that differ when run again.

    Raises:
        ReplayError: If a call is missing from the recording or changed.
        UnusedCallError: If the recording holds a call that the replay never made.
        RecordingError: If the cassette is damaged or edited.
    """
    entry = source.recording.entries[spec.episode_id]
    playback = source.reader.open(spec.episode_id)
    try:
        edited = check_cassette(entry, playback.cassette)
        world = _World(source, spec, playback, entry.failure)
        record = await drive_async(episode(Scene(source.recording.loaded, spec)), world)
        check_all_used(playback)
    finally:
        source.reader.close(playback)
    if edited is not None:
        raise edited
    return record, tuple(world.changes)


@dataclass
class _World:
    """Performs the effects of one episode from its recording."""

    source: Source
    spec: EpisodeSpec
    playback: Playback
    failure: Failure | None
    """How the episode failed when it was recorded; `None` for a complete one."""
    changes: list[VerdictChange] = field(default_factory=list)

    async def __call__(self, effect: Effect) -> Sent:
        if isinstance(effect, CodeRun):
            return self._judged(effect)
        recorded = effect.calls if self.failure is None else self._held(effect.calls)
        reply, episode_id = self.playback.reply, self.spec.episode_id
        answered = tuple([await reply(episode_id, call) for call in recorded])
        if len(answered) < len(effect.calls):
            assert self.failure is not None
            raise CallFailed(self.failure.error, key=self.failure.key)
        return answered

    def _held(self, calls: Sequence[Call]) -> list[Call]:
        """The calls that did not fail when they were recorded."""
        held = self.playback.cassette.interactions
        return [call for call in calls if str(call.key) in held]

    def _judged(self, run: CodeRun) -> CodeResult:
        recorded = self.source.verdicts.find(run)
        if recorded is None:
            raise MissingCallError(
                f"{self.spec.episode_id}: the verdict on the program of turn {run.turn} is not in "
                "the recording.",
                hint="Replay with the tasks of the recording, or record the study anew.",
            )
        if self.source.sandbox is not None:
            now = self.source.sandbox.judge(run)
            if (now.code, _said(now)) != (recorded.code, _said(recorded)):
                self.changes.append(
                    VerdictChange(self.spec.episode_id, run.turn, _said(recorded), _said(now))
                )
        return recorded


def _said(result: CodeResult) -> str:
    verdict = result.verdict
    return f"{verdict.outcome} ({verdict.reason})" if verdict.reason else verdict.outcome
