"""What an oversight run logs: one labelled item a line, and the two labels of a tutor's reply.

*mistake*: did the reply identify the student's mistake? 0 or 1. *guidance*: 0 none or a direct
solution, 1 partial, 2 effective scaffolding.
"""

from collections.abc import Iterable, Mapping
from typing import Final, Literal, NamedTuple, get_args

from pydantic import BaseModel, ConfigDict

from tutorsim.records.base_record_its_line_and_fields_added_later import Record
from tutorsim.records.panel_episode_and_base_of_any_episode import BaseRecord
from tutorsim.vocabularies import ReadStatus

# --- Labels --------------------------------------------------------------------------------------

LabelName = Literal["mistake", "guidance"]
LABELS: Final[tuple[LabelName, ...]] = get_args(LabelName)
CLASSES: Final[Mapping[LabelName, tuple[int, ...]]] = {"mistake": (0, 1), "guidance": (0, 1, 2)}
"""Label → its fixed classes."""

CANDIDATES: Final[Mapping[LabelName, tuple[str, ...]]] = {
    "mistake": ("mistake_1", "mistake_0"),
    "guidance": ("guidance_1", "guidance_0", "guidance_2"),
}
"""Label → candidates of a vote on it, in the fallback order."""


class Labels(BaseModel):
    """Both labels of one reply."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    mistake: Literal[0, 1]
    guidance: Literal[0, 1, 2]


def right_labels(label: Labels | None, gold: Labels | None) -> dict[LabelName, bool]:
    """Label → whether it is as the gold one: no label is wrong; empty without gold."""
    if gold is None:
        return {}
    return {
        name: label is not None and getattr(label, name) == getattr(gold, name) for name in LABELS
    }


# --- Labelled item -------------------------------------------------------------------------------


def dialogue_text(dialogue: Iterable[tuple[str, str]]) -> str:
    """What a dialogue is told by: its turns, whatever their white space."""
    return " ".join(" ".join((speaker, *said.split())) for speaker, said in dialogue)


def first_ids(named: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Text of a dialogue → the first, by name, of the ids under which it stands.

    Published files have one text under several ids.
    """
    found: dict[str, str] = {}
    for name, text in named:
        found[text] = min(name, found.get(text, name))
    return found


class Spoken(Record):
    """One agent's reply, and how it was read."""

    agent: str
    raw: str
    """The last reply, as received."""
    status: ReadStatus = "valid"
    """`repaired`: out of form, but usable in part; `missing`: not readable at all."""
    attempts: int = 1
    """1, or 2 when the first reply could not be read."""
    raw_first: str | None = None
    """The first reply, when it was asked for again."""


class BriefingNote(Spoken):
    """One analyst's part of the briefing."""

    fields: dict[str, str]


class Message(Spoken):
    """What a critic or a reviewer said in one act."""

    act: str
    turn: int
    thesis: str
    evidence: str
    labels: Labels | None
    """`None` when the message states none."""


class Challenges(Spoken):
    """Act II."""

    challenges: dict[str, tuple[str, ...]]
    """Critic → what its thesis leaves open."""
    first_shown: str
    """The critic whose thesis was shown first, drawn by hash."""


class Press(Spoken):
    """Act IV."""

    verdicts: dict[str, Literal["met", "unmet"] | None]
    """Critic → whether its defence convinces; `None` when the reply does not say."""
    presses: dict[str, str]
    """Critic → the last demand; exactly the critics whose defence is unmet."""


class Judgment(Spoken):
    """The judge's verdict."""

    first_shown: str
    """The side that was shown first, drawn by hash."""
    winner: str | None
    why: str = ""
    labels: Labels | None
    confidence: int | None
    """0 to 100."""


class StressTest(Spoken):
    """The weakest point left in the winning case."""

    weakness: str
    severity: int | None
    """0 to 3."""
    labels: Labels | None


class LeadLabels(Spoken):
    """Labels as one JSON object: the lead's, a sample's, or an analyst's alone."""

    labels: Labels | None
    """`None`: unjudged."""
    confidence: float | None
    """0 to 1."""
    reasoning: str = ""


class Prompt(Record):
    """What one call was asked."""

    system: str
    user: str


class Opinion(NamedTuple):
    """The labels that one agent held at the end of the debate."""

    agent: str
    labels: Labels | None
    confidence: float | None
    """0 to 1; `None` for agents that state none."""


class AuditedReply(Record):
    """Which reply of which recorded run an item is."""

    run: str
    """Name of the study."""
    episode: str
    turn: int
    role: str
    """Who proposed the reply."""
    delivered: bool
    """The student saw this reply."""
    condition: str
    persona: str
    benchmark: str
    task: str
    decided_by: str
    """The step that chose the delivered reply; `none` if nobody voted."""
    score_before: float | None
    """The judge's score of the student's message; `None` when it has none."""
    score_after: float | None
    """The judge's score of the student's next message; `None` when it has none."""
    possible: dict[str, tuple[str, ...]] = {}
    """Rule → roles whose proposal could have won the turn under it, from the recount of the run.

    A rule under which that is not settled is left out; empty for audits of delivered replies."""


class OversightRecord(BaseRecord):
    """One item under one condition."""

    conversation: str = ""
    """Items of one conversation are one cluster in every interval."""
    tutor: str = ""
    dialogue: tuple[tuple[str, str], ...] = ()
    """Speaker and text of each turn."""
    reply: str = ""
    """What was labelled."""
    audited: AuditedReply | None = None
    """`None` for a reply of a published file."""
    annotation: dict[str, str] = {}
    """Annotation as published; empty for an unlabelled reply. No prompt had it."""
    gold: Labels | None = None
    """Labels of the annotation, under the study's maps."""
    briefing: tuple[BriefingNote, ...] = ()
    quick: LeadLabels | None = None
    """The lead's labels before the debate; `None` when not asked for."""
    skipped: bool = False
    """The debate was skipped, because the quick labels were confident enough."""
    messages: tuple[Message, ...] = ()
    """Critics and reviewers, in call order."""
    challenges: Challenges | None = None
    press: Press | None = None
    judge: Judgment | None = None
    judge_swapped: Judgment | None = None
    """The judge once more, with the other side shown first; `None` when not asked for."""
    stress: StressTest | None = None
    lead: LeadLabels | None = None
    lead_prompt: Prompt | None = None
    """What the lead was asked first; a tuned lead learns from it."""
    alone: tuple[LeadLabels, ...] = ()
    """Samples, or analysts who label alone: what the vote counts.

    The votes are the turns: 1 on the mistake, 2 on the guidance. After a debate the turns hold
    the opinions of its agents instead, which decided nothing."""
    label: Labels | None = None
    """The outcome; `None`: unjudged."""
    unjudged: bool = False
    """The item is complete and has no label."""
    scores: dict[str, bool] = {}
    """Label → whether it is as the gold one; empty without gold. An unjudged item is wrong."""

    @property
    def dialogue_text(self) -> str:
        """What the dialogue is told by: its turns, whatever their white space."""
        return dialogue_text(self.dialogue)

    @property
    def opinions(self) -> tuple[Opinion, ...]:
        """The labels that critics (or reviewers), judge, stress tester and lead hold at the end.

        Empty without a debate.
        """
        if self.judge is None:
            return ()
        last = {message.agent: message.labels for message in self.messages}
        sure = self.judge.confidence
        stress, lead = self.stress, self.lead
        return (
            *(Opinion(agent, labels, None) for agent, labels in last.items()),
            Opinion("judge", self.judge.labels, None if sure is None else sure / 100),
            Opinion("stress", stress.labels if stress else None, None),
            Opinion("lead", lead.labels if lead else None, lead.confidence if lead else None),
        )
