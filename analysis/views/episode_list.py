"""The episodes of a run in a line each: how it went, and what is special about it."""

from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

from tutorsim.analysis.ballots.recount_source import Source
from tutorsim.analysis.charts.number_words import counted
from tutorsim.analysis.metrics.shift_flip_tie_fallback_rates import turn_diagnostics
from tutorsim.records import EpisodeRecord, odd_stops, stop_counts

__all__ = ["EpisodeRow", "episode_rows"]


class EpisodeRow(NamedTuple):
    """One episode."""

    episode_id: str
    benchmark: str
    task: str
    persona: str
    condition: str
    status: str
    turns: int
    success: bool | None
    first_score: float | None
    last_score: float | None
    winners: tuple[str, ...]
    """Of the voting turns, in order."""
    decided_by: tuple[str, ...]
    """The step that decided each voting turn."""
    special: tuple[str, ...]
    """What few other episodes have, a few words each."""

    @property
    def scores(self) -> str:
        """First and last score."""
        first, last = (_score(score) for score in (self.first_score, self.last_score))
        return f"{first} → {last}"


def _score(score: float | None) -> str:
    return "–" if score is None else f"{score:.2f}"


def episode_rows(source: Source) -> list[EpisodeRow]:
    """Every episode of a run, in the log's order."""
    turns: dict[str, list[dict[str, object]]] = {}
    for row in turn_diagnostics(source).iter_rows(named=True):
        turns.setdefault(row["episode_id"], []).append(row)
    return [_row(episode, turns.get(episode.episode_id, [])) for episode in source.episodes]


def _row(episode: EpisodeRecord, turns: list[dict[str, object]]) -> EpisodeRow:
    return EpisodeRow(
        episode_id=episode.episode_id,
        benchmark=episode.benchmark,
        task=episode.task_id,
        persona=episode.persona,
        condition=episode.condition,
        status=episode.status,
        turns=episode.turns_taken,
        success=episode.success,
        first_score=episode.initial_correctness,
        last_score=episode.final_correctness,
        winners=tuple(str(turn["winner"]) for turn in turns),
        decided_by=tuple(str(turn["decided_by"]) for turn in turns),
        special=tuple(_special(episode, turns)),
    )


def _special(episode: EpisodeRecord, turns: list[dict[str, object]]) -> Iterator[str]:
    if episode.failure is not None:
        yield f"failed at {episode.failure.key}"
        return
    if not episode.turns_taken:
        yield "solved at once"
    first, last = episode.initial_correctness, episode.final_correctness
    if first is not None and last is not None and last < first:
        yield "the score fell"
    by_order = [turn["turn"] for turn in turns if turn["fallback"]]
    if by_order:
        yield f"the order decided turn {_listed(by_order)}"
    rounds = [turn["turn"] for turn in turns if turn["decided_by"] == "tie_round"]
    if rounds:
        yield f"a tie round decided turn {_listed(rounds)}"
    outside = [turn["turn"] for turn in turns if turn["flip_set"]]
    if outside:
        yield f"deliberation changed the winner of turn {_listed(outside)}"
    silent = sum(int(str(turn["abstained"])) for turn in turns)
    if silent:
        yield f"{silent} abstained"
    ends = Counter[str]()
    for count in odd_stops(stop_counts([episode])):
        ends[count.words] += count.calls
    for words, replies in ends.items():
        yield f"{counted(replies, 'reply', plural='replies')} {words}"


def _listed(turns: list[object]) -> str:
    return ", ".join(map(str, turns))
