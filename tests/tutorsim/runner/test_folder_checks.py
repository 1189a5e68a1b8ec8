"""Nothing of others is overwritten or followed, and nothing is paid twice by a slip."""

import os
from pathlib import Path
from typing import Any

import pytest

from tutorsim.errors import FolderError, RecordingError
from tutorsim.runner.folder_checks import check_folders, check_regular

pytestmark = pytest.mark.loopback

OURS = (
    "study.toml",
    "wordings.toml",
    "verdicts.jsonl",
    "tasks.sciq.jsonl",
    "sciq.ice.help_avoidant.simple.json",
    "sciq.ice.help_avoidant.simple.journal.jsonl",
)


def test_a_study_file_beside_which_it_would_record_stays(
    endpoint: Any, write_grid: Any, shell: Any, tmp_path: Path
) -> None:
    study = write_grid()
    before = study.read_bytes()
    said = shell("run", study, "--log-dir", tmp_path / "log", "--cassette-dir", study.parent)
    assert said.code == 2
    assert "study.toml, and no recording was begun there" in said.err.replace("\n", " ")
    assert study.read_bytes() == before
    assert endpoint.sent == []


@pytest.mark.parametrize("name", OURS)
def test_a_foreign_file_of_a_name_of_ours_is_never_overwritten(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text("mine")
    with pytest.raises(FolderError, match=name):
        check_folders(tmp_path, tmp_path / "log", anew=False)
    (tmp_path / name).rename(tmp_path / "notes.txt")
    check_folders(tmp_path, tmp_path / "log", anew=False)


def test_timings_without_a_log_are_another_s(tmp_path: Path) -> None:
    (tmp_path / "timings.jsonl").write_text("mine")
    with pytest.raises(FolderError, match=r"timings\.jsonl, and no log"):
        check_folders(tmp_path / "new", tmp_path, anew=False)


@pytest.mark.parametrize("kind", ["pipe", "folder", "link"])
def test_what_is_no_regular_file_is_refused_and_not_waited_for(
    kind: str, recorded: Any, shell: Any, endpoint: Any, tmp_path: Path
) -> None:
    path = recorded.cassettes / "sciq.ice.help_avoidant.simple.json"
    kept = tmp_path / "kept.json"
    path.rename(kept)
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    else:
        path.symlink_to(kept)
    for command in (
        ("verify", recorded.cassettes),
        ("run", recorded.study, "--log-dir", recorded.log, "--cassette-dir", recorded.cassettes),
    ):
        said = shell(*command)
        assert said.code == 4, command
        assert "no regular file" in said.err or "leads out of its folder" in said.err


def test_a_pipe_is_refused_before_it_is_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "manifest.json")
    with pytest.raises(RecordingError, match="no regular file"):
        check_regular(tmp_path, links=False)


def test_a_mistyped_folder_beside_a_whole_log_is_not_paid_for_again(
    recorded: Any, shell: Any, endpoint: Any, tmp_path: Path
) -> None:
    args = ("run", recorded.study, "--log-dir", recorded.log, "--cassette-dir", tmp_path / "typo")
    said = shell(*args)
    assert said.code == 2
    assert "Every call would be paid for again" in said.err
    assert endpoint.sent == []
    assert shell(*args, "--anew").code == 0
    assert len(endpoint.sent) == recorded.calls
