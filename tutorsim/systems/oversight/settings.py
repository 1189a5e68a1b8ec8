"""An oversight study's file."""

from collections.abc import Mapping
from typing import Final, Literal

from pydantic import Field, model_validator

from tutorsim.kernel.study import BaseModels, BaseStudy, BenchmarkSettings, Settings
from tutorsim.records import Inputs
from tutorsim.records.oversight import GuidanceMap, MistakeMap
from tutorsim.systems.oversight.acts_by_condition import CONDITIONS, Condition

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
    """With `skip`, the confidence above which the debate is skipped."""
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
    """So many dialogues, drawn by hash, with all of their replies; all when left out."""


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
