"""The same chart for a screen of 390 pixels: one column of panels, the legend below."""

from typing import Any, Final

__all__ = ["narrowed"]

_WIDTH: Final = 220
"""Pixels of a panel, beside its labels."""
_LABEL: Final = 110
"""Pixels of a label; longer ones are cut."""


def narrowed(specification: dict[str, Any]) -> dict[str, Any]:
    """A Vega-Lite specification whose drawing fits a narrow screen."""
    found: dict[str, Any] = _narrow(specification)
    config = found.setdefault("config", {})
    below = {"orient": "bottom", "columns": 2, "labelLimit": 140}
    config["legend"] = {**config.get("legend", {}), **below}
    config["axis"] = {**config.get("axis", {}), "labelLimit": _LABEL}
    view = {"continuousWidth": _WIDTH, "discreteWidth": _WIDTH}
    config["view"] = {**config.get("view", {}), **view}
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
        found |= {"labelAngle": -35, "labelAlign": "left"}
    return found


def _above(value: Any, most: int) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and value > most
