"""From answers to logged proposals, reviews and ballots."""

from collections.abc import Mapping, Sequence

from tutorsim.agents.reading import ReadProposal
from tutorsim.model import Answer
from tutorsim.records import BallotRecord, Note, Proposal, ReviewRecord
from tutorsim.types import BallotFormat, BallotStatus, Protocol, ReadStatus
from tutorsim.voting import Choice, cast_as, masses_of, resolve

__all__ = ["ballot_from", "counted_as", "proposal_from", "review_from"]


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
    form: BallotFormat,
    rule: Protocol,
) -> BallotRecord:
    """A ballot in roles; an abstention where neither reply could be read.

    Args:
        voter: Who cast it.
        labels: Label → role, as shown.
        candidates: Whom the ballot is about.
        answer: What was read.
        form: The format that was asked for.
        rule: The protocol that the ballot counts under.
    """
    parsed = None if answer.value is None else resolve(answer.value, labels)
    status: BallotStatus = "repaired" if answer.salvaged else "valid"
    return BallotRecord(
        voter=voter,
        protocol=form,
        counted_as=None if form == rule else rule,
        labels=dict(labels),
        raw=answer.raw,
        parsed=parsed,
        mass=masses_of(parsed, candidates, protocol=rule),
        ballot_status="abstained" if parsed is None else status,
        attempts=answer.attempts,
        raw_first=answer.raw_first,
    )


def counted_as(ballot: BallotRecord, rule: Protocol) -> BallotRecord | None:
    """A ballot as it counts under another protocol; `None` where it does not determine one.

    An abstention stays one.
    """
    cast = None
    if ballot.parsed is not None:
        cast = cast_as(ballot.parsed, form=ballot.protocol, protocol=rule)
        if cast is None:
            return None
    return ballot.model_copy(
        update={
            "counted_as": None if ballot.protocol == rule else rule,
            "mass": masses_of(cast, tuple(ballot.mass), protocol=rule),
        }
    )


def _read_status(answer: Answer[ReadProposal] | Answer[dict[str, Note]]) -> ReadStatus:
    if answer.value is None:
        return "missing"
    return "repaired" if answer.salvaged else "valid"
