"""A report as one HTML file without scripts, network, clock or chance."""

import base64
import hashlib
import json
from functools import cache
from typing import Any, Final

import jinja2
import polars as pl
from markupsafe import Markup

from analysis.charts import DARK, TOKENS, Figure, drawn, spec, to_page_svg
from analysis.charts.shown import shown
from analysis.drawing import Run
from analysis.report.document import Document, cell, heading, two
from analysis.report.trace import ballot_rows, candidates_of, step_sentence

__all__ = ["to_html"]

_POLICY: Final = (
    "default-src 'none'; style-src 'sha256-{digest}'; img-src data:; base-uri 'none'; "
    "form-action 'none'"
)
"""Nothing is loaded, nothing runs, nothing is sent; the page's own style sheet is named by hash."""


def to_html(document: Document, *, run: Run = map) -> str:
    """The page of a report. The same document gives the same text.

    Args:
        document: The report.
        run: Draws every chart, here or elsewhere.
    """
    drawings = _drawings(document, run)
    style = _style()
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    page: str = (
        _environment()
        .get_template("page.html.j2")
        .render(
            document=document,
            style=Markup(style),
            policy=_POLICY.format(digest=digest),
            drawing=lambda figure: drawings[figure.name],
            specification=lambda figure: _specification(figure, document.provenance),
        )
    )
    return page


@cache
def _environment() -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("analysis.report"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        finalize=lambda value: shown(value) if type(value) is str else value,
    )
    environment.filters.update(
        cell=cell, two=two, heading=heading, ballot_rows=ballot_rows, step_sentence=step_sentence
    )
    environment.globals.update(candidates_of=candidates_of, numeric=_numeric)
    return environment


def _numeric(data: pl.DataFrame) -> list[bool]:
    """Which columns hold numbers, and are set to the right."""
    return [kind.is_numeric() for kind in data.dtypes]


def _style() -> str:
    """The style sheet, with the charts' colours as variables on paper and on a dark screen."""
    source, _, _ = _environment().loader.get_source(_environment(), "page.css")  # type: ignore[union-attr]
    return source.replace("/*LIGHT*/", _variables(TOKENS)).replace("/*DARK*/", _variables(DARK))


def _variables(tokens: dict[str, str]) -> str:
    return " ".join(f"--{name}: {color};" for name, color in tokens.items())


def _drawings(document: Document, run: Run) -> dict[str, Markup]:
    """Every chart that there is, by name."""
    figures = [figure for figure in document.figures() if figure.chart is not None]
    specs = (_untitled(figure, document.provenance) for figure in figures)
    return {
        figure.name: Markup(to_page_svg(drawing, name=figure.name, label=_label(figure)))
        for figure, drawing in zip(figures, drawn(specs, run=run), strict=True)
    }


def _label(figure: Figure) -> str:
    return shown(figure.alternative or figure.finding)


def _untitled(figure: Figure, provenance: str) -> dict[str, Any]:
    """The specification of a drawing on the page's own background and under its own heading."""
    made = spec(figure, provenance=provenance, titled=False)
    made["config"] = {**made["config"], "background": None}
    return made


def _specification(figure: Figure, provenance: str) -> str:
    made = spec(figure, provenance=provenance)
    return json.dumps(made, ensure_ascii=False, sort_keys=True)
