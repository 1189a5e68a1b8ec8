"""From answers to logged proposals and reviews."""

from collections.abc import Mapping

from tutorsim.model import Answer
from tutorsim.records import Note, Proposal, ReviewRecord
from tutorsim.systems.panel.reply_reading import ReadProposal
from tutorsim.vocabularies import ReadStatus

__all__ = ["proposal_from", "review_from"]


def proposal_from(answer: Answer[ReadProposal]) -> Proposal:
    """A proposal; one that never came stands as an empty text, marked `missing`."""
    read = answer.value or ReadProposal("", None, None)
    return Proposal(
        text=read.text,
        rationale=read.rationale,
        confidence=read.confidence,
        status=_read_status(answer),
        attempts=answer.attempts,
    )


def review_from(
    reviewer: str, labels: Mapping[str, str], answer: Answer[dict[str, Note]]
) -> ReviewRecord:
    """A review with its notes by role; one that never came has none, marked `missing`."""
    notes = answer.value or {}
    return ReviewRecord(
        reviewer=reviewer,
        labels=dict(labels),
        raw=answer.raw,
        notes={labels[label]: note for label, note in notes.items()},
        status=_read_status(answer),
        attempts=answer.attempts,
    )


def _read_status(answer: Answer[ReadProposal] | Answer[dict[str, Note]]) -> ReadStatus:
    if answer.value is None:
        return "missing"
    return "repaired" if answer.salvaged else "valid"
