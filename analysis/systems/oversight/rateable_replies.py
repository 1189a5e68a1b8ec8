"""What people can rate of oversight runs: the replies that were labelled."""

from collections.abc import Iterator

from tutorsim.analysis.ratings.rateable_items import Block, Passage, Place
from tutorsim.analysis.systems.system_view import SystemRun
from tutorsim.records.oversight import OversightRecord

__all__ = ["delivered_passages", "proposal_passages"]


def delivered_passages(run: SystemRun) -> Iterator[Passage]:
    """Labelled replies that a student saw; the same whatever the condition that labelled them."""
    return (passage for passage in proposal_passages(run) if passage.place.delivered)


def proposal_passages(run: SystemRun) -> Iterator[Passage]:
    """Every labelled reply; of an audit of all proposals, those not delivered too."""
    for record in run.episodes:
        if record.status == "complete":
            before = tuple(Block(speaker, text) for speaker, text in record.dialogue)
            reply = Block("The tutor's reply to rate", record.reply)
            yield Passage((*before, reply), _place(record))


def _place(record: OversightRecord) -> Place:
    audited = record.audited
    if audited is None:
        return Place(record.task_id, 1, record.tutor, record.tutor, record.conversation)
    return Place(
        episode=audited.episode,
        turn=audited.turn,
        role=audited.role,
        condition=audited.condition,
        task=f"{audited.benchmark}.{audited.task}",
        delivered=audited.delivered,
        judged=audited.score_after,
    )
