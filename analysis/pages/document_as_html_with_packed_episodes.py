"""A report as one HTML file without network, clock or chance.

Text, tables and charts are whole without scripts. Episodes are in the page as deflated data, and
the page's one script draws each when it is opened: its text becomes text nodes, and never markup.
"""

import base64
import json
import re
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import astuple, replace
from functools import cache
from typing import Any, Final

import polars as pl
from markupsafe import Markup, escape

from tutorsim.analysis.charts.figures_forms_and_colours import DARK, TOKENS, Figure, spec
from tutorsim.analysis.charts.svg_and_png_for_phone_and_dark_mode import (
    drawn,
    here,
    narrowed,
    readable,
    to_page_svg,
)
from tutorsim.analysis.charts.svg_worker_and_its_fonts import Run
from tutorsim.analysis.claims.claims_file_and_check_of_claims import citation
from tutorsim.analysis.claims.claims_of_printed_numbers_and_page_recomputed import Number, Words
from tutorsim.analysis.pages.cells_and_tables import cell, heading
from tutorsim.analysis.pages.document import Document
from tutorsim.analysis.pages.document_as_json_and_as_claims import Places, cells_of, is_version
from tutorsim.analysis.pages.page_in_one_file import page_of, templates, text_of
from tutorsim.analysis.pages.shown_episodes import EpisodePart, Grid, Message
from tutorsim.analysis.pages.words_and_safe_text import ended, shown
from tutorsim.analysis.statistics import by_key


def to_html(document: Document, *, run: Run = here, printed: bool = False) -> str:
    """The page of a report; the same document gives the same text.

    `run`: draws every chart, here or elsewhere. `printed`: episodes are open and on paper too;
    otherwise paper has the findings alone.
    """
    drawings = _drawings(document, run)
    _taught()
    return page_of(
        _PACKAGE,
        "page.html.j2",
        style=_style(),
        script=text_of(_PACKAGE, "page.js"),
        document=document,
        places=Places(document, "report"),
        drawing=lambda figure: drawings[figure.name],
        lead=_lead(document),
        drawn=_drawn_when_opened(document),
        printed=printed,
    )


def _lead(document: Document) -> Figure | None:
    """The chart of the first screen, if there is one to draw."""
    named = (one for one in document.figures() if one.name == document.lead)
    return next((one for one in named if one.chart is not None), None)


_PACKAGE: Final = "tutorsim.analysis.pages"


@cache
def _taught() -> None:
    """The templates know the words and marks of a report."""
    environment = templates(_PACKAGE)
    environment.filters.update(cell=cell, ended=ended, heading=heading)
    environment.globals.update(
        citation=citation,
        cited=_cited,
        cited_heads=_cited_heads,
        cited_rows=_cited_rows,
        is_version=is_version,
        numeric=lambda data: [kind.is_numeric() for kind in data.dtypes],
    )


_CODE: Final = re.compile("`([^`]+)`")


def _cited(text: str, place: str) -> Markup:
    """A text of the page, each number in it under its id, and what stands in `…` as code."""
    marked = str(_marked(text, Words(place, "", text).cited()))
    return Markup(_CODE.sub(r"<code>\1</code>", marked))


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
    marked: list[str] = []
    at = 0
    for id_, found in numbers:
        value = "" if found.value is None else found.value
        attributes = f'id="{escape(shown(id_))}" value="{escape(value)}"'
        marked.append(escape(shown(text[at : found.start])))
        marked.append(f"<data {attributes}>{escape(found.printed)}</data>")
        at = found.end
    return Markup("".join([*marked, escape(shown(text[at:]))]))


# --- What is drawn when it is opened -------------------------------------------------------------

_PACK: Final = 250_000
"""Letters of a pack, which is unpacked whole: enough to be small, few enough to open at once."""


def _drawn_when_opened(document: Document) -> dict[str, Any]:
    """What the page's script draws: every episode, made once, and the charts' specifications.

    Of an episode `heads` has what is always there, without parts and facts, and places of its marks
    among the values of all filters. `filters`: name → place and text of each value, where there are
    several. `packs`: how many episodes a pack holds, and its data.
    """
    values: dict[tuple[str, str], int] = {}
    heads = []

    def headed() -> Iterator[list[Any]]:
        for episode in document.episodes:
            pairs = [(name, value) for name, said in episode.marks.items() for value in said]
            places = [values.setdefault(pair, len(values)) for pair in pairs]
            bare = replace(episode, parts=(), facts=())
            heads.append({"episode": bare, "marks": " ".join(map(str, places))})
            yield [list(map(list, episode.facts)), *map(_part, episode.parts)]

    packs = list(_packs(headed()))
    by_name = by_key((name, (place, value)) for (name, value), place in values.items())
    specs = {
        figure.name: _specification(figure, document.answered)
        for figure in document.figures()
        if figure.chart is not None
    }
    return {
        "heads": heads,
        "filters": [(name, found) for name, found in by_name.items() if len(found) > 1],
        "packs": packs,
        "specifications": _packed(json.dumps(specs, ensure_ascii=False)),
        "total": document.episodes.total,
    }


_ESCAPED: Final = re.compile(r"\\[bfru]")
"""How JSON writes the hidden characters that it does not hold as they are."""


def _packs(episodes: Iterable[list[Any]]) -> Iterator[tuple[int, str]]:
    """Episodes in packs, as data of the page: how many a pack holds, and its data."""
    waiting: list[str] = []
    letters = 0
    for episode in episodes:
        text = json.dumps(episode, ensure_ascii=False)
        if not text.isprintable() or _ESCAPED.search(text):
            text = json.dumps(readable(episode), ensure_ascii=False)
        waiting.append(text)
        letters += len(text)
        if letters > _PACK:
            yield len(waiting), _packed(f"[{','.join(waiting)}]")
            waiting, letters = [], 0
    if waiting:
        yield len(waiting), _packed(f"[{','.join(waiting)}]")


def _part(part: EpisodePart) -> list[Any]:
    """A part of an episode, as the script takes it: a kind, and what it is of."""
    if isinstance(part, Message):
        return ["message", *astuple(part)]
    if isinstance(part, Grid):
        rows = list(map(list, part.rows))
        return ["grid", part.title, list(part.columns), rows, list(part.notes)]
    return ["group", part.title, part.note, part.folded, list(map(_part, part.messages))]


def _packed(text: str) -> str:
    """A text deflated, in letters that no markup has."""
    packer = zlib.compressobj(9, zlib.DEFLATED, -zlib.MAX_WBITS)
    return base64.b64encode(packer.compress(text.encode()) + packer.flush()).decode()


def _style() -> str:
    """The style sheet, with the charts' colours as variables on paper and on a dark screen."""
    source = text_of(_PACKAGE, "page.css")
    return source.replace("/*LIGHT*/", _variables(TOKENS)).replace("/*DARK*/", _variables(DARK))


def _variables(tokens: dict[str, str]) -> str:
    return " ".join(f"--{name}: {color};" for name, color in tokens.items())


def _drawings(document: Document, run: Run) -> dict[str, Markup]:
    """Every chart that there is, by name."""
    figures = [figure for figure in document.figures() if figure.chart is not None]
    wide = [spec(figure, provenance="", titled=False) for figure in figures]
    specs = [made for one in wide for made in (one, narrowed(one))]
    drawings = iter(drawn(iter(specs), run=run))
    return {figure.name: _both(figure, next(drawings), next(drawings)) for figure in figures}


def _both(figure: Figure, wide: str, narrow: str) -> Markup:
    """The drawing for a wide screen and the one for a narrow one; the style shows one of them."""
    label = shown(figure.alternative or figure.finding)
    large = to_page_svg(wide, name=figure.name, label=label)
    small = to_page_svg(narrow, name=f"{figure.name}-narrow", label=label, hovered=False)
    return Markup(f'<div class="wide">{large}</div><div class="narrow">{small}</div>')


def _specification(figure: Figure, provenance: str) -> str:
    """A chart as any Vega-Lite viewer takes it."""
    made = spec(figure, provenance=provenance)
    return shown(json.dumps(made, ensure_ascii=False, sort_keys=True))
