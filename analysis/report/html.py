"""A report as one HTML file without network, clock or chance; its one script filters episodes."""

import base64
import hashlib
import json
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, Final

import jinja2
import polars as pl
from markupsafe import Markup

from tutorsim.analysis.charts.figure import DARK, TOKENS, Figure, spec
from tutorsim.analysis.charts.image_formats import drawn, narrowed, to_page_svg
from tutorsim.analysis.charts.svg_worker import Run
from tutorsim.analysis.claims.claims_file import citation
from tutorsim.analysis.claims.claims_of_printed_numbers import Number, Words
from tutorsim.analysis.pages.document import Document, cell, heading, two
from tutorsim.analysis.pages.values import Places, cells_of, is_version
from tutorsim.analysis.pages.words import shown
from tutorsim.analysis.systems.panel.episodes import (
    Chosen,
    ballot_rows,
    candidates_of,
    step_sentence,
)

_POLICY: Final = (
    "default-src 'none'; style-src 'sha256-{style}'; script-src 'sha256-{script}'; "
    "img-src data:; base-uri 'none'; form-action 'none'"
)
"""Nothing is loaded and nothing is sent; the page's own style and script are named by hash, and
nothing else runs. Without scripts the page is whole, and only the filters are not there."""


def to_html(document: Document, *, run: Run = map) -> str:
    """The page of a report. The same document gives the same text.

    Args:
        document: The report.
        run: Draws every chart, here or elsewhere.
    """
    drawings = _drawings(document, run)
    style, script = _style(), _source("page.js")
    page: str = (
        _environment()
        .get_template("page.html.j2")
        .render(
            document=document,
            places=Places(document, "report"),
            style=Markup(style),
            script=Markup(script),
            policy=_POLICY.format(style=_digest(style), script=_digest(script)),
            drawing=lambda figure: drawings[figure.name],
            specification=lambda figure: _specification(figure, document.provenance),
        )
    )
    return page


@cache
def _environment() -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("tutorsim.analysis.report"),
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
    environment.globals.update(
        candidates_of=candidates_of,
        citation=citation,
        cited=_cited,
        cited_heads=_cited_heads,
        cited_rows=_cited_rows,
        filter_values=_filter_values,
        is_version=is_version,
        numeric=_numeric,
    )
    return environment


def _numeric(data: pl.DataFrame) -> list[bool]:
    """Which columns hold numbers, and are set to the right."""
    return [kind.is_numeric() for kind in data.dtypes]


def _cited(text: str, place: str) -> Markup:
    """A text of the page, each number in it under its id."""
    return _marked(text, Words(place, "", text).cited())


def _cited_rows(
    data: pl.DataFrame, place: str, written: Mapping[str, Mapping[int, Any]]
) -> list[list[Markup]]:
    """The cells of a table of the page, each number under its id."""
    cells = cells_of(place, "", data, written)
    return [
        [_marked(text, numbers) for text, numbers in zip(row, cited, strict=True)]
        for row, cited in zip(cells.rows, cells.cited(), strict=True)
    ]


def _cited_heads(data: pl.DataFrame, place: str) -> list[Markup]:
    """The heads of a table of the page, likewise."""
    return [_cited(head.text, head.place) for head in cells_of(place, "", data).heads()]


def _marked(text: str, numbers: Sequence[tuple[str, Number]]) -> Markup:
    marked, at = Markup(), 0
    for id_, found in numbers:
        value = "" if found.value is None else found.value
        marked += shown(text[at : found.start])
        marked += Markup('<data id="{}" value="{}">{}</data>').format(
            shown(id_), value, found.printed
        )
        at = found.end
    return marked + shown(text[at:])


def _digest(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _source(name: str) -> str:
    source, _, _ = _environment().loader.get_source(_environment(), name)  # type: ignore[union-attr]
    return source


def _filter_values(trace: Sequence[Chosen]) -> list[tuple[str, str, list[str]]]:
    """Each filter of the episodes: its attribute, its label, and the values that occur."""
    found: dict[tuple[str, str], dict[str, None]] = {}
    for chosen in trace:
        episode = chosen.episode
        values = {
            ("task", "Task"): (episode.task_id,),
            ("persona", "Persona"): (episode.persona,),
            ("condition", "Condition"): (episode.arm,),
            ("winner", "Won a turn"): chosen.winners,
            ("step", "Decided by"): chosen.steps,
        }
        for place, names in values.items():
            found.setdefault(place, {}).update(dict.fromkeys(names))
    return [(name, label, list(values)) for (name, label), values in found.items()]


def _style() -> str:
    """The style sheet, with the charts' colours as variables on paper and on a dark screen."""
    source = _source("page.css")
    return source.replace("/*LIGHT*/", _variables(TOKENS)).replace("/*DARK*/", _variables(DARK))


def _variables(tokens: dict[str, str]) -> str:
    return " ".join(f"--{name}: {color};" for name, color in tokens.items())


def _drawings(document: Document, run: Run) -> dict[str, Markup]:
    """Every chart that there is, by name."""
    figures = [figure for figure in document.figures() if figure.chart is not None]
    wide = [_untitled(figure, document.provenance) for figure in figures]
    specs = [made for one in wide for made in (one, narrowed(one))]
    drawings = iter(drawn(iter(specs), run=run))
    return {figure.name: _both(figure, next(drawings), next(drawings)) for figure in figures}


def _both(figure: Figure, wide: str, narrow: str) -> Markup:
    """The drawing for a wide screen and the one for a narrow one; the style shows one of them."""
    label = _label(figure)
    large = to_page_svg(wide, name=figure.name, label=label)
    small = to_page_svg(narrow, name=f"{figure.name}-narrow", label=label, hovered=False)
    return Markup(f'<div class="wide">{large}</div><div class="narrow">{small}</div>')


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
