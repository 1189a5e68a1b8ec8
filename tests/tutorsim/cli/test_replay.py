"""`tutorsim replay` and its check of verdicts; bytes and refusals are proved with the runner."""

import pytest

from tests.tutorsim.conftest import files
from tutorsim.kernel.flow_drivers_and_call_log import CodeResult
from tutorsim.records import VerdictRecord
from tutorsim.sandbox import Sandbox


@pytest.mark.loopback
def test_verdicts_are_run_again_when_asked_and_a_change_is_told(
    endpoint, write_grid, record, shell, tmp_path, monkeypatch
):
    monkeypatch.setattr(Sandbox, "report", lambda self: {"level": "none"})
    verdict = VerdictRecord(outcome="fail", reason="wrong answer")
    monkeypatch.setattr(Sandbox, "judge", lambda self, run: CodeResult("code", verdict))
    study = write_grid(conditions=["baseline"], benchmarks={"humaneval": {"limit": 1}})
    assert record(study).code == 0
    cassettes, log = tmp_path / "one" / "cassettes", tmp_path / "one" / "log"
    assert len((cassettes / "verdicts.jsonl").read_bytes().splitlines()) == 2

    again = tmp_path / "two" / "log"
    same = shell("replay", cassettes, "--log-dir", again, "--reexecute")
    assert same.code == 0
    assert files(again) == files(log)

    other = VerdictRecord(outcome="pass", reason="")
    monkeypatch.setattr(Sandbox, "judge", lambda self, run: CodeResult("code", other))
    shell("replay", cassettes, "--log-dir", again, "--reexecute").fails(
        1, "Verdicts that differ when run again: 2", "recorded fail (wrong answer), now pass"
    )
    assert files(again) == files(log)

    (cassettes / "verdicts.jsonl").unlink()
    said = shell("replay", cassettes, "--log-dir", again)
    said.fails(4, "is not the file of verdicts that was recorded")


def test_a_sandbox_level_that_is_none_is_a_usage_error(recorded, shell):
    said = shell(
        *("replay", recorded.cassettes, "--log-dir", recorded.log),
        *("--reexecute", "--sandbox", "bubblewrap"),
    )
    assert said.code == 2


def test_a_sandbox_level_is_for_running_programs_again(recorded, shell):
    for level in ("strong", "bubblewrap"):
        said = shell("replay", recorded.cassettes, "--log-dir", recorded.log, "--sandbox", level)
        said.fails(2, "--sandbox is for --reexecute")


def test_what_is_no_folder_is_refused(shell, tmp_path):
    shell("replay", tmp_path / "none", "--log-dir", tmp_path / "log").fails(4, "is not a recording")
    (tmp_path / "file").write_text("")
    assert shell("replay", tmp_path / "file", "--log-dir", tmp_path / "log").code == 2
    assert shell("replay", tmp_path).code == 2
