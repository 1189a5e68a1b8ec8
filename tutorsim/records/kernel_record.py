"""What the kernel reads of an episode's record, and a base for the records of further systems."""

from collections.abc import Sequence
from typing import ClassVar, Protocol

from tutorsim.records.base_record import SCHEMA_VERSION, GrownRecord, Record
from tutorsim.records.episode import BallotRecord, CallRecord, Failure, TieRound
from tutorsim.vocabularies import BallotFormat, EpisodeStatus, VotingStage
from tutorsim.voting import Decision

__all__ = ["BaseRecord", "EpisodeLine", "VotedTurn", "VotingTurn"]


class EpisodeLine(Protocol):
    """A line of `episodes.jsonl` of any system, as far as the kernel and shared tables read it."""

    @property
    def episode_id(self) -> str: ...
    @property
    def benchmark(self) -> str: ...
    @property
    def task_id(self) -> str: ...
    @property
    def variant(self) -> str:
        """What stands between task and condition in the id."""

    @property
    def condition(self) -> str: ...
    @property
    def repeat(self) -> int: ...
    @property
    def status(self) -> EpisodeStatus: ...
    @property
    def failure(self) -> Failure | None: ...
    @property
    def calls(self) -> tuple[CallRecord, ...]: ...
    @property
    def without_text(self) -> tuple[str, ...] | None:
        """Keys of the calls whose replies had no text though they ended as usual."""

    @property
    def turns(self) -> Sequence["VotingTurn"]:
        """Turns that may hold votes; empty for an episode without votes."""


class VotingTurn(Protocol):
    """A turn as far as votes go; everything that recounts reads these names only."""

    @property
    def turn(self) -> int: ...
    @property
    def ballots_initial(self) -> tuple[BallotRecord, ...]: ...
    @property
    def ballots_final(self) -> tuple[BallotRecord, ...]:
        """The ballots of the vote whose winner was delivered, and of no other."""

    @property
    def ballots_as(self) -> dict[BallotFormat, tuple[BallotRecord, ...]]:
        """Format → diagnostic ballots on the same candidates."""

    @property
    def other_votes(self) -> dict[VotingStage, tuple[BallotRecord, ...]]:
        """Stage → ballots of votes that decided nothing: `vote_held`, `vote_opinion`."""

    @property
    def tie_round(self) -> TieRound | None: ...
    @property
    def decision(self) -> Decision | None: ...
    @property
    def confidences(self) -> dict[str, int]:
        """Voter → stated confidence, 0 to 100; voters who stated none are left out."""


class VotedTurn(Record):
    """A turn that may hold a vote, for the records of further systems to build on."""

    turn: int
    ballots_initial: tuple[BallotRecord, ...] = ()
    ballots_final: tuple[BallotRecord, ...] = ()
    ballots_as: dict[BallotFormat, tuple[BallotRecord, ...]] = {}
    other_votes: dict[VotingStage, tuple[BallotRecord, ...]] = {}
    tie_round: TieRound | None = None
    decision: Decision | None = None
    """`None` where no vote decided."""
    confidences: dict[str, int] = {}


class BaseRecord(GrownRecord):
    """What every record of a further system begins with."""

    later: ClassVar = frozenset({"without_text"})

    schema_version: int = SCHEMA_VERSION
    episode_id: str
    benchmark: str
    task_id: str
    variant: str
    condition: str
    repeat: int = 1
    """From 1."""
    status: EpisodeStatus = "complete"
    failure: Failure | None = None
    """`None` unless the status is `failed`."""
    calls: tuple[CallRecord, ...] = ()
    without_text: tuple[str, ...] | None = None
    """Keys of the calls whose replies had no text though they ended as usual; `None` for none."""
    turns: tuple[VotedTurn, ...] = ()
