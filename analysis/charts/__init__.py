"""Charts: tidy frames in, a figure with its finding, caption and drawing out.

No chart computes a statistic or counts a vote; frames come from the functions of `analysis`.
"""

from analysis.charts.figure import CASCADE, Figure, absent, spec
from analysis.charts.render import VEGA_LITE, drawn, to_json, to_page_svg, to_png, to_svg
from analysis.charts.shown import shown
from analysis.charts.style import DARK, TOKENS

__all__ = [
    "CASCADE",
    "DARK",
    "TOKENS",
    "VEGA_LITE",
    "Figure",
    "absent",
    "drawn",
    "shown",
    "spec",
    "to_json",
    "to_page_svg",
    "to_png",
    "to_svg",
]
