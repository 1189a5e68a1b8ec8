"""A study of groups: its grid, how its episodes go, and how many calls they ask for."""

import json
import re
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

from tutorsim.catalog.wordings_kept_with_recording import WordingNames
from tutorsim.errors import StudyError, TaskFileError
from tutorsim.kernel.flow import Flow
from tutorsim.kernel.retest import AskedTogether
from tutorsim.kernel.study import (
    EpisodeSpec,
    nearest,
)
from tutorsim.kernel.system import CUT_OFF_REMINDER, CallRange, LoadedStudy
from tutorsim.model import Call
from tutorsim.records import EpisodeLine
from tutorsim.records.group import GroupRecord
from tutorsim.systems.group.episode import group_episode
from tutorsim.systems.group.scene import GroupScene
from tutorsim.systems.group.settings import DUEL, PERSON, GroupCatalog, GroupSettings, Study
from tutorsim.systems.group.speaker_selection import CRITERIA
from tutorsim.systems.group.speaking_cycle import evaluations_again
from tutorsim.systems.group.tasks import N_MESSAGES, Scenario
from tutorsim.systems.group.timeline import LEARNER, Group
from tutorsim.tasks import Task

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


# --- Study ---------------------------------------------------------------------------------------


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
        return (yield from group_episode(GroupScene(self, spec)))

    def asked_again(self, spec: EpisodeSpec, record: EpisodeLine) -> Iterator[AskedTogether[Any]]:
        """The evaluations of thoughts, from which the next speaker follows."""
        assert isinstance(record, GroupRecord)
        yield from evaluations_again(GroupScene(self, spec), record)

    def alike(self, spec: EpisodeSpec) -> Hashable:
        """A person takes part in some; a scenario has as many calls as its speakers ask for."""
        scenario = spec.task.task_id if isinstance(spec.task, Scenario) else ""
        return (spec.variant == PERSON, spec.condition, scenario)

    def call_range(self, spec: EpisodeSpec) -> CallRange:
        """Over all courses that an episode can take, which are more than two paths."""
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

    def usual_reply(self, spec: EpisodeSpec, call: Call, *, longest: bool) -> str:
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

    def with_person(self) -> Iterator[EpisodeSpec]:
        if PERSON in self.study.learners:
            yield from (spec for spec in self.grid() if spec.variant == PERSON)

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
