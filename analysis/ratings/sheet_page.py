"""A rating sheet as one HTML file: it loads nothing, sends nothing, and gives back a CSV."""

import base64
import hashlib
from functools import cache
from typing import Any, Final

import jinja2
from markupsafe import Markup

from tutorsim.analysis.ratings.rater_assignment import Sheet
from tutorsim.analysis.ratings.rubric import value_text
from tutorsim.analysis.ratings.sheet_csv import COLUMNS

__all__ = ["sheet_page"]

_POLICY: Final = (
    "default-src 'none'; style-src 'sha256-{style}'; script-src 'sha256-{script}'; "
    "img-src data:; base-uri 'none'; form-action 'none'"
)
"""Nothing is loaded, and nothing runs but the page's own script, named by hash."""


def sheet_page(sheet: Sheet) -> str:
    """The page of a sheet. The same sheet gives the same text."""
    style, script = _source("sheet.css"), _source("sheet.js")
    page: str = (
        _environment()
        .get_template("sheet.html.j2")
        .render(
            rater=sheet.rater,
            question=sheet.survey.rubric.question,
            sheet=_data(sheet),
            style=Markup(style),
            script=Markup(script),
            policy=_POLICY.format(style=_digest(style), script=_digest(script)),
        )
    )
    return page


def _data(sheet: Sheet) -> dict[str, Any]:
    """What the page's script reads: nothing of roles, rules or conditions is in it."""
    rubric = sheet.survey.rubric
    return {
        "file": f"ratings-{sheet.rater}-{sheet.digest[:8]}.csv",
        "columns": COLUMNS,
        "rater": sheet.rater,
        "sheet": sheet.digest,
        "survey": sheet.survey.text(),
        "values": [value_text(value) for value in rubric.scale],
        "anchors": rubric.anchors,
        "items": [{"item": item.id, "blocks": item.blocks} for item in sheet.items],
    }


@cache
def _environment() -> jinja2.Environment:
    return jinja2.Environment(
        loader=jinja2.PackageLoader("tutorsim.analysis.ratings"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        keep_trailing_newline=True,
    )


def _source(name: str) -> str:
    loader = _environment().loader
    assert loader is not None
    source, _, _ = loader.get_source(_environment(), name)
    return source


def _digest(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
