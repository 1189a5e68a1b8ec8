"""Conditions as orders of acts, and an oversight study's file."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Final, Literal, get_args

from pydantic import Field, model_validator

from tutorsim.kernel.study_file_and_episode_spec import (
    BaseModels,
    BaseStudy,
    BenchmarkSettings,
    Settings,
)
from tutorsim.records import Inputs
from tutorsim.records.gold_labels_of_one_annotation import GuidanceMap, MistakeMap

# --- Acts by condition ---------------------------------------------------------------------------

Condition = Literal[
    "hpo",
    "single",
    "cooperative",
    "unstructured",
    "no_briefing",
    "no_advocate",
    "no_debate",
    "self_consistency",
    "ensemble",
]
CONDITIONS: Final[tuple[Condition, ...]] = get_args(Condition)
VOTING_CONDITIONS: Final[tuple[Condition, ...]] = ("self_consistency", "ensemble")
"""Conditions whose labels a vote decides; in all others the lead decides."""

ANALYSTS: Final = ("conceptual", "behavioural", "trajectory")
CRITICS: Final = ("permissive", "strict")
REVIEWERS: Final = ("a", "b")
ARGUMENTS: Final = 3
"""Messages of each critic in the free argument."""


class Act(Enum):
    """One step of a condition."""

    BRIEFING = "briefing"
    """Three analysts write a briefing."""
    OPENING = "opening"
    """Act I: both critics state a thesis."""
    CROSS = "cross"
    """Act II: the advocate challenges both theses."""
    REBUTTAL = "rebuttal"
    """Act III: both critics revise."""
    PRESS = "press"
    """Act IV: the advocate says who is not convincing, and presses."""
    CLOSING = "closing"
    """Act V: both critics sum up and answer a press."""
    ARGUMENT = "argument"
    """Both critics argue freely, `ARGUMENTS` messages each in turn."""
    ASSESSMENT = "assessment"
    """Two reviewers without a side assess."""
    MERGE = "merge"
    """Both reviewers read each other and write again."""
    JUDGMENT = "judgment"
    """Judge, stress tester and lead."""
    ALONE = "alone"
    """The lead labels from the dialogue only."""
    SAMPLES = "samples"
    """One prompt is asked several times, and each label voted on."""
    MEMBERS = "members"
    """Each analyst labels alone, and a vote per label."""


_FIRST: Final = frozenset({Act.BRIEFING, Act.OPENING, Act.ALONE, Act.SAMPLES, Act.MEMBERS})
_SUCCESSORS: Final[Mapping[Act, frozenset[Act]]] = {
    Act.BRIEFING: frozenset({Act.OPENING, Act.ARGUMENT, Act.ASSESSMENT}),
    Act.OPENING: frozenset({Act.CROSS, Act.REBUTTAL, Act.JUDGMENT}),
    Act.CROSS: frozenset({Act.REBUTTAL}),
    Act.REBUTTAL: frozenset({Act.PRESS, Act.CLOSING}),
    Act.PRESS: frozenset({Act.CLOSING}),
    Act.CLOSING: frozenset({Act.JUDGMENT}),
    Act.ARGUMENT: frozenset({Act.JUDGMENT}),
    Act.ASSESSMENT: frozenset({Act.MERGE}),
    Act.MERGE: frozenset({Act.JUDGMENT}),
}
"""Act → the acts that may follow it. An act without any ends the item."""


@dataclass(frozen=True)
class Script:
    """Acts in a legal order, from a first act to a last one.

    Raises `ValueError` if the order is illegal.
    """

    acts: tuple[Act, ...]

    def __post_init__(self) -> None:
        if not self.acts or self.acts[0] not in _FIRST:
            raise ValueError(f"no item begins with {self.acts[:1]}")
        for act, following in zip(self.acts, self.acts[1:], strict=False):
            if following not in _SUCCESSORS.get(act, frozenset()):
                raise ValueError(f"{following} cannot follow {act}")
        if _SUCCESSORS.get(self.acts[-1]):
            raise ValueError(f"no item ends with {self.acts[-1]}")
        if Act.PRESS in self.acts and Act.CROSS not in self.acts:
            raise ValueError(f"{Act.PRESS} needs {Act.CROSS}: nothing was challenged")


_DEBATE: Final = (Act.OPENING, Act.CROSS, Act.REBUTTAL, Act.PRESS, Act.CLOSING, Act.JUDGMENT)

SCRIPTS: Final[Mapping[str, Script]] = {
    "hpo": Script((Act.BRIEFING, *_DEBATE)),
    "single": Script((Act.ALONE,)),
    "cooperative": Script((Act.BRIEFING, Act.ASSESSMENT, Act.MERGE, Act.JUDGMENT)),
    "unstructured": Script((Act.BRIEFING, Act.ARGUMENT, Act.JUDGMENT)),
    "no_briefing": Script(_DEBATE),
    "no_advocate": Script((Act.BRIEFING, Act.OPENING, Act.REBUTTAL, Act.CLOSING, Act.JUDGMENT)),
    "no_debate": Script((Act.BRIEFING, Act.OPENING, Act.JUDGMENT)),
    "self_consistency": Script((Act.SAMPLES,)),
    "ensemble": Script((Act.MEMBERS,)),
}
"""Condition → what runs."""


# --- Study file ----------------------------------------------------------------------------------

Benchmark = Literal["mrbench", "audit"]


FIRST_TEXTS: Final = {
    "head_briefing": "The $agent analyst",
    "head_opening": "Act I, opening of the $agent critic",
    "head_challenges": "Act II, challenges of the devil's advocate",
    "head_rebuttal": "Act III, defence of the $agent critic",
    "head_press": "Act IV, the devil's advocate on the defences",
    "head_closing": "Act V, summary of the $agent critic",
    "head_argument": "Message $turn of the $agent critic",
    "head_assessment": "First assessment of reviewer $agent",
    "head_merge": "Second assessment of reviewer $agent",
    "no_text": "(no text)",
    "none": "(none)",
    "no_reference": "",
}
"""What was said before recordings held these templates. A text here never changes."""


class OversightSettings(Settings):
    """`[oversight]`."""

    trajectory_turns: int = Field(default=5, ge=0, le=99, strict=True)
    """Speaker turns before the student's last message that the trajectory analyst reads."""
    samples: int = Field(default=5, ge=1, le=99, strict=True)
    """Samples of `self_consistency`."""
    judge_orders: Literal[1, 2] = 1
    """2: the judge is asked once more with the other side first."""
    adaptive: Literal["off", "log", "skip"] = "off"
    """Ask the lead before the debate of `hpo`: only for the log, or to skip the debate."""
    skip_above: float = Field(default=0.95, ge=0, le=1, strict=True)
    """Confidence above which the debate is skipped, with `skip`."""
    mistake_map: MistakeMap = "lenient"
    guidance_map: GuidanceMap = "plain"
    show_reference: bool = False
    """Show the right answer to every agent, if the data have it."""


class ModelSettings(BaseModels):
    """`[models]`: identifiers sent with the calls."""

    agent: str = Field(default="claude-haiku-4-5", min_length=1)
    """Analysts, critics, reviewers, advocate, judge and stress tester."""
    lead: str = Field(default="claude-haiku-4-5", min_length=1)
    """The lead evaluator, its quick labels and its samples."""
    temperature: float | None = Field(default=1.0, ge=0, le=2, strict=True)


class ItemSettings(BenchmarkSettings):
    """`[benchmarks.NAME]`: which items."""

    sample: int | None = Field(default=None, ge=1, strict=True)
    """Number of dialogues, drawn by hash, with all of their replies; all when left out."""


class Study(BaseStudy):
    """The whole file."""

    system: Literal["oversight"] = "oversight"
    conditions: tuple[Condition, ...] = CONDITIONS
    benchmarks: Mapping[Benchmark, ItemSettings]  # type: ignore[assignment]
    models: ModelSettings = ModelSettings()
    oversight: OversightSettings = OversightSettings()
    inputs: Inputs | None = None
    """The run whose replies are labelled, as `tutorsim audit` writes it; `None` for other items."""

    @model_validator(mode="after")
    def _coherent(self) -> "Study":
        twice = sorted({c for c in self.conditions if self.conditions.count(c) > 1})
        if twice:
            raise ValueError(f"conditions names {twice[0]!r} twice")
        for field in ("conditions", "benchmarks"):
            if not getattr(self, field):
                raise ValueError(f"{field} is empty, so the study has no episode")
        if "self_consistency" in self.conditions and self.models.temperature == 0:
            raise ValueError(
                "models.temperature is 0, at which the samples of self_consistency are all alike"
            )
        return self
