"""Playing the retest of a recording: each episode's further askings, beside the study's."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from tutorsim.errors import RecordingError, TutorsimError
from tutorsim.kernel.flow import Flow, at_once
from tutorsim.kernel.retest import (
    AskedTogether,
    Asking,
    Design,
    askings,
    attempts_together,
    drawn_turns,
    retest_flow,
)
from tutorsim.model import CallKey
from tutorsim.records import EpisodeLine, RetestRecord
from tutorsim.replay import AnsweredBy, Cassette, FastReader
from tutorsim.replay.manifest import (
    RetestEntry,
    RetestManifest,
    read_retest_manifest,
    retest_entry,
    retest_folder,
)
from tutorsim.runner.job import Piece
from tutorsim.runner.open_recording import Recording, check_fact, check_links, check_provenance
from tutorsim.runner.playback import Replayed, Source, play
from tutorsim.runner.run_log import RetestLog

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


@dataclass(frozen=True)
class _Asked:
    """What was asked again of an episode, told by its calls, failed ones among them."""

    first: frozenset[CallKey]
    """First askings, without their repeat."""
    repeats: int
    is_recorded: bool
    """Whether the cassette is the one that was recorded."""

    def of(self, sets: list[AskedTogether[Any]]) -> list[AskedTogether[Any]]:
        """Those sets of which a prompt was asked again."""
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

    def record_of(self, line: str) -> EpisodeLine:
        """The record of a log line of the recording."""
        record: EpisodeLine = self.recording.loaded.system.record.model_validate_json(line)
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
        first = frozenset(key._replace(attempt=1, repeat=0) for key in keys)
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
        """Take in an episode.

        `again` is `None` if nothing of it was asked again.
        """
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
    return RetestPlayer(recording, manifest, Source(manifest, FastReader(folder)))
