"""What a retest's folder holds when a command begins: nothing, a part, or a whole retest.

As for a recording, a session file stands in the folder while the retest is being made, taken up
again or given more repeats. A retest only ever grows: what it asked, a later command asks too.
"""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, NamedTuple

from pydantic import BaseModel, ConfigDict, ValidationError

from tutorsim.errors import RecordingError, UsageError
from tutorsim.replay import check_recordable, make_folder, write_atomic
from tutorsim.replay.provenance import today
from tutorsim.replay.retest_folder import (
    RETEST_SESSION_FILE,
    RetestManifest,
    read_retest_manifest,
    retest_folder,
)
from tutorsim.retest_flow import Design
from tutorsim.runner.open_recording import Recording
from tutorsim.runner.recording_session import (
    BaseSession,
    check_as_recorded,
    days_and_packages,
)

__all__ = ["Held", "RetestSession", "held_retest", "open_retest_session"]

RESTORE: Final = "Restore the file from version control, or move it away to ask its calls again."


class _Begun(BaseModel):
    """The session file."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    study_digest: str
    repeats: int
    stages: tuple[str, ...]
    sample: int | None
    seed: int
    ask_cut_off_again: bool = False
    started: str
    latest: str
    packages: dict[str, str]


@dataclass(frozen=True)
class RetestSession(BaseSession):
    """What stays the same over all commands that make one retest."""

    file = RETEST_SESSION_FILE

    earlier: RetestManifest | None


class Held(NamedTuple):
    """What a retest's folder holds, of this study and within a design."""

    design: Design
    """The design; second askings of cut-off replies as they were begun."""
    finished: RetestManifest | None
    begun: _Begun | None


def open_retest_session(recording: Recording, design: Design) -> RetestSession:
    """Begin to retest a recording, or go on with it.

    Raises:
        UsageError: If the folder holds, or was to hold, what this design does not ask.
        RecordingError: If what it holds is damaged, edited, compressed or of another study.
        FolderError: If it cannot be written.
    """
    folder, day = retest_folder(recording.folder), today()
    make_folder(folder)
    design, earlier, begun = held_retest(recording, design)
    if begun is None and earlier is not None:
        for entry in earlier.episodes:
            check_as_recorded(folder, entry, restore=RESTORE)
    if begun is None:
        kept = days_and_packages(earlier)
    else:
        kept = {name: getattr(begun, name) for name in ("started", "latest", "packages")}
    study = recording.manifest.study_digest
    head = _Begun(study_digest=study, **vars(design), **{**kept, "latest": day})
    write_atomic(folder / RETEST_SESSION_FILE, head.model_dump_json().encode())
    return RetestSession(folder, **kept, today=day, earlier=earlier)


def held_retest(recording: Recording, design: Design) -> Held:
    """What a design goes on with.

    Raises:
        UsageError, RecordingError: As `open_retest_session`.
    """
    folder, study = retest_folder(recording.folder), recording.manifest.study_digest
    check_recordable(folder)
    earlier, begun = read_retest_manifest(folder), _begun(folder)
    for one in (earlier, begun):
        if one is not None:
            _check_study(folder, one.study_digest, study)
            _check_design(folder, Design.of(one), design)
    known = begun or earlier
    again = recording.loaded.if_cut_off is not None if known is None else known.ask_cut_off_again
    return Held(replace(design, ask_cut_off_again=again), earlier, begun)


def _begun(folder: Path) -> _Begun | None:
    path = folder / RETEST_SESSION_FILE
    try:
        return _Begun.model_validate_json(path.read_bytes())
    except FileNotFoundError:
        return None
    except (OSError, ValidationError) as error:
        raise RecordingError(
            f"{path} cannot be read.",
            why=str(error).partition("\n")[0],
            hint="Move the folder away to ask everything again, or remove this file to go on.",
        ) from error


def _check_study(folder: Path, held: str, wanted: str) -> None:
    if held != wanted:
        raise RecordingError(
            f"{folder} holds the retest of another study.",
            why="Its study digest is not that of the recording around it.",
            hint="Move the folder away.",
        )


def _check_design(folder: Path, held: Design, wanted: Design) -> None:
    if wanted.covers(held):
        return
    drawn = "all turns" if held.sample is None else f"--sample {held.sample} --seed {held.seed}"
    raise UsageError(
        f"{folder} holds more than this command asks.",
        why=f"It was made with --repeats {held.repeats} --stages {','.join(held.stages)} and "
        f"{drawn}, and what was paid for is kept.",
        hint="Ask for at least as much, or move the folder away.",
    )
