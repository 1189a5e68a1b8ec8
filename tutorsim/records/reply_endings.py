"""How the replies of a run ended: by themselves, without text, cut off at their limit, refused."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple

from tutorsim.records.episode import CallRecord
from tutorsim.records.kernel_record import EpisodeLine

__all__ = ["USUAL", "WITHOUT_TEXT", "StopCount", "odd_stops", "stop_counts", "stop_words"]

USUAL: Final = ("end_turn", "stop_sequence", None)
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
    """Those whose reply was taken as it is, because nothing was asked once more."""

    @property
    def words(self) -> str:
        """The reason for readers."""
        return stop_words(self.stop_reason)


def stop_words(reason: str | None) -> str:
    """A stop reason for readers."""
    return _WORDS.get(reason or "", reason or "not stated")


def stop_counts(episodes: Iterable[EpisodeLine]) -> list[StopCount]:
    """Count stop reasons by stage, stages in the order in which they first come."""
    calls: Counter[tuple[str, str | None]] = Counter()
    taken: Counter[tuple[str, str | None]] = Counter()
    for episode in episodes:
        silent = episode.without_text or ()
        for call, last in _with_last(episode.calls):
            reason = WITHOUT_TEXT if call.key in silent else call.stop_reason
            calls[call.stage, reason] += 1
            taken[call.stage, reason] += last
    return [StopCount(*place, calls[place], taken[place]) for place in calls]


def odd_stops(counts: Iterable[StopCount]) -> list[StopCount]:
    """The counts of replies without text or an end of their own, the most frequent first."""
    return sorted(
        (count for count in counts if count.stop_reason not in USUAL),
        key=lambda count: -count.calls,
    )


def _with_last(calls: Sequence[CallRecord]) -> Iterator[tuple[CallRecord, bool]]:
    """Every call, and whether it was the last asking of its question."""
    keys = {call.key for call in calls}
    for call in calls:
        head, _, attempt = call.key.rpartition("/")
        yield call, not (attempt.isdecimal() and f"{head}/{int(attempt) + 1}" in keys)
