"""What became of the students: scores by turn, success by persona."""

from collections.abc import Sequence
from typing import Final

import altair as alt
import polars as pl

from tutorsim.analysis.charts.figure import LOGGED, Drawing, Figure, absent, inline, unchecked
from tutorsim.analysis.charts.number_words import SMALL, counted, listed, percent
from tutorsim.analysis.charts.style import ACCENT, INK, PAPER, condition_colors
from tutorsim.analysis.statistics.intervals_and_tests import FEWEST_TASKS

__all__ = ["personas_figure", "scores_figure"]


_FEW: Final = 10
"""Tasks below which an interval over them is rough."""

_BENCHMARKS: Final = {"sciq": "science questions (sciq)", "humaneval": "programs (humaneval)"}


def scores_figure(frame: pl.DataFrame, *, max_turns: int, tasks: int, held: str = LOGGED) -> Figure:
    """Lines: mean judge score after each turn, one line per condition.

    Args:
        frame: `benchmark`, `condition`, `turn` (0 is the first attempt), `mean`, `lower`, `upper`
            (95 % interval, null where not estimable), `n` (episodes); an episode that ended
            earlier stays in with its last score.
        max_turns: The most tutoring turns that an episode may have.
        tasks: Tasks behind the intervals, of the benchmark with fewest.
        held: What the caption ends with: whether all is logged.
    """
    if frame.is_empty():
        return absent("scores", "No episode has a judge score, so there is nothing to follow.")
    return Figure(
        name="scores",
        finding=_scores_finding(frame),
        caption=(
            "Mean judge score after each tutoring turn, 0 being the first attempt; an episode that "
            "ended earlier keeps its last score, so that n stays the same from turn to turn. Bars "
            f"are 95 % intervals over {counted(tasks, 'task')}{_sketch(tasks)}. At most "
            f"{counted(max_turns, 'turn')}. {held}"
        ),
        method=(
            "Intervals are over tasks, because episodes of one task are not independent. "
            " First attempts are drawn separately in each condition, so lines start apart "
            "by chance."
        ),
        data=frame,
        chart=_scores(frame),
        alternative="; ".join(
            f"{r['benchmark']}, {r['condition']}, after turn {r['turn']}: {r['mean']:.2f}"
            for r in frame.iter_rows(named=True)
            if r["mean"] is not None
        ),
    )


def _sketch(tasks: int) -> str:
    return ": too few tasks, so that there are none" if tasks < FEWEST_TASKS else ""


def _scores_finding(frame: pl.DataFrame) -> str:
    ends = frame.filter(pl.col("mean").is_not_null())
    first = ends.filter(pl.col("turn") == 0)
    last = ends.filter(pl.col("turn") == pl.col("turn").max().over("benchmark", "condition"))
    joined = first.join(last, on=["benchmark", "condition"], suffix="_last").with_columns(
        gain=pl.col("mean_last") - pl.col("mean")
    )
    n = int(first.get_column("n").sum())
    if n < SMALL:
        return f"Judge scores by turn in {counted(n, 'episode')}, too few for a comparison"
    low, high = joined.get_column("gain").min(), joined.get_column("gain").max()
    return (
        f"From first attempt to last, mean judge scores moved by {_signed(low)} to {_signed(high)} "
        f"across conditions"
    )


def _signed(value: object) -> str:
    return f"{value:+.2f}".replace("-", "−")


@unchecked
def _scores(frame: pl.DataFrame) -> Drawing:
    conditions = frame.get_column("condition").unique(maintain_order=True).to_list()
    benchmarks = frame.get_column("benchmark").unique(maintain_order=True).to_list()
    data = frame.with_columns(test=pl.col("benchmark").replace(_BENCHMARKS))
    color = alt.Color(
        "condition:N",
        title="condition",
        sort=conditions,
        scale=alt.Scale(domain=conditions, range=condition_colors(conditions)),
    )
    tips = [
        alt.Tooltip("test:N", title="benchmark"),
        alt.Tooltip("condition:N"),
        alt.Tooltip("turn:O", title="after turn"),
        alt.Tooltip("mean:Q", title="mean score", format=".3f"),
        alt.Tooltip("lower:Q", format=".3f"),
        alt.Tooltip("upper:Q", format=".3f"),
        alt.Tooltip("n:Q", title="episodes"),
    ]
    base = alt.Chart().encode(
        x=alt.X("turn:O", title="after tutoring turn", axis=alt.Axis(labelAngle=0)),
        xOffset=alt.XOffset("condition:N", sort=conditions),
    )
    spread = base.mark_rule(strokeWidth=2, opacity=0.45).encode(
        y=alt.Y("lower:Q", title="mean judge score", scale=alt.Scale(domain=[0, 1])),
        y2=alt.Y2("upper:Q"),
        color=color,
    )
    dots = base.mark_point(filled=True, size=65, opacity=1).encode(
        y=alt.Y("mean:Q"),
        color=color,
        shape=alt.Shape(
            "condition:N",
            title="condition",
            sort=conditions,
            scale=alt.Scale(domain=conditions, range=_SHAPES[: len(conditions)]),
        ),
        tooltip=tips,
    )
    return (
        alt.layer(spread, dots)
        .properties(data=inline(data), width=alt.Step(16, **{"for": "offset"}), height=240)
        .facet(
            facet=alt.Facet("test:N", sort=[_BENCHMARKS.get(b, b) for b in benchmarks], title=None),
            columns=2,
            spacing=30,
        )
    )


_SHAPES: Final = ["circle", "square", "triangle-up", "diamond", "triangle-down"]


def personas_figure(
    frame: pl.DataFrame,
    *,
    personas: Sequence[str],
    conditions: Sequence[str],
    held: str = LOGGED,
) -> Figure:
    """Heat maps: success rate by persona and condition, one per benchmark.

    Args:
        frame: `benchmark`, `persona`, `condition`, `successes`, `n`, `rate` (null where n is 0).
        personas: In the study's order.
        conditions: In the study's order.
        held: What the caption ends with: whether all is logged.
    """
    seen = frame.filter(pl.col("n") > 0) if not frame.is_empty() else frame
    if seen.is_empty():
        return absent("personas", "No episode was finished, so there is no success rate.")
    return Figure(
        name="personas",
        finding=_personas_finding(seen, personas),
        caption=(
            "Successful episodes of all finished ones, per persona and condition; success is a "
            "judge score at the threshold or above, and for programs also passing tests. "
            f"{held}"
        ),
        method="Plain counts over all finished episodes, tutored or not; no interval is drawn.",
        data=frame,
        chart=_personas(frame, list(personas), list(conditions)),
        alternative="; ".join(
            f"{r['benchmark']}, {r['persona']}, {r['condition']}: {r['successes']} of {r['n']}"
            for r in seen.iter_rows(named=True)
        ),
    )


def _personas_finding(seen: pl.DataFrame, personas: Sequence[str]) -> str:
    sums = seen.group_by("persona").agg(pl.col("successes").sum(), pl.col("n").sum())
    rates = {r["persona"]: r["successes"] / r["n"] for r in sums.iter_rows(named=True)}
    n = int(sums.get_column("n").sum())
    if n < SMALL or len(rates) < 2:
        done = int(sums.get_column("successes").sum())
        return f"{done} of {counted(n, 'finished episode')} ended in success"
    low, high = min(rates.values()), max(rates.values())
    if low == high:
        return f"Every persona succeeds in {percent(low)} of its episodes"
    best = listed([p.replace("_", " ") for p in personas if rates.get(p) == high])
    worst = listed([p.replace("_", " ") for p in personas if rates.get(p) == low])
    return f"Success runs from {percent(low)} ({worst}) to {percent(high)} ({best}) of episodes"


@unchecked
def _personas(frame: pl.DataFrame, personas: list[str], conditions: list[str]) -> Drawing:
    benchmarks = frame.get_column("benchmark").unique(maintain_order=True).to_list()
    data = frame.with_columns(
        test=pl.col("benchmark").replace(_BENCHMARKS),
        who=pl.col("persona").str.replace_all("_", " "),
        note=pl.format("{}/{}", "successes", "n"),
    )
    rows = [p.replace("_", " ") for p in personas]
    base = alt.Chart().encode(
        x=alt.X(
            "condition:N",
            sort=conditions,
            title=None,
            axis=alt.Axis(labelAngle=-35, domain=False, ticks=False),
        ),
        y=alt.Y("who:N", sort=rows, title=None, axis=alt.Axis(domain=False, ticks=False)),
    )
    cells = base.mark_rect(stroke=PAPER, strokeWidth=2).encode(
        color=alt.ColorValue(ACCENT),
        opacity=alt.Opacity(
            "rate:Q",
            title="success rate",
            scale=alt.Scale(domain=[0, 1], range=[0.05, 0.95]),
            legend=None,
        ),
        tooltip=[
            alt.Tooltip("test:N", title="benchmark"),
            alt.Tooltip("who:N", title="persona"),
            alt.Tooltip("condition:N"),
            alt.Tooltip("successes:Q"),
            alt.Tooltip("n:Q", title="episodes"),
        ],
    )
    text = base.mark_text(fontSize=11, aria=False).encode(
        text=alt.Text("note:N"),
        color=alt.ColorValue(INK, condition={"test": "datum.rate > 0.72", "value": PAPER}),
    )
    return (
        alt.layer(cells, text)
        .properties(data=inline(data), width=alt.Step(48), height=alt.Step(28))
        .facet(
            facet=alt.Facet("test:N", sort=[_BENCHMARKS.get(b, b) for b in benchmarks], title=None),
            columns=2,
            spacing=24,
        )
    )
