"""A report as plain values, for JSON."""

from typing import Any, Final

import polars as pl

from tutorsim.analysis.report.document import Document, Section, Table
from tutorsim.analysis.statistics.intervals_and_tests import to_json

__all__ = ["SCHEMA_VERSION", "to_value"]

SCHEMA_VERSION: Final = 2
"""Version 1 was unnamed, and wrote estimates of debates and of oversight as text."""


def to_value(document: Document) -> dict[str, Any]:
    """The document as JSON has it: sections with the rows of their tables and charts.

    A missing cell is null, and never a zero. What stands in a table as text with a number in it
    is the number here, an estimate with its interval, or the ends of a range.
    """
    return {
        "schema_version": SCHEMA_VERSION,
        "title": document.title,
        "summary": document.summary,
        "provenance": document.provenance,
        "warning": document.warning,
        "answers": [vars(answer) for answer in document.answers],
        "sections": [_section(section) for section in document.sections],
        "facts": dict(document.facts),
    }


def _section(section: Section) -> dict[str, Any]:
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
