"""From a study file, whose mistakes are refused, to a study of its system, and into a recording."""

import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, Literal, TypeVar, get_args, get_origin

from pydantic import BaseModel, ValidationError

from tutorsim.catalog import WORDINGS_FILE, read_wordings, with_overrides, wordings_text
from tutorsim.errors import FolderError, RecordingError, StudyError, UsageError
from tutorsim.kernel.study_file_and_episode_spec import (
    BaseStudy,
    BenchmarkSettings,
    merged,
    shipped_studies,
)
from tutorsim.kernel.system_and_loaded_study import LoadedStudy, System
from tutorsim.regular_files_and_digests import read_named
from tutorsim.system_registry import DEFAULT_SYSTEM, load, refuse_shadowed, system_names
from tutorsim.tasks import Task, dump_tasks, load_tasks

STUDY_FILE: Final = "study.toml"
"""The study file of a recording."""
_LONGEST_ID: Final = 230
"""Characters of an episode's id: a file name of 255 then has room for its endings."""


def system_named(name: str) -> System:
    """The system of a name; `UsageError` if there is none."""
    system: System = load(name, "system")
    return system


def load_study(path: Path, *, overrides: Mapping[str, Any] | None = None) -> LoadedStudy:
    """Read a study file.

    `path`: the TOML file; the bare name of a shipped study works where no such file exists.
    `overrides`: settings that take the file's place, as nested tables. Raises `StudyError` if the
    file cannot be read, a key is unknown or a value is wrong; `CatalogError` if an entry of
    `[catalog]` is wrong; `TaskFileError` if a file of tasks is wrong; `UsageError`
    if another package brings a system by the name of the study's, which is one of ours.
    """
    path = path if path.is_file() else shipped_studies().get(str(path), path)
    system, study = _checked(read_study(path, overrides or {}), path)
    refuse_shadowed(system.name)
    loaded = _in_todays_wordings(system, study, path)
    _check_file_names(loaded, path)
    return loaded


def _check_file_names(loaded: LoadedStudy, path: Path) -> None:
    """Refuse an episode whose files could not be written."""
    for spec in loaded.grid():
        if len(spec.episode_id) > _LONGEST_ID:
            raise StudyError(
                f"{path}: the episode {spec.episode_id[:60]}… has an id of "
                f"{len(spec.episode_id)} characters.",
                why=f"Its files are named after it, which {_LONGEST_ID} characters allow; one that "
                "is no letter, digit or hyphen counts as three or more.",
                hint="Shorten the ids of the tasks, or the names of benchmarks and conditions.",
            )


def _in_todays_wordings(system: System, study: BaseStudy, path: Path) -> LoadedStudy:
    catalog = with_overrides(system.catalog(), study.catalog, where=str(path))
    loaded = system.loaded(study, catalog, _tasks_of(system, study, path.parent), system)
    loaded.check(path)
    return loaded


def load_recorded_study(folder: Path) -> LoadedStudy:
    """Read the study of a recording, with the wordings stored there; today's where none are.

    Raises `StudyError`, `CatalogError` or `TaskFileError` as `load_study`; `RecordingError` if the
    stored wordings cannot be used.
    """
    path = folder / STUDY_FILE
    wordings = read_wordings(folder)
    system, study = _checked(read_study(path, {}), path, recorded=True)
    if wordings is None:
        return _in_todays_wordings(system, study, path)
    try:
        loaded = system.loaded(study, system.catalog(), {}, system).with_wordings(wordings)
    except (ValidationError, AttributeError, TypeError) as error:
        raise RecordingError(
            f"{folder / WORDINGS_FILE} does not hold the wordings of the system {system.name!r}.",
            why=str(error),
            hint="Restore the file from version control.",
        ) from error
    loaded = replace(loaded, tasks=_tasks_of(system, study, folder))
    _refuse_missing_wordings(loaded, folder)
    return loaded


def _refuse_missing_wordings(loaded: LoadedStudy, folder: Path) -> None:
    stored = loaded.wordings()
    for part, names in loaded.used().items():
        missing = sorted(set(names) - set(stored[part]))
        if missing:
            raise RecordingError(
                f"{folder / WORDINGS_FILE} has no {part}.{missing[0]}, which the study can use.",
                why="The file was edited, or another tutorsim recorded the study.",
                hint="Restore the file from version control, or replay with the tutorsim that "
                "recorded it.",
            )


def _checked(
    data: Mapping[str, Any], path: Path, *, recorded: bool = False
) -> tuple[System, BaseStudy]:
    system = _system_of(data, path)
    tables = system.study.recorded(data) if recorded else data
    study = validated_study(tables, system.study, path, example=system.example)
    for name, settings in study.benchmarks.items():
        _check_benchmark(name, settings, system, path)
    return system, study


def _check_benchmark(name: str, settings: BenchmarkSettings, system: System, path: Path) -> None:
    """Refuse a benchmark that no format reads, or that cannot stand under its name."""
    given = settings.format or name
    where = f"{path}, [benchmarks.{name}]"
    if given not in system.tasks and settings.format is None:
        raise StudyError(
            f"{path}, [benchmarks]: the system {system.name!r} has no benchmark {name!r}.",
            why="A file of your own needs a `format`, the benchmark that it is written like.",
            hint=nearest(name, tuple(system.tasks)),
        )
    if given not in system.tasks:
        raise StudyError(
            f"{where}: the system {system.name!r} has no format {given!r}.",
            hint=nearest(given, tuple(system.tasks)),
        )
    if given == name:
        return
    if system.tasks[given].renamed is None:
        raise StudyError(
            f"{where}: tasks in the format {given!r} cannot stand under the name {name!r}.",
            why="What is counted for them goes by the benchmark's own name.",
            hint=f"Name the table [benchmarks.{given}].",
        )
    if name in system.tasks:
        raise StudyError(
            f"{where}: {name!r} is a benchmark of its own, in another format than {given!r}.",
            hint="Give the table a name of your own.",
        )
    if settings.tasks == "builtin":
        raise StudyError(
            f"{where}: the built-in set of {given!r} stands under its own name only.",
            hint="Name a file of your own in `tasks`.",
        )


def _tasks_of(system: System, study: BaseStudy, folder: Path) -> dict[str, tuple[Task, ...]]:
    return {
        benchmark: _named_tasks(benchmark, settings, system, folder)
        for benchmark, settings in study.benchmarks.items()
    }


def _named_tasks(
    benchmark: str, settings: BenchmarkSettings, system: System, folder: Path
) -> tuple[Task, ...]:
    given = settings.format or benchmark
    source = _task_source(settings, folder)
    tasks = load_tasks(given, source, settings.limit, formats=system.tasks)
    renamed = system.tasks[given].renamed
    if given == benchmark or renamed is None:
        return tasks
    return tuple(renamed(task, benchmark) for task in tasks)


def _system_of(data: Mapping[str, Any], path: Path) -> System:
    name = data.get("system", DEFAULT_SYSTEM)
    try:
        return system_named(str(name))
    except UsageError as error:
        raise StudyError(
            f"{path}: system: there is no system {name!r}.",
            why=f"This installation has {', '.join(system_names())}.",
            hint=nearest(str(name), system_names()),
        ) from error


def _task_source(settings: BenchmarkSettings, folder: Path) -> Path | Literal["builtin"]:
    return "builtin" if settings.tasks == "builtin" else folder / settings.tasks


def write_study(loaded: LoadedStudy, folder: Path) -> None:
    """Write `study.toml` into a recording, so that the folder alone replays the study.

    Its wordings and its tasks, in their published format, are written beside it.

    Raises `FolderError` if a file cannot be written.
    """
    import tomli_w  # a replay writes none

    data = loaded.study_table()
    formats = {
        benchmark: loaded.system.tasks[settings.get("format") or benchmark]
        for benchmark, settings in data["benchmarks"].items()
    }
    for benchmark, settings in data["benchmarks"].items():
        settings["tasks"] = formats[benchmark].file.format(benchmark)
    _write_text(folder / STUDY_FILE, tomli_w.dumps(data))
    _write_text(folder / WORDINGS_FILE, wordings_text(loaded.wordings()))
    for benchmark, settings in data["benchmarks"].items():
        tasks, path = loaded.tasks[benchmark], folder / settings["tasks"]
        dump_tasks(benchmark, tasks, path, form=formats[benchmark])


def _write_text(path: Path, text: str) -> None:
    try:
        path.write_text(text, encoding="utf-8", newline="\n")
    except OSError as error:
        raise FolderError(
            f"{path} cannot be written.",
            why=str(error),
            hint="Choose a folder that can be written and has space left.",
        ) from error


# --- Reading and checking a study file ------------------------------------------------------------


def read_study(path: Path, overrides: Mapping[str, Any]) -> dict[str, Any]:
    """The tables of a study file, with overrides put in their places.

    `overrides`: settings that take the file's place, as nested tables. Raises `StudyError` if the
    file cannot be read or is no TOML.
    """
    return merged(_read_toml(path), overrides)


S = TypeVar("S", bound=BaseStudy)


def validated_study(data: Mapping[str, Any], model: type[S], path: Path, *, example: str) -> S:
    """Check the tables of a study file.

    `example`: name of a shipped study of the system, to start from; may be empty. Raises
    `StudyError` on an unknown key, with the nearest known one, or a wrong value.
    """
    _refuse_unknown_keys(data, model, str(path))
    try:
        return model.model_validate(data)
    except StudyError as error:
        raise StudyError(f"{path}: {error.what}", why=error.why, hint=error.hint) from error
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"])
        message = re.sub(r"^Value error, ", "", first["msg"])
        given = "" if first["type"] in ("missing", "value_error") else f" (got {first['input']!r})"
        start = shipped_studies().get(example)
        raise StudyError(
            f"{path}: {place + ': ' if place else ''}{message}{given}.",
            hint=f"A complete study file to start from: {start}." if start else "",
        ) from error


def nearest(name: str, known: Sequence[str]) -> str:
    """What a mistyped name may have meant, or every known one."""
    import difflib  # of refusals alone

    close = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
    return f"Did you mean {close[0]!r}?" if close else "Known are " + ", ".join(known) + "."


def _read_toml(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(read_named(path).decode("utf-8-sig"))
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


def _refuse_unknown_keys(data: Mapping[str, Any], model: type[BaseModel], where: str) -> None:
    """Refuse keys that no setting has, in the tables that are models and in tables of them."""
    fields = {field.alias or name: field for name, field in model.model_fields.items()}
    _refuse(data, tuple(fields), where)
    for name, field in fields.items():
        table = data.get(name)
        if not isinstance(table, Mapping):
            continue
        inner = _model_of(field.annotation)
        if inner is not None:
            _refuse_unknown_keys(table, inner, f"{where.split(', ')[0]}, [{name}]")
        entries = _entries_of(field.annotation)
        if entries is not None:
            names, entry = entries
            if names:
                _refuse(table, names, f"{where}, [{name}]")
            for key, value in table.items():
                if isinstance(value, Mapping):
                    _refuse_unknown_keys(value, entry, f"{where}, [{name}.{key}]")


def _model_of(annotation: Any) -> type[BaseModel] | None:
    is_model = isinstance(annotation, type) and issubclass(annotation, BaseModel)
    return annotation if is_model else None


def _entries_of(annotation: Any) -> tuple[tuple[str, ...], type[BaseModel]] | None:
    """Names that a table of tables can have (none: any), and what each of its tables holds."""
    arguments = get_args(annotation)
    if len(arguments) != 2 or get_origin(annotation) not in (dict, Mapping):
        return None
    entry = _model_of(arguments[1])
    names = get_args(arguments[0]) if get_origin(arguments[0]) is Literal else ()
    return None if entry is None else (names, entry)


def _refuse(table: Mapping[str, Any], known: Sequence[str], where: str) -> None:
    for key in table:
        if key not in known:
            raise StudyError(f"{where}: there is no setting {key!r}.", hint=nearest(key, known))
