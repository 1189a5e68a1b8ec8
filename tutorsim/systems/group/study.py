"""A group's study file: settings, learners and roles, its grid, and how many calls it asks for."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, lru_cache
from itertools import product
from pathlib import Path
from typing import Annotated, Any, ClassVar, Final, Literal, NamedTuple

from pydantic import BaseModel, ConfigDict, Field, model_validator

from tutorsim.catalog import BaseCatalog, read_catalog
from tutorsim.catalog.wordings_kept_with_recording import WordingNames
from tutorsim.errors import StudyError, TaskFileError
from tutorsim.kernel.flow import Flow
from tutorsim.kernel.retest import AskedTogether
from tutorsim.kernel.study import (
    BaseModels,
    BaseStudy,
    BenchmarkSettings,
    EpisodeSpec,
    Name,
    Settings,
    nearest,
)
from tutorsim.kernel.system import CUT_OFF_REMINDER, CallRange, LoadedStudy
from tutorsim.model import Call
from tutorsim.records import EpisodeLine
from tutorsim.records.group import GroupRecord
from tutorsim.systems.group.speaker_selection import CRITERIA, Rule, SelectionRule, Silence
from tutorsim.systems.group.tasks import N_MESSAGES, Scenario
from tutorsim.systems.group.timeline import LEARNER, Group
from tutorsim.tasks import Task

# --- Settings ------------------------------------------------------------------------------------

MemberName = Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]{1,40}$")]
Share = Annotated[float, Field(ge=0, le=1)]
Score = Annotated[float, Field(ge=1, le=5)]
Seconds = Annotated[float, Field(ge=0, le=3600)]

ScoreForm = Literal["six", "two"]
"""Six criteria, or their two sums asked for directly."""
Rubric = Literal["criteria", "reference"]
"""Raters score four criteria, or likeness to the scenario's reference."""
Withdraw = Literal["once", "always"]
"""What becomes of an utterance that is ready when the person has written: it is dropped unless the
one before it was (`once`), or whenever that happens (`always`)."""

PERSON: Final = "person"
"""The learner who is no simulation."""
MIN_AGENTS: Final = 2
MAX_AGENTS: Final = 6
_TAKEN: Final = ("learner", "all", "manager", "evaluator", "predictor")
"""Names that prompts or call keys need for somebody else."""


class GroupModels(BaseModels):
    """`[models]`: identifiers sent with the calls."""

    agent: str = Field(default="claude-haiku-4-5", min_length=1)
    """Peers, stage manager, evaluator and predictor."""
    learner: str = Field(default="claude-haiku-4-5", min_length=1)
    judge: str = Field(default="claude-sonnet-4-5", min_length=1)
    """Judges duels and codes messages."""
    raters: tuple[str, ...] = Field(
        default=("claude-sonnet-4-5", "claude-haiku-4-5", "claude-haiku-4-5"), min_length=1
    )


class GroupSettings(Settings):
    """`[group]`: agents, selection, limits."""

    model_config = ConfigDict(populate_by_name=True)

    agents: tuple[MemberName, ...] = ("bob", "alice", "charlie")
    """2 to 6 roles of the catalog; their order breaks ties."""
    weight: Share = Field(default=0.6, alias="lambda")
    """λ, the share of the external criteria in the total."""
    threshold: Score = 3.5
    interrupt_threshold: Score = 4.0
    silence: Silence = "raise"
    selection: SelectionRule = "prism"
    scores: ScoreForm = "six"
    max_events: int = Field(default=40, ge=2, le=1000, strict=True)
    max_silences: int = Field(default=3, ge=1, le=99, strict=True)
    """Silences in a row after which a simulated lesson ends and a chat waits for the person."""
    learner_patience: int = Field(default=3, ge=1, le=99, strict=True)
    """Messages of others after which the simulated learner is asked."""
    silence_s: Seconds = 10
    pause_s: Seconds = 4
    """What agents wait for the person after a message of theirs."""
    withdraw: Withdraw = "once"
    """Under `always` a person who writes faster than a cycle lasts never gets an answer."""
    person_name: MemberName = "Tom"
    person_lessons: int | None = Field(default=None, ge=1, strict=True)
    """Lessons that have a person, from the first one on; all when left out."""
    person_note: str = Field(default="", max_length=200)
    """Who the person was, for the reader of a report, such as "a script that typed"."""
    show_thoughts: Literal["after", "during", "never"] = "after"
    """When the person may read thoughts and scores."""
    warm_up: bool = True
    """In a duel everybody thinks after each scripted message, so that thoughts have a history."""
    rubric: Rubric = "criteria"
    ipa_codings: int = Field(default=2, ge=0, le=2, strict=True)
    """How often each message of a finished lesson is coded; 0 for no coding."""
    language: str = Field(default="English", min_length=1, max_length=40)

    @model_validator(mode="after")
    def _coherent(self) -> "GroupSettings":
        folded = [name.casefold() for name in self.agents]
        twice = [name for name in self.agents if folded.count(name.casefold()) > 1]
        if twice:
            raise ValueError(f"agents names {twice[0]!r} twice")
        if not MIN_AGENTS <= len(self.agents) <= MAX_AGENTS:
            raise ValueError(
                f"agents names {len(self.agents)}; a group has {MIN_AGENTS} to {MAX_AGENTS}"
            )
        taken = [name for name in self.agents if name.casefold() in _TAKEN]
        if taken:
            raise ValueError(f"agents names {taken[0]!r}, which stands for somebody else")
        if self.person_name.casefold() in (*folded, *_TAKEN):
            raise ValueError(f"person_name {self.person_name!r} is the name of somebody else")
        return self

    def rule(self) -> Rule:
        """How scores become a speaker, in exact numbers."""
        return Rule(
            weight=Fraction(str(self.weight)),
            threshold=Fraction(str(self.threshold)),
            interrupt_threshold=Fraction(str(self.interrupt_threshold)),
            silence=self.silence,
            selection=self.selection,
        )


# --- Call range ----------------------------------------------------------------------------------


class _At(NamedTuple):
    """Where a lesson is when a cycle begins."""

    events: int
    """Events so far; a later stage takes a place too, so a course without stages is longest."""
    last: str
    """Author of the last message: `learner`, `agent`, `floor` for an agent that keeps it, or
    nobody."""
    quiet: int
    """Messages since the learner wrote, counted up to its patience."""
    silences: int


class _Course(NamedTuple):
    """What decides how many calls there are."""

    agents: int
    predicted: bool
    person: bool
    max_events: int
    max_silences: int
    patience: int
    codings: int


def lesson_calls(settings: GroupSettings, *, predicted: bool, person: bool) -> tuple[int, int]:
    """Least and most calls of a lesson, every reply readable.

    Args:
        settings: The group.
        predicted: The next speaker is predicted; otherwise agents select themselves.
        person: The learner is a person, who can leave at once.
    """
    course = _Course(
        len(settings.agents),
        predicted,
        person,
        settings.max_events,
        settings.max_silences,
        settings.learner_patience,
        settings.ipa_codings,
    )
    least, most = _calls_from(_At(1, "", 0, 0), course)
    return (0 if person else least), most


@lru_cache(maxsize=200_000)
def _calls_from(at: _At, course: _Course) -> tuple[int, int]:
    """Least and most calls from the beginning of a cycle to the end, coding included."""
    if at.events >= course.max_events or (at.silences >= course.max_silences and not course.person):
        return 0, 0
    least, most = [], []
    for calls, following in _cycles(at, course):
        low, high = _calls_from(following, course)
        least.append(calls + low)
        most.append(calls + high)
    return min(least), max(most)


def _cycles(at: _At, course: _Course) -> Iterator[tuple[int, _At]]:
    """The cycles that can begin here: their calls, and where the next one begins."""
    managed = int(bool(at.last) and at.silences == 0)
    events = at.events + 1
    said = course.codings
    by_learner = _At(events, LEARNER, 0, 0)
    quiet = min(at.quiet + 1, course.patience)
    by_agent = [_At(events, "agent", quiet, 0)]
    if not course.predicted:
        by_agent.append(_At(events, "floor", quiet, 0))
    silence = _At(events, at.last, at.quiet, at.silences + 1)
    if course.person:
        yield said, by_learner
    asked = _learner_asked(at, course)
    if True in asked:
        yield managed + 1 + said, by_learner
    for learner in asked:
        spoken, silent = _selection(at, course)
        yield from ((managed + learner + spoken + said, following) for following in by_agent)
        yield from ((managed + learner + calls, silence) for calls in silent)


def _learner_asked(at: _At, course: _Course) -> tuple[bool, ...]:
    """Whether the simulated learner is asked: it must be, cannot be, or may be by its name."""
    if course.person or (at.last == LEARNER and not at.silences):
        return (False,)
    if at.silences or at.quiet >= course.patience:
        return (True,)
    return (False, True) if at.last else (False,)


def _selection(at: _At, course: _Course) -> tuple[int, tuple[int, ...]]:
    """Calls until somebody speaks, and calls until it is clear that nobody does."""
    if course.predicted:
        return 2, (1, 2)  # nobody named; or an agent that says nothing readable
    thinking = course.agents - (at.last == "agent")
    return thinking + 2, (thinking, thinking + 1, thinking + 2)


def duel_calls(settings: GroupSettings, scenario: Scenario, raters: int) -> tuple[int, int]:
    """Least and most calls of a duel, every reply readable."""
    speakers = [message.name.casefold() for message in scenario.messages]
    names = {name.casefold() for name in settings.agents}
    thinking = [len(names - {speaker}) for speaker in speakers]
    thoughts = sum(thinking) if settings.warm_up else thinking[N_MESSAGES - 1]
    judged = 2 + 2 * raters
    return thoughts + 1, thoughts + 1 + 1 + 1 + 1 + judged


# --- Usual replies -------------------------------------------------------------------------------

SENTENCE = "This stands for about eighteen words of the kind that learners write to one another. "


def usual_reply(call: Call, names: Sequence[str], *, longest: bool) -> str:
    """A reply of usual length.

    On the longest path everybody wants to speak and somebody does; on the shortest nobody.

    Args:
        call: What is asked.
        names: The agents as prompts show them.
        longest: Which path.
    """
    stage = call.key.stage
    if stage.startswith("rate_"):
        asked = re.findall(r'"(\w+)": 1\.0', call.request.user)
        return json.dumps(dict.fromkeys(asked, 7.0))
    match stage:
        case "manager":
            return json.dumps({"reason": SENTENCE, "signal": "continue", "completed": []})
        case "think":
            action = "speak" if longest else "listen"
            return json.dumps(
                {"stimuli": ["M1"], "thought": SENTENCE * 2, "action": action, "corrects": False}
            )
        case "evaluate":
            criteria = ("internal", "external") if '"internal"' in call.request.user else CRITERIA
            return json.dumps([{"agent": name} | dict.fromkeys(criteria, 4.0) for name in names])
        case "speak" | "speak_predicted":
            return json.dumps({"message": SENTENCE * 2, "to": ["all"], "continues": longest})
        case "predict":
            return names[0] if longest else "learner"
        case "learner":
            return json.dumps({"action": "wait", "message": ""})
        case "judge":
            return f"BETTER: same\n{SENTENCE}"
        case _:
            return "CATEGORY: 6"


# --- Roles and learners --------------------------------------------------------------------------

FIRST_TEXTS: Final = {
    "task_of_role": "$number. $text Expected: $expected",
    "learner_among_others": "$name (the learner)",
}
"""What was said before recordings held these templates. A text here never changes."""

ClassroomFunction = Literal["teaching", "discussion", "companionship", "management"]


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class RoleTask(_Part):
    """One of a role's numbered tasks."""

    text: str = Field(min_length=1)
    expected: str = Field(min_length=1)
    """What comes out of it."""
    functions: tuple[ClassroomFunction, ...] = ()
    """Classroom functions that it serves."""


class PeerRole(_Part):
    """A kind of peer."""

    title: str = Field(min_length=1)
    """How prompts name the role, without an article."""
    goal: str = Field(min_length=1)
    expertise: str = Field(min_length=1)
    style: str = Field(min_length=1)
    interests: str = Field(min_length=1)
    tasks: tuple[RoleTask, ...] = Field(min_length=1)


class Learner(_Part):
    """A simulated learner."""

    name: str = Field(pattern=r"^[A-Za-z0-9_-]{1,40}$")
    """Its name in the chat."""
    character: str = Field(min_length=1)
    """How it behaves, in whole sentences."""


class GroupCatalog(BaseCatalog):
    """All roles, learners and templates that a study of groups can name."""

    roles: dict[str, PeerRole]
    learners: dict[str, Learner]


@cache
def load_group_catalog() -> GroupCatalog:
    """The shipped roles, learners and prompts."""
    return read_catalog(GroupCatalog, "tutorsim.systems.group")


# --- Study ---------------------------------------------------------------------------------------

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
