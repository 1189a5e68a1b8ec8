"""Run folders: a whole log under its names, or none."""

import json

import pytest

from tutorsim.errors import FolderError, LogError
from tutorsim.records import RUN_FILE, read_episodes, read_run
from tutorsim.runner.write_run_folder_and_timings import (
    LogWriter,
    check_log_folder,
    fingerprint_text,
    machine_facts,
)
from tutorsim.sandbox import Sandbox


@pytest.fixture
def logged(recorded_once):
    lines = (recorded_once.log / "episodes.jsonl").read_text().splitlines()
    return read_run(recorded_once.log), lines


def written(folder, run, lines):
    with LogWriter(folder) as log:
        for number, line in enumerate(lines):
            log.add(line, str(number), 1.23456789)
        assert log.sha256 == run.episodes_sha256
        log.finish(run, {"command": "test"})


def begun(folder, line):
    with LogWriter(folder) as log:
        log.add(line, "0", 0.1)
        assert (folder / "episodes.jsonl.partial").exists()


def test_a_log_has_its_names_only_when_it_is_whole(logged, tmp_path):
    run, lines = logged
    begun(tmp_path, lines[0])
    assert list(tmp_path.iterdir()) == []
    written(tmp_path, run, lines)
    names = sorted(path.name for path in tmp_path.iterdir())
    assert names == ["episodes.jsonl", "run.json", "timings.jsonl"]
    timings = (tmp_path / "timings.jsonl").read_text().splitlines()[1:]
    assert {json.loads(timing)["seconds"] for timing in timings} == {1.234568}  # to a microsecond
    assert read_run(tmp_path) == run
    assert len(list(read_episodes(tmp_path))) == len(lines)
    check_log_folder(tmp_path, run.study_digest)


def test_a_new_log_that_is_not_finished_leaves_the_old_one(logged, tmp_path):
    run, lines = logged
    written(tmp_path, run, lines)
    begun(tmp_path, "{}")
    assert read_run(tmp_path) == run


def test_a_log_of_another_study_is_refused(logged, tmp_path):
    run, lines = logged
    written(tmp_path, run, lines)
    with pytest.raises(FolderError, match="log of another study"):
        check_log_folder(tmp_path, "0" * 64)


@pytest.mark.parametrize("partial", [b"{", b"{}", b'{"episodes_sha256": "0"}', b"[]"])
def test_a_head_that_does_not_fit_the_lines_does_not_get_its_name(partial, logged, tmp_path):
    run, lines = logged
    written(tmp_path, run, lines)
    (tmp_path / RUN_FILE).unlink()
    (tmp_path / f"{RUN_FILE}.partial").write_bytes(partial)
    with pytest.raises(LogError, match=r"without run\.json"):
        check_log_folder(tmp_path, run.study_digest)
    assert not (tmp_path / RUN_FILE).exists()


def test_a_folder_in_the_place_of_a_file_is_told(logged, tmp_path):
    run, lines = logged
    (tmp_path / "episodes.jsonl").mkdir()
    (tmp_path / "episodes.jsonl" / "x").touch()
    with pytest.raises(FolderError, match="cannot be written"):
        written(tmp_path, run, lines)
    assert [path.name for path in tmp_path.iterdir()] == ["episodes.jsonl"]


# --- What did the work is told beside the log -----------------------------------------------------


def test_a_sandbox_that_judged_nothing_is_not_started(tmp_path):
    with Sandbox() as sandbox:
        facts = machine_facts("run", tmp_path, sandbox, used=False)
    assert facts["sandbox"] is None
    assert facts["command"] == "run"
    assert facts["recording"] == str(tmp_path)
    assert {"python", "platform", "cores", "packages"} <= facts.keys()


def test_a_fingerprint_is_one_line_and_the_same_each_time():
    with Sandbox() as one, Sandbox() as two:
        assert fingerprint_text(one) == fingerprint_text(two)
        assert "\n" not in fingerprint_text(one)
