"""Verifying: does a recording still give the bytes that it gave when it was made?"""

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

from tutorsim.errors import CheckFailed, LogError, TutorsimError
from tutorsim.records import EPISODES_FILE, EpisodeRecord, to_line
from tutorsim.replay import EpisodeEntry, episode_outcome
from tutorsim.replay.difference import first_difference
from tutorsim.runner.opening import Recording, check_drift, open_recording
from tutorsim.runner.playing import Replayed
from tutorsim.runner.replaying import ReaderName, replay_each
from tutorsim.runner.retest_playing import RetestPlayer, open_retest

__all__ = ["Finding", "Verification", "junit_xml", "verify"]


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

    @property
    def exit_code(self) -> int:
        """0, or the code of the first finding."""
        return self.findings[0].error.exit_code if self.findings else 0


def verify(
    folder: Path,
    *,
    reader: ReaderName = "fast",
    workers: int | None = None,
    against: Path | None = None,
) -> Verification:
    """Replay a recording and compare every episode with the digest taken when it was recorded.

    A retest of the recording is played too, and compared likewise.

    Args:
        folder: The recording.
        reader: How cassettes are read.
        workers: Processes; `None` takes as many as pay off.
        against: A run folder of the recording, to name the field in which a line differs.

    Raises:
        RecordingError: If the recording as a whole cannot be replayed.
        LogError: If `against` holds no log.
    """
    recording = open_recording(folder)
    logged = _Lines(against) if against is not None else None
    findings: list[Finding] = []
    seconds = 0.0
    calls = sum(entry.calls for entry in recording.manifest.episodes)
    with open_retest(recording, sdk=reader == "sdk") as retest:
        for one in replay_each(recording, reader=reader, workers=workers):
            seconds += one.seconds
            entry = recording.entries[one.episode_id]
            error = one.error or _drift(one, entry, logged)
            if error is not None:
                findings.append(Finding(one.episode_id, error))
            if retest is not None and one.line is not None:
                findings += _retested(retest, one.episode_id, one.line)
        if retest is not None:
            calls += sum(entry.calls for entry in retest.entries.values())
    findings += _whole(recording, clean=not findings)
    return Verification(
        recording=recording,
        episodes=len(recording.specs),
        calls=calls,
        seconds=seconds,
        findings=tuple(findings),
    )


def _retested(retest: RetestPlayer, episode_id: str, line: str) -> Iterator[Finding]:
    """What is wrong with the further askings of an episode."""
    entry = retest.entries.get(episode_id)
    if entry is None:
        return
    try:
        now = to_line(retest.play(line))
        if hashlib.sha256(now.encode()).hexdigest() != entry.record_sha256:
            raise CheckFailed(
                f"{episode_id}: the retest gives another record than when it was made.",
                why="Ballots, failures or the turns drawn are not the recorded ones.",
                hint="If the change is meant, move the retest away and ask again.",
            )
    except TutorsimError as error:
        yield Finding(f"{episode_id} (retest)", error)


def _whole(recording: Recording, *, clean: bool) -> Iterator[Finding]:
    """What is wrong with the recording when nothing is wrong with an episode."""
    if clean:
        try:
            check_drift(recording)
        except TutorsimError as error:
            yield Finding("(prompts)", error)


def _drift(one: Replayed, entry: EpisodeEntry, logged: "_Lines | None") -> CheckFailed | None:
    assert one.line is not None
    if hashlib.sha256(one.line.encode()).hexdigest() == entry.record_sha256:
        return None
    return CheckFailed(
        f"{one.episode_id}: the replay gives another record than the recording did.",
        why=_first_difference(one.line, entry, logged.line(one.episode_id) if logged else None),
        hint="If the change is meant, record the study anew; `--against RUN` names the field.",
    )


def _first_difference(line: str, entry: EpisodeEntry, logged: str | None) -> str:
    now = json.loads(line)
    if logged is not None and logged != line:
        return first_difference(json.loads(logged), now)
    outcome = episode_outcome(EpisodeRecord.model_validate(now))
    if outcome != entry.outcome:
        recorded = entry.outcome.model_dump(mode="json")
        return first_difference(recorded, outcome.model_dump(mode="json"))
    return "Winners, scores and verdicts are the same; other fields of the record differ."


class _Lines:
    """The lines of a log by episode, read again when one is asked for.

    Args:
        folder: The run folder.

    Raises:
        LogError: If it holds no whole log.
    """

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


def junit_xml(verification: Verification) -> bytes:
    """The verification as JUnit XML, one test case an episode."""
    by_episode = {finding.episode_id: finding.error for finding in verification.findings}
    names = [spec.episode_id for spec in verification.recording.specs]
    known = set(names)
    names += [name for name in by_episode if name not in known]
    suite = ElementTree.Element(
        "testsuite",
        name=f"tutorsim verify {verification.recording.manifest.study_name}",
        tests=str(len(names)),
        failures=str(len(by_episode)),
        errors="0",
    )
    for name in names:
        case = ElementTree.SubElement(suite, "testcase", classname="tutorsim.verify", name=name)
        if name in by_episode:
            error = by_episode[name]
            failure = ElementTree.SubElement(case, "failure", message=_xml_safe(error.what))
            failure.text = _xml_safe(str(error))
    root = ElementTree.Element("testsuites")
    root.append(suite)
    ElementTree.indent(root)
    text: bytes = ElementTree.tostring(root, encoding="utf-8", xml_declaration=True)
    return text + b"\n"


def _xml_safe(text: str) -> str:
    """The text without the characters that XML 1.0 cannot hold."""
    kept = (
        c
        if c in "\t\n\r"
        or 0x20 <= ord(c) <= 0xD7FF
        or 0xE000 <= ord(c) <= 0xFFFD
        or ord(c) >= 0x10000
        else "\ufffd"
        for c in text
    )
    return "".join(kept)
