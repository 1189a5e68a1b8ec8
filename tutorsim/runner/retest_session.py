"""What a retest's folder holds when a command begins: nothing, a part, or a whole retest.

As for a recording, a session file stands in the folder while the retest is being made, taken up
again or given more repeats. A retest only ever grows: what it asked, a later command asks too.
"""

import hashlib
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from pydantic import BaseModel, ConfigDict, ValidationError

from tutorsim.errors import RecordingError, UsageError
from tutorsim.replay import check_recordable, make_folder, package_versions, write_atomic
from tutorsim.replay.forms import cassette_file
from tutorsim.replay.retest import (
    RetestEntry,
    RetestManifest,
    read_retest_manifest,
    retest_folder,
)
from tutorsim.retest import Design
from tutorsim.runner.opening import Recording
from tutorsim.types import Stage

__all__ = ["RetestSession", "earlier_retest", "open_retest_session"]

SESSION_FILE: Final = ".retest.json"


class _Begun(BaseModel):
    """The session file."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    study_digest: str
    repeats: int
    stages: tuple[Stage, ...]
    sample: int | None
    seed: int
    started: str
    latest: str
    packages: dict[str, str]

    @property
    def design(self) -> Design:
        return Design(self.repeats, self.stages, self.sample, self.seed)


class RetestSession(BaseModel):
    """What stays the same over all commands that make one retest."""

    model_config = ConfigDict(frozen=True)

    folder: Path
    started: str
    """First day, ISO date in UTC."""
    latest: str
    """Day of the command before this one; today for the first."""
    today: str
    packages: dict[str, str]
    earlier: RetestManifest | None
    """What was finished before."""

    def finish(self) -> None:
        """Forget the session: its manifest is written."""
        (self.folder / SESSION_FILE).unlink(missing_ok=True)


def open_retest_session(recording: Recording, design: Design) -> RetestSession:
    """Begin to retest a recording, or go on with it.

    Raises:
        UsageError: If the folder holds, or was to hold, what this design does not ask.
        RecordingError: If what it holds is damaged, edited, compressed or of another study.
        FolderError: If it cannot be written.
    """
    folder, today = retest_folder(recording.folder), datetime.now(UTC).date().isoformat()
    make_folder(folder)
    earlier, begun = _found(recording, design)
    if begun is None and earlier is not None:
        for entry in earlier.episodes:
            _check_unedited(folder, entry)
    started, latest, packages = today, today, package_versions()
    if begun is not None:
        started, latest, packages = begun.started, begun.latest, begun.packages
    elif earlier is not None:
        started = earlier.provenance.recorded_from or today
        latest, packages = earlier.provenance.recorded_to or today, earlier.packages
    head = _Begun(
        study_digest=recording.manifest.study_digest,
        **vars(design),
        started=started,
        latest=today,
        packages=packages,
    )
    write_atomic(folder / SESSION_FILE, head.model_dump_json().encode())
    return RetestSession(
        folder=folder,
        started=started,
        latest=latest,
        today=today,
        packages=packages,
        earlier=earlier,
    )


def earlier_retest(recording: Recording, design: Design) -> RetestManifest | None:
    """The finished retest that a design goes on with; `None` where there is none.

    Raises:
        UsageError, RecordingError: As `open_retest_session`.
    """
    return _found(recording, design)[0]


def _found(recording: Recording, design: Design) -> tuple[RetestManifest | None, _Begun | None]:
    """What was finished and what was begun, both of this study and within the design."""
    folder, study = retest_folder(recording.folder), recording.manifest.study_digest
    check_recordable(folder)
    earlier, begun = read_retest_manifest(folder), _begun(folder)
    if earlier is not None:
        held = Design(earlier.repeats, earlier.stages, earlier.sample, earlier.seed)
        _check_study(folder, earlier.study_digest, study)
        _check_design(folder, held, design)
    if begun is not None:
        _check_study(folder, begun.study_digest, study)
        _check_design(folder, begun.design, design)
    return earlier, begun


def _begun(folder: Path) -> _Begun | None:
    path = folder / SESSION_FILE
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


def _check_unedited(folder: Path, entry: RetestEntry) -> None:
    path = cassette_file(folder, entry.episode_id, "text")
    if path.is_file() and hashlib.sha256(path.read_bytes()).hexdigest() != entry.cassette_sha256:
        raise RecordingError(
            f"{path} was edited after it was recorded.",
            why="Its digest is not the manifest's, so nothing is written over it.",
            hint="Restore the file from version control, or move it away to ask its calls again.",
        )
