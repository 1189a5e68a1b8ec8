"""The summary or report of whatever was opened: what its view says, and what every page says."""

from dataclasses import replace

from tutorsim.analysis.pages.cells import table
from tutorsim.analysis.pages.document import Answer, Document, Section, with_section
from tutorsim.analysis.pages.words import counted
from tutorsim.analysis.ratings.ratings_section import with_ratings
from tutorsim.analysis.systems.system_view import Ballots, Opened, SystemRun, view_for
from tutorsim.records import odd_stops, stop_counts


def document_of(opened: Opened, *, brief: bool) -> Document | None:
    """The summary (brief) or the report (whole) of a run of any system, or of ballots.

    Args:
        opened: What it is of, and what it is asked for.
        brief: A summary for the terminal.

    Returns:
        The document; `None` if the run's system has none.
    """
    make = view_for(opened).document
    if make is None:
        return None
    made = make(opened, brief)
    if isinstance(opened, Ballots):
        return made
    return with_ratings(with_reply_endings(made, opened), opened)


def with_reply_endings(document: Document, run: SystemRun) -> Document:
    """The document, and how many replies were empty, refused or cut off; unchanged if none was."""
    counts = stop_counts(run.episodes)
    odd = odd_stops(counts)
    stops = table(
        "stops",
        "Replies without text or an end of their own",
        "Replies that had no text, were refused, or cut off at their limit of length. Where one "
        "was asked for once more, the second reply was taken; the others were taken as they are.",
        ["stage", "ended", "replies", "taken as they are"],
        [(count.stage, count.words, count.calls, count.taken) for count in odd],
    )
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
    brief = (*document.brief, stops) if document.brief else ()
    more = replace(document, answers=(*document.answers, answer), brief=brief)
    return with_section(more, "replies", lambda: section)
