"""A replay needs neither file locks nor Linux."""

import subprocess
import sys
from pathlib import Path

import pytest

from tutorsim.errors import FolderError
from tutorsim.replay import FolderLock
from tutorsim.runner.open_recording import bundled_recording

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
