"""The summary or report of whatever was opened: what its view says, and what every page says.

Pages of several systems have the noise floor of votes: what asking the same prompts again changes
by itself (`analysis.statistics.noise_floor_of_retests`). A floor under flips and shifts needs a
first vote, which these systems do not hold; what can be said is how often a voter says the same,
and how far the winners hang on the answers that voters happened to give.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

from tutorsim.analysis.pages.cells_and_tables import estimate, plain, sum_of
from tutorsim.analysis.pages.decorators_to_declare_tables_and_charts import Row, table
from tutorsim.analysis.pages.document import Answer, Document, Section, with_section
from tutorsim.analysis.pages.words_and_safe_text import counted
from tutorsim.analysis.statistics import by_key
from tutorsim.analysis.statistics.noise_floor_of_retests import (
    AskedVote,
    asked_again,
    asked_votes,
    ballot_agreement,
    winner_stability,
)
from tutorsim.analysis.systems.system_view_opened_run_and_cost import (
    Ballots,
    Opened,
    SystemRun,
    view_for,
)
from tutorsim.records import Retest, StopCount, odd_stops


def document_of(opened: Opened, *, brief: bool) -> Document | None:
    """The summary (brief) or the report of a run or of ballots; `None` of a system without one."""
    make = view_for(opened).document
    if make is None:
        return None
    made = make(opened, brief)
    if isinstance(opened, Ballots):
        return made
    whole = with_reply_endings(made, opened)
    if not opened.ratings:
        return whole
    from tutorsim.analysis.ratings.ratings_section_and_success_by_people import with_ratings

    return with_ratings(whole, opened)


@table("stops", "Replies without text or an end of their own")
def stops_table(of: Sequence[StopCount]) -> Iterator[Row]:
    """Replies that had no text, were refused, or cut off at their limit of length. Where one was
    asked for once more, the second reply was taken; the others were taken as they are."""
    for count in of:
        yield {
            "stage": count.stage,
            "ended": count.words,
            "replies": count.calls,
            "taken as they are": count.taken,
        }


def with_reply_endings(document: Document, run: SystemRun) -> Document:
    """The document, and how many replies were empty, refused or cut off; unchanged if none was."""
    counts = run.stops
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
    brief = (*document.brief, stops) if document.brief else ()
    more = replace(document, answers=(*document.answers, answer), brief=brief)
    return with_section(more, "replies", lambda: section)


# --- Noise floor of votes ------------------------------------------------------------------------


@table("noise", "One prompt, asked several times")
def noise(of: tuple[Mapping[str, Sequence[AskedVote]], int]) -> Iterator[Row]:
    """Pairs: two askings of one voter's prompt, logged or re-asked; same: share of them with one
    ballot; by chance: two ballots of one voter in different votes. Pairs with one abstention + with
    two are in no share. Panels: one answer of each voter; how often their winner is that of the
    logged ballots, and how often two of them agree. A tie goes to the fallback order. 95 %
    intervals in brackets: over tasks, or what the system takes together with a task."""
    kinds, seed = of
    for name, votes in kinds.items():
        own, panels = ballot_agreement(votes), winner_stability(votes, seed=seed)
        yield {
            "vote": name,
            "votes": own["votes"],
            "pairs of askings": own["pairs"],
            "same ballot": estimate(own["same"]),
            "same by chance": plain(own["chance"]),
            "pairs with abstentions": sum_of(one=own["one_abstained"], both=own["both_abstained"]),
            "panels with the logged winner": estimate(panels["elects_logged"]),
            "two panels agree": estimate(panels["agree"]),
        }


def noise_section(run: SystemRun, kind: Callable[[AskedVote], str]) -> tuple[Section, ...]:
    """How steady a run's votes are; no section for a run whose votes were not asked again.

    `kind`: what a vote is of; each kind is a row. Raises `LogError` if the retest is of votes that
    the log does not hold.
    """
    if run.retest is None or run.head.voting is None:
        return ()
    cluster = view_for(run).cluster_of(run)
    clusters = {record.episode_id: cluster(record) for record in run.episodes}

    def together(vote: AskedVote) -> AskedVote:
        return vote._replace(place=vote.place._replace(task=clusters[vote.key.episode_id]))

    votes = asked_votes(run.source, run.episodes)
    made = noise((by_key((kind(v), together(v)) for v in votes), run.head.study.seed))
    lead = f"What re-asking alone changes. {asked_again_words(run.retest)}"
    return (Section("noise", "Noise floor of the votes", lead, tables=(made,)),) if made else ()


def asked_again_words(retest: Retest) -> str:
    """How often what was asked again, and by whom it was answered, in a sentence."""
    failures = {
        (episode.episode_id, failure.key)
        for episode in retest.episodes
        for vote in episode.votes
        for failure in vote.failures
    }
    failed = f" {len(failures)} calls failed; repeats that lack an answer are left out."
    return asked_again(retest.head) + failed * bool(failures)
