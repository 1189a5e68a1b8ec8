"""From answers to logged ballots."""

from collections.abc import Mapping, Sequence

from tutorsim.model import Answer, Call, Question
from tutorsim.records import BallotRecord
from tutorsim.vocabularies import BallotFormat, BallotStatus, Protocol
from tutorsim.voting import Choice, cast_as, masses_of, read_ballot, repair_ballot, resolve

__all__ = ["ballot_from", "ballot_question", "counted_as"]


def ballot_question(
    call: Call, labels: Sequence[str], *, form: BallotFormat, budget: int, reminder: str
) -> Question[Choice]:
    """Ask for a ballot: how the reply is read, and what is read of a second one.

    Args:
        call: The first asking.
        labels: As shown to the voter, in order.
        form: The format that is asked for.
        budget: Points that a cumulative or rich ballot must sum to.
        reminder: What a second asking adds.
    """
    return Question(
        call,
        lambda reply: read_ballot(reply, labels, form=form, budget=budget),
        reminder,
        lambda reply: repair_ballot(reply, labels, form=form, budget=budget),
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
    """A ballot on candidates; an abstention where neither reply could be read.

    Args:
        voter: Who cast it.
        labels: Label → candidate, as shown.
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
