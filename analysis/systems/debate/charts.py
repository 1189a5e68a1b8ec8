"""Charts of debates: every protocol on the same debates, and scores by the first turn of a vote."""

from collections.abc import Mapping, Sequence
from typing import Final

import altair as alt
import polars as pl

from tutorsim.analysis.charts.figure import Drawing, Figure, absent, inline, unchecked
from tutorsim.analysis.charts.number_words import counted, listed
from tutorsim.analysis.charts.style import ACCENT, INK, shades
from tutorsim.analysis.statistics.intervals_and_tests import Estimate
from tutorsim.analysis.systems.debate.experiments import Slope
from tutorsim.analysis.systems.debate.recounted import ProtocolRow, family

__all__ = ["protocols_figure", "rounds_figure"]

_SHAPES: Final = ["circle", "square", "triangle-up", "diamond"]


def protocols_figure(found: Mapping[str, Sequence[ProtocolRow]]) -> Figure:
    """Dots with intervals: the score of every protocol on the same debates, by variant."""
    rows = [
        (variant, row.rule.replace("_", " "), family(row.rule), *_place(row), row.debates)
        for variant, lines in found.items()
        for row in lines
        if row.debates
    ]
    if not rows:
        return absent("protocols", "No debate was recorded, so there is nothing to compare.")
    frame = pl.DataFrame(
        rows,
        schema=["variant", "protocol", "kind", "score", "lower", "upper", "debates"],
        orient="row",
        infer_schema_length=None,
    )
    exact = all(row.exact == row.debates for lines in found.values() for row in lines)
    return Figure(
        name="protocols",
        finding=_protocols_finding(frame, exact=exact),
        caption=(
            "Mean score of every protocol on the same debates, in percent; a protocol that does "
            "not apply to all of them has a smaller n in the table. "
            + (
                _overlap(frame)
                if exact
                else "Bars reach from the least to the largest score that the recording leaves."
            )
        ),
        method=(
            "Each protocol is applied to the logged flags, final answers and ballots, without a "
            "call."
        ),
        data=frame,
        chart=_protocols(frame),
        alternative="; ".join(
            f"{r['variant']}, {r['protocol']}: {r['lower']:.1f} to {r['upper']:.1f}"
            for r in frame.iter_rows(named=True)
        ),
    )


def _overlap(frame: pl.DataFrame) -> str:
    """What the bars are, where one is drawn."""
    if frame.filter(pl.col("lower") < pl.col("upper")).is_empty():
        return "No bars: no interval over tasks can be estimated, or all scores are alike."
    return (
        "Bars are 95 % intervals over tasks; their overlap says little, as all lines are of the "
        "same debates: see the paired differences."
    )


def _place(row: ProtocolRow) -> tuple[float | None, float, float]:
    """Score, lower and upper end of the bar."""
    if isinstance(row.score, Estimate):
        low, high = row.score.low, row.score.high
        value = row.score.value
        return value, value if low is None else low, value if high is None else high
    return None, row.low or 0.0, 100.0 if row.high is None else row.high


def _protocols_finding(frame: pl.DataFrame, *, exact: bool) -> str:
    debates = counted(int(frame.get_column("debates").max() or 0), "debate")  # type: ignore[arg-type]
    if not exact:
        return f"What the recording leaves open for each protocol, on up to {debates} a variant"
    first = frame.filter(pl.col("variant") == frame.get_column("variant")[0])
    of_all = first.filter(pl.col("debates") == pl.col("debates").max()).drop_nulls("score")
    scores = dict(of_all.select("protocol", "score").iter_rows())
    low, high = min(scores.values()), max(scores.values())
    if low == high:
        return f"The same {debates}: {low:.1f} percent under every protocol that applies to all"
    ends = [listed([n for n, score in scores.items() if score == end]) for end in (low, high)]
    return (
        f"The same {debates}: {low:.1f} percent right under {ends[0]}, {high:.1f} under {ends[1]}"
    )


@unchecked
def _protocols(frame: pl.DataFrame) -> Drawing:
    order = frame.get_column("protocol").unique(maintain_order=True).to_list()
    tips = [
        alt.Tooltip("protocol:N"),
        alt.Tooltip("score:Q", format=".1f"),
        alt.Tooltip("lower:Q", format=".1f"),
        alt.Tooltip("upper:Q", format=".1f"),
        alt.Tooltip("debates:Q"),
    ]
    base = alt.Chart().encode(
        y=alt.Y("protocol:N", sort=order, title=None, axis=alt.Axis(domain=False, ticks=False))
    )
    bar = base.mark_bar(height=7, opacity=0.4, color=ACCENT).encode(
        x=alt.X("lower:Q", title="score, percent", scale=alt.Scale(domain=[0, 100])),
        x2=alt.X2("upper:Q"),
        tooltip=tips,
    )
    dot = base.mark_point(filled=True, size=60, color=INK, opacity=1).encode(
        x=alt.X("score:Q"), tooltip=tips
    )
    return (
        alt.layer(bar, dot)
        .properties(data=inline(frame), width=300, height=alt.Step(20))
        .facet(facet=alt.Facet("variant:N", title=None), columns=2, spacing=30)
    )


def rounds_figure(slopes: Sequence[Slope]) -> Figure:
    """Lines: the score of each voting protocol by the turn in which votes begin."""
    rows = [
        (one.name, number, score, one.tasks)
        for one in slopes
        for number, score in sorted(one.points.items())
    ]
    if not rows:
        return absent("rounds", "No debate voted in every turn, so the turns cannot be compared.")
    frame = pl.DataFrame(rows, schema=["protocol", "turn", "score", "tasks"], orient="row")
    return Figure(
        name="rounds",
        finding=_rounds_finding(slopes),
        caption=(
            "Mean score in percent if votes begin after so many turns; every point of a line is of "
            f"the same debates of one variant, on {counted(slopes[0].tasks, 'task')}."
        ),
        method="Each debate voted in every format after every turn; the recount begins later.",
        data=frame,
        chart=_rounds(frame),
        alternative="; ".join(
            f"{r['protocol']}, first vote after turn {r['turn']}: {r['score']:.1f}"
            for r in frame.iter_rows(named=True)
        ),
    )


def _rounds_finding(slopes: Sequence[Slope]) -> str:
    """Lines whose slope has an interval without 0."""
    ends = [(s.slope.low, s.slope.high) for s in slopes if isinstance(s.slope, Estimate)]
    known = [(low, high) for low, high in ends if low is not None and high is not None]
    if not known:
        return "Whether the score falls with later votes cannot be said of so few tasks"
    lines = counted(len(known), "line")
    falls, rises = sum(high < 0 for _, high in known), sum(low > 0 for low, _ in known)
    if not falls + rises:
        return f"No change of the score with later votes is beyond chance, in any of {lines}"
    return f"With later votes the score falls in {falls} and rises in {rises} of {lines}"


@unchecked
def _rounds(frame: pl.DataFrame) -> Drawing:
    names = frame.get_column("protocol").unique(maintain_order=True).to_list()
    shapes = [_SHAPES[at % len(_SHAPES)] for at in range(len(names))]
    color = alt.Color(
        "protocol:N", sort=names, scale=alt.Scale(domain=names, range=shades(len(names)))
    )
    base = alt.Chart().encode(
        x=alt.X("turn:O", title="first vote after turn", axis=alt.Axis(labelAngle=0)),
        y=alt.Y("score:Q", title="score, percent", scale=alt.Scale(domain=[0, 100])),
        color=color,
    )
    dots = base.mark_point(filled=True, size=60, opacity=1).encode(
        shape=alt.Shape("protocol:N", sort=names, scale=alt.Scale(domain=names, range=shapes)),
        tooltip=[alt.Tooltip("protocol:N"), alt.Tooltip("turn:O"), alt.Tooltip("score:Q")],
    )
    return alt.layer(base.mark_line(opacity=0.6), dots).properties(
        data=inline(frame), width=420, height=220
    )
