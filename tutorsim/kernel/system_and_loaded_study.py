"""What a system is: the parts that the kernel asks for, and nothing that it does not.

The kernel (runner, replay, plan, commands) knows no system. It loads a study through its
`System`, takes the grid from the `LoadedStudy`, drives the flow of each episode, and writes the
record that comes back. A system is one value of this class, named in `tutorsim.system_registry` or
by an entry point of the group `tutorsim.systems`.
"""

import hashlib
import json
import math
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from itertools import product
from pathlib import Path
from typing import Any, ClassVar, Final, Literal, NamedTuple, Self, TypeVar

from tutorsim.catalog import BaseCatalog, WordingNames, Wordings, overlaid
from tutorsim.errors import LogError, UsageError
from tutorsim.kernel.flow_drivers_and_call_log import (
    CallLog,
    CodeResult,
    CodeRun,
    Flow,
    PersonInput,
    drive,
    scripted,
)
from tutorsim.kernel.retest_flow_and_drawn_turns import AskedTogether, BallotReading, votes_again
from tutorsim.kernel.study_file_and_episode_spec import BaseModels, BaseStudy, EpisodeSpec
from tutorsim.model import Call, CallKey, Request
from tutorsim.records import (
    BaseRecord,
    Branch,
    CallRecord,
    EpisodeLine,
    Failure,
    StudyHead,
    SystemSettings,
    VerdictRecord,
    VotingSettings,
)
from tutorsim.system_registry import load
from tutorsim.tasks import Task, TaskFormat, safe_id, tasks_digest
from tutorsim.vocabularies import TURN_VOTES

# --- Mind of the scripted model ------------------------------------------------------------------

T = TypeVar("T")
R = TypeVar("R", bound=BaseRecord)


class Chance:
    """Draws that depend on nothing but `parts` and the name of each draw.

    Args:
        parts: What the draws belong to, such as a seed and a request.
    """

    def __init__(self, *parts: str | int) -> None:
        self._base = "\x1f".join(map(str, parts)).encode("utf-8", "surrogatepass")

    def digest(self, name: str) -> bytes:
        """The 32 bytes behind one draw."""
        return hashlib.sha256(self._base + b"\x1e" + name.encode("utf-8", "surrogatepass")).digest()

    def unit(self, name: str) -> float:
        """A number from 0 up to, and without, 1."""
        return int.from_bytes(self.digest(name)[:6]) / 2**48

    def happens(self, name: str, probability: float) -> bool:
        """Whether an event of this probability happens."""
        return self.unit(name) < probability

    def pick(self, name: str, options: Sequence[T]) -> T:
        """One of the options, all equally likely."""
        return options[int(self.unit(name) * len(options))]

    def bell(self, name: str) -> float:
        """A nearly normal number of mean 0 and deviation 1, between -3.5 and 3.5."""
        found = self.digest(name)
        total = sum(int.from_bytes(found[i : i + 8]) for i in (0, 8, 16, 24)) / 2**64
        return (total - 2) * math.sqrt(3)


class Asking(NamedTuple):
    """The texts of a request."""

    system: str
    user: str

    @property
    def again(self) -> bool:
        """Whether the last reply could not be used and is asked for once more."""
        return "Your last reply" in self.user[-400:]


Recogniser = Callable[[Asking, Chance, Chance | None], str | None]
"""From texts, the request's draws and, for steady voters, the seed's draws to the reply's text;
`None` for a request that is not of the system."""


# --- System --------------------------------------------------------------------------------------

CUT_OFF_REMINDER: Final = "cut_off_reminder"
"""The template of what a second asking adds where the first reply was cut off."""


@dataclass(frozen=True)
class CallRange:
    """How many calls a thing takes."""

    least: int
    """Calls on the shortest path, every reply readable."""
    most: int
    """Calls on the longest path, every reply readable."""
    ceiling: int
    """Calls on the longest path, with every reply asked for twice."""

    def __add__(self, other: "CallRange") -> "CallRange":
        return CallRange(
            self.least + other.least, self.most + other.most, self.ceiling + other.ceiling
        )

    @classmethod
    def of(cls, least: int, most: int | None = None) -> "CallRange":
        """A range whose ceiling is every call of the longest path asked for twice."""
        most = least if most is None else most
        return cls(least, most, 2 * most)


@dataclass(frozen=True)
class LoadedStudy:
    """A study with everything that it names. A system's study says how its episodes go."""

    study: BaseStudy
    catalog: BaseCatalog
    """Shipped wordings and entries, and the study's own."""
    tasks: Mapping[str, tuple[Task, ...]]
    """Benchmark → its tasks."""
    system: "System"
    stored: BaseCatalog | None = None
    """The wordings of a recording, which its digest covers; `None` where they are today's."""

    paths: ClassVar[tuple[str, str]] = ("the shortest path", "the longest path")
    """What the ends of a range of calls stand for, in words."""

    # --- what a system must say -------------------------------------------------------------

    def episode(self, spec: EpisodeSpec) -> Flow[EpisodeLine]:
        """The flow of one episode; see `tutorsim.kernel.flow_drivers_and_call_log`."""
        raise NotImplementedError

    def usual_reply(self, spec: EpisodeSpec, call: Call, *, longest: bool) -> str:
        """A reply of usual length, by which the flow is driven to plan it.

        Args:
            spec: The episode.
            call: What is asked.
            longest: Whether the reply leads along the longest path, or along the shortest.
        """
        raise NotImplementedError

    def model_of(self, agent: str, stage: str) -> str:
        """The identifier of the model that an agent's calls go to."""
        raise NotImplementedError

    def model_names(self) -> tuple[str, ...]:
        """Every model that the study asks, for prices."""
        raise NotImplementedError

    def ballot_reading(self, spec: EpisodeSpec) -> BallotReading:
        """How an episode's ballots are read; systems whose votes can be asked again say it."""
        raise NotImplementedError

    # --- what it may say otherwise ----------------------------------------------------------

    @property
    def branch(self) -> Branch | None:
        """What its recording continues and changes; `None` for a study of its own episodes."""
        return None

    def check(self, path: Path) -> None:
        """Refuse names that the catalog does not have.

        Raises:
            StudyError: Naming the file and the key.
        """

    def remarks(self) -> Iterator[str]:
        """What whoever is about to record the study should know of its settings and tasks."""
        yield from ()

    def with_person(self) -> Iterator[EpisodeSpec]:
        """The episodes in which a person takes part, so that they cannot run by themselves."""
        yield from ()

    def alike(self, spec: EpisodeSpec) -> Hashable:
        """What episodes have in common that take as many calls as one another, and as long ones."""
        return (spec.benchmark, spec.condition, spec.factor)

    def call_range(self, spec: EpisodeSpec) -> CallRange:
        """How many calls one episode takes: those of its shortest and of its longest path.

        A system with more paths than these two may know a wider range.
        """
        return CallRange.of(*(len(self.path(spec, longest=end)) for end in (False, True)))

    def path(self, spec: EpisodeSpec, *, longest: bool) -> tuple[CallRecord, ...]:
        """First askings of one episode on its shortest or longest path, of one of those alike.

        A person leaves at once, or stays to the end and is silent.
        """
        place = (self.alike(spec), longest)
        if place not in self._paths:
            world = scripted(
                partial(self.usual_reply, spec, longest=longest),
                judge_code=partial(_usual_verdict, longest=longest),
                listen=lambda _: PersonInput(None, 0, ended=not longest),
            )
            calls = drive(self.episode(spec), world).calls
            firsts = (call for call in calls if CallKey.parse(call.key).attempt == 1)
            self._paths[place] = tuple(firsts)
        return self._paths[place]

    @cached_property
    def _paths(self) -> dict[Hashable, tuple[CallRecord, ...]]:
        return {}

    def variants(self) -> tuple[str, ...]:
        """What stands between task and condition in episode ids."""
        return ("none",)

    def factors(self, condition: str) -> tuple[str | None, ...]:
        """Values of a further factor of the grid under a condition, which stand behind it in ids.

        `None` for episodes without such a part.
        """
        return (None,)

    def cells(self) -> Iterator[tuple[str, Task, str, str]]:
        """Benchmark, task, variant and condition of the grid, without repeats, in order."""
        for benchmark, tasks in self.tasks.items():
            cells = product(tasks, self.variants(), self.study.conditions)
            yield from ((benchmark, task, variant, condition) for task, variant, condition in cells)

    def grid(self) -> Iterator[EpisodeSpec]:
        """Every episode, repeats innermost: the order of the log."""
        repeats = self.study.repeats
        for benchmark, task, variant, condition in self.cells():
            start = (benchmark, safe_id(task.task_id), variant, condition)
            for factor in self.factors(condition):
                parts = start if factor is None else (*start, factor)
                for repeat in range(1, repeats + 1):
                    tail = (f"r{repeat:02d}",) if repeats > 1 else ()
                    name = ".".join((*parts, *tail))
                    yield EpisodeSpec(
                        *(benchmark, task, variant, condition, repeat, name, name), factor=factor
                    )

    def used(self) -> WordingNames:
        """Names of the wordings that some call of the study can contain: by default, all."""
        return {part: frozenset(entries) for part, entries in self.catalog.wordings().items()}

    def with_earlier_settings(self) -> Self:
        """The study with settings that its file does not name as they were before there were any.

        A recording begun by an earlier tutorsim is gone on with so.
        """
        return replace(self, study=self.study.with_earlier_settings())

    def asked_again(self, spec: EpisodeSpec, record: EpisodeLine) -> Iterator[AskedTogether[Any]]:
        """What of a recorded episode a retest can ask again, in the order of the log.

        By default the votes of its turns, read as `ballot_reading` says.
        """
        if any(turn.decision is not None for turn in record.turns):
            yield from votes_again(record, self.ballot_reading(spec))

    def in_first_form(self) -> "LoadedStudy":
        """The study with the digest that recordings without wordings of their own have.

        Only systems that recorded before recordings held their wordings have such a form.
        """
        return self

    def with_digest(self, digest: str) -> "LoadedStudy | None":
        """The study in the form whose digest a recording names; `None` where none has it."""
        forms = (self, self.in_first_form()) if self.stored is None else (self,)
        return next((form for form in forms if form.digest() == digest), None)

    # --- wordings ---------------------------------------------------------------------------

    def wordings(self) -> Wordings:
        """All that the study's models are told: what a recording stores."""
        return self._held().wordings()

    def prompt_digest(self) -> str:
        """SHA-256 over the wordings, without templates that hold their first text."""
        held, first = self._held(), self.system.first_texts
        changed = {name: t for name, t in held.prompts.items() if t != first.get(name)}
        return held.model_copy(update={"prompts": changed}).digest()

    def _held(self) -> BaseCatalog:
        return self.catalog.only(self.used()) if self.stored is None else self.stored

    def completed(self, wordings: Wordings) -> Wordings:
        """A recording's wordings, with the first texts of templates that it has none of."""
        used = self.used()["prompts"]
        first = {name: text for name, text in self.system.first_texts.items() if name in used}
        return {**wordings, "prompts": {**first, **wordings.get("prompts", {})}}

    def with_wordings(self, wordings: Wordings) -> Self:
        """The study with a recording's wordings in place of today's.

        Entries of the study's own replace those of the same names, so that a study which is not
        the recorded one has another digest.

        Raises:
            ValidationError: If the wordings are not those of the system.
        """
        held = self.completed(wordings)
        own = {
            part: {name: entry for name, entry in entries.items() if name in held.get(part, {})}
            for part, entries in self.study.catalog.items()
        }
        stored = overlaid(type(self.catalog).model_validate(held), own)
        return replace(self, catalog=stored, stored=stored)

    def todays_catalog(self) -> BaseCatalog:
        """What is shipped today, with the study's own entries."""
        return overlaid(self.system.catalog(), self.study.catalog)

    def in_todays_wordings(self) -> Self:
        """The study in today's wordings; in the recorded ones where none is there today."""
        today = self.todays_catalog().wordings()
        return replace(self, catalog=overlaid(self.catalog, today), stored=None)

    def with_shipped(self) -> Self:
        """The study with today's entries beside those of its recording, for what it adds."""
        if self.stored is None:
            return self
        catalog = overlaid(self.todays_catalog(), self.stored.wordings())
        return replace(self, catalog=catalog, stored=None)

    def digest(self) -> str:
        """SHA-256 over settings, wordings and tasks. Paths are not in it."""
        value = [
            self.settings().model_dump(mode="json"),
            self.prompt_digest(),
            {name: tasks_digest(tasks) for name, tasks in self.tasks.items()},
        ]
        text = json.dumps(value, sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()

    def settings(self) -> StudyHead:
        """The settings that the run log carries."""
        study = self.study
        common = ("name", "seed", "system", "conditions", "repeats", "benchmarks", "catalog")
        return SystemSettings(
            name=study.name,
            seed=study.seed,
            system=self.system.name,
            conditions=study.conditions,
            repeats=study.repeats,
            benchmarks=tuple(self.tasks),
            settings={name: x for name, x in study.chosen().items() if name not in common},
            voting=self.voting(),
        )

    def voting(self) -> VotingSettings | None:
        """What a recount needs to know of the study's votes; `None` where nobody votes."""
        return None

    def study_table(self) -> dict[str, Any]:
        """The study as its file in a recording has it, every setting written out."""
        return self.study.model_dump(mode="json", by_alias=True, exclude_none=True)

    def record(
        self,
        form: type[R],
        spec: EpisodeSpec,
        calls: CallLog,
        failure: Failure | None,
        **logged: Any,
    ) -> R:
        """The record of an episode that came to its end or failed.

        Args:
            form: The system's class of records.
            spec: The episode.
            calls: Its calls.
            failure: The call that failed for good; `None` for an episode that came to its end.
            logged: The fields that the class has besides those of `BaseRecord`.

        Raises:
            UsageError: If the class has no such field.
        """
        strange = sorted(logged.keys() - form.model_fields.keys())
        if strange:
            raise UsageError(
                f"{form.__name__} has no field {strange[0]!r}.",
                why="What an episode logs is written field by field, and this would be lost.",
                hint=f"Its fields are {', '.join(form.model_fields)}.",
            )
        return form(
            episode_id=spec.episode_id,
            benchmark=spec.benchmark,
            task_id=spec.task.task_id,
            variant=spec.variant,
            condition=spec.condition,
            repeat=spec.repeat,
            status="complete" if failure is None else "failed",
            failure=failure,
            **calls.fields(),
            **logged,
        )

    # --- what every system can use ----------------------------------------------------------

    def call(
        self, turn: int, stage: str, agent: str, *, system: str, user: str, attempt: int = 1
    ) -> Call:
        """A call of an episode, to the model of its agent.

        Raises:
            UsageError: If the system has no such stage.
        """
        if stage not in self.system.stages:
            raise UsageError(
                f"The system {self.system.name!r} makes a call of stage {stage!r}.",
                why=f"Its stages are {', '.join(self.system.stages)}.",
                hint="Add the stage to the system's `stages`.",
            )
        request = Request(self.model_of(agent, stage), system, user, *self._request_settings)
        return Call(CallKey(turn, stage, agent, attempt), request, self.if_cut_off)

    @cached_property
    def _request_settings(self) -> tuple[int, tuple[tuple[str, float], ...]]:
        """The longest reply, and the further fields of the body, of every request."""
        models: BaseModels = self.study.models
        extra = () if models.temperature is None else (("temperature", models.temperature),)
        return models.max_tokens, extra

    @cached_property
    def if_cut_off(self) -> str | None:
        """What a second asking for a reply that was cut off adds; `None` to ask no second time.

        A system whose prompts have no `cut_off_reminder` asks no second time.
        """
        asked_again = self.study.ask_cut_off_again and CUT_OFF_REMINDER in self.catalog.prompts
        return self.catalog.fill(CUT_OFF_REMINDER) if asked_again else None


_SAID: Final = ("episode", "usual_reply", "model_of", "model_names")
"""What the study of every system must say."""


def _usual_verdict(run: CodeRun, *, longest: bool) -> CodeResult:
    return CodeResult("", VerdictRecord(outcome="fail" if longest else "pass", reason=""))


class Imported(NamedTuple):
    """An episode of another program's log."""

    record: EpisodeLine
    models: tuple[str, ...] = ()
    """Models that the log names."""
    notes: tuple[str, ...] = ()
    """Known faults of the program that the episode shows."""
    place: str = ""
    """Where in its file it stands; empty where the file has one."""
    said: str | None = None
    """What two copies of it have in common, whatever they are named; `None`: nothing is known of
    copies."""


class LogReading(NamedTuple):
    """What a reader of logs is given besides the file."""

    repeat_of: Callable[[str], int]
    """From an episode's name without repeat to the number of the repeat."""
    seen: set[str]
    """What a reader remembers of the files before, as digests of its own."""
    spelling: Literal["one", "apart"] | None = None
    """Whether names that look like one another are one, or stand apart, as the user says; `None`:
    nobody says, so that an episode with such names is left out."""


class LogFormat(NamedTuple):
    """Logs of another program that a system can take as its own runs."""

    program: str
    """The program's name."""
    read: Callable[[Path, LogReading], Iterator[Imported | LogError]]
    """From a file to the episodes in it, and to why one is left out; raises `LogError` for a file
    that is no such log."""
    voting: VotingSettings | None = None
    """What a recount needs to know of the votes; `None` where nobody votes."""
    asks_spelling: bool = False
    """Whether it may have to be said which names are one."""


class Auditing(NamedTuple):
    """How a system's study labels the replies of a recorded run; `tutorsim audit` records it."""

    conditions: tuple[str, ...]
    """Who can label."""
    study: Callable[..., LoadedStudy]
    """From a run folder to the study of its replies, as `audit_study` of oversight makes it."""


class Chat(NamedTuple):
    """How a person takes part in a system's episodes; `tutorsim chat` serves them."""

    page: Callable[[LoadedStudy, EpisodeSpec, Path], Any]
    """From an episode and the folder of its recording to what the page shows and hears: a
    `tutorsim.chat.serve_and_record_lesson.Page`."""
    name: tuple[str, str]
    """Table and setting of the study file that say what the person is called."""


@dataclass(frozen=True)
class System:
    """One kind of study: what it is made of, and where the rest of the house finds it.

        DUEL = System(
            name="duel",
            stages=("speak", "vote_final"),
            study=DuelStudy,  # a BaseStudy: the study file
            loaded=DuelLoaded,  # a LoadedStudy: its flow, and what its plan asks
            record=DuelRecord,  # a BaseRecord: a line of the log
            tasks={"topics": TaskFormat(read_topics)},
            catalog=lambda: CATALOG,
            outcome=lambda record: {"winner": record.winner},
        )

    What is left out does not apply. `tutorsim guide extending` has a whole one.
    """

    name: str
    stages: tuple[str, ...]
    """All stages of its call keys."""
    study: type[BaseStudy]
    """The whole study file; unknown keys are refused."""
    loaded: type[LoadedStudy]
    """What a study does."""
    record: type[Any]
    """One line of `episodes.jsonl`; has the attributes of `EpisodeLine`."""
    tasks: Mapping[str, TaskFormat]
    """Benchmark → how its files are read and written."""
    catalog: Callable[[], BaseCatalog]
    """The shipped wordings and entries."""
    outcome: Callable[[Any], dict[str, Any]]
    """What came of an episode's record, short enough to review in a manifest's diff."""
    first_texts: Mapping[str, str] = field(default_factory=dict)
    """Templates that came after the system's first recordings → what was said before there were
    any. A recording without one was made in these words, and no digest covers a template that
    still says them."""
    asked_again: tuple[str, ...] = TURN_VOTES
    """Stages that a retest can ask again, where `retest` applies; see `LoadedStudy.asked_again`."""
    view: str = ""
    """`module:name` of its tables, summary and report; see `tutorsim.analysis.systems`."""
    trace: str = ""
    """`module:name` of the function that tells an episode message by message, from its run, a
    `tutorsim.analysis.pages.shown_episodes.Run`, and its record; a person's words only if
    the run is `with_messages`. Empty where no episode is told."""
    standin: tuple[Recogniser, ...] = ()
    """Minds of the scripted model for its prompts, asked in order."""
    standin_last: bool = False
    """Whether its minds ask so little of a prompt that those of all other systems come first."""
    commands: frozenset[str] = frozenset()
    """Commands among `diverge`, `compare`, `retest`, `branch` and `show --turn` that apply to its
    runs."""
    branching: str = ""
    """`module:name` of its `Branching` (`tutorsim.runner.branch_plan_and_answers_from_parent`),
    where `branch` applies."""
    auditing: str = ""
    """`module:name` of its `Auditing`, where its studies label the replies of other runs."""
    chat: str = ""
    """`module:name` of its `Chat`, where a person can take part."""
    before_decision: tuple[str, ...] = ()
    """Stages of a turn that come before its decision, which a branch takes from its parent."""
    demo: str = ""
    """Folder of its bundled recording; empty for none."""
    example: str = ""
    """A shipped study to start from; empty for none."""
    logs: Mapping[str, LogFormat] = field(default_factory=dict)
    """Name → logs of another program that `tutorsim import` takes."""

    def __post_init__(self) -> None:
        lacking = [one for one in _SAID if getattr(self.loaded, one) is getattr(LoadedStudy, one)]
        if lacking:
            raise TypeError(f"{self.loaded.__name__} does not define {', '.join(lacking)}")

    def __reduce__(self) -> tuple[Callable[[str, str], Any], tuple[str, str]]:
        """A system is sent to another process by its name, so that its functions may be any."""
        return load, (self.name, "system")

    def check_command(self, command: str) -> None:
        """Refuse a command that does not apply.

        Raises:
            UsageError: Naming system and command.
        """
        if command not in self.commands:
            raise self.refusal(command)

    def refusal(self, command: str) -> UsageError:
        """Why a command, or one with an option, does not apply to the system's runs."""
        has = ", ".join(sorted(self.commands)) or "none of diverge, compare, retest, branch"
        return UsageError(
            f"`tutorsim {command}` does not apply to runs of the system {self.name!r}.",
            why=f"What it asks has no meaning there; of such commands the system has {has}.",
            hint=f"See `tutorsim summary`, `report` and `export` for a run of {self.name!r}.",
        )

    def check_stages(self, stages: Sequence[str]) -> tuple[str, ...]:
        """The stages that a retest asks again, in the order of a turn; all where none is named.

        Raises:
            UsageError: If one cannot be asked again.
        """
        unknown = [stage for stage in stages if stage not in self.asked_again]
        if unknown:
            raise UsageError(
                f"--stages: {unknown[0]!r} is no stage of the system {self.name!r} that can be "
                "asked again.",
                why=f"There are {', '.join(self.asked_again)}.",
                hint="Name some of them, or leave the option out for all.",
            )
        return tuple(stage for stage in self.asked_again if stage in (stages or self.asked_again))


def sum_of(ranges: Sequence[CallRange]) -> CallRange:
    """The calls of several things together."""
    return sum(ranges, start=CallRange(0, 0, 0))
