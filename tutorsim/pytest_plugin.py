"""pytest fixtures that replay a recorded study in other people's tests.

Name the recording in the configuration (`tutorsim_cassettes = cassettes/pilot`), or with a
marker on a test: `@pytest.mark.tutorsim("cassettes/pilot", episode="sciq.tides.novice.ranked")`.

* `replayed_study`: a `ReplayedStudy`, replayed once a session.
* `replayed_episode`: the `EpisodeRecord` of the marker's episode.

No socket can be opened while a recording is replayed.
"""

import socket
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import pytest

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
    from tutorsim.runner.replaying import open_recording, replay_episode

    marker = request.node.get_closest_marker("tutorsim")
    episode_id = marker.kwargs.get("episode") if marker else None
    if not episode_id:
        pytest.fail('replayed_episode needs @pytest.mark.tutorsim(episode="…")', pytrace=False)
    folder = _folder(request)
    with _no_sockets():
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
    from tutorsim.records import EpisodeRecord
    from tutorsim.runner.log import run_record
    from tutorsim.runner.replaying import open_recording, replay_each

    if folder not in known:
        episodes: dict[str, EpisodeRecord] = {}
        with _no_sockets():
            recording = open_recording(folder)
            for one in replay_each(recording):
                if one.line is None:
                    assert one.error is not None
                    raise one.error
                episodes[one.episode_id] = EpisodeRecord.model_validate_json(one.line)
        run = run_record(recording.loaded, recording.manifest)
        known[folder] = ReplayedStudy(folder, run, episodes)
    return known[folder]


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
