"""Files: written whole or not at all, appended durably, one run per folder."""

import errno
import fcntl
import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tutorsim.errors import FolderError
from tutorsim.replay import FolderLock, folder_error, make_folder, write_atomic
from tutorsim.replay.durable_files_and_key_leaks import LOCK_FILE, AppendFile


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
with FolderLock(Path(sys.argv[1])):
    if os.fork():
        os.kill(os.getpid(), signal.SIGKILL)
    sys.stdin.read()
"""


def test_a_child_that_outlives_a_killed_run_does_not_keep_its_folder(tmp_path):
    command = [sys.executable, "-c", KILLED, str(tmp_path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE) as killed:
        killed.wait(timeout=60)
        assert (tmp_path / LOCK_FILE).exists()
        with FolderLock(tmp_path):
            pass


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
