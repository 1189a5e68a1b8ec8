"""Verifying: does a recording still give the bytes that it gave when it was made?"""

import hashlib
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Final, Literal

from tutorsim.catalog import WordingNames, Wordings
from tutorsim.errors import CheckFailed, FalseManifest, LogError, ReplayError, TutorsimError
from tutorsim.kernel.system_and_loaded_study import System
from tutorsim.records import EPISODES_FILE
from tutorsim.replay import AnsweredBy, EpisodeEntry, Manifest, VerdictStore
from tutorsim.replay.manifests_of_recordings_and_retests_provenance import (
    Digests,
    RetestManifest,
    retest_folder,
)
from tutorsim.replay.recorded_calls_event_streams_and_mismatches import (
    around,
    first_difference,
    first_place,
)
from tutorsim.runner.find_and_check_recording import (
    Recording,
    check_drift,
    check_entry,
    check_files,
    check_head,
    check_kept,
    check_provenance,
    open_recording,
)
from tutorsim.runner.play_recorded_episodes_and_retests import (
    Replayed,
    RetestFacts,
    RetestPlayer,
    open_retest,
)
from tutorsim.runner.replay_into_run_folder_in_several_processes import OnProgress, replay_each

# --- Wordings compared ---------------------------------------------------------------------------


@dataclass(frozen=True)
class Reworded:
    """An entry that is worded otherwise today."""

    name: str
    """Part, name and, in a table, field: `prompts.vote` or `roles.motivation.means`."""
    recorded: str
    """The recorded text around the first difference, escaped."""
    today: str | None
    """The text of today around the same place; `None` where there is none of that name."""
    line: int
    """Line of the first difference, from 1."""

    def __str__(self) -> str:
        now = "today there is none" if self.today is None else f"today {self.today}"
        return f"{self.name}, line {self.line}: recorded {self.recorded}, {now}."


def reworded(recorded: Wordings, today: Wordings, names: WordingNames) -> tuple[Reworded, ...]:
    """The entries that differ, by part and name.

    The recorded wordings hold every one of the names; those of today may lack some.
    """
    return tuple(
        found
        for part, entries in names.items()
        for name in sorted(entries)
        for found in _compared(f"{part}.{name}", recorded[part][name], today[part].get(name))
    )


def _compared(name: str, recorded: Any, today: Any) -> Iterator[Reworded]:
    if isinstance(recorded, dict) and isinstance(today, dict):
        for field, value in recorded.items():
            yield from _compared(f"{name}.{field}", value, today.get(field))
    elif recorded != today:
        yield _difference(name, str(recorded), None if today is None else str(today))


def _difference(name: str, recorded: str, today: str | None) -> Reworded:
    at = 0 if today is None else first_place(recorded, today)
    return Reworded(
        name=name,
        recorded=around(recorded, at),
        today=None if today is None else around(today, at),
        line=recorded.count("\n", 0, at) + 1,
    )


# --- Verifying -----------------------------------------------------------------------------------

OF_RETEST: Final = "(retest)"
"""What the names of findings end in that are of the retest, and not of the recording itself."""

WordingsName = Literal["recorded", "current"]
"""`recorded`: do the recording's own wordings give its bytes? `current`: would today's?"""


@dataclass(frozen=True)
class Finding:
    """One episode that does not give the recorded bytes."""

    episode_id: str
    error: TutorsimError
    """What differs; its exit code says of what kind the finding is."""


@dataclass(frozen=True)
class Verification:
    """What came of verifying a recording."""

    recording: Recording
    episodes: int
    calls: int
    """Recorded calls, those of a retest among them."""
    seconds: float
    """Time that the episodes took, summed."""
    findings: tuple[Finding, ...]
    unvouched: tuple[str, ...]
    """What the manifest says of its provenance and no cassette does."""
    reworded: tuple[Reworded, ...] | None = None
    """Wordings of today that are not the recorded ones; `None` where that was not asked."""

    @property
    def same(self) -> int:
        """Number of episodes that give the recorded bytes."""
        others = {finding.episode_id for finding in self.findings}
        return sum(spec.episode_id not in others for spec in self.recording.specs)

    @property
    def is_manifest_true(self) -> bool:
        """Whether nothing in the manifest is contradicted by the cassettes."""
        return not any(
            isinstance(f.error, FalseManifest) and not f.episode_id.endswith(OF_RETEST)
            for f in self.findings
        )

    @property
    def exit_code(self) -> int:
        """0, or the code of the first finding.

        Under today's wordings a call that would be another one is an answer, and no fault of
        the recording: 1.
        """
        codes = [finding.error.exit_code for finding in self.findings]
        if self.reworded is None:
            return codes[0] if codes else 0
        negative = (ReplayError.exit_code, CheckFailed.exit_code)
        faults = [code for code in codes if code not in negative]
        return faults[0] if faults else int(bool(codes or self.reworded))


def verify(
    folder: Path,
    *,
    workers: int | None = None,
    against: Path | None = None,
    wordings: WordingsName = "recorded",
    on_progress: OnProgress = lambda done, total: None,
) -> Verification:
    """Replay a recording and compare every episode with the digest taken when it was recorded.

    A retest of the recording is played too, and compared likewise. `against` is a run folder of the
    recording, to name the field in which a line differs; `wordings` says whose wordings the calls
    are made of; `workers` of `None` takes as many as pay off. A recording that as a whole cannot be
    replayed is a `RecordingError`.
    """
    recording = open_recording(folder)
    differ = None
    if wordings == "current":
        differ = _reworded(recording)
        recording = replace(recording, loaded=recording.loaded.in_todays_wordings())
    logged = _Lines(against) if against is not None else None
    findings: list[Finding] = []
    seconds, answered_by, digest = 0.0, AnsweredBy(), hashlib.sha256()
    calls = sum(entry.calls for entry in recording.manifest.episodes)
    again: list[Finding] = []
    retest = open_retest(recording)
    facts = None if retest is None else RetestFacts(retest)
    for one in replay_each(recording, workers=workers, with_entries=True, on_progress=on_progress):
        seconds += one.seconds
        answered_by.join(one.answered_by or AnsweredBy())
        digest.update(f"{one.line}\n".encode())
        entry = recording.entries[one.episode_id]
        differs = partial(_differs, one, entry, logged, recording.loaded.system)
        findings += _checked(one, entry, recording.manifest, differs)
        if retest is not None and facts is not None and one.line is not None:
            again += _retested(retest, facts, one)
    if retest is not None and facts is not None:
        calls += sum(entry.calls for entry in retest.entries.values())
        if not findings:  # else episodes are missing that the head speaks of
            again = [*_of_head(facts, clean=not again), *again]
    findings += _whole(recording, answered_by, digest.hexdigest(), clean=not findings)
    findings += again
    findings += _files(recording, retest)
    return Verification(
        recording=recording,
        episodes=len(recording.specs),
        calls=calls,
        seconds=seconds,
        findings=tuple(findings),
        unvouched=answered_by.unvouched(recording.manifest.provenance),
        reworded=differ,
    )


def _reworded(recording: Recording) -> tuple[Reworded, ...]:
    loaded = recording.loaded
    today = loaded.todays_catalog().wordings()
    return reworded(loaded.catalog.wordings(), today, loaded.used())


def _checked(
    one: Replayed,
    entry: Digests,
    head: Manifest | RetestManifest,
    differs: Callable[[], CheckFailed],
) -> Iterator[Finding]:
    """What is wrong with a piece: its cassette, its record, or the manifest's word on it."""
    error: TutorsimError | None = one.error
    if one.line is not None and one.entry is not None:
        try:
            if hashlib.sha256(one.line.encode()).hexdigest() != entry.record_sha256:
                raise differs()
            check_entry(head, entry, one.entry)
        except TutorsimError as found:
            error = found
    if error is not None:
        what = one.episode_id if isinstance(head, Manifest) else f"{one.episode_id} {OF_RETEST}"
        yield Finding(what, error)


def _retested(retest: RetestPlayer, facts: RetestFacts, one: Replayed) -> Iterator[Finding]:
    """What is wrong with the further askings of an episode that could be replayed."""
    record = retest.record_of(one)
    entry, again = retest.entries.get(record.episode_id), None
    if entry is not None:
        again = retest.play(record, with_entry=True)
        yield from _checked(again, entry, retest.manifest, partial(_asked_otherwise, again))
    facts.note(record, again)


def _asked_otherwise(again: Replayed) -> CheckFailed:
    return CheckFailed(
        f"{again.episode_id}: the retest gives another record than when it was made.",
        why="Ballots, failures or the turns drawn are not the recorded ones.",
        hint="If the change is meant, move the retest away and ask again.",
    )


def _of_head(facts: RetestFacts, *, clean: bool) -> Iterator[Finding]:
    """What is wrong with the head of a retest; what hangs on replies, only if they are in order."""
    try:
        facts.check_design()
        if clean:
            facts.check()
    except TutorsimError as error:
        yield Finding(OF_RETEST, error)


def _whole(
    recording: Recording, answered_by: AnsweredBy, log_sha256: str, *, clean: bool
) -> Iterator[Finding]:
    """What is wrong with the recording when nothing is wrong with an episode."""
    if not clean:
        return
    manifest = recording.manifest
    try:
        check_drift(recording)
    except TutorsimError as error:
        yield Finding("(prompts)", error)
    try:
        check_provenance(manifest, answered_by)
        check_head(
            manifest,
            study_name=recording.loaded.study.name,
            programs=len(VerdictStore(recording.folder)),
            log_sha256=log_sha256,
        )
    except TutorsimError as error:
        yield Finding("(manifest)", error)


def _files(recording: Recording, retest: RetestPlayer | None) -> Iterator[Finding]:
    """What is wrong with the files of a recording: one is gone, or there are others."""
    checks = [partial(check_kept, recording)]
    checks.append(partial(check_files, recording.folder, recording.manifest))
    if retest is not None:
        folder = retest_folder(recording.folder)
        checks.append(partial(check_files, folder, retest.manifest))
    for check in checks:
        try:
            check()
        except TutorsimError as error:
            yield Finding("(files)", error)


def _differs(
    one: Replayed, entry: EpisodeEntry, logged: "_Lines | None", system: System
) -> CheckFailed:
    assert one.line is not None
    return CheckFailed(
        f"{one.episode_id}: the replay gives another record than the recording did.",
        why=_first_difference(
            one.line, entry, logged.line(one.episode_id) if logged else None, system
        ),
        hint="If the change is meant, record the study again; `--against RUN` names the field.",
    )


def _first_difference(line: str, entry: EpisodeEntry, logged: str | None, system: System) -> str:
    now = json.loads(line)
    if logged is not None and logged != line:
        return first_difference(json.loads(logged), now)
    outcome = system.outcome(system.record.model_validate(now))
    if outcome != entry.outcome:
        return first_difference(entry.outcome, outcome)
    return "What the manifest says of the outcome is the same; other fields of the record differ."


class _Lines:
    """The lines of a log by episode, read again when one is asked for."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / EPISODES_FILE
        self._places: dict[str, int] = {}
        place = 0
        try:
            with self._path.open("rb") as lines:
                for line in lines:
                    self._places[json.loads(line)["episode_id"]] = place
                    place += len(line)
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise LogError(
                f"{folder} holds no whole log.",
                why=str(error),
                hint="Give --against the run folder that `tutorsim run` wrote.",
            ) from error

    def line(self, episode_id: str) -> str | None:
        """An episode's line without its end; `None` where the log has none."""
        place = self._places.get(episode_id)
        if place is None:
            return None
        with self._path.open("rb") as lines:
            lines.seek(place)
            return lines.readline().decode().rstrip("\n")
