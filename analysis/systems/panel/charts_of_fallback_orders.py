"""Charts of how turns were decided, and of what the fallback order decided."""

from collections.abc import Sequence
from typing import Final

import altair as alt
import polars as pl

from tutorsim.analysis.charts.figure import (
    ACCENT,
    CASCADE,
    INK,
    LOGGED,
    LOSS,
    MUTED,
    PAPER,
    Drawing,
    Figure,
    absent,
    inline,
    role_colors,
    shades,
    unchecked,
)
from tutorsim.analysis.pages.words import (
    SMALL,
    counted,
    extremes,
    listed,
    percent,
    share,
    short_names,
    top,
)
from tutorsim.vocabularies import DECIDED_BY

# --- Decision steps ------------------------------------------------------------------------------

_STEP_NAMES: Final = {
    "vote": "final vote",
    "tie_round": "tie round",
    "fallback": "fallback order",
    "open": "left tied",
}
"""Step → its name; `open` stands for `fallback` where no order is logged."""


def decided_figure(frame: pl.DataFrame, *, held: str = LOGGED) -> Figure:
    """Stacked bars: turns by protocol and by the step that decided them.

    Args:
        frame: `protocol`, `decided_by`, `turns`; one row per protocol and step, zeros included.
        held: What the caption ends with: whether all is logged.
    """
    total = 0 if frame.is_empty() else int(frame.get_column("turns").sum())
    if total == 0:
        return absent("decided-by", "No turn was put to a vote, so no step decided one.")
    by_step: dict[str, int] = dict(
        frame.group_by("decided_by").agg(pl.col("turns").sum()).iter_rows()
    )
    fallback = by_step.get("fallback", by_step.get("open", 0))
    ties = fallback + by_step["tie_round"]
    return Figure(
        name="decided-by",
        finding=(_open_finding if "open" in by_step else _decided_finding)(ties, fallback, total),
        caption=f"Turns by the step that left one winner; n = {counted(total, 'turn')}. {held}",
        method=(
            "A tie in the final vote goes to a tie round among the tied candidates; what is tied "
            "then "
            + ("stays tied." if "open" in by_step else "goes to the first in the fallback order.")
        ),
        data=frame,
        chart=_decided(frame),
        alternative="; ".join(
            f"{r['protocol']}, {_STEP_NAMES.get(r['decided_by'], r['decided_by'])}: {r['turns']}"
            for r in frame.iter_rows(named=True)
        ),
    )


def _decided_finding(ties: int, fallback: int, total: int) -> str:
    if ties == 0:
        return f"No final vote was tied in {counted(total, 'turn')}"
    if fallback == 0:
        return f"The final vote tied in {share(ties, total, 'turn')}; every tie was voted away"
    if fallback == ties:
        return f"The final vote tied in {share(ties, total, 'turn')}; the order decided all of them"
    return (
        f"The final vote tied in {share(ties, total, 'turn')}; the fallback order had to "
        f"decide {fallback:,} of these {ties:,}"
    )


def _open_finding(ties: int, left: int, total: int) -> str:
    if ties == 0:
        return f"No final vote was tied in {counted(total, 'turn')}"
    return (
        f"The final vote tied in {share(ties, total, 'turn')}; counting leaves {left:,} of them "
        "tied, and no order is logged"
    )


@unchecked
def _decided(frame: pl.DataFrame) -> Drawing:
    protocols = frame.get_column("protocol").unique(maintain_order=True).to_list()
    last = "open" if "open" in frame.get_column("decided_by") else "fallback"
    steps = [step for step in _STEP_NAMES if step in (*DECIDED_BY[:-1], last)]
    names = [_STEP_NAMES[step] for step in steps]
    data = frame.with_columns(
        step=pl.col("decided_by").replace(_STEP_NAMES),
        place=pl.col("decided_by").replace_strict({s: i for i, s in enumerate(steps)}),
        all=pl.col("turns").sum().over("protocol"),
    ).sort("place", maintain_order=True)
    middle = pl.col("turns").cum_sum().over("protocol") - pl.col("turns") / 2
    data = data.with_columns(middle=middle)
    base = alt.Chart(inline(data)).encode(
        y=alt.Y("protocol:N", sort=protocols, title=None, axis=alt.Axis(domain=False, ticks=False)),
    )
    bars = base.mark_bar(height=24, stroke=PAPER, strokeWidth=1.5).encode(
        x=alt.X("turns:Q", title="turns", stack="zero", axis=alt.Axis(tickMinStep=1, tickCount=8)),
        order=alt.Order("place:Q"),
        color=alt.Color(
            "step:N",
            title="decided by",
            sort=names,
            scale=alt.Scale(domain=names, range=shades(len(names))),
        ),
        tooltip=[
            alt.Tooltip("protocol:N"),
            alt.Tooltip("step:N", title="decided by"),
            alt.Tooltip("turns:Q"),
            alt.Tooltip("all:Q", title="of turns"),
        ],
    )
    text = base.transform_filter("datum.turns > 0").mark_text(fontSize=11, aria=False)
    text = text.encode(
        x=alt.X("middle:Q"),
        text=alt.Text("turns:Q"),
        color=alt.ColorValue(INK, condition={"test": "datum.place == 0", "value": PAPER}),
    )
    return alt.layer(bars, text).properties(height=alt.Step(36))


def movement_figure(
    frame: pl.DataFrame,
    *,
    candidates: Sequence[str],
    by_chance: float | None = None,
    ordered: bool = True,
    held: str = LOGGED,
) -> Figure:
    """Heat maps: who led before deliberation (down) and who won (across), per protocol.

    Args:
        frame: `protocol`, `leader` (after the first vote; ties broken by the fallback
            order), `winner`, `turns`; one row per cell that occurs.
        candidates: In role order.
        by_chance: Share of turns in which independent votes would differ; `None`: not estimable.
        ordered: Whether an order is logged, to whose first a tie goes.
        held: What the caption ends with: whether all is logged.
    """
    ties = (
        "A tied first lead goes to the first in the fallback order."
        if ordered
        else "Turns with several first leaders, or left tied, are left out."
    )
    total = 0 if frame.is_empty() else int(frame.get_column("turns").sum())
    if total == 0:
        return absent("movement", "No turn has both a first and a final vote.")
    moved = int(frame.filter(pl.col("leader") != pl.col("winner")).get_column("turns").sum())
    return Figure(
        name="movement",
        finding=_movement_finding(moved, total, by_chance),
        caption=(
            "Turns by leader of the first vote and by winner; on the diagonal nothing changed. "
            f"{ties} n = {counted(total, 'turn')}. {held}"
        ),
        method=(
            "A change does not show that deliberation caused it: between the two votes the drafts "
            "were revised, and asking again can change a ballot by itself. Compare with the "
            "chance baselines and, where votes were asked again, with the noise floor."
        ),
        data=frame,
        chart=_movement(frame, list(candidates)),
        alternative="; ".join(
            f"{r['protocol']}: {r['leader']} led, {r['winner']} won: {r['turns']}"
            for r in frame.iter_rows(named=True)
        ),
    )


def _movement_finding(moved: int, total: int, by_chance: float | None) -> str:
    if not moved:
        return f"The leader of the first vote won every one of {counted(total, 'turn')}"
    said = f"The winner is not who led the first vote in {share(moved, total, 'turn')}"
    if by_chance is None or total < SMALL:
        return said
    return f"{said}; independent votes would give {percent(by_chance)}"


@unchecked
def _movement(frame: pl.DataFrame, candidates: list[str]) -> Drawing:
    protocols = frame.get_column("protocol").unique(maintain_order=True).to_list()
    grid = pl.DataFrame(
        [(p, a, b) for p in protocols for a in candidates for b in candidates],
        schema=["protocol", "leader", "winner"],
        orient="row",
    )
    data = grid.join(frame, on=["protocol", "leader", "winner"], how="left").with_columns(
        pl.col("turns").fill_null(0), same=pl.col("leader") == pl.col("winner")
    )
    most = max(data.get_column("turns"))
    base = alt.Chart().encode(
        x=alt.X("winner:N", sort=candidates, title="winner", axis=_AXIS),
        y=alt.Y("leader:N", sort=candidates, title="led the first vote", axis=_AXIS_DOWN),
    )
    cells = base.mark_rect(strokeWidth=1.5).encode(
        color=alt.ColorValue(ACCENT),
        stroke=alt.StrokeValue(PAPER, condition={"test": "datum.same", "value": MUTED}),
        opacity=alt.Opacity(
            "turns:Q", legend=None, scale=alt.Scale(domain=[0, most], range=[0.05, 0.95])
        ),
        tooltip=[
            alt.Tooltip("protocol:N"),
            alt.Tooltip("leader:N"),
            alt.Tooltip("winner:N"),
            alt.Tooltip("turns:Q"),
        ],
    )
    text = base.mark_text(fontSize=11, aria=False).encode(
        text=alt.Text("turns:Q"),
        color=alt.ColorValue(
            INK, condition={"test": f"datum.turns > {0.72 * most}", "value": PAPER}
        ),
    )
    return (
        alt.layer(cells, text)
        .properties(data=inline(data), width=alt.Step(46), height=alt.Step(30))
        .facet(
            facet=alt.Facet("protocol:N", sort=protocols, title=None),
            columns=2,
            spacing=24,
        )
    )


_AXIS: Final = alt.Axis(labelAngle=-35, domain=False, ticks=False, labelLimit=110)
_AXIS_DOWN: Final = alt.Axis(domain=False, ticks=False, labelLimit=140)


# --- Fallback orders -----------------------------------------------------------------------------

_MOST_ROWS: Final = 24
"""Orders drawn one by one; with more candidates, orders with the same head share a row."""

_CELL: Final = 128
"""Width of a cell in pixels."""

_ORDERS_METHOD: Final = (
    "Exact. A turn that the order decided goes to the first of its tied candidates in each order; "
    "all other turns keep their winner. Turns are counted once per tied set, so every order "
    "follows from one pass over the ballots."
)


def orders_figure(frame: pl.DataFrame, *, logged: Sequence[str], turns: int) -> Figure:
    """Heat map: orders down, roles across, wins in the cells.

    Args:
        frame: `order` (list of candidates), `candidate`, `wins`, `changed` (turns whose winner
            differs from the logged one), one row per order and candidate.
        logged: The order in force.
        turns: How many turns were decided.
    """
    if frame.is_empty() or turns == 0:
        return absent("orders", "No turn was put to a vote, so no order decided one.")
    data, rows = _rows(frame, logged)
    most = frame.get_column("changed").max()
    assert isinstance(most, int)
    return Figure(
        name="orders",
        finding=_orders_finding(most, len(frame.get_column("order").unique()), turns),
        caption=(
            f"Turns won by each candidate under every fallback order; n = {turns:,} turns. "
            f"Blue cells are more wins than logged, brown ones fewer, the deeper the more. "
            f"{_reading(rows, logged)} {CASCADE}"
        ),
        method=_ORDERS_METHOD,
        data=data,
        chart=_heat(data, rows, list(logged)),
        alternative=(
            f"A table of {len(rows)} rows and {len(logged)} columns with wins in the cells; "
            f"at most {counted(most, 'turn')} change against the logged order."
        ),
    )


def _orders_finding(most: int, orders: int, turns: int) -> str:
    if most == 0:
        return f"No order would change a winner: all {orders} orders elect the same in every turn"
    return f"Another fallback order would change the winner of up to {share(most, turns, 'turn')}"


def _reading(rows: Sequence[str], logged: Sequence[str]) -> str:
    short = short_names(logged)
    if any("…" in row for row in rows):
        return (
            "Each row stands for all orders that begin alike; cells are averages over them. "
            "► marks the beginning of the logged order."
        )
    names = ", ".join(f"{cut} = {name}" for name, cut in short.items() if cut != name)
    return f"► marks the logged order.{f' {names}.' if names else ''}"


def _rows(frame: pl.DataFrame, logged: Sequence[str]) -> tuple[pl.DataFrame, list[str]]:
    """Cells by row label, and the row labels from the logged order to the most different."""
    depth = _depth(len(logged))
    own = tuple(logged[:depth])
    cells = (
        frame.with_columns(head=pl.col("order").list.head(depth))
        .group_by("head", "candidate")
        .agg(pl.col("wins").mean(), pl.col("changed").mean())
    )
    place = {c: i for i, c in enumerate(logged)}
    found = sorted(
        ((tuple(row["head"]), row) for row in cells.iter_rows(named=True)),
        key=lambda pair: (
            pair[0] != own,
            pair[1]["changed"],
            [place[c] for c in pair[0]],
            place[pair[1]["candidate"]],
        ),
    )
    labels = _labels({head for head, _ in found}, logged)
    data = pl.DataFrame(
        [(labels[head], r["candidate"], r["wins"], r["changed"]) for head, r in found],
        schema=["row", "candidate", "wins", "changed"],
        orient="row",
    )
    return data, list(dict.fromkeys(labels[head] for head, _ in found))


def _labels(heads: set[tuple[str, ...]], logged: Sequence[str]) -> dict[tuple[str, ...], str]:
    short = short_names(logged)
    labels = {}
    for head in heads:
        tail = ["…"] if len(head) < len(logged) else []
        mark = "► " if head == tuple(logged[: len(head)]) else ""
        labels[head] = mark + " › ".join([*(short[c] for c in head), *tail])
    return labels


def _depth(m: int) -> int:
    """How many places of an order name its row, so that rows stay few."""
    rows = 1
    for depth in range(1, m + 1):
        rows *= m - depth + 1
        if rows > max(_MOST_ROWS, m):
            return max(depth - 1, 1)
    return m


@unchecked
def _heat(data: pl.DataFrame, rows: list[str], candidates: list[str]) -> Drawing:
    own = dict(data.filter(pl.col("row") == rows[0]).select("candidate", "wins").iter_rows())
    data = data.with_columns(
        more=pl.col("wins") - pl.col("candidate").replace_strict(own, return_dtype=pl.Float64)
    ).with_columns(size=pl.col("more").abs())
    most = max(extremes(data.get_column("size"))[1], 1)
    strong = f"abs(datum.more) > {0.72 * most}"
    base = alt.Chart(inline(data)).encode(
        x=alt.X(
            "candidate:N",
            sort=candidates,
            title="winner",
            axis=alt.Axis(
                orient="top", labelAngle=0, labelLimit=_CELL - 6, domain=False, ticks=False
            ),
        ),
        y=alt.Y(
            "row:N",
            sort=rows,
            title=None,
            axis=alt.Axis(labelLimit=300, domain=False, ticks=False),
        ),
    )
    cells = base.mark_rect(stroke=PAPER, strokeWidth=2).encode(
        color=alt.ColorValue(ACCENT, condition={"test": "datum.more < 0", "value": LOSS}),
        opacity=alt.Opacity(
            "size:Q", legend=None, scale=alt.Scale(domain=[0, most], range=[0.04, 0.95])
        ),
        tooltip=[
            alt.Tooltip("row:N", title="order"),
            alt.Tooltip("candidate:N", title="winner"),
            alt.Tooltip("wins:Q", title="wins", format=".4~g"),
            alt.Tooltip("more:Q", title="against the log", format="+.4~g"),
            alt.Tooltip("changed:Q", title="turns changed", format=".4~g"),
        ],
    )
    numbers = base.mark_text(fontSize=11, aria=False).encode(
        text=alt.Text("wins:Q", format=".4~g"),
        color=alt.ColorValue(INK, condition={"test": strong, "value": PAPER}),
    )
    notes = data.unique("row", keep="first", maintain_order=True).with_columns(
        note=pl.format("{} changed", pl.col("changed").round(1).map_elements(_plain, pl.String))
    )
    changed = (
        alt.Chart(inline(notes))
        .mark_text(fontSize=11, aria=False, align="left", color=MUTED)
        .encode(
            y=alt.Y("row:N", sort=rows),
            text=alt.Text("note:N"),
            x=alt.XValue(_CELL * len(candidates) + 8),  # type: ignore[no-untyped-call]
        )
    )
    return alt.layer(cells, numbers, changed).properties(
        width=_CELL * len(candidates), height=22 * len(rows)
    )


def _plain(value: float) -> str:
    return f"{value:g}"


def span_figure(frame: pl.DataFrame, *, orders: int, turns: int) -> Figure:
    """Dumbbells: fewest and most wins of each role over all orders, and where the log stands.

    Args:
        frame: `candidate`, `logged` (null where no order is logged), `fewest`, `most`,
            `expected` (a random order), `robust` (won under every order), one row per candidate.
        orders: How many orders there are.
        turns: How many turns were decided.
    """
    if frame.is_empty() or turns == 0:
        return absent("wins", "No turn was put to a vote, so nobody won one.")
    return Figure(
        name="wins",
        finding=_span_finding(frame, turns),
        caption=(
            f"Wins per candidate; n = {turns:,} turns, {orders:,} orders. The bar runs from the "
            f"fewest to the most wins that an order gives, {_DOT[_is_logged(frame)]}the tick a "
            f"random order's expectation. {CASCADE}"
        ),
        method=(
            "Exact, from the counts of tied sets. Robust wins are turns that a candidate wins "
            "under every order; a random order gives each of k tied candidates 1/k of the turn."
        ),
        data=frame,
        chart=_dumbbells(frame),
        alternative=_span_words(frame),
    )


_DOT: Final = {True: "the filled dot is the logged order, ", False: ""}


def _is_logged(frame: pl.DataFrame) -> bool:
    return frame.get_column("logged").null_count() == 0


def _span_finding(frame: pl.DataFrame, turns: int) -> str:
    spans = {row["candidate"]: row["most"] - row["fewest"] for row in frame.iter_rows(named=True)}
    names = top(spans)
    if not names:
        return "No candidate's wins depend on the fallback order"
    if len(names) > 1:
        return (
            f"The order decides most about {listed(names)}: {spans[names[0]]:,} wins each "
            f"of {counted(turns, 'turn')}"
        )
    [row] = frame.filter(pl.col("candidate") == names[0]).iter_rows(named=True)
    return (
        f"The order decides most about {names[0]}: {row['fewest']:,} to "
        f"{counted(row['most'], 'win')} in {counted(turns, 'turn')}"
    )


def _span_words(frame: pl.DataFrame) -> str:
    return "; ".join(
        f"{row['candidate']}: "
        + ("" if row["logged"] is None else f"logged {row['logged']}, ")
        + f"from {row['fewest']} to {row['most']}"
        for row in frame.iter_rows(named=True)
    )


@unchecked
def _dumbbells(frame: pl.DataFrame) -> Drawing:
    names = frame.get_column("candidate").to_list()
    colors = alt.Color(
        "candidate:N", legend=None, scale=alt.Scale(domain=names, range=role_colors(names))
    )
    tips = [
        alt.Tooltip("candidate:N"),
        alt.Tooltip("logged:Q", title="logged wins"),
        alt.Tooltip("fewest:Q", title="fewest"),
        alt.Tooltip("most:Q", title="most"),
        alt.Tooltip("expected:Q", title="random order", format=".4~g"),
        alt.Tooltip("robust:Q", title="under every order"),
    ]
    base = alt.Chart(inline(frame)).encode(
        y=alt.Y("candidate:N", sort=names, title=None, axis=alt.Axis(domain=False, ticks=False))
    )
    wins = alt.X(
        "fewest:Q",
        title="wins (turns)",
        scale=alt.Scale(zero=True, nice=True),
        axis=alt.Axis(tickMinStep=1),
    )
    bar = base.mark_bar(height=7, opacity=0.35).encode(
        x=wins, x2=alt.X2("most:Q"), color=colors, tooltip=tips
    )
    ends = [
        base.mark_point(filled=False, size=70, strokeWidth=2).encode(
            x=alt.X(f"{end}:Q"), color=colors, tooltip=tips
        )
        for end in ("fewest", "most")
    ]
    expected = base.mark_tick(color=INK, thickness=2, height=20).encode(
        x=alt.X("expected:Q"), tooltip=tips
    )
    logged = base.mark_point(
        filled=True, size=130, opacity=1, stroke=PAPER, strokeWidth=1.5
    ).encode(x=alt.X("logged:Q"), color=colors, tooltip=tips)
    low = base.mark_text(align="right", dx=-10, color=MUTED, aria=False).encode(
        x=alt.X("fewest:Q"), text=alt.Text("fewest:Q")
    )
    high = base.mark_text(align="left", dx=10, color=MUTED, aria=False).encode(
        x=alt.X("most:Q"), text=alt.Text("most:Q")
    )
    own = [logged] if _is_logged(frame) else []
    return alt.layer(bar, *ends, expected, *own, low, high).properties(height=46 * len(names))
