"""Summaries, reports and charts of a panel's source, for tests that have no folder."""

from tutorsim.analysis.systems.panel.page import document
from tutorsim.analysis.systems.system_view import Asked, Ballots


def report_of(source, *, brief=False, **asked):
    """A report, or a summary (brief)."""
    return document(Ballots(source, Asked(**asked)), brief)


def figure_of(source, name):
    """One chart of the report."""
    [found] = [figure for figure in report_of(source).figures() if figure.name == name]
    return found
