"""Mean judge scores along the turns of an episode."""

from collections.abc import Iterator
from typing import Final

import polars as pl

from tutorsim.analysis.outcomes.student_scores import unit_means
from tutorsim.analysis.runs.branch_continuations import by_origin
from tutorsim.analysis.statistics.intervals_and_tests import Estimate, mean_over_tasks
from tutorsim.records import EpisodeRecord

__all__ = ["SCORES_SCHEMA", "scores_by_turn"]

SCORES_SCHEMA: Final = pl.Schema(
    {
        "benchmark": pl.String(),
        "condition": pl.String(),
        "turn": pl.Int64(),  # 0: the first attempt
        "mean": pl.Float64(),  # null where no episode has a score
        "lower": pl.Float64(),  # 95 % interval; null where not estimable
        "upper": pl.Float64(),
        "n": pl.Int64(),  # episodes with a score
        "running": pl.Int64(),  # of these, episodes that had this turn
    }
)
"""One row per benchmark, condition and turn."""


def scores_by_turn(episodes: tuple[EpisodeRecord, ...], *, max_turns: int) -> pl.DataFrame:
    """Mean judge score after each turn, complete episodes.

    An episode that ended earlier stays in with its last score: means over those still running
    would fall behind just because the successful ones leave. An unscored attempt is left out at
    its turn, and stays out where it was the last one. Continuations of one episode in a branch
    count together, by their mean.

    Args:
        episodes: All episodes of a run.
        max_turns: Rows go up to this turn, or to the longest episode where that is shorter.
    """
    cells: dict[tuple[str, str], list[EpisodeRecord]] = {}
    for e in episodes:
        if e.status == "complete":
            cells.setdefault((e.benchmark, e.condition), []).append(e)
    longest = max((e.turns_taken for cell in cells.values() for e in cell), default=0)
    rows = [
        (*cell, turn, *_mean(group, turn))
        for cell, group in cells.items()
        for turn in range(min(max_turns, longest) + 1)
    ]
    return pl.DataFrame(rows, schema=SCORES_SCHEMA, orient="row")


def _mean(episodes: list[EpisodeRecord], turn: int) -> Iterator[float | int | None]:
    scored = [e for e in episodes if _score(e, turn) is not None]
    units = unit_means(scored, lambda e: _score(e, turn))
    known = [(score, task) for score, task in units if score is not None]
    scores, tasks = [score for score, _ in known], [task for _, task in known]
    found = mean_over_tasks(scores, tasks, ends=(0, 1))
    estimable = isinstance(found, Estimate)
    yield found.value if isinstance(found, Estimate) else None
    yield found.low if isinstance(found, Estimate) else None
    yield found.high if isinstance(found, Estimate) else None
    yield len(known) if estimable else 0
    yield len(by_origin(e for e in scored if e.turns_taken >= turn))


def _score(episode: EpisodeRecord, turn: int) -> float | None:
    return episode.attempts[min(turn, len(episode.attempts) - 1)].score
