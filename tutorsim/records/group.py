"""One group lesson or one duel: a line of `episodes.jsonl`."""

from typing import Any, Literal, Self

from pydantic import ModelWrapValidatorHandler, model_validator

from tutorsim.records.base_record_its_line_and_fields_added_later import Record
from tutorsim.records.panel_episode_and_base_of_any_episode import BaseRecord
from tutorsim.vocabularies import ReadStatus

EventKind = Literal["stage", "message", "silence", "end"]
LessonEnd = Literal["tasks_done", "max_events", "silences", "person"]
DuelResult = Literal["win", "draw", "loss"]
"""Result from the view of self-selection."""


class HeardRecord(Record):
    """What listening for the person brought."""

    place: str
    """`wait` before a cycle, `before_posting` when an utterance was ready."""
    wait_s: float | None
    """`None`: until the person writes or ends the lesson."""
    text: str | None
    """`None` where the person wrote nothing."""
    waited_ms: int
    ended: bool = False


class ManagerRecord(Record):
    """The stage manager's reply, and the state after it."""

    status: ReadStatus
    """`missing`: neither reply could be read, and the state stayed."""
    reason: str
    signal: str
    completed: tuple[str, ...]
    """Ids of completed tasks, as the manager wrote them."""
    unknown: tuple[str, ...]
    """Ids among them that no task has; ignored."""
    stage_after: int
    """Number of the stage, from 1."""
    done_after: tuple[str, ...]
    attempts: int = 1


class LearnerRecord(Record):
    """What the simulated learner did when it was asked."""

    status: ReadStatus
    action: Literal["write", "wait"]
    attempts: int = 1


class ThoughtRecord(Record):
    """One agent's private thought, and what it was worth."""

    agent: str
    status: ReadStatus
    """`missing`: neither reply could be read; the agent listens."""
    stimuli: tuple[str, ...]
    thought: str
    action: Literal["speak", "listen"]
    corrects: bool
    attempts: int = 1
    silent: int
    """Messages since the agent last spoke; since the start if it never did."""
    scores: dict[str, float] | None = None
    """Criterion → score from 1 to 5; `None` unless the thought wants to speak and was scored."""
    score_status: ReadStatus | None = None
    """`repaired`: scored at the second asking of the evaluator only in part; `None`: not asked."""
    total: float | None = None
    """Weighted mean before silence, to four decimals."""
    adjusted: float | None = None
    """Score after silence, which the selection compared."""


class StepRecord(Record):
    """A rule of the selection that applied, and who was left after it."""

    rule: str
    """A rule of `tutorsim.systems.group.speaker_selection_and_its_reasons`, or `after_withdrawal`:
    the utterance before it was withdrawn, so this one was posted whatever the person had written
    meanwhile."""
    kept: tuple[str, ...]


class PredictionRecord(Record):
    """Whom the baseline named."""

    status: ReadStatus
    named: str | None
    """An agent, `learner`, or `None` where no reply held a name."""
    attempts: int = 1


class UtteranceRecord(Record):
    """What the chosen agent said."""

    agent: str
    status: ReadStatus
    """`missing`: neither reply held a text, and nothing was posted."""
    text: str
    to: tuple[str, ...]
    """Participants; empty for everybody."""
    continues: bool
    attempts: int = 1


class CycleRecord(Record):
    """What an event set off."""

    heard: tuple[HeardRecord, ...] = ()
    manager: ManagerRecord | None = None
    learner: LearnerRecord | None = None
    """`None` where the learner was not asked."""
    speaker: str | None = None
    """Author of the last message before the selection."""
    floor: bool = False
    """Whether the author of the last message kept the floor."""
    addressed: tuple[str, ...] = ()
    """Participants that the last message names."""
    thoughts: tuple[ThoughtRecord, ...] = ()
    steps: tuple[StepRecord, ...] = ()
    prediction: PredictionRecord | None = None
    chosen: str | None = None
    utterance: UtteranceRecord | None = None
    withdrawn: bool = False
    """The utterance was ready when the person wrote, and was dropped."""


class EventRecord(Record):
    """One entry of the shared list that everybody sees."""

    number: int
    """Number of the event, from 1."""
    kind: EventKind
    at_s: int
    """Simulated seconds since the start: 8 a message, 10 a silence."""
    stage: int
    """Stage in force, from 1; 0 in a duel."""
    who: str | None = None
    """Author of a message: an agent or `learner`."""
    text: str = ""
    to: tuple[str, ...] = ()
    continues: bool = False
    cycle: CycleRecord | None = None
    """What it set off; `None` for a later stage, the end, and the event that filled the list."""


class CodeRecord(Record):
    """One coder's category of one message."""

    event: int
    coder: str
    category: int | None
    """1 to 12 of Bales; `None` where no reply held one."""
    attempts: int = 1


class GroupRecord(BaseRecord):
    """What lessons and duels have; reading one gives a `LessonRecord` or a `DuelRecord`."""

    agents: tuple[str, ...]
    learner_name: str
    problem: str
    events: tuple[EventRecord, ...]

    @model_validator(mode="wrap")
    @classmethod
    def _of_its_kind(cls, data: Any, read: ModelWrapValidatorHandler[Self]) -> "GroupRecord":
        if cls is not GroupRecord:
            return read(data)
        kind = DuelRecord if isinstance(data, dict) and "judgments" in data else LessonRecord
        return kind.model_validate(data)


class LessonRecord(GroupRecord):
    """One lesson. Its variant is the simulated learner, or `person`."""

    ended_by: LessonEnd | None
    """`None` for a failed lesson."""
    stage_reached: int
    tasks_done: tuple[str, ...]
    progress: float
    """Share from 0 to 1."""
    codes: tuple[CodeRecord, ...] = ()


class WarmUpRecord(Record):
    """Thoughts after a scripted message of a duel."""

    event: int
    thoughts: tuple[ThoughtRecord, ...]


class JudgmentRecord(Record):
    """One asking of the judge."""

    first: str
    """The system whose continuation stood first."""
    better: Literal["first", "second", "same"] | None
    """`None` where no reply held a verdict."""
    reason: str
    attempts: int = 1


class RatingRecord(Record):
    """One rater's scores of one reply."""

    system: str
    rater: str
    scores: dict[str, float] | None
    """Criterion → 1 to 10; `None` where no reply held them."""
    attempts: int = 1


class DuelRecord(GroupRecord):
    """One scenario, continued by self-selection and by prediction, and judged.

    Its events are the nine scripted messages; the last one has the cycle of self-selection.
    """

    kind: str
    difficulty: str
    expected_speaker: str
    warm_up: tuple[WarmUpRecord, ...] = ()
    prediction: PredictionRecord | None = None
    predicted: UtteranceRecord | None = None
    """What the predicted agent said; `None` where the learner or nobody was named."""
    judgments: tuple[JudgmentRecord, ...] = ()
    """Both orders; empty where neither system lets anybody speak."""
    result: DuelResult | None = None
    """`None` for a failed duel, and where a judgment could not be read."""
    order_dependent: bool = False
    """The two orders gave opposite verdicts."""
    first_order: DuelResult | None = None
    """What the first asking alone would say."""
    ratings: tuple[RatingRecord, ...] = ()

    @property
    def self_selected(self) -> str | None:
        """Who spoke under self-selection."""
        cycle = self.events[-1].cycle if self.events else None
        return cycle.utterance.agent if cycle and cycle.utterance else None
