"""What of a recorded episode can be asked again, and the flow that asks it."""

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Generic, NamedTuple, TypeVar

from tutorsim.ballot_reading_and_decisions import Choice
from tutorsim.errors import UsageError
from tutorsim.kernel.flow_drivers_and_call_log import Flow
from tutorsim.kernel.scene_asks_votes_and_blind_labels import ask_each, ballot_from, ballot_question
from tutorsim.model import Answer, Call, CallKey, Question, Request
from tutorsim.records import (
    BallotRecord,
    EpisodeLine,
    Failure,
    RetestRecord,
    RetestReply,
    RetestVote,
)
from tutorsim.vocabularies import TURN_VOTES

# --- Retest prompts ------------------------------------------------------------------------------

T = TypeVar("T")


class BallotReading(NamedTuple):
    """How a system's ballots are read."""

    reminder: str
    """What a second asking adds to the message."""
    budget: int
    """Points that a cumulative or rich ballot must sum to."""


class Prompt(NamedTuple, Generic[T]):
    """A recorded call, and how a reply to it is read."""

    key: CallKey
    """Key of the first asking, as it was recorded."""
    asked: Callable[[Call], Question[T]]
    """From the call with its recorded request to the question."""

    def question(self, request: Request, repeat: int, *, if_cut_off: str | None) -> Question[T]:
        """Ask it for another time.

        `request`: as recorded. `if_cut_off`: what a second asking adds where the first reply was
        cut off.
        """
        return self.asked(Call(self.key._replace(repeat=repeat), request, if_cut_off))


class AskedTogether(NamedTuple, Generic[T]):
    """Prompts of which a repeat counts only where every one of them was answered."""

    stage: str
    """What `--stages` names."""
    prompts: tuple[Prompt[T], ...]
    """One prompt or more."""
    records: Callable[
        [Sequence[Sequence[Answer[T]]], tuple[Failure, ...]], tuple[RetestVote | RetestReply, ...]
    ]
    """From the repeats that count, each with an answer per prompt, and the failures to what the
    log of a retest holds."""

    @property
    def turn(self) -> int:
        """The turn of their calls."""
        return self.prompts[0].key.turn


def votes_again(record: EpisodeLine, reading: BallotReading) -> Iterator[AskedTogether[Choice]]:
    """The votes of an episode's decided turns, in the order of the log."""
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
    """The call that a ballot answered, in the format that its branch may have asked for."""
    if stage == TURN_VOTES[-1]:
        other = CallKey(turn, f"vote_as_{ballot.protocol}", ballot.voter, 1)
        if str(other) in recorded:
            return other
    return CallKey(turn, stage, ballot.voter, 1)


def vote_again(
    turn: int,
    stage: str,
    ballots: Sequence[BallotRecord],
    keys: Sequence[CallKey],
    candidates: tuple[str, ...],
    reading: BallotReading,
) -> AskedTogether[Choice]:
    """One vote whose voters are asked for a ballot each.

    `keys`: the calls that they answered, in the same order.
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
        logged.voter, logged.labels, candidates, answer, form=logged.protocol, rule=logged.rule
    )


def reply_again(
    key: CallKey, asked: Callable[[Call], Question[T]], value: Callable[[Answer[T]], object]
) -> AskedTogether[T]:
    """One prompt whose reply is no ballot.

    `value`: what the log of a retest holds of an answer, as JSON.
    """

    def records(
        repeats: Sequence[Sequence[Answer[T]]], failures: tuple[Failure, ...]
    ) -> tuple[RetestReply]:
        values = tuple(value(answer) for [answer] in repeats)
        turn, stage, agent = key.turn, key.stage, key.agent
        return (RetestReply(turn=turn, stage=stage, agent=agent, values=values, failures=failures),)

    return AskedTogether(key.stage, (Prompt(key, asked),), records)


# --- Retest flow ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class Design:
    """What a retest asks."""

    repeats: int
    """Further askings of every prompt."""
    stages: tuple[str, ...]
    """Stages in the order of a turn."""
    sample: int | None = None
    """Number of turns drawn; `None` for all."""
    seed: int = 0
    """What they are drawn by."""
    ask_cut_off_again: bool = False
    """Whether a reply that was cut off is asked for once more."""

    @classmethod
    def of(cls, held: object) -> "Design":
        """The design that a head or a session file states."""
        return cls(**{field.name: getattr(held, field.name) for field in fields(cls)})

    def covers(self, other: "Design") -> bool:
        """Whether everything that the other asks is asked by this one too."""
        return (
            self.repeats >= other.repeats
            and set(self.stages) >= set(other.stages)
            and (self.sample is None or self._draws_all_of(other))
        )

    def _draws_all_of(self, other: "Design") -> bool:
        """Draws are nested: a larger one by the same seed holds a smaller one."""
        if self.sample is None or other.sample is None:
            return False
        return self.seed == other.seed and self.sample >= other.sample


def drawn_turns(turns: Iterable[tuple[str, int]], design: Design) -> frozenset[tuple[str, int]]:
    """Draw turns, each by a digest of its own, so that neither order nor repeats matter.

    `turns`: episode and turn of every turn that can be asked again; one may come repeatedly.
    """
    if design.sample is None:
        return frozenset(turns)

    def place(turn: tuple[str, int]) -> bytes:
        return hashlib.sha256(f"{design.seed}\n{turn[0]}\n{turn[1]}".encode()).digest()

    return frozenset(sorted(set(turns), key=place)[: design.sample])


def recorded_request(prompt: Prompt[Any], requests: Mapping[str, str]) -> Request:
    """The request of a prompt, as it was recorded.

    `requests`: call key → body, as recorded, of the whole episode. Raises `UsageError` if it cannot
    be sent again as it was.
    """
    try:
        return Request.from_text(requests[str(prompt.key)])
    except (KeyError, ValueError) as error:
        raise UsageError(
            f"The prompt of call {prompt.key} cannot be asked again as it was.",
            why=str(error),
            hint="Only recordings that this package made can be retested.",
        ) from error


class Asking(NamedTuple):
    """One prompt, to be asked for another time."""

    prompt: Prompt[Any]
    question: Question[Any]


def askings(
    sets: Iterable[AskedTogether[Any]],
    requests: Mapping[str, str],
    repeats: int,
    *,
    if_cut_off: str | None,
) -> Iterator[Asking]:
    """Every prompt with every repeat, in call order: by set, repeat and prompt.

    `requests`: call key → body, as recorded, of the whole episode. `if_cut_off`: what a second
    asking adds where the first reply was cut off. Raises `UsageError` if a prompt cannot be sent
    again as it was.
    """
    for one in sets:
        recorded = [recorded_request(prompt, requests) for prompt in one.prompts]
        for repeat in range(1, repeats + 1):
            for prompt, request in zip(one.prompts, recorded, strict=True):
                yield Asking(prompt, prompt.question(request, repeat, if_cut_off=if_cut_off))


def retest_flow(
    episode_id: str,
    sets: Sequence[AskedTogether[Any]],
    repeats: int,
    questions: Sequence[Question[Any]],
) -> Flow[RetestRecord]:
    """Ask an episode's prompts again.

    A repeat counts where every prompt of a set was answered.

    `questions`: those of `askings`, in the same order.
    """
    coming = iter((yield from ask_each(questions)))
    votes = [record for one in sets for record in one.records(*_counting(one, repeats, coming))]
    return RetestRecord(episode_id=episode_id, votes=tuple(votes))


def _counting(
    one: AskedTogether[Any], repeats: int, coming: Iterator[Answer[Any] | Failure]
) -> tuple[list[list[Answer[Any]]], tuple[Failure, ...]]:
    """The repeats of a set that count, and the failures of the others."""
    asked = [[next(coming) for _ in one.prompts] for _ in range(repeats)]
    answered = [[a for a in answers if isinstance(a, Answer)] for answers in asked]
    failures = tuple(a for answers in asked for a in answers if isinstance(a, Failure))
    return [answers for answers in answered if len(answers) == len(one.prompts)], failures


def attempts_together(keys: Sequence[CallKey]) -> list[CallKey]:
    """Calls in the order of a retest's tape: a second asking behind its first."""
    first = {key: place for place, key in enumerate(keys) if key.attempt == 1}
    return sorted(keys, key=lambda key: (first[key._replace(attempt=1)], key.attempt))
