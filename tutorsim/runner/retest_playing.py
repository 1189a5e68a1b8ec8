"""Playing the retest of a recording: its flows, answered from its own cassettes."""

import hashlib
import json
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tutorsim.drivers import at_once, drive_async
from tutorsim.errors import CallFailed, RecordingError
from tutorsim.mechanisms.flow import Effect, Round, Sent
from tutorsim.model import Call, Reply
from tutorsim.records import (
    RETEST_FILE,
    RETEST_HEAD_FILE,
    BallotRecord,
    EpisodeRecord,
    Failure,
    RetestHead,
    RetestRecord,
    to_line,
)
from tutorsim.replay import (
    Cassette,
    FastReader,
    Playback,
    Reader,
    check_all_used,
    check_cassette,
    read_cassette,
    write_atomic,
)
from tutorsim.replay.retest import (
    RetestEntry,
    RetestManifest,
    read_retest_manifest,
    retest_folder,
)
from tutorsim.retest import (
    Design,
    Prompt,
    Vote,
    ask_again,
    askings,
    drawn_turns,
    prompts_of,
    retest_record,
    votes_of,
)
from tutorsim.runner.log import remove_retest
from tutorsim.runner.opening import Recording, check_links

__all__ = [
    "RetestLog",
    "RetestPlayer",
    "answered",
    "drawn_of",
    "open_retest",
    "prompts_in",
]


def drawn_of(recording: Recording, design: Design) -> dict[str, frozenset[int]]:
    """The turns that a retest asks again: episode → turns, for episodes that have any.

    A failed episode has no outcome to compare with, so its votes are not asked again.
    """
    voted = [
        (entry.episode_id, turn)
        for entry in recording.manifest.episodes
        if entry.status == "complete"
        for turn in range(1, len(entry.outcome.winners) + 1)
    ]
    drawn = drawn_turns(voted, design)
    found: dict[str, set[int]] = {}
    for episode_id, turn in voted:
        if (episode_id, turn) in drawn:
            found.setdefault(episode_id, set()).add(turn)
    return {episode_id: frozenset(turns) for episode_id, turns in found.items()}


def prompts_in(
    recording: Recording, cassette: Cassette, votes: tuple[Vote, ...]
) -> list[tuple[Prompt, ...]]:
    """The prompts of an episode's votes, as its cassette has them."""
    requests = {key: one.request for key, one in cassette.interactions.items()}
    loaded = recording.loaded
    reminder, budget = loaded.catalog.fill("vote_reminder"), loaded.study.cumulative_budget
    return [prompts_of(vote, requests, reminder=reminder, budget=budget) for vote in votes]


async def answered(
    prompt: Prompt, repeat: int, reply: Callable[[Call], Awaitable[Reply]]
) -> BallotRecord | Failure:
    """Ask for one ballot again; a failure where a call of it fails for good."""

    async def world(effect: Effect) -> Sent:
        assert isinstance(effect, Round)
        return tuple([await reply(call) for call in effect.calls])

    try:
        return await drive_async(ask_again(prompt, repeat), world)
    except CallFailed as error:
        return Failure(key=error.key, error=" ".join(filter(None, (error.what, error.why))))


class RetestPlayer:
    """Plays a finished retest, one episode at a time.

    Args:
        recording: The recording that it is of.
        manifest: Its manifest.
        reader: Opens its cassettes.
        run: Runs a step that the reader may wait in.
    """

    def __init__(
        self,
        recording: Recording,
        manifest: RetestManifest,
        reader: Reader,
        run: Callable[[Coroutine[Any, Any, RetestRecord]], RetestRecord],
    ) -> None:
        self.manifest = manifest
        self.entries = {entry.episode_id: entry for entry in manifest.episodes}
        self._recording = recording
        self._reader = reader
        self._run = run
        self._drawn = drawn_of(
            recording,
            Design(manifest.repeats, manifest.stages, manifest.sample, manifest.seed),
        )

    def play(self, line: str) -> RetestRecord:
        """Play the further askings of an episode.

        Args:
            line: The episode's log line.

        Raises:
            ReplayError: If a call is missing from the retest, or its request is not the one of
                the recording.
            UnusedCallError: If the retest holds a call that was never made.
            RecordingError: If its cassette is damaged or edited.
        """
        return self._run(self._played(EpisodeRecord.model_validate_json(line)))

    async def _played(self, record: EpisodeRecord) -> RetestRecord:
        episode_id = record.episode_id
        entry, manifest = self.entries[episode_id], self.manifest
        votes = votes_of(record, self._drawn.get(episode_id, frozenset()), manifest.stages)
        original = read_cassette(self._recording.folder, episode_id)
        prompts = prompts_in(self._recording, original, votes)
        playback = self._reader.open(episode_id)
        try:
            edited = check_cassette(entry, playback.cassette)
            world = _replies(playback, entry)
            outcomes = [
                await answered(prompt, repeat, world)
                for prompt, repeat in askings(prompts, manifest.repeats)
            ]
            check_all_used(playback)
        finally:
            self._reader.close(playback)
        if edited is not None:
            raise edited
        return retest_record(episode_id, votes, manifest.repeats, outcomes)


def _replies(playback: Playback, entry: RetestEntry) -> Callable[[Call], Awaitable[Reply]]:
    failures = {failure.key: failure for failure in entry.failures}

    async def reply(call: Call) -> Reply:
        failure = failures.get(str(call.key))
        if failure is not None and str(call.key) not in playback.cassette.interactions:
            raise CallFailed(failure.error, key=failure.key)
        return await playback.reply(entry.episode_id, call)

    return reply


@contextmanager
def open_retest(recording: Recording, *, sdk: bool = False) -> Iterator[RetestPlayer | None]:
    """Open the finished retest of a recording; `None` where it has none.

    Args:
        recording: The recording.
        sdk: Play through the real client and vcrpy.

    Raises:
        RecordingError: If its manifest is damaged, or names another recording.
    """
    folder = retest_folder(recording.folder)
    check_links(folder)
    manifest = read_retest_manifest(folder)
    if manifest is None:
        yield None
        return
    if manifest.recording_digest != recording.manifest.recording_digest():
        raise RecordingError(
            f"{folder} is the retest of another recording.",
            why="The recording around it was taken up again since, or is another one.",
            hint=f"`tutorsim retest {recording.folder}` asks what is missing; "
            "or move the folder away.",
        )
    if not sdk:
        yield RetestPlayer(recording, manifest, FastReader(folder), at_once)
        return
    import asyncio

    from tutorsim.replay.sdk_reader import SdkReader

    with asyncio.Runner() as runner:
        reader = SdkReader(folder)
        try:
            yield RetestPlayer(recording, manifest, reader, runner.run)
        finally:
            runner.run(reader.aclose())


class RetestLog:
    """Gathers the lines of `retest.jsonl`, in grid order."""

    def __init__(self) -> None:
        self._lines: list[str] = []

    def add(self, record: RetestRecord) -> None:
        """Add the next episode."""
        self._lines.append(f"{to_line(record)}\n")

    @property
    def sha256(self) -> str:
        """Digest of the lines so far."""
        return hashlib.sha256(self._data).hexdigest()

    @property
    def _data(self) -> bytes:
        return "".join(self._lines).encode()

    def write(self, folder: Path, manifest: RetestManifest) -> None:
        """Write both files into a run folder.

        Raises:
            FolderError: If they cannot be written.
        """
        head = RetestHead(
            recording_digest=manifest.recording_digest,
            repeats=manifest.repeats,
            stages=manifest.stages,
            sample=manifest.sample,
            seed=manifest.seed,
            provenance=manifest.provenance,
            retest_sha256=self.sha256,
        )
        text = json.dumps(head.model_dump(mode="json"), ensure_ascii=False, indent=1)
        remove_retest(folder)
        write_atomic(folder / RETEST_FILE, self._data)
        write_atomic(folder / RETEST_HEAD_FILE, f"{text}\n".encode())
