"""pytest fixtures that replay recordings in other people's tests.

Name the recording in the configuration (`tutorsim_cassettes = cassettes/pilot`), or with a
marker on a test: `@pytest.mark.tutorsim("cassettes/pilot", episode="sciq.tides.novice.ranked")`.

* `replayed_study`: a `ReplayedStudy`, replayed once a session.
* `replayed_episode`: the record of the marker's episode.
* `recorded`: for a program that is no study of ours, a client of the SDK bound to one cassette,
  not entered yet (`tutorsim.recorded`). The cassette is the marker's file, or
  `cassettes/TESTFILE.TEST.json` beside the test. `pytest --tutorsim-record once` records it.
* `recorded_http`: the same for any other SDK, an HTTP client (`tutorsim.recorded_http`).

No socket can be opened while a recording is replayed; with the last two, during the whole test.
"""

import hashlib
import os
import re
import socket
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

import pytest

from tutorsim.errors import TutorsimError

if TYPE_CHECKING:
    from tutorsim.records import EpisodeLine, RunRecord
    from tutorsim.replay.any_sdk_client_and_streams import BoundCassette, Recorded, RecordedHttp

B = TypeVar("B", bound="BoundCassette[Any, Any]")


@dataclass(frozen=True)
class ReplayedStudy:
    """A recording and what its replay gave."""

    folder: Path
    """The recording."""
    run: "RunRecord"
    """Study settings, digests and provenance."""
    episodes: Mapping[str, Any]
    """Episode id → record, in grid order."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the ini option that names the recording, and the option to record."""
    parser.addini("tutorsim_cassettes", "Recording that replayed_study replays.", default="")
    parser.getgroup("tutorsim").addoption(
        "--tutorsim-record",
        metavar="MODE",
        help="Record mode of the fixtures `recorded` and `recorded_http`: none (as without the "
        "option), once, new, all.",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Register the marker."""
    config.addinivalue_line(
        "markers", "tutorsim(folder, episode): the recording, and the episode of it, to replay"
    )


@pytest.fixture
def replayed_study(request: pytest.FixtureRequest) -> ReplayedStudy:
    """The recording that the test or the configuration names, replayed once a session."""
    return _replayed(_folder(request), request.config.stash.setdefault(_STUDIES, {}))


@pytest.fixture
def replayed_episode(request: pytest.FixtureRequest) -> Any:
    """The record of the episode that the test's marker names."""
    from tutorsim.runner.find_and_check_recording import open_recording
    from tutorsim.runner.replay_into_run_folder_in_several_processes import replay_episode

    marker = request.node.get_closest_marker("tutorsim")
    episode_id = marker.kwargs.get("episode") if marker else None
    if not episode_id:
        pytest.fail('replayed_episode needs @pytest.mark.tutorsim(episode="…")', pytrace=False)
    folder = _folder(request)
    with _no_sockets(), _told_briefly():
        return replay_episode(open_recording(folder), episode_id)


@pytest.fixture
def recorded(request: pytest.FixtureRequest) -> "Iterator[Recorded]":
    """A client of the SDK bound to the test's cassette; enter it with `with` or `async with`."""
    from tutorsim.replay.any_sdk_client_and_streams import recorded as bound

    with _bound(bound, request) as found:
        yield found


@pytest.fixture
def recorded_http(request: pytest.FixtureRequest) -> "Iterator[RecordedHttp]":
    """An HTTP client bound to the test's cassette; enter it with `with` or `async with`."""
    from tutorsim.replay.any_sdk_client_and_streams import recorded_http as bound

    with _bound(bound, request) as found:
        yield found


@contextmanager
def _bound(bound: "Callable[..., B]", request: pytest.FixtureRequest) -> "Iterator[B]":
    """What is bound to the test's cassette; without sockets while it plays."""
    from tutorsim.replay.any_sdk_client_and_streams import record_mode

    wanted = request.config.getoption("--tutorsim-record")
    with _told_briefly():
        found = bound(_cassette_of(request), mode=record_mode(wanted) if wanted else None)
    with _no_sockets() if found.replays else nullcontext():
        yield found


def _cassette_of(request: pytest.FixtureRequest) -> Path:
    """The marker's file, or one named after the test."""
    marked = _marked(request)
    if marked:
        named: Path = request.config.rootpath / marked
        return named
    name = re.sub(r"[^A-Za-z0-9_-]", _escaped, request.node.name)
    path: Path = request.node.path
    return path.parent / "cassettes" / f"{path.stem}.{name}.json"


def _marked(request: pytest.FixtureRequest) -> str | os.PathLike[str] | None:
    """What the test's marker names, by place or as `folder`; `None` where it names nothing."""
    marker = request.node.get_closest_marker("tutorsim")
    named = (*marker.args, marker.kwargs.get("folder"))[0] if marker else None
    if named is None or isinstance(named, str | os.PathLike):
        return named
    pytest.fail(f"@pytest.mark.tutorsim names a file or folder, not {named!r}.", pytrace=False)


def _escaped(found: re.Match[str]) -> str:
    """A character of a test's name that no file name should have."""
    brackets = {"[": "-", "]": ""}
    return brackets.get(found[0], "".join(f"_{byte:02X}" for byte in found[0].encode()))


_STUDIES: pytest.StashKey[dict[Path, ReplayedStudy]] = pytest.StashKey()


def _folder(request: pytest.FixtureRequest) -> Path:
    named = _marked(request) or request.config.getini("tutorsim_cassettes")
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
    from tutorsim.runner.find_and_check_recording import check_drift, open_recording
    from tutorsim.runner.replay_into_run_folder_in_several_processes import replay_each
    from tutorsim.runner.write_run_folder_and_timings import run_record

    episodes: dict[str, EpisodeLine] = {}
    digest = hashlib.sha256()
    recording = open_recording(folder)
    for one in replay_each(recording):
        if one.line is None:
            assert one.error is not None
            raise one.error
        digest.update(f"{one.line}\n".encode())
        episodes[one.episode_id] = recording.loaded.system.record.model_validate_json(one.line)
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
        raise pytest.fail.Exception(str(error), pytrace=False) from None


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
