"""Cassettes: vcrpy's own format, which stock vcrpy and the stock SDK can play."""

import asyncio
import json
import os

import anthropic
import orjson
import pytest
import vcr
import yaml
import zstandard
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from vcr.serialize import deserialize
from vcr.serializers import jsonserializer, yamlserializer

from tests.reference.replay_through_sdk import SdkReader
from tests.tutorsim.replay.made import EPISODE, call, interaction, message, write
from tutorsim.errors import ChangedCallError, MissingCallError, RecordingError, UnusedCallError
from tutorsim.kernel.flow_drivers_and_call_log import at_once
from tutorsim.model import Call, CallKey, Reply, Request
from tutorsim.replay import Cassette, Reader, cassette_file, read_cassette
from tutorsim.replay.recorded_calls_event_streams_and_mismatches import Interaction, requests_digest

NASTY = "é \U0001f600 \u2028\u2029\x85\x7f\x9f\ufeff\ufffe\uffff \x00\x1b[31m\t'\"\\ [b] : - # {"


@pytest.mark.loopback
@pytest.mark.parametrize("serializer", ["json", "yaml"])
def test_stock_vcrpy_and_sdk_play_a_cassette(serializer, tmp_path, record, server, monkeypatch):
    calls = [call(NASTY + str(number), agent=f"a{number}") for number in range(3)]
    replies: list[Reply] = record(tmp_path, calls)
    monkeypatch.delenv("ANTHROPIC_BASE_URL")
    before = (tmp_path / f"{EPISODE}.json").read_bytes()

    stock = vcr.VCR(
        serializer=serializer,
        record_mode="none",
        match_on=("method", "scheme", "host", "port", "path", "query", "body"),
    )
    with stock.use_cassette(str(tmp_path / f"{EPISODE}.json")) as tape:
        client = anthropic.Anthropic(api_key="none", max_retries=0)
        for one, reply in zip(reversed(calls), reversed(replies), strict=True):
            body = one.request.body()
            got = client.messages.create(
                extra_body={"temperature": body.pop("temperature")}, **body
            )
            assert got.content[0].text == reply.text  # type: ignore[union-attr]
        assert tape.all_played

    assert len(server.seen) == 3
    assert (tmp_path / f"{EPISODE}.json").read_bytes() == before


def test_a_cassette_says_what_it_is(tmp_path):
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


def test_interactions_stand_in_the_order_given(tmp_path):
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
    text = cassette_file.JsonText.serialize({"interactions": [entry(*body) for body in bodies]})

    for serializer in (jsonserializer, yamlserializer):
        requests, responses = deserialize(text, serializer)
        assert [r.body.decode() for r in requests] == [body for body, _ in bodies]
        assert [r["body"]["string"].decode() for r in responses] == [body for _, body in bodies]
    pure = yaml.load(text, yaml.SafeLoader)
    assert pure["interactions"][0]["request"]["body"] == prompt
    assert "\r" not in text
    assert all(line.isprintable() or not line.isascii() for line in text.split("\n"))


def test_the_file_does_not_depend_on_the_locale(tmp_path):
    cassette = write(tmp_path, [interaction(call("ü\U0001f600"), message("é"))])

    assert "ü\U0001f600" in (tmp_path / cassette.name).read_bytes().decode("utf-8")


def test_the_digest_of_requests_ignores_replies_and_spelling_but_not_order():
    one, two = ("1/propose/a/1", '{"a":1,"b":"é"}'), ("1/propose/b/1", "{}")
    respelled = ("1/propose/a/1", '{"b": "\\u00e9", "a": 1}')

    assert requests_digest([one, two]) == requests_digest([respelled, two])
    assert requests_digest([one, two]) != requests_digest([two, one])
    assert requests_digest([one, two]) != requests_digest([one])


def test_a_cassette_that_is_not_there_is_a_missing_call(tmp_path):
    with pytest.raises(MissingCallError, match=f"{EPISODE}.json") as caught:
        read_cassette(tmp_path, EPISODE)

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
def test_a_damaged_cassette_is_refused(damage, why, tmp_path):
    path = tmp_path / write(tmp_path, [interaction(call("a"), message("b"))]).name
    path.write_text(damage(path.read_text(encoding="utf-8")), encoding="utf-8")

    with pytest.raises(RecordingError, match=why) as caught:
        read_cassette(tmp_path, EPISODE)

    assert caught.value.exit_code == 4
    assert path.name in str(caught.value)


def test_a_cassette_that_leads_out_of_its_folder_is_refused(tmp_path):
    outside, inside = tmp_path / "outside", tmp_path / "inside"
    outside.mkdir()
    inside.mkdir()
    name = write(outside, [interaction(call("a"), message("b"))]).name
    (inside / name).symlink_to(outside / name)

    with pytest.raises(RecordingError, match="leads out"):
        read_cassette(inside, EPISODE)


def test_a_cassette_that_cannot_be_read_is_refused(tmp_path):
    (tmp_path / f"{EPISODE}.json").mkdir()

    with pytest.raises(RecordingError, match="is no regular file"):
        read_cassette(tmp_path, EPISODE)


def test_a_reply_with_a_lone_surrogate_can_be_read(tmp_path):
    one: Interaction = interaction(call("a"), message("b"))
    body = one.response.replace('"b"', '"\\ud83d!"')
    cassette = write(tmp_path, [one._replace(response=body)])

    assert cassette.interactions[one.key].reply().text == "\ufffd!"


@pytest.mark.parametrize(("status", "words"), [(200, "OK"), (299, "")])
def test_a_status_is_written_with_its_standard_words(tmp_path, status, words):
    one = interaction(call("a"), message("b"))._replace(status=status)
    write(tmp_path, [one])
    content = json.loads((tmp_path / f"{EPISODE}.json").read_text())
    [written] = content["interactions"]
    assert written["response"]["status"] == {"code": status, "message": words}


def test_a_cassette_that_cannot_be_written_leaves_the_old_one(tmp_path, monkeypatch):
    one: Call = call("a")
    before = write(tmp_path, [interaction(one, message("old"))])

    def full(_handle):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(Exception, match="No space left"):
        write(tmp_path, [interaction(one, message("new"))])

    assert read_cassette(tmp_path, before.episode_id) == before
    assert [path.name for path in tmp_path.iterdir()] == [before.name]


def test_a_cassette_keeps_what_was_on_the_wire(tmp_path):
    one: Interaction = interaction(call("é"), message("b"))
    write(tmp_path, [one])

    [read] = read_cassette(tmp_path, EPISODE).interactions.values()
    assert read == one


# --- Cassettes as files: one text, two forms, and nothing that is not whole -----------------------

TEXT = b'{"a": "\xc3\xa9"}\n' * 50


@pytest.fixture
def packed(tmp_path):
    cassette_file.write_cassette_file(tmp_path, EPISODE, TEXT, "compressed")
    return cassette_file.cassette_file(tmp_path, EPISODE, "compressed")


def test_both_forms_hold_the_same_text(tmp_path, packed):
    assert packed.name == f"{EPISODE}.json.zst"
    assert packed.stat().st_size < len(TEXT) / 4
    assert cassette_file.read_cassette_file(tmp_path, EPISODE) == TEXT
    cassette_file.write_cassette_file(tmp_path, EPISODE, TEXT + b"\n", "text")
    assert cassette_file.read_cassette_file(tmp_path, EPISODE) == TEXT + b"\n"


def test_a_compressed_cassette_has_the_digest_of_its_text(tmp_path):
    plain = write(tmp_path, [interaction(call("a"), message("b"))])
    path = cassette_file.cassette_file(tmp_path, EPISODE, "text")
    cassette_file.write_cassette_file(tmp_path, EPISODE, path.read_bytes(), "compressed")
    path.unlink()
    assert read_cassette(tmp_path, EPISODE) == plain


def test_names_of_cassettes_are_told_from_others():
    names = ["manifest.json", "sciq.a.p.simple.json", "sciq.b.p.simple.json.zst", "x.json.zst"]
    values = list(cassette_file.cassette_files(names))
    assert values == [("sciq.a.p.simple", "text"), ("sciq.b.p.simple", "compressed")]


FRAME = cassette_file.compressed(TEXT)


def _unsized():
    packer = zstandard.ZstdCompressor(write_content_size=False)
    return packer.compress(TEXT)


@pytest.mark.parametrize(
    "data",
    [
        b"", TEXT, FRAME[:-1], FRAME[:-4] + b"0000", FRAME + b"x", FRAME * 2, _unsized(),
    ],
    ids=["nothing", "text", "cut", "edited", "more", "twice", "no size"],
)  # fmt: skip
def test_what_is_no_whole_frame_is_refused(packed, data):
    packed.write_bytes(data)
    with pytest.raises(RecordingError, match=r"\.json\.zst is not a whole compressed cassette"):
        cassette_file.read_cassette_file(packed.parent, EPISODE)


def test_a_frame_that_claims_to_hold_too_much_is_not_unpacked(monkeypatch):
    monkeypatch.setattr("tutorsim.replay.cassette_file._LARGEST", len(TEXT) - 1)
    with pytest.raises(RecordingError, match=f"it holds {len(TEXT)} bytes"):
        cassette_file.decompressed(cassette_file.compressed(TEXT), "x.json.zst")
    monkeypatch.setattr("tutorsim.replay.cassette_file._LARGEST", len(TEXT))
    for text in (TEXT, b""):
        packed = cassette_file.compressed(text)
        assert cassette_file.decompressed(packed, "x.json.zst") == text


def test_a_link_that_leads_out_is_refused_in_either_form(packed):
    outside = packed.parent.parent / "outside.zst"
    packed.replace(outside)
    packed.symlink_to(outside)
    with pytest.raises(RecordingError, match="leads out of its folder"):
        cassette_file.read_cassette_file(packed.parent, EPISODE)


def test_an_episode_without_either_form_is_missing(tmp_path):
    with pytest.raises(MissingCallError, match="has no cassette"):
        cassette_file.read_cassette_file(tmp_path, EPISODE)


def test_nothing_is_recorded_into_a_folder_of_compressed_cassettes(packed):
    with pytest.raises(RecordingError, match="holds compressed cassettes"):
        cassette_file.check_recordable(packed.parent)
    packed.unlink()
    cassette_file.check_recordable(packed.parent)
    cassette_file.check_recordable(packed.parent / "none")


def test_a_pipe_is_refused_before_it_is_read(tmp_path):
    os.mkfifo(tmp_path / "manifest.json")
    with pytest.raises(RecordingError, match="no regular file"):
        cassette_file.check_regular(tmp_path, links=False)


@pytest.mark.parametrize("kind", ["pipe", "folder", "link to a pipe", "link outside"])
def test_what_is_no_file_of_the_folder_is_refused_before_it_is_read(kind, tmp_path):
    folder = tmp_path / "recording"
    folder.mkdir()
    path, pipe = folder / "a.json", folder / "pipe"
    os.mkfifo(pipe)
    (tmp_path / "outside").write_text("{}")
    if kind == "folder":
        path.mkdir()
    else:
        led = {"pipe": None, "link to a pipe": pipe, "link outside": tmp_path / "outside"}[kind]
        os.mkfifo(path) if led is None else path.symlink_to(led)
    with pytest.raises(RecordingError, match=r"no regular file|leads out of its folder"):
        cassette_file.check_inside(path)


def test_a_file_of_the_folder_or_none_is_let_through(tmp_path):
    (tmp_path / "a.json").write_text("{}")
    (tmp_path / "b.json").symlink_to(tmp_path / "a.json")
    (tmp_path / "c.json").symlink_to(tmp_path / "gone")
    for path in ("a.json", "b.json", "c.json", "d.json", "a.json/e"):
        cassette_file.check_inside(tmp_path / path)


# --- Both readers: the same answers and the same errors, and no socket ----------------------------


async def _played(playback, episode, calls):
    outcome = [await _outcome(playback.reply(episode, one)) for one in calls]
    return outcome, playback.unused()


def play_fast(folder, episode, calls):
    return asyncio.run(_played(Reader(folder).open(episode), episode, calls))


def play_sdk(folder, episode, calls):
    async def run():
        async with SdkReader(folder) as reader:
            return await _played(reader.open(episode), episode, calls)

    return asyncio.run(run())


async def _outcome(coroutine):
    try:
        reply: Reply = await coroutine
        return reply
    except (MissingCallError, ChangedCallError, RecordingError) as error:
        return type(error), str(error)


@pytest.fixture(params=[play_fast, play_sdk], ids=["fast", "sdk"])
def play(request, monkeypatch):
    """One of the readers, in an environment without credentials or a reachable endpoint."""
    for name in ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("ANTHROPIC_BASE_URL", "http://127.0.0.1:9")
    return request.param


@pytest.fixture
def two(tmp_path):
    """Two recorded calls."""
    calls = [call("first prompt, é", agent="a"), call("second prompt", agent="b")]
    write(tmp_path, [interaction(one, message(f"reply {n}")) for n, one in enumerate(calls)])
    return calls


def test_a_replay_gives_the_recorded_replies_in_any_order(play, tmp_path, two):
    outcome, unused = play(tmp_path, EPISODE, two[::-1])

    assert outcome == [
        Reply("reply 1", "model-1", "end_turn", 7, 3),
        Reply("reply 0", "model-1", "end_turn", 7, 3),
    ]
    assert unused == ()


def test_what_was_not_asked_for_is_told(play, tmp_path, two):
    _, unused = play(tmp_path, EPISODE, two[1:])

    assert unused == ("1/propose/a/1",)


def test_a_key_that_is_not_in_the_recording_is_missing(play, tmp_path, two):
    [(kind, text)], unused = play(tmp_path, EPISODE, [call("third", agent="c")])

    assert kind is MissingCallError
    assert f"{EPISODE}.json: call 1/propose/c/1 is not in the recording." in text
    assert "2 calls: 1/propose/a/1, 1/propose/b/1" in text
    assert len(unused) == 2


def test_a_reply_is_given_once(play, tmp_path, two):
    [first, (kind, text)], _ = play(tmp_path, EPISODE, [two[0], two[0]])

    assert isinstance(first, Reply)
    assert kind is MissingCallError
    assert "already used" in text


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (
            {"user": "first prompt, è"},
            "messages[0].content differs at character 14 (of 15 recorded, 15 in this call): "
            "recorded 'first prompt, é', now 'first prompt, è'.",
        ),
        ({"user": "first prompt, é!"}, "differs at character 15 (of 15 recorded, 16 in this call)"),
        ({"model": "model-2"}, "model differs at character 6"),
        ({"max_tokens": 65}, "max_tokens: recorded 64, now 65."),
        ({"extra": ()}, "temperature is in the recording only: 0.5."),
        ({"extra": (("temperature", 0.5), ("top_p", 0.9))}, "top_p is in this call only: 0.9."),
    ],
)
def test_a_changed_call_names_cassette_key_field_and_place(change, why, play, tmp_path, two):
    changed = Call(two[0].key, two[0].request._replace(**change))

    [(kind, text), second], unused = play(tmp_path, EPISODE, [changed, two[1]])

    assert kind is ChangedCallError
    assert text.startswith(f"{EPISODE}.json: call 1/propose/a/1 was recorded with another request.")
    assert why in text
    assert isinstance(second, Reply)
    assert unused == ("1/propose/a/1",)


def test_a_recorded_reply_that_is_no_message_is_an_invalid_recording(play, tmp_path):
    write(tmp_path, [interaction(call("x"), {"type": "completion"})])

    [(kind, text)], _ = play(tmp_path, EPISODE, [call("x")])

    assert kind is RecordingError
    assert "the reply to call 1/propose/motivation/1 cannot be read" in text


def test_a_missing_cassette_is_a_missing_call(play, tmp_path):
    with pytest.raises(MissingCallError, match=f"{EPISODE}.json: the recording has no cassette"):
        play(tmp_path, EPISODE, [])


def test_unused_entries_fail_a_check(tmp_path, two):
    playback = Reader(tmp_path).open(EPISODE)
    at_once(playback.reply(EPISODE, two[0]))
    with pytest.raises(UnusedCallError, match=r"the first is 1/propose/b/1") as caught:
        playback.check_all_used()
    assert caught.value.exit_code == 1

    at_once(playback.reply(EPISODE, two[1]))
    playback.check_all_used()


def requests(draw):
    text = st.text(max_size=40)
    extra = st.lists(
        st.tuples(st.sampled_from(["temperature", "top_p"]), st.floats(0, 1)),
        max_size=2,
        unique_by=lambda pair: pair[0],
    )
    key = CallKey(draw(st.integers(0, 3)), "propose", draw(st.sampled_from("abcd")), 1)
    return Call(
        key, Request("m", draw(text), draw(text), draw(st.integers(1, 99)), tuple(draw(extra)))
    )


@pytest.mark.costly
@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_both_readers_agree_on_any_calls_and_any_replies(data, tmp_path):
    call = st.composite(requests)()
    recorded = {str(one.key): one for one in data.draw(st.lists(call, max_size=4))}
    texts = data.draw(st.lists(st.text(), min_size=len(recorded), max_size=len(recorded)))
    asked = [
        one._replace(key=data.draw(st.sampled_from([one.key, one.key._replace(attempt=2)])))
        for one in [*recorded.values(), *data.draw(st.lists(call, max_size=2))]
    ]
    write(
        tmp_path,
        [interaction(one, message(t)) for one, t in zip(recorded.values(), texts, strict=True)],
    )

    assert play_fast(tmp_path, EPISODE, asked) == play_sdk(tmp_path, EPISODE, asked)


def test_the_fast_reader_parses_a_file_and_each_answered_call_s_body_once(tmp_path, monkeypatch):
    """The cost of a replay grows with its calls, not with calls × entries."""
    calls = [call("x", agent=f"a{n}") for n in range(50)]
    write(tmp_path, [interaction(one, message("y")) for one in calls])
    parsed: list[int] = []
    loads = orjson.loads

    def counted(data):
        parsed.append(len(data))
        return loads(data)

    monkeypatch.setattr(orjson, "loads", counted)
    playback = Reader(tmp_path).open(EPISODE)
    for one in calls:
        at_once(playback.reply(EPISODE, one))

    assert len(parsed) == 1 + 2 * len(calls)
