"""From answers to logged proposals, reviews and ballots."""

from collections.abc import Mapping, Sequence

from tutorsim.agents.reading import ReadProposal
from tutorsim.model import Answer
from tutorsim.records import BallotRecord, Note, Proposal, ReviewRecord
from tutorsim.types import BallotStatus, Protocol, ReadStatus
from tutorsim.voting import Choice, masses_of, resolve

__all__ = ["ballot_from", "proposal_from", "review_from"]


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


def ballot_from(
    voter: str,
    labels: Mapping[str, str],
    candidates: Sequence[str],
    answer: Answer[Choice],
    *,
    protocol: Protocol,
) -> BallotRecord:
    """A ballot in roles; an abstention where neither reply could be read."""
    parsed = None if answer.value is None else resolve(answer.value, labels)
    status: BallotStatus = "repaired" if answer.salvaged else "valid"
    return BallotRecord(
        voter=voter,
        protocol=protocol,
        labels=dict(labels),
        raw=answer.raw,
        parsed=parsed,
        mass=masses_of(parsed, candidates, protocol=protocol),
        ballot_status="abstained" if parsed is None else status,
        attempts=answer.attempts,
        raw_first=answer.raw_first,
    )


def _read_status(answer: Answer[ReadProposal] | Answer[dict[str, Note]]) -> ReadStatus:
    if answer.value is None:
        return "missing"
    return "repaired" if answer.salvaged else "valid"
