"""Study files, and the grid of episodes that a study stands for.

A study file is TOML. `load_study` checks it, joins it with the catalog and the tasks that it
names, and computes the study digest: SHA-256 over the settings, every wording that a model
sees, and the content of the tasks. Paths in it are relative to the file and not in the digest.
"""

import difflib
import hashlib
import json
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from importlib import resources
from itertools import product
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

import tomli_w
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from tutorsim.catalog import Catalog, load_catalog, with_overrides
from tutorsim.errors import FolderError, StudyError
from tutorsim.records import Branch, StudySettings
from tutorsim.tasks import Task, dump_tasks, load_tasks, safe_id, tasks_digest
from tutorsim.types import (
    CUMULATIVE_BUDGET,
    DEFAULT_ROLES,
    MAX_ROLES,
    MIN_ROLES,
    PUBLISHED_CONDITIONS,
    BallotFormat,
    Benchmark,
    Blinding,
    Condition,
    Protocol,
    TiePolicy,
)

__all__ = [
    "RESERVED_AGENTS",
    "BenchmarkSettings",
    "EpisodeSpec",
    "LoadedStudy",
    "ModelSettings",
    "Study",
    "load_study",
    "shipped_studies",
    "write_study",
]

RESERVED_AGENTS = ("student", "judge", "baseline")
"""Agents that call keys name beside the panel's roles."""

Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]{1,80}$")]


class _Settings(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class BenchmarkSettings(_Settings):
    """`[benchmarks.NAME]`: which tasks."""

    tasks: str = "builtin"
    """`builtin`, or a file in the published format, relative to the study file."""
    limit: int | None = Field(default=None, ge=1, strict=True)
    """Use the first so many tasks; all when left out."""


class ModelSettings(_Settings):
    """`[models]`: identifiers sent with the calls."""

    tutor: str = Field(default="claude-sonnet-4-5", min_length=1)
    judge: str = Field(default="claude-sonnet-4-5", min_length=1)
    student: str = Field(default="claude-haiku-4-5", min_length=1)
    max_tokens: int = Field(default=1024, ge=1, strict=True)
    """Upper limit of one reply, in tokens."""
    temperature: float | None = Field(default=None, ge=0, le=2, strict=True)
    """Sent with every call where set; models decide whether they take it."""


class Study(_Settings):
    """A study file's content. Defaults are the published study's settings."""

    name: Name
    seed: int = Field(default=0, strict=True)
    conditions: tuple[Condition, ...] = PUBLISHED_CONDITIONS
    personas: tuple[Name, ...] = (
        "low_confidence_novice",
        "overconfident_misconception",
        "high_persistence_reflective",
        "easily_frustrated_beginner",
        "help_avoidant",
        "hint_seeking_dependent",
    )
    roles: tuple[Name, ...] = DEFAULT_ROLES
    """The panel, 3 to 8 roles of the catalog; also the default fallback order."""
    baseline_role: Name = "baseline"
    """The role of the single tutor in the `baseline` condition."""
    max_turns: int = Field(default=3, ge=0, le=99, strict=True)
    success_threshold: float = Field(default=0.75, ge=0, le=1, strict=True)
    blinding: Blinding = "per_reader"
    fallback_order: tuple[Name, ...] = ()
    """Role-priority order; the order of `roles` when left out."""
    tie_policy: TiePolicy = "tie_round"
    """What a tied final vote goes to."""
    cumulative_budget: int = Field(default=CUMULATIVE_BUDGET, ge=1, le=1_000_000, strict=True)
    rich_protocol: Protocol = "cumulative"
    """The protocol that decides in the `rich` condition."""
    vote_formats: tuple[BallotFormat, ...] = ()
    """Formats in which every voter is asked about the same final proposals once more.

    Diagnostic, never used for the decision; the condition's own format is not asked again."""
    vote_criterion: str = ""
    """The criterion given to voters; the catalog's when left out."""
    repeats: int = Field(default=1, ge=1, le=99, strict=True)
    benchmarks: dict[Benchmark, BenchmarkSettings]
    models: ModelSettings = ModelSettings()
    catalog: dict[str, Any] = Field(default_factory=dict)
    """`[catalog.roles.NAME]`, `[catalog.personas.NAME]`, `[catalog.prompts]`: own entries."""
    branch: Branch | None = None
    """Written by `tutorsim branch`: what this recording continues, and what it changes."""

    @model_validator(mode="after")
    def _coherent(self) -> "Study":
        for field in ("conditions", "personas", "roles", "fallback_order", "vote_formats"):
            values = getattr(self, field)
            twice = sorted({value for value in values if values.count(value) > 1})
            if twice:
                raise ValueError(f"{field} names {twice[0]!r} twice")
        for field in ("conditions", "personas", "benchmarks"):
            if not getattr(self, field):
                raise ValueError(f"{field} is empty, so the study has no episode")
        if not MIN_ROLES <= len(self.roles) <= MAX_ROLES:
            raise ValueError(
                f"roles names {len(self.roles)}; a panel has {MIN_ROLES} to {MAX_ROLES} roles"
            )
        taken = [role for role in self.roles if role in RESERVED_AGENTS]
        if taken:
            raise ValueError(f"roles names {taken[0]!r}, which call keys need for another agent")
        if self.fallback_order and sorted(self.fallback_order) != sorted(self.roles):
            raise ValueError(
                f"fallback_order {list(self.fallback_order)} must name every role of "
                f"{list(self.roles)} once"
            )
        return self

    @property
    def order(self) -> tuple[str, ...]:
        """The role-priority order in force."""
        return self.fallback_order or self.roles


@dataclass(frozen=True)
class EpisodeSpec:
    """One cell of the grid."""

    benchmark: Benchmark
    task: Task
    persona: str
    condition: Condition
    repeat: int
    """From 1."""
    episode_id: str
    """`benchmark.task.persona.condition`, `.rNN` where the study repeats episodes, and `.cNN`
    for a continuation in a branch."""
    parent_id: str
    """The episode that a continuation continues; otherwise its own id. Labels are drawn by it."""
    continuation: int = 0
    """From 1 in a branch; 0 for an episode of its own."""


@dataclass(frozen=True)
class LoadedStudy:
    """A study with everything that it names."""

    study: Study
    catalog: Catalog
    """Shipped entries and the study's own."""
    tasks: Mapping[Benchmark, tuple[Task, ...]]

    @property
    def criterion(self) -> str:
        """The criterion in force, as voters read it."""
        return self.study.vote_criterion or self.catalog.prompts["vote_criterion"]

    def prompt_digest(self) -> str:
        """SHA-256 over the templates and over the roles and personas that the study uses."""
        study = self.study
        later = (study.branch and study.branch.roles) or ()
        roles = {*study.roles, *later, study.baseline_role}
        used = Catalog(
            roles={name: self.catalog.roles[name] for name in sorted(roles)},
            personas={name: self.catalog.personas[name] for name in sorted(study.personas)},
            prompts=self.catalog.prompts,
        )
        return used.digest()

    def digest(self) -> str:
        """SHA-256 over settings, wordings and tasks.

        Paths are not in it, nor how many futures of which episodes a branch has: it may grow.
        """
        settings = self.settings().model_dump(mode="json")
        if settings["branch"] is not None:
            del settings["branch"]["continuations"], settings["branch"]["episodes"]
        models = self.study.models.model_dump(mode="json")
        tasks = {name: tasks_digest(tasks) for name, tasks in self.tasks.items()}
        value = [settings, models, self.prompt_digest(), tasks]
        text = json.dumps(value, sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()

    def settings(self) -> StudySettings:
        """The settings that the run log carries."""
        study = self.study
        models = study.models
        return StudySettings(
            name=study.name,
            seed=study.seed,
            conditions=study.conditions,
            personas=study.personas,
            roles=study.roles,
            baseline_role=study.baseline_role,
            benchmarks=tuple(self.tasks),
            max_turns=study.max_turns,
            success_threshold=study.success_threshold,
            blinding=study.blinding,
            fallback_order=study.order,
            cumulative_budget=study.cumulative_budget,
            vote_criterion=self.criterion,
            repeats=study.repeats,
            tie_policy=study.tie_policy,
            rich_protocol=study.rich_protocol,
            vote_formats=study.vote_formats,
            models={"tutor": models.tutor, "judge": models.judge, "student": models.student},
            branch=study.branch,
        )

    def alternative(self, branch: Branch) -> "LoadedStudy":
        """The study with what a branch changes in force, as it is once the path is left."""
        study = self.study
        roles = branch.roles or study.roles
        order = branch.fallback_order or study.order
        changed = {
            "roles": roles,
            "fallback_order": tuple(sorted(roles, key=partial(_place, order))),
            "tie_policy": branch.tie_policy or study.tie_policy,
            "rich_protocol": branch.rule or study.rich_protocol,
            "models": study.models.model_copy(update={"tutor": branch.model or study.models.tutor}),
            "branch": None,
        }
        return replace(self, study=study.model_copy(update=changed))

    def grid(self) -> Iterator[EpisodeSpec]:
        """Every episode, tasks outermost, repeats innermost: the order of the log.

        A branch has the episodes that it covers or continues, each continuation one.
        """
        for spec in self._whole_grid():
            yield from _continued(spec, self.study.branch)

    def _whole_grid(self) -> Iterator[EpisodeSpec]:
        study = self.study
        for benchmark, tasks in self.tasks.items():
            cells = product(tasks, study.personas, study.conditions, range(1, study.repeats + 1))
            for task, persona, condition, repeat in cells:
                name = _episode_id(
                    (benchmark, safe_id(task.task_id), persona, condition),
                    repeat if study.repeats > 1 else None,
                )
                yield EpisodeSpec(benchmark, task, persona, condition, repeat, name, name)


def _place(order: Sequence[str], role: str) -> int:
    return order.index(role) if role in order else len(order)


def _continued(spec: EpisodeSpec, branch: Branch | None) -> Iterator[EpisodeSpec]:
    if branch is None or spec.episode_id in branch.covered:
        yield spec
    elif spec.episode_id in branch.episodes:
        for number in range(1, branch.continuations + 1):
            name = f"{spec.episode_id}.c{number:02d}"
            yield replace(spec, episode_id=name, continuation=number)


def _episode_id(parts: Sequence[str], repeat: int | None) -> str:
    tail = () if repeat is None else (f"r{repeat:02d}",)
    return ".".join((*parts, *tail))


def shipped_studies() -> dict[str, Path]:
    """Study files that come with the package: name → path."""
    folder = Path(str(resources.files("tutorsim.catalog") / "studies"))
    return {path.stem: path for path in sorted(folder.glob("*.toml"))}


def load_study(path: Path, *, overrides: Mapping[str, Any] | None = None) -> LoadedStudy:
    """Read a study file.

    Args:
        path: The TOML file; the bare name of a shipped study works where no such file exists.
        overrides: Settings that take the file's place, as nested tables.

    Raises:
        StudyError: If the file cannot be read, a key is unknown or a value is wrong.
        CatalogError: If an entry of `[catalog]` is wrong.
        TaskFileError: If a file of tasks is wrong.
    """
    path = path if path.is_file() else shipped_studies().get(str(path), path)
    data = _merged(_read_toml(path), overrides or {})
    _refuse_unknown_keys(data, Study, str(path))
    study = _validated(data, path)
    catalog = with_overrides(load_catalog(), study.catalog, where=str(path))
    _refuse_unknown_names(study, catalog, path)
    tasks = {
        benchmark: load_tasks(benchmark, _task_source(settings, path.parent), settings.limit)
        for benchmark, settings in study.benchmarks.items()
    }
    return LoadedStudy(study, catalog, tasks)


def write_study(loaded: LoadedStudy, folder: Path) -> None:
    """Write `study.toml` into a recording, so that the folder alone replays the study.

    Tasks that came from the user's files are written beside it in their published format.

    Raises:
        FolderError: If a file cannot be written.
    """
    data = loaded.study.model_dump(mode="json", exclude_none=True, exclude_defaults=False)
    for benchmark, settings in data["benchmarks"].items():
        if settings["tasks"] != "builtin":
            settings["tasks"] = f"tasks.{benchmark}.jsonl"
            dump_tasks(benchmark, loaded.tasks[benchmark], folder / settings["tasks"])
    path = folder / "study.toml"
    try:
        path.write_text(tomli_w.dumps(data), encoding="utf-8", newline="\n")
    except OSError as error:
        raise FolderError(
            f"{path} cannot be written.",
            why=str(error),
            hint="Choose a folder that can be written and has space left.",
        ) from error


def _task_source(settings: BenchmarkSettings, folder: Path) -> Path | Literal["builtin"]:
    return "builtin" if settings.tasks == "builtin" else folder / settings.tasks


def _read_toml(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        shipped = ", ".join(shipped_studies())
        raise StudyError(
            f"The study file {path} cannot be read.",
            why=str(error.strerror or error),
            hint=f"Name a TOML file, or a shipped study: {shipped}.",
        ) from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise StudyError(
            f"{path} is no TOML file.", why=str(error), hint="Correct the file at that place."
        ) from error


def _merged(base: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    merged = dict(base)
    for key, value in over.items():
        inner = merged.get(key)
        both = isinstance(value, Mapping) and isinstance(inner, Mapping)
        merged[key] = _merged(inner, value) if both and isinstance(inner, Mapping) else value
    return merged


def _refuse_unknown_keys(data: Mapping[str, Any], model: type[BaseModel], where: str) -> None:
    """Refuse keys that no setting has, at the top level and in the known tables."""
    _refuse(data, tuple(model.model_fields), where)
    benchmarks = data.get("benchmarks", {})
    if isinstance(benchmarks, Mapping):
        _refuse(benchmarks, get_args(Benchmark), f"{where}, [benchmarks]")
        for name, table in benchmarks.items():
            if isinstance(table, Mapping):
                _refuse(
                    table, tuple(BenchmarkSettings.model_fields), f"{where}, [benchmarks.{name}]"
                )
    if isinstance(data.get("models"), Mapping):
        _refuse(data["models"], tuple(ModelSettings.model_fields), f"{where}, [models]")


def _refuse(table: Mapping[str, Any], known: Sequence[str], where: str) -> None:
    for key in table:
        if key not in known:
            raise StudyError(f"{where}: there is no setting {key!r}.", hint=_nearest(key, known))


def _nearest(name: str, known: Sequence[str]) -> str:
    close = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
    return f"Did you mean {close[0]!r}?" if close else "Known are " + ", ".join(known) + "."


def _validated(data: Mapping[str, Any], path: Path) -> Study:
    try:
        return Study.model_validate(data)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"])
        message = re.sub(r"^Value error, ", "", first["msg"])
        given = "" if first["type"] in ("missing", "value_error") else f" (got {first['input']!r})"
        raise StudyError(
            f"{path}: {place + ': ' if place else ''}{message}{given}.",
            hint=f"A complete study file to start from: {shipped_studies()['published']}.",
        ) from error


def _refuse_unknown_names(study: Study, catalog: Catalog, path: Path) -> None:
    personas, roles = tuple(catalog.personas), tuple(catalog.roles)
    wanted = [("personas", name, personas) for name in study.personas]
    later = (study.branch and study.branch.roles) or ()
    wanted += [("roles", name, roles) for name in (*study.roles, *later)]
    wanted += [("baseline_role", study.baseline_role, roles)]
    for field, name, known in wanted:
        if name not in known:
            part = "personas" if field == "personas" else "roles"
            raise StudyError(
                f"{path}: {field}: the catalog has no {name!r}.",
                why=_nearest(name, known),
                hint=f"Own ones are defined under [catalog.{part}.{name}].",
            )
