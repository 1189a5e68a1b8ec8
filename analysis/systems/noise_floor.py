"""The noise floor of a system's votes: what asking the same prompts again changes by itself.

The definitions are those of `analysis.metrics.retest.noise_floor`. A floor under flips and shifts
needs a first vote, which these systems do not hold; what can be said is how often a voter says the
same, and how far the winners hang on the answers that voters happened to give.
"""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from tutorsim.analysis.metrics.noise_floor import (
    AskedVote,
    answered_by,
    asked_votes,
    ballot_agreement,
    winner_stability,
)
from tutorsim.analysis.pages.cells import estimate, plain, sum_of
from tutorsim.analysis.pages.declared import Row, table
from tutorsim.analysis.pages.document import Section
from tutorsim.analysis.systems.system_view import SystemRun
from tutorsim.records import Retest


class Again(NamedTuple):
    """Votes that were asked again, by kind."""

    kinds: dict[str, list[AskedVote]]
    seed: int


@table("noise", "One prompt, asked several times")
def noise(of: Again) -> Iterator[Row]:
    """Pairs: two askings of one voter's prompt, logged or re-asked; same: share of them with one
    ballot; by chance: two ballots of one voter in different votes. Pairs with one abstention + with
    two are in no share. Panels: one answer of each voter; how often their winner is that of the
    logged ballots, and how often two of them agree. A tie goes to the fallback order. 95 %
    intervals in brackets: over tasks, or what the system takes together with a task."""
    for name, votes in of.kinds.items():
        own, panels = ballot_agreement(votes), winner_stability(votes, seed=of.seed)
        yield {
            "vote": name,
            "votes": own.votes,
            "pairs of askings": own.pairs,
            "same ballot": estimate(own.same),
            "same by chance": plain(own.chance),
            "pairs with abstentions": sum_of(one=own.one_abstained, both=own.both_abstained),
            "panels with the logged winner": estimate(panels.elects_logged),
            "two panels agree": estimate(panels.agree),
        }


def noise_section(
    run: SystemRun,
    kind: Callable[[AskedVote], str],
    *,
    cluster: Callable[[Any], str] = lambda record: str(record.task_id),
) -> Section | None:
    """How steady a run's votes are; `None` for a run whose votes were not asked again.

    Args:
        run: The run.
        kind: What a vote is of; each kind is a row.
        cluster: What a record is taken together with.

    Raises:
        LogError: If the retest is of votes that the log does not hold.
    """
    if run.retest is None or run.head.voting is None:
        return None
    kinds: dict[str, list[AskedVote]] = {}
    clusters = {record.episode_id: cluster(record) for record in run.episodes}
    for vote in asked_votes(run.source, run.episodes):
        place = vote.turn.place._replace(task=clusters[vote.turn.key.episode_id])
        together = vote._replace(turn=vote.turn._replace(place=place))
        kinds.setdefault(kind(vote), []).append(together)
    made = noise(Again(kinds, run.head.study.seed))
    if made is None:
        return None
    lead = f"What re-asking alone changes. {asked_again_words(run.retest)}"
    return Section("noise", "Noise floor of the votes", lead, tables=(made,))


def asked_again_words(retest: Retest) -> str:
    """How often what was asked again, and by whom it was answered, in a sentence."""
    head = retest.head
    drawn = "" if head.sample is None else f", in {head.sample} turns drawn for it"
    failures = {
        (episode.episode_id, failure.key)
        for episode in retest.episodes
        for vote in episode.votes
        for failure in vote.failures
    }
    failed = f" {len(failures)} calls failed; repeats that lack an answer are left out."
    said = f"Asked again {head.repeats} × by {answered_by(head.provenance)}{drawn}."
    return said + failed * bool(failures)
