"""Charts of what became of the students."""

from collections.abc import Iterator
from typing import Any, Final

import altair as alt
import polars as pl

from tutorsim.analysis.charts import figures_forms_and_colours as look
from tutorsim.analysis.pages.decorators_to_declare_tables_and_charts import Row, figure
from tutorsim.analysis.pages.words_and_safe_text import (
    SMALL,
    counted,
    extremes,
    listed,
    percent,
    spoken,
)
from tutorsim.analysis.statistics.intervals_and_tests import FEWEST_TASKS
from tutorsim.analysis.systems.contrasts_of_any_sides_in_words_and_of_runs import (
    contrast_headline,
    rows_about_zero,
)
from tutorsim.analysis.systems.panel.page_data_and_published_figures import Evidence
from tutorsim.records import StudySettings

_BENCHMARKS: Final = {"sciq": "science questions (sciq)", "humaneval": "programs (humaneval)"}
_SHAPES: Final = ["circle", "square", "triangle-up", "diamond", "triangle-down"]


def _study(of: Evidence) -> StudySettings:
    run = of.source.run
    assert run is not None  # a page on ballots from elsewhere has no outcomes
    return run.panel


def _benchmarks(data: pl.DataFrame) -> list[str]:
    """Benchmarks as the panels of a chart are called."""
    return [_BENCHMARKS.get(name, name) for name in look.names_in(data, "benchmark")]


# --- Scores --------------------------------------------------------------------------------------


def _tasks(data: pl.DataFrame, of: Evidence) -> str:
    """Tasks behind the intervals, of the benchmark with fewest."""
    fewest = min(of.grid["tasks"].values(), default=0)
    few = ": too few tasks, so that there are none" if fewest < FEWEST_TASKS else ""
    return f"{counted(fewest, 'task')}{few}"


def _scores_finding(data: pl.DataFrame, of: Evidence) -> str:
    first = data.filter(pl.col("turn") == 0)
    last = data.filter(pl.col("turn") == pl.col("turn").max().over("benchmark", "condition"))
    joined = first.join(last, on=["benchmark", "condition"], suffix="_last")
    n = int(first.get_column("n").sum())
    if n < SMALL:
        return f"Judge scores by turn in {counted(n, 'episode')}, too few for a comparison"
    gains = joined.get_column("mean_last") - joined.get_column("mean")
    low, high = (f"{end:+.2f}".replace("-", "−") for end in extremes(gains))
    return (
        f"From first attempt to last, mean judge scores moved by {low} to {high} across conditions"
    )


def _draw_scores(data: pl.DataFrame, of: Evidence) -> look.Drawing:
    conditions = look.names_in(data, "condition")
    named: dict[str, Any] = {"title": "condition", "sort": conditions}
    shapes = alt.Scale(domain=conditions, range=_SHAPES[: len(conditions)])
    base = alt.Chart().encode(
        x=alt.X("turn:O", title="after tutoring turn", axis=alt.Axis(labelAngle=0)),
        xOffset=alt.XOffset("condition:N", sort=conditions),
        color=look.coloured("condition", conditions, look.condition_colors(conditions), **named),
    )
    spread = base.mark_rule(strokeWidth=2, opacity=0.45).encode(
        y=alt.Y("lower:Q", title="mean judge score", scale=look.ONE), y2="upper:Q"
    )
    dots = base.mark_point(filled=True, size=65, opacity=1).encode(
        y="mean:Q",
        shape=alt.Shape("condition:N", scale=shapes, **named),
        tooltip=look.tips(
            *("test:N=benchmark", "condition:N", "turn:O=after turn", "mean:Q=mean score|.3f"),
            *("lower:Q|.3f", "upper:Q|.3f", "n:Q=episodes"),
        ),
    )
    return look.faceted(
        *(spread, dots),
        data=data.with_columns(test=pl.col("benchmark").replace(_BENCHMARKS)),
        by="test",
        order=_benchmarks(data),
        width=alt.Step(16, **{"for": "offset"}),
        height=240,
        spacing=30,
    )


@figure(
    "scores",
    finding=_scores_finding,
    without="No episode has a judge score, so there is nothing to follow.",
    method="Intervals are over tasks, because episodes of one task are not independent. First "
    "attempts are drawn separately in each condition, so lines start apart by chance.",
    alternative="{benchmark}, {condition}, after turn {turn}: {mean:.2f}",
    draw=_draw_scores,
    kinds={"lower": pl.Float64, "upper": pl.Float64},
    tasks=_tasks,
    turns=lambda data, of: counted(_study(of).max_turns, "turn"),
)
def scores_figure(of: Evidence) -> Iterator[Row]:
    """Mean judge score after each tutoring turn, 0 being the first attempt; an episode that ended
    earlier keeps its last score, so that n stays the same from turn to turn. Bars are 95 %
    intervals over {tasks}. At most {turns}. {held}"""
    return of.scores.filter(pl.col("mean").is_not_null()).iter_rows(named=True)


# --- Personas ------------------------------------------------------------------------------------


def _personas_finding(data: pl.DataFrame, of: Evidence) -> str:
    sums = data.filter(pl.col("n") > 0).group_by("persona").agg(pl.col("successes", "n").sum())
    rates = {r["persona"]: r["successes"] / r["n"] for r in sums.iter_rows(named=True)}
    n = int(sums.get_column("n").sum())
    if n < SMALL or len(rates) < 2:
        done = int(sums.get_column("successes").sum())
        return f"{done} of {counted(n, 'finished episode')} ended in success"
    low, high = extremes(rates.values())
    if low == high:
        return f"Every persona succeeds in {percent(low)} of its episodes"
    personas = _study(of).personas
    best = listed([spoken(p) for p in personas if rates.get(p) == high])
    worst = listed([spoken(p) for p in personas if rates.get(p) == low])
    return f"Success runs from {percent(low)} ({worst}) to {percent(high)} ({best}) of episodes"


def _draw_personas(data: pl.DataFrame, of: Evidence) -> look.Drawing:
    study, benchmarks = _study(of), _benchmarks(data)
    data = data.with_columns(
        test=pl.col("benchmark").replace(_BENCHMARKS),
        who=pl.col("persona").str.replace_all("_", " "),
        note=pl.format("{}/{}", "successes", "n"),
    )
    across = alt.Axis(labelAngle=-35, domain=False, ticks=False)
    rows = [spoken(p) for p in study.personas]
    base = alt.Chart().encode(
        x=alt.X("condition:N", sort=list(study.conditions), title=None, axis=across),
        y=alt.Y("who:N", sort=rows, title=None, axis=look.NAMES),
    )
    scale = alt.Scale(domain=[0, 1], range=[0.05, 0.95])
    cells = base.mark_rect(stroke=look.PAPER, strokeWidth=2).encode(
        color=alt.ColorValue(look.ACCENT),
        opacity=alt.Opacity("rate:Q", title="success rate", scale=scale, legend=None),
        tooltip=look.tips(
            *("test:N=benchmark", "who:N=persona", "condition:N", "successes:Q", "n:Q=episodes")
        ),
    )
    text = base.mark_text(fontSize=11, aria=False).encode(
        text=alt.Text("note:N"),
        color=alt.ColorValue(
            look.INK, condition={"test": "datum.rate > 0.72", "value": look.PAPER}
        ),
    )
    return look.faceted(
        cells, text, data=data, by="test", order=benchmarks, width=alt.Step(48), step=28, spacing=24
    )


@figure(
    "personas",
    finding=_personas_finding,
    without="No episode was finished, so there is no success rate.",
    method="Plain counts over all finished episodes, tutored or not; no interval is drawn.",
    alternative=lambda data, of: "; ".join(
        f"{r['benchmark']}, {r['persona']}, {r['condition']}: {r['successes']} of {r['n']}"
        for r in data.filter(pl.col("n") > 0).iter_rows(named=True)
    ),
    draw=_draw_personas,
)
def personas_figure(of: Evidence) -> Iterator[Row]:
    """Successful episodes of all finished ones, per persona and condition; success is a judge score
    at the threshold or above, and for programs also passing tests. {held}"""
    known = any(row.rate.n for row in of.successes)
    for row in of.successes if known else ():
        yield {
            "benchmark": row.benchmark,
            "persona": row.persona,
            "condition": row.condition,
            "successes": row.successes,
            "n": row.rate.n,
            "rate": row.rate.value,
        }


# --- Contrasts -----------------------------------------------------------------------------------


@figure(
    "contrasts",
    finding=lambda data, of: f"Do the conditions differ? {contrast_headline(of.contrasts)}",
    method="The table has pairs, tasks and p-values, corrected together.",
    alternative="{outcome}, {contrast}: {difference:+.2f}",
    draw=look.about_zero,
    kinds={"lower": pl.Float64, "upper": pl.Float64},
    bars=lambda data, of: look.bars_about_zero(data, "tasks"),
)
def contrasts_figure(of: Evidence) -> Iterator[Row]:
    """Mean difference over pairs of the same task and persona, about zero. {bars} {as_logged}."""
    yield from rows_about_zero(of.contrasts, lambda one: one.measured.removeprefix("in "))
