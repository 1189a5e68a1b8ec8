"""The head of a study file: what every system's studies have.

A study file is TOML. Its `system` says which system it is of, and that system's model checks the
rest. Paths in it are relative to the file.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Annotated, Any, ClassVar, Self, TypeVar

from pydantic import BaseModel, ConfigDict, Field

from tutorsim.system_registry import DEFAULT_SYSTEM
from tutorsim.tasks import Task

Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]{1,80}$")]
"""A name that can stand in an episode id."""


class Settings(BaseModel):
    """A table of a study file; keys that it does not know are refused."""

    model_config = ConfigDict(defer_build=True, frozen=True, extra="forbid")


class BenchmarkSettings(Settings):
    """`[benchmarks.NAME]`: which tasks."""

    tasks: str = "builtin"
    """`builtin`, or a file in the published format, relative to the study file."""
    format: str | None = None
    """The benchmark in whose format the file is; the table's own name when left out."""
    limit: int | None = Field(default=None, ge=1, strict=True)
    """Use the first so many tasks; all when left out."""


class BaseModels(Settings):
    """`[models]`: what is sent with every call. Systems add the models of their agents."""

    max_tokens: int = Field(default=1024, ge=1, strict=True)
    """Upper limit of one reply, in tokens."""
    temperature: float | None = Field(default=None, ge=0, le=2, strict=True)
    """Sent with every call where set; models decide whether they take it."""


class BaseStudy(Settings):
    """What every study file has; a system's study adds its own settings and tables."""

    later: ClassVar[Mapping[str, Any]] = {"ask_cut_off_again": False}
    """Settings that came after the first recordings, as nested tables, with what held before there
    were any. The study file of a recording that lacks one means that, and no digest covers it."""

    name: Name
    seed: int = Field(default=0, strict=True)
    system: str = DEFAULT_SYSTEM
    conditions: tuple[str, ...]
    """The conditions that the grid compares."""
    repeats: int = Field(default=1, ge=1, le=99, strict=True)
    ask_cut_off_again: bool = Field(default=True, strict=True)
    """Whether a reply that reached `max_tokens` is asked for once more."""
    benchmarks: Mapping[str, BenchmarkSettings]
    models: BaseModels = BaseModels()
    catalog: dict[str, Any] = Field(default_factory=dict)
    """`[catalog.PART.NAME]`: own entries of the system's catalog."""

    @classmethod
    def recorded(cls, data: Mapping[str, Any]) -> dict[str, Any]:
        """The tables of a recording's study file, with what held before later settings."""
        return merged(cls.later, data)

    def with_earlier_settings(self) -> Self:
        """The study with later settings that its file does not name as they were before."""
        return _earlier(self, self.later)

    def chosen(self) -> dict[str, Any]:
        """The settings that are not their default; of later ones, not what held before."""
        own = self.model_dump(mode="json", by_alias=True, exclude_defaults=True)
        return _without_earlier(own, self.model_dump(mode="json", by_alias=True), self.later)


M = TypeVar("M", bound=BaseModel)


def _earlier(model: M, before: Mapping[str, Any]) -> M:
    changed = {}
    for name, value in before.items():
        if isinstance(value, Mapping):
            changed[name] = _earlier(getattr(model, name), value)
        elif name not in model.model_fields_set:
            changed[name] = value
    return model.model_copy(update=changed)


def _without_earlier(
    own: Mapping[str, Any], whole: Mapping[str, Any], before: Mapping[str, Any]
) -> dict[str, Any]:
    """`own`, with those later settings of `whole` alone that are not what held before."""
    made = dict(own)
    for name, value in before.items():
        now = whole[name]
        if isinstance(value, Mapping):
            now, value = _without_earlier(own.get(name, {}), now, value), {}
        if now != value:
            made[name] = now
        else:
            made.pop(name, None)
    return made


@dataclass(frozen=True)
class EpisodeSpec:
    """One cell of the grid."""

    benchmark: str
    task: Task
    variant: str
    """What stands between task and condition in the id: a kind of student, or settings' name."""
    condition: str
    repeat: int
    """Number of the repeat, from 1."""
    episode_id: str
    """`benchmark.task.variant.condition`, `.factor` where the system has a further factor, `.rNN`
    where the study repeats episodes, and `.cNN` for a continuation in a branch."""
    parent_id: str
    """The episode that a continuation continues; otherwise its own id. Labels are drawn by it."""
    continuation: int = 0
    """Number of the draw, from 1 in a branch; 0 for an episode of its own."""
    factor: str | None = None
    """Value of a further factor of the system's grid; `None` where it has none."""


def shipped_studies() -> dict[str, Path]:
    """Study files that come with the package: name → path."""
    folder = Path(str(resources.files("tutorsim.catalog") / "studies"))
    return {path.stem: path for path in sorted(folder.glob("*.toml"))}


def merged(base: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """Nested tables, in which those of `over` take the place of the others."""
    found = dict(base)
    for key, value in over.items():
        inner = found.get(key)
        if isinstance(value, Mapping) and isinstance(inner, Mapping):
            found[key] = merged(inner, value)
        else:
            found[key] = value
    return found
