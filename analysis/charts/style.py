"""One look for every chart: colours fixed per role and per condition, fonts, sizes.

Each colour stands for two: one on white paper, one on a dark screen. A chart names the first;
`analysis.charts.image_formats` swaps it for a variable of the page, so that one drawing serves
both. Colours are told apart under simulated colour blindness, and none is the only carrier of a
meaning: every mark also has a label or a place of its own.
"""

from collections.abc import Sequence
from typing import Any, Final

from tutorsim.vocabularies import CONDITIONS, DEFAULT_ROLES

__all__ = [
    "ACCENT",
    "CONFIG",
    "DARK",
    "GRID",
    "INK",
    "LOSS",
    "MUTED",
    "PAPER",
    "PLAIN",
    "TOKENS",
    "WIDTH",
    "condition_colors",
    "role_colors",
    "shades",
]

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
    "simple": ("#4b3b8f", "#9a8cf0"),
    "ranked": ("#a8362a", "#f0786b"),
    "cumulative": ("#a87c0c", "#e8c257"),
    "approval": ("#1f7f86", "#5fcdd4"),
    "rich": ("#511433", "#b24ca1"),
    "score": ("#5c4a00", "#c9a300"),
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

_SURFACES: Final = {
    "ink": (INK, "#e8eaee"),
    "muted": (MUTED, "#a7afba"),
    "grid": (GRID, "#343a43"),
    "paper": (PAPER, "#15181d"),
    "plain": (PLAIN, "#7d8591"),
    "accent": (ACCENT, "#6ea3f2"),
    "loss": (LOSS, "#dfa05c"),
}

_PAIRS: Final = {
    **_SURFACES,
    **{f"role{i}": pair for i, pair in enumerate(_ROLES, start=1)},
    **{f"shade{i}": pair for i, pair in enumerate(_SHADES, start=1)},
    **{f"condition-{name}": pair for name, pair in _CONDITIONS.items()},
}

TOKENS: Final[dict[str, str]] = {name: light for name, (light, _) in _PAIRS.items()}
"""Name of a page variable → colour on paper, as charts name it."""

DARK: Final[dict[str, str]] = {name: dark for name, (_, dark) in _PAIRS.items()}
"""Name of a page variable → colour on a dark screen."""

_FONT: Final = "Liberation Sans, Arimo, Arial, Helvetica, sans-serif"

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
        "labelColor": INK,
        "labelFontSize": 12,
        "labelLimit": 200,
        "labelFlush": False,
        "titleColor": MUTED,
        "titleFontSize": 12,
        "titleFontWeight": "normal",
        "titlePadding": 10,
        "gridColor": GRID,
        "domainColor": PLAIN,
        "tickColor": PLAIN,
    },
    "header": {
        "labelColor": INK,
        "labelFontSize": 12,
        "labelFontWeight": "bold",
        "titleColor": MUTED,
        "titleFontSize": 12,
        "titleFontWeight": "normal",
        "labelAnchor": "start",
    },
    "legend": {
        "labelColor": INK,
        "labelFontSize": 12,
        "labelLimit": 220,
        "titleColor": MUTED,
        "titleFontSize": 12,
        "titleFontWeight": "normal",
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
    return [_CONDITIONS[c][0] if c in CONDITIONS else PLAIN for c in conditions]


def shades(count: int) -> list[str]:
    """Shades of one quantity in `count` classes, from the strongest to the faintest."""
    places = len(_SHADES) - 1
    if count < 2:
        return [_SHADES[0][0]] * count
    return [_SHADES[min(round(i * places / (count - 1)), places)][0] for i in range(count)]
