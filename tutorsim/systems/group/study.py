"""A group's study file, its grid, and what its episodes ask for."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any, ClassVar, Literal

from pydantic import model_validator

from tutorsim.catalog.wordings_kept_with_recording import WordingNames
from tutorsim.errors import StudyError, TaskFileError
from tutorsim.mechanisms.flow import Flow
from tutorsim.mechanisms.retest_prompts import AskedTogether
from tutorsim.model import Call
from tutorsim.records import EpisodeLine
from tutorsim.records.group import GroupRecord
from tutorsim.study import BaseStudy, BenchmarkSettings, EpisodeSpec, Name, nearest
from tutorsim.systems.group.call_range import duel_calls, lesson_calls
from tutorsim.systems.group.roles_and_learners import GroupCatalog
from tutorsim.systems.group.settings import PERSON, GroupModels, GroupSettings
from tutorsim.systems.group.tasks import Scenario
from tutorsim.systems.group.timeline import LEARNER, Group
from tutorsim.systems.group.usual_replies import usual_reply
from tutorsim.systems.system import CUT_OFF_REMINDER, CallRange, LoadedStudy
from tutorsim.tasks import Task

__all__ = ["DUEL", "GroupStudy", "Study"]

DUEL = "duel"
"""Condition of a scenario, in which both systems meet."""


class Study(BaseStudy):
    """A study file of group lessons and duels."""

    later: ClassVar[Mapping[str, Any]] = {**BaseStudy.later, "group": {"withdraw": "always"}}
    system: Literal["group"] = "group"
    conditions: tuple[Literal["self_select", "next_speaker"], ...] = (
        "self_select",
        "next_speaker",
    )
    learners: tuple[Name, ...] = ("tom_average",)
    """Simulated learners of the catalog, or `person`."""
    benchmarks: Mapping[Literal["lesson", "scenario"], BenchmarkSettings]  # type: ignore[assignment]
    group: GroupSettings = GroupSettings()
    models: GroupModels = GroupModels()

    @model_validator(mode="after")
    def _coherent(self) -> "Study":
        for field in ("conditions", "learners"):
            values = getattr(self, field)
            twice = sorted({value for value in values if values.count(value) > 1})
            if twice:
                raise ValueError(f"{field} names {twice[0]!r} twice")
            if not values:
                raise ValueError(f"{field} is empty, so the study has no lesson")
        if not self.benchmarks:
            raise ValueError("benchmarks is empty, so the study has no episode")
        return self


@dataclass(frozen=True)
class GroupStudy(LoadedStudy):
    """A group's study with everything that it names."""

    study: Study
    catalog: GroupCatalog
    stored: GroupCatalog | None = None

    paths: ClassVar[tuple[str, str]] = (
        "nobody ever wants to speak",
        "somebody speaks in every cycle, and every list is filled",
    )

    def episode(self, spec: EpisodeSpec) -> Flow[EpisodeLine]:
        from tutorsim.systems.group.episode import group_episode  # its scenes are made of studies
        from tutorsim.systems.group.prompts import GroupScene

        return (yield from group_episode(GroupScene(self, spec)))

    def asked_again(self, spec: EpisodeSpec, record: EpisodeLine) -> Iterator[AskedTogether[Any]]:
        """The evaluations of thoughts, from which the next speaker follows."""
        from tutorsim.systems.group.prompts import GroupScene
        from tutorsim.systems.group.speaking_cycle import evaluations_again

        assert isinstance(record, GroupRecord)
        yield from evaluations_again(GroupScene(self, spec), record)

    def call_range(self, spec: EpisodeSpec) -> CallRange:
        if isinstance(spec.task, Scenario):
            raters = len(self.study.models.raters)
            return CallRange.of(*duel_calls(self.study.group, spec.task, raters))
        return CallRange.of(
            *lesson_calls(
                self.study.group,
                predicted=spec.condition == "next_speaker",
                person=spec.variant == PERSON,
            )
        )

    def usual_reply(self, call: Call, *, longest: bool) -> str:
        shown = Group(self.study.group.agents, "").shown
        names = [shown(agent) for agent in self.study.group.agents]
        return usual_reply(call, names, longest=longest)

    def model_of(self, agent: str, stage: str) -> str:
        models = self.study.models
        if stage.startswith("rate_"):
            return models.raters[int(agent.removeprefix("rater_")) - 1]
        if stage in ("judge", "code"):
            return models.judge
        return models.learner if stage == LEARNER else models.agent

    def model_names(self) -> tuple[str, ...]:
        models = self.study.models
        return (models.agent, models.learner, models.judge, *models.raters)

    def with_person(self) -> bool:
        return PERSON in self.study.learners and "lesson" in self.tasks

    def cells(self) -> Iterator[tuple[str, Task, str, str]]:
        """Lessons by learner and condition; a scenario is one duel of both conditions."""
        most, persons = self.study.group.person_lessons, 0
        lessons = self.tasks.get("lesson", ())
        for cell in product(("lesson",), lessons, self.study.learners, self.study.conditions):
            persons += cell[2] == PERSON
            if cell[2] != PERSON or most is None or persons <= most:
                yield cell
        yield from (("scenario", task, "none", DUEL) for task in self.tasks.get("scenario", ()))

    def used(self) -> WordingNames:
        """All prompts that the settings leave in use; roles and learners that the study names."""
        unused = set() if self.study.ask_cut_off_again else {CUT_OFF_REMINDER}
        return {
            "prompts": frozenset(self.catalog.prompts) - unused,
            "roles": frozenset(self.study.group.agents),
            "learners": frozenset(set(self.study.learners) - {PERSON}),
        }

    def check(self, path: Path) -> None:
        study, catalog = self.study, self.catalog
        wanted = [("group.agents", "roles", name) for name in study.group.agents]
        wanted += [("learners", "learners", name) for name in study.learners if name != PERSON]
        for field, part, name in wanted:
            known = tuple(getattr(catalog, part))
            if name not in known:
                raise StudyError(
                    f"{path}: {field}: the catalog has no {name!r}.",
                    why=nearest(name, known),
                    hint=f"Own ones are defined under [catalog.{part}.{name}].",
                )
        self._check_names(path)
        self._check_speakers(path)
        self._check_idle(path)

    def _check_idle(self, path: Path) -> None:
        """A setting that the selection would not look at must be as it always is."""
        group, usual = self.study.group, GroupSettings()
        changed = group.interrupt_threshold != usual.interrupt_threshold
        if changed and group.selection == "inner_thoughts":
            raise StudyError(
                f"{path}: group.interrupt_threshold does nothing under {group.selection!r}.",
                why="That selection knows no interruption; only the lesson study's own has one.",
                hint='Leave it out, or write selection = "prism".',
            )

    def _check_names(self, path: Path) -> None:
        """A learner must not be called as an agent is."""
        agents = {agent.casefold() for agent in self.study.group.agents}
        for name in set(self.study.learners) - {PERSON}:
            if self.catalog.learners[name].name.casefold() in agents:
                raise StudyError(
                    f"{path}: catalog.learners.{name}: its name is that of an agent, "
                    f"{self.catalog.learners[name].name!r}.",
                    why="Messages could not be told apart.",
                    hint="Give the learner another name.",
                )

    def _check_speakers(self, path: Path) -> None:
        group = Group(self.study.group.agents, self.study.group.person_name)
        for task in self.tasks.get("scenario", ()):
            assert isinstance(task, Scenario)
            strangers = sorted(name for name in task.speakers if group.participant(name) is None)
            if strangers:
                raise TaskFileError(
                    f"{path}: scenario {task.id!r} has the speaker {strangers[0]!r}.",
                    why=f"The group is {', '.join(group.agents)} and the learner.",
                    hint="Name an agent of [group] agents, or `learner`.",
                )
