"""What other rules would have elected, and how far the ballots tell."""

from typing import Final

import altair as alt
import polars as pl

from tutorsim.analysis.charts.figure import CASCADE, Drawing, Figure, absent, inline, unchecked
from tutorsim.analysis.charts.number_words import counted, percent
from tutorsim.analysis.charts.style import ACCENT, INK, PAPER, PLAIN, shades
from tutorsim.analysis.counting.rule_definitions import conventions_of
from tutorsim.vocabularies import PROTOCOLS

__all__ = ["UNSETTLED", "agreement_figure", "identification_figure"]

NO_VOTE: Final = "No turn was put to a vote"
UNSETTLED: Final = "not settled"
"""Named so wherever the exact set was too costly to find."""


def agreement_figure(
    frame: pl.DataFrame, *, ordered: bool = True, without: str = NO_VOTE
) -> Figure:
    """Intervals: share of turns in which a target rule elects the logged winner.

    Args:
        frame: `logged`, `target`, `turns`, `lower`, `upper`, `point` (shares in [0, 1] with ties
            going to the fallback order, `point` under the named projection), `lower_open`,
            `upper_open` (with ties left open) and `projection`; one row per pair.
        ordered: Whether an order is logged, to whose first a tie goes.
        without: Why there is no turn to compare.
    """
    if frame.is_empty():
        return absent("agreement", f"{without}, so no rule can agree with another.")
    ties = "ties going to the fallback order" if ordered else "a tie staying a tie"
    apart = (pl.col("lower") != pl.col("lower_open")) | (pl.col("upper") != pl.col("upper_open"))
    line = "" if frame.filter(apart).is_empty() else "; the thin line leaves ties open"
    return Figure(
        name="agreement",
        finding=_agreement_finding(frame),
        caption=(
            "Share of the turns logged under one protocol in which the other rule has the same "
            "winner. The bar is what the ballots allow: certainly at least its left end, possibly "
            f"up to its right end, {ties}{line}. "
            f"The dot is one named way to fill in the rest. {_conventions(frame)}{CASCADE}"
        ),
        method=(
            "A ballot fixes only part of what its voter would have cast in another format. The "
            "lower end counts turns where every completion elects the logged winner, the upper "
            "end those where some completion does. A tie under the other rule was never put to a "
            "tie round, so both readings of it are drawn. Assumes that a voter's preference is "
            "the same in every format."
        ),
        data=frame,
        chart=_intervals(frame),
        alternative="; ".join(
            f"{r['logged']} counted as {r['target']}: "
            f"{percent(r['lower'])} to {percent(r['upper'])}"
            for r in frame.iter_rows(named=True)
        ),
    )


def _conventions(frame: pl.DataFrame) -> str:
    """How the other rules count, where counts of the same name differ."""
    words = conventions_of(frame.get_column("target").unique())
    return f"{words} " if words else ""


def _agreement_finding(frame: pl.DataFrame) -> str:
    other = frame.filter((pl.col("logged") != pl.col("target")) & pl.col("target").is_in(PROTOCOLS))
    turns = int(other.get_column("turns").sum())
    if turns == 0:
        return "No protocol was recounted under another"
    low, high = (
        float((other.get_column(end) * other.get_column("turns")).sum()) / turns
        for end in ("lower", "upper")
    )
    if low == high:
        return f"Counted under another protocol, {percent(low)} of winners stay"
    return (
        f"Counted under another protocol, {percent(low)} to {percent(high)} of winners stay: "
        f"the ballots do not say more"
    )


@unchecked
def _intervals(frame: pl.DataFrame) -> Drawing:
    data, base = _panels(frame)
    tips = [
        *_PAIR_TIPS,
        alt.Tooltip("lower:Q", title="at least", format=".1%"),
        alt.Tooltip("upper:Q", title="at most", format=".1%"),
        alt.Tooltip("lower_open:Q", title="at least, ties open", format=".1%"),
        alt.Tooltip("upper_open:Q", title="at most, ties open", format=".1%"),
        alt.Tooltip("point:Q", title="projection", format=".1%"),
    ]
    across = alt.X(
        "lower:Q", title="share of turns", scale=alt.Scale(domain=[0, 1]), axis=_SHARE_AXIS
    )
    open_ties = base.mark_rule(color=ACCENT, strokeWidth=1).encode(
        x=alt.X("lower_open:Q"), x2=alt.X2("upper_open:Q"), tooltip=tips
    )
    bar = base.mark_bar(height=9, opacity=0.45, color=ACCENT).encode(
        x=across, x2=alt.X2("upper:Q"), tooltip=tips
    )
    ends = [
        base.mark_tick(color=ACCENT, thickness=2, height=13).encode(x=alt.X(end), tooltip=tips)
        for end in ("lower:Q", "upper:Q")
    ]
    dot = base.mark_point(filled=True, size=60, color=INK, opacity=1).encode(
        x=alt.X("point:Q"), tooltip=tips
    )
    return _by_protocol(alt.layer(open_ties, bar, *ends, dot), data)


def _panels(frame: pl.DataFrame) -> tuple[pl.DataFrame, alt.Chart]:
    """The frame with its panel and row names, and a chart with the rows set up."""
    counts = frame.group_by("logged", "target", maintain_order=True).agg(pl.col("turns").sum())
    totals = dict(counts.select("logged", "turns").iter_rows())
    data = frame.with_columns(
        row=pl.col("target").str.replace_all("_", " "),
        panel=pl.col("logged").replace_strict(
            {name: f"logged under {name}, {counted(n, 'turn')}" for name, n in totals.items()}
        ),
    )
    rows = data.get_column("row").unique(maintain_order=True).to_list()
    axis = alt.Axis(domain=False, ticks=False)
    base = alt.Chart().encode(y=alt.Y("row:N", sort=rows, title="counted as", axis=axis))
    return data, base


def _by_protocol(layers: Drawing, data: pl.DataFrame) -> Drawing:
    """One panel per logged protocol, two side by side."""
    panels = data.get_column("panel").unique(maintain_order=True).to_list()
    facet = alt.Facet("panel:N", sort=panels, title=None)
    return layers.properties(data=inline(data), width=_WIDTH, height=alt.Step(22)).facet(
        facet=facet, columns=2, spacing=38
    )


_WIDTH: Final = 270
_SHARE_AXIS: Final = alt.Axis(format=".0%", values=[0, 0.25, 0.5, 0.75, 1])
_PAIR_TIPS: Final = [
    alt.Tooltip("logged:N", title="logged"),
    alt.Tooltip("row:N", title="counted as"),
    alt.Tooltip("turns:Q"),
]


def identification_figure(frame: pl.DataFrame, *, ordered: bool = True) -> Figure:
    """Stacked bars: how many candidates may have won, per pair of rules.

    Args:
        frame: `logged`, `target`, `possible` (`1`, `2`, … or `not settled`), `turns`, `share`;
            one row per pair and number of possible winners, in order.
        ordered: Whether an order is logged, to whose first a tie goes.
    """
    ties = "A tie goes to the fallback order" if ordered else "A tie stays a tie"
    if frame.is_empty():
        return absent("identification", f"{NO_VOTE}, so nothing is left open.")
    one = _certain(frame)
    return Figure(
        name="identification",
        finding=_identification_finding(one),
        caption=(
            "How many candidates may have won under the other rule, per turn; the strongest shade "
            f"are turns with exactly one. {ties}; for Condorcet, nobody counts as a winner where "
            "there may be none. A case is a turn and another protocol. No voter is exempt from the "
            "assumption that preferences are the same in every format. "
            f"{_conventions(frame)}{CASCADE}"
        ),
        method=(
            "Possible winners are found exactly, over all combinations of ballots that agree with "
            "the ones cast. A turn too costly to settle is counted as not settled, never guessed."
        ),
        data=frame,
        chart=_widths(frame),
        alternative="; ".join(
            f"{r['logged']} counted as {r['target']}: one possible winner in {percent(r['share'])}"
            for r in one.iter_rows(named=True)
        ),
    )


def _certain(frame: pl.DataFrame) -> pl.DataFrame:
    """Share of turns with one possible winner, zero where no such row is there."""
    return frame.group_by("logged", "target", maintain_order=True).agg(
        share=pl.col("share").filter(pl.col("possible") == "1").sum(),
        turns=pl.col("turns").sum(),
    )


def _identification_finding(one: pl.DataFrame) -> str:
    other = one.filter((pl.col("logged") != pl.col("target")) & pl.col("target").is_in(PROTOCOLS))
    turns = int(other.get_column("turns").sum())
    if turns == 0:
        return "Each protocol is counted on its own ballots only, so every winner is certain"
    certain = float((other.get_column("share") * other.get_column("turns")).sum()) / turns
    never = other.filter(pl.col("share") == 0).height
    said = f"The ballots name one winner under another protocol in {percent(certain)} of cases"
    return f"{said}, and in none for {never} of {counted(other.height, 'pair')}" if never else said


@unchecked
def _widths(frame: pl.DataFrame) -> Drawing:
    names = frame.get_column("possible").unique().to_list()
    sizes = sorted((name for name in names if name != UNSETTLED), key=int)
    unsettled = [PLAIN] if UNSETTLED in names else []
    domain = [*sizes, *([UNSETTLED] if unsettled else [])]
    data, base = _panels(frame)
    data = data.with_columns(
        place=pl.col("possible").replace_strict({name: i for i, name in enumerate(domain)})
    )
    bars = base.mark_bar(height=16, stroke=PAPER, strokeWidth=1).encode(
        x=alt.X(
            "share:Q",
            title="share of turns",
            stack="zero",
            scale=alt.Scale(domain=[0, 1]),
            axis=_SHARE_AXIS,
        ),
        order=alt.Order("place:Q"),
        color=alt.Color(
            "possible:N",
            title="possible winners",
            sort=domain,
            scale=alt.Scale(domain=domain, range=[*shades(len(sizes)), *unsettled]),
        ),
        tooltip=[
            *_PAIR_TIPS,
            alt.Tooltip("possible:N", title="possible winners"),
            alt.Tooltip("share:Q", format=".1%"),
        ],
    )
    certain = base.mark_text(align="left", dx=5, color=PAPER, fontSize=11, aria=False).encode(
        x=alt.XDatum(0), text=alt.Text("share:Q", format=".0%")
    )
    certain = certain.transform_filter("datum.possible === '1' && datum.share >= 0.12")
    return _by_protocol(alt.layer(bars, certain), data)
