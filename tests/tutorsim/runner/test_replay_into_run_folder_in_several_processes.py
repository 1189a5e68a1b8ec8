"""Replays: the same bytes by every reader, number of workers and environment, with no socket."""

import builtins
import copy
import io
import json
import os
import pickle
import subprocess
import sys
from collections import Counter
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import orjson
import pytest

from tests.tutorsim.conftest import edit, files
from tutorsim import model as json_bodies
from tutorsim.errors import FolderError, MissingCallError, RecordingError
from tutorsim.replay import FolderLock, cassette_file
from tutorsim.replay import cassette_file as fast_reader
from tutorsim.replay import recorded_calls_event_streams_and_mismatches as recorded_calls
from tutorsim.runner import replay_into_run_folder_in_several_processes as replaying
from tutorsim.runner.find_and_check_recording import bundled_recording, check_drift, open_recording
from tutorsim.runner.replay_into_run_folder_in_several_processes import (
    default_workers,
    replay,
    replay_episode,
)
from tutorsim.system_registry import load, system_names
from tutorsim.systems.panel.settings_and_members_of_compared_panels import PanelCatalog

EPISODE = "sciq.ice.help_avoidant.simple"
AUDITED = """
import os, sys
NETWORK = {"socket.connect", "socket.bind", "socket.getaddrinfo", "socket.sendto", "socket.sendmsg"}
sys.addaudithook(lambda event, args: event in NETWORK and os._exit(99))
if __name__ == "__main__":
    from tutorsim.cli import main
    from tutorsim.runner import replay_into_run_folder_in_several_processes as replaying
    replaying.CHUNK = 1
    main()
"""


@pytest.fixture
def replayed(recorded, shell, tmp_path, monkeypatch):
    """Replay the copied recording, without a key, into a folder named like the recording's log."""
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)

    def run(*more):
        into = tmp_path / "replay" / "log"
        return shell("replay", recorded.cassettes, "--log-dir", into, *more), into

    return run


def test_both_readers_give_the_bytes_of_the_recording(reader, replayed, recorded):
    said, into = replayed()
    assert said.code == 0
    assert "4 episodes replayed" in said.err
    assert files(into) == files(recorded.log)


@pytest.mark.parametrize("system", system_names())
def test_another_process_can_be_given_a_recording_of_any_system(system):
    folder = bundled_recording(load(system, "system").demo)
    assert folder is not None
    recording = open_recording(folder)
    given = pickle.loads(pickle.dumps(recording))
    assert given.loaded.system is recording.loaded.system
    assert given.loaded.digest() == recording.loaded.digest()


@pytest.mark.costly
@pytest.mark.parametrize("workers", [2, pytest.param(4, marks=pytest.mark.slow)])
def test_workers_beside_threads_give_the_same_bytes(workers, replayed, recorded, monkeypatch):
    monkeypatch.setattr(replaying, "CHUNK", 1)
    monkeypatch.setattr(replaying, "_threads", lambda: 2)
    said, into = replayed("--workers", workers)
    assert said.code == 0
    assert files(into) == files(recorded.log)


@pytest.mark.parametrize(
    ("workers", "zone", "locale", "seed"),
    [
        ("1", "Pacific/Kiritimati", "C", "1"),
        ("2", "UTC", "POSIX", "0"),
        pytest.param("4", "Asia/Kathmandu", "C", "77", marks=pytest.mark.slow),
    ],
)
def test_every_environment_gives_the_bytes_offline(workers, zone, locale, seed, recorded, tmp_path):
    program, into = tmp_path / "audited.py", tmp_path / "again" / "log"
    program.write_text(AUDITED)
    environment = {k: v for k, v in os.environ.items() if not k.startswith("ANTHROPIC")}
    environment |= {"TZ": zone, "LC_ALL": locale, "PYTHONHASHSEED": seed, "COLUMNS": "20"}
    done = subprocess.run(
        [
            *(sys.executable, str(program), "replay", str(recorded.cassettes)),
            *("--log-dir", str(into), "--workers", workers),
        ],
        env=environment,
        capture_output=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert files(into) == files(recorded.log)


def _reply(value):
    one = value["interactions"][0]["response"]["body"]
    one["string"] = one["string"].replace("I think", "I know")


def _request(value):
    one = value["interactions"][-1]["request"]
    one["body"] = one["body"].replace("Reference answer", "Preference answer")


def _extra(value):
    more = copy.deepcopy(value["interactions"][-1])
    headers = more["request"]["headers"]
    headers["x-tutorsim-call"] = [f"{EPISODE}/9/judge/judge/1"]
    value["interactions"].append(more)


@pytest.mark.parametrize(
    ("change", "code", "named"),
    [
        (_reply, 4, ("was edited after it was recorded",)),
        (_request, 3,
         ("call 1/judge/judge/1 was recorded with another request",
          "messages[0].content differs at character ", "Preference")),
        (lambda value: value["interactions"].pop(3), 3,
         ("call 1/propose/misconception/1 is not in the recording",)),
        (_extra, 1, ("never asked for, the first is 9/judge/judge/1",)),
        (lambda value: value.update(version=2), 4, ("cassette version 2",)),
    ],
)  # fmt: skip
def test_an_edited_cassette_is_refused_by_name(change, code, named, reader, replayed, recorded):
    edit(recorded.cassettes / f"{EPISODE}.json", change)
    before = files(recorded.cassettes)
    said, into = replayed()
    assert said.code == code
    assert f"{EPISODE}.json" in said.err
    for words in named:
        assert words in said.err.replace("\n", " ")
    assert files(recorded.cassettes) == before
    assert list(into.iterdir()) == []


def _cut(folder):
    path = folder / f"{EPISODE}.json"
    path.write_bytes(path.read_bytes()[:-500])


def _rewritten(name, old, new):
    def rewrite(folder):
        path = folder / name
        path.write_text(path.read_text().replace(old, new))

    return rewrite


def _removed_file(name):
    return lambda folder: (folder / name).unlink()


def _linked(name):
    def link(folder):
        path = folder / name
        outside = folder.parent / "elsewhere"
        path.replace(outside)
        path.symlink_to(outside)

    return link


def _manifest(change):
    return lambda folder: edit(folder / "manifest.json", change)


@pytest.mark.parametrize(
    ("damage", "code", "named"),
    [
        (_cut, 4, f"{EPISODE}.json is not a whole cassette"),
        (_removed_file(f"{EPISODE}.json"), 3, f"{EPISODE}.json: the recording has no cassette"),
        *(
            (_linked(name), 4, "leads out of its folder")
            for name in (f"{EPISODE}.json", "study.toml", "tasks.sciq.jsonl", "manifest.json")
        ),
        (_manifest(lambda value: value["episodes"][0].update(episode_id="../x")), 4,
         "'../x' is not an episode id"),
        (_manifest(lambda value: value.update(schema_version=7)), 4, "format version 7"),
        (_rewritten("study.toml", '"tasks.sciq.jsonl"', '"../study/questions.jsonl"'), 4,
         "names tasks outside its folder: '../study/questions.jsonl'"),
        (_rewritten("study.toml", "seed = 5", "seed = 6"), 4,
         "is not the study that was recorded"),
        (_removed_file("study.toml"), 4, "the recording's study cannot be read"),
        (lambda folder: (folder / "verdicts.jsonl").write_text("{}\n"), 4,
         "is not the file of verdicts that was recorded"),
        (_removed_file("manifest.json"), 4, "is not a recording"),
    ],
)  # fmt: skip
def test_a_damaged_recording_is_refused_and_kept(damage, code, named, replayed, recorded):
    damage(recorded.cassettes)
    before = files(recorded.cassettes)
    said, into = replayed()
    assert said.code == code
    assert named in said.err.replace("\n", " ")
    assert said.err.startswith("Error: ")
    assert len(said.err.splitlines()) >= 2
    assert files(recorded.cassettes) == before
    assert not into.exists() or list(into.iterdir()) == []


def test_a_changed_prompt_shows_what_differs(reader, replayed, recorded):
    (recorded.cassettes / "wordings.toml").unlink()
    path = recorded.cassettes / "study.toml"
    path.write_text(
        path.read_text() + '\n[catalog.prompts]\njudge_reminder = "Once more."\n'
        'student_science = "$situation\\n\\nAnswer the question as this student might now."\n'
    )
    before = files(recorded.cassettes)
    said, _ = replayed()
    said.fails(
        3,
        "call 0/student/student/1 was recorded with another request",
        "messages[0].content differs at character",
        "might",
    )
    assert files(recorded.cassettes) == before


def test_a_prompt_that_changed_where_no_call_used_it_is_told(replayed, recorded):
    (recorded.cassettes / "wordings.toml").unlink()
    path = recorded.cassettes / "study.toml"
    path.write_text(path.read_text() + '\n[catalog.prompts]\njudge_reminder = "Once more."\n')
    said, into = replayed()
    said.fails(4, "the prompts of this tutorsim are not the recorded ones")
    assert list(into.iterdir()) == []
    with pytest.raises(RecordingError, match="the prompt digest differs"):
        check_drift(open_recording(recorded.cassettes))


def test_a_replay_goes_over_its_own_log_and_leaves_nothing_else(replayed):
    first, into = replayed()
    second, _ = replayed()
    assert first.code == second.code == 0
    names = sorted(path.name for path in into.iterdir())
    assert names == ["episodes.jsonl", "run.json", "timings.jsonl"]


def test_one_episode_can_be_replayed_alone(recorded):
    recording = open_recording(recorded.cassettes)
    assert replay_episode(recording, EPISODE).episode_id == EPISODE
    with pytest.raises(MissingCallError, match=r"no episode 'sciq\.none'"):
        replay_episode(recording, "sciq.none")


def test_workers_are_counted_where_the_system_does_not_tell(monkeypatch):
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    monkeypatch.setattr(os, "cpu_count", lambda: 3)
    assert [default_workers(n) for n in (0, 399, 400, 9999)] == [1, 1, 2, 3]
    monkeypatch.setattr(os, "cpu_count", lambda: None)
    assert default_workers(9999) == 1


# --- A replay needs neither file locks nor Linux --------------------------------------------------

ELSEWHERE = Path(__file__).with_name("elsewhere.py")


@pytest.mark.costly
def test_a_recording_replays_to_the_same_bytes_without_what_linux_has(tmp_path):
    folder = bundled_recording("claude")
    here = [sys.executable, "-m", "tutorsim"]
    for name, program in (("here", here), ("elsewhere", [sys.executable, str(ELSEWHERE)])):
        command = [*program, "replay", str(folder), "--log-dir", str(tmp_path / name)]
        said = subprocess.run(command, capture_output=True, text=True, timeout=120)
        assert said.returncode == 0, said.stderr
    for file in ("run.json", "episodes.jsonl"):
        assert (tmp_path / "elsewhere" / file).read_bytes() == (
            tmp_path / "here" / file
        ).read_bytes()
    assert not list((tmp_path / "elsewhere").glob("*.lock"))


def test_without_file_locks_one_run_at_a_time_has_a_folder(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "fcntl", None)
    with FolderLock(tmp_path):
        with (
            pytest.raises(FolderError, match="Another run is using") as refused,
            FolderLock(tmp_path),
        ):
            pass
        assert "remove" in refused.value.hint
    with FolderLock(tmp_path):
        pass
    assert list(tmp_path.iterdir()) == []


# --- What a replay does for each call, counted: as often in a large recording as in a small one ---

SMALL = {"conditions": ["simple"], "max_turns": 1}
LARGE = {"conditions": ["simple"], "max_turns": 3, "repeats": 2}


class Counted(NamedTuple):
    """Operations of one replay, and what it replayed."""

    done: Counter[str]
    calls: int
    episodes: int


@contextmanager
def counting(monkeypatch):
    """Count, while the block runs, how often the functions below are called."""
    done: Counter[str] = Counter()

    def watch(owner, name, kind):
        function = getattr(owner, name)

        def counted(*args, **kwargs):
            done[kind] += 1
            return function(*args, **kwargs)

        patch.setattr(owner, name, counted)

    with monkeypatch.context() as patch:
        for module in (cassette_file, recorded_calls, json_bodies):
            patch.setattr(module, "orjson", _Watched(orjson, done))
        watch(io, "open", "opened")
        watch(builtins, "open", "opened")
        watch(os, "open", "opened")
        watch(json, "loads", "parsed otherwise")
        watch(json, "dumps", "written otherwise")
        watch(fast_reader, "check_same", "compared")
        watch(recorded_calls, "request_value", "requests parsed")
        watch(recorded_calls, "first_difference", "described")
        watch(PanelCatalog, "fill", "filled")
        watch(PanelCatalog, "part", "parts filled")
        yield done


class _Watched:
    """A module whose parser and writer are counted."""

    def __init__(self, module, done):
        self._module, self._done = module, done

    def __getattr__(self, name):
        found = getattr(self._module, name)
        if name not in ("loads", "dumps"):
            return found

        def counted(*args, **kwargs):
            self._done["parsed" if name == "loads" else "written"] += 1
            return found(*args, **kwargs)

        return counted


@pytest.fixture
def counted(endpoint, write_grid, record, tmp_path, monkeypatch):
    """Record a study from the endpoint and count what its replay does."""

    def run(**settings):
        name, sent = f"recording-{len(endpoint.sent)}", len(endpoint.sent)
        assert record(write_grid(**settings), name=name).code == 0
        folder = tmp_path / name
        with counting(monkeypatch) as done:
            run, _ = replay(folder / "cassettes", log_dir=folder / "again", workers=1)
        return Counted(done, len(endpoint.sent) - sent, run.episodes)

    return run


@pytest.mark.costly
@pytest.mark.loopback
def test_the_work_of_a_replay_grows_with_its_calls_alone(counted):
    """A cassette is opened and parsed once, a reply parsed once, a request compared as text.

    Of the files that are read and written whole there are no more for more episodes; the file of
    timings has a line for each.
    """
    small, large = counted(**SMALL), counted(**LARGE)
    assert large.calls > 3 * small.calls
    assert large.episodes == 2 * small.episodes
    for one in (small, large):
        done = one.done
        assert done["compared"] == done["written"] == one.calls
        assert done["parsed"] == one.calls + one.episodes + 1  # the manifest
        assert done["requests parsed"] == done["described"] == 0
        assert done["filled"] < 3 * one.calls
        assert done["parts filled"] < 3 * one.calls
    for kind, each in (("opened", 1), ("parsed otherwise", 0), ("written otherwise", 1)):
        once = [one.done[kind] - each * one.episodes for one in (small, large)]
        assert once[0] == once[1], kind
