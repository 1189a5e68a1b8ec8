"""A retest is played and verified with its recording, with no socket and no key."""

import json
import shutil

import orjson
import pytest

from tests.reference.replay_through_sdk import through_the_sdk
from tests.tutorsim.conftest import edit, files
from tutorsim.model import Question
from tutorsim.records import RETEST_FILE, RETEST_HEAD_FILE, read_retest, read_run
from tutorsim.runner.find_and_check_recording import open_recording
from tutorsim.runner.play_recorded_episodes_and_retests import open_retest
from tutorsim.runner.replay_into_run_folder_in_several_processes import replay_each

EPISODE = "sciq.ice.help_avoidant.simple"
HEAD = "retest/retest.manifest.json"


def test_a_replay_writes_the_retest_beside_the_log(retested, recorded, shell, tmp_path):
    seen = []
    for name, workers in (("one", 1), ("two", 2)):
        log = tmp_path / name / "log"
        assert shell("replay", retested, "--log-dir", log, "--workers", workers).code == 0
        seen.append(files(log))
    with through_the_sdk():
        log = tmp_path / "sdk" / "log"
        assert shell("replay", retested, "--log-dir", log).code == 0
    assert seen[0] == seen[1] == files(log)
    run = files(recorded.log)
    names = {f"log/{name}" for name in (RETEST_FILE, RETEST_HEAD_FILE)}
    assert seen[0].keys() - run.keys() == names
    assert {name: data for name, data in seen[0].items() if name in run} == run
    found = read_retest(tmp_path / "one" / "log")
    assert found.head.recording_digest == read_run(recorded.log).recording_digest
    first, final = found.episodes[0].votes
    assert [[b.ballot_status for b in panel] for panel in first.repeats] == [
        ["abstained", "valid", "valid", "valid"]
    ] * 2
    assert (len(final.repeats), len(final.failures)) == (1, 1)
    text = seen[0][f"log/{RETEST_HEAD_FILE}"] + seen[0][f"log/{RETEST_FILE}"]
    assert str(tmp_path).encode() not in text


def test_the_record_of_an_episode_that_another_process_played_is_read_from_its_line(retested):
    recording = open_recording(retested)
    player = open_retest(recording)
    assert player is not None
    for one in replay_each(recording):
        assert player.record_of(one) is one.record
        assert player.record_of(one._replace(record=None)) == one.record


def test_the_retest_of_a_log_that_has_none_any_more_is_taken_away(retested, shell, tmp_path):
    log = tmp_path / "log"
    assert shell("replay", retested, "--log-dir", log).code == 0
    shutil.rmtree(retested / "retest")
    assert shell("replay", retested, "--log-dir", log).code == 0
    assert read_retest(log) is None


def test_a_retest_as_it_was_made_is_confirmed(reader, retested, recorded, shell):
    said = shell("verify", retested)
    assert said.code == 0
    paid = 2 * 16 - 1 + 2 * 2  # one call failed; two voters were asked twice, both times
    assert f"4 of 4 episodes ({recorded.calls + paid} calls)" in said.out


def change(folder, what):
    """Edit the calls of a retest's cassette."""
    edit(folder / "retest" / f"{EPISODE}.json", lambda content: what(content["interactions"]))


def another_reply(calls):
    body = calls[3]["response"]["body"]
    body["string"] = body["string"].replace("end_turn", "other_turn")


def another_request(calls):
    request = calls[3]["request"]
    request["body"] = request["body"].replace("tutor-model", "other-model")


def another_key(calls):
    headers = calls[-1]["request"]["headers"]
    headers["x-tutorsim-call"] = [headers["x-tutorsim-call"][0][:-2] + "09"]


def cut(folder):
    path = folder / "retest" / f"{EPISODE}.json"
    path.write_bytes(path.read_bytes()[:-100])


def other_recording(folder):
    edit(folder / HEAD, lambda head: head.update(recording_digest="0" * 64))


@pytest.mark.parametrize(
    ("damage", "code", "words"),
    [
        (lambda f: change(f, lambda calls: calls.pop(5)), 3, "is not in the recording"),
        (lambda f: change(f, another_request), 3, "recorded with another request"),
        (lambda f: change(f, another_key), 3, "is not in the recording"),
        (lambda f: change(f, another_reply), 4, "was edited after it was recorded"),
        (lambda f: (f / "retest" / f"{EPISODE}.json").unlink(), 3, "has no cassette"),
        (cut, 4, "is not a whole cassette"),
        (other_recording, 4, "is the retest of another recording"),
        (lambda f: (f / "retest" / "retest.manifest.json").write_bytes(b"{"), 4, "whole manifest"),
    ],
    ids=["missing", "request", "key", "reply", "no file", "cut", "other", "head"],
)
def test_a_retest_that_was_changed_is_told(damage, code, words, retested, shell, tmp_path):
    damage(retested)
    for args in (("verify", retested), ("replay", retested, "--log-dir", tmp_path / "log")):
        said = shell(*args)
        assert (said.code, words in said.err) == (code, True)
    assert read_retest(tmp_path / "log") is None


def test_a_call_that_no_prompt_asks_for_is_told(retested, shell):
    def one_more(calls):
        extra = orjson.loads(orjson.dumps(calls[-1]))
        another_key([extra])
        calls.append(extra)

    change(retested, one_more)
    shell("verify", retested).fails(1, "r09")


def test_another_reading_of_ballots_is_drift_of_the_retest(retested, shell, monkeypatch):
    monkeypatch.setattr(
        "tutorsim.kernel.retest_flow_and_drawn_turns.ballot_question",
        lambda call, labels, *, form, budget, reminder: Question(call, lambda _: None, reminder),
    )
    # what could be read then is now asked for a second time
    findings = shell("verify", retested, "--json").json(3)["findings"]
    values = {finding["episode_id"] for finding in findings}
    assert values == {f"{EPISODE} (retest)", f"{EPISODE.replace('ice', 'moon')} (retest)"}


def test_a_retest_that_leads_elsewhere_is_refused(retested, shell, tmp_path):
    (retested / "retest").rename(tmp_path / "elsewhere")
    (retested / "retest").symlink_to(tmp_path / "elsewhere")
    shell("verify", retested).fails(4, "leads out of its recording")


@pytest.mark.parametrize(
    ("field", "value", "code"),
    [
        ("repeats", 3, 4),
        ("repeats", 1, 4),
        ("stages", ["vote_initial"], 4),
        ("sample", 1, 4),
        ("study_name", "x", 4),
        ("retest_sha256", "0" * 64, 4),
        ("packages", {"tutorsim": "9"}, 4),
        ("provenance", {"kind": "api", "name": "Anthropic API"}, 4),
    ],
)
def test_an_edited_number_of_the_head_is_named(field, value, code, retested, shell):
    edit(retested / HEAD, lambda head: head.update({field: value}))
    said = shell("verify", retested)
    assert said.code == code
    assert "retest.manifest.json does not say what" in said.err
    assert f": {field}" in said.err
    assert "Recorded from relay" in said.out


@pytest.mark.loopback
def test_an_edited_seed_of_a_sample_is_named(recorded, endpoint, shell):
    assert shell("retest", recorded.log, "--repeats", 1, "--sample", 1).code == 0
    path = recorded.cassettes / "retest" / "retest.manifest.json"
    text = path.read_text()
    found = []
    for seed in range(1, 8):
        path.write_text(text.replace('"seed": 0', f'"seed": {seed}'))
        found.append(shell("verify", recorded.cassettes))
    assert {said.code for said in found} == {0, 4}  # some seeds draw the very turn
    assert all(": seed" in said.err for said in found if said.code)


@pytest.mark.loopback
def test_stages_that_were_not_asked_again_are_known(recorded, endpoint, shell):
    assert shell("retest", recorded.log, "--repeats", 1, "--stages", "vote_final").code == 0
    assert shell("verify", recorded.cassettes).code == 0
    stages = ["vote_initial", "vote_final"]
    edit(recorded.cassettes / HEAD, lambda head: head.update(stages=stages))
    shell("verify", recorded.cassettes).fails(4, ": stages")


@pytest.mark.parametrize(("field", "value"), [("calls", 1), ("failures", [])])
def test_an_edited_entry_is_named(field, value, retested, shell):
    path = retested / HEAD
    head = json.loads(path.read_text())
    entry = next(e for e in head["episodes"] if e["failures"])
    entry[field] = value
    path.write_text(json.dumps(head))
    said = shell("verify", retested)
    assert said.code != 0
    wanted = f"{entry['episode_id']}.{field}" if field == "calls" else "is not in the recording"
    assert wanted in said.err
