"""Replies of a run without text or an end of their own, told in its summary and report."""

from dataclasses import replace

from tutorsim.analysis.charts.number_words import counted
from tutorsim.analysis.report.document import Answer, Document, Section
from tutorsim.analysis.systems.system_view import SystemRun
from tutorsim.analysis.views.student_outcomes import stops_table
from tutorsim.records import odd_stops, stop_counts

__all__ = ["with_reply_endings"]


def with_reply_endings(document: Document, run: SystemRun) -> Document:
    """The document, and how many replies were empty, refused or cut off; unchanged if none was."""
    counts = stop_counts(run.episodes)
    odd = odd_stops(counts)
    stops = stops_table(odd)
    if stops is None:
        return document
    calls, taken = sum(count.calls for count in odd), sum(count.taken for count in odd)
    replies = counted(sum(count.calls for count in counts), "reply", plural="replies")
    answer = Answer(
        "Does every reply say something, to its own end?",
        f"not {calls:,} of {replies}",
        f"They had no text, were refused, or cut off at their limit of length; {taken:,} were "
        "taken as they are.",
        "replies",
    )
    section = Section("replies", "Replies", "How replies ended.", tables=(stops,))
    return replace(
        document,
        answers=(*document.answers, answer),
        sections=(*document.sections, section),
    )
