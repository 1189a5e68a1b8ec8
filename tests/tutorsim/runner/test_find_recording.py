"""A run folder leads to the recording that its log is of."""

import shutil
from pathlib import Path

import pytest

from tutorsim.errors import LogError, UsageError
from tutorsim.records import TIMINGS_FILE
from tutorsim.runner.open_recording import bundled_recording, find_recording
from tutorsim.runner.replay import replay


def test_a_recording_is_its_own(recorded_once):
    assert find_recording(recorded_once.cassettes, cassette_dir=None) == recorded_once.cassettes


def test_the_log_of_a_run_and_of_a_replay_say_where_they_come_from(recorded_once, tmp_path):
    replay(recorded_once.cassettes, log_dir=tmp_path / "log")
    for log in (recorded_once.log, tmp_path / "log"):
        assert find_recording(log, cassette_dir=None) == recorded_once.cassettes.resolve()


def test_a_recording_that_moved_is_found_by_its_digest_below_the_usual_folder(
    recorded, tmp_path, monkeypatch
):
    home = tmp_path / "home"
    shutil.copytree(recorded.cassettes, home / "cassettes" / "mine")
    (recorded.log / TIMINGS_FILE).unlink()
    with pytest.raises(UsageError, match="not found") as told:
        find_recording(recorded.log, cassette_dir=None)
    assert "--cassette-dir" in told.value.hint
    monkeypatch.chdir(home)
    assert find_recording(recorded.log, cassette_dir=None) == Path("cassettes/mine")


def test_a_folder_that_is_given_is_the_only_place(recorded, tmp_path):
    for given in (recorded.cassettes, recorded.cassettes.parent):
        found = find_recording(recorded.log, cassette_dir=given)
        assert found == recorded.cassettes
    with pytest.raises(UsageError, match="not found"):
        find_recording(recorded.log, cassette_dir=recorded.log)


def test_a_path_that_now_holds_another_recording_is_not_believed(recorded, tmp_path):
    bundled = bundled_recording()
    assert bundled is not None
    lines = (recorded.log / TIMINGS_FILE).read_text().splitlines()
    lines[0] = f'{{"recording": "{bundled}"}}'
    (recorded.log / TIMINGS_FILE).write_text("\n".join(lines))
    with pytest.raises(UsageError, match="not found"):
        find_recording(recorded.log, cassette_dir=None)


def test_a_damaged_log_leads_nowhere(recorded):
    with (recorded.log / "episodes.jsonl").open("ab") as file:
        file.write(b"{}\n")
    with pytest.raises(LogError):
        find_recording(recorded.log, cassette_dir=None)
