"""Playing one piece of a recorded job, answered from its cassette, its verdicts and its inputs.

`recorded_prefix` plays as far as the recording reaches, before anything is sent.
A retest is played beside its study: of each episode its further askings.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

from tutorsim.errors import CallFailed, MissingCallError, RecordingError, TutorsimError
from tutorsim.kernel.flow_drivers_and_call_log import (
    CodeResult,
    CodeRun,
    Effect,
    Flow,
    Listen,
    PersonInput,
    Round,
    Sent,
    at_once,
    drive,
    drive_async,
)
from tutorsim.kernel.retest_flow_and_drawn_turns import (
    AskedTogether,
    Asking,
    Design,
    askings,
    attempts_together,
    drawn_turns,
    retest_flow,
)
from tutorsim.model import Call, CallKey, Reply
from tutorsim.records import EpisodeLine, Failure, RetestRecord, to_line
from tutorsim.replay import (
    AnsweredBy,
    Cassette,
    Manifest,
    Playback,
    Reader,
    VerdictStore,
    check_cassette,
)
from tutorsim.replay.manifests_of_recordings_and_retests_provenance import (
    Digests,
    RetestEntry,
    RetestManifest,
    read_retest_manifest,
    retest_entry,
    retest_folder,
)
from tutorsim.replay.program_verdicts_and_person_inputs import (
    InputStore,
    VerdictChange,
    verdict_words,
    verdicts_differ,
)
from tutorsim.runner.find_and_check_recording import (
    Recording,
    check_fact,
    check_links,
    check_origin,
    check_provenance,
)
from tutorsim.runner.pieces_of_work_person_heard_event_loop import Piece
from tutorsim.runner.write_run_folder_and_timings import RetestLog

if TYPE_CHECKING:
    from tutorsim.sandbox import Sandbox


# --- Piece playback ------------------------------------------------------------------------------

R = TypeVar("R")


class Replayed(NamedTuple):
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
    record: Any = None
    """What the line is of; `None` where another process played it or the replay failed."""


class Source(NamedTuple):
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
    by = done.answered_by
    return Replayed(piece.id, line, None, seconds, done.changes, by, computed, done.record)


async def played(source: Source, piece: Piece[R, Any], entry: Digests) -> Played[R]:
    """Play a piece.

    Calls that are missing, changed or never made raise, and so does an edited cassette.
    """
    playback = source.reader.open(piece.id)
    edited = check_cassette(entry, playback.cassette)
    if edited is None:
        check_origin(source.head, playback.cassette, parent_study=source.parent_study)
    world = _World(source, piece.id, playback, entry)
    record = await drive_async(piece.flow(), world)
    playback.check_all_used()
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
                hint="Restore inputs.jsonl from version control, or record the episode again.",
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
            if verdicts_differ(recorded, now):
                said = verdict_words(recorded), verdict_words(now)
                self.changes.append(VerdictChange(self.piece_id, run.turn, *said))
        return recorded


# --- Recorded prefix -----------------------------------------------------------------------------


class RecordedPrefix(NamedTuple):
    """How far a recording answers a flow."""

    answered: int
    """Calls that are recorded."""
    missing: tuple[Call, ...]
    """Calls of the first round that is not recorded whole; empty where the flow came to its end."""


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


# --- Retest piece --------------------------------------------------------------------------------


def asked_again(recording: Recording, record: EpisodeLine) -> list[AskedTogether[Any]]:
    """What of an episode can be asked again, in any stage.

    A failed episode has no outcome to compare with, so nothing of it is asked again.
    """
    if record.status != "complete":
        return []
    return list(recording.loaded.asked_again(recording.spec(record.episode_id), record))


def askings_in(
    recording: Recording, cassette: Cassette, design: Design, sets: Sequence[AskedTogether[Any]]
) -> list[Asking]:
    """The askings of an episode, with their prompts as its cassette has them."""
    requests: Mapping[str, str] = {key: one.request for key, one in cassette.interactions.items()}
    more = recording.loaded.if_cut_off if design.ask_cut_off_again else None
    return list(askings(sets, requests, design.repeats, if_cut_off=more))


def retest_piece(
    recording: Recording, design: Design, episode_id: str, sets: Sequence[AskedTogether[Any]]
) -> Piece[RetestRecord, RetestEntry]:
    """The further askings of an episode."""

    def flow() -> Flow[RetestRecord]:
        cassette = recording.reader.cassette(episode_id)
        asked = askings_in(recording, cassette, design, sets)
        questions = [one.question for one in asked]
        return retest_flow(episode_id, sets, design.repeats, questions)

    return Piece(episode_id, flow, retest_entry, attempts_together)


# --- Retest playing ------------------------------------------------------------------------------


class _Asked(NamedTuple):
    """What was asked again of an episode, told by its calls, failed ones among them."""

    first: frozenset[CallKey]
    """First askings, without their repeat."""
    repeats: int
    is_recorded: bool
    """Whether the cassette is the one that was recorded."""

    def of(self, sets: list[AskedTogether[Any]]) -> list[AskedTogether[Any]]:
        """Sets of prompts of which one was asked again."""
        return [one for one in sets if any(prompt.key in self.first for prompt in one.prompts)]


class RetestPlayer:
    """Plays a finished retest, one episode at a time."""

    def __init__(self, recording: Recording, manifest: RetestManifest, source: Source) -> None:
        self.recording = recording
        self.manifest = manifest
        self.entries = {entry.episode_id: entry for entry in manifest.episodes}
        self.asked = lru_cache(maxsize=1)(self._asked)
        """From an episode to what was asked again of it."""
        self._source = source

    def record_of(self, one: Replayed) -> EpisodeLine:
        """The record of a replayed episode; where another process played it, read from its line."""
        record: EpisodeLine = one.record
        if record is None:
            record = self.recording.loaded.system.record.model_validate_json(one.line)
        return record

    def play(self, record: EpisodeLine, *, with_entry: bool = False) -> Replayed:
        """Play the further askings of an episode.

        `with_entry` computes what the manifest should say, too.
        """
        name, design = record.episode_id, Design.of(self.manifest)
        try:
            sets = self.asked(name).of(asked_again(self.recording, record))
        except TutorsimError as error:
            return Replayed(name, None, error, 0.0)
        chosen = [one for one in sets if one.stage in design.stages]
        piece = retest_piece(self.recording, design, name, chosen)
        return at_once(play(self._source, piece, self.entries[name], with_entry=with_entry))

    def _asked(self, episode_id: str) -> _Asked:
        entry: RetestEntry = self.entries[episode_id]
        cassette = self._source.reader.cassette(episode_id)
        texts = (*cassette.interactions, *(failure.key for failure in entry.failures))
        keys = [CallKey.parse(text) for text in texts]
        first = frozenset([CallKey(key.turn, key.stage, key.agent, 1) for key in keys])
        is_recorded = cassette.sha256 == entry.cassette_sha256
        return _Asked(first, max((key.repeat for key in keys), default=0), is_recorded)


class RetestFacts:
    """Gathers over all episodes what the head of a retest should say."""

    def __init__(self, player: RetestPlayer) -> None:
        self._player = player
        self._turns: set[tuple[str, int]] = set()
        """The turns that can be asked again."""
        self._asked: set[tuple[str, int]] = set()
        """The turns that were asked again."""
        self._stages: dict[str, bool] = {}
        """Stage of what can be asked again in turns that were → whether it was."""
        self._repeats = 0
        self._undamaged = True
        self._answered_by = AnsweredBy()
        self._log = RetestLog()

    def note(self, record: EpisodeLine, again: Replayed | None) -> None:
        """Take in an episode. `again` is `None` if nothing of it was asked again."""
        name, sets = record.episode_id, asked_again(self._player.recording, record)
        self._turns |= {(name, one.turn) for one in sets}
        if again is None:
            return
        try:
            asked = self._player.asked(name)
        except TutorsimError:
            self._undamaged = False
            return
        self._undamaged &= asked.is_recorded
        found = asked.of(sets)
        turns = {one.turn for one in found}
        self._asked |= {(name, turn) for turn in turns}
        self._repeats = max(self._repeats, asked.repeats)
        for one in sets:
            if one.turn in turns:
                self._stages[one.stage] = self._stages.get(one.stage, False) or one in found
        self._answered_by.join(again.answered_by or AnsweredBy())
        self._log.add(again.line or "", name, again.seconds)

    def check_design(self) -> None:
        """Hold what was asked against what the head says was.

        Nothing is said where a cassette is damaged or edited.
        """
        if not self._undamaged:
            return
        head, cassettes = self._player.manifest, "the retest"
        check_fact(head, "repeats", self._repeats, cassettes)
        known = self._player.recording.loaded.system.asked_again
        stages = tuple(stage for stage in known if self._stages.get(stage, stage in head.stages))
        check_fact(head, "stages", stages, cassettes)
        if drawn_turns(self._turns, Design.of(head)) != self._asked:
            number = None if self._asked == self._turns else len(self._asked)
            check_fact(head, "sample", number, cassettes)
            check_fact(head, "seed", "the seed of another draw", cassettes)

    def check(self) -> None:
        """Hold the rest of the head against the recording and the replies."""
        head, recorded = self._player.manifest, self._player.recording.manifest
        check_fact(head, "study_name", recorded.study_name, "the recording")
        check_fact(head, "study_digest", recorded.study_digest, "the recording")
        check_fact(head, "retest_sha256", self._log.sha256, "the replay")
        check_provenance(head, self._answered_by)


def open_retest(recording: Recording) -> RetestPlayer | None:
    """Open the finished retest of a recording; `None` where it has none.

    `RecordingError` if its manifest is damaged or names another recording.
    """
    folder = retest_folder(recording.folder)
    check_links(folder)
    manifest = read_retest_manifest(folder)
    if manifest is None:
        return None
    if manifest.recording_digest != recording.manifest.recording_digest():
        raise RecordingError(
            f"{folder} is the retest of another recording.",
            why="The recording around it was taken up again since, or is another one.",
            hint=f"`tutorsim retest {recording.folder}` asks what is missing; "
            "or move the folder away.",
        )
    return RetestPlayer(recording, manifest, Source(manifest, Reader(folder)))
