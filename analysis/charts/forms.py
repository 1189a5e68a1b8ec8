"""The few forms that charts of every system share: dots with intervals, steps, tooltips."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import altair as alt
import polars as pl

from tutorsim.analysis.charts.figure import Drawing, inline, unchecked
from tutorsim.analysis.charts.style import ACCENT, INK, PAPER, shades

__all__ = ["NAMES", "ONE", "PERCENT", "dots", "faceted", "stacked", "steps", "tips"]

ONE: Final = alt.Scale(domain=[0, 1])
PERCENT: Final = alt.Axis(format=".0%", values=[0, 0.25, 0.5, 0.75, 1])
NAMES: Final = alt.Axis(domain=False, ticks=False)


def tips(*fields: str) -> list[alt.Tooltip]:
    """Tooltips, each `FIELD:TYPE`, with `=TITLE` and `|FORMAT` where there is one."""
    found = []
    for field in fields:
        name, _, form = field.partition("|")
        name, _, title = name.partition("=")
        told: dict[str, Any] = {"title": title, "format": form}
        found.append(alt.Tooltip(name, **{key: said for key, said in told.items() if said}))
    return found


@unchecked
def dots(
    data: pl.DataFrame,
    value: str,
    *,
    by: str = "condition",
    width: int,
    step: int,
    digits: str,
    more: Sequence[str] = (),
) -> Drawing:
    """A dot for each name with a bar from `lower` to `upper`.

    Args:
        data: A column `value`, one of names, and `lower` and `upper`.
        value: Column of the dots.
        by: Column of the names.
        width: Of the plot, in pixels.
        step: Height of a row, in pixels.
        digits: Format of the numbers in tooltips, such as `.3f`.
        more: Further fields of the tooltip.
    """
    base = alt.Chart().encode(y=alt.Y(f"{by}:N", sort=None, title=None, axis=NAMES))
    bar = base.mark_bar(height=7, opacity=0.4, color=ACCENT).encode(
        x=alt.X("lower:Q", title=value, scale=ONE), x2=alt.X2("upper:Q")
    )
    numbers = [f"{name}:Q|{digits}" for name in (value, "lower", "upper")]
    dot = base.mark_point(filled=True, size=60, color=INK, opacity=1).encode(
        x=alt.X(f"{value}:Q", title=value, scale=ONE), tooltip=tips(f"{by}:N", *numbers, *more)
    )
    return alt.layer(bar, dot).properties(data=inline(data), width=width, height=alt.Step(step))


@unchecked
def steps(data: pl.DataFrame, *, x: alt.X, y: alt.Y, colours: Mapping[str, str]) -> Drawing:
    """Lines in steps, one a series, told apart by colour, dashes and shapes."""
    names = alt.Scale(domain=list(colours))
    color = alt.Scale(domain=list(colours), range=list(colours.values()))
    base = alt.Chart().encode(x=x, y=y, color=alt.Color("series:N", title=None, scale=color))
    lines = base.mark_line(interpolate="step-after").encode(
        strokeDash=alt.StrokeDash("series:N", title=None, scale=names)
    )
    marks = base.mark_point(filled=True, size=45, opacity=1).encode(
        shape=alt.Shape("series:N", title=None, scale=names),
        tooltip=tips("series:N", "threshold:Q|.2f", "share:Q|.3f"),
    )
    return alt.layer(lines, marks).properties(data=inline(data), width=480, height=260)


@unchecked
def stacked(data: pl.DataFrame, part: str, *, title: str) -> Drawing:
    """Turns as bars, one a protocol, in shades of their parts; counts stand in them.

    Args:
        data: `protocol`, `turns`, the part's name, and `place`, by which parts lie in a bar.
        part: The column of the part's name.
        title: Of the legend.
    """
    protocols = data.get_column("protocol").unique(maintain_order=True).to_list()
    data = data.sort("place", maintain_order=True)
    names = data.get_column(part).unique(maintain_order=True).to_list()
    middle = pl.col("turns").cum_sum().over("protocol") - pl.col("turns") / 2
    data = data.with_columns(middle=middle).with_columns(strong=pl.col(part) == names[0])
    base = alt.Chart(inline(data)).encode(
        y=alt.Y("protocol:N", sort=protocols, title=None, axis=NAMES)
    )
    bars = base.mark_bar(height=24, stroke=PAPER, strokeWidth=1.5).encode(
        x=alt.X("turns:Q", title="turns", stack="zero", axis=alt.Axis(tickMinStep=1, tickCount=8)),
        order=alt.Order("place:Q"),
        color=alt.Color(
            f"{part}:N",
            title=title,
            sort=names,
            scale=alt.Scale(domain=names, range=shades(len(names))),
        ),
        tooltip=tips("protocol:N", f"{part}:N={title}", "turns:Q"),
    )
    text = base.mark_text(fontSize=11, aria=False).encode(
        x=alt.X("middle:Q"),
        text=alt.Text("turns:Q"),
        color=alt.ColorValue(INK, condition={"test": "datum.strong", "value": PAPER}),
    )
    return alt.layer(bars, text).properties(height=alt.Step(36))


def faceted(*layers: alt.Chart, data: pl.DataFrame, by: str, order: Sequence[str]) -> Drawing:
    """Layers over rows of names, one panel each, two beside one another."""
    facet = alt.Facet(f"{by}:N", sort=list(order), title=None)
    whole = alt.layer(*layers).properties(data=inline(data), width=270, height=alt.Step(24))
    return whole.facet(facet=facet, columns=2, spacing=34)
