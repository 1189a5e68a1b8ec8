"""Replies that were cut off or refused: asked for once more, counted, and told in every view."""

import json
import re

import pytest

from tests.reference.replay_through_sdk import through_the_sdk
from tutorsim.records import CallRecord, odd_stops, read_episodes, read_run, stop_counts
from tutorsim.records.panel_episode_and_base_of_any_episode import BaseRecord

SIMPLE = "sciq.ice.help_avoidant.simple"


def call(key, reason):
    return CallRecord(
        key=key, stage=key.split("/")[1], model="m", stop_reason=reason, input_tokens=1,
        output_tokens=1,
    )  # fmt: skip


# --- Counting ------------------------------------------------------------------------------------


def line(*calls):
    return BaseRecord.model_construct(calls=calls)


def test_stop_reasons_are_counted_by_stage_and_those_asked_again_are_not_taken():
    counts = stop_counts(
        [
            line(
                call("0/student/student/1", "max_tokens"), call("0/student/student/2", "end_turn")
            ),
            line(call("1/propose/a/1", "max_tokens"), call("1/propose/b/1", "refusal")),
            line(call("1/propose/a/1", "max_tokens"), call("0/student/student/1", None)),
        ]
    )
    assert [tuple(count) for count in counts] == [
        ("student", "max_tokens", 1, 0),
        ("student", "end_turn", 1, 1),
        ("propose", "max_tokens", 2, 2),
        ("propose", "refusal", 1, 1),
        ("student", None, 1, 1),
    ]
    assert [(odd.stage, odd.words) for odd in odd_stops(counts)] == [
        ("propose", "cut off at max_tokens"),
        ("student", "cut off at max_tokens"),
        ("propose", "refused"),
    ]


def test_a_key_of_another_program_is_no_reason_to_fail():
    assert stop_counts([line(call("a/b/c", "end_turn"))])[0].taken == 1


@pytest.mark.parametrize("usual", ["end_turn", "stop_sequence", None])
def test_a_reply_that_came_to_its_own_end_is_no_oddity(usual):
    assert odd_stops(stop_counts([line(call("0/student/student/1", usual))])) == []


def test_no_calls_have_no_counts():
    assert stop_counts([]) == odd_stops([]) == []


# --- A whole recording ---------------------------------------------------------------------------

pytestmark = pytest.mark.loopback


def cut_first_drafts(call):
    """First drafts are cut off, and so is one voter's every reply."""
    _, _, stage, agent, attempt = call.split("/")
    if (stage, attempt) == ("propose", "1") or (stage, agent) == ("vote_final", "motivation"):
        return "max_tokens"
    return "refusal" if (stage, agent) == ("critique", "scaffolding") else "end_turn"


@pytest.fixture
def cut_off(endpoint, write_grid, shell, tmp_path):
    """Record the grid with replies that are cut off; what the command said, and the folders."""

    def record(**settings):
        endpoint.stop = cut_first_drafts
        log, cassettes = tmp_path / "log", tmp_path / "cassettes"
        study = write_grid(**settings)
        said = shell("run", study, "--log-dir", log, "--cassette-dir", cassettes)
        assert said.code == 0
        return said, log, cassettes

    return record


@pytest.mark.costly
def test_a_reply_that_was_cut_off_is_asked_for_once_more(cut_off, endpoint, shell):
    _, log, cassettes = cut_off()
    again = [name for name in endpoint.sent if name.endswith("/2")]
    assert {name.split("/")[2] for name in again} == {"propose", "vote_final"}
    body = endpoint.bodies[f"{SIMPLE}/1/propose/motivation/2"]
    assert b"was cut off. Reply again from the start" in body
    assert read_run(log).panel.ask_cut_off_again
    assert shell("verify", cassettes).code == 0
    with through_the_sdk():
        assert shell("verify", cassettes).code == 0


def test_a_setting_turns_that_off(cut_off, endpoint, shell):
    said, log, cassettes = cut_off(ask_cut_off_again=False)
    assert all(name.endswith("/1") for name in endpoint.sent)
    assert "ask_cut_off_again" not in (log / "run.json").read_text()
    assert "cut_off_reminder" not in (cassettes / "wordings.toml").read_text()
    assert "12 of them were taken as they are" in said.err
    assert "A larger `max_tokens` in [models] makes room" in said.err
    assert shell("verify", cassettes).code == 0


@pytest.mark.costly
def test_the_end_of_a_run_warns_and_every_view_tells(cut_off, shell, tmp_path):
    said, log, _ = cut_off()
    assert (
        "Warning: 14 replies were cut off at max_tokens (propose 10, vote_final 4); "
        "2 of them were taken as they are." in said.err.replace("\n", " ")
    )
    assert "Warning: 2 replies were refused (critique 2); 2 of them were taken" in said.err
    assert said.err.count("A larger `max_tokens` in [models] makes room") == 1
    text = shell("summary", log, "--section", "replies").out
    assert "Replies without text or an end of their own" in text
    value = shell("summary", log, "--json").json()["values"]
    assert {"stage": "propose", "stop_reason": "max_tokens", "calls": 10, "taken": 0} in value[
        "stop_reasons"
    ]
    shown = shell("show", log, SIMPLE).out
    assert "cut off at max_tokens: 1/propose/" in shown
    assert "refused: 1/critique/scaffolding/1" in shown
    assert "replies cut off at max_tokens; 1 reply refused" in shell("show", log).out
    page = tmp_path / "report.md"
    assert shell("report", log, "-o", page).code == 0
    assert "Replies without text or an end of their own" in page.read_text()


SILENT = "/1/propose/motivation/"


def test_empty_replies_that_ended_are_asked_again_and_told(endpoint, write_grid, shell, tmp_path):
    def silenced(call, data):
        value = json.loads(data)
        return json.dumps({**value, "content": []}).encode() if SILENT in call else data

    endpoint.rewrite = silenced
    log, cassettes = tmp_path / "log", tmp_path / "cassettes"
    said = shell("run", write_grid(), "--log-dir", log, "--cassette-dir", cassettes)
    assert said.code == 0
    assert endpoint.counts()[f"{SIMPLE}{SILENT}2"] == 1
    assert "Warning: 4 replies were without text (propose 4); 2 of them were taken" in said.err
    assert "A larger `max_tokens`" not in said.err
    first = " ".join(shell("summary", log).out.split())
    assert "not 4 of 60 replies. They had no text, were refused, or cut off" in first
    whole = shell("summary", log, "--section", "replies").out
    assert re.search(r"propose\s+without text\s+4\s+2\n", whole)
    assert "The run has 4 replies without text" in shell("recount", log).out
    assert f"without text: {SILENT[1:]}1, {SILENT[1:]}2" in shell("show", log, SIMPLE).out
    assert "2 replies without text" in shell("show", log).out
    assert shell("verify", cassettes).code == 0
    line = next(one for one in read_episodes(log) if one.episode_id == SIMPLE)
    assert line.without_text == (f"{SILENT[1:]}1", f"{SILENT[1:]}2")


def test_where_every_reply_has_an_end_nothing_is_told(recorded, shell):
    for command in (("summary", recorded.log), ("show", recorded.log, SIMPLE)):
        assert "cut off" not in shell(*command).out
    assert not odd_stops(stop_counts(read_episodes(recorded.log)))


def test_without_the_setting_what_was_cut_off_is_taken_as_it_is(cut_off, shell, endpoint, tmp_path):
    """As it was before there was a setting; the same command goes on with it, too."""
    _, log, cassettes = cut_off(ask_cut_off_again=False)
    study = cassettes / "study.toml"
    text = study.read_text()
    assert text.count("ask_cut_off_again = false\n") == 1
    study.write_text(text.replace("ask_cut_off_again = false\n", ""))
    assert shell("verify", cassettes).code == 0
    path = tmp_path / "study" / "study.toml"
    path.write_text(path.read_text().replace("ask_cut_off_again = false\n", ""))
    endpoint.sent.clear()
    assert shell("run", path, "--log-dir", log, "--cassette-dir", cassettes).code == 0
    assert endpoint.sent == []
