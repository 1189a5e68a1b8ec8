"""A study of debates: its file, its grid, how its episodes go, and what they cost."""

import re
from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Final, Literal

from pydantic import Field, model_validator

from tutorsim.catalog import BaseCatalog, templates_of
from tutorsim.catalog.wordings_kept_with_recording import WordingNames
from tutorsim.errors import StudyError
from tutorsim.kernel.flow import Flow
from tutorsim.kernel.retest import BallotReading
from tutorsim.kernel.study import BaseModels, BaseStudy, BenchmarkSettings, EpisodeSpec
from tutorsim.kernel.system import LoadedStudy
from tutorsim.model import Call
from tutorsim.records import EpisodeLine, VotingSettings
from tutorsim.systems.debate.ending import consensus_rule
from tutorsim.systems.debate.episode import CHALLENGER, EpisodeName, debate_episode
from tutorsim.systems.debate.scene import DebateContext, agent_names
from tutorsim.systems.debate.settings import (
    Condition,
    DebateTable,
    DebateVariant,
    idle_settings,
    parts_of,
    vote_protocol,
)
from tutorsim.systems.debate.tasks import DebateBenchmark, DebateTask, in_drawn_order, sampled
from tutorsim.tasks import Task, safe_id
from tutorsim.vocabularies import PROTOCOLS

# --- Replies of usual length along the shortest and the longest path ------------------------------


_SENTENCE: Final = (
    "This stands for about eighteen words of the kind that agents write when they discuss a task. "
)
_FIRST: Final = re.compile(r"^([P-Y]): agent_1$", re.MULTILINE)


def _usual_reply(call: Call, *, longest: bool) -> str:
    """A reply of usual length.

    On the longest path nobody agrees, no ballot can be read, so that every vote ties, and every
    answer is challenged. On the shortest one everybody agrees and votes for the first agent.
    """
    stage = call.key.stage
    if stage.startswith("vote_"):
        return "?" * len(call.key.agent) if longest else _ballot(call)
    if stage == "persona":
        return f'{{"role": "Expert {call.key.agent}", "description": "{_SENTENCE}"}}'
    if stage in ("solve", "refine"):
        return f"{_SENTENCE * 8}\nFinal solution: B"
    if stage == "challenge":
        return "DISAGREE" if longest else "AGREE"
    if stage.startswith(("message", "debate_")):
        return f"{'[DISAGREE]' if longest else '[AGREE]'} {_SENTENCE * 5}"
    return call.key.agent


def _ballot(call: Call) -> str:
    """A ballot that ranks the first agent's answer first, in the form that the prompt shows."""
    user = call.request.user
    first = _FIRST.search(user)
    example = user.rpartition("for example: ")[2].split("\n")[0].partition(". Reply")[0]
    if first is None or not example:
        return "none"
    shown, label = example[0], first[1]
    if "=" not in example and len(example) > 1 and "Approve" in user:
        return label
    swap = {shown: label, label: shown}
    return "".join(swap.get(letter, letter) for letter in example)


# --- The study ------------------------------------------------------------------------------------


STAGES: Final = (
    *("persona", "message", *(f"debate_{number}" for number in range(1, 10))),
    *("extract", *(f"extract_{number}" for number in range(1, 10))),
    *("answer", "vote_final", *(f"vote_as_{form}" for form in PROTOCOLS)),
    *("challenge", "counter", "wrong", "solve", "refine"),
)
"""Stages of a debate's calls; `extract_1` belongs to `debate_1`, and so on."""


class DebateModels(BaseModels):
    """`[models]`: identifiers sent with the calls."""

    agent: str = Field(default="claude-haiku-4-5", min_length=1)
    challenger: str | None = Field(default=None, min_length=1)
    """Makes up the wrong answers of challenges; without it an option that is not right is taken."""


class DebateBenchmarks(BenchmarkSettings):
    """`[benchmarks.NAME]`: which tasks."""

    sample: int | Literal["formula"] | None = None
    """Draw so many, or as many as the debate study's formula says; all when left out."""


class DebateStudyFile(BaseStudy):
    """A study file's content."""

    system: Literal["debate"] = "debate"
    conditions: tuple[Condition, ...]
    benchmarks: Mapping[DebateBenchmark, DebateBenchmarks]  # type: ignore[assignment]
    models: DebateModels = DebateModels()
    debate: DebateTable = DebateTable()
    facts: dict[str, str] = Field(default_factory=dict)
    """`[facts]`: task id → a text on the task, for the challenge `facts`."""

    @model_validator(mode="after")
    def _coherent(self) -> "DebateStudyFile":
        for name in ("conditions", "benchmarks"):
            if not getattr(self, name):
                raise ValueError(f"{name} is empty, so the study has no episode")
        twice = [one for one in self.conditions if self.conditions.count(one) > 1]
        if twice:
            raise ValueError(f"conditions names {twice[0]!r} twice")
        for name, settings in self.benchmarks.items():
            if isinstance(settings.sample, int) and settings.sample < 1:
                raise ValueError(f"benchmarks.{name}.sample = {settings.sample} draws no task")
        self.variants  # noqa: B018  # refuses variants that cannot be run
        return self

    @cached_property
    def variants(self) -> tuple[DebateVariant, ...]:
        """Every variant with its settings and conditions."""
        return self.debate.resolved(self.conditions)


class _Drawn(dict[str, tuple[Task, ...]]):
    """Tasks that have been drawn: a draw of a draw would be another one."""


@dataclass(frozen=True)
class DebateStudy(LoadedStudy):
    """A study of debates with everything that it names."""

    study: DebateStudyFile
    catalog: BaseCatalog

    paths: ClassVar[tuple[str, str]] = (
        "everybody agrees, and every vote decides",
        "nobody does, and every vote ties",
    )

    def __post_init__(self) -> None:
        if not isinstance(self.tasks, _Drawn):
            drawn = _Drawn({name: self._drawn(name) for name in self.tasks})
            object.__setattr__(self, "tasks", drawn)

    def _drawn(self, benchmark: str) -> tuple[Task, ...]:
        seed = self.study.seed
        tasks = [task for task in self.tasks[benchmark] if isinstance(task, DebateTask)]
        sample = next(
            (one.sample for name, one in self.study.benchmarks.items() if name == benchmark), None
        )
        return tuple(in_drawn_order(task, seed) for task in sampled(tasks, sample, seed=seed))

    def episode(self, spec: EpisodeSpec) -> Flow[EpisodeLine]:
        name = EpisodeName(spec.episode_id, spec.variant, spec.repeat)
        return (yield from debate_episode(self.context(spec), name))

    def context(self, spec: EpisodeSpec) -> DebateContext:
        """The constants of one episode."""
        assert isinstance(spec.task, DebateTask)
        parts = (spec.benchmark, safe_id(spec.task.task_id), spec.variant, f"r{spec.repeat:02d}")
        return DebateContext(
            wordings=self.catalog,
            settings=self._variants[spec.variant].settings,
            task=spec.task,
            condition=spec.condition,
            seed=self.study.seed,
            discussion=".".join(parts),
            call=self.call,
            challenger=self.study.models.challenger is not None,
            facts=self.study.facts.get(spec.task.task_id),
        )

    @cached_property
    def _variants(self) -> dict[str, DebateVariant]:
        return {variant.name: variant for variant in self.study.variants}

    def check(self, path: Any) -> None:
        wants = [one.name for one in self.study.variants if "facts" in one.settings.challenge]
        if not wants:
            return
        for tasks in self.tasks.values():
            for task in tasks:
                if task.task_id not in self.study.facts:
                    raise StudyError(
                        f"{path}: the variant {wants[0]!r} challenges with facts, and [facts] has "
                        f"none on task {task.task_id!r}.",
                        hint=f'Add "{task.task_id}" = "…" under [facts], or leave out the setting.',
                    )

    def remarks(self) -> Iterator[str]:
        yield from idle_settings(self.study.variants)
        for benchmark, tasks in self.tasks.items():
            equal = [
                task
                for task in tasks
                if isinstance(task, DebateTask) and len(set(task.options)) < len(task.options)
            ]
            if equal:
                yield (
                    f"{len(equal)} of {len(tasks)} tasks of {benchmark} have equal options, "
                    f"{equal[0].task_id!r} for one. They are kept as published, by their place."
                )

    def used(self) -> WordingNames:
        parts = {part for variant in self.study.variants for part in parts_of(variant)}
        if self.study.ask_cut_off_again:
            parts.add("ask_cut_off_again")
        return {"prompts": templates_of("tutorsim.systems.debate", parts)}

    def variants(self) -> tuple[str, ...]:
        return tuple(self._variants)

    def cells(self) -> Iterator[tuple[str, Task, str, str]]:
        for benchmark, tasks in self.tasks.items():
            for task in tasks:
                for variant in self.study.variants:
                    for condition in variant.conditions:
                        yield benchmark, task, variant.name, condition

    def alike(self, spec: EpisodeSpec) -> Hashable:
        """Tasks differ in having wrong options."""
        assert isinstance(spec.task, DebateTask)
        return (spec.benchmark, spec.variant, spec.condition, bool(spec.task.wrong_options()))

    def usual_reply(self, spec: EpisodeSpec, call: Call, *, longest: bool) -> str:
        settings = self._variants[spec.variant].settings
        place = (call.key.stage, call.key.agent)
        last = (f"debate_{settings.rounds - 1}", agent_names(settings.agents)[-1])
        proposes = consensus_rule(spec.condition) is not None and place == last
        same = call.key.stage == "answer" and settings.merge_identical
        if longest or not (proposes or same):
            return _usual_reply(call, longest=longest)
        # after several rounds, agreement is counted from a proposal in the last one but one
        return "B" if same else "[DISAGREE]"

    def model_of(self, agent: str, stage: str) -> str:
        models = self.study.models
        return models.challenger or models.agent if agent == CHALLENGER else models.agent

    def model_names(self) -> tuple[str, ...]:
        models = self.study.models
        return tuple(filter(None, (models.agent, models.challenger)))

    def ballot_reading(self, spec: EpisodeSpec) -> BallotReading:
        settings = self._variants[spec.variant].settings
        return BallotReading(self.catalog.fill("vote_reminder"), settings.cumulative_budget)

    def voting(self) -> VotingSettings | None:
        """The agents in order decide among the tied; points and labels are the first variant's."""
        if not any(vote_protocol(name) or name == "full" for name in self.study.conditions):
            return None
        first = self.study.variants[0].settings
        return VotingSettings(
            fallback_order=agent_names(max(one.settings.agents for one in self.study.variants)),
            cumulative_budget=first.cumulative_budget,
            label_order=first.blinding,
        )

    def study_table(self) -> dict[str, Any]:
        """As every study; the tasks that are written beside it are those that were drawn."""
        table = super().study_table()
        for settings in table["benchmarks"].values():
            settings.pop("sample", None)
        return table
