"""Problems with stages, and nine-message scenarios: readers, writers and the original sets.

* `lesson`: TOML (`[[lesson]]`) or a JSON list of `id, problem, solution, stages`; four stages of
  `name, goals, tasks`, each task `id` and `text`.
* `scenario`: a JSON list of `id, kind, difficulty, problem, solution, messages, expected,
  reference`; nine messages of `name` and `text`.
"""

import json
import tomllib
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Annotated, Any, ClassVar, Final, Literal, TypeVar, get_args

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from tutorsim.errors import TaskFileError
from tutorsim.regular_files_and_digests import read_named
from tutorsim.tasks import Task

ScenarioKind = Literal[
    "error_propagation",
    "self_correction",
    "self_affirmation",
    "in_depth_discussion",
    "emotional_companionship",
    "classroom_management",
    "context_memory",
    "role_division",
]
"""What leads to the tenth message."""
KINDS: Final[tuple[ScenarioKind, ...]] = get_args(ScenarioKind)
T = TypeVar("T", bound="_GroupTask")
N_STAGES: Final = 4
N_MESSAGES: Final = 9

Text = Annotated[str, Field(min_length=1)]
Id = Annotated[str, Field(min_length=1, max_length=60)]


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", str_strip_whitespace=True)


class StageTask(_Part):
    """One line of a stage's checklist."""

    id: Text
    """Id such as `3.2`."""
    text: Text


class StagePlan(_Part):
    """One of the four stages."""

    name: Text
    goals: Text
    tasks: tuple[StageTask, ...] = Field(min_length=1)
    """The last one is to propose moving on."""


Checklist = tuple[StagePlan, ...]


class _GroupTask(_Part):
    benchmark: ClassVar[str]
    id: Id

    @property
    def task_id(self) -> str:
        return self.id

    def published(self) -> dict[str, Any]:
        """The task in the form that its reader takes."""
        return self.model_dump(mode="json")


class Lesson(_GroupTask):
    """A problem with its stages."""

    benchmark = "lesson"
    problem: Text
    solution: Text
    """No agent sees it; raters and readers do."""
    stages: Checklist

    @model_validator(mode="after")
    def _whole(self) -> "Lesson":
        if len(self.stages) != N_STAGES:
            raise ValueError(f"a lesson has {N_STAGES} stages, this one has {len(self.stages)}")
        ids = [task.id for stage in self.stages for task in stage.tasks]
        twice = [name for name in ids if ids.count(name) > 1]
        if twice:
            raise ValueError(f"task id {twice[0]!r} is there twice")
        return self


class ScriptedMessage(_Part):
    """One of the nine messages before the duel."""

    name: Text
    """An agent, or `learner`."""
    text: Text


class _Expected(_Part):
    speaker: Text
    act: Text


class Scenario(_GroupTask):
    """Nine messages, and who should say what in the tenth."""

    benchmark = "scenario"
    kind: ScenarioKind
    difficulty: Literal["easy", "medium", "hard"]
    problem: Text
    solution: Text
    messages: tuple[ScriptedMessage, ...]
    expected: _Expected
    """Never shown to an agent, evaluator or judge."""
    reference: Text
    """A good tenth message; shown to raters under `rubric = "reference"` only."""

    @model_validator(mode="after")
    def _whole(self) -> "Scenario":
        if len(self.messages) != N_MESSAGES:
            raise ValueError(
                f"a scenario has {N_MESSAGES} messages, this one has {len(self.messages)}"
            )
        return self

    @property
    def speakers(self) -> set[str]:
        """Everybody that the scenario names."""
        return {message.name for message in self.messages} | {self.expected.speaker}


def read_lessons(path: Path) -> tuple[Lesson, ...]:
    """Read a file of lessons, TOML or JSON by its extension.

    Raises `TaskFileError` naming file, entry and field.
    """
    return _tasks(Lesson, _read(path), str(path))


def read_scenarios(path: Path) -> tuple[Scenario, ...]:
    """Read a file of scenarios, JSON or TOML by its extension.

    Raises `TaskFileError` naming file, entry and field.
    """
    return _tasks(Scenario, _read(path), str(path))


@cache
def builtin_lessons() -> tuple[Lesson, ...]:
    """The original lessons that come with the package."""
    name = "lessons.toml"
    return _tasks(Lesson, tomllib.loads(_shipped(name)), name)


@cache
def builtin_scenarios() -> tuple[Scenario, ...]:
    """The original scenarios that come with the package, two of each kind."""
    name = "scenarios.json"
    return _tasks(Scenario, json.loads(_shipped(name)), name)


def tasks_text(tasks: Sequence[Task]) -> str:
    """Lessons or scenarios as the JSON list that their readers take."""
    return json.dumps([task.published() for task in tasks], ensure_ascii=False, indent=1) + "\n"


def _shipped(name: str) -> str:
    return (resources.files(__package__) / name).read_text(encoding="utf-8")


def _read(path: Path) -> object:
    try:
        text = read_named(path).decode()
        return tomllib.loads(text) if path.suffix == ".toml" else json.loads(text)
    except OSError as error:
        raise TaskFileError(
            f"{path} cannot be read.", why=error.strerror or str(error), hint="Name another file."
        ) from error
    except (ValueError, RecursionError) as error:
        raise TaskFileError(
            f"{path} is neither TOML nor JSON.", why=str(error), hint="Correct it at that place."
        ) from error


def _tasks(kind: type[T], value: object, file: str) -> tuple[T, ...]:
    entries = _entries(value, kind.benchmark, file)
    tasks = tuple(_entry(kind, entry, i, file) for i, entry in enumerate(entries, start=1))
    _check_ids([task.id for task in tasks], file)
    return tasks


def _entries(value: object, name: str, file: str) -> Sequence[object]:
    entries = value.get(name) if isinstance(value, Mapping) else value
    if not isinstance(entries, list) or not entries:
        raise TaskFileError(
            f"{file} has no {name}.",
            why=f"It holds neither a list nor [[{name}]] tables.",
            hint=f"Write a JSON list or [[{name}]] tables; `tutorsim guide group` shows both.",
        )
    return entries


def _entry(kind: type[T], entry: object, place: int, file: str) -> T:
    try:
        return kind.model_validate(entry)
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(str(part) for part in first["loc"])
        name = entry.get("id", place) if isinstance(entry, Mapping) else place
        raise TaskFileError(
            f"{file}: entry {name!r}: {field + ': ' if field else ''}"
            f"{first['msg'].removeprefix('Value error, ')}.",
            why=f"{kind.__name__}s have the fields " + ", ".join(kind.model_fields) + ".",
            hint="Correct the entry; `tutorsim guide group` shows the form.",
        ) from error


def _check_ids(ids: Sequence[str], file: str) -> None:
    folded = [name.casefold() for name in ids]
    twice = [name for name, fold in zip(ids, folded, strict=True) if folded.count(fold) > 1]
    if twice:
        raise TaskFileError(
            f"{file}: the id {twice[0]!r} is there twice.",
            why="Ids become file names, where letter case does not count.",
            hint="Give every entry an id of its own.",
        )
