"""One episode of the panel, a line of `episodes.jsonl`; what the kernel reads of any episode."""

from collections.abc import Sequence
from typing import ClassVar, Protocol, Self

from tutorsim.ballot_reading_and_decisions import Choice, Decision
from tutorsim.records.base_record_its_line_and_fields_added_later import (
    SCHEMA_VERSION,
    GrownRecord,
    Record,
    part_of_record,
)
from tutorsim.vocabularies import (
    BallotFormat,
    BallotStatus,
    Condition,
    EpisodeStatus,
    ReadStatus,
    VotingStage,
)
from tutorsim.vocabularies import Protocol as VoteProtocol

# --- Episode -------------------------------------------------------------------------------------


class VerdictRecord(Record):
    """What the unit tests said of the code in a student's message."""

    outcome: str
    """`pass`, `fail`, `timeout`, `error` or `no_code`; logs of other programs may hold more."""
    reason: str = ""
    """Why, in a few words; for `no_code`, why nothing was extracted."""
    near_limit: bool = False
    """The program used more than half of its time or memory."""
    unsafe: bool = False
    """The program ran without the sandbox's protection, on the user's word."""


class Attempt(Record):
    """One message of the student, and what it was worth. Turn 0 comes before any tutoring."""

    turn: int
    text: str
    score: float | None
    """The judge's score in [0, 1]; `None` when the judge's reply held none."""
    score_rationale: str | None = None
    code: str | None = None
    """The program found in the message; `None` for science questions and where none was found."""
    code_passed: bool | None = None
    """Whether the program passed its tests; `None` for science questions."""
    verdict: VerdictRecord | None = None
    """`None` for science questions."""


class Proposal(Record):
    """One role's reply to the student, as drafted or as revised."""

    text: str
    rationale: str | None = None
    confidence: int | None = None
    """0 to 100, as stated by the model; `None` where not asked for or not readable."""
    status: ReadStatus = "valid"
    """`repaired`: no `PROPOSAL:` marker, the whole reply is the text; `missing`: empty text."""
    attempts: int = 1


class Note(Record):
    """What a reviewer said of one proposal."""

    strength: str | None = None
    weakness: str | None = None


class ReviewRecord(Record):
    """One reviewer's notes on the proposals it was shown."""

    reviewer: str
    labels: dict[str, str]
    """Label → role, as shown to this reviewer."""
    raw: str
    notes: dict[str, Note]
    """Role → notes, with label mentions as the reviewer wrote them."""
    status: ReadStatus = "valid"
    attempts: int = 1


@part_of_record
class BallotRecord:
    """One voter's ballot."""

    voter: str
    protocol: BallotFormat
    """The format that was asked for: the protocol's own, or `rich`."""
    counted_as: VoteProtocol | None = None
    """The protocol that a rich ballot counts under in its study; `None` for its own."""
    labels: dict[str, str]
    """Label → role, as shown to this voter, in the order shown."""
    raw: str = ""
    """The last reply, as received."""
    parsed: Choice | None
    """The choice in roles; `None` for an abstention."""
    mass: dict[str, int]
    """Role → mass, every candidate present; empty for an abstention."""
    ballot_status: BallotStatus = "valid"
    attempts: int = 1
    """1, or 2 when the first reply could not be read."""
    raw_first: str | None = None
    """The first reply, where it could not be read and was asked for again."""

    @property
    def rule(self) -> VoteProtocol:
        """The protocol that `mass` counts under."""
        if self.counted_as is not None:
            return self.counted_as
        return "cumulative" if self.protocol == "rich" else self.protocol


class TieRound(Record):
    """The extra round among tied candidates."""

    candidates: tuple[str, ...]
    reviews: tuple[ReviewRecord, ...] = ()
    ballots: tuple[BallotRecord, ...]


class Turn(Record):
    """One tutoring turn. The single tutor proposes only: no reviews, ballots or decision."""

    turn: int
    """Number of the turn, from 1."""
    proposals_initial: dict[str, Proposal] = {}
    reviews: tuple[ReviewRecord, ...] = ()
    ballots_initial: tuple[BallotRecord, ...] = ()
    """Diagnostic ballots on the first drafts; never used for the decision."""
    proposals_final: dict[str, Proposal] = {}
    ballots_final: tuple[BallotRecord, ...] = ()
    """The ballots that decided, unless they tied."""
    ballots_as: dict[BallotFormat, tuple[BallotRecord, ...]] = {}
    """Format → diagnostic ballots on the final proposals; never used for the decision.

    In a branch under another rule, the ballots of the logged vote stand here."""
    tie_round: TieRound | None = None
    """`None` when the final vote was not tied."""
    decision: Decision | None = None
    """`None` for the single tutor."""
    delivered: str = ""
    """The text that the student saw."""

    @property
    def other_votes(self) -> dict[VotingStage, tuple[BallotRecord, ...]]:
        """A panel holds no vote but those that it logs by their own names."""
        return {}


@part_of_record
class CallRecord:
    """One model call, in call order."""

    key: str
    """`turn/stage/agent/attempt`."""
    stage: str
    model: str
    """The model identifier that the reply names."""
    stop_reason: str | None
    input_tokens: int
    output_tokens: int


class Failure(Record):
    """Why an episode could not be finished."""

    key: str
    """The call that failed."""
    error: str


class BranchPoint(Record):
    """Where an episode of a branch leaves the episode that it continues."""

    parent_episode: str
    turn: int
    """The first turn that the alternative decides; everything before it is the parent's."""
    continuation: int
    """Number of the draw, from 1, of several of what might have followed."""
    left: int | None
    """The turn whose winner differs from the parent's; `None` when none came to differ."""


class EpisodeRecord(GrownRecord):
    """One student, one task, one condition, from the first attempt to the last."""

    later: ClassVar = frozenset({"panel", "without_text"})

    schema_version: int = SCHEMA_VERSION
    episode_id: str
    benchmark: str
    """The benchmark's name in the study."""
    task_id: str
    persona: str
    condition: Condition
    panel: str | None = None
    """Which of the study's panels taught; `None` where it has one panel, and for the single
    tutor."""
    repeat: int = 1
    """Number of the repeat, from 1."""
    question: str = ""
    """What the student was asked."""
    reference: str = ""
    """What the judge compared with; no other agent saw it."""
    status: EpisodeStatus = "complete"
    failure: Failure | None = None
    """`None` unless the status is `failed`."""
    branch: BranchPoint | None = None
    """`None` for an episode as it was logged."""
    attempts: tuple[Attempt, ...]
    turns: tuple[Turn, ...]
    turns_taken: int
    """Tutoring turns delivered and answered; 0 when the first attempt succeeded."""
    initial_correctness: float | None = None
    final_correctness: float | None = None
    initial_code_passed: bool | None = None
    code_passed: bool | None = None
    success: bool | None = None
    """`None` for a failed episode."""
    calls: tuple[CallRecord, ...] = ()
    without_text: tuple[str, ...] | None = None
    """Keys of the calls whose replies had no text though they ended as usual; `None` for none."""

    @property
    def arm(self) -> str:
        """The condition, with the panel behind it where the study compares panels."""
        return self.condition if self.panel is None else f"{self.condition}.{self.panel}"

    @property
    def variant(self) -> str:
        """What stands between task and condition in the id: the persona."""
        return self.persona

    def of_turn(self, turn: int) -> Self:
        """The episode with this turn alone, and the attempts before and after it."""
        turns = tuple(one for one in self.turns if one.turn == turn)
        around = tuple(one for one in self.attempts if one.turn in (turn - 1, turn))
        return self.model_copy(update={"turns": turns, "attempts": around})


# --- Kernel record -------------------------------------------------------------------------------


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
    def panel(self) -> str | None:
        """Which of the study's panels it is of; `None` where the study compares none."""

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
    """What every record of a further system begins with: one line of `episodes.jsonl`.

    class DuelRecord(BaseRecord):
        winner: str | None = None

    record = loaded.record(DuelRecord, spec, calls, None, winner="agent_1")
    line = to_line(record)
    """

    later: ClassVar = frozenset({"without_text"})

    schema_version: int = SCHEMA_VERSION
    episode_id: str
    benchmark: str
    task_id: str
    variant: str
    condition: str
    repeat: int = 1
    """Number of the repeat, from 1."""
    status: EpisodeStatus = "complete"
    failure: Failure | None = None
    """`None` unless the status is `failed`."""
    calls: tuple[CallRecord, ...] = ()
    without_text: tuple[str, ...] | None = None
    """Keys of the calls whose replies had no text though they ended as usual; `None` for none."""
    turns: tuple[VotedTurn, ...] = ()

    @property
    def panel(self) -> str | None:
        """Which of the study's panels it is of; `None` where the study compares none."""
        return None

    def of_turn(self, turn: int) -> Self:
        """The episode with this voting turn alone."""
        turns = tuple(one for one in self.turns if one.turn == turn)
        return self.model_copy(update={"turns": turns})
