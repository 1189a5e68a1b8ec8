"""How voters and labels behave: label positions, margins, pivotal voters."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

import altair as alt
import polars as pl

from tutorsim.analysis.charts.figure import Drawing, Figure, absent, inline, unchecked
from tutorsim.analysis.charts.number_words import SMALL, counted, extremes, listed, percent, share
from tutorsim.analysis.charts.style import INK, MUTED, PAPER, condition_colors, role_colors, shades

__all__ = ["labels_figure", "margins_figure", "pivotal_figure"]

_ALPHA: Final = 0.05
_PANEL: Final = 270
_HELD: Final = "As logged; nothing is recounted."


def labels_figure(frame: pl.DataFrame) -> Figure:
    """Dots: share of ballot mass by the label shown, against an even share.

    Args:
        frame: `protocol`, `label`, `share`, `even` (the share without any effect of labels),
            `p_label` (of that label, corrected over the labels), `p` (of the protocol's labels
            together), `ballots`; one row per protocol and label.
    """
    if frame.is_empty():
        return absent("labels", "No ballot has a known label, so no effect of labels can be seen.")
    low = frame.filter(pl.col("p") < _ALPHA).get_column("protocol").unique(maintain_order=True)
    protocols = frame.get_column("protocol").n_unique()
    return Figure(
        name="labels",
        finding=_labels_finding(low.to_list(), protocols, frame),
        caption=(
            "Share of ballot mass that went to the draft shown under each label; the upright tick "
            "is an even share, and a filled dot a share that reshuffling the labels seldom gives "
            f"(p < {_ALPHA}, corrected over the labels). n is the ballots of each protocol. {_HELD}"
        ),
        method=(
            "Randomisation test: which label stood for which draft was drawn at random for each "
            "voter, so the shuffles that could have been drawn give the distribution without an "
            f"effect. {counted(protocols, 'protocol')} tested, p not corrected for their number."
        ),
        data=frame,
        chart=_labels(frame),
        alternative="; ".join(
            f"{r['protocol']}, label {r['label']}: {percent(r['share'])}"
            for r in frame.iter_rows(named=True)
        ),
    )


def _labels_finding(low: list[str], protocols: int, frame: pl.DataFrame) -> str:
    if len(low) == protocols > 1:
        return f"Under every protocol a draft's label shifts its share of the votes (p < {_ALPHA})"
    if not low:
        return (
            "What labels do to votes is within chance here; a label may still shift its draft's "
            f"share by up to {100 * _largest_shift(frame):.0f} points of 100"
        )
    return (
        f"In {len(low)} of {counted(protocols, 'protocol')} ({listed(low)}) a draft's label "
        f"shifts its share of the votes (p < {_ALPHA})"
    )


def _largest_shift(frame: pl.DataFrame) -> float:
    """The largest distance from an even share that the ballots leave possible, at 95 %.

    The distance that was seen, and 1.96 standard errors of a share of so many ballots. Under most
    protocols a ballot spreads its mass over several labels, so that the true error is smaller.
    """
    off = (pl.col("share") - pl.col("even")).abs()
    error = (pl.col("share") * (1 - pl.col("share")) / pl.col("ballots")).sqrt()
    return float(frame.select((off + 1.96 * error).max()).item())


@unchecked
def _labels(frame: pl.DataFrame) -> Drawing:
    protocols = frame.get_column("protocol").unique(maintain_order=True).to_list()
    counts = dict(frame.select("protocol", "ballots").iter_rows())
    panels = {name: f"{name}, {counted(counts[name], 'ballot')}" for name in protocols}
    data = frame.with_columns(
        panel=pl.col("protocol").replace_strict(panels), marked=pl.col("p_label") < _ALPHA
    )
    base = alt.Chart().encode(
        y=alt.Y("label:N", title="label shown", axis=alt.Axis(domain=False, ticks=False))
    )
    tips = [
        alt.Tooltip("protocol:N"),
        alt.Tooltip("label:N"),
        alt.Tooltip("share:Q", format=".1%"),
        alt.Tooltip("even:Q", title="even share", format=".1%"),
        alt.Tooltip("p_label:Q", title="p, this label", format=".3f"),
        alt.Tooltip("p:Q", title="p, all labels", format=".3f"),
    ]
    even = base.mark_tick(color=MUTED, thickness=1.5, height=18).encode(x=alt.X("even:Q"))
    color = alt.Color(
        "protocol:N",
        legend=None,
        scale=alt.Scale(domain=protocols, range=condition_colors(protocols)),
    )
    across = alt.X(
        "share:Q",
        title="share of ballot mass",
        scale=alt.Scale(zero=True),
        axis=alt.Axis(format=".0%", tickCount=4),
    )
    rings = base.mark_point(filled=False, size=75, opacity=1, strokeWidth=2).encode(
        x=across, color=color, tooltip=tips
    )
    dots = base.mark_point(filled=True, size=95, opacity=1, aria=False).encode(
        x=across, color=color
    )
    dots = dots.transform_filter("datum.marked")
    return (
        alt.layer(even, rings, dots)
        .properties(data=inline(data), width=_PANEL, height=alt.Step(24))
        .facet(
            facet=alt.Facet("panel:N", sort=[*panels.values()], title=None), columns=2, spacing=34
        )
    )


def margins_figure(frame: pl.DataFrame) -> Figure:
    """Stacked bars: fewest ballots that must change to change the winner.

    Args:
        frame: `protocol`, `margin` (null where no change of ballots changes the winner), `turns`.
    """
    total = 0 if frame.is_empty() else int(frame.get_column("turns").sum())
    if total == 0:
        return absent("margins", "No turn was put to a vote, so there is no margin.")
    one = int(frame.filter(pl.col("margin") == 1).get_column("turns").sum())
    return Figure(
        name="margins",
        finding=(
            f"One ballot cast otherwise would have changed the winner in "
            f"{share(one, total, 'turn')}"
        ),
        caption=(
            "Turns by margin: the fewest final ballots that must change to change the winner. "
            f"n = {counted(total, 'turn')}. {_HELD}"
        ),
        method="Any ballot of the turn's own format may take the place of a ballot cast.",
        data=frame,
        chart=_margins(frame),
        alternative="; ".join(
            f"{r['protocol']}, margin {r['margin']}: {counted(r['turns'], 'turn')}"
            for r in frame.iter_rows(named=True)
        ),
    )


@unchecked
def _margins(frame: pl.DataFrame) -> Drawing:
    protocols = frame.get_column("protocol").unique(maintain_order=True).to_list()
    data = frame.with_columns(
        ballots=pl.col("margin").cast(pl.String).fill_null("never"),
        place=pl.col("margin").fill_null(99),
    ).sort("place", maintain_order=True)
    names = data.get_column("ballots").unique(maintain_order=True).to_list()
    data = data.with_columns(
        middle=pl.col("turns").cum_sum().over("protocol") - pl.col("turns") / 2,
        strong=pl.col("ballots") == names[0],
    )
    base = alt.Chart(inline(data)).encode(
        y=alt.Y("protocol:N", sort=protocols, title=None, axis=alt.Axis(domain=False, ticks=False))
    )
    bars = base.mark_bar(height=24, stroke=PAPER, strokeWidth=1.5).encode(
        x=alt.X("turns:Q", title="turns", stack="zero", axis=alt.Axis(tickMinStep=1, tickCount=8)),
        order=alt.Order("place:Q"),
        color=alt.Color(
            "ballots:N",
            title="ballots that must change",
            sort=names,
            scale=alt.Scale(domain=names, range=shades(len(names))),
        ),
        tooltip=[
            alt.Tooltip("protocol:N"),
            alt.Tooltip("ballots:N", title="ballots that must change"),
            alt.Tooltip("turns:Q"),
        ],
    )
    text = base.mark_text(fontSize=11, aria=False).encode(
        x=alt.X("middle:Q"),
        text=alt.Text("turns:Q"),
        color=alt.ColorValue(INK, condition={"test": "datum.strong", "value": PAPER}),
    )
    return alt.layer(bars, text).properties(height=alt.Step(36))


_MOST_VOTERS: Final = 12
_PIVOTAL_CAPTION: Final = (
    "Share of turns whose winner changes when the voter's final ballot is dropped, with its 95 % "
    "Wilson interval; a tie that this leaves goes to the role-priority order. The hollow mark "
    f"counts only turns where the winner falls behind. {_HELD}"
)


def pivotal_figure(frame: pl.DataFrame, *, voters: Sequence[str]) -> Figure:
    """Intervals: how often dropping one voter's ballot changes the winner.

    Args:
        frame: `protocol`, `voter`, `turns`, `certain` and `ordered`: shares of the turns whose
            winner changes without that ballot, a tie that this leaves counting only where the
            winner is not among the tied (`certain`), or going to the role-priority order
            (`ordered`); `low` and `high` of the 95 % interval of `ordered`.
        voters: In role order.
    """
    if frame.is_empty():
        return absent("pivotal", "No turn was put to a vote, so no voter was pivotal.")
    drawn, omitted = _most_active(frame)
    if omitted:
        return replace(
            pivotal_figure(drawn, voters=[v for v in voters if v in set(drawn["voter"])]),
            caption=f"The {_MOST_VOTERS} voters with most ballots, {omitted:,} others left out. "
            f"{_PIVOTAL_CAPTION}",
        )
    return Figure(
        name="pivotal",
        finding=_pivotal_finding(frame),
        caption=_PIVOTAL_CAPTION,
        method=(
            "The other ballots are counted under the turn's own rule, the tie round's too where "
            "the same candidates stay tied. Turns of one episode are not independent, so the "
            "intervals are somewhat too narrow."
        ),
        data=frame,
        chart=_pivotal(frame, list(voters)),
        alternative="; ".join(
            f"{r['protocol']}, {r['voter']}: {percent(r['ordered'])}"
            for r in frame.iter_rows(named=True)
        ),
    )


def _most_active(frame: pl.DataFrame) -> tuple[pl.DataFrame, int]:
    """The rows of the voters with most ballots, and how many voters are left out."""
    busy = frame.group_by("voter").agg(pl.col("turns").sum())
    first = busy.sort(pl.col("turns"), pl.col("voter"), descending=[True, False])
    kept = first.head(_MOST_VOTERS).get_column("voter")
    return frame.filter(pl.col("voter").is_in(kept.to_list())), first.height - kept.len()


def _pivotal_finding(frame: pl.DataFrame) -> str:
    n = int(frame.get_column("turns").sum())
    if n < SMALL:
        return f"Pivotal voters in {counted(n, 'ballot')}, too few for a comparison"
    low, high = extremes(frame.get_column("ordered"))
    if low == high:
        return f"Dropping any one ballot changes the winner in {percent(low)} of turns"
    return (
        f"Dropping one voter's ballot changes the winner in {percent(low)} to {percent(high)} "
        f"of turns, by voter and protocol"
    )


@unchecked
def _pivotal(frame: pl.DataFrame, voters: list[str]) -> Drawing:
    protocols = frame.get_column("protocol").unique(maintain_order=True).to_list()
    colors = alt.Color(
        "voter:N", legend=None, scale=alt.Scale(domain=voters, range=role_colors(voters))
    )
    base = alt.Chart().encode(
        y=alt.Y("voter:N", sort=voters, title=None, axis=alt.Axis(domain=False, ticks=False))
    )
    tips = [
        alt.Tooltip("protocol:N"),
        alt.Tooltip("voter:N"),
        alt.Tooltip("turns:Q"),
        alt.Tooltip("ordered:Q", title="winner changes", format=".1%"),
        alt.Tooltip("low:Q", format=".1%"),
        alt.Tooltip("high:Q", format=".1%"),
        alt.Tooltip("certain:Q", title="winner falls behind", format=".1%"),
    ]
    bar = base.mark_rule(strokeWidth=3, opacity=0.5).encode(
        x=alt.X("low:Q"), x2=alt.X2("high:Q"), color=colors, tooltip=tips
    )
    least = base.mark_point(shape="diamond", size=45, opacity=1, aria=False).encode(
        x=alt.X("certain:Q"), color=colors
    )
    dot = base.mark_point(filled=True, size=80, opacity=1).encode(
        x=alt.X(
            "ordered:Q",
            title="share of turns",
            scale=alt.Scale(zero=True),
            axis=alt.Axis(format=".0%", tickCount=4),
        ),
        color=colors,
        tooltip=tips,
    )
    return (
        alt.layer(bar, least, dot)
        .properties(data=inline(frame), width=_PANEL, height=alt.Step(24))
        .facet(facet=alt.Facet("protocol:N", sort=protocols, title=None), columns=2, spacing=34)
    )
