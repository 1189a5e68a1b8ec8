"""A retest: recorded prompts asked again, and what was said this time.

Two files stand in the run folder beside the log: `retest.json`, the head, and `retest.jsonl`,
one `RetestRecord` a line in the order of the log. The answers that the log holds are not
repeated here; they are the first asking, and these are the further ones.
"""

import hashlib
import json
from pathlib import Path
from typing import Any, Final, NamedTuple

from pydantic import ValidationError

from tutorsim.errors import LogError
from tutorsim.named_files import read_named
from tutorsim.records.base_record import SCHEMA_VERSION, Record
from tutorsim.records.episode import BallotRecord, Failure
from tutorsim.records.run import Provenance

RETEST_HEAD_FILE: Final = "retest.json"
RETEST_FILE: Final = "retest.jsonl"


class RetestVote(Record):
    """One vote of one turn, asked again of all its voters."""

    turn: int
    stage: str
    """The vote's, as the ballots of a log name it."""
    repeats: tuple[tuple[BallotRecord, ...], ...]
    """One entry per repeat: a ballot of every voter, in the order of the log."""
    failures: tuple[Failure, ...] = ()
    """Calls that failed for good. Repeats that lack a ballot for it are not among `repeats`."""


class RetestReply(Record):
    """One prompt whose reply is no ballot, asked again."""

    turn: int
    stage: str
    """Stage of the call."""
    agent: str
    """Who was asked."""
    values: tuple[Any, ...]
    """One entry per repeat: what was read of the reply, in its system's form; `None` where nothing
    could be."""
    failures: tuple[Failure, ...] = ()
    """Calls that failed for good, which have no entry among `values`."""


class RetestRecord(Record):
    """What was asked again of one episode."""

    schema_version: int = SCHEMA_VERSION
    episode_id: str
    votes: tuple[RetestVote | RetestReply, ...]
    """A vote of several voters each, or a single prompt."""


class RetestHead(Record):
    """What was asked again, and what answered."""

    schema_version: int = SCHEMA_VERSION
    recording_digest: str
    """The recording whose prompts were asked again."""
    repeats: int
    """Further askings of every prompt; fewer of a vote where a call failed."""
    stages: tuple[str, ...]
    sample: int | None = None
    """Number of turns drawn; `None` for all."""
    seed: int = 0
    """What the turns were drawn by."""
    provenance: Provenance
    """What answered this time."""
    retest_sha256: str | None = None
    """SHA-256 of `retest.jsonl`."""


class Retest(NamedTuple):
    """A retest as read from a run folder."""

    head: RetestHead
    episodes: tuple[RetestRecord, ...]


def read_retest(folder: Path) -> Retest | None:
    """Read the retest of a run folder.

    `None` if the run has none; `LogError` if its files are damaged or one of the two is missing.
    """
    head_path, path = folder / RETEST_HEAD_FILE, folder / RETEST_FILE
    if not head_path.exists() and not path.exists():
        return None
    try:
        head = RetestHead.model_validate(json.loads(read_named(head_path)))
        data = read_named(path)
        if head.retest_sha256 not in (None, hashlib.sha256(data).hexdigest()):
            raise ValueError(f"{path.name} is not the file that {head_path.name} names")
        lines = data.decode().splitlines()
        return Retest(head, tuple(RetestRecord.model_validate_json(line) for line in lines))
    except (OSError, ValueError, ValidationError) as error:
        raise LogError(
            f"{folder}: the retest beside the log cannot be read.",
            why=str(error).partition("\n")[0],
            hint="Write it again from its recording with `tutorsim replay`.",
        ) from error
