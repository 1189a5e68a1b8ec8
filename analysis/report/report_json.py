"""A report as plain values, for JSON."""

from typing import Any

import polars as pl

from tutorsim.analysis.report.document import Document, Section

__all__ = ["to_value"]


def to_value(document: Document) -> dict[str, Any]:
    """The document as JSON has it: sections with the rows of their tables and charts.

    A missing cell is null, and never a zero.
    """
    return {
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
            {"name": t.name, "title": t.title, "caption": t.caption, "rows": _rows(t.data)}
            for t in section.tables
        ],
    }


def _rows(data: pl.DataFrame) -> list[dict[str, Any]]:
    return data.with_columns(pl.selectors.float().fill_nan(None)).to_dicts()
