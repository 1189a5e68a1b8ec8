"""How turns were decided, and what deliberation moved."""

from collections.abc import Sequence
from typing import Final

import altair as alt
import polars as pl

from tutorsim.analysis.charts.figure import LOGGED, Drawing, Figure, absent, inline, unchecked
from tutorsim.analysis.charts.number_words import SMALL, counted, percent, share
from tutorsim.analysis.charts.style import ACCENT, INK, MUTED, PAPER, shades
from tutorsim.vocabularies import DECIDED_BY

__all__ = ["decided_figure", "movement_figure"]


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
