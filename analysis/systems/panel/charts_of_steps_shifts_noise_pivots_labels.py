"""Charts of how votes went: what decided, who moved, what re-asking gives, pivots, labels."""

from collections.abc import Iterator
from itertools import product
from typing import Any, Final

import altair as alt
import polars as pl

from tutorsim.analysis.charts import figures_forms_and_colours as look
from tutorsim.analysis.pages.decorators_to_declare_tables_and_charts import Row, each_row, figure
from tutorsim.analysis.pages.words_and_safe_text import (
    SMALL,
    counted,
    extremes,
    listed,
    percent,
    share,
)
from tutorsim.analysis.statistics.intervals_and_tests import ALPHA, Estimate, NotEstimable
from tutorsim.analysis.systems.panel.page_data_and_published_figures import Evidence
from tutorsim.analysis.systems.panel.self_support_labels_pivotality_margins import (
    label_positions,
    margins,
)


def _turns(data: pl.DataFrame) -> int:
    return int(data.get_column("turns").sum())


def _n(data: pl.DataFrame, of: Evidence) -> str:
    return counted(_turns(data), of.unit)


# --- Decision steps ------------------------------------------------------------------------------

_STEP_NAMES: Final = {
    "vote": "final vote",
    "tie_round": "tie round",
    "fallback": "fallback order",
    "open": "left tied",
}
"""Step → its name; `open` stands for `fallback` where no order is logged."""


def _said(of: Evidence) -> dict[str, str]:
    """Step → its name, with one name less to tell apart where there is one vote."""
    return {**_STEP_NAMES, "vote": "the vote"} if of.once else _STEP_NAMES


def _decided_finding(data: pl.DataFrame, of: Evidence) -> str:
    steps = dict(data.group_by("decided_by").agg(pl.col("turns").sum()).iter_rows())
    total, left = _turns(data), steps.get("fallback", steps.get("open", 0))
    ties = left + steps.get("tie_round", 0)
    which = "vote" if of.once else "final vote"
    if ties == 0:
        return f"No {which} was tied in {counted(total, of.unit)}"
    tied = f"The {which} tied in {share(ties, total, of.unit)}"
    if of.unordered:
        still = "" if of.once else f"counting leaves {left:,} of them tied, and "
        return f"{tied}; {still}no order is logged"
    if left == 0:
        return f"{tied}; every tie was voted away"
    if left == ties:
        return f"{tied}; the order decided all of them"
    return f"{tied}; the fallback order had to decide {left:,} of these {ties:,}"


def _decided(data: pl.DataFrame, of: Evidence) -> look.Drawing:
    last = "open" if of.unordered else "fallback"
    names = [s for s in ("vote", "tie_round", last) if s != "tie_round" or of.tie_rounds]
    said, there = _said(of), data.filter(pl.col("turns") > 0)
    steps = there.with_columns(step=pl.col("decided_by").replace(said))
    return look.stacked(steps, "step", title="decided by", parts=[said[step] for step in names])


@figure(
    "decided-by",
    finding=_decided_finding,
    without="Nothing was put to a vote, so no step decided it.",
    method=lambda data, of: (
        (
            "A tie in the final vote goes to a tie round among the tied candidates; what is "
            "tied then "
            if of.tie_rounds
            else "What is tied "
        )
        + ("stays tied." if of.unordered else "goes to the first in the fallback order.")
    ),
    alternative=lambda data, of: "; ".join(
        f"{protocol}, {_said(of).get(step, step)}: {n}" for protocol, step, n in data.iter_rows()
    ),
    draw=_decided,
    n=_n,
)
def decided_figure(of: Evidence) -> Iterator[Row]:
    """By the step that left one winner; n = {n}. {held}"""
    for row in of.diagnostics:
        for step, n in row.decided_by.items():
            if step != "tie_round" or of.tie_rounds:
                yield {"protocol": row.protocol, "decided_by": step, "turns": n}


# --- Movement ------------------------------------------------------------------------------------


def _flip_by_chance(of: Evidence) -> float | None:
    """The expected flip over all protocols; `None` where one of them has none."""
    expected = [(c.flip_expected, c.turns) for c in of.chance if c.turns]
    known = [(flip, n) for flip, n in expected if not isinstance(flip, NotEstimable)]
    if not known or len(known) < len(expected):
        return None
    return sum(flip * n for flip, n in known) / sum(n for _, n in known)


def _movement_finding(data: pl.DataFrame, of: Evidence) -> str:
    total, moved = _turns(data), _turns(data.filter(pl.col("leader") != pl.col("winner")))
    if not moved:
        return f"The leader of the first vote won every one of {counted(total, of.unit)}"
    said = f"The winner is not who led the first vote in {share(moved, total, of.unit)}"
    by_chance = _flip_by_chance(of)
    if by_chance is None or total < SMALL:
        return said
    return f"{said}; independent votes would give {percent(by_chance)}"


def _movement(data: pl.DataFrame, of: Evidence) -> look.Drawing:
    candidates = list(of.candidates)
    pairs = product(look.names_in(data, "protocol"), candidates, candidates)
    grid = pl.DataFrame(list(pairs), schema=["protocol", "leader", "winner"], orient="row")
    data = grid.join(data, on=grid.columns, how="left").with_columns(
        pl.col("turns").fill_null(0), same=pl.col("leader") == pl.col("winner")
    )
    most = max(data.get_column("turns"))
    across = alt.Axis(labelAngle=-35, domain=False, ticks=False, labelLimit=110)
    down = alt.Axis(domain=False, ticks=False, labelLimit=140)
    base = alt.Chart().encode(
        x=alt.X("winner:N", sort=candidates, title="winner", axis=across),
        y=alt.Y("leader:N", sort=candidates, title="led the first vote", axis=down),
    )
    cells = base.mark_rect(strokeWidth=1.5).encode(
        color=alt.ColorValue(look.ACCENT),
        stroke=alt.StrokeValue(look.PAPER, condition={"test": "datum.same", "value": look.MUTED}),
        opacity=alt.Opacity(
            "turns:Q", legend=None, scale=alt.Scale(domain=[0, most], range=[0.05, look.DEEPEST])
        ),
        tooltip=look.tips("protocol:N", "leader:N", "winner:N", "turns:Q"),
    )
    text = base.mark_text(fontSize=11, aria=False).encode(
        text=alt.Text("turns:Q"), color=alt.ColorValue(look.INK)
    )
    return look.faceted(
        cells, text, data=data, by="protocol", width=alt.Step(46), step=30, spacing=24
    )


@figure(
    "movement",
    finding=_movement_finding,
    without="No turn has both a first and a final vote.",
    method="A change does not show that deliberation caused it: between the two votes the drafts "
    "were revised, and asking again can change a ballot by itself. Compare with the chance "
    "baselines and, where votes were asked again, with the noise floor.",
    alternative="{protocol}: {leader} led, {winner} won: {turns}",
    draw=_movement,
    ties=lambda data, of: (
        "Those with several first leaders, or left tied, are left out."
        if of.unordered
        else "A tied first lead goes to the first in the fallback order."
    ),
    n=_n,
)
def movement_figure(of: Evidence) -> Iterator[Row]:
    """By leader of the first vote and by winner; on the diagonal nothing changed. {ties}
    n = {n}. {held}"""
    both = pl.col("initial_leader").is_not_null() & pl.col("winner").is_not_null()
    cells = (
        of.turns.filter(both)
        .rename({"initial_leader": "leader"})
        .group_by("protocol", "leader", "winner", maintain_order=True)
        .agg(turns=pl.len().cast(pl.Int64))
    )
    return cells.iter_rows(named=True)


# --- Noise floor ---------------------------------------------------------------------------------

_SOURCES: Final = ("logged", "re-asked")


def _no_noise(of: Evidence) -> str:
    once = isinstance(of.noise, NotEstimable)
    why = "each vote was asked for once" if once else "no vote was asked again"
    return f"No noise floor to set the votes beside: {why}."


def _noise_finding(data: pl.DataFrame, of: Evidence) -> str:
    """Leaders that differ, over all protocols: like with like, without tie rounds."""
    leader = data.filter(pl.col("quantity") == "leader")
    sides = [leader.filter(pl.col("source") == source) for source in _SOURCES]
    n = _turns(sides[0])
    if not n:
        return "No turn whose votes were asked again has a first vote to compare"
    logged, again = (
        float(side.select((pl.col("value") * pl.col("turns")).sum()).item()) for side in sides
    )
    if n < SMALL:
        return (
            f"Leaders of the two votes differ in {round(logged)} of {counted(n, 'turn')} as "
            f"logged, where re-asking alone gives {again:.1f} on average"
        )
    return (
        f"Leaders of the two votes differ in {percent(logged / n)} of {counted(n, 'turn')} as "
        f"logged; re-asking alone gives {percent(again / n)}"
    )


def _lines(data: pl.DataFrame, of: Evidence) -> str:
    """What the lines are, where one is drawn."""
    drawn = data.get_column("low").is_not_null().any()
    return "Lines: 95 % intervals over tasks." if drawn else "Too few tasks for intervals."


def _points(data: pl.DataFrame, of: Evidence) -> look.Drawing:
    base = alt.Chart().encode(
        y=alt.Y("protocol:N", sort=look.names_in(data, "protocol"), title=None, axis=look.NAMES),
        yOffset=alt.YOffset("source:N", sort=list(_SOURCES)),
        tooltip=look.tips(
            *("protocol:N", "quantity:N", "source:N=figures", "value:Q|.2f", "low:Q=from|.2f"),
            *("high:Q=to|.2f", "turns:Q"),
        ),
    )
    lines = base.mark_rule(color=look.PLAIN, strokeWidth=1.5).encode(x="low:Q", x2="high:Q")
    axis = alt.Axis(values=[0, 0.5, 1], format=".1f")
    dots = base.mark_point(
        size=70, filled=True, stroke=look.ACCENT, strokeWidth=2, opacity=1
    ).encode(
        x=alt.X("value:Q", title=None, scale=look.ONE, axis=axis),
        fill=alt.Fill(
            "source:N",
            title=None,
            sort=list(_SOURCES),
            scale=alt.Scale(domain=list(_SOURCES), range=[look.ACCENT, look.PAPER]),
            legend=alt.Legend(symbolStrokeColor=look.ACCENT, symbolStrokeWidth=2),
        ),
    )
    drawn = (lines.transform_filter("isValid(datum.low)"), dots)
    return look.faceted(*drawn, data=data, by="quantity", width=180, step=18, spacing=30, columns=3)


@figure(
    "noise",
    finding=_noise_finding,
    without=_no_noise,
    method="Flip: the leader of the first vote is not the delivered winner, as logged. Leader: not "
    "the leader of the final vote, so without tie rounds, as in the re-asked panels. Shift: half "
    "the distance between vote shares. What a re-asked panel changes, deliberation had no part in.",
    alternative="{protocol}, {quantity}, {source}: {value:.2f}",
    draw=_points,
    kinds={"low": pl.Float64, "high": pl.Float64},
    lines=_lines,
)
def noise_figure(of: Evidence) -> Iterator[Row]:
    """As logged (filled) beside re-asked (open): two panels that answer one and the same prompt,
    each voter with two different askings of its own. {lines} The turns are those whose votes were
    asked again."""
    for row in () if isinstance(of.noise, NotEstimable) else of.noise.beside:
        for source, found in zip(_SOURCES, (row["logged"], row["floor"]), strict=True):
            if row["quantity"] != "flip_set" and isinstance(found, Estimate):
                yield {
                    "protocol": row["form"],
                    "quantity": row["quantity"],
                    "source": source,
                    "turns": row["turns"],
                    "value": found.value,
                    "low": found.low,
                    "high": found.high,
                }


# --- Margins --------------------------------------------------------------------------------------


def _one_ballot(data: pl.DataFrame, of: Evidence) -> str:
    one = _turns(data.filter(pl.col("margin") == 1))
    changed = share(one, _turns(data), of.unit)
    return f"One ballot cast otherwise would have changed the winner in {changed}"


def _by_margin(data: pl.DataFrame, of: Evidence) -> look.Drawing:
    data = data.with_columns(ballots=pl.col("margin").cast(pl.String).fill_null("never"))
    parts = look.names_in(data.sort("margin", nulls_last=True), "ballots")
    return look.stacked(data, "ballots", title="ballots that must change", parts=parts)


@figure(
    "margins",
    finding=_one_ballot,
    without=lambda of: f"{of.no_winner}, so there is no margin.",
    method="Any ballot of the same format may take the place of a ballot cast.",
    alternative=lambda data, of: "; ".join(
        f"{protocol}, margin {margin}: {counted(n, of.unit)}"
        for protocol, margin, n in data.iter_rows()
    ),
    draw=_by_margin,
    n=_n,
)
def margins_figure(of: Evidence) -> Iterator[Row]:
    """By margin: the fewest final ballots that must change to change the winner. n = {n}.
    {held}"""
    found, places = margins(of.source), {d.protocol: i for i, d in enumerate(of.diagnostics)}
    if of.unordered:  # a turn that is left tied has no winner to change
        found = found.filter(of.turns.get_column("winner").is_not_null())
    counts = found.group_by("protocol", "margin").agg(turns=pl.len().cast(pl.Int64))
    place = pl.col("protocol").replace_strict(places, return_dtype=pl.Int64)
    return counts.sort(place, "margin", nulls_last=True).iter_rows(named=True)


# --- Pivotal voters -------------------------------------------------------------------------------

_SHARE: Final[dict[str, Any]] = {
    "scale": alt.Scale(zero=True),
    "axis": alt.Axis(format=".0%", tickCount=4),
}
_MOST_VOTERS: Final = 12


def _voters(of: Evidence) -> list[str]:
    """Voters of whom something is known, those with most ballots first."""
    found = of.pivotality.filter(pl.col("turns") > 0)
    busy = found.group_by("voter").agg(pl.col("turns").sum())
    return busy.sort("turns", "voter", descending=[True, False])["voter"].to_list()


def _left_out(data: pl.DataFrame, of: Evidence) -> str:
    omitted = len(_voters(of)) - _MOST_VOTERS
    first = f"The {_MOST_VOTERS} voters with most ballots, {omitted:,} others left out. "
    return first if omitted > 0 else ""


def _by_voter(data: pl.DataFrame, of: Evidence) -> str:
    n = _turns(data)
    if n < SMALL:
        return f"Pivotal voters in {counted(n, 'ballot')}, too few for a comparison"
    low, high = extremes(data.get_column("ordered"))
    if low == high:
        return f"Dropping any one ballot changes the winner in {percent(low)} of {of.unit}s"
    ends = f"{percent(low)} to {percent(high)}"
    return (
        f"Dropping one voter's ballot changes the winner in {ends} of {of.unit}s, by voter and "
        "protocol"
    )


def _pivotal(data: pl.DataFrame, of: Evidence) -> look.Drawing:
    drawn = set(look.names_in(data, "voter"))
    voters = [*(c for c in of.candidates if c in drawn), *sorted(drawn - set(of.candidates))]
    tooltip = look.tips(
        *("protocol:N", "voter:N", "turns:Q", "ordered:Q=winner changes|.1%", "low:Q|.1%"),
        *("high:Q|.1%", "certain:Q=winner falls behind|.1%"),
    )
    base = alt.Chart().encode(
        y=alt.Y("voter:N", sort=voters, title=None, axis=look.NAMES),
        color=look.coloured("voter", voters, look.role_colors(voters), legend=None),
    )
    bar = base.mark_rule(strokeWidth=3, opacity=0.5).encode(x="low:Q", x2="high:Q", tooltip=tooltip)
    least = base.mark_point(shape="diamond", size=45, opacity=1, aria=False).encode(x="certain:Q")
    dot = base.mark_point(filled=True, size=80, opacity=1).encode(
        x=alt.X("ordered:Q", title="share of turns", **_SHARE), tooltip=tooltip
    )
    return look.faceted(bar, least, dot, data=data, by="protocol")


@figure(
    "pivotal",
    finding=_by_voter,
    without=lambda of: f"{of.no_winner}, so no voter was pivotal.",
    method="The other ballots are counted under their own rule, in a second vote on a tie too if "
    "the same candidates stay tied. Intervals are over tasks, as votes on one are not independent.",
    alternative=each_row(lambda r: f"{r['protocol']}, {r['voter']}: {percent(r['ordered'])}"),
    draw=_pivotal,
    first=_left_out,
    ties=lambda data, of: (
        ", of those with a winner; a tie that this leaves has none"
        if of.unordered
        else "; a tie that this leaves goes to the fallback order"
    ),
)
def pivotal_figure(of: Evidence) -> Iterator[Row]:
    """{first}Share of {unit}s whose winner changes when the voter's final ballot is dropped, with
    its 95 % interval over tasks{ties}. The hollow mark counts only those where the winner falls
    behind. {held}"""
    drawn = _voters(of)[:_MOST_VOTERS]
    for row in of.pivotality.iter_rows(named=True):
        if row["voter"] in drawn:
            yield {
                "protocol": row["protocol"],
                "voter": row["voter"],
                "turns": row["turns"],
                "certain": row["pivotal_set"] / row["turns"],
                "ordered": row["pivotal"] / row["turns"],
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


def _by_label(data: pl.DataFrame, of: Evidence) -> look.Drawing:
    counts = dict(data.select("protocol", "ballots").unique(maintain_order=True).iter_rows())
    panels = {name: f"{name}, {counted(n, 'ballot')}" for name, n in counts.items()}
    data = data.with_columns(
        panel=pl.col("protocol").replace_strict(panels), marked=pl.col("p_label") < ALPHA
    )
    names = list(counts)
    base = alt.Chart().encode(y=alt.Y("label:N", title="label shown", axis=look.NAMES))
    even = base.mark_tick(color=look.MUTED, thickness=1.5, height=18).encode(x="even:Q")
    shares = base.encode(
        x=alt.X("share:Q", title="share of ballot mass", **_SHARE),
        color=look.coloured("protocol", names, look.condition_colors(names), legend=None),
    )
    tooltip = look.tips(
        *("protocol:N", "label:N", "share:Q|.1%", "even:Q=even share|.1%"),
        *("p_label:Q=p, this label|.3f", "p:Q=p, all labels|.3f"),
    )
    rings = shares.mark_point(filled=False, size=75, opacity=1, strokeWidth=2)
    dots = shares.mark_point(filled=True, size=95, opacity=1, aria=False)
    layers = (even, rings.encode(tooltip=tooltip), dots.transform_filter("datum.marked"))
    return look.faceted(*layers, data=data, by="panel", order=list(panels.values()))


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
    alternative=each_row(lambda r: f"{r['protocol']}, label {r['label']}: {percent(r['share'])}"),
    draw=_by_label,
    alpha=ALPHA,
)
def labels_figure(of: Evidence) -> Iterator[Row]:
    """Share of ballot mass that went to the draft shown under each label; the upright tick is an
    even share, and a filled dot a share that reshuffling the labels seldom gives (p < {alpha},
    corrected over the labels). n is the ballots of each protocol. {held}"""
    for found in label_positions(of.source):
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
