"""Files: written whole or not at all, appended durably, one run per folder."""

import asyncio
import errno
import fcntl
import json
import os
import runpy
import signal
import subprocess
import sys
import time
import tomllib
from collections import Counter
from pathlib import Path

import pytest
import tomli_w
from hypothesis import given
from hypothesis import strategies as st

from tests.reference.replay_through_sdk import through_the_sdk
from tests.tutorsim.conftest import on_disk, seal
from tests.tutorsim.replay.made import message
from tutorsim.errors import FolderError, RecordingRefused
from tutorsim.replay import FolderLock, folder_error, make_folder, write_atomic
from tutorsim.replay.durable_files_folder_lock_key_leaks import (
    LOCK_FILE,
    AppendFile,
    key_shaped,
    redacted,
    refuse_keys,
    without_secrets,
)


def test_two_runs_cannot_share_a_folder(tmp_path):
    folder = tmp_path / "new" / "folder"
    with FolderLock(folder):
        with pytest.raises(FolderError, match="Another run is using"), FolderLock(folder):
            pass
        assert [path.name for path in folder.iterdir()] == [".tutorsim.lock"]
    assert list(folder.iterdir()) == []
    with FolderLock(folder):
        pass


def test_a_folder_that_cannot_be_made_is_told(tmp_path):
    (tmp_path / "file").write_text("")

    with pytest.raises(FolderError, match="cannot be written"), FolderLock(tmp_path / "file"):
        pass
    with pytest.raises(FolderError, match="cannot be written"):
        make_folder(tmp_path / "file" / "below")


def test_a_lock_that_a_killed_run_left_behind_does_not_keep_the_next_one_out(tmp_path):
    (tmp_path / LOCK_FILE).write_text("")

    with FolderLock(tmp_path):
        assert (tmp_path / LOCK_FILE).exists()
    assert not (tmp_path / LOCK_FILE).exists()


KILLED = """
import os, signal, sys
from pathlib import Path
from tutorsim.replay import FolderLock
out, into = os.pipe()
with FolderLock(Path(sys.argv[1])):
    if os.fork():
        os.read(out, 1)  # the child is out of its fork
        os.kill(os.getpid(), signal.SIGKILL)
    os.write(into, b"1")
    sys.stdin.read()
"""


def test_a_child_that_outlives_a_killed_run_does_not_keep_its_folder(tmp_path):
    command = [sys.executable, "-c", KILLED, str(tmp_path)]
    pipes = {"stdin": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(command, **pipes) as killed:
        killed.wait(timeout=60)
        assert (tmp_path / LOCK_FILE).exists()
        with FolderLock(tmp_path):
            _, told = killed.communicate()  # the child leaves its block, and ends
            assert told == b""
            assert (tmp_path / LOCK_FILE).exists()


def test_a_lock_is_not_taken_on_a_file_that_its_last_holder_removed(tmp_path, monkeypatch):
    flock, calls = fcntl.flock, []

    def late(handle, operation):
        calls.append(handle)
        if len(calls) == 1:
            (tmp_path / LOCK_FILE).unlink()
        flock(handle, operation)

    monkeypatch.setattr(fcntl, "flock", late)
    with FolderLock(tmp_path):
        assert len(calls) == 2
        assert (tmp_path / LOCK_FILE).exists()


def test_a_file_is_written_whole(tmp_path):
    path = tmp_path / "file"
    write_atomic(path, b"old, and longer")
    write_atomic(path, b"new")

    assert path.read_bytes() == b"new"
    assert [one.name for one in tmp_path.iterdir()] == ["file"]


@pytest.mark.parametrize("name", ["file", "file.tmp"])
@pytest.mark.parametrize("link", [Path.symlink_to, Path.hardlink_to])
def test_a_link_in_place_of_a_file_is_replaced_and_not_followed(link, name, tmp_path):
    (tmp_path / "victim").write_text("untouched")
    link(tmp_path / name, tmp_path / "victim")
    write_atomic(tmp_path / "file", b"new")

    assert (tmp_path / "victim").read_text() == "untouched"
    assert sorted(one.name for one in tmp_path.iterdir()) == ["file", "victim"]
    assert not (tmp_path / "file").is_symlink()


@given(lines=st.lists(st.binary().filter(lambda data: b"\n" not in data)), cut=st.integers(0, 99))
def test_appended_lines_come_back_and_a_torn_one_does_not(lines, cut, tmp_path):
    path = tmp_path / "lines"
    path.unlink(missing_ok=True)
    file = AppendFile(path)
    for line in lines:
        file.append(line)
    file.close()
    assert AppendFile(path).read() == lines
    if not lines:
        return

    data = path.read_bytes()
    path.write_bytes(data[: max(0, len(data) - cut)])
    whole = data[: max(0, len(data) - cut)].count(b"\n")
    again = AppendFile(path)
    assert again.read() == lines[:whole]
    again.append(b"more")
    again.sync()
    again.close()
    assert path.read_bytes().split(b"\n") == [*lines[:whole], b"more", b""]


def test_syncing_happens_only_after_something_was_added(tmp_path, monkeypatch):
    synced: list[int] = []
    monkeypatch.setattr(os, "fsync", synced.append)
    file = AppendFile(tmp_path / "lines")
    file.sync()
    assert synced == []

    file.append(b"one")
    file.sync()
    assert len(synced) == 2  # the file, and the folder that it is new in
    file.sync()
    assert len(synced) == 2
    assert not file.unsynced
    file.append(b"two")
    file.sync()
    assert len(synced) == 3
    file.remove()
    assert list(tmp_path.iterdir()) == []


def test_a_failing_sync_is_told(tmp_path, monkeypatch):
    def failing(_):
        raise OSError(errno.EIO, "Input/output error")

    file = AppendFile(tmp_path / "lines")
    file.append(b"one")
    monkeypatch.setattr(os, "fsync", failing)

    with pytest.raises(FolderError, match="Input/output error"):
        file.sync()


@pytest.mark.parametrize(
    ("number", "hint"),
    [
        (errno.ENOSPC, "Free some space"),
        (errno.EROFS, "can be written"),
        (errno.EACCES, "may write"),
        (errno.ENAMETOOLONG, "Shorten"),
        (errno.EIO, "another folder"),
    ],
)
def test_each_reason_for_not_writing_says_what_to_do(number, hint):
    error = folder_error(Path("x"), OSError(number, os.strerror(number)))

    assert hint in error.hint
    assert error.exit_code == 2


# --- No key gets into a recording, and one that is there is found ---------------------------------

KEY = "sk-ant-test-0123456789-credential"
OTHER = "sk-ant-api03-" + "Ab3_" * 10
EPISODE = "sciq.ice.help_avoidant.simple"


def escaped(text):
    return "".join(f"\\u{ord(char):04x}" for char in text)


@pytest.mark.parametrize(
    "text",
    [
        OTHER, "sk-" + "a1B2" * 12, "ghp_" + "a" * 36, "AKIA" + "A1" * 8, "AIza" + "x" * 35,
        "xoxb-" + "1234567890-" * 3, "-----BEGIN RSA PRIVATE KEY-----",
        "-----BEGIN PRIVATE KEY-----",
    ],
)  # fmt: skip
def test_a_key_is_known_by_its_shape_and_never_shown_whole(text):
    [shown] = key_shaped(f"before {text} behind")
    assert text.startswith(shown.removesuffix("…"))
    assert len(shown) < len(text)
    assert key_shaped(json.dumps({"a": escaped(text)}))


@pytest.mark.parametrize(
    "text", ["sk-ant-", "ask-and-answer", "sk-learn is a library", "0" * 64, "task-ant-hill", ""]
)
def test_ordinary_text_is_no_key(text):
    assert key_shaped(text) == []


def test_the_place_of_a_key_is_named():
    with pytest.raises(RecordingRefused, match=r"Its tasks\.sciq\[1\]\.question contains the cred"):
        refuse_keys({"Its tasks": {"sciq": [{"question": "x"}, {"question": f"a {KEY}"}]}}, [KEY])
    with pytest.raises(RecordingRefused, match="a string like a key, sk-ant-a…"):
        refuse_keys({"--relay": OTHER}, [])
    refuse_keys({"The study": {"name": "n", "seed": 3, "roles": ["a"]}}, [KEY])


def test_a_body_keeps_its_text_unless_it_hides_a_credential():
    plain = '{"a" : "b\\n", "n": 1e3}'
    assert redacted(plain, [KEY]) == plain
    hidden = f'{{"a": "x {escaped(KEY)}", "{escaped(KEY)}": [1]}}'
    assert json.loads(redacted(hidden, [KEY])) == {"a": "x [credential]", "[credential]": [1]}
    assert redacted(hidden, []) == hidden


def test_headers_are_redacted():
    found = without_secrets({"content-type": f"text/{KEY}", "a": "b"}, [KEY])
    assert found == {"content-type": "text/[credential]", "a": "b"}


# --- Recording ----------------------------------------------------------------------------------


def in_task(study):
    path = study.with_name("questions.jsonl")
    path.write_text(path.read_text().replace("because of ice", f"because of {KEY}"))


def in_setting(**settings):
    return lambda study: study.write_text(study.read_text() + tomli_w.dumps(settings))


HIDDEN = {
    "nowhere": lambda study: None,
    "a task": in_task,
    "a prompt": in_setting(catalog={"prompts": {"judge_reminder": f"Use {KEY}."}}),
    "an unused role": in_setting(
        catalog={"roles": {"spy": {"title": "t", "objective": OTHER, "means": "m"}}}
    ),
}


@pytest.mark.loopback
@pytest.mark.parametrize(
    ("hidden", "options"),
    [
        *((place, ()) for place in HIDDEN if place != "nowhere"),
        ("nowhere", ("--relay", f"my {KEY}")),
        ("nowhere", ("--set", f'vote_criterion="{KEY}"')),
    ],
    ids=[*(place for place in HIDDEN if place != "nowhere"), "the relay's name", "a setting"],
)
def test_a_study_or_an_option_with_a_key_is_refused_before_anything_is_written_or_sent(
    hidden, options, endpoint, write_grid, shell, tmp_path
):
    study, folders = write_grid(), ("--log-dir", tmp_path / "l", "--cassette-dir", tmp_path / "c")
    HIDDEN[hidden](study)
    said = shell("run", study, *folders, *options)
    said.fails(2, "must not be recorded")
    assert KEY not in said.err
    assert OTHER not in said.err
    assert endpoint.sent == []
    assert not (tmp_path / "l").exists()
    assert not (tmp_path / "c").exists()


@pytest.mark.parametrize("key", [OTHER, "a relay's own password"])
@pytest.mark.parametrize(
    "setting", [{"name": "@ !"}, {"@": 1}, {"personas": ["@"]}, {"benchmarks": {"@": {}}}]
)
def test_faults_of_a_study_are_told_without_its_keys(setting, key, write_grid, shell, monkeypatch):
    monkeypatch.setenv("ANTHROPIC_AUTH_TOKEN", "a relay's own password")
    study = write_grid()
    table = tomllib.loads(study.read_text())
    study.write_text(tomli_w.dumps(table | json.loads(json.dumps(setting).replace("@", key))))
    said = shell("run", study, "--dry-run")
    assert said.code == 2
    assert key not in said.err
    assert "sk-ant-a…" in said.err or "[credential]" in said.err


@pytest.mark.loopback
def test_an_echo_in_a_header_or_behind_escapes_is_redacted(endpoint, write_grid, shell, tmp_path):
    def echo(call, data):
        hidden = f"I think it is {escaped(KEY)}".encode()
        return data.replace(b"I think it is", hidden) if "/student/" in call else data

    endpoint.rewrite = echo
    endpoint.headers = {"content-type": f"application/json; boundary={KEY}"}
    log, cassettes = tmp_path / "l", tmp_path / "c"
    assert shell("run", write_grid(), "--log-dir", log, "--cassette-dir", cassettes).code == 0
    for path in (*log.rglob("*"), *cassettes.rglob("*")):
        data = path.read_text()
        assert KEY not in data, path
        assert escaped(KEY) not in data, path
    assert "I think it is [credential]" in (log / "episodes.jsonl").read_text()
    assert "boundary=[credential]" in (cassettes / f"{EPISODE}.json").read_text()
    assert shell("verify", cassettes).code == 0
    with through_the_sdk():
        assert shell("verify", cassettes).code == 0


# --- A recording that is there -------------------------------------------------------------------


@pytest.mark.parametrize("form", ["text", "compressed"])
def test_a_check_of_the_files_finds_a_key_that_is_not_in_use(form, recorded, shell, tmp_path):
    assert shell("cassette", "verify", recorded.cassettes).code == 0
    path = recorded.cassettes / f"{EPISODE}.json"
    path.write_text(path.read_text().replace("I think", f"I {OTHER} think", 1))
    seal(recorded.cassettes)
    folder = recorded.cassettes
    if form == "compressed":
        folder = tmp_path / "packed"
        args = ("--to", "compressed", "-o", folder)
        assert shell("cassette", "convert", recorded.cassettes, *args).code == 0
    said = shell("cassette", "verify", folder)
    said.fails(1, f"{EPISODE}.json", "in the shape of a key, sk-ant-a…")
    assert OTHER not in said.err


@pytest.mark.parametrize("name", ["study.toml", "wordings.toml", "tasks.sciq.jsonl"])
def test_every_file_of_a_recording_is_looked_at(name, recorded, shell):
    path = recorded.cassettes / name
    path.write_text(path.read_text() + f"# {OTHER}\n")
    shell("cassette", "verify", recorded.cassettes).fails(1, f"{name}: it holds a string")


# --- A recording that is killed goes on where it stopped and ends with the bytes of one run -------

PROGRAM = Path(__file__).with_name("record_rounds.py")
CALLS = 6 * 4 * 4


def run_here(folder):
    asyncio.run(runpy.run_path(str(PROGRAM))["record"](folder))


def start(folder):
    return subprocess.Popen([sys.executable, str(PROGRAM), str(folder)], env=os.environ.copy())


def content(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.mark.slow
@pytest.mark.loopback
def test_after_a_kill_no_recorded_call_is_sent_again_and_the_bytes_are_of_one_run(tmp_path, server):
    def slowly(body):
        time.sleep(0.005)
        return message("re: " + body["messages"][0]["content"])

    server.respond = slowly
    run_here(tmp_path / "whole")
    assert len(server.seen) == CALLS

    folder = tmp_path / "killed"
    for kill_after in (53, None):
        before, held = len(server.headers), on_disk(folder)
        if kill_after is None:
            run_here(folder)
        else:
            child = start(folder)
            while len(server.headers) - before < kill_after:
                time.sleep(0.001)
            child.send_signal(signal.SIGKILL)
            assert child.wait() == -signal.SIGKILL
            assert on_disk(folder) > held
        sent = [headers["x-tutorsim-call"] for headers in server.headers[before:]]
        assert held.isdisjoint(sent)
        assert max(Counter(sent).values()) == 1

    (folder / LOCK_FILE).unlink()  # A killed run cannot; the next one takes it over.
    assert content(folder) == content(tmp_path / "whole")
