"""Nothing of others is overwritten or followed, and nothing is paid twice by a slip."""

import os

import pytest

from tutorsim.errors import FolderError
from tutorsim.runner.begin_or_resume_recording import check_folders

pytestmark = [pytest.mark.loopback, pytest.mark.usefixtures("no_waiting")]


OURS = (
    "study.toml", "wordings.toml", "verdicts.jsonl", "tasks.sciq.jsonl",
    "sciq.ice.help_avoidant.simple.json", "sciq.ice.help_avoidant.simple.journal.jsonl",
)  # fmt: skip


def test_a_study_file_beside_which_it_would_record_stays(endpoint, write_grid, shell, tmp_path):
    study = write_grid()
    before = study.read_bytes()
    said = shell("run", study, "--log-dir", tmp_path / "log", "--cassette-dir", study.parent)
    said.fails(2, "study.toml, and no recording was begun there")
    assert study.read_bytes() == before
    assert endpoint.sent == []


@pytest.mark.parametrize("name", OURS)
def test_a_foreign_file_of_a_name_of_ours_is_never_overwritten(name, tmp_path):
    (tmp_path / name).write_text("mine")
    with pytest.raises(FolderError, match=name):
        check_folders(tmp_path, tmp_path / "log", anew=False)
    (tmp_path / name).rename(tmp_path / "notes.txt")
    check_folders(tmp_path, tmp_path / "log", anew=False)


def test_timings_without_a_log_are_another_s(tmp_path):
    (tmp_path / "timings.jsonl").write_text("mine")
    with pytest.raises(FolderError, match=r"timings\.jsonl, and no log"):
        check_folders(tmp_path / "new", tmp_path, anew=False)


@pytest.mark.parametrize("kind", ["pipe", "folder", "link"])
def test_irregular_files_are_refused_and_not_waited_for(kind, recorded, shell, endpoint, tmp_path):
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


@pytest.mark.parametrize("name", ["manifest.json", ".recording.json"])
def test_a_recording_is_not_begun_beside_a_pipe(name, endpoint, write_grid, shell, tmp_path):
    folder = tmp_path / "cassettes"
    folder.mkdir()
    os.mkfifo(folder / name)
    said = shell("run", write_grid(), "--log-dir", tmp_path / "l", "--cassette-dir", folder)
    said.fails(4, "no regular file")


@pytest.mark.parametrize("name", ["run.json", "episodes.jsonl"])
def test_a_pipe_in_a_run_folder_is_refused(name, endpoint, recorded, shell):
    (recorded.log / name).unlink()
    os.mkfifo(recorded.log / name)
    for command in (
        ("summary", recorded.log),
        ("replay", recorded.cassettes, "--log-dir", recorded.log),
        ("run", recorded.study, "--log-dir", recorded.log, "--cassette-dir", recorded.cassettes),
    ):
        assert shell(*command).code == 4, command


@pytest.mark.parametrize("kind", ["pipe", "link"])
@pytest.mark.parametrize("name", ["manifest.json", "study.toml"])
def test_files_of_a_recording_are_looked_at_and_not_followed(kind, name, recorded, shell, tmp_path):
    path = recorded.cassettes / name
    path.rename(tmp_path / name)
    if kind == "pipe":
        os.mkfifo(path)
    else:
        path.symlink_to(tmp_path / name)
    said = shell("cassette", "verify", recorded.cassettes)
    assert said.code == (4 if name == "manifest.json" else 1)
    assert f"{name} {'is no regular file' if kind == 'pipe' else 'leads out'}" in said.err
    assert shell("cassette", "list", recorded.cassettes).code == 0


def test_a_mistyped_folder_beside_a_log_is_not_paid_for_again(recorded, shell, endpoint, tmp_path):
    args = ("run", recorded.study, "--log-dir", recorded.log, "--cassette-dir", tmp_path / "typo")
    shell(*args).fails(2, "Every call would be paid for again")
    assert endpoint.sent == []
    assert shell(*args, "--anew").code == 0
    assert len(endpoint.sent) == recorded.calls


@pytest.mark.parametrize("name", ["episodes.jsonl.partial", "run.json.partial", ".study.tmp"])
def test_no_partial_file_is_written_through_a_link(name, endpoint, write_grid, shell, tmp_path):
    victim = tmp_path / "victim"
    folder = tmp_path / ("cassettes" if name == ".study.tmp" else "log")
    folder.mkdir()
    victim.mkdir() if name == ".study.tmp" else victim.write_text("mine")
    (folder / name).symlink_to(victim)
    study = write_grid(benchmarks={"sciq": {"tasks": "questions.jsonl", "limit": 1}})
    said = shell(
        *("run", study, "--prices", study.with_name("prices.toml")),
        *("--log-dir", tmp_path / "log", "--cassette-dir", tmp_path / "cassettes"),
    )
    assert said.code == (2 if name == ".study.tmp" else 0), said
    assert list(victim.iterdir()) == [] if victim.is_dir() else victim.read_text() == "mine"
    assert len(said.err.strip().splitlines()) >= 3
