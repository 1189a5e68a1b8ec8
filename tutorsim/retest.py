"""A retest: which votes of a recording are asked again, and the flow that asks for one ballot.

Nothing is built anew: a prompt is the recorded request, its labels are those of the log. What
cannot be read is asked once more with the reminder, as in the run, so that a repeat of a vote
is a whole set of ballots.
"""

import hashlib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from tutorsim.errors import UsageError
from tutorsim.mechanisms.flow import Flow, ask
from tutorsim.mechanisms.logged import ballot_from
from tutorsim.model import Call, CallKey, Question, Request
from tutorsim.records import BallotRecord, EpisodeRecord, Failure, RetestRecord, RetestVote, Turn
from tutorsim.types import STAGES, Stage
from tutorsim.voting import Choice, read_ballot, repair_ballot

__all__ = [
    "RETEST_STAGES",
    "Design",
    "Prompt",
    "Vote",
    "ask_again",
    "askings",
    "drawn_turns",
    "prompts_of",
    "retest_record",
    "votes_of",
]

RETEST_STAGES: Final[tuple[Stage, ...]] = ("vote_initial", "vote_final")
"""Stages whose votes can be asked again: those in which the whole panel votes on everything."""


@dataclass(frozen=True)
class Design:
    """What a retest asks."""

    repeats: int
    """Further askings of every prompt."""
    stages: tuple[Stage, ...] = RETEST_STAGES
    """In the order of a turn."""
    sample: int | None = None
    """Number of turns drawn; `None` for all."""
    seed: int = 0
    """What they are drawn by."""

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


class Vote(NamedTuple):
    """A logged vote that is asked again."""

    turn: int
    stage: Stage
    """`vote_initial` or `vote_final`."""
    candidates: tuple[str, ...]
    ballots: tuple[BallotRecord, ...]
    """As logged."""


@dataclass(frozen=True)
class Prompt:
    """A recorded request for a ballot, and how its reply is read."""

    call: Call
    """The first asking as it was recorded."""
    ballot: BallotRecord
    """What was logged for it."""
    candidates: tuple[str, ...]
    reminder: str
    budget: int
    """Points that a cumulative or rich ballot must sum to."""

    def question(self, repeat: int) -> Question[Choice]:
        """Ask it for another time, from 1."""
        form, shown = self.ballot.protocol, tuple(self.ballot.labels)
        return Question(
            Call(self.call.key._replace(repeat=repeat), self.call.request),
            lambda reply: read_ballot(reply, shown, form=form, budget=self.budget),
            self.reminder,
            lambda reply: repair_ballot(reply, shown, form=form, budget=self.budget),
        )


def drawn_turns(turns: Iterable[tuple[str, int]], design: Design) -> frozenset[tuple[str, int]]:
    """Draw turns, each by a digest of its own, so that neither order nor repeats matter.

    Args:
        turns: Episode and turn of every turn that was voted on.
        design: How many to draw, and by which seed.
    """
    if design.sample is None:
        return frozenset(turns)

    def place(turn: tuple[str, int]) -> bytes:
        return hashlib.sha256(f"{design.seed}\n{turn[0]}\n{turn[1]}".encode()).digest()

    return frozenset(sorted(turns, key=place)[: design.sample])


def votes_of(
    record: EpisodeRecord, turns: Collection[int], stages: Sequence[Stage]
) -> tuple[Vote, ...]:
    """The votes of an episode's turns, in the order of the log."""
    return tuple(
        Vote(turn.turn, stage, tuple(turn.proposals_initial), ballots)
        for turn in record.turns
        if turn.turn in turns
        for stage in stages
        if (ballots := _ballots(turn, stage))
    )


def _ballots(turn: Turn, stage: Stage) -> tuple[BallotRecord, ...]:
    return turn.ballots_initial if stage == "vote_initial" else turn.ballots_final


def prompts_of(
    vote: Vote, requests: Mapping[str, str], *, reminder: str, budget: int
) -> tuple[Prompt, ...]:
    """The prompts of a vote, one for each voter.

    Args:
        vote: The vote.
        requests: Call key → body, as recorded, of the whole episode.
        reminder: What a second asking adds.
        budget: Points that a cumulative or rich ballot must sum to.

    Raises:
        UsageError: If a prompt cannot be sent again as it was.
    """
    return tuple(
        Prompt(_recorded(vote, ballot, requests), ballot, vote.candidates, reminder, budget)
        for ballot in vote.ballots
    )


def _recorded(vote: Vote, ballot: BallotRecord, requests: Mapping[str, str]) -> Call:
    """The call that a ballot answered.

    A branch of a recording may have asked for its deciding ballots in a format of its own.
    """
    stage = next((s for s in STAGES if s == f"vote_as_{ballot.protocol}"), vote.stage)
    key = CallKey(vote.turn, stage, ballot.voter, 1)
    if vote.stage == "vote_initial" or str(key) not in requests:
        key = key._replace(stage=vote.stage)
    try:
        return Call(key, Request.from_text(requests[str(key)]))
    except (KeyError, ValueError) as error:
        raise UsageError(
            f"The prompt of call {key} cannot be asked again as it was.",
            why=str(error),
            hint="Only recordings that this package made can be retested.",
        ) from error


def askings(votes: Sequence[Sequence[Prompt]], repeats: int) -> Iterator[tuple[Prompt, int]]:
    """Every prompt with every repeat, in call order: by vote, repeat and voter."""
    for prompts in votes:
        for repeat in range(1, repeats + 1):
            yield from ((prompt, repeat) for prompt in prompts)


def ask_again(prompt: Prompt, repeat: int) -> Flow[BallotRecord]:
    """Ask a voter for the same ballot another time."""
    [answer] = yield from ask([prompt.question(repeat)])
    logged = prompt.ballot
    return ballot_from(
        logged.voter,
        logged.labels,
        prompt.candidates,
        answer,
        form=logged.protocol,
        rule=logged.rule,
    )


def retest_record(
    episode_id: str,
    votes: Sequence[Vote],
    repeats: int,
    outcomes: Iterable[BallotRecord | Failure],
) -> RetestRecord:
    """Put an episode's outcomes, in the order of `askings`, together.

    A repeat counts where every voter answered.
    """
    coming = iter(outcomes)
    return RetestRecord(
        episode_id=episode_id, votes=tuple(_again(vote, repeats, coming) for vote in votes)
    )


def _again(vote: Vote, repeats: int, outcomes: Iterator[BallotRecord | Failure]) -> RetestVote:
    panels = [[next(outcomes) for _ in vote.ballots] for _ in range(repeats)]
    ballots = [tuple(one for one in p if isinstance(one, BallotRecord)) for p in panels]
    return RetestVote(
        turn=vote.turn,
        stage=vote.stage,
        repeats=tuple(cast for cast in ballots if len(cast) == len(vote.ballots)),
        failures=tuple(one for panel in panels for one in panel if isinstance(one, Failure)),
    )
