"""Charts of a group's report: thresholds, and the balance of acts over a lesson."""

from collections.abc import Sequence

import altair as alt
import polars as pl

from tutorsim.analysis.charts.figure import ACCENT, INK, Drawing, Figure, absent, inline, unchecked
from tutorsim.analysis.systems.group.lesson_tables import WINDOW, acts_of, rolling_task_share
from tutorsim.records.group import LessonRecord

_PERCENT = alt.Axis(format=".0%")
_SHARE = alt.Scale(domain=[0, 1])


def threshold_figure(data: pl.DataFrame) -> Figure:
    """Line: share of cycles with a speaker at each threshold, beside the authors' public files.

    Args:
        data: `threshold`, `somebody_speaks`, `public_files`, as the report's table has them.
    """
    rows = data.select(
        pl.col("threshold").cast(pl.Float64), "somebody_speaks", "public_files"
    ).unpivot(index="threshold", variable_name="source", value_name="share")
    rows = rows.with_columns(
        pl.col("source").replace({"somebody_speaks": "this run", "public_files": "public files"})
    ).drop_nulls()
    ends = data["somebody_speaks"].to_list()
    if not ends or ends[0] is None:
        return absent("thresholds", "No cycle has scores, so no threshold can be moved.")
    return Figure(
        name="thresholds",
        finding=f"With a threshold of {data['threshold'][0]} somebody speaks in "
        f"{100 * ends[0]:.0f} % of cycles, with {data['threshold'][-1]} in {100 * ends[-1]:.0f} %.",
        caption="Share of logged cycles with a speaker, everything said before held fixed. Public "
        "files: the authors' 610 turns, computed by us.",
        method="Recounted exactly from logged scores with the run's other settings.",
        data=rows,
        chart=_lines(rows, "threshold:Q", "Threshold", "source:N"),
        alternative="; ".join(
            f"{row['source']} at {row['threshold']}: {100 * row['share']:.0f} %"
            for row in rows.iter_rows(named=True)
        ),
    )


def balance_figure(lessons: Sequence[LessonRecord]) -> Figure:
    """Lines: the share of task acts in a rolling window over the lesson, one line per condition."""
    rows = _rolling(lessons)
    if rows.is_empty():
        return absent("balance", "No lesson has enough coded messages for a rolling window.")
    means = rows.group_by("condition", maintain_order=True).agg(pl.col("share").mean())
    said = ", ".join(f"{name} {100 * share:.0f} %" for name, share in means.iter_rows())
    return Figure(
        name="balance",
        finding=f"Of the acts in a window, those about the task are on average: {said}.",
        caption=f"Share of task acts among every {WINDOW} coded messages in a row, by the place of "
        "the window in its lesson (0 first, 1 last, in tenths), mean over lessons; coder 1. The "
        "rest is social-emotional.",
        method="Bales' categories 4 to 9 are about the task.",
        data=rows,
        chart=_lines(rows, "place:Q", "Place in the lesson", "condition:N"),
        alternative="; ".join(
            f"{row['condition']} at {row['place']}: {100 * row['share']:.0f} %"
            for row in rows.iter_rows(named=True)
        ),
    )


def _rolling(lessons: Sequence[LessonRecord]) -> pl.DataFrame:
    """`condition`, `place` in tenths of the lesson, mean `share`."""
    rows = []
    for lesson in lessons:
        shares = rolling_task_share(acts_of(lesson, "coder_1"))
        last = max(len(shares) - 1, 1)
        rows += [(lesson.condition, round(i / last, 1), share) for i, share in enumerate(shares)]
    schema = {"condition": pl.String(), "place": pl.Float64(), "share": pl.Float64()}
    return (
        pl.DataFrame(rows, schema=schema, orient="row")
        .group_by("condition", "place", maintain_order=True)
        .agg(pl.col("share").mean())
        .sort("condition", "place")
    )


@unchecked
def _lines(rows: pl.DataFrame, x: str, title: str, colour: str) -> Drawing:
    base = alt.Chart(inline(rows), width=520, height=240).encode(
        x=alt.X(x, title=title),
        y=alt.Y("share:Q", title="Share", axis=_PERCENT, scale=_SHARE),
        color=alt.Color(colour, title=None, scale=alt.Scale(range=[ACCENT, INK])),
        strokeDash=alt.StrokeDash(colour, title=None),
        shape=alt.Shape(colour, legend=None),
    )
    return alt.layer(base.mark_line(), base.mark_point(filled=True, size=55))
