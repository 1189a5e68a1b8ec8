"""How far to trust the votes: margins, pivotal voters, labels, self-support, effective votes."""

from collections.abc import Iterator
from typing import Any, Final

import altair as alt
import polars as pl

from tutorsim.analysis.charts.figure import (
    MUTED,
    NAMES,
    Drawing,
    condition_colors,
    faceted,
    role_colors,
    stacked,
    tips,
    unchecked,
)
from tutorsim.analysis.pages.declared import Row, figure
from tutorsim.analysis.pages.words import SMALL, counted, extremes, listed, percent, share
from tutorsim.analysis.statistics.intervals_and_tests import ALPHA, NotEstimable
from tutorsim.analysis.systems.panel.evidence import SEED, Evidence
from tutorsim.analysis.systems.panel.self_support_labels_and_power import label_positions, margins

_SHARE: Final[dict[str, Any]] = {
    "scale": alt.Scale(zero=True),
    "axis": alt.Axis(format=".0%", tickCount=4),
}


def _turns(data: pl.DataFrame) -> int:
    return int(data.get_column("turns").sum())


# --- Margins --------------------------------------------------------------------------------------


def _margins(of: Evidence) -> pl.DataFrame:
    found, places = margins(of.source), {d.protocol: i for i, d in enumerate(of.diagnostics)}
    if of.unordered:  # a turn that is left tied has no winner to change
        decided = of.turns.filter(pl.col("winner").is_not_null())
        found = found.join(decided, on=["episode_id", "turn"], how="semi")
    counts = found.group_by("protocol", "margin").agg(turns=pl.len().cast(pl.Int64))
    place = pl.col("protocol").replace_strict(places, return_dtype=pl.Int64)
    return counts.sort(place, "margin", nulls_last=True)


def _one_ballot(data: pl.DataFrame, of: Evidence) -> str:
    one = int(data.filter(pl.col("margin") == 1).get_column("turns").sum())
    changed = share(one, _turns(data), "turn")
    return f"One ballot cast otherwise would have changed the winner in {changed}"


@figure(
    "margins",
    finding=_one_ballot,
    without=lambda of: f"{of.no_winner}, so there is no margin.",
    method="Any ballot of the turn's own format may take the place of a ballot cast.",
    alternative=lambda data, of: "; ".join(
        f"{protocol}, margin {margin}: {counted(n, 'turn')}"
        for protocol, margin, n in data.iter_rows()
    ),
    draw=lambda data, of: stacked(
        data.with_columns(
            ballots=pl.col("margin").cast(pl.String).fill_null("never"),
            place=pl.col("margin").fill_null(99),
        ),
        "ballots",
        title="ballots that must change",
    ),
    n=lambda data, of: counted(_turns(data), "turn"),
    held=lambda data, of: of.held,
)
def margins_figure(of: Evidence) -> Iterator[Row]:
    """Turns by margin: the fewest final ballots that must change to change the winner. n = {n}.
    {held}"""
    return _margins(of).iter_rows(named=True)


# --- Pivotal voters -------------------------------------------------------------------------------

_MOST_VOTERS: Final = 12


def _voters(of: Evidence) -> pl.DataFrame:
    """Voters of whom something is known, by the ballots that they cast."""
    found = of.pivotality.filter(pl.col("turns") > 0)
    busy = found.group_by("voter").agg(pl.col("turns").sum())
    return busy.sort(pl.col("turns"), pl.col("voter"), descending=[True, False])


def _left_out(data: pl.DataFrame, of: Evidence) -> str:
    omitted = _voters(of).height - _MOST_VOTERS
    first = f"The {_MOST_VOTERS} voters with most ballots, {omitted:,} others left out. "
    return first if omitted > 0 else ""


def _by_voter(data: pl.DataFrame, of: Evidence) -> str:
    n = _turns(data)
    if n < SMALL:
        return f"Pivotal voters in {counted(n, 'ballot')}, too few for a comparison"
    low, high = extremes(data.get_column("ordered"))
    if low == high:
        return f"Dropping any one ballot changes the winner in {percent(low)} of turns"
    ends = f"{percent(low)} to {percent(high)}"
    return (
        f"Dropping one voter's ballot changes the winner in {ends} of turns, by voter and protocol"
    )


@unchecked
def _pivotal(data: pl.DataFrame, voters: list[str]) -> Drawing:
    colours = alt.Scale(domain=voters, range=role_colors(voters))
    color = alt.Color("voter:N", legend=None, scale=colours)
    tooltip = tips(
        *("protocol:N", "voter:N", "turns:Q", "ordered:Q=winner changes|.1%", "low:Q|.1%"),
        *("high:Q|.1%", "certain:Q=winner falls behind|.1%"),
    )
    base = alt.Chart().encode(y=alt.Y("voter:N", sort=voters, title=None, axis=NAMES))
    bar = base.mark_rule(strokeWidth=3, opacity=0.5).encode(
        x=alt.X("low:Q"), x2=alt.X2("high:Q"), color=color, tooltip=tooltip
    )
    least = base.mark_point(shape="diamond", size=45, opacity=1, aria=False).encode(
        x=alt.X("certain:Q"), color=color
    )
    dot = base.mark_point(filled=True, size=80, opacity=1).encode(
        x=alt.X("ordered:Q", title="share of turns", **_SHARE), color=color, tooltip=tooltip
    )
    protocols = data.get_column("protocol").unique(maintain_order=True)
    return faceted(bar, least, dot, data=data, by="protocol", order=protocols.to_list())


def _ordered(of: Evidence) -> list[str]:
    """Voters in role order, then by name."""
    kept = set(_voters(of).head(_MOST_VOTERS).get_column("voter"))
    return [*(c for c in of.candidates if c in kept), *sorted(kept - set(of.candidates))]


@figure(
    "pivotal",
    finding=_by_voter,
    without="No turn was put to a vote, so no voter was pivotal.",
    method="The other ballots are counted under the turn's own rule, the tie round's too where the "
    "same candidates stay tied. Intervals are over tasks, as turns of one are not independent.",
    alternative=lambda data, of: "; ".join(
        f"{row['protocol']}, {row['voter']}: {percent(row['ordered'])}"
        for row in data.iter_rows(named=True)
    ),
    draw=lambda data, of: _pivotal(data, _ordered(of)),
    first=_left_out,
    ties=lambda data, of: (
        ", and no tie is left"
        if of.unordered
        else "; a tie that this leaves goes to the fallback order"
    ),
    held=lambda data, of: of.held,
)
def pivotal_figure(of: Evidence) -> Iterator[Row]:
    """{first}Share of turns whose winner changes when the voter's final ballot is dropped, with its
    95 % interval over tasks{ties}. The hollow mark counts only turns where the winner falls
    behind. {held}"""
    drawn = set(_ordered(of))
    for row in of.pivotality.iter_rows(named=True):
        if row["voter"] in drawn:
            yield {
                "protocol": row["protocol"],
                "voter": row["voter"],
                "turns": row["turns"],
                "certain": row["pivotal_set"] / row["turns"],
                "ordered": row["pivotal_set" if of.unordered else "pivotal"] / row["turns"],
                "low": row["low"],
                "high": row["high"],
            }


# --- Labels ---------------------------------------------------------------------------------------


def _no_labels(of: Evidence) -> str:
    reasons = [one.reason for one in label_positions(of.source) if isinstance(one, NotEstimable)]
    why = f": {reasons[0]}" if reasons else ""
    return f"No effect of labels can be estimated{why}."


def _shifts(data: pl.DataFrame, of: Evidence) -> str:
    low = data.filter(pl.col("p") < ALPHA).get_column("protocol").unique(maintain_order=True)
    protocols = data.get_column("protocol").n_unique()
    if len(low) == protocols > 1:
        return f"Under every protocol a draft's label shifts its share of the votes (p < {ALPHA})"
    if low.is_empty():
        # the distance seen, and 1.96 standard errors of a share of so many ballots; under most
        # protocols a ballot spreads its mass over several labels, so the true error is smaller
        off = (pl.col("share") - pl.col("even")).abs()
        error = (pl.col("share") * (1 - pl.col("share")) / pl.col("ballots")).sqrt()
        most = 100 * data.select((off + 1.96 * error).max()).item()
        return (
            "What labels do to votes is within chance here; a label may still shift its draft's "
            f"share by up to {most:.0f} points of 100"
        )
    return (
        f"In {len(low)} of {counted(protocols, 'protocol')} ({listed(low.to_list())}) a draft's "
        f"label shifts its share of the votes (p < {ALPHA})"
    )


@unchecked
def _by_label(data: pl.DataFrame, of: Evidence) -> Drawing:
    counts = dict(data.select("protocol", "ballots").unique(maintain_order=True).iter_rows())
    panels = {name: f"{name}, {counted(n, 'ballot')}" for name, n in counts.items()}
    data = data.with_columns(
        panel=pl.col("protocol").replace_strict(panels), marked=pl.col("p_label") < ALPHA
    )
    colours = alt.Scale(domain=list(counts), range=condition_colors(list(counts)))
    color = alt.Color("protocol:N", legend=None, scale=colours)
    x = alt.X("share:Q", title="share of ballot mass", **_SHARE)
    base = alt.Chart().encode(y=alt.Y("label:N", title="label shown", axis=NAMES))
    even = base.mark_tick(color=MUTED, thickness=1.5, height=18).encode(x=alt.X("even:Q"))
    tooltip = tips(
        *("protocol:N", "label:N", "share:Q|.1%", "even:Q=even share|.1%"),
        *("p_label:Q=p, this label|.3f", "p:Q=p, all labels|.3f"),
    )
    rings = base.mark_point(filled=False, size=75, opacity=1, strokeWidth=2)
    dots = base.mark_point(filled=True, size=95, opacity=1, aria=False).encode(x=x, color=color)
    return faceted(
        even,
        rings.encode(x=x, color=color, tooltip=tooltip),
        dots.transform_filter("datum.marked"),
        data=data,
        by="panel",
        order=list(panels.values()),
    )


@figure(
    "labels",
    finding=_shifts,
    without=_no_labels,
    method=lambda data, of: (
        "Randomisation test: which label stood for which draft was drawn at random for each voter, "
        "so the shuffles that could have been drawn give the distribution without an effect. "
        f"{counted(data['protocol'].n_unique(), 'protocol')} tested, "
        "p not corrected for their number."
    ),
    alternative=lambda data, of: "; ".join(
        f"{row['protocol']}, label {row['label']}: {percent(row['share'])}"
        for row in data.iter_rows(named=True)
    ),
    draw=_by_label,
    alpha=ALPHA,
    held=lambda data, of: of.held,
)
def labels_figure(of: Evidence) -> Iterator[Row]:
    """Share of ballot mass that went to the draft shown under each label; the upright tick is an
    even share, and a filled dot a share that reshuffling the labels seldom gives (p < {alpha},
    corrected over the labels). n is the ballots of each protocol. {held}"""
    for found in label_positions(of.source, seed=SEED):
        if isinstance(found, NotEstimable):
            continue
        for label, part in found.share.items():
            yield {
                "protocol": found.protocol,
                "label": label,
                "share": part,
                "even": found.expected,
                "p_label": found.p_values[label],
                "p": found.p_value,
                "ballots": found.ballots,
            }
