"""What a recording's folder holds when a command begins."""

import errno
import json
import os
from pathlib import Path

import pytest

from tests.tutorsim.conftest import edit, files
from tutorsim.catalog import WORDINGS_FILE
from tutorsim.errors import FolderError, RecordingError
from tutorsim.kernel.load_and_check_study_file import load_study
from tutorsim.replay import SESSION_FILE, read_manifest
from tutorsim.runner.begin_or_resume_recording import open_session


@pytest.fixture
def folder(tmp_path):
    path = tmp_path / "cassettes"
    path.mkdir()
    return path


def test_a_session_is_gone_on_with_and_remembers_its_days_and_packages(write_grid, folder):
    loaded = load_study(write_grid())
    first = open_session(loaded, folder)
    path = folder / SESSION_FILE
    old = {"started": "2026-01-01", "latest": "2026-01-02", "packages": {"tutorsim": "0.0.1"}}
    edit(path, lambda session: session.update(old))
    second = open_session(loaded, folder)
    assert not second.retried
    assert (second.started, second.latest) == ("2026-01-01", "2026-01-02")
    assert second.today == first.today == json.loads(path.read_text())["latest"]
    assert second.packages == {"tutorsim": "0.0.1"}
    for _ in range(2):  # a file that somebody removed meanwhile is gone already
        second.finish()
    names = sorted(one.name for one in folder.iterdir())
    assert names == ["study.toml", "tasks.sciq.jsonl", "wordings.toml"]


def test_a_folder_in_which_nothing_was_recorded_takes_another_study(write_grid, folder):
    open_session(load_study(write_grid()), folder)
    open_session(load_study(write_grid(seed=6)), folder)
    assert "seed = 6" in (folder / "study.toml").read_text()
    (folder / "sciq.ice.help_avoidant.simple.journal.jsonl").write_text("")
    with pytest.raises(RecordingError, match="another study"):
        open_session(load_study(write_grid(seed=7)), folder)
    assert "seed = 6" in (folder / "study.toml").read_text()


@pytest.mark.parametrize("content", ["", "{", "[]", "{}"])
def test_a_damaged_session_file_is_told(content, write_grid, folder):
    (folder / SESSION_FILE).write_text(content)
    with pytest.raises(RecordingError, match="cannot be read"):
        open_session(load_study(write_grid()), folder)
    assert (folder / SESSION_FILE).read_text() == content


@pytest.mark.parametrize("number", [errno.EROFS, errno.EACCES])
def test_a_folder_that_may_not_be_written_is_told(number, write_grid, folder, monkeypatch):
    loaded = load_study(write_grid())

    def refuse(*args, **kwargs):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(Path, "mkdir", refuse)
    with pytest.raises(FolderError, match="Choose a folder that"):
        open_session(loaded, folder)


def test_a_study_that_cannot_be_written_whole_leaves_the_old_one(write_grid, folder, monkeypatch):
    open_session(load_study(write_grid()), folder)
    before = (folder / "study.toml").read_text()
    other = load_study(write_grid(seed=6))

    def refuse(*args, **kwargs):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(Path, "replace", refuse)
        with pytest.raises(FolderError, match="Free some space"):
            open_session(other, folder)
    assert (folder / "study.toml").read_text() == before
    assert not (folder / ".study.tmp").exists()


@pytest.mark.loopback
@pytest.mark.parametrize("retry", [False, True])
def test_a_finished_recording_is_gone_on_with_as_the_interrupted_command_was(recorded, retry):
    loaded = load_study(recorded.study)
    first = open_session(loaded, recorded.cassettes, retry_errors=retry)
    second = open_session(loaded, recorded.cassettes)
    assert (first.retried, second.retried) == (retry, retry)
    assert second.earlier == read_manifest(recorded.cassettes)


@pytest.mark.loopback
def test_nothing_is_asked_in_wordings_that_were_edited(recorded):
    path = recorded.cassettes / WORDINGS_FILE
    path.write_text(path.read_text().replace('title = "', 'title = "Other ', 1))
    with pytest.raises(RecordingError, match="does not hold the recorded wordings"):
        open_session(load_study(recorded.study), recorded.cassettes)


@pytest.mark.costly
@pytest.mark.loopback
def test_an_interrupted_retry_is_gone_on_with_and_nothing_is_called_edited(
    endpoint, write_grid, shell, recorded_once, tmp_path
):
    study, log, cassettes = write_grid(), tmp_path / "log", tmp_path / "cassettes"
    args = ("run", study, "--log-dir", log, "--cassette-dir", cassettes, "--max-retries", 0)
    endpoint.fault = lambda call, attempt: "400" if "/1/propose/" in call else None
    assert shell(*args).code == 1
    endpoint.fault = lambda call, attempt: "401" if "/revise/" in call else None
    assert shell(*args, "--retry-errors").code == 2
    for command in (("verify", cassettes), ("replay", cassettes, "--log-dir", tmp_path / "x")):
        said = shell(*command)
        said.fails(4, "is being recorded")
        assert "edited" not in said.err
        assert "--retry-errors` again" in said.err.replace("\n", " ")
    endpoint.fault = lambda call, attempt: None
    assert shell(*args).code == 0  # it goes on as it was begun
    assert files(log, cassettes) == files(recorded_once.log, recorded_once.cassettes)
    assert shell("verify", cassettes).code == 0
