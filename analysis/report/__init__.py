"""The report of a run: one page, one text, or one of its charts."""

from analysis.report.build import build_figure, build_report, provenance_of
from analysis.report.document import Answer, Document, Section, Table
from analysis.report.figures import CHART_NAMES
from analysis.report.markdown import to_markdown
from analysis.report.page import to_html

__all__ = [
    "CHART_NAMES",
    "Answer",
    "Document",
    "Section",
    "Table",
    "build_figure",
    "build_report",
    "provenance_of",
    "to_html",
    "to_markdown",
]
