"""What is made for tests that have no folder: reports of a panel's source, and other heads."""

from tutorsim.analysis.systems.panel.page_sections_cost_and_divergence import document
from tutorsim.analysis.systems.system_view_opened_run_and_cost import Asked, Ballots


def answered_by(head, kind):
    """A run's head as if something else had answered."""
    stated = head.provenance.model_copy(update={"kind": kind})
    return head.model_copy(update={"provenance": stated})


def report_of(source, *, brief=False, **asked):
    """A report, or a summary (brief)."""
    return document(Ballots(source, Asked(**asked)), brief)


def tables_of(document):
    """Every table of a document by its name."""
    return {table.name: table for section in document.sections for table in section.tables}


def figure_of(source, name):
    """One chart of the report."""
    [found] = [figure for figure in report_of(source).figures() if figure.name == name]
    return found
