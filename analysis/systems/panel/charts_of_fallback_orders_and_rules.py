"""Charts of what other fallback orders and other rules would have elected."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from statistics import fmean
from typing import Any, Final

import altair as alt
import polars as pl

from tutorsim.analysis.charts import figures_forms_and_colours as look
from tutorsim.analysis.counting.names_and_parameters_of_rules import TARGETS, conventions_of
from tutorsim.analysis.pages.decorators_to_declare_tables_and_charts import Row, each_row, figure
from tutorsim.analysis.pages.words_and_safe_text import (
    counted,
    extremes,
    listed,
    percent,
    share,
    short_names,
    spoken,
    top,
)
from tutorsim.analysis.statistics import by_key
from tutorsim.analysis.systems.panel.page_data_and_published_figures import Evidence
from tutorsim.vocabularies import PROTOCOLS

# --- Fallback orders -----------------------------------------------------------------------------

_MOST_ROWS: Final = 24
"""Orders drawn one by one; with more candidates, orders with the same head share a row."""

_CELL: Final = 128
"""Width of a cell in pixels."""


def _no_orders(of: Evidence) -> str:
    found = of.orders
    if found.turns and not found.logged_order:
        return (
            "No order is logged, so none can be changed; the span of each candidate's wins over "
            "all orders follows."
        )
    if found.turns and not found.listed:
        return (
            f"{found.many} orders of {len(found.candidates)} candidates are too many to list "
            f"one by one; the span of each candidate's wins follows without listing them."
        )
    return "Nothing was put to a vote, so no order decided it."


def _most_changed(of: Evidence) -> int:
    return max(row.changed or 0 for row in of.orders.listed)


def _orders_finding(data: pl.DataFrame, of: Evidence) -> str:
    most, orders, turns = _most_changed(of), len(of.orders.listed), of.orders.turns
    if most == 0:
        return f"No order would change a winner: all {orders} elect the same in every {of.unit}"
    return f"Another fallback order would change the winner of up to {share(most, turns, of.unit)}"


def _reading(data: pl.DataFrame, of: Evidence) -> str:
    if any("…" in row for row in look.names_in(data, "row")):
        return (
            "Each row stands for all orders that begin alike; cells are averages over them. "
            "► marks the beginning of the logged order."
        )
    short = short_names(of.orders.logged_order).items()
    names = ", ".join(f"{cut} = {name}" for name, cut in short if cut != name)
    return f"► marks the logged order.{f' {names}.' if names else ''}"


def _label(head: Sequence[str], logged: Sequence[str]) -> str:
    """The name of the row of all orders that begin so."""
    short = short_names(logged)
    tail = ["…"] if len(head) < len(logged) else []
    mark = "► " if head == logged[: len(head)] else ""
    return mark + " › ".join([*(short[c] for c in head), *tail])


def _depth(m: int) -> int:
    """How many places of an order name its row, so that rows stay few."""
    rows = 1
    for depth in range(1, m + 1):
        rows *= m - depth + 1
        if rows > max(_MOST_ROWS, m):
            return max(depth - 1, 1)
    return m


def _heat(data: pl.DataFrame, of: Evidence) -> look.Drawing:
    rows, candidates = look.names_in(data, "row"), list(of.orders.logged_order)
    own = dict(data.filter(pl.col("row") == rows[0]).select("candidate", "wins").iter_rows())
    data = data.with_columns(
        more=pl.col("wins") - pl.col("candidate").replace_strict(own, return_dtype=pl.Float64)
    ).with_columns(size=pl.col("more").abs())
    most = max(extremes(data.get_column("size"))[1], 1)
    above = alt.Axis(orient="top", labelAngle=0, labelLimit=_CELL - 6, domain=False, ticks=False)
    close = "replace(datum.label, / › /g, '›')"  # a telephone has no room for spaces
    beside = alt.Axis(labelLimit=300, domain=False, ticks=False, labelExpr=close)
    base = alt.Chart(look.inline(data)).encode(
        x=alt.X("candidate:N", sort=candidates, title="winner", axis=above),
        y=alt.Y("row:N", sort=rows, title=None, axis=beside),
    )
    cells = base.mark_rect(stroke=look.PAPER, strokeWidth=2).encode(
        color=alt.ColorValue(look.ACCENT, condition={"test": "datum.more < 0", "value": look.LOSS}),
        opacity=alt.Opacity(
            "size:Q", legend=None, scale=alt.Scale(domain=[0, most], range=[0.04, look.DEEPEST])
        ),
        tooltip=look.tips(
            *("row:N=order", "candidate:N=winner", "wins:Q=wins|.4~g"),
            *("more:Q=against the log|+.4~g", "changed:Q=turns changed|.4~g"),
        ),
    )
    numbers = base.mark_text(fontSize=11, aria=False).encode(
        text=alt.Text("wins:Q", format=".4~g"), color=alt.ColorValue(look.INK)
    )
    notes = data.unique("row", keep="first", maintain_order=True).with_columns(
        note=pl.col("changed").round(1).map_elements("{:g}".format, pl.String)
    )
    right = alt.Chart(look.inline(notes)).mark_text(
        fontSize=11, aria=False, align="left", color=look.MUTED
    )
    changed = right.encode(
        y=alt.Y("row:N", sort=rows),
        text="note:N",
        x=alt.XValue(_CELL * len(candidates) + 8),  # type: ignore[no-untyped-call]
    )
    size = {"width": _CELL * len(candidates), "height": 22 * len(rows)}
    return look.layered(cells, numbers, changed, **size)


@figure(
    "orders",
    finding=_orders_finding,
    without=_no_orders,
    method="Exact. What the order decided goes to the first of the tied candidates in each order; "
    "all others keep their winner. Each tied set is counted once, so every order follows from one "
    "pass over the ballots.",
    alternative=lambda data, of: (
        f"A table of {data['row'].n_unique()} rows and {len(of.orders.logged_order)} columns "
        f"with wins in the cells; at most {counted(_most_changed(of), of.unit)} change against the "
        "logged order."
    ),
    draw=_heat,
    n=lambda data, of: counted(of.orders.turns, of.unit),
    reading=_reading,
)
def orders_figure(of: Evidence) -> Iterator[Row]:
    """Wins of each candidate under every fallback order; n = {n}. Blue cells are more wins than
    logged, brown ones fewer, the deeper the more; beside them stands how many winners change.
    {reading} {cascade}"""
    logged = of.orders.logged_order
    depth = _depth(len(logged))
    listed = of.orders.listed if of.orders.turns else ()
    heads = by_key((tuple(one.order[:depth]), one) for one in listed)
    rows = [(fmean(one.changed or 0 for one in orders), head) for head, orders in heads.items()]
    # from the logged order to the most different
    rows.sort(key=lambda row: (row[1] != logged[:depth], row[0], [*map(logged.index, row[1])]))
    for changed, head in rows:
        for candidate in logged:
            yield {
                "row": _label(head, logged),
                "candidate": candidate,
                "wins": fmean(one.wins[candidate] for one in heads[head]),
                "changed": changed,
            }


def _span_finding(data: pl.DataFrame, of: Evidence) -> str:
    spans = {row["candidate"]: row["most"] - row["fewest"] for row in data.iter_rows(named=True)}
    names, turns = top(spans), of.orders.turns
    if not names:
        return "No candidate's wins depend on the fallback order"
    decides = "An order would decide" if of.unordered else "The order decides"
    if len(names) > 1:
        return (
            f"{decides} most about {listed(names)}: {counted(spans[names[0]], 'win')} each of "
            f"{counted(turns, of.unit)}"
        )
    [row] = data.filter(pl.col("candidate") == names[0]).iter_rows(named=True)
    return (
        f"{decides} most about {names[0]}: {row['fewest']:,} to "
        f"{counted(row['most'], 'win')} in {counted(turns, of.unit)}"
    )


def _span_words(row: Mapping[str, Any]) -> str:
    logged = "" if row["logged"] is None else f"logged {row['logged']}, "
    return f"{row['candidate']}: {logged}from {row['fewest']} to {row['most']}"


_NAMES: Final = alt.Axis(domain=False, ticks=False, offset=26)
"""Names with room before the axis for the number of who wins nothing."""


def _dumbbells(data: pl.DataFrame, of: Evidence) -> look.Drawing:
    names = data.get_column("candidate").to_list()
    base = alt.Chart().encode(y=alt.Y("candidate:N", sort=names, title=None, axis=_NAMES))
    told = base.encode(
        tooltip=look.tips(
            *("candidate:N", "logged:Q=logged wins", "fewest:Q=fewest", "most:Q=most"),
            *("expected:Q=random order|.4~g", "robust:Q=under every order"),
        )
    )
    own = told.encode(color=look.coloured("candidate", names, look.role_colors(names), legend=None))
    axis, wide = look.counts_axis(max(data["most"])), alt.Scale(zero=True, nice=True)
    wins = alt.X("fewest:Q", title="wins", scale=wide, axis=axis)
    bar = own.mark_bar(height=7, opacity=0.35).encode(x=wins, x2="most:Q")
    hollow = own.mark_point(filled=False, size=70, strokeWidth=2)
    expected = told.mark_tick(color=look.INK, thickness=2, height=20).encode(x="expected:Q")
    logged = own.mark_point(filled=True, size=130, opacity=1, stroke=look.PAPER, strokeWidth=1.5)
    dot = [logged.encode(x="logged:Q")] if of.orders.logged_order else []
    beside: dict[str, dict[str, Any]] = {
        "fewest:Q": {"align": "right", "dx": -10},
        "most:Q": {"align": "left", "dx": 10},
    }
    numbers = [
        base.mark_text(color=look.MUTED, aria=False, **place).encode(x=end, text=end)
        for end, place in beside.items()
    ]
    layers = (bar, *(hollow.encode(x=end) for end in beside), expected, *dot, *numbers)
    return look.layered(*layers, data=look.inline(data), height=46 * len(names))


@figure(
    "wins",
    finding=_span_finding,
    without="Nothing was put to a vote, so nobody won.",
    method="Exact, from the counts of tied sets. Robust wins are those under every order; a random "
    "order gives each of k tied candidates 1/k of a win.",
    alternative=each_row(_span_words),
    draw=_dumbbells,
    kinds={"logged": pl.Int64},
    n=lambda data, of: counted(of.orders.turns, of.unit),
    dot=lambda data, of: "the filled dot is the logged order, " if of.orders.logged_order else "",
)
def wins_figure(of: Evidence) -> Iterator[Row]:
    """Wins per candidate; n = {n}, {orders.many} orders. The bar runs from the fewest to the
    most wins that an order gives, {dot}the tick a random order's expectation. {cascade}"""
    for one in of.orders.candidates if of.orders.turns else ():
        yield {
            "candidate": one.candidate,
            "logged": one.logged,
            "fewest": one.least,
            "most": one.most,
            "expected": float(one.expected),
            "robust": one.robust,
        }


# --- Other rules ---------------------------------------------------------------------------------

UNSETTLED: Final = "not settled"
"""Named so wherever the exact set was too costly to find."""

PARTS: Final = ("surely kept", "open", "surely changed")
"""What a rule makes of a logged winner."""


def _kept_finding(data: pl.DataFrame, of: Evidence) -> str:
    cases = int(data.get_column("turns").sum())
    sums = dict(data.group_by("part").agg(pl.col("turns").sum()).iter_rows())
    kept, left, changed = (sums.get(part, 0) for part in PARTS)
    if cases == data.get_column("protocol").n_unique() and kept < cases:  # of a single vote
        return f"{kept} of {cases} other rules surely keep the winner; " + (
            f"{changed} surely change it" if changed else "none surely changes it"
        )
    return (
        f"Another rule surely keeps {percent(kept / cases)} of winners and surely changes "
        f"{percent(changed / cases)}{'; the others stay open' if left else ''}"
    )


@figure(
    "kept",
    finding=_kept_finding,
    without=lambda of: f"{of.no_winner}, so no rule can keep a winner.",
    method="A ballot fixes only part of what its voter would have cast in another format; what "
    "every completion elects is sure.",
    alternative="{protocol}, {part}: {turns}",
    draw=lambda data, of: look.stacked(data, "part", title="winner", parts=PARTS),
    cases=lambda data, of: counted(int(data.get_column("turns").sum()), "case"),
    units=lambda data, of: f"{of.unit}s".capitalize(),
)
def kept_figure(of: Evidence) -> Iterator[Row]:
    """{units} in another format than the rule's own, {cases} in all, by whether the rule surely
    elects the logged winner, surely elects somebody else, or may do either as far as the ballots
    tell. A tie stays a tie. {cascade}"""
    counts: dict[str, Counter[str]] = {}
    for r in of.rule_rows:
        if r.reading == "set" and r.other and r.turns and not r.point_only:
            sure = (r.agreement.lower, r.with_winner - r.agreement.lower - r.changes, r.changes)
            counts.setdefault(r.target, Counter()).update(dict(zip(PARTS, sure, strict=True)))
    for target in sorted(counts, key=_place):
        for part in PARTS:
            if counts[target][part]:
                yield {
                    "protocol": spoken(target),
                    "part": part,
                    "turns": counts[target][part],
                }


def _place(target: str) -> int:
    """Own rules stand after the shipped ones."""
    return TARGETS.index(target) if target in TARGETS else len(TARGETS)


def _conventions(data: pl.DataFrame, of: Evidence) -> str:
    """How the other rules count, where counts of the same name differ."""
    words = conventions_of(data.get_column("target").unique())
    return f"{words} " if words else ""


def _other_protocols(data: pl.DataFrame) -> pl.DataFrame:
    """Pairs of two protocols that differ."""
    return data.filter((pl.col("logged") != pl.col("target")) & pl.col("target").is_in(PROTOCOLS))


def _over_turns(data: pl.DataFrame, column: str) -> float:
    """The mean of a share over turns."""
    turns = data.get_column("turns")
    return float((data.get_column(column) * turns).sum()) / int(turns.sum())


def _agreement_finding(data: pl.DataFrame, of: Evidence) -> str:
    other = _other_protocols(data)
    if not other.get_column("turns").sum():
        return "No protocol was recounted under another"
    low, high = (_over_turns(other, end) for end in ("lower", "upper"))
    if low == high:
        return f"Counted under another protocol, {percent(low)} of winners stay"
    return (
        f"Counted under another protocol, {percent(low)} to {percent(high)} of winners stay: "
        f"the ballots do not say more"
    )


def _open_line(data: pl.DataFrame, of: Evidence) -> str:
    apart = (pl.col("lower") != pl.col("lower_open")) | (pl.col("upper") != pl.col("upper_open"))
    return "" if data.filter(apart).is_empty() else "; the thin line leaves ties open"


def _intervals(data: pl.DataFrame, of: Evidence) -> look.Drawing:
    data, plain = _panels(data, of)
    base = plain.encode(
        tooltip=look.tips(
            *(*_PAIR_TIPS, "lower:Q=at least|.1%", "upper:Q=at most|.1%"),
            *("lower_open:Q=at least, ties open|.1%", "upper_open:Q=at most, ties open|.1%"),
            "point:Q=projection|.1%",
        )
    )
    across = alt.X("lower:Q", title="share of turns", scale=look.ONE, axis=look.PERCENT)
    line = base.mark_rule(color=look.ACCENT, strokeWidth=1)
    open_ties = line.encode(x="lower_open:Q", x2="upper_open:Q")
    bar = base.mark_bar(height=9, opacity=0.45, color=look.ACCENT).encode(x=across, x2="upper:Q")
    tick = base.mark_tick(color=look.ACCENT, thickness=2, height=13)
    ends = [tick.encode(x=end) for end in ("lower:Q", "upper:Q")]
    dot = base.mark_point(filled=True, size=60, color=look.INK, opacity=1).encode(x="point:Q")
    return look.faceted(open_ties, bar, *ends, dot, data=data, by="panel", step=22, spacing=38)


def _panels(data: pl.DataFrame, of: Evidence) -> tuple[pl.DataFrame, alt.Chart]:
    """The rows with their panel and name, and a chart with the rows set up."""
    counts = data.group_by("logged", "target", maintain_order=True).agg(pl.col("turns").sum())
    totals = dict(counts.select("logged", "turns").iter_rows())
    data = data.with_columns(
        row=pl.col("target").str.replace_all("_", " "),
        panel=pl.col("logged").replace_strict(
            {name: f"logged under {name}, {counted(n, of.unit)}" for name, n in totals.items()}
        ),
    )
    y = alt.Y("row:N", sort=look.names_in(data, "row"), title="counted as", axis=look.NAMES)
    return data, alt.Chart().encode(y=y)


_PAIR_TIPS: Final = ("logged:N=logged", "row:N=counted as", "turns:Q")


@figure(
    "agreement",
    finding=_agreement_finding,
    without=lambda of: f"{of.no_winner}, so no rule can agree with another.",
    method="A ballot fixes only part of what its voter would have cast in another format. The "
    "lower end counts those where every completion elects the logged winner, the upper end those "
    "where some completion does. Nobody voted on a tie under the other rule, so both readings are "
    "drawn. Assumes that a voter's preference is the same in every format.",
    alternative=each_row(
        lambda r: (
            f"{r['logged']} counted as {r['target']}: {percent(r['lower'])} to "
            f"{percent(r['upper'])}"
        )
    ),
    draw=_intervals,
    kinds={"point": pl.Float64},
    ties=lambda data, of: (
        "a tie staying a tie" if of.unordered else "ties going to the fallback order"
    ),
    line=_open_line,
    conventions=_conventions,
)
def agreement_figure(of: Evidence) -> Iterator[Row]:
    """Share of the {unit}s logged under one protocol in which the other rule has the same winner.
    The bar is what the ballots allow: certainly at least its left end, possibly up to its right
    end, {ties}{line}. The dot is one named way to fill in the rest. {conventions}{cascade}"""
    open_ties = {
        (r.logged_protocol, r.target): r.agreement for r in of.rule_rows if r.reading == "set"
    }
    for r in of.rules:
        if n := r.with_winner:
            left_open = open_ties[r.logged_protocol, r.target]
            yield {
                "logged": r.logged_protocol,
                "target": r.target,
                "turns": n,
                "lower": r.agreement.lower / n,
                "upper": r.agreement.upper / n,
                "point": None if r.agreement.point is None else r.agreement.point / n,
                "lower_open": left_open.lower / n,
                "upper_open": left_open.upper / n,
                "projection": r.projection,
            }


def _certain(data: pl.DataFrame) -> pl.DataFrame:
    """Share of turns with one possible winner, zero where no such row is there."""
    return data.group_by("logged", "target", maintain_order=True).agg(
        share=pl.col("share").filter(pl.col("possible") == "1").sum(), turns=pl.col("turns").sum()
    )


def _identification_finding(data: pl.DataFrame, of: Evidence) -> str:
    other = _other_protocols(_certain(data))
    if not other.get_column("turns").sum():
        return "Each protocol is counted on its own ballots only, so every winner is certain"
    certain = percent(_over_turns(other, "share"))
    never = other.filter(pl.col("share") == 0).height
    said = f"The ballots name one winner under another protocol in {certain} of cases"
    return f"{said}, and in none for {never} of {counted(other.height, 'pair')}" if never else said


def _widths(data: pl.DataFrame, of: Evidence) -> look.Drawing:
    names = set(look.names_in(data, "possible"))
    sizes, unsettled = sorted(names - {UNSETTLED}, key=int), names & {UNSETTLED}
    domain = [*sizes, *unsettled]
    data, base = _panels(data, of)
    data = data.with_columns(place=pl.col("possible").replace_strict(domain, range(len(domain))))
    bars = base.mark_bar(height=16, stroke=look.PAPER, strokeWidth=1).encode(
        x=alt.X("share:Q", title="share of turns", stack="zero", scale=look.ONE, axis=look.PERCENT),
        order=alt.Order("place:Q"),
        color=look.coloured(
            *("possible", domain, [*look.shades(len(sizes)), look.PLAIN][: len(domain)]),
            title="possible winners",
            sort=domain,
        ),
        tooltip=look.tips(*_PAIR_TIPS, "possible:N=possible winners", "share:Q|.1%"),
    )
    certain = base.mark_text(align="left", dx=5, color=look.PAPER, fontSize=11, aria=False).encode(
        x=alt.XDatum(0), text=alt.Text("share:Q", format=".0%")
    )
    certain = certain.transform_filter("datum.possible === '1' && datum.share >= 0.12")
    return look.faceted(bars, certain, data=data, by="panel", step=22, spacing=38)


@figure(
    "identification",
    finding=_identification_finding,
    without="Nothing was put to a vote, so nothing is left open.",
    method="Possible winners are found exactly, over all combinations of ballots that agree with "
    "the ones cast. What is too costly to settle is counted as not settled, never guessed.",
    alternative=lambda data, of: "; ".join(
        f"{r['logged']} counted as {r['target']}: one possible winner in {percent(r['share'])}"
        for r in _certain(data).iter_rows(named=True)
    ),
    draw=_widths,
    ties=lambda data, of: (
        "A tie stays a tie" if of.unordered else "A tie goes to the fallback order"
    ),
    conventions=_conventions,
)
def identification_figure(of: Evidence) -> Iterator[Row]:
    """How many candidates may have won under the other rule, per {unit}; the strongest shade
    stands for exactly one. {ties}; for Condorcet, nobody counts as a winner where there may be
    none. A case is a {unit} and another protocol. No voter is exempt from the assumption that
    preferences are the same in every format. {conventions}{cascade}"""
    for r in of.rules:
        counts = {str(size): n for size, n in sorted(r.widths.items())}
        counts[UNSETTLED] = r.not_settled
        for size, n in counts.items():
            if n:
                yield {
                    "logged": r.logged_protocol,
                    "target": r.target,
                    "possible": size,
                    "turns": n,
                    "share": n / r.turns,
                }
