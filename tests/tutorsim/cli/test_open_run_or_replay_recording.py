"""A recording's folder is accepted wherever a run folder is."""

import json
from pathlib import Path

import pytest

DEMO = Path(__file__).parents[3] / "cassettes" / "demo"


@pytest.mark.costly
@pytest.mark.parametrize("command", ["summary", "recount", "show", "compare"])
def test_a_recording_is_replayed_first(tutorsim, tmp_path, command):
    tutorsim("replay", DEMO, "--log-dir", tmp_path / "demo")
    of_run = tutorsim(command, tmp_path / "demo", "--json")
    of_recording = tutorsim(command, DEMO, "--json")
    assert of_recording.exit_code == 0, of_recording.stderr
    assert json.loads(of_recording.stdout) == json.loads(of_run.stdout)
    assert "is a recording, which was replayed first: 120 episodes." in of_recording.stderr


def test_a_folder_that_is_neither_is_refused(tutorsim, tmp_path):
    done = tutorsim("summary", tmp_path)
    assert done.exit_code == 2
    assert "neither a run nor ballots" in done.stderr
