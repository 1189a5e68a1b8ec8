"""Where a recording's calls lie between the fewest and the most that its study could make."""

import pytest

from tutorsim.errors import RecordingError
from tutorsim.kernel.load import system_named
from tutorsim.runner.open_recording import bundled_recording, length_of, usual_length


def test_the_share_is_that_of_the_calls_made():
    folder = bundled_recording("demo")
    assert folder is not None
    found = length_of(folder)
    # 5,880 calls of the study and none of the retest, between 240 and 9,096
    assert found.share == pytest.approx(0.56, abs=0.07)
    assert found.recording == "demo (stand-in: tutorsim stand-in 2)"
    assert usual_length(system_named("panel")) == found


def test_what_is_no_recording_has_no_length(tmp_path):
    with pytest.raises(RecordingError):
        length_of(tmp_path)


def test_the_plan_says_what_it_expects_and_assumes(shell):
    import json

    said = shell("run", "demo", "--dry-run").out
    assert "of the way from the shortest to the longest path" in said
    assert "as in the recording demo (stand-in: tutorsim" in said
    found = json.loads(shell("run", "demo", "--dry-run", "--json").out)
    assert found["least_cost"] < found["expected_cost"] < found["cost"]
    way = (found["expected_cost"] - found["least_cost"]) / (found["cost"] - found["least_cost"])
    assert way == pytest.approx(found["share"])
