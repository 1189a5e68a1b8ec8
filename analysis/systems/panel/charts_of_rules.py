"""Charts of what other rules would have elected, and of the noise floor of votes."""

from typing import Final

import altair as alt
import polars as pl

from tutorsim.analysis.charts.figure import (
    ACCENT,
    CASCADE,
    INK,
    PAPER,
    PLAIN,
    Drawing,
    Figure,
    absent,
    inline,
    shades,
    stacked,
    unchecked,
)
from tutorsim.analysis.counting.rule_definitions import conventions_of
from tutorsim.analysis.pages.words import SMALL, counted, percent
from tutorsim.vocabularies import PROTOCOLS

# --- Other rules ---------------------------------------------------------------------------------

NO_VOTE: Final = "No turn was put to a vote"
UNSETTLED: Final = "not settled"
"""Named so wherever the exact set was too costly to find."""


def kept_figure(frame: pl.DataFrame, *, without: str = NO_VOTE) -> Figure:
    """Bars: what each rule makes of the winners of ballots cast for another one.

    Args:
        frame: `protocol` (the rule), `part` (what it does, as `PARTS`), `turns`, `place`.
        without: Why there is no turn to compare.
    """
    if frame.is_empty():
        return absent("kept", f"{without}, so no rule can keep a winner.")
    cases = int(frame.get_column("turns").sum())
    sums = dict(frame.group_by("part").agg(pl.col("turns").sum()).iter_rows())
    kept, _, changed = (sums.get(part, 0) for part in PARTS)
    return Figure(
        name="kept",
        finding=f"Another rule surely keeps {percent(kept / cases)} of winners and surely changes "
        f"{percent(changed / cases)}; the others stay open",
        caption=f"Turns voted in another format than the rule's own, {counted(cases, 'case')} in "
        "all, by whether the rule surely elects the logged winner, surely elects somebody else, or "
        f"may do either as far as the ballots tell. A tie stays a tie. {CASCADE}",
        method="A ballot fixes only part of what its voter would have cast in another format; what "
        "every completion elects is sure.",
        data=frame.drop("place"),
        chart=stacked(frame, "part", title="winner", parts=PARTS),
        alternative="; ".join(
            f"{row['protocol']}, {row['part']}: {row['turns']}"
            for row in frame.iter_rows(named=True)
        ),
    )


PARTS: Final = ("surely kept", "open", "surely changed")
"""What a rule makes of a logged winner."""


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


# --- Noise floor ---------------------------------------------------------------------------------

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
