"""A document as plain values for JSON, and its printed numbers as claims."""

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

import polars as pl

from tutorsim.analysis.claims.claims_file_and_check_of_claims import PageName
from tutorsim.analysis.claims.claims_of_printed_numbers_and_page_recomputed import (
    Cells,
    Printed,
    Words,
    numbered,
    unique,
)
from tutorsim.analysis.pages.cells_and_tables import Table, Written, cell
from tutorsim.analysis.pages.document import Answer, Document, Section
from tutorsim.analysis.statistics.intervals_and_tests import to_json

if TYPE_CHECKING:
    from tutorsim.analysis.charts.figures_forms_and_colours import Figure


# --- Report json ---------------------------------------------------------------------------------

SCHEMA_VERSION: Final = 3
"""Version 1 was unnamed, and wrote estimates of debates and of oversight as text; 2 had a shape of
its own for a panel's summary."""


def to_value(document: Document) -> dict[str, Any]:
    """The document as JSON has it: sections with the rows of their tables and charts.

    A missing cell is null, and never a zero. What stands in a table as text with a number in it
    is the number here, an estimate with its interval, or the ends of a range. `values` holds what
    tables leave out or say in words.
    """
    return {
        "schema_version": SCHEMA_VERSION,
        "title": document.title,
        "summary": document.summary,
        "provenance": document.provenance,
        "warning": document.warning,
        "answers": [vars(answer) for answer in document.answers],
        "sections": [_section_value(section) for section in document.sections],
        "facts": dict(document.facts),
        "values": to_json(document.values()),
    }


def _section_value(section: Section) -> dict[str, Any]:
    return {
        "id": section.id,
        "title": section.title,
        "lead": section.lead,
        "figures": [
            {"name": f.name, "finding": f.finding, "caption": f.caption, "rows": _rows(f.data)}
            for f in section.figures
        ],
        "tables": [
            {"name": t.name, "title": t.title, "caption": t.caption, "rows": _cells(t)}
            for t in section.tables
        ],
    }


def _cells(table: Table) -> list[dict[str, Any]]:
    """The rows of a table, each cell as the value that it writes."""
    rows = _rows(table.data)
    for column, values in table.written.items():
        for at, value in values.items():
            rows[at][column] = to_json(value)
    return rows


def _rows(data: pl.DataFrame) -> list[dict[str, Any]]:
    return data.with_columns(pl.selectors.float().fill_nan(None)).to_dicts()


# --- Claims --------------------------------------------------------------------------------------

_NAMED: Final = "Package "
"""Facts that are versions."""


class Places:
    """Ids of a document's places, for what draws it."""

    def __init__(self, document: Document, page: PageName) -> None:
        self.page = page
        names = numbered([answer.section for answer in document.answers])
        self._answers = {id(answer): n for answer, n in zip(document.answers, names, strict=True)}
        self._facts = numbered(unique([name for name, _ in document.facts]))

    def of(self, kind: str, name: str = "") -> str:
        """`PAGE.KIND-NAME`, or `PAGE.KIND`."""
        return f"{self.page}.{kind}-{name}" if name else f"{self.page}.{kind}"

    def answer(self, part: str, answer: Answer) -> str:
        """The place of a part of an answer."""
        return self.of(part, self._answers[id(answer)])

    def fact(self, index: int) -> str:
        """The place of a fact."""
        return self.of("record", self._facts[index])


def document_parts(document: Document, page: PageName) -> Iterator[Printed]:
    """Every text and table of a document that has numbers of its own, each at its place."""
    places = Places(document, page)
    yield Words(places.of("what"), "", document.summary)
    yield Words(places.of("warning"), "", document.warning)
    for answer in document.answers:
        yield Words(places.answer("question", answer), "", answer.question)
        yield Words(places.answer("answer", answer), answer.question, answer.headline)
        yield Words(places.answer("detail", answer), answer.question, answer.detail)
    for section in document.sections:
        yield from _section(section, places)
    for index, (name, value) in enumerate(document.facts):
        if not is_version(name):
            yield Words(places.fact(index), name, str(value))


def is_version(fact: str) -> bool:
    """Whether a fact is the version of a package, which is a name."""
    return fact.startswith(_NAMED)


def _section(section: Section, places: Places) -> Iterator[Printed]:
    yield Words(places.of("section", section.id), "", section.title)
    yield Words(places.of("lead", section.id), section.title, section.lead)
    for figure in section.figures:
        yield from _figure(figure, places)
    for table in section.tables:
        yield from table_parts(table, places.page)


def _figure(figure: "Figure", places: Places) -> Iterator[Printed]:
    yield Words(places.of("finding", figure.name), "", figure.finding)
    yield Words(places.of("method", figure.name), "", figure.method)
    if figure.chart is not None:
        yield Words(places.of("legend", figure.name), "", figure.caption)
        about = figure.caption.split(";")[0].split(".")[0]
        yield cells_of(places.of("chart", figure.name), about, figure.data)


def table_parts(table: Table, page: PageName) -> Iterator[Printed]:
    """The title, the cells and the caption of a table."""
    yield Words(f"{page}.title-{table.name}", "", table.title)
    yield cells_of(f"{page}.table-{table.name}", table.title, table.data, table.written)
    yield Words(f"{page}.caption-{table.name}", table.title, table.caption)


def cells_of(
    place: str,
    title: str,
    data: pl.DataFrame,
    written: Mapping[str, Mapping[int, Any]] = MappingProxyType({}),
) -> Cells:
    """A frame as it is printed.

    `written`: column → row → value, of the cells that are a text and its value.
    """
    rows = [[cell(value) for value in row] for row in data.iter_rows()]
    for column, values in written.items():
        n = data.columns.index(column)
        for at, value in values.items():
            rows[at][n] = Written(rows[at][n], value)
    return Cells(place, title, data.columns, rows)
