"""A chart with what a reader needs around it, the forms that charts share, and their one look."""

import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final

import altair as alt
import polars as pl
import polars.selectors as cs
from altair.utils.schemapi import debug_mode

from tutorsim.analysis.ballots.names_and_properties_of_ballot_formats import FORMATS
from tutorsim.vocabularies import CONDITIONS, DEFAULT_ROLES

# --- Style ---------------------------------------------------------------------------------------

WIDTH: Final = 660
"""Width of a chart's plotting area in pixels, without axes."""

INK: Final = "#1a1c20"
MUTED: Final = "#5a616b"
GRID: Final = "#d9dce1"
PAPER: Final = "#fffffe"
PLAIN: Final = "#8a919c"
"""For marks that stand for no role and no condition, and for `nobody`."""
ACCENT: Final = "#2b5fad"
"""For shades of one quantity; lighter shades are this colour, more transparent."""

LOSS: Final = "#a35a12"
"""For shades of what gets less, beside `ACCENT` for what gets more."""

DEEPEST: Final = 0.55
"""Opacity of a cell's deepest shade: numbers in it can be read, on paper and in the dark."""

_ROLES: Final = (
    ("#16406f", "#4a8ff0"),
    ("#d1600a", "#ef7d2d"),
    ("#0f9d7e", "#57e6bd"),
    ("#cc63ba", "#e8a5e4"),
    ("#5c1212", "#8d7660"),
    ("#8c30e8", "#a24bff"),
    ("#6d6a12", "#d2f59b"),
    ("#0a0a33", "#d14f9f"),
)
"""On paper and on a dark screen, in the order of roles."""

_CONDITIONS: Final = {
    "baseline": ("#6f7680", "#a3abb6"),
    "rich": ("#511433", "#b24ca1"),
    **{name: form.colours for name, form in FORMATS.items() if form.colours is not None},
}

_SHADES: Final = (
    ("#234f91", "#8fb8f7"),
    ("#3c68ab", "#759fe0"),
    ("#5a83c0", "#5f86c4"),
    ("#7b9dd1", "#4c6fa6"),
    ("#9cb6df", "#3d5a88"),
    ("#bacce9", "#32486c"),
    ("#d3dff2", "#293a55"),
    ("#e7eef9", "#222e41"),
)

_PAIRS: Final = {
    "ink": (INK, "#e8eaee"),
    "muted": (MUTED, "#a7afba"),
    "grid": (GRID, "#343a43"),
    "paper": (PAPER, "#15181d"),
    "plain": (PLAIN, "#7d8591"),
    "accent": (ACCENT, "#6ea3f2"),
    "loss": (LOSS, "#dfa05c"),
    **{f"role{i}": pair for i, pair in enumerate(_ROLES, start=1)},
    **{f"shade{i}": pair for i, pair in enumerate(_SHADES, start=1)},
    **{f"condition-{c}": _CONDITIONS[c] for c in CONDITIONS if c in _CONDITIONS},
}

TOKENS: Final[dict[str, str]] = {name: light for name, (light, _) in _PAIRS.items()}
"""Name of a page variable → colour on paper, as charts name it."""

DARK: Final[dict[str, str]] = {name: dark for name, (_, dark) in _PAIRS.items()}
"""Name of a page variable → colour on a dark screen."""

_FONT: Final = "Liberation Sans, Arimo, Arial, Helvetica, sans-serif"

_WORDS: Final = {
    "labelColor": INK,
    "labelFontSize": 12,
    "titleColor": MUTED,
    "titleFontSize": 12,
    "titleFontWeight": "normal",
}
"""Look of the words of axes, headers and legends."""

CONFIG: Final[dict[str, Any]] = {
    "background": PAPER,
    "font": _FONT,
    "padding": 8,
    "view": {"stroke": None, "continuousWidth": WIDTH},
    "title": {
        "anchor": "start",
        "color": INK,
        "fontSize": 15,
        "fontWeight": "bold",
        "subtitleColor": MUTED,
        "subtitleFontSize": 11,
        "subtitlePadding": 6,
        "offset": 14,
        "frame": "bounds",
    },
    "axis": {
        **_WORDS,
        "labelLimit": 200,
        "labelFlush": False,
        "titlePadding": 10,
        "gridColor": GRID,
        "domainColor": PLAIN,
        "tickColor": PLAIN,
    },
    "header": {
        **_WORDS,
        "labelFontWeight": "bold",
        "labelAnchor": "start",
    },
    "legend": {
        **_WORDS,
        "labelLimit": 220,
        "orient": "top",
        "symbolStrokeWidth": 0,
        "symbolOpacity": 1,
    },
    "text": {"color": INK, "fontSize": 12},
    "rule": {"color": PLAIN},
}
"""Vega-Lite configuration of every chart."""


def role_colors(roles: Sequence[str]) -> list[str]:
    """A colour per candidate, in their order.

    The four default roles keep their colours in whatever company; others take the next free
    ones. Beyond eight, the rest share a grey.
    """
    free = iter(light for light, _ in _ROLES[len(DEFAULT_ROLES) :])
    own = {role: _ROLES[i][0] for i, role in enumerate(DEFAULT_ROLES)}
    if not set(roles) & set(DEFAULT_ROLES):
        free = iter(light for light, _ in _ROLES)
    return [own.get(role) or next(free, PLAIN) for role in roles]


def condition_colors(conditions: Sequence[str]) -> list[str]:
    """A colour per condition, in their order; grey for a name that is none."""
    return [_CONDITIONS[c][0] if c in _CONDITIONS else PLAIN for c in conditions]


def shades(count: int) -> list[str]:
    """Shades of one quantity in `count` classes, from the strongest to the faintest."""
    places = len(_SHADES) - 1
    if count < 2:
        return [_SHADES[0][0]] * count
    return [_SHADES[min(round(i * places / (count - 1)), places)][0] for i in range(count)]


# --- Figure --------------------------------------------------------------------------------------

Drawing = alt.LayerChart | alt.FacetChart

unchecked = debug_mode(False)
"""Makes a function draw its chart without a check of each part against Vega-Lite's schema, which
takes longer than the drawing; tests check the whole."""

CASCADE: Final = (
    "Single votes, with all that came before them held fixed: what would have followed another "
    "winner, nobody recorded."
)
"""The warning that goes with every counterfactual about single turns."""

_TITLE_WIDTH: Final = 74
_SUBTITLE_WIDTH: Final = 104


@dataclass(frozen=True)
class Figure:
    """One chart, or the reason why there is none."""

    name: str
    """Name of the chart, as `--chart` takes it."""
    finding: str
    """One sentence, computed from the data; the chart's title."""
    caption: str
    """What is held fixed, what n is, and how to read the marks."""
    method: str
    """How the numbers came about, for a reader who wants to check."""
    data: pl.DataFrame = field(repr=False)
    """The rows behind the marks, as the page's table shows them; empty when there is no chart."""
    chart: Drawing | None = field(repr=False)
    """`None` when there is nothing to draw; `finding` then says why."""
    alternative: str = ""
    """What the drawing shows, for readers who do not see it."""
    heads: Mapping[str, str] = field(default_factory=dict)
    """Title of an axis or of a column → what it is called instead."""

    @cached_property
    def vega_lite(self) -> dict[str, Any]:
        """The chart without what stands around it; `unchecked` as its parts are."""
        assert self.chart is not None
        made: dict[str, Any] = _called(self.chart.to_dict(validate=False), self.heads)
        return made


def _called(value: Any, heads: Mapping[str, str]) -> Any:
    """A part of a specification, its titles called otherwise; without one, a field is the title."""
    if isinstance(value, list):
        return [_called(one, heads) for one in value]
    if not heads or not isinstance(value, dict) or "values" in value:  # data keeps its names
        return value
    made = {name: _called(one, heads) for name, one in value.items()}
    title = made.get("title", made.get("field"))
    return made | {"title": heads[title]} if isinstance(title, str) and title in heads else made


def inline(frame: pl.DataFrame) -> alt.InlineData:
    """The rows of a frame as data inside the chart, whatever their number.

    Numbers are rounded far below what can be seen, so that no machine's last bits get into a file.
    """
    return alt.InlineData(values=frame.with_columns(cs.float().round(6)).to_dicts())


def spec(figure: Figure, *, provenance: str, titled: bool = True) -> dict[str, Any]:
    """The Vega-Lite specification of a figure that has a chart.

    `provenance`: what answered the calls, as part of the subtitle, if known. `titled`: with the
    finding as title and the caption under it, to stand alone; a page prints both around it, on its
    own background.
    """
    config = CONFIG if titled else {**CONFIG, "background": None}
    alternative = figure.alternative or figure.finding
    made = {**figure.vega_lite, "config": config, "description": alternative}
    if titled:
        answered = f" Answered by: {provenance}." if provenance else ""
        made["title"] = {
            "text": textwrap.wrap(figure.finding, _TITLE_WIDTH),
            "subtitle": textwrap.wrap(figure.caption + answered, _SUBTITLE_WIDTH),
        }
    return made


# --- Forms ---------------------------------------------------------------------------------------

ONE: Final = alt.Scale(domain=[0, 1])
PERCENT: Final = alt.Axis(format=".0%", values=[0, 0.25, 0.5, 0.75, 1])
NAMES: Final = alt.Axis(domain=False, ticks=False)


def tips(*fields: str) -> list[alt.Tooltip]:
    """Tooltips, each `FIELD:TYPE`, with `=TITLE` and `|FORMAT` where there is one."""
    found = []
    for one in fields:
        name, _, form = one.partition("|")
        name, _, title = name.partition("=")
        told: dict[str, Any] = {"title": title, "format": form}
        found.append(alt.Tooltip(name, **{key: said for key, said in told.items() if said}))
    return found


_DIGITS: Final = 55
"""Half digits for which a narrow screen's longest bar has room."""
_TICKS: Final = 8
"""About how many ticks an axis of counts has."""


def counts_axis(most: float) -> alt.Axis:
    """An axis of counts up to `most`, without ticks between whole numbers."""
    if most < _TICKS:  # `tickMinStep` is not kept to where layers share an axis
        return alt.Axis(values=list(range(_TICKS)), format="d")
    return alt.Axis(tickCount=_TICKS)


def stacked(data: pl.DataFrame, part: str, *, title: str, parts: Sequence[str]) -> Drawing:
    """Turns as bars, one a protocol, in shades of their parts; counts stand in them.

    `data`: `protocol`, `turns` and the part's name. `parts`: all that there may be, in the order in
    which they lie in a bar, each with one shade whichever are there.
    """
    protocols, whole = names_in(data, "protocol"), pl.col("turns").sum().over("protocol")
    place = pl.col(part).replace_strict(parts, range(len(parts)), return_dtype=pl.Int64)
    data = data.with_columns(place=place).sort("place", maintain_order=True)
    middle = pl.col("turns").cum_sum().over("protocol") - pl.col("turns") / 2
    digits = pl.col("turns").cast(pl.String).str.len_chars()
    data = data.with_columns(
        all=whole,  # a count never stands on the name beside its bar
        middle=pl.max_horizontal(middle, digits * whole.max() / _DIGITS),
    )
    axis = counts_axis(max(data["all"]))
    base = alt.Chart().encode(y=alt.Y("protocol:N", sort=protocols, title=None, axis=NAMES))
    bars = base.mark_bar(height=24, stroke=PAPER, strokeWidth=1.5).encode(
        x=alt.X("turns:Q", title="turns", stack="zero", axis=axis),
        order=alt.Order("place:Q"),
        color=coloured(part, parts, shades(len(parts)), title=title, sort=parts),
        tooltip=tips("protocol:N", f"{part}:N={title}", "turns:Q", "all:Q=of turns"),
    )
    text = base.mark_text(fontSize=11, aria=False).encode(
        x=alt.X("middle:Q", title="turns", axis=axis),
        text=alt.Text("turns:Q"),
        color=alt.ColorValue(INK, condition={"test": "datum.place == 0", "value": PAPER}),
    )
    return layered(bars, text, data=inline(data), height=alt.Step(36))


def layered(*layers: alt.Chart, **properties: Any) -> alt.LayerChart:
    """Layers over one another; `properties`: of the whole, such as `data` and `height`."""
    return _Layers(layer=list(layers), **properties)


class _Layers(alt.LayerChart):
    """Written as altair's own, which copies every part of a layer twice, and again when written."""

    def __init__(self, **properties: Any) -> None:
        super(alt.LayerChart, self).__init__(**properties)


class _Panels(alt.FacetChart):
    """Panels written as altair's own, which copies a panel twice, and again when written."""

    def __init__(self, **properties: Any) -> None:
        super(alt.FacetChart, self).__init__(**properties)


def names_in(data: pl.DataFrame, column: str) -> list[str]:
    """The names in a column, in order of first appearance."""
    return data.get_column(column).unique(maintain_order=True).to_list()


def coloured(field: str, names: Sequence[str], colours: Sequence[str], **more: Any) -> alt.Color:
    """Colour by a column of names, each with one of the colours."""
    scale = alt.Scale(domain=list(names), range=list(colours))
    return alt.Color(f"{field}:N", scale=scale, **more)


def faceted(
    *layers: alt.Chart,
    data: pl.DataFrame,
    by: str,
    order: Sequence[str] | None = (),
    width: int | alt.Step = 270,
    height: int | None = None,
    step: int = 24,
    spacing: int = 34,
    columns: int = 2,
) -> Drawing:
    """Layers over rows of names, one panel each, so many beside one another.

    `order`: the panels; as they come in the data, when left out; `None`: by name. `height`: of a
    panel in pixels; as many steps as it has rows, when left out. `step`: height of a row in pixels.
    """
    sort = alt.Undefined if order is None else list(order) or names_in(data, by)
    facet = alt.Facet(f"{by}:N", sort=sort, title=None)
    high = alt.Step(step) if height is None else height
    panel = layered(*layers, width=width, height=high)
    return _Panels(spec=panel, data=inline(data), facet=facet, columns=columns, spacing=spacing)


def about_zero(data: pl.DataFrame, of: object) -> Drawing:
    """A dot for each contrast with a bar from `lower` to `upper`, about zero, a panel an outcome.

    `data`: columns `outcome`, `contrast`, `difference`, `lower` and `upper`.
    """
    base = alt.Chart().encode(y=alt.Y("contrast:N", sort=None, title=None, axis=NAMES))
    zero = alt.Chart().mark_rule().encode(x=alt.datum(0))
    bar = base.mark_bar(height=6, opacity=0.4, color=ACCENT).encode(
        x=alt.X("lower:Q", title="difference"), x2=alt.X2("upper:Q")
    )
    dot = base.mark_point(filled=True, size=50, color=INK, opacity=1).encode(
        x=alt.X("difference:Q"),
        tooltip=tips("outcome:N", "contrast:N", *(f"{n}:Q|.2f" for n in data.columns[2:])),
    )
    return faceted(zero, bar, dot, data=data, by="outcome")


def bars_about_zero(data: pl.DataFrame, over: str) -> str:
    """What the bars of `about_zero` are; `over`: what intervals are over."""
    few = data.get_column("lower").is_null().all()
    return f"No bars: {over} are too few for an interval." if few else "Bars are 95 % intervals."
