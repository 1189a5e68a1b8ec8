"""Answers calls from a cassette that is parsed once, by key; no check of vcrpy's is left out."""

from pathlib import Path
from typing import Protocol

from tutorsim.errors import RecordingError
from tutorsim.model import Call, Reply
from tutorsim.replay.cassette_file import Cassette, read_cassette
from tutorsim.replay.recorded_call import check_episode_id, check_same, missing, unused_error


class Playback(Protocol):
    """One episode's recording, being replayed. A `Model` for that episode."""

    @property
    def cassette(self) -> Cassette:
        """What is played."""
        ...

    async def reply(self, episode_id: str, call: Call) -> Reply:
        """Answer one call; each recorded reply is given once.

        `MissingCallError` if none is left for the call's key; `ChangedCallError` if it was recorded
        with another request.
        """
        ...

    def unused(self) -> tuple[str, ...]:
        """Keys that were not asked for, in the order of the cassette."""
        ...


class Reader(Protocol):
    """Opens the episodes of a recording for replay."""

    def open(self, episode_id: str) -> Playback:
        """Open an episode.

        `MissingCallError` if the recording has no cassette for it.
        """
        ...

    def close(self, playback: Playback) -> None:
        """Forget an episode."""
        ...

    def cassette(self, episode_id: str) -> Cassette:
        """What an episode's recording holds, without playing it."""
        ...


def check_all_used(playback: Playback) -> None:
    """Refuse a replay that left entries of its cassette unused."""
    unused = playback.unused()
    if unused:
        raise unused_error(playback.cassette.name, unused)


class FastReader:
    """Replays the episodes of a folder; the cassette that was read last is kept.

    So a retest, which follows each episode, reads no cassette twice.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._last: Cassette | None = None

    def open(self, episode_id: str) -> "FastPlayback":
        return FastPlayback(self.cassette(episode_id))

    def close(self, playback: Playback) -> None:
        """Nothing is held open."""

    def cassette(self, episode_id: str) -> Cassette:
        if self._last is None or self._last.episode_id != episode_id:
            check_episode_id(episode_id)
            self._last = read_cassette(self._folder, episode_id)
        return self._last


class FastPlayback:
    """Replays one cassette."""

    def __init__(self, cassette: Cassette) -> None:
        self._cassette = cassette
        self._name = cassette.name
        self._left = dict(cassette.interactions)

    @property
    def cassette(self) -> Cassette:
        return self._cassette

    async def reply(self, episode_id: str, call: Call) -> Reply:
        """Answer one call at once, as `Playback.reply` says."""
        key = str(call.key)
        found = self._left.get(key)
        if found is None:
            held = self._cassette.interactions
            raise missing(self._name, key, held=held, played=key in held)
        check_same(self._name, found, call)
        try:
            answer = found.reply()
        except ValueError as error:
            raise unreadable_reply(self._name, key, error) from error
        del self._left[key]
        return answer

    def unused(self) -> tuple[str, ...]:
        return tuple(self._left)


def unreadable_reply(cassette: str, key: str, error: Exception) -> RecordingError:
    """The error for a recorded reply that is no message."""
    return RecordingError(
        f"{cassette}: the reply to call {key} cannot be read.",
        why=str(error),
        hint="Restore the file from version control, or record the study into a new folder.",
    )
