"""One debate: a line of `episodes.jsonl` of the system `debate`."""

from typing import ClassVar, Literal

from tutorsim.records.base_record_its_line_and_fields_added_later import Record, part_of_record
from tutorsim.records.panel_episode_and_base_of_any_episode import (
    BallotRecord,
    BaseRecord,
    VotedTurn,
)
from tutorsim.tasks.task_types_ids_digests_and_scoring import AnswerScore, score_answer
from tutorsim.vocabularies import CUMULATIVE_BUDGET, AnswerKind, ReadStatus, Scoring

Agreement = Literal["agree", "disagree", "unclear", "none"]
"""What a message says of the current solution.

`unclear`: asked for a tag, and none was read; `none`: not asked for one."""

AgreementReading = Literal["tag", "lenient"]
"""The first tag in the reply, or the published program's search for the two words."""
Majority = Literal["more_than_half", "at_least_half"]
"""What `majority` asks for: the study's words, or those of its program."""
Drafting = Literal["none", "first", "every"]
EndedBy = Literal["vote", "consensus", "limit", "full"]
MessageKind = Literal["draft", "first", "message"]
"""`draft` asks for a solution of one's own, `first` opens the debate, `message` answers others."""
Paradigm = Literal["memory", "relay", "report", "debate", "collective"]
Undecided = Literal["first_agent", "leader", "none"]


class DebateSetup(Record):
    """Settings that a reader of the record needs."""

    agents: int
    max_turns: int | None
    """`None` if the log does not say it: nothing then tells that its end is the limit."""
    vote_from: int = 3
    paradigm: Paradigm = "memory"
    generator: str = "simple"
    drafting: Drafting = "none"
    undecided: Undecided = "first_agent"
    majority: Majority = "more_than_half"
    agreement_reading: AgreementReading = "tag"
    merge_identical: bool = False
    cumulative_budget: int = CUMULATIVE_BUDGET


class PersonaRecord(Record):
    """Whom an agent plays."""

    agent: str
    role: str
    description: str
    status: ReadStatus = "valid"
    """`missing`: neither reply described anybody new."""
    attempts: int = 0
    """0 for a persona that was given and not asked for."""


@part_of_record
class Message:
    """What an agent said."""

    number: int
    """Number of the message, from 1, in order, across turns."""
    agent: str
    round: int = 0
    """Number of the round, from 1 in paradigm `debate`; 0 otherwise."""
    kind: MessageKind = "message"
    shown: tuple[int, ...]
    """Numbers of the messages that its prompt showed."""
    text: str
    agreement: Agreement
    solution: str | None = None
    """The solution that the message proposes; `None` if it agrees."""
    status: ReadStatus = "valid"
    """`missing`: both replies were empty."""
    solution_status: ReadStatus | None = None
    """`repaired`: extraction gave nothing, and the whole message stands; `None`: not extracted."""
    attempts: int = 1


@part_of_record
class AnswerRecord:
    """An agent's final answer in a turn."""

    text: str
    confidence: int | None = None
    """0 to 100; `None` if not asked for or not readable."""
    letter: str | None = None
    """The option that the answer chooses; `None` if it chooses none, or there are no options."""
    status: ReadStatus = "valid"
    """`repaired`: the own last message stands for an empty answer."""
    attempts: int = 1


class HeldVote(Record):
    """A vote whose winner was not delivered, since it tied; its ballots are in `other_votes`."""

    tallies: dict[str, int]
    tied: tuple[str, ...]


class DebateTurn(VotedTurn):
    """One turn: everybody speaks, and perhaps votes."""

    messages: tuple[Message, ...]
    answers: dict[str, AnswerRecord] = {}
    """Agent → final answer; empty if the turn asked for none."""
    candidates: tuple[str, ...] = ()
    """Authors of the answers voted on: all agents, or the first author of each different answer."""
    held: HeldVote | None = None
    """A vote that tied and decided nothing."""

    @property
    def held_ballots(self) -> tuple[BallotRecord, ...]:
        """The ballots of a vote that tied and decided nothing."""
        return self.other_votes.get("vote_held", ())

    @property
    def cast(self) -> tuple[BallotRecord, ...]:
        """The ballots of the turn's vote, whether it decided or was held."""
        return self.ballots_final or self.held_ballots


class ChallengeRecord(Record):
    """An agent's word on an answer that it was shown after the debate."""

    setting: str
    agent: str
    shown_answer: str
    challenged: bool | None
    """`None` if the reply could not be read."""
    raw: str
    counter: str | None = None
    """The agent's other answer; `None` if it did not challenge."""
    score: float | None = None
    """Score of the agent's answer after the challenge; `None` if it did not challenge."""
    attempts: int = 1


class CouncilVote(Record):
    """What a council's log says of a vote besides its ballots."""

    structure: str
    """The steps of the council, such as `rank-synthesize`."""
    members: tuple[str, ...]
    over: Literal["members", "answers"]
    """What the candidates are: members, for their answers, or the different answers."""
    chairman: str | None = None
    """Who wrote the reply; `None` if the log does not name anybody."""
    final_answers: dict[str, str] = {}
    """Member → its final answer, equal ones spelt alike; without those who gave none."""
    expected: str | None = None
    """The right answer, if one is known."""
    right: dict[str, bool] | None = None
    """Candidate → whether it is right, without those whose answer cannot be read; `None` if no
    right answer is known."""
    told: tuple[str, ...] = ()
    """What the log leaves open or garbles, each kind once."""
    file: str = ""
    """The log's name, and where in it the vote stands."""


class DebateRecord(BaseRecord):
    """One task, one variant, one condition: a debate, a model alone, or a council's vote."""

    later: ClassVar = BaseRecord.later | {"council"}

    question: str = ""
    answer_kind: AnswerKind = "choice"
    options: tuple[str, ...] = ()
    """Options in order, lettered from A; empty for open questions."""
    gold: tuple[str, ...] = ()
    """The right letter, the right name, or every right answer; empty if there is none."""
    setup: DebateSetup
    personas: tuple[PersonaRecord, ...] = ()
    turns: tuple[DebateTurn, ...] = ()
    turns_taken: int = 0
    ended_by: EndedBy | None = None
    """`None` for a model alone, and for a failed episode."""
    decided: bool | None = None
    """Whether the protocol decided; `None` if there was none to decide, and for `full`."""
    answer: str | None = None
    """What was delivered; `None` if nothing was."""
    answer_of: str | None = None
    """Author of the answer."""
    letter: str | None = None
    """The option that the answer chooses."""
    score: float | None = None
    """Score in [0, 1], F1 for open questions; `None` for `full`, which delivers nothing."""
    exact: float | None = None
    """Exact match of an open question; `None` elsewhere."""
    readable: bool | None = None
    """Whether the answer could be read as an option; `None` if there is no answer."""
    challenges: tuple[ChallengeRecord, ...] = ()
    solo: tuple[str, ...] = ()
    """Replies of a model alone: the first solution and its refinements."""
    council: CouncilVote | None = None
    """Vote of an imported council; `None` for every other record."""

    def worth(self, answer: str | None, scoring: Scoring = "standard") -> AnswerScore:
        """What an answer to this record's task is worth; nothing delivered is worth 0."""
        return score_answer(
            answer, kind=self.answer_kind, options=self.options, gold=self.gold, scoring=scoring
        )


def flag(message: Message) -> bool | None:
    """A message as the consensus rules count it: drafts and first messages are `None`."""
    return None if message.agreement == "none" else message.agreement == "agree"
