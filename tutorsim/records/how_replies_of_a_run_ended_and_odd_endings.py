"""How replies of a run ended: usual stop reasons, and how many replies ended oddly.

for odd in odd_stops(stop_counts(read_episodes(folder))):
    ...  # the stage, the reason, the calls
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from tutorsim.records.panel_episode_and_base_of_any_episode import CallRecord, EpisodeLine

USUAL_STOP_REASONS: Final = ("end_turn", "stop_sequence", None)
"""Stop reasons of a reply that came to its own end; `None` where the endpoint gives none."""
WITHOUT_TEXT: Final = "without_text"
"""Counted in the place of the usual stop reason of a reply that had no text."""
_WORDS: Final = {
    "max_tokens": "cut off at max_tokens",
    "refusal": "refused",
    WITHOUT_TEXT: "without text",
}


class StopCount(NamedTuple):
    """Calls of one stage whose replies ended for one reason."""

    stage: str
    stop_reason: str | None
    calls: int
    taken: int
    """Calls whose reply was taken as it is, because nothing was asked once more."""

    @property
    def words(self) -> str:
        """The reason for readers."""
        return stop_words(self.stop_reason)


def stop_words(reason: str | None) -> str:
    """A stop reason for readers."""
    return _WORDS.get(reason or "", reason or "not stated")


class StopCounter:
    """A count of how the replies of episodes ended, taken one episode after another."""

    def __init__(self) -> None:
        self._calls: Counter[tuple[str, str | None]] = Counter()
        self._retried: Counter[tuple[str, str | None]] = Counter()

    def take(self, episode: EpisodeLine) -> None:
        """Count the replies of an episode; of its calls key, stage and end are looked at."""
        silent, again = episode.without_text or (), _asked_again(episode.calls)
        ends = [
            (call.stage, WITHOUT_TEXT if call.key in silent else call.stop_reason)
            for call in episode.calls
        ]
        self._calls.update(ends)
        if again:
            pairs = zip(episode.calls, ends, strict=True)
            self._retried.update(end for call, end in pairs if call.key in again)

    def counts(self) -> list[StopCount]:
        """Count stop reasons by stage, stages in the order in which they first came."""
        return [StopCount(*end, n, n - self._retried[end]) for end, n in self._calls.items()]


def stop_counts(episodes: Iterable[EpisodeLine]) -> list[StopCount]:
    """Count stop reasons by stage, stages in the order in which they first come."""
    counter = StopCounter()
    for episode in episodes:
        counter.take(episode)
    return counter.counts()


def odd_stops(counts: Iterable[StopCount]) -> list[StopCount]:
    """The counts of replies without text or an end of their own, the most frequent first."""
    return sorted(
        (count for count in counts if count.stop_reason not in USUAL_STOP_REASONS),
        key=lambda count: -count.calls,
    )


def _asked_again(calls: Sequence[CallRecord]) -> set[str]:
    """Keys of calls whose question was asked once more: those one before a second or later one."""
    later = (call.key.rpartition("/") for call in calls if not call.key.endswith("/1"))
    return {f"{head}/{int(n) - 1}" for head, _, n in later if n.isdecimal()}
