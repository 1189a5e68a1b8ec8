"""Reading a run folder: the only way in, and where an older format would be upgraded."""

import hashlib
import json
from collections.abc import Iterator
from functools import cache, reduce
from operator import or_
from pathlib import Path
from types import GenericAlias, new_class
from typing import Any, ClassVar, TypeVar, get_args, get_origin

from pydantic import BaseModel, ValidationError
from pydantic_core import PydanticUndefined

from tutorsim.errors import LogError
from tutorsim.named_files import open_named, read_named
from tutorsim.records.base_record import SCHEMA_VERSION
from tutorsim.records.episode import EpisodeRecord
from tutorsim.records.run_head import RunRecord
from tutorsim.vocabularies import PROTOCOLS
from tutorsim.voting import masses_of

__all__ = [
    "EPISODES_FILE",
    "RUN_FILE",
    "TIMINGS_FILE",
    "read_episodes",
    "read_lines",
    "read_run",
]

RUN_FILE = "run.json"
EPISODES_FILE = "episodes.jsonl"
TIMINGS_FILE = "timings.jsonl"
OWN = f'{{"schema_version":{SCHEMA_VERSION},'.encode()
"""How each line starts that `tutorsim.records.to_line` writes."""
AT_ONCE = 1 << 20
"""Bytes of a log that are read at once; its lines are long."""

R = TypeVar("R", bound=BaseModel)


def read_run(folder: Path) -> RunRecord:
    """Read `run.json` of a run folder, and check that `episodes.jsonl` is the one it names.

    Raises:
        LogError: If a file is missing, truncated, edited, or of another version.
    """
    path, episodes = folder / RUN_FILE, folder / EPISODES_FILE
    try:
        run = _checked(read_named(path).decode(), path, RunRecord, 1)
        with open_named(episodes) as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
    except (OSError, UnicodeDecodeError) as error:
        raise _unreadable(folder, error) from error
    if run.episodes_sha256 not in (None, digest):
        raise LogError(
            f"{episodes} is not the log that {path.name} names.",
            why="Its SHA-256 is another one: the file was cut or edited.",
            hint="Write it again with `tutorsim replay`, into a new folder.",
        )
    return run


def read_episodes(folder: Path) -> Iterator[EpisodeRecord]:
    """Read `episodes.jsonl` of a panel's run folder, one record at a time.

    Raises:
        LogError: If the file is missing, or a line is truncated, of another version, or no record.
    """
    yield from read_lines(folder, EpisodeRecord)


def read_lines(
    folder: Path, record: type[R], *, without: frozenset[str] = frozenset()
) -> Iterator[R]:
    """Read `episodes.jsonl` of any system's run folder, one record at a time.

    Args:
        folder: The run folder.
        record: The system's record.
        without: Fields that nobody will look at: they are not read, and have their default.
            `calls.model` is a field of what stands in another.

    Raises:
        LogError: If the file is missing, or a line is truncated, of another version, or no record.
    """
    path, record = folder / EPISODES_FILE, _without(record, without)
    try:
        with path.open("rb", buffering=AT_ONCE) as lines:
            for number, line in enumerate(lines, start=1):
                yield _as_written(line, record) or _checked(line.decode(), path, record, number)
    except (OSError, UnicodeDecodeError) as error:
        raise _unreadable(path, error) from error


@cache
def _without(model: type[R], fields: frozenset[str]) -> type[R]:
    """A model without some fields: each is its default on the class, and in no line.

    One without a default is missing, so that whoever looks at it all the same fails at once.
    """
    if not fields:
        return model
    own = {name for name in fields if "." not in name}
    inner: dict[str, set[str]] = {}
    for name, _, rest in (name.partition(".") for name in fields - own):
        inner.setdefault(name, set()).add(rest)
    kept = inner.keys() - own
    types = {n: _typed_without(model.model_fields[n].annotation, frozenset(inner[n])) for n in kept}
    defaults = {name: model.model_fields[name].get_default() for name in own | kept}
    space = {
        **{name: value for name, value in defaults.items() if value is not PydanticUndefined},
        "__annotations__": {**dict.fromkeys(own, ClassVar[Any]), **types},
    }
    return new_class(model.__name__, (model,), exec_body=lambda body: body.update(space))


def _typed_without(type_: Any, fields: frozenset[str]) -> Any:
    """The type of a field whose models, `M`, `M | None` or `tuple[M, ...]`, lack some fields."""
    if isinstance(type_, type) and issubclass(type_, BaseModel):
        return _without(type_, fields)
    parts = tuple(_typed_without(part, fields) for part in get_args(type_))
    if not parts:
        return type_
    return GenericAlias(tuple, parts) if get_origin(type_) is tuple else reduce(or_, parts)


def _as_written(line: bytes, model: type[R]) -> R | None:
    """A record of this version that leaves nothing out; `None` for any other text."""
    if not line.startswith(OWN):
        return None
    try:
        record = model.model_validate_json(line)
    except ValidationError:
        return None
    return record if getattr(record, "schema_version", None) == SCHEMA_VERSION else None


def _unreadable(path: Path, error: Exception) -> LogError:
    return LogError(
        f"{path} cannot be read.",
        why=str(error),
        hint="Point at a folder that `tutorsim run` or `tutorsim replay` wrote.",
    )


def _checked(text: str, path: Path, model: type[R], line: int) -> R:
    try:
        data = json.loads(text)
        if "\\u" in text:
            json.dumps(data, ensure_ascii=False).encode()  # refuses lone surrogates
        version = data["schema_version"]
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise LogError(
            f"{path}, line {line}: this is not a complete record.",
            why=str(error),
            hint="The file was cut or edited; write it again with `tutorsim replay`.",
        ) from error
    if version != SCHEMA_VERSION:
        raise LogError(
            f"{path}, line {line}: the record has format version {version!r}.",
            why=f"This tutorsim reads version {SCHEMA_VERSION}.",
            hint="Write the log again from its recording with `tutorsim replay`.",
        )
    try:
        if issubclass(model, EpisodeRecord):
            _complete(data)
        return model.model_validate(data)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"])
        raise _misshapen(f"{path}, line {line}: field {place}: {first['msg']}.") from error
    except (AttributeError, TypeError) as error:
        raise _misshapen(f"{path}, line {line}: a turn or a ballot is no object.") from error


def _misshapen(what: str) -> LogError:
    return LogError(
        what,
        why="The record does not have the logged format.",
        hint="The file was edited; write it again with `tutorsim replay`.",
    )


def _complete(data: dict[str, Any]) -> None:
    """Give ballots the protocol and the masses that their episode and choice imply."""
    for turn in data.get("turns") or ():
        tie_round = turn.get("tie_round") or {}
        for name, source in (
            ("ballots_initial", turn),
            ("ballots_final", turn),
            ("ballots", tie_round),
        ):
            for ballot in source.get(name) or ():
                _complete_ballot(ballot, data.get("condition"))


def _complete_ballot(ballot: dict[str, Any], condition: Any) -> None:
    protocol = ballot.setdefault("protocol", condition)
    choice, labels = ballot.get("parsed"), ballot.get("labels") or {}
    if "mass" in ballot or protocol not in PROTOCOLS:
        return
    roles = list(labels.values())
    if ballot.get("ballot_status") == "abstained":
        choice = None
    elif isinstance(choice, list):
        choice = tuple(choice)
    ballot["mass"] = masses_of(choice, roles, protocol=protocol)
