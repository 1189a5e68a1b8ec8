"""Reading a run folder: the only way in, and where an older format would be upgraded."""

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from tutorsim.errors import LogError
from tutorsim.records.base import SCHEMA_VERSION
from tutorsim.records.episode import EpisodeRecord
from tutorsim.records.run import RunRecord
from tutorsim.types import PROTOCOLS
from tutorsim.voting import masses_of

__all__ = ["EPISODES_FILE", "RUN_FILE", "TIMINGS_FILE", "read_episodes", "read_run"]

RUN_FILE = "run.json"
EPISODES_FILE = "episodes.jsonl"
TIMINGS_FILE = "timings.jsonl"
OWN = f'{{"schema_version":{SCHEMA_VERSION},'
"""How each line starts that `tutorsim.records.to_line` writes."""

R = TypeVar("R", bound=BaseModel)


def read_run(folder: Path) -> RunRecord:
    """Read `run.json` of a run folder, and check that `episodes.jsonl` is the one it names.

    Raises:
        LogError: If a file is missing, truncated, edited, or of another version.
    """
    path, episodes = folder / RUN_FILE, folder / EPISODES_FILE
    try:
        run = _checked(path.read_text(encoding="utf-8"), path, RunRecord, 1)
        with episodes.open("rb") as file:
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
    """Read `episodes.jsonl` of a run folder, one record at a time.

    Raises:
        LogError: If the file is missing, or a line is truncated, of another version, or no record.
    """
    path = folder / EPISODES_FILE
    try:
        with path.open(encoding="utf-8") as lines:
            for number, line in enumerate(lines, start=1):
                yield _as_written(line) or _checked(line, path, EpisodeRecord, number)
    except (OSError, UnicodeDecodeError) as error:
        raise _unreadable(path, error) from error


def _as_written(line: str) -> EpisodeRecord | None:
    """A record of this version that leaves nothing out; `None` for any other text."""
    if not line.startswith(OWN):
        return None
    try:
        record = EpisodeRecord.model_validate_json(line)
    except ValidationError:
        return None
    return record if record.schema_version == SCHEMA_VERSION else None


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
        if model is EpisodeRecord:
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
