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
    """Every labelled reply once; of an audit of all proposals, those not delivered too."""
    labelled: dict[tuple[str, str], list[OversightRecord]] = {}
    for record in run.episodes:
        if record.status == "complete":
            labelled.setdefault((record.benchmark, record.task_id), []).append(record)
    for records in labelled.values():
        first = records[0]
        before = tuple(Block(speaker, text) for speaker, text in first.dialogue)
        said = [record.label.guidance for record in records if record.label]
        mean = sum(said) / len(said) if said else None
        yield Passage(
            (*before, Block("The tutor's reply to rate", first.reply)), _place(first, mean)
        )


def _place(record: OversightRecord, guidance: float | None) -> Place:
    """Where a reply stands; it was judged by its labels of guidance, the mean over conditions."""
    audited = record.audited
    if audited is None:
        named = (record.task_id, 1, record.tutor, record.tutor, record.conversation)
        return Place(*named, judged=guidance)
    return Place(
        episode=audited.episode,
        turn=audited.turn,
        role=audited.role,
        condition=audited.condition,
        task=f"{audited.benchmark}.{audited.task}",
        delivered=audited.delivered,
        judged=guidance,
    )
