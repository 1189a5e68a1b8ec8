"""`tutorsim verify`: its reports. What it finds is proved with the runner."""

import json
from xml.etree import ElementTree

from tests.tutorsim.conftest import loaded_by
from tutorsim.cli.replay_and_verify import _xml_safe

EPISODE = "sciq.ice.help_avoidant.simple"


def test_junit_of_a_good_recording_has_no_failure(recorded, shell, tmp_path):
    assert shell("verify", recorded.cassettes, "--junit", tmp_path / "j.xml").code == 0
    assert b"<failure" not in (tmp_path / "j.xml").read_bytes()
    said = shell("verify", recorded.cassettes, "--junit", tmp_path / "no" / "j.xml")
    said.fails(2, "cannot be written")


def test_junit_holds_a_case_per_episode_and_hostile_text_is_harmless(recorded, shell, tmp_path):
    path = recorded.cassettes / f"{EPISODE}.json"
    path.write_bytes(
        path.read_bytes().replace(b"Why is ice", rb"Why \\u001b[31m</failure>&\\u0000 ice", 1)
    )
    junit = tmp_path / "junit.xml"
    said = shell("verify", recorded.cassettes, "--junit", junit)
    assert said.code == 3
    assert "\x1b" not in said.err
    assert junit.read_bytes().count(b"\n    <testcase ") == 4  # a line each
    root = ElementTree.fromstring(junit.read_bytes())
    cases = root.findall("testsuite/testcase")
    assert len(cases) == 4
    assert [case.get("name") for case in cases if case.find("failure") is not None] == [EPISODE]
    assert root.find("testsuite").attrib["failures"] == "1"  # type: ignore[union-attr]
    [failure] = root.iter("failure")
    call = "call 0/student/student/1 was recorded with another request."
    assert failure.attrib["message"] == f"{EPISODE}.json: {call}"


def test_what_xml_cannot_hold_is_replaced():
    ends = "\x1f \ud7ff\ud800\udfff\ue000\ufffd\ufffe\uffff\U00010000\t\n\r"
    assert _xml_safe(ends) == "\ufffd \ud7ff\ufffd\ufffd\ue000\ufffd\ufffd\ufffd\U00010000\t\n\r"


def test_every_finding_is_gone_through_and_the_first_gives_the_exit_code(recorded, shell):
    (recorded.cassettes / f"{EPISODE}.json").unlink()
    moon = recorded.cassettes / "sciq.moon.help_avoidant.simple.json"
    moon.write_bytes(moon.read_bytes()[:100])
    said = shell("verify", recorded.cassettes)
    said.fails(3, "no cassette for this episode", "is not a whole cassette")
    assert "2 of 4 episodes" in said.out


def test_the_report_as_json_lists_findings(recorded, shell):
    path = recorded.cassettes / f"{EPISODE}.json"
    path.write_bytes(path.read_bytes().replace(b"I think", b"I know", 1))
    said = shell("verify", recorded.cassettes, "--json")
    value = json.loads(said.out)
    assert said.code == 4
    assert (value["study"], value["episodes"], value["calls"]) == ("grid", 4, recorded.calls)
    assert value["provenance"]["kind"] == "relay"
    [finding] = value["findings"]
    assert finding["episode_id"] == EPISODE
    assert finding["exit_code"] == 4


def test_replay_and_verify_load_nothing_that_only_shows_or_writes():
    unasked = ("tutorsim.analysis", "rich", "tomli_w", "gzip", "xml", "vcr", "asyncio")
    checking = "tutorsim.runner.verify_by_replay_against_digests"
    loaded = loaded_by(f"import tutorsim.cli.replay_and_verify, {checking}")
    assert [name for name in loaded if name.startswith(unasked)] == []
