"""A recording's folder is accepted wherever a run folder is."""

import json
from pathlib import Path

import pytest

DEMO = Path(__file__).parents[3] / "cassettes" / "demo"


@pytest.mark.costly
@pytest.mark.parametrize("command", ["summary", "recount", "show", "compare"])
def test_a_recording_is_replayed_first(shell, tmp_path, command):
    shell("replay", DEMO, "--log-dir", tmp_path / "demo")
    of_run = shell(command, tmp_path / "demo", "--json")
    of_recording = shell(command, DEMO, "--json")
    assert of_recording.code == 0, of_recording.err
    assert json.loads(of_recording.out) == json.loads(of_run.out)
    assert "is a recording, which was replayed first: 120 episodes." in of_recording.err


def test_a_folder_that_is_neither_is_refused(shell, tmp_path):
    shell("summary", tmp_path).fails(2, "neither a run nor ballots")
