"""`tutorsim import`: logs that are named, and those that come with tutorsim."""

import json

from tutorsim.records import read_run
from tutorsim.runner.find_and_check_recording import bundled_logs


def test_without_files_the_council_s_rankings_that_come_with_tutorsim_are_taken(shell, tmp_path):
    said = shell("import", "council", "-o", tmp_path / "run")
    assert (said.code, said.out) == (0, f"12 episodes written to {tmp_path / 'run'}.\n")
    assert read_run(tmp_path / "run").system == "debate"
    timings = (tmp_path / "run" / "timings.jsonl").read_text().splitlines()[1:]
    assert [json.loads(line)["seconds"] for line in timings] == [0.0] * 12


def test_as_json_it_is_said_what_was_written_left_out_and_noted(shell, tmp_path):
    [log] = bundled_logs("council")
    other = tmp_path / "other.json"
    other.write_text("{}")
    run = tmp_path / "run"
    told = shell("import", "council", log, log, other, "-o", run, "--json")
    assert f"{other} is no log of a council" in " ".join(told.err.split())
    value = told.json(1)
    assert (value["written"], value["episodes"]) == (str(run), 24)
    assert [f"{other} is no log of a council" in one for one in value["skipped"]] == [True]
    said = {"another vote has the same question and answers; both count": 12}
    assert {note: len(places) for note, places in value["notes"].items()} == said


def test_a_program_without_logs_here_needs_files(shell, tmp_path):
    shell("import", "mallm", "-o", tmp_path / "run").fails(2, "No logs of mallm are named")


def test_a_file_that_does_not_exist_is_refused_before_anything_is_read(shell, tmp_path):
    said = shell("import", "council", tmp_path / "gone.json", "-o", tmp_path / "run")
    said.fails(2, "gone.json does not exist")
    assert not (tmp_path / "run").exists()
