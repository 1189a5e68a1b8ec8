"""What did the work is told beside the log."""

from tutorsim.runner.run_log import fingerprint_text, machine_facts
from tutorsim.sandbox import Sandbox


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
