"""What was logged, beside what asking the same prompts again changes by itself."""

from typing import Final

import altair as alt
import polars as pl

from tutorsim.analysis.charts.figure import Drawing, Figure, absent, inline, unchecked
from tutorsim.analysis.charts.number_words import SMALL, counted, percent
from tutorsim.analysis.charts.style import ACCENT, PAPER, PLAIN

__all__ = ["noise_figure"]

_SOURCES: Final = ("logged", "re-asked")


def noise_figure(frame: pl.DataFrame, *, without: str = "") -> Figure:
    """Points with intervals: flip and shift as logged, beside those of re-asked panels.

    Args:
        frame: `protocol`, `quantity` (`flip`, `leader` or `shift`), `source` (`logged` or
            `re-asked`), `turns`, `value`, `low`, `high` (null without an interval).
        without: Why there is no floor, for a source without a retest.
    """
    if frame.is_empty():
        why = f": {without}" if without else ": no vote was asked again"
        return absent("noise", f"No noise floor to set the votes beside{why}.")
    return Figure(
        name="noise",
        finding=_finding(frame),
        caption=(
            "As logged (filled) beside re-asked (open): two panels that answer one and the same "
            "prompt, each voter with two different askings of its own. "
            f"{_lines(frame)} The turns are those whose votes were asked again."
        ),
        method=(
            "Flip: the leader of the first vote is not the delivered winner, as logged. Leader: "
            "not the leader of the final vote, so without tie rounds, as in the re-asked panels. "
            "Shift: half the distance between vote shares. What a re-asked panel changes, "
            "deliberation had no part in."
        ),
        data=frame,
        chart=_points(frame),
        alternative="; ".join(
            f"{r['protocol']}, {r['quantity']}, {r['source']}: {r['value']:.2f}"
            for r in frame.iter_rows(named=True)
        ),
    )


def _lines(frame: pl.DataFrame) -> str:
    """What the lines are, where one is drawn."""
    drawn = frame.get_column("low").is_not_null().any()
    return "Lines: 95 % intervals over tasks." if drawn else "Too few tasks for intervals."


def _finding(frame: pl.DataFrame) -> str:
    """Leaders that differ, over all protocols: like with like, without tie rounds."""
    leader = frame.filter(pl.col("quantity") == "leader")
    means = {
        source: leader.filter(pl.col("source") == source).select(
            (pl.col("value") * pl.col("turns")).sum()
        )
        for source in _SOURCES
    }
    n = int(leader.filter(pl.col("source") == "logged").get_column("turns").sum())
    if not n:
        return "No turn whose votes were asked again has a first vote to compare"
    logged, again = (float(means[source].item()) for source in _SOURCES)
    if n < SMALL:
        return (
            f"Leaders of the two votes differ in {round(logged)} of {counted(n, 'turn')} as "
            f"logged, where re-asking alone gives {again:.1f} on average"
        )
    return (
        f"Leaders of the two votes differ in {percent(logged / n)} of {counted(n, 'turn')} as "
        f"logged; re-asking alone gives {percent(again / n)}"
    )


@unchecked
def _points(frame: pl.DataFrame) -> Drawing:
    protocols = frame.get_column("protocol").unique(maintain_order=True).to_list()
    quantities = frame.get_column("quantity").unique(maintain_order=True).to_list()
    axis = alt.Axis(domain=False, ticks=False)
    base = alt.Chart().encode(
        y=alt.Y("protocol:N", sort=protocols, title=None, axis=axis),
        yOffset=alt.YOffset("source:N", sort=list(_SOURCES)),
    )
    tips = [
        alt.Tooltip("protocol:N"),
        alt.Tooltip("quantity:N"),
        alt.Tooltip("source:N", title="figures"),
        alt.Tooltip("value:Q", format=".2f"),
        alt.Tooltip("low:Q", title="from", format=".2f"),
        alt.Tooltip("high:Q", title="to", format=".2f"),
        alt.Tooltip("turns:Q"),
    ]
    lines = (
        base.transform_filter("isValid(datum.low)")
        .mark_rule(color=PLAIN, strokeWidth=1.5)
        .encode(x=alt.X("low:Q"), x2=alt.X2("high:Q"), tooltip=tips)
    )
    dots = base.mark_point(size=70, filled=True, stroke=ACCENT, strokeWidth=2, opacity=1).encode(
        x=alt.X("value:Q", title=None, scale=alt.Scale(domain=[0, 1]), axis=_AXIS),
        fill=alt.Fill(
            "source:N",
            title=None,
            sort=list(_SOURCES),
            scale=alt.Scale(domain=list(_SOURCES), range=[ACCENT, PAPER]),
            legend=alt.Legend(symbolStrokeColor=ACCENT, symbolStrokeWidth=2),
        ),
        tooltip=tips,
    )
    facet = alt.Facet("quantity:N", sort=quantities, title=None)
    return (
        alt.layer(lines, dots)
        .properties(data=inline(frame), width=180, height=alt.Step(18))
        .facet(facet=facet, columns=3, spacing=30)
    )


_AXIS: Final = alt.Axis(values=[0, 0.5, 1], format=".1f")
