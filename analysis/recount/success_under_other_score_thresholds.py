"""Another success threshold: exact where the log holds the path, bounds where it ends.

Under a lower threshold an episode ends at its first attempt that reaches it, on the logged
path. Under a higher one an episode that the log ended as a success may have gone on: its
success is 0 or 1, its further turns any number up to the limit, its last score anything.
Episodes that used all their turns are exact under any threshold.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import fsum
from typing import Any, Final, Literal, NamedTuple

from tutorsim.analysis.ballots.recount_source import Source
from tutorsim.analysis.pages.cells_and_tables import BENCHMARKS, bounds
from tutorsim.analysis.pages.decorators_to_declare_tables_and_charts import Row, Rows, table
from tutorsim.analysis.recount.tables import HELD
from tutorsim.analysis.runs.branch_counts_turns_siblings_share import by_origin
from tutorsim.analysis.statistics import by_key
from tutorsim.analysis.statistics.intervals_and_tests import Bounds, NotEstimable
from tutorsim.errors import UsageError
from tutorsim.records import EpisodeRecord

THRESHOLDS: Final = (0.4, 0.7, 0.75, 0.9, 1.0)
"""Success thresholds that a report tries."""


@dataclass(frozen=True)
class EpisodeAtThreshold:
    """One episode under a threshold."""

    exact: bool
    success: Bounds
    turns: Bounds
    final: Bounds | None
    """The last score; `None` where it is unscored."""
    gain: Bounds | None
    """Last minus first score; `None` without tutoring or where one is unscored."""


def at_threshold(source: Source, threshold: float) -> list[Row]:
    """Success, turns and gain by benchmark and condition under another success threshold.

    Means are over complete episodes. Refused outside [0, 1], and of a source without episodes.
    """
    if not 0 <= threshold <= 1:
        raise UsageError(f"The threshold {threshold} is not between 0 and 1.")
    success = None if source.run is None else source.run.success
    if success is None:
        raise UsageError(
            f"{source.name} has no scores.",
            why="A success threshold is about a run's episodes, not about ballots.",
            hint="Point at a run folder.",
        )
    complete = [e for e in source.episodes if e.status == "complete"]
    rows: list[Row] = []
    for (benchmark, condition), es in by_key(
        ((e.benchmark, e.condition), e) for e in complete
    ).items():
        # continuations of one episode in a branch count together, by their mean
        units = [
            _mean([episode_at_threshold(e, threshold, max_turns=success.max_turns) for e in draws])
            for draws in by_origin(es)
        ]
        mean = _mean(units)
        rows.append(
            {
                "benchmark": benchmark,
                "condition": condition,
                "threshold": threshold,
                "episodes": len(units),
                "exact": sum(e.exact for e in units),  # whose path the log holds to its end
                "fired": sum(e.turns.low > 0 for e in units),  # with a tutoring turn or more
                "success": mean.success,
                "turns": mean.turns,
                "final": mean.final or NotEstimable("no scored episode"),
                # over those with tutoring under this threshold
                "gain": mean.gain or NotEstimable("no scored episode with tutoring"),
            }
        )
    return rows


def episode_at_threshold(
    episode: EpisodeRecord, threshold: float, *, max_turns: int
) -> EpisodeAtThreshold:
    """What a complete episode would have been under another threshold."""
    first, last = episode.attempts[0].score, episode.attempts[-1]
    reached = (
        attempt
        for attempt in episode.attempts
        if attempt.score is not None and attempt.score >= threshold
        if attempt.code_passed or episode.benchmark != "humaneval"
    )
    end = next(reached, None)
    if end is None and episode.success and last.turn < max_turns:
        return EpisodeAtThreshold(
            exact=False,
            success=Bounds(0, 1, 1),
            turns=Bounds(last.turn + 1, max_turns, 1),
            final=Bounds(0, 1, 1),
            gain=None if first is None else Bounds(-first, 1 - first, 1),
        )
    turn, score = (end or last).turn, (end or last).score
    return EpisodeAtThreshold(
        exact=True,
        success=_point(float(end is not None)),
        turns=_point(float(turn)),
        final=None if score is None else _point(score),
        gain=None if first is None or score is None or not turn else _point(score - first),
    )


def _point(value: float) -> Bounds:
    return Bounds(value, value, 1)


def _mean(found: Sequence[EpisodeAtThreshold]) -> EpisodeAtThreshold:
    """Some episodes as one, by the means of what is known of them."""
    final, gain = [e.final for e in found if e.final], [e.gain for e in found if e.gain]
    return EpisodeAtThreshold(
        exact=all(e.exact for e in found),
        success=_average([e.success for e in found]),
        turns=_average([e.turns for e in found]),
        final=_average(final) if final else None,
        gain=_average(gain) if gain else None,
    )


def _average(bounds: Sequence[Bounds]) -> Bounds:
    n = len(bounds)
    return Bounds(fsum(b.low for b in bounds) / n, fsum(b.high for b in bounds) / n, n)


# --- Table ---------------------------------------------------------------------------------------

Bounded = Literal["success", "turns", "gain"]
_BOUNDED: Final[Mapping[Bounded, tuple[str, str]]] = {
    "success": ("Success", "Share of complete episodes."),
    "turns": ("Tutoring turns", "Mean over complete episodes."),
    "gain": ("Gain in judge score", "Mean over tutored episodes."),
}
"""Outcome → its name, and what its figures are."""


class Thresholds(NamedTuple):
    """One outcome under thresholds."""

    found: Mapping[float, Sequence[Row]]
    logged: float | None
    """The study's threshold; `None` where no other is asked about."""
    outcome: Bounded = "success"


@table(
    "thresholds{which}",
    "{outcome} under another threshold",
    which=lambda of: "" if of.outcome == "success" else f"-{of.outcome}",
    outcome=lambda of: _BOUNDED[of.outcome][0],
    meant=lambda of: _BOUNDED[of.outcome][1],
    held=HELD,
)
def threshold_table(of: Thresholds) -> Rows:
    """{meant} Exact for thresholds at or below the logged one: an episode ends at its first attempt
    that reaches it. Above, an episode that ended as a success may have gone on, and the bounds let
    it end either way. {held}"""
    rows: dict[tuple[str, str], dict[str, Any]] = {}
    for tried, every in of.found.items():
        head = f"at {tried:g}, {'logged' if tried == of.logged else 'recounted'}"
        for at in every:
            cells = {
                "tasks": BENCHMARKS.get(at["benchmark"], at["benchmark"]),
                "condition": at["condition"],
                "episodes": at["episodes"],
            }
            row = rows.setdefault((at["benchmark"], at["condition"]), cells)
            row[head] = bounds(at[of.outcome])
    yield from rows.values()
