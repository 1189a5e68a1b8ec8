"""Charts of oversight: scores, the adaptive debate, confidence, and what other rules delivered."""

from collections.abc import Iterator
from typing import Any, Final

import altair as alt
import polars as pl

from tutorsim.analysis.charts import figures_forms_and_colours as look
from tutorsim.analysis.pages.decorators_to_declare_tables_and_charts import Row, figure
from tutorsim.analysis.pages.words_and_safe_text import counted, extremes, percent, spoken
from tutorsim.analysis.statistics import by_key
from tutorsim.analysis.systems.contrasts_of_any_sides_in_words_and_of_runs import (
    contrast_headline,
    rows_about_zero,
)
from tutorsim.analysis.systems.oversight.debate_effect_calibration_aggregation_skip_curve import (
    AdaptiveCurve,
    AdaptivePoint,
)
from tutorsim.analysis.systems.oversight.guidance_of_audited_replies_also_under_other_rules import (
    DELIVERED,
)
from tutorsim.analysis.systems.oversight.label_accuracy import BASELINES, HEADLINE
from tutorsim.analysis.systems.oversight.page_data_and_strict_or_lenient_rereading import Evidence
from tutorsim.records.oversight import LABELS


def _below(data: pl.DataFrame, of: Evidence) -> str:
    below = data.filter(pl.col("accuracy") < pl.col("trivial")).height
    return (
        f"{below} of {counted(data.height, 'accuracy', plural='accuracies')} "
        f"{'is' if below == 1 else 'are'} below that of one label for every reply"
    )


def _beside_trivial(data: pl.DataFrame, of: Evidence) -> look.Drawing:
    base = alt.Chart().encode(y=alt.Y("condition:N", sort=None, title=None, axis=look.NAMES))
    bars = base.mark_bar(height=7, opacity=0.4, color=look.ACCENT).encode(
        x=alt.X("lower:Q", title="accuracy", scale=look.ONE, axis=look.PERCENT),
        x2="upper:Q",
    )
    dot = base.mark_point(filled=True, size=60, color=look.INK, opacity=1).encode(
        x="accuracy:Q",
        tooltip=look.tips("condition:N", "label:N", "accuracy:Q|.3f", "trivial:Q|.3f", "items:Q"),
    )
    line = alt.Chart().mark_rule(color=look.INK, strokeDash=[4, 3]).encode(x="trivial:Q")
    return look.faceted(bars, line, dot, data=data, by="label", order=list(LABELS))


@figure(
    "accuracy",
    finding=_below,
    method="An unjudged item is wrong for every score.",
    alternative="{label}, {condition}: {accuracy:.3f}, one label for every reply {trivial:.3f}",
    draw=_beside_trivial,
    trivial=lambda data, of: " and ".join(
        f"“{name}” for {label}" for name, (label, _) in BASELINES.items()
    ),
)
def accuracy(of: Evidence) -> Iterator[Row]:
    """Share of replies that each condition labels right, with its 95 % interval over dialogues. The
    dashed line is a trivial baseline, which gives every reply one label: {trivial}."""
    trivial = {
        metric: one.value for each in of.trivial.values() for metric, one in each.metrics.items()
    }
    for label in LABELS:
        for condition, one in of.scores.items():
            found = one.metrics[f"{label}_accuracy"]
            yield {
                "label": label,
                "condition": condition,
                "accuracy": found.value,
                "lower": found.low,
                "upper": found.high,
                "trivial": trivial[f"{label}_accuracy"],
                "items": one.items,
            }


def _ends(data: pl.DataFrame, of: Evidence) -> str:
    least, most = extremes(data["headline"])
    return f"By condition, the headline lies between {least:.3f} and {most:.3f}"


def _dots(data: pl.DataFrame, of: Evidence) -> look.Drawing:
    base = alt.Chart().encode(y=alt.Y("condition:N", sort=None, title=None, axis=look.NAMES))
    bar = base.mark_bar(height=7, opacity=0.4, color=look.ACCENT).encode(
        x=alt.X("lower:Q", title="headline", scale=look.ONE), x2="upper:Q"
    )
    numbers = [f"{name}:Q|.3f" for name in ("headline", "lower", "upper")]
    dot = base.mark_point(filled=True, size=60, color=look.INK, opacity=1).encode(
        x=alt.X("headline:Q", title="headline", scale=look.ONE),
        tooltip=look.tips("condition:N", *numbers, "items:Q"),
    )
    return look.layered(bar, dot, data=look.inline(data), width=420, height=alt.Step(22))


@figure(
    "scores",
    finding=_ends,
    method="An unjudged item is wrong for every score.",
    alternative="{condition}: {headline:.3f}",
    draw=_dots,
    what=HEADLINE,
)
def scores(of: Evidence) -> Iterator[Row]:
    """Headline: {what}. Bars are 95 % intervals over dialogues, if they are enough; their overlap
    says little, as all conditions label the same replies: see the paired differences."""
    found = {name: one.metrics["headline"] for name, one in of.scores.items()}
    for name in sorted(found, key=lambda name: -found[name].value):
        yield {
            "condition": name,
            "headline": found[name].value,
            "lower": found[name].low,
            "upper": found[name].high,
            "items": of.scores[name].items,
        }


@figure(
    "differences",
    finding=lambda data, of: f"Do the conditions differ? {contrast_headline(of.differences)}",
    method="The table has items and p-values, corrected together.",
    alternative="{contrast}: {difference:+.2f}",
    draw=look.about_zero,
    kinds={"lower": pl.Float64, "upper": pl.Float64},
    bars=lambda data, of: look.bars_about_zero(data, "dialogues"),
)
def differences(of: Evidence) -> Iterator[Row]:
    """Difference of the headline on the items that both conditions label, about zero. {bars}"""
    yield from rows_about_zero(of.differences, lambda one: "headline, first − second")


def _scored_points(curve: AdaptiveCurve) -> list[AdaptivePoint]:
    """Points with a headline: without gold there is none, and no chart."""
    return [point for point in curve.points if point.headline == point.headline]


def _saved(data: pl.DataFrame, of: Any) -> str:
    full, *_, quick = _scored_points(of.adaptive)
    saved = percent(quick.calls_saved / max(of.adaptive.calls, 1))
    return (
        f"Without a debate {saved} of the calls are saved, and the headline goes from "
        f"{full.headline:.3f} to {quick.headline:.3f}"
    )


_SERIES: Final = {
    "headline": look.INK,
    "debates skipped": look.ACCENT,
    "calls saved": look.LOSS,
    "tokens saved": look.PLAIN,
}


def _steps(data: pl.DataFrame, of: Evidence) -> look.Drawing:
    """Lines told apart by colour, dashes and shapes."""
    names = alt.Scale(domain=list(_SERIES))
    base = alt.Chart().encode(
        x=alt.X("threshold:Q", title="skip the debate above this confidence", scale=look.ONE),
        y=alt.Y("share:Q", title="headline, and shares", scale=look.ONE),
        color=look.coloured("series", list(_SERIES), list(_SERIES.values()), title=None),
    )
    lines = base.mark_line(interpolate="step-after").encode(
        strokeDash=alt.StrokeDash("series:N", title=None, scale=names)
    )
    marks = base.mark_point(filled=True, size=45, opacity=1).encode(
        shape=alt.Shape("series:N", title=None, scale=names),
        tooltip=look.tips("series:N", "threshold:Q|.2f", "share:Q|.3f"),
    )
    return look.layered(lines, marks, data=look.inline(data), width=480, height=260)


@figure(
    "adaptive",
    finding=_saved,
    method="Quick labels were logged before every debate, which was then held anyway.",
    alternative=lambda data, of: "; ".join(
        f"threshold {p.threshold:g}: {p.skipped} skipped, headline {p.headline:.3f}, "
        f"{p.calls_saved} calls saved"
        for p in _scored_points(of.adaptive)
    ),
    draw=_steps,
    items=lambda data, of: counted(of.adaptive.items, "item"),
)
def adaptive(of: Evidence) -> Iterator[Row]:
    """Exact for every threshold on {items}: the debate is skipped if the lead's quick confidence is
    above it. At the right every debate is held; at the left the quick labels stand. Calls and
    tokens are shares of those of the run."""
    curve = of.adaptive
    if curve is None:
        return
    for point in reversed(_scored_points(curve)):
        shares = {
            "headline": point.headline,
            "debates skipped": point.skipped / curve.items,
            "calls saved": point.calls_saved / max(curve.calls, 1),
            "tokens saved": point.tokens_saved / max(curve.tokens, 1),
        }
        for series, share in shares.items():
            yield {"series": series, "threshold": max(point.threshold, 0.0), "share": share}


def _gap(data: pl.DataFrame, of: Evidence) -> str:
    gap = data.select(((pl.col("confidence") - pl.col("right")) * pl.col("items")).sum()).item()
    return (
        f"The lead's stated confidence is on average {abs(gap) / data['items'].sum():.2f} "
        f"{'above' if gap > 0 else 'below'} the share of items that it labels right"
    )


def _beside_diagonal(data: pl.DataFrame, of: Evidence) -> look.Drawing:
    ends = alt.Axis(format=".0%", values=[0, 0.5, 1])
    diagonal = alt.Chart().mark_rule(color=look.MUTED, strokeDash=[4, 4])
    line = diagonal.encode(x=alt.datum(0), x2=alt.datum(1), y=alt.datum(0), y2=alt.datum(1))
    marks = alt.Chart().mark_point(filled=True, color=look.ACCENT, opacity=0.85)
    marks = marks.encode(
        x=alt.X("confidence:Q", title="stated confidence", scale=look.ONE, axis=ends),
        y=alt.Y("right:Q", title="both labels right", scale=look.ONE, axis=look.PERCENT),
        size=alt.Size("items:Q", legend=None, scale=alt.Scale(range=[30, 400])),
        tooltip=look.tips("condition:N", "confidence:Q|.2f", "right:Q|.2f", "items:Q"),
    )
    panel = {"width": 180, "height": 150, "spacing": 40, "columns": 3}
    return look.faceted(line, marks, data=data, by="condition", order=None, **panel)


@figure(
    "calibration",
    finding=_gap,
    method="Unjudged items state no confidence.",
    alternative="{condition}: stated {confidence:.2f}, right {right:.2f} of {items}",
    draw=_beside_diagonal,
    items=lambda data, of: counted(data["items"].sum(), "item"),
)
def calibration(of: Evidence) -> Iterator[Row]:
    """Each dot is a fifth of the scale of confidence, its area by items; {items} in all. On the
    line, confidence is what comes true; below it, the lead is too sure. Right means both
    labels."""
    for condition, one in of.calibrations:
        yield {
            "condition": condition,
            "confidence": one.stated,
            "right": one.right,
            "items": one.items,
        }


_OUTCOMES: Final = {"no_guidance": ("no guidance", look.LOSS), "guides": ("guides", look.ACCENT)}


def _exact(data: pl.DataFrame, of: Evidence) -> str:
    others = data.filter(pl.col("rule") != DELIVERED)
    exact = others.filter(pl.col("least") == pl.col("most")).height
    turns = sum({one.logged: one.turns for _, one in of.predicted}.values())
    return (
        f"What other rules would have delivered on {counted(turns, 'turn')}: "
        f"{exact} of {counted(others.height, 'share')} known exactly, the others as ranges"
    )


def _ranges(data: pl.DataFrame, of: Evidence) -> look.Drawing:
    names, colours = zip(*_OUTCOMES.values(), strict=True)
    base = alt.Chart().encode(
        y=alt.Y("rule:N", sort=look.names_in(data, "rule"), title=None, axis=look.NAMES),
        yOffset=alt.YOffset("outcome:N", sort=list(names)),
        color=look.coloured("outcome", names, colours, title=None),
        tooltip=look.tips("rule:N", "outcome:N", "least:Q|.2f", "most:Q|.2f", "turns:Q"),
    )
    x = alt.X("least:Q", title="share of turns", scale=look.ONE, axis=look.PERCENT)
    shape = alt.Shape("outcome:N", title=None, scale=alt.Scale(domain=list(names)))
    bars = base.mark_bar(height=7, opacity=0.6).encode(x=x, x2="most:Q")
    points = base.mark_point(filled=True, size=45, opacity=1).encode(x=x, shape=shape)
    exact = points.transform_filter("datum.least == datum.most")
    return look.faceted(
        *(bars, exact), data=data, by="format", order=None, width=300, step=13, spacing=30
    )


@figure(
    "rules",
    finding=_exact,
    method="The recount of the audited run says who could have won under each rule; the labels are "
    "those of this audit.",
    alternative="{format}, {rule}, {outcome}: {least:.2f} to {most:.2f}",
    draw=_ranges,
)
def rules(of: Evidence) -> Iterator[Row]:
    """Shares of turns whose reply gives no guidance (none, or the answer itself), or guides. A bar
    holds every value that the ballots allow; a dot is a share without a range. {cascade}"""
    several = len({by for by, _ in of.predicted}) > 1
    for by, one in of.predicted:
        for name, (outcome, _) in _OUTCOMES.items():
            least, most = one.shares[name]
            yield {
                "format": f"voted {one.logged}" + (f", by {by}" if several else ""),
                "rule": spoken(one.rule),
                "outcome": outcome,
                "least": least,
                "most": most,
                "turns": one.turns,
            }


_DOES: Final = {
    "guides": look.ACCENT,
    "hints": look.PLAIN,
    "no guidance": look.LOSS,
    "no label": look.GRID,
}
"""What a delivered reply does, by the label of its guidance."""


def _says_of_replies(data: pl.DataFrame, of: Evidence) -> str:
    without = data.filter(pl.col("does") == "no guidance")["replies"].sum()
    return f"{without} of {int(data['replies'].sum())} labelled replies give no guidance"


def _bars_of_replies(data: pl.DataFrame, of: Evidence) -> look.Drawing:
    most = max(data.group_by("voted").agg(pl.col("replies").sum())["replies"])
    base = alt.Chart().encode(
        y=alt.Y("voted:N", sort=None, title=None, axis=look.NAMES),
        x=alt.X("replies:Q", stack="zero", axis=look.counts_axis(most)),
        order=alt.Order("place:Q"),
        color=look.coloured("does", list(_DOES), list(_DOES.values()), title=None),
        tooltip=look.tips("voted:N", "does:N", "replies:Q"),
    )
    return look.layered(base.mark_bar(height=22), data=look.inline(data), height=alt.Step(34))


@figure(
    "delivered",
    finding=_says_of_replies,
    method="By this audit's labels, of replies that were delivered and of drafts that were not.",
    alternative="voted {voted}, {does}: {replies}",
    draw=_bars_of_replies,
)
def delivered(of: Evidence) -> Iterator[Row]:
    """Labelled replies by what the student's tutors voted by, and by what the reply does: it guides
    (label 2), hints (label 1), or gives no guidance. Without guidance (label 0) is also a reply
    that gives the answer itself."""
    names = {0: "no guidance", 1: "hints", 2: "guides"}
    audited = by_key(
        (one.audited.condition, names[one.label.guidance] if one.label else "no label")
        for some in of.conditions.values()
        for one in some
        if one.audited is not None
    )
    for voted, said in audited.items():
        for place, does in enumerate(_DOES):
            if does in said:
                yield {"voted": voted, "does": does, "replies": said.count(does), "place": place}
