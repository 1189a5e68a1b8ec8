"""What became of the students, as tables."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, Literal

from tutorsim.analysis.charts.number_words import counted
from tutorsim.analysis.outcomes.student_scores import Gain, Rounds, Success, SuccessRate
from tutorsim.analysis.outcomes.success_threshold import AtThreshold
from tutorsim.analysis.statistics.intervals_and_tests import NotEstimable
from tutorsim.analysis.views.cells import (
    BENCHMARKS,
    DASH,
    Table,
    absent,
    bar,
    bounds,
    estimate,
    present,
    table,
)
from tutorsim.analysis.views.counterfactual_captions import HELD
from tutorsim.records import EpisodeRecord, StopCount

__all__ = [
    "few_tasks_words",
    "gains_table",
    "persona_tables",
    "stops_table",
    "success_table",
    "threshold_table",
]

_FEW: Final = 10
"""Tasks below which intervals over them are a sketch."""

Bounded = Literal["success", "turns", "gain"]
_BOUNDED: Final[Mapping[Bounded, str]] = {
    "success": "Success",
    "turns": "Tutoring turns",
    "gain": "Gain in judge score",
}
_MEANT: Final[Mapping[Bounded, str]] = {
    "success": "Share of complete episodes.",
    "turns": "Mean over complete episodes.",
    "gain": "Mean over tutored episodes.",
}


def few_tasks_words(episodes: Iterable[EpisodeRecord]) -> str:
    """How many tasks the intervals are over."""
    counts = Counter(benchmark for benchmark, _ in {(e.benchmark, e.task_id) for e in episodes})
    each = " and ".join(
        counted(n, BENCHMARKS[b].removesuffix("s")) if b in BENCHMARKS else f"{n} {b}"
        for b, n in sorted(counts.items())
    )
    return f"Intervals are over tasks ({each})."


def success_table(
    rates: Sequence[SuccessRate], rounds: Sequence[Rounds], note: str
) -> Table | None:
    """Success and turns by benchmark and condition; `None` without episodes.

    Args:
        rates: By benchmark and condition.
        rounds: Likewise.
        note: On the intervals, from `few_tasks_words`.
    """
    turns = {(row.benchmark, row.condition): row for row in rounds}
    rows = []
    for row in rates:
        own = turns[row.benchmark, row.condition]
        rows.append(
            (
                *(row.benchmark, row.condition, bar(row.rate), estimate(row.rate)),
                *(row.episodes, row.unscored, own.fired, estimate(own.mean)),
            )
        )
    return table(
        "success",
        "Success by condition",
        "Share of complete episodes with a last score [95 % interval]. Tutored: episodes whose "
        f"first attempt did not succeed. Turns: mean over all episodes. {note}"
        + absent(row.rate for row in rates),
        [
            *("benchmark", "condition", " ", "success", "episodes", "unscored", "tutored"),
            "tutoring turns",
        ],
        rows,
        secondary=("unscored", "tutored"),
    )


def gains_table(gains: Iterable[Gain], note: str) -> Table | None:
    """Scores and code verdicts before and after tutoring; `None` without episodes.

    Args:
        gains: By benchmark, condition and measure.
        note: On the intervals, from `few_tasks_words`.
    """
    ordered = sorted(gains, key=lambda g: (g.benchmark != "sciq", g.measure != "score"))
    return table(
        "gains",
        "Before and after tutoring",
        "Mean [95 % interval] over tutored episodes with both values; n counts them. Code is the "
        f"share of programs that pass. {note}",
        ["what", "condition", "n", "first attempt", "last attempt", "gain"],
        [
            (
                f"{BENCHMARKS.get(g.benchmark, g.benchmark)}, {g.measure}",
                *(g.condition, g.n, estimate(g.initial), estimate(g.final)),
                estimate(g.gain, signed=True),
            )
            for g in ordered
        ],
    )


def persona_tables(successes: Sequence[Success]) -> tuple[Table, ...]:
    """Successes of scored episodes, persona by condition, one table a benchmark."""
    return present(*_persona_tables(successes))


def _persona_tables(successes: Sequence[Success]) -> Iterator[Table | None]:
    for benchmark in dict.fromkeys(row.benchmark for row in successes):
        own = [row for row in successes if row.benchmark == benchmark]
        conditions = list(dict.fromkeys(row.condition for row in own))
        cells = {
            (row.persona, row.condition): f"{row.successes}/{getattr(row.rate, 'n', 0)}"
            for row in own
        }
        yield table(
            f"personas-{benchmark}",
            f"Success by persona, {BENCHMARKS.get(benchmark, benchmark)}",
            "Successful episodes / episodes with a last score.",
            ["persona", *conditions],
            [
                (persona, *(cells.get((persona, c), "") for c in conditions))
                for persona in dict.fromkeys(row.persona for row in own)
            ],
        )


def threshold_table(
    found: Mapping[float, Sequence[AtThreshold]],
    logged: float | None,
    outcome: Bounded = "success",
) -> Table | None:
    """An outcome under other success thresholds; `None` without any.

    Args:
        found: Threshold → outcomes under it.
        logged: The study's own threshold, if there is one.
        outcome: Which one.
    """
    cells: dict[tuple[str, str], list[str]] = {}
    for of in found.values():
        for at in of:
            row = cells.setdefault((at.benchmark, at.condition), [str(at.episodes)])
            value = getattr(at, outcome)
            row.append(DASH if isinstance(value, NotEstimable) else bounds(value))
    heads = [f"at {t:g}, {'logged' if t == logged else 'recounted'}" for t in found]
    return table(
        "thresholds" if outcome == "success" else f"thresholds-{outcome}",
        f"{_BOUNDED[outcome]} under another threshold",
        f"{_MEANT[outcome]} Exact for thresholds at or below the logged one: an episode "
        "ends at its first attempt that reaches it. Above, an episode that ended as a success "
        f"may have gone on, and the bounds let it end either way. {HELD}",
        ["tasks", "condition", "episodes", *heads],
        [(BENCHMARKS.get(b, b), condition, *row) for (b, condition), row in cells.items()],
    )


def stops_table(odd: Sequence[StopCount]) -> Table | None:
    """Replies without text or an end of their own; `None` where there is none."""
    return table(
        "stops",
        "Replies without text or an end of their own",
        "Replies that had no text, were refused, or cut off at their limit of length. Where one "
        "was asked for once more, the second reply was taken; the others were taken as they are.",
        ["stage", "ended", "replies", "taken as they are"],
        [(count.stage, count.words, count.calls, count.taken) for count in odd],
    )
