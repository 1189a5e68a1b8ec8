"""Replies of a run that did not come to their own end, told in its summary and report."""

from dataclasses import replace

from tutorsim.analysis.charts.number_words import counted
from tutorsim.analysis.report.document import Answer, Document, Section
from tutorsim.analysis.systems.system_view import SystemRun
from tutorsim.analysis.views.student_outcomes import stops_table
from tutorsim.records import odd_stops, stop_counts

__all__ = ["with_reply_endings"]


def with_reply_endings(document: Document, run: SystemRun) -> Document:
    """The document, and how many replies were refused or cut off; as it is where none was."""
    counts = stop_counts(run.episodes)
    odd = odd_stops(counts)
    stops = stops_table(odd)
    if stops is None:
        return document
    calls, taken = sum(count.calls for count in odd), sum(count.taken for count in odd)
    replies = counted(sum(count.calls for count in counts), "reply", plural="replies")
    answer = Answer(
        "Did every reply come to its own end?",
        f"not {calls:,} of {replies}",
        f"They were refused, or cut off at their limit of length; {taken:,} were taken as they "
        "are.",
        "replies",
    )
    section = Section("replies", "Replies", "How replies ended.", tables=(stops,))
    return replace(
        document,
        answers=(*document.answers, answer),
        sections=(*document.sections, section),
    )
