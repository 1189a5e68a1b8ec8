"""Cassettes: vcrpy's own format, which stock vcrpy and the stock SDK can play."""

import json
import os

import anthropic
import pytest
import vcr
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from vcr.serialize import deserialize
from vcr.serializers import jsonserializer, yamlserializer

from tutorsim.errors import MissingCallError, RecordingError
from tutorsim.model import Call, Reply
from tutorsim.replay import Cassette, read_cassette
from tutorsim.replay.cassette_file import JsonText
from tutorsim.replay.recorded_call import Interaction, requests_digest

NASTY = "é \U0001f600 \u2028\u2029\x85\x7f\x9f\ufeff\ufffe\uffff \x00\x1b[31m\t'\"\\ [b] : - # {"


@pytest.mark.loopback
@pytest.mark.parametrize("serializer", ["json", "yaml"])
def test_stock_vcrpy_and_the_stock_sdk_play_a_cassette(
    serializer, tmp_path, episode, call, record, server, monkeypatch
):
    calls = [call(NASTY + str(number), agent=f"a{number}") for number in range(3)]
    replies: list[Reply] = record(tmp_path, calls)
    monkeypatch.delenv("ANTHROPIC_BASE_URL")
    before = (tmp_path / f"{episode}.json").read_bytes()

    stock = vcr.VCR(
        serializer=serializer,
        record_mode="none",
        match_on=("method", "scheme", "host", "port", "path", "query", "body"),
    )
    with stock.use_cassette(str(tmp_path / f"{episode}.json")) as tape:
        client = anthropic.Anthropic(api_key="none", max_retries=0)
        for one, reply in zip(reversed(calls), reversed(replies), strict=True):
            body = one.request.body()
            got = client.messages.create(
                extra_body={"temperature": body.pop("temperature")}, **body
            )
            assert got.content[0].text == reply.text  # type: ignore[union-attr]
        assert tape.all_played

    assert len(server.seen) == 3
    assert (tmp_path / f"{episode}.json").read_bytes() == before


def test_a_cassette_says_what_it_is(tmp_path, call, interaction, message, write):
    cassette: Cassette = write(tmp_path, [interaction(call("a"), message("b"))])

    data = json.loads((tmp_path / cassette.name).read_text(encoding="utf-8"))
    assert data["version"] == 1
    assert data["metadata"]["tutorsim"] == {
        "schema": 1,
        "study_digest": "0" * 64,
        "provenance": "relay",
        "packages": {"tutorsim": "1"},
    }
    assert cassette.kind == "relay"
    assert [*cassette.interactions] == ["1/propose/motivation/1"]


def test_interactions_stand_in_the_order_given(tmp_path, call, interaction, message, write):
    agents = ["d", "a", "c", "b"]
    cassette = write(tmp_path, [interaction(call("x", agent=a), message("y")) for a in agents])

    assert [key.split("/")[2] for key in cassette.interactions] == agents


@pytest.mark.costly
@settings(max_examples=60, deadline=None)
@given(prompt=st.text(), reply=st.text())
def test_any_text_survives_under_both_serializers(prompt, reply):
    def entry(text, other):
        return {
            "request": {"method": "POST", "uri": "x", "body": text, "headers": {}},
            "response": {"body": {"string": other}},
        }

    # Raw text of any kind, and as JSON inside of JSON, as bodies are.
    bodies = [(prompt, reply), (json.dumps(prompt, ensure_ascii=False), json.dumps(reply))]
    text = JsonText.serialize({"interactions": [entry(*body) for body in bodies]})

    for serializer in (jsonserializer, yamlserializer):
        requests, responses = deserialize(text, serializer)
        assert [r.body.decode() for r in requests] == [body for body, _ in bodies]
        assert [r["body"]["string"].decode() for r in responses] == [body for _, body in bodies]
    pure = yaml.load(text, yaml.SafeLoader)
    assert pure["interactions"][0]["request"]["body"] == prompt
    assert "\r" not in text
    assert all(line.isprintable() or not line.isascii() for line in text.split("\n"))


def test_the_file_does_not_depend_on_the_locale(tmp_path, call, interaction, message, write):
    cassette = write(tmp_path, [interaction(call("ü\U0001f600"), message("é"))])

    assert "ü\U0001f600" in (tmp_path / cassette.name).read_bytes().decode("utf-8")


def test_the_digest_of_requests_ignores_replies_and_spelling_but_not_order():
    one, two = ("1/propose/a/1", '{"a":1,"b":"é"}'), ("1/propose/b/1", "{}")
    respelled = ("1/propose/a/1", '{"b": "\\u00e9", "a": 1}')

    assert requests_digest([one, two]) == requests_digest([respelled, two])
    assert requests_digest([one, two]) != requests_digest([two, one])
    assert requests_digest([one, two]) != requests_digest([one])


def test_a_cassette_that_is_not_there_is_a_missing_call(tmp_path, episode):
    with pytest.raises(MissingCallError, match=f"{episode}.json") as caught:
        read_cassette(tmp_path, episode)

    assert caught.value.exit_code == 3


def _cut(text):
    return text[: len(text) // 2]


def _edit(change):
    def edited(text):
        data = json.loads(text)
        change(data)
        return json.dumps(data)

    return edited


def _set(*path, value):
    def change(data):
        for step in path[:-1]:
            data = data[step]
        data[path[-1]] = value

    return change


CALL_PATH = ("interactions", 0, "request", "headers", "x-tutorsim-call")


@pytest.mark.parametrize(
    ("damage", "why"),
    [
        (_cut, "whole cassette"),
        (lambda _: "", "whole cassette"),
        (lambda _: "[]", "whole cassette"),
        (lambda _: "null", "whole cassette"),
        (lambda text: text.replace("{", "[", 1), "whole cassette"),
        (_edit(_set("version", value=2)), "cassette version 2"),
        (_edit(_set("metadata", "tutorsim", "schema", value=7)), "schema 7"),
        (_edit(_set("metadata", value={})), "field 'tutorsim' is missing"),
        (_edit(_set("metadata", "tutorsim", "provenance", value="magic")), "'magic'"),
        (_edit(_set("metadata", "tutorsim", "study_digest", value=7)), "metadata .* not text"),
        (_edit(_set("metadata", "tutorsim", "packages", value=[])), "metadata .* not text"),
        (_edit(_set(*CALL_PATH, value=["sciq.q2.x.simple/1/propose/a/1"])), "'sciq.q2.x.simple'"),
        (_edit(_set(*CALL_PATH, value=[])), "whole cassette"),
        (_edit(_set(*CALL_PATH, value=7)), "whole cassette"),
        (_edit(_set("interactions", 0, "request", "uri", value="http://x")), "not a Messages API"),
        (_edit(_set("interactions", 0, "request", "body", value=None)), "not a Messages API"),
        (_edit(_set("interactions", 0, "response", "body", value={})), "'string' is missing"),
        (_edit(_set("interactions", 0, "response", "body", "string", value=3)), "no text"),
        (_edit(_set("interactions", 0, "response", "status", "code", value=529)), "not a success"),
        (_edit(lambda data: data["interactions"].append(data["interactions"][0])), "stands twice"),
    ],
)
def test_a_damaged_cassette_is_refused(
    damage, why, tmp_path, call, interaction, message, write, episode
):
    path = tmp_path / write(tmp_path, [interaction(call("a"), message("b"))]).name
    path.write_text(damage(path.read_text(encoding="utf-8")), encoding="utf-8")

    with pytest.raises(RecordingError, match=why) as caught:
        read_cassette(tmp_path, episode)

    assert caught.value.exit_code == 4
    assert path.name in str(caught.value)


def test_a_cassette_that_leads_out_of_its_folder_is_refused(
    tmp_path, call, interaction, message, write, episode
):
    outside, inside = tmp_path / "outside", tmp_path / "inside"
    outside.mkdir()
    inside.mkdir()
    name = write(outside, [interaction(call("a"), message("b"))]).name
    (inside / name).symlink_to(outside / name)

    with pytest.raises(RecordingError, match="leads out"):
        read_cassette(inside, episode)


def test_a_cassette_that_cannot_be_read_is_refused(tmp_path, episode):
    (tmp_path / f"{episode}.json").mkdir()

    with pytest.raises(RecordingError, match="is no regular file"):
        read_cassette(tmp_path, episode)


def test_a_reply_with_a_lone_surrogate_can_be_read(tmp_path, call, interaction, message, write):
    one: Interaction = interaction(call("a"), message("b"))
    body = one.response.replace('"b"', '"\\ud83d!"')
    cassette = write(tmp_path, [one._replace(response=body)])

    assert cassette.interactions[one.key].reply().text == "\ufffd!"


def test_a_cassette_that_cannot_be_written_leaves_the_old_one(
    tmp_path, call, interaction, message, write, monkeypatch
):
    one: Call = call("a")
    before = write(tmp_path, [interaction(one, message("old"))])

    def full(_handle):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(Exception, match="No space left"):
        write(tmp_path, [interaction(one, message("new"))])

    assert read_cassette(tmp_path, before.episode_id) == before
    assert [path.name for path in tmp_path.iterdir()] == [before.name]


def test_a_cassette_keeps_what_was_on_the_wire(
    tmp_path, episode, call, interaction, message, write
):
    one: Interaction = interaction(call("é"), message("b"))
    write(tmp_path, [one])

    [read] = read_cassette(tmp_path, episode).interactions.values()
    assert read == one
