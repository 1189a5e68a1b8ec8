"""`tutorsim cassette`: lists, shows and holds files against manifests, whatever is in them."""

import json
import re
from pathlib import Path

import orjson
import pytest

import tutorsim
from tests.reference.replay_through_sdk import through_the_sdk
from tests.tutorsim.conftest import edit
from tutorsim.model import CALL_HEADER
from tutorsim.replay import read_cassette
from tutorsim.replay.cassette_file import compressed, write_cassette
from tutorsim.standin.server import StandIn

CLAUDE = Path(__file__).parents[3] / "cassettes" / "claude"
EPISODE = "sciq.ice.help_avoidant.simple"
CALL = ("--call", "0/student/student/1")
ONE_OF_THEM = "humaneval.running-max.low_confidence_novice.approval"


def test_recordings_are_listed_with_what_answered_them(recorded, shell):
    said = shell("cassette", "list", recorded.cassettes.parent)
    said.tells(str(recorded.cassettes), "relay: unnamed")
    [value] = shell("cassette", "list", recorded.cassettes, "--json").json()
    assert (value["study"], value["episodes"], value["failed"]) == ("grid", 4, 0)
    assert value["calls"] == recorded.calls
    assert value["problem"] is None


def test_an_unfinished_recording_is_listed_with_its_problem(recorded, shell):
    (recorded.cassettes / "manifest.json").unlink()
    assert "(unfinished)" in shell("cassette", "list", recorded.cassettes).out
    [value] = shell("cassette", "list", recorded.cassettes, "--json").json()
    assert "no manifest.json" in value["problem"]


def test_a_manifest_that_its_cassettes_contradict_does_not_say_what_answered(recorded, shell):
    path = recorded.cassettes / "manifest.json"
    text = path.read_text()
    assert text.count('"kind": "relay"') == 1
    path.write_text(text.replace('"kind": "relay"', '"kind": "api"'))
    said = shell("cassette", "list", recorded.cassettes).out
    assert "(contradicted)" in said
    assert "api:" not in said
    [value] = shell("cassette", "list", recorded.cassettes, "--json").json()
    assert value["provenance"] is None
    assert "says that api answered" in value["problem"]
    assert "what it was recorded from is not said." in shell("verify", recorded.cassettes).out


def test_a_folder_without_recordings_says_so(shell, tmp_path):
    assert "No recordings here." in shell("cassette", "list", tmp_path).out
    assert shell("cassette", "list", tmp_path / "none").code == 2


def test_a_recording_that_a_study_uses_is_no_orphan(recorded, shell):
    said = shell("cassette", "list", recorded.cassettes, "--orphans", "--study", recorded.study)
    assert said.code == 0
    assert "No orphans." in said.err
    assert shell("cassette", "list", recorded.cassettes, "--orphans").code == 0
    alone = shell("cassette", "list", recorded.cassettes, "--study", recorded.study)
    alone.fails(2, "--study compares", "Add --orphans")


def test_orphan_recordings_cassettes_and_episodes_belong_to_nothing(recorded, shell, write_grid):
    path = recorded.cassettes / f"{EPISODE}.json"
    path.rename(recorded.cassettes / "sciq.stray.help_avoidant.simple.json")
    said = shell("cassette", "list", recorded.cassettes, "--orphans", "--study", recorded.study)
    assert said.code == 1
    assert "not in manifest" in said.out
    assert "sciq.stray.help_avoidant.simple.json" in said.out
    assert f"not recorded     {EPISODE} (study grid)" in said.out

    other = ("--orphans", "--study", write_grid(seed=8))
    value = shell("cassette", "list", recorded.cassettes, *other, "--json").json(1)
    assert value["recordings"] == [str(recorded.cassettes)]
    assert len(value["episodes"]) == 4


def test_a_recording_an_episode_and_a_call_are_shown(recorded, shell):
    whole = shell("cassette", "show", recorded.cassettes)
    assert "Study grid, digest " in whole.out
    assert EPISODE in whole.out
    calls = shell("cassette", "show", recorded.cassettes, EPISODE)
    assert "1/vote_final/motivation/1" in calls.out
    assert "tutor-model" in calls.out
    head, _, *lines = calls.out.splitlines()
    end = head.index("tokens in") + len("tokens in")
    assert all(line[:end][-1].isdigit() for line in lines)  # figures end where their head does
    one = shell("cassette", "show", recorded.cassettes, EPISODE, "--call", "0/judge/judge/1")
    assert "SCORE: 0.1\nbecause of turn 0" in one.out
    for more in ((), (EPISODE,), (EPISODE, "--call", "0/judge/judge/1")):
        shell("cassette", "show", recorded.cassettes, *more, "--json").json()


@pytest.mark.parametrize(
    ("more", "code", "named"),
    [
        ((EPISODE, "--call", "9/judge/judge/1"), 3, "has no call '9/judge/judge/1'"),
        (("sciq.none.help_avoidant.simple",), 3, "no cassette for this episode"),
        (("../../secret",), 2, "is not an episode id"),
        (("--call", "0/judge/judge/1"), 2, "--call is for one EPISODE"),
    ],
)
def test_what_is_not_there_is_named(more, code, named, recorded, shell):
    said = shell("cassette", "show", recorded.cassettes, *more)
    assert said.code == code
    assert named in said.err


def edit_first(recorded, change):
    """Change the first call of an episode in its cassette."""
    path = recorded.cassettes / f"{EPISODE}.json"
    edit(path, lambda cassette: change(cassette["interactions"][0]))


def test_hostile_text_in_a_reply_is_shown_and_not_obeyed(recorded, shell):
    def hostile(one):
        body = one["response"]["body"]
        message = orjson.loads(body["string"])
        message["content"][0]["text"] = "\x1b[31mred \x9b2J [bold]b[/bold] \u202e :smile: \x07"
        message["model"] = "\x1b]0;title\x07"
        body["string"] = orjson.dumps(message).decode()

    edit_first(recorded, hostile)
    for more in ((), CALL, ("--json",), (*CALL, "--json")):
        said = shell("cassette", "show", recorded.cassettes, EPISODE, *more)
        assert said.code == 0
        assert not {"\x1b", "\x9b", "\x07", "\u202e"} & set(said.out)
    shown = shell("cassette", "show", recorded.cassettes, EPISODE, *CALL).out
    assert r"\x1b[31mred \x9b2J [bold]b[/bold] \u202e :smile: \x07" in shown


@pytest.mark.parametrize("body", ["{", "[]"])
def test_a_request_that_is_no_json_object_is_told(body, recorded, shell):
    edit_first(recorded, lambda one: one["request"].update(body=body))
    for more in (CALL, (*CALL, "--json")):
        said = shell("cassette", "show", recorded.cassettes, EPISODE, *more)
        said.fails(4, "the request of call 0/student/student/1 is no JSON object")
    assert shell("cassette", "verify", recorded.cassettes).code == 1
    assert shell("verify", recorded.cassettes).code == 4
    with through_the_sdk():
        assert shell("verify", recorded.cassettes).code == 4


@pytest.mark.parametrize(
    ("body", "asked"),
    [
        ({"messages": [{"role": "user", "content": "Go on."}]}, "Go on."),
        ({"messages": ["a", "b"], "model": "m"}, "['a', 'b']"),
        ({"messages": None, "input": "c"}, "{'messages': None, 'input': 'c'}"),
        ({"input": "c"}, "{'input': 'c'}"),
    ],
)
def test_what_a_call_asked_is_the_message_the_messages_or_the_request(body, asked, recorded, shell):
    edit_first(recorded, lambda one: one["request"].update(body=json.dumps(body)))
    shell("cassette", "show", recorded.cassettes, EPISODE, *CALL).tells(f"Asked\n{asked}\n\nReply")


def test_files_are_held_against_the_manifest(recorded, shell):
    assert shell("cassette", "verify", recorded.cassettes).code == 0
    path = recorded.cassettes / f"{EPISODE}.json"
    path.write_bytes(path.read_bytes().replace(b"I think", b"I know", 1))
    (recorded.cassettes / "sciq.stray.help_avoidant.simple.journal.jsonl").write_text("")
    shell("cassette", "verify", recorded.cassettes).fails(
        1,
        f"{EPISODE}.json: its replies were edited",
        "the episode is half recorded",
        "differ from what was recorded: 2.",
    )


def test_a_damaged_manifest_is_called_damaged(recorded, shell):
    (recorded.cassettes / "manifest.json").write_text("{")
    text = shell("cassette", "list", recorded.cassettes).out
    assert "(damaged)" in text
    assert "(unfinished)" not in text


def test_a_log_without_its_head_is_refused_alike_everywhere(recorded, shell):
    (recorded.log / "run.json").unlink()
    for command in (("summary",), ("show", EPISODE), ("recount",)):
        assert shell(command[0], recorded.log, *command[1:]).code == 4


@pytest.fixture
def own_panel(tmp_path):
    """Two cassettes of a panel of one's own beside a library's JSON of a recording's names."""
    interactions = read_cassette(CLAUDE, ONE_OF_THEM).interactions.values()
    folder = tmp_path / "cassettes"
    for name in ("release-note", "a.b.c.d"):
        named = [
            one._replace(request_headers={**one.request_headers, CALL_HEADER: f"{name}/{one.key}"})
            for one in interactions
        ]
        folder.mkdir(exist_ok=True)
        write_cassette(folder, name, named, kind="relay", study_digest="", packages={})
    (tmp_path / "library").mkdir()
    (tmp_path / "library" / "tsconfig.base.spec.prod.json").write_text('{"version": 1}')
    return folder


@pytest.mark.parametrize("ending", [".json", ".json.zst"])
def test_cassettes_of_a_panel_of_one_s_own_are_listed_shown_and_verified(ending, own_panel, shell):
    path = own_panel / "release-note.json"
    if ending == ".json.zst":
        path.with_name(path.name + ".zst").write_bytes(compressed(path.read_bytes()))
        path.unlink()
    listed = shell("cassette", "list", own_panel.parent, "--json").json()
    assert [(one["folder"], one["own_panel"], one["cassettes"]) for one in listed] == [
        (str(own_panel), True, 2)
    ]
    row = shell("cassette", "list", own_panel.parent).out.splitlines()[-1]
    assert "(own panel)" in row
    assert "relay" in row
    assert shell("cassette", "list", own_panel.parent, "--orphans").code == 0
    shown = shell("cassette", "show", own_panel, "--json").json()
    assert {one["cassette"] for one in shown} == {"release-note.json", "a.b.c.d.json"}
    of_file = shell("cassette", "show", own_panel / f"release-note{ending}")
    assert of_file == shell("cassette", "show", own_panel, "release-note")
    first = of_file.out.splitlines()[2].split()[0]
    assert len(of_file.out.splitlines()) == 2 + shown[0]["calls"]
    assert "Reply" in shell("cassette", "show", own_panel, "release-note", "--call", first).out
    assert shell("cassette", "show", own_panel, "../x").code == 3
    assert "can be read and holds no key" in shell("cassette", "verify", own_panel).out


@pytest.mark.loopback
@pytest.mark.parametrize("recorded_before", [False, True])
def test_an_interrupted_run_of_an_own_panel_is_listed(recorded_before, shell, tmp_path, stand_ins):
    path = tmp_path / "release.json"

    def ask(*questions, mode):
        with tutorsim.recorded(path, mode=mode) as client:
            for text in questions:
                asked = [{"role": "user", "content": text}]
                client.messages.create(model="m", max_tokens=9, messages=asked)
            if "two" in questions:
                raise KeyboardInterrupt

    stand_ins()
    if recorded_before:
        ask("one", mode="once")
    with pytest.raises(KeyboardInterrupt):
        ask("one", "two", mode="new")
    (tmp_path / "other.journal.jsonl").write_text("[]\n")
    said = shell("cassette", "list", tmp_path)
    assert f"{int(recorded_before)} + 1 half" in said.out
    assert "(own panel)" in said.out
    [told] = said.err.splitlines()
    assert told.startswith(f"{tmp_path}/release.journal.jsonl holds what an interrupted recording")
    assert 'goes on from it with mode "new"' in told
    [value] = shell("cassette", "list", tmp_path, "--json").json()
    assert (value["own_panel"], value["half_recorded"], value["problem"]) == (True, 1, None)


def test_what_is_wrong_with_cassettes_of_one_s_own_is_named(own_panel, shell):
    path = own_panel / "release-note.json"
    whole = path.read_text()
    for text, problem in (
        (whole[:-40], "is not a whole cassette"),
        (whole.replace("end_turn", f"sk-ant-{'x' * 20}"), "in the shape of a key"),
    ):
        path.write_text(text)
        shell("cassette", "verify", own_panel).fails(1, "release-note.json: ", problem)


@pytest.mark.loopback
def test_cassettes_of_other_apis_are_shown_and_told_by_age(tmp_path, shell, monkeypatch):
    """A count of tokens, a chat completion, the same as a stream; the first on an earlier day."""
    asked = {"model": "m", "messages": [{"role": "user", "content": "Hello?"}]}
    folder = tmp_path / "cassettes"
    cassette = folder / "c.json"
    chat = "/v1/chat/completions"
    with StandIn() as server:
        for day in ("2020-02-01", "2020-03-01"):
            monkeypatch.setattr(
                "tutorsim.replay.any_sdk_session_keys_refuses_plays_records.today",
                lambda day=day: day,
            )
            with tutorsim.recorded_http(cassette, mode="new") as http:
                http.post(f"{server.url}/v1/messages/count_tokens", json=asked)
                http.post(server.url + chat, json=asked)
                if day == "2020-03-01":
                    http.post(server.url + chat, json={**asked, "stream": True})
    shown = shell("cassette", "show", cassette, "--json").json()
    values = [(one["model"], one["stop_reason"], one["output_tokens"]) for one in shown]
    assert values == [("m", None, None), ("m", "stop", 17), ("m", "stop", None)]
    assert {one["input_tokens"] for one in shown} == {2, None}
    assert len(shell("cassette", "show", cassette).out.splitlines()) == 5
    keys = [one["key"] for one in shown]
    assert "[DONE]" in shell("cassette", "show", folder, "c", "--call", keys[2]).out
    streamed = shell("cassette", "show", folder, "c", "--call", keys[2], "--json").json()
    assert "".join(
        one["choices"][0]["delta"].get("content", "") for one in streamed["response"]
    ).startswith("I play")
    assert shell("cassette", "verify", folder).code == 0
    monkeypatch.setattr("tutorsim.replay.list_and_check_recordings.today", lambda: "2020-04-01")
    for verify in (("cassette", "verify"), ("verify",)):
        for age, code in (("60d", 0), ("59d", 1), ("soon", 2)):
            said = shell(*verify, folder, "--max-age", age)
            assert said.code == code
            assert ("c.json: it was recorded on 2020-02-01" in said.err) == (code == 1)
        assert shell(*verify, CLAUDE, "--max-age", "99999d").code == 0
    monkeypatch.undo()
    assert "manifest.json: it was recorded on" in shell("verify", CLAUDE, "--max-age", "0").err
    shell("verify", folder, "--json").fails(2, "cassettes of a panel of your own")
    whole = cassette.read_text()
    noted = whole.replace('"packages"', f'"unasked": [{json.dumps(keys[0])}], "packages"', 1)
    cassette.write_text(noted)
    shell("cassette", "verify", folder).fails(1, f"nobody asked for {keys[0]}")
    cassette.write_text(whole)
    aged = cassette.read_text()
    cassette.write_text(re.sub(r',\s*"recorded": \{[^}]*\}', "", aged))
    assert cassette.read_text() != aged
    assert "it does not say its age" in shell("cassette", "verify", folder, "--max-age", "9d").err
