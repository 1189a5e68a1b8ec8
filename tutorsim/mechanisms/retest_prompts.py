"""What of a recorded episode can be asked again, and how the replies are read.

A system says it by `LoadedStudy.asked_again`. Most systems vote, and for those it is told by
`votes_again`: every voter of a logged vote is asked for the same ballot. Others bring prompts of
their own, as many together as belong to one record.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Generic, NamedTuple, TypeVar

from tutorsim.mechanisms.ballot_answers import ballot_from, ballot_question
from tutorsim.model import Answer, Call, CallKey, Question, Request
from tutorsim.records import (
    BallotRecord,
    EpisodeLine,
    Failure,
    RetestReply,
    RetestVote,
)
from tutorsim.vocabularies import TURN_VOTES
from tutorsim.voting import Choice

__all__ = ["AskedTogether", "BallotReading", "Prompt", "reply_again", "vote_again", "votes_again"]

T = TypeVar("T")


class BallotReading(NamedTuple):
    """How a system's ballots are read."""

    reminder: str
    """What a second asking adds to the message."""
    budget: int
    """Points that a cumulative or rich ballot must sum to."""


@dataclass(frozen=True)
class Prompt(Generic[T]):
    """A recorded call, and how a reply to it is read."""

    key: CallKey
    """Of the first asking, as it was recorded."""
    asked: Callable[[Call], Question[T]]
    """From the call with its recorded request to the question."""

    def question(self, request: Request, repeat: int, *, if_cut_off: str | None) -> Question[T]:
        """Ask it for another time.

        Args:
            request: As recorded.
            repeat: From 1.
            if_cut_off: What a second asking adds where the first reply was cut off.
        """
        return self.asked(Call(self.key._replace(repeat=repeat), request, if_cut_off))


@dataclass(frozen=True)
class AskedTogether(Generic[T]):
    """Prompts of which a repeat counts only where every one of them was answered."""

    stage: str
    """What `--stages` names."""
    prompts: tuple[Prompt[T], ...]
    """At least one."""
    records: Callable[
        [Sequence[Sequence[Answer[T]]], tuple[Failure, ...]],
        tuple[RetestVote | RetestReply, ...],
    ]
    """From the repeats that count, each with an answer per prompt, and the failures to what the
    log of a retest holds."""

    @property
    def turn(self) -> int:
        """The turn of their calls."""
        return self.prompts[0].key.turn


def votes_again(record: EpisodeLine, reading: BallotReading) -> Iterator[AskedTogether[Choice]]:
    """The votes of an episode's decided turns, in the order of the log.

    Args:
        record: The episode.
        reading: How its ballots are read.
    """
    recorded = {call.key for call in record.calls}
    for turn in record.turns:
        if turn.decision is None:
            continue
        candidates = tuple(turn.decision.tallies)
        for stage, ballots in zip(
            TURN_VOTES, (turn.ballots_initial, turn.ballots_final), strict=True
        ):
            if ballots:
                keys = [_key(turn.turn, stage, ballot, recorded) for ballot in ballots]
                yield vote_again(turn.turn, stage, ballots, keys, candidates, reading)


def _key(turn: int, stage: str, ballot: BallotRecord, recorded: set[str]) -> CallKey:
    """The call that a ballot answered.

    A branch of a recording may have asked for its deciding ballots in a format of its own.
    """
    key = CallKey(turn, stage, ballot.voter, 1)
    other = key._replace(stage=f"vote_as_{ballot.protocol}")
    return other if stage == TURN_VOTES[-1] and str(other) in recorded else key


def vote_again(
    turn: int,
    stage: str,
    ballots: Sequence[BallotRecord],
    keys: Sequence[CallKey],
    candidates: tuple[str, ...],
    reading: BallotReading,
) -> AskedTogether[Choice]:
    """One vote whose voters are asked for a ballot each.

    Args:
        turn: Of the vote.
        stage: Of the vote.
        ballots: As logged.
        keys: The calls that they answered, in the same order.
        candidates: Whom the ballots are about.
        reading: How they are read.
    """
    prompts = tuple(
        Prompt(key, _asker(ballot, reading)) for key, ballot in zip(keys, ballots, strict=True)
    )

    def records(
        repeats: Sequence[Sequence[Answer[Choice]]], failures: tuple[Failure, ...]
    ) -> tuple[RetestVote]:
        cast = tuple(
            tuple(_cast(*pair, candidates) for pair in zip(ballots, answers, strict=True))
            for answers in repeats
        )
        return (RetestVote(turn=turn, stage=stage, repeats=cast, failures=failures),)

    return AskedTogether(stage, prompts, records)


def _asker(ballot: BallotRecord, reading: BallotReading) -> Callable[[Call], Question[Choice]]:
    return lambda call: ballot_question(
        call,
        tuple(ballot.labels),
        form=ballot.protocol,
        budget=reading.budget,
        reminder=reading.reminder,
    )


def _cast(
    logged: BallotRecord, answer: Answer[Choice], candidates: tuple[str, ...]
) -> BallotRecord:
    return ballot_from(
        logged.voter,
        logged.labels,
        candidates,
        answer,
        form=logged.protocol,
        rule=logged.rule,
    )


def reply_again(
    key: CallKey, asked: Callable[[Call], Question[T]], value: Callable[[Answer[T]], object]
) -> AskedTogether[T]:
    """One prompt whose reply is no ballot.

    Args:
        key: The recorded call.
        asked: From a call to the question.
        value: What the log of a retest holds of an answer, as JSON.
    """

    def records(
        repeats: Sequence[Sequence[Answer[T]]], failures: tuple[Failure, ...]
    ) -> tuple[RetestReply]:
        values = tuple(value(answer) for [answer] in repeats)
        turn, stage, agent = key.turn, key.stage, key.agent
        return (RetestReply(turn=turn, stage=stage, agent=agent, values=values, failures=failures),)

    return AskedTogether(key.stage, (Prompt(key, asked),), records)
