"""From a Vega-Lite specification to SVG, PNG and JSON, on a wide screen and a narrow one."""

import json
import re
from collections.abc import Iterable
from html import escape
from itertools import count
from typing import Any, Final

import altair as alt
import vl_convert

from tutorsim.analysis.charts.figures_forms_and_colours import TOKENS
from tutorsim.analysis.charts.svg_worker_and_its_fonts import Run, svg
from tutorsim.analysis.pages.words_and_safe_text import shown

# --- Image formats -------------------------------------------------------------------------------

VEGA_LITE: Final = ".".join(alt.SCHEMA_VERSION.removeprefix("v").split(".")[:2])
"""The Vega-Lite that draws: the one whose schema altair writes."""

_PNG_SCALE: Final = 2

_COLORS: Final = {color: f"var(--{name})" for name, color in TOKENS.items()}
_COLOR = re.compile(r'\b(fill|stroke)="({})"'.format("|".join(map(re.escape, _COLORS))))
_ID = re.compile(r'\bid="([^"]*)"|\burl\(#([^)]*)\)')
_MARK = re.compile(r'<(path|line) aria-label="([^"]*)"([^>]*?)/>')
_SILENT = re.compile(
    r' (?:role|aria-roledescription|aria-hidden|font-family|pointer-events|class)="[^"]*"'
    r"(?=[^<>]*>)"
    r'| (?:opacity="1"|font-size="12px"|font-weight="normal"|stroke-width="1"'
    r'|text-anchor="start"|transform="translate\(0,0\)")(?=[^<>]*>)'
    r'|<path class="background"(?![^>]*(?:fill|stroke)=)[^>]*/>'
    r'|<path class="foreground"[^>]*? d=""[^>]*/>'
)
"""What a drawing with one text alternative does not need on a page: the page has its font, and the
other values are what a browser takes where none is said."""
_GROUP = re.compile(r'<g(?: aria-label="[^"]*")?([^<>]*)>|</g>')
_FRACTION = re.compile(r"\d+\.\d{3,}")
_ROOT = re.compile(r'<svg [^>]*?width="([0-9.]+)" height="([0-9.]+)" viewBox="([^"]*)">')


def here(specs: Iterable[dict[str, Any]]) -> list[str]:
    """The raw drawings of specifications, drawn by this process."""
    return [svg(spec, version=VEGA_LITE) for spec in specs]


def drawn(specs: Iterable[dict[str, Any]], *, run: Run = here) -> list[str]:
    """The raw drawings of specifications.

    `specs`: Vega-Lite specifications; each may be drawn before the next one is made.
    """
    return run(map(readable, specs))


def to_svg(spec: dict[str, Any]) -> str:
    """A drawing that stands alone, on white paper."""
    return _own_ids(drawn([spec])[0], "chart") + "\n"


def to_png(spec: dict[str, Any]) -> bytes:
    """A picture with two dots per pixel."""
    picture: bytes = vl_convert.vegalite_to_png(
        readable(spec), vl_version=VEGA_LITE, scale=_PNG_SCALE
    )
    return picture


def to_json(spec: dict[str, Any]) -> str:
    """The specification itself, for any Vega-Lite viewer."""
    return json.dumps(spec, ensure_ascii=False, indent=1, sort_keys=True) + "\n"


def to_page_svg(drawing: str, *, name: str, label: str, hovered: bool = True) -> str:
    """A drawing to stand inside an HTML page.

    Colours of the house are variables of the page (`var(--ink)`), so that light, dark and
    print need one drawing; ids are the chart's own; marks show their values on hovering.

    `hovered`: marks show their values; a telephone has nothing to hover with.
    """
    drawing = _SILENT.sub("", _FRACTION.sub(lambda found: f"{float(found[0]):.2f}", drawing))
    drawing = _ROOT.sub(lambda found: _root(found, name, label), drawing, count=1)
    drawing = _own_ids(_without_idle_groups(drawing), name)
    drawing = _MARK.sub(r"<\1\3><title>\2</title></\1>" if hovered else r"<\1\3/>", drawing)
    return _COLOR.sub(lambda found: f'{found[1]}="{_COLORS[found[2]]}"', drawing)


def _without_idle_groups(drawing: str) -> str:
    """The drawing without groups that neither move nor paint what is in them, or are empty."""
    idle: list[bool] = []

    def kept(found: re.Match[str]) -> str:
        if found[1] is None:
            return "" if idle.pop() else "</g>"
        if found[1].endswith("/"):
            return ""
        idle.append(not found[1])
        return "" if idle[-1] else f"<g{found[1]}>"

    return _GROUP.sub(kept, drawing)


def readable(value: Any) -> Any:
    """The specification with control characters made visible: one of them ends the renderer."""
    if isinstance(value, str):
        return shown(value)
    if isinstance(value, dict):
        return {key: readable(item) for key, item in value.items()}
    if isinstance(value, list):
        return [readable(item) for item in value]
    return value


def _root(found: re.Match[str], name: str, label: str) -> str:
    width, height, box = found.groups()
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" aria-label="{escape(label)}" '
        f'class="drawing" font-size="12px" id="drawing-{name}" '
        f'width="{width}" height="{height}" viewBox="{box}">'
    )


def _own_ids(drawing: str, name: str) -> str:
    """Number ids again: the renderer counts on from one drawing to the next."""
    numbers = count(1)
    known: dict[str, str] = {f"drawing-{name}": f"drawing-{name}"}

    def renamed(found: re.Match[str]) -> str:
        old = found[1] or found[2]
        new = known.setdefault(old, "") or f"{name}-{next(numbers)}"
        known[old] = new
        return f'id="{new}"' if found[1] else f"url(#{new})"

    return _ID.sub(renamed, drawing)


# --- Narrow screen -------------------------------------------------------------------------------

_WIDTH: Final = 205
"""Pixels of a panel, beside its labels."""
_LABEL: Final = 155
"""Pixels of a label; longer ones are cut."""


def narrowed(specification: dict[str, Any]) -> dict[str, Any]:
    """A Vega-Lite specification whose drawing fits a narrow screen."""
    found: dict[str, Any] = _narrow(specification)
    config = found.setdefault("config", {})
    below = {"orient": "bottom", "columns": 2, "labelLimit": 140}
    config["legend"] = {**config.get("legend", {}), **below}
    config["axis"] = {**config.get("axis", {}), "labelLimit": _LABEL, "labelSeparation": 4}
    view = {"continuousWidth": _WIDTH, "discreteWidth": _WIDTH}
    config["view"] = {**config.get("view", {}), **view}
    config["aria"] = False  # a page names the whole drawing, and shows no value of a mark here
    return found


def _narrow(value: Any) -> Any:
    if isinstance(value, list):
        return [_narrow(part) for part in value]
    if not isinstance(value, dict):
        return value
    found = {name: _narrow(part) for name, part in value.items()}
    if "facet" in found and "columns" in found:
        found["columns"] = 1
    if isinstance(found.get("width"), dict) or _above(found.get("width"), _WIDTH):
        found["width"] = _WIDTH
    if _above(found.get("labelLimit"), _LABEL):
        found["labelLimit"] = _LABEL
    if _above(found.get("value"), _WIDTH):  # a place to the right of a wide panel
        found["value"] = _WIDTH + 8
    if found.get("orient") == "top" and "labelAngle" in found:
        found |= {"labelAngle": -90, "labelAlign": "left", "labelBaseline": "middle"}
    return found


def _above(value: Any, most: int) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and value > most
