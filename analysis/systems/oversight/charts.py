"""Charts of oversight: scores, the adaptive debate, confidence, and what other rules delivered."""

from collections.abc import Mapping, Sequence
from typing import Final

import altair as alt
import polars as pl

from tutorsim.analysis.charts.figure import CASCADE, Drawing, Figure, inline, unchecked
from tutorsim.analysis.charts.number_words import counted, percent
from tutorsim.analysis.charts.style import ACCENT, INK, LOSS, MUTED, PLAIN
from tutorsim.analysis.statistics.intervals_and_tests import Estimate
from tutorsim.analysis.systems.oversight.debate_diagnostics import Calibration
from tutorsim.analysis.systems.oversight.delivered_guidance import Predicted
from tutorsim.analysis.systems.oversight.label_scores import HEADLINE
from tutorsim.analysis.systems.oversight.other_aggregations import AdaptiveCurve
from tutorsim.analysis.systems.oversight.scores_by_group import Evaluation

__all__ = ["adaptive_figure", "calibration_figure", "rules_figure", "scores_figure"]

_ONE: Final = alt.Scale(domain=[0, 1])
_PERCENT: Final = alt.Axis(format=".0%", values=[0, 0.25, 0.5, 0.75, 1])
_ENDS: Final = alt.Axis(format=".0%", values=[0, 0.5, 1])
_NAMES: Final = alt.Axis(domain=False, ticks=False)
_DELIVERED: Final = "(delivered)"


def _schema(texts: str, *, numbers: str, counts: str = "") -> pl.Schema:
    names = {name: pl.String() for name in texts.split()}
    values = {name: pl.Float64() for name in numbers.split()}
    return pl.Schema({**names, **values, **{name: pl.Int64() for name in counts.split()}})


# --- Scores ---------------------------------------------------------------------------------


def scores_figure(found: Mapping[str, Evaluation]) -> Figure | None:
    """Dots with intervals: the headline by condition; `None` without gold."""
    known = {name: one.metrics["headline"] for name, one in found.items()}
    rows = [
        (name, one.value, one.low, one.high, found[name].items)
        for name, one in known.items()
        if isinstance(one, Estimate)
    ]
    if not rows:
        return None
    schema = _schema("condition", numbers="headline lower upper", counts="items")
    data = pl.DataFrame(rows, schema=schema, orient="row").sort("headline", descending=True)
    best, worst = data.row(0, named=True), data.row(-1, named=True)
    return Figure(
        name="scores",
        finding=f"The headline goes from {worst['headline']:.3f} ({worst['condition']}) to "
        f"{best['headline']:.3f} ({best['condition']})",
        caption=f"Headline: {HEADLINE}. Bars are 95 % intervals over dialogues, if they are "
        "enough; their overlap says little, as all conditions label the same replies: see the "
        "paired differences.",
        method="An unjudged item is wrong for every score.",
        data=data,
        chart=_scores(data),
        alternative="; ".join(
            f"{r['condition']}: {r['headline']:.3f}" for r in data.iter_rows(named=True)
        ),
    )


@unchecked
def _scores(data: pl.DataFrame) -> Drawing:
    tips = [alt.Tooltip(f"{name}:Q", format=".3f") for name in ("headline", "lower", "upper")]
    base = alt.Chart().encode(y=alt.Y("condition:N", sort=None, title=None, axis=_NAMES))
    bar = base.mark_bar(height=7, opacity=0.4, color=ACCENT).encode(
        x=alt.X("lower:Q", title="headline", scale=_ONE), x2=alt.X2("upper:Q")
    )
    dot = base.mark_point(filled=True, size=60, color=INK, opacity=1).encode(
        x=alt.X("headline:Q", title="headline", scale=_ONE),
        tooltip=[alt.Tooltip("condition:N"), *tips, alt.Tooltip("items:Q")],
    )
    return alt.layer(bar, dot).properties(data=inline(data), width=420, height=alt.Step(22))


# --- The adaptive debate --------------------------------------------------------------------

_SERIES: Final = {
    "headline": INK,
    "debates skipped": ACCENT,
    "calls saved": LOSS,
    "tokens saved": PLAIN,
}


def adaptive_figure(curve: AdaptiveCurve) -> Figure | None:
    """Steps: score, skipped debates, saved calls and tokens at every threshold.

    `None` without gold: what a saving costs cannot be said then.
    """
    points = [point for point in curve.points if point.headline == point.headline]
    if not points:
        return None
    rows = [
        (name, max(point.threshold, 0.0), value)
        for point in reversed(points)
        for name, value in {
            "headline": point.headline,
            "debates skipped": point.skipped / curve.items,
            "calls saved": point.calls_saved / max(curve.calls, 1),
            "tokens saved": point.tokens_saved / max(curve.tokens, 1),
        }.items()
    ]
    data = pl.DataFrame(rows, schema=_schema("series", numbers="threshold share"), orient="row")
    full, quick = points[0], points[-1]
    saved = percent(quick.calls_saved / max(curve.calls, 1))
    return Figure(
        name="adaptive",
        finding=f"Without a debate {saved} of the calls are saved, and the headline goes from "
        f"{full.headline:.3f} to {quick.headline:.3f}",
        caption=f"Exact for every threshold on {counted(curve.items, 'item')}: the debate is "
        "skipped if the lead's quick confidence is above it. At the right every debate is held; "
        "at the left the quick labels stand. Calls and tokens are shares of those of the run.",
        method="Quick labels were logged before every debate, which was then held anyway.",
        data=data,
        chart=_adaptive(data),
        alternative="; ".join(
            f"threshold {point.threshold:g}: {point.skipped} skipped, headline "
            f"{point.headline:.3f}, {point.calls_saved} calls saved"
            for point in points
        ),
    )


@unchecked
def _adaptive(data: pl.DataFrame) -> Drawing:
    names, colours = list(_SERIES), list(_SERIES.values())
    base = alt.Chart().encode(
        x=alt.X("threshold:Q", title="skip the debate above this confidence", scale=_ONE),
        y=alt.Y("share:Q", title="headline, and shares", scale=_ONE),
        color=alt.Color("series:N", title=None, scale=alt.Scale(domain=names, range=colours)),
    )
    lines = base.mark_line(interpolate="step-after").encode(
        strokeDash=alt.StrokeDash("series:N", title=None, scale=alt.Scale(domain=names))
    )
    dots = base.mark_point(filled=True, size=45, opacity=1).encode(
        shape=alt.Shape("series:N", title=None, scale=alt.Scale(domain=names)),
        tooltip=[
            alt.Tooltip("series:N"),
            alt.Tooltip("threshold:Q", format=".2f"),
            alt.Tooltip("share:Q", format=".3f"),
        ],
    )
    return alt.layer(lines, dots).properties(data=inline(data), width=480, height=260)


# --- Confidence -----------------------------------------------------------------------------


def calibration_figure(found: Mapping[str, Sequence[Calibration]]) -> Figure | None:
    """Dots beside the diagonal: stated confidence against both labels being right."""
    rows = [
        (condition, one.stated, one.right, one.items)
        for condition, bins in found.items()
        for one in bins
    ]
    if not rows:
        return None
    schema = _schema("condition", numbers="confidence right", counts="items")
    data = pl.DataFrame(rows, schema=schema, orient="row")
    items = int(data["items"].sum())
    gap = data.select(((pl.col("confidence") - pl.col("right")) * pl.col("items")).sum()).item()
    where = "above" if gap > 0 else "below"
    return Figure(
        name="calibration",
        finding=f"The lead's stated confidence is on average {abs(gap) / items:.2f} {where} the "
        "share of items that it labels right",
        caption=f"Each dot is a fifth of the scale of confidence, its area by items; "
        f"{counted(items, 'item')} in all. On the line, confidence is what comes true; "
        "below it, the lead is too sure. Right means both labels.",
        method="Unjudged items state no confidence.",
        data=data,
        chart=_calibration(data),
        alternative="; ".join(
            f"{r['condition']}: stated {r['confidence']:.2f}, right {r['right']:.2f} of "
            f"{r['items']}"
            for r in data.iter_rows(named=True)
        ),
    )


@unchecked
def _calibration(data: pl.DataFrame) -> Drawing:
    x = alt.X("confidence:Q", title="stated confidence", scale=_ONE, axis=_ENDS)
    y = alt.Y("right:Q", title="both labels right", scale=_ONE, axis=_PERCENT)
    line = (
        alt.Chart()
        .mark_rule(color=MUTED, strokeDash=[4, 4])
        .encode(x=alt.datum(0), x2=alt.datum(1), y=alt.datum(0), y2=alt.datum(1))
    )
    dots = (
        alt.Chart()
        .mark_point(filled=True, color=ACCENT, opacity=0.85)
        .encode(
            x=x,
            y=y,
            size=alt.Size("items:Q", legend=None, scale=alt.Scale(range=[30, 400])),
            tooltip=[
                alt.Tooltip("condition:N"),
                alt.Tooltip("confidence:Q", format=".2f"),
                alt.Tooltip("right:Q", format=".2f"),
                alt.Tooltip("items:Q"),
            ],
        )
    )
    return (
        alt.layer(line, dots)
        .properties(data=inline(data), width=180, height=150)
        .facet(facet=alt.Facet("condition:N", title=None), columns=3, spacing=40)
    )


# --- Other rules ----------------------------------------------------------------------------

_OUTCOMES: Final = {"gives_away": ("gives away", LOSS), "guides": ("guides", ACCENT)}


def rules_figure(found: Sequence[tuple[str, Predicted]]) -> Figure | None:
    """Ranges: what each rule would have delivered, by the format that was voted in.

    Args:
        found: Who labelled, and what a rule would have delivered.
    """
    if not found:
        return None
    several = len({labelled_by for labelled_by, _ in found}) > 1
    rows = [
        (place, rule, _OUTCOMES[name][0], *shares[name], one.turns)
        for labelled_by, one in found
        for place in [f"voted {one.logged}" + (f", by {labelled_by}" if several else "")]
        for rule, shares in _lines(one)
        for name in _OUTCOMES
    ]
    schema = _schema("format rule outcome", numbers="least most", counts="turns")
    data = pl.DataFrame(rows, schema=schema, orient="row")
    others = data.filter(pl.col("rule") != _DELIVERED)
    exact = others.filter(pl.col("least") == pl.col("most")).height
    turns = sum({one.logged: one.turns for _, one in found}.values())
    return Figure(
        name="rules",
        finding=f"What other rules would have delivered on {counted(turns, 'turn')}: "
        f"{exact} of {counted(others.height, 'share')} known exactly, the others as ranges",
        caption=f"Shares of turns whose reply gives the answer away, or guides. A bar holds every "
        f"value that the ballots allow; a dot is a share without a range. {CASCADE}",
        method="The recount of the audited run says who could have won under each rule; the "
        "labels are those of this audit.",
        data=data,
        chart=_rules(data),
        alternative="; ".join(
            f"{r['format']}, {r['rule']}, {r['outcome']}: {r['least']:.2f} to {r['most']:.2f}"
            for r in data.iter_rows(named=True)
        ),
    )


def _lines(one: Predicted) -> list[tuple[str, Mapping[str, tuple[float, float]]]]:
    """A rule's shares; before the first rule of a format, those of what was delivered."""
    first = [(_DELIVERED, one.delivered)] if one.rule == one.first_rule else []
    return [*first, (one.rule.replace("_", " "), one.shares)]


@unchecked
def _rules(data: pl.DataFrame) -> Drawing:
    rules = data["rule"].unique(maintain_order=True).to_list()
    names = [name for name, _ in _OUTCOMES.values()]
    colours = [colour for _, colour in _OUTCOMES.values()]
    base = alt.Chart().encode(
        y=alt.Y("rule:N", sort=rules, title=None, axis=_NAMES),
        yOffset=alt.YOffset("outcome:N", sort=names),
        color=alt.Color("outcome:N", title=None, scale=alt.Scale(domain=names, range=colours)),
        tooltip=[
            alt.Tooltip("rule:N"),
            alt.Tooltip("outcome:N"),
            alt.Tooltip("least:Q", format=".2f"),
            alt.Tooltip("most:Q", format=".2f"),
            alt.Tooltip("turns:Q"),
        ],
    )
    x = alt.X("least:Q", title="share of turns", scale=_ONE, axis=_PERCENT)
    bars = base.mark_bar(height=7, opacity=0.6).encode(x=x, x2=alt.X2("most:Q"))
    dots = (
        base.mark_point(filled=True, size=45, opacity=1)
        .encode(x=x, shape=alt.Shape("outcome:N", title=None, scale=alt.Scale(domain=names)))
        .transform_filter("datum.least == datum.most")
    )
    return (
        alt.layer(bars, dots)
        .properties(data=inline(data), width=300, height=alt.Step(13))
        .facet(facet=alt.Facet("format:N", title=None), columns=2, spacing=30)
    )
