"""pytest fixtures that replay a recorded study in other people's tests.

Name the recording in the configuration (`tutorsim_cassettes = cassettes/pilot`), or with a
marker on a test: `@pytest.mark.tutorsim("cassettes/pilot", episode="sciq.tides.novice.ranked")`.

* `replayed_study`: a `ReplayedStudy`, replayed once a session.
* `replayed_episode`: the `EpisodeRecord` of the marker's episode.

No socket can be opened while a recording is replayed.
"""

import hashlib
import socket
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import pytest

from tutorsim.errors import TutorsimError

if TYPE_CHECKING:
    from tutorsim.records import EpisodeRecord, RunRecord

__all__ = ["ReplayedStudy", "replayed_episode", "replayed_study"]


@dataclass(frozen=True)
class ReplayedStudy:
    """A recording and what its replay gave."""

    folder: Path
    """The recording."""
    run: "RunRecord"
    """Study settings, digests and provenance."""
    episodes: Mapping[str, "EpisodeRecord"]
    """Episode id → record, in grid order."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the ini option that names the recording."""
    parser.addini("tutorsim_cassettes", "Recording that replayed_study replays.", default="")


def pytest_configure(config: pytest.Config) -> None:
    """Register the marker."""
    config.addinivalue_line(
        "markers",
        "tutorsim(folder, episode): the recording, and the episode of it, to replay",
    )


@pytest.fixture
def replayed_study(request: pytest.FixtureRequest) -> ReplayedStudy:
    """The recording that the test or the configuration names, replayed once a session."""
    return _replayed(_folder(request), request.config.stash.setdefault(_STUDIES, {}))


@pytest.fixture
def replayed_episode(request: pytest.FixtureRequest) -> "EpisodeRecord":
    """The record of the episode that the test's marker names."""
    from tutorsim.runner.opening import open_recording
    from tutorsim.runner.replaying import replay_episode

    marker = request.node.get_closest_marker("tutorsim")
    episode_id = marker.kwargs.get("episode") if marker else None
    if not episode_id:
        pytest.fail('replayed_episode needs @pytest.mark.tutorsim(episode="…")', pytrace=False)
    folder = _folder(request)
    with _no_sockets(), _told_briefly():
        return replay_episode(open_recording(folder), episode_id)


_STUDIES: pytest.StashKey[dict[Path, ReplayedStudy]] = pytest.StashKey()


def _folder(request: pytest.FixtureRequest) -> Path:
    marker = request.node.get_closest_marker("tutorsim")
    named = (
        marker.args[0] if marker and marker.args else request.config.getini("tutorsim_cassettes")
    )
    if not named:
        pytest.fail(
            "No recording is named: set `tutorsim_cassettes` in the pytest configuration, or mark "
            'the test with @pytest.mark.tutorsim("FOLDER").',
            pytrace=False,
        )
    folder: Path = request.config.rootpath / named
    return folder


def _replayed(folder: Path, known: dict[Path, ReplayedStudy]) -> ReplayedStudy:
    if folder not in known:
        with _no_sockets(), _told_briefly():
            known[folder] = _replay(folder)
    return known[folder]


def _replay(folder: Path) -> ReplayedStudy:
    from tutorsim.records import EpisodeRecord
    from tutorsim.runner.log import run_record
    from tutorsim.runner.opening import check_drift, open_recording
    from tutorsim.runner.replaying import replay_each

    episodes: dict[str, EpisodeRecord] = {}
    digest = hashlib.sha256()
    recording = open_recording(folder)
    for one in replay_each(recording):
        if one.line is None:
            assert one.error is not None
            raise one.error
        digest.update(f"{one.line}\n".encode())
        episodes[one.episode_id] = EpisodeRecord.model_validate_json(one.line)
    check_drift(recording)
    run = run_record(recording.loaded, recording.manifest)
    run = run.model_copy(update={"episodes_sha256": digest.hexdigest()})
    return ReplayedStudy(folder, run, episodes)


@contextmanager
def _told_briefly() -> Iterator[None]:
    """What is wrong with a recording fails the test by its own words, without a traceback."""
    try:
        yield
    except TutorsimError as error:
        pytest.fail(str(error), pytrace=False)


@contextmanager
def _no_sockets() -> Iterator[None]:
    """Refuse every connection while the block runs."""

    def refuse(*args: object, **kwargs: object) -> NoReturn:
        raise AssertionError("a replay tried to open a connection")

    with pytest.MonkeyPatch.context() as patch:
        for name in ("connect", "connect_ex", "sendto", "bind"):
            patch.setattr(socket.socket, name, refuse)
        patch.setattr(socket, "getaddrinfo", refuse)
        yield
