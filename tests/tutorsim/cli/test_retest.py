"""`tutorsim retest`: its plan, what it refuses, and the retest where recordings are shown."""

import json
import shutil

import pytest

EPISODE = "sciq.ice.help_avoidant.simple"
REPEAT = "1/vote_final/scaffolding/1/r02"


def test_a_plan_says_what_it_takes_and_sends_nothing(recorded, shell, monkeypatch):
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    prices = ("--prices", recorded.study.with_name("prices.toml"))
    said = shell("retest", recorded.log, "--repeats", 3, "--plan", *prices)
    assert said.code == 0
    assert "Prompts: 16, in 2 turns of 2 episodes" in said.out
    assert "Calls to pay: 48; at most 96 if every reply had to be asked for twice" in said.out
    args = ("--repeats", 3, "--sample", 1, "--stages", "vote_final")
    value = json.loads(shell("retest", recorded.log, *args, *prices, "--plan", "--json").out)
    assert value == {
        "study": "grid",
        "episodes": 1,
        "turns": 1,
        "prompts": 4,
        "repeats": 3,
        "recorded": 0,
        "calls": 12,
        "most_calls": 24,
        "tokens": {"tutor-model": [1200, 240]},
        "prices_as_of": "2026-01-01",
        "cost": pytest.approx((1200 * 1.0 + 240 * 10.0) / 1e6),
        "expected_cost": pytest.approx((1200 * 1.0 + 240 * 10.0) / 1e6),
        "most_cost": pytest.approx(2 * (1200 * 1.0 + 240 * 10.0) / 1e6),
        "unknown_prices": [],
    }


def test_the_price_of_an_unknown_model_is_said_to_be_unknown(recorded, shell):
    said = shell("retest", recorded.log, "--repeats", 1, "--dry-run")
    assert "unknown: no price for tutor-model" in said.out


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (("--repeats", 0), "0 is not in the range"),
        ((), "Missing option '--repeats'"),
        (("--repeats", 1, "--stages", "tie_vote"), "'tie_vote' is no stage"),
        (("--repeats", 1, "--stages", ""), "names no stage"),
        (("--repeats", 1, "--sample", 0), "0 is not in the range"),
    ],
)
def test_what_cannot_be_asked_is_refused(args, words, recorded, shell):
    said = shell("retest", recorded.log, *args, "--plan")
    assert said.code == 2
    assert words in said.err


def test_a_log_without_its_recording_names_the_option_to_give(recorded, shell, tmp_path):
    shutil.move(recorded.cassettes, tmp_path / "moved")
    said = shell("retest", recorded.log, "--repeats", 1, "--plan")
    assert (said.code, "--cassette-dir" in said.err) == (2, True)
    args = ("--repeats", 1, "--plan", "--cassette-dir", tmp_path / "moved")
    assert shell("retest", recorded.log, *args).code == 0


# --- A retest where recordings are shown ------------------------------------------------------


def test_a_retest_is_listed_with_its_recording_and_is_no_orphan(retested, shell):
    said = shell("cassette", "list", retested.parent)
    assert "2 ×, 35 calls" in said.out
    [value] = json.loads(shell("cassette", "list", retested.parent, "--json").out)
    assert (value["retest"]["repeats"], value["retest"]["failed_calls"]) == (2, 1)
    assert shell("cassette", "list", retested.parent, "--orphans").code == 0
    (retested / "retest" / "retest.manifest.json").unlink()
    assert "(unfinished)" in shell("cassette", "list", retested).out
    (retested / "retest" / "retest.manifest.json").write_bytes(b"{")
    assert "(damaged)" in shell("cassette", "list", retested).out


def test_calls_of_a_retest_are_shown_behind_the_others(retested, shell):
    calls = json.loads(shell("cassette", "show", retested, EPISODE, "--json").out)
    keys = [call["key"] for call in calls]
    assert len(set(keys)) == len(keys)
    assert keys.index(REPEAT) > keys.index("1/judge/judge/1")
    shown = json.loads(shell("cassette", "show", retested, EPISODE, "--call", REPEAT, "--json").out)
    original = REPEAT.rpartition("/")[0]
    first = json.loads(
        shell("cassette", "show", retested, EPISODE, "--call", original, "--json").out
    )
    assert shown["request"] == first["request"]


def test_the_files_of_a_retest_are_held_against_their_manifest(retested, shell):
    assert shell("cassette", "verify", retested).code == 0
    folder = retested / "retest"
    path = folder / f"{EPISODE}.json"
    path.write_bytes(path.read_bytes().replace(b"end_turn", b"odd_turn", 1))
    (folder / "sciq.stray.help_avoidant.simple.json").write_bytes(b"{}")
    (folder / f"{EPISODE}.journal.jsonl").write_bytes(b"")
    said = shell("cassette", "verify", retested)
    assert said.code == 1
    assert f"retest/{EPISODE}.json: its replies were edited" in said.err
    assert "retest/sciq.stray.help_avoidant.simple.json: the manifest does not name it" in said.err
    assert f"retest/{EPISODE}.journal.jsonl: the retest is half recorded" in said.err
    (folder / "retest.manifest.json").write_bytes(b"{}")
    assert "retest/retest.manifest.json" in shell("cassette", "verify", retested).err


def test_a_retest_is_converted_with_its_recording(retested, shell, files, tmp_path):
    packed, back = tmp_path / "packed" / "cassettes", tmp_path / "back" / "cassettes"
    assert shell("cassette", "convert", retested, "--to", "compressed", "-o", packed).code == 0
    assert shell("verify", packed).code == 0
    said = shell("retest", packed, "--repeats", 3, "--plan")
    assert (said.code, "cassette convert" in said.err) == (4, True)
    assert shell("cassette", "convert", packed, "--to", "text", "-o", back).code == 0
    assert files(back) == files(retested)
