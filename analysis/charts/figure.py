"""A chart with everything that a reader needs around it."""

import textwrap
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final

import altair as alt
import polars as pl
import polars.selectors as cs
from altair.utils.schemapi import debug_mode

from tutorsim.analysis.charts.style import CONFIG

__all__ = ["CASCADE", "LOGGED", "Drawing", "Figure", "absent", "inline", "spec", "unchecked"]

Drawing = alt.LayerChart | alt.FacetChart

unchecked = debug_mode(False)
"""Put before a function that draws: no part of its chart is checked against Vega-Lite's schema,
which takes longer than to draw it; tests check the whole."""

CASCADE: Final = (
    "Single logged turns with the logged dialogue held fixed: another winner would have meant "
    "another next message of the student, which nobody recorded."
)
"""The warning that goes with every counterfactual about single turns."""

LOGGED: Final = "As logged; nothing is recounted."
"""Ends the caption of a chart of what happened, in a run that is no branch."""

_TITLE_WIDTH: Final = 74
_SUBTITLE_WIDTH: Final = 104


@dataclass(frozen=True)
class Figure:
    """One chart, or the reason why there is none."""

    name: str
    """As `--chart` takes it."""
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

    @cached_property
    def vega_lite(self) -> dict[str, Any]:
        """The chart without what stands around it; `unchecked` as its parts are."""
        assert self.chart is not None
        made: dict[str, Any] = self.chart.to_dict(validate=False)
        return made


def absent(name: str, why: str, *, method: str = "") -> Figure:
    """A chart that these data do not allow.

    Args:
        name: The chart's name.
        why: One sentence that starts with what is missing.
        method: What the chart would show.
    """
    return Figure(name, why, "", method, pl.DataFrame(), None)


def inline(frame: pl.DataFrame) -> alt.InlineData:
    """The rows of a frame as data inside the chart, whatever their number.

    Numbers are rounded far below what can be seen, so that no machine's last bits get into a file.
    """
    return alt.InlineData(values=frame.with_columns(cs.float().round(6)).to_dicts())


def spec(figure: Figure, *, provenance: str, titled: bool = True) -> dict[str, Any]:
    """The Vega-Lite specification of a figure that has a chart.

    Args:
        figure: The figure; `figure.chart` is not `None`.
        provenance: What answered the calls; part of the subtitle.
        titled: With the finding as title and the caption under it, to stand alone; a page
            that prints both around the drawing leaves them out.
    """
    made = {
        **figure.vega_lite,
        "config": CONFIG,
        "description": figure.alternative or figure.finding,
    }
    if titled:
        made["title"] = {
            "text": textwrap.wrap(figure.finding, _TITLE_WIDTH),
            "subtitle": textwrap.wrap(
                f"{figure.caption} Answered by: {provenance}.", _SUBTITLE_WIDTH
            ),
        }
    return made
