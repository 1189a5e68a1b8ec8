"""Recording: what is paid for is on disk, once, and nothing else is."""

import asyncio
import gzip
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.tutorsim.replay.made import EPISODE, call, interaction, message, write
from tutorsim.errors import (
    CallFailed,
    ChangedCallError,
    FolderError,
    RecordingError,
    RecordingRefused,
    UsageError,
)
from tutorsim.kernel.flow_drivers_and_call_log import at_once
from tutorsim.model import CallKey, Reply
from tutorsim.model.sdk_model_and_reasons_of_failed_calls import HttpTransport, SdkModel
from tutorsim.replay import Reader
from tutorsim.replay.recording_transport_tapes_and_journals import (
    CassetteStore,
    Journal,
    combined_kind,
    journal_path,
    recorded_uri,
)

Build = Callable[..., Any]
DIGEST = "0" * 64
KEY = "sk-ant-test-0123456789-credential"
loopback = pytest.mark.loopback


class Nobody:
    """A live model that must not be asked."""

    async def reply(self, episode_id, call):
        raise AssertionError(f"{call.key} was asked again")


def open_tape(folder, episode, digest=DIGEST):
    return CassetteStore(folder, study_digest=digest, packages={"tutorsim": "1"}).open(
        episode, Nobody()
    )


def content(folder):
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


@loopback
def test_a_finished_episode_is_one_cassette_in_call_order(tmp_path, record):
    calls = [call("x", agent=agent) for agent in ("d", "c", "b", "a")]
    replies = record(tmp_path, calls)

    assert [*content(tmp_path)] == [f"{EPISODE}.json"]
    playback = Reader(tmp_path).open(EPISODE)
    assert [*playback.cassette.interactions] == [str(one.key) for one in calls]
    assert [at_once(playback.reply(EPISODE, one)) for one in calls] == replies
    assert playback.cassette.kind == "relay"


@loopback
def test_nothing_but_allowed_headers_and_no_credential_is_written(tmp_path, record, server):
    record(tmp_path, [call("a", agent="a")], finish=False)
    journal = content(tmp_path)
    record(tmp_path, [call("a", agent="a"), call("b", agent="b")])
    cassette = content(tmp_path)

    assert server.headers[0]["authorization"] == f"Bearer {KEY}"
    for data in [*journal.values(), *cassette.values()]:
        assert KEY.encode() not in data
        assert b"secret" not in data
        assert server.url.encode() not in data
    entry = json.loads(cassette[f"{EPISODE}.json"])["interactions"][0]
    values = [*entry["request"]["headers"]]
    assert values == ["content-type", "anthropic-version", "x-tutorsim-call"]
    assert entry["response"]["headers"] == {"content-type": ["application/json"]}
    assert entry["request"]["uri"] == "https://api.anthropic.com/v1/messages"


@pytest.mark.parametrize(
    ("path", "headers", "uri"),
    [
        ("/v1/messages", {"anthropic-version": "1"}, "https://api.anthropic.com/v1/messages"),
        ("/v1/messages", {}, "http://u.example/v1/messages?a=1"),
        ("/v1/other", {"anthropic-version": "1"}, "http://u.example/v1/other?a=1"),
    ],
)
def test_only_messages_of_the_api_go_by_its_own_address(path, headers, uri):
    sent = httpx2.Request("POST", f"http://me:pw@u.example{path}?a=1&token=t#x", headers=headers)
    assert recorded_uri(sent) == uri


@loopback
@pytest.mark.parametrize("where", ["request", "reply"])
def test_a_body_with_the_credential_is_refused_and_not_written(where, tmp_path, record, server):
    server.respond = lambda _: message(KEY)
    text = f"my key is {KEY}" if where == "request" else "hello"

    with pytest.raises(RecordingRefused, match=f"The {where}"):
        record(tmp_path, [call(text)])

    assert len(server.seen) == (0 if where == "request" else 1)
    assert all(KEY.encode() not in data for data in content(tmp_path).values())


@loopback
def test_a_short_placeholder_for_a_local_server_may_occur_in_texts(tmp_path, record, monkeypatch):
    monkeypatch.setenv("ANTHROPIC_API_KEY", "test")

    assert record(tmp_path, [call("a test")])[0].text == "re: a test"


@loopback
@pytest.mark.parametrize(
    "fault",
    [
        lambda message: (529, {}, b"{}"),
        lambda message: (429, {"retry-after-ms": "1"}, b"{}"),
        lambda message: (500, {"content-type": "text/html"}, b"<html>"),
        lambda message: None,
        lambda message: (200, {}, b"<html>"),
        lambda message: (200, {}, json.dumps({"type": "error", "error": {}}).encode()),
        lambda message: (200, {}, json.dumps(message("cut off")).encode()[:-9]),
        lambda message: (200, {"content-length": "9999"}, json.dumps(message("cut")).encode()),
        lambda message: (200, {"content-encoding": "gzip"}, gzip.compress(b"{}" * 999)[:-20]),
    ],
    ids=["529", "429", "500", "dropped", "html", "error", "truncated", "short", "bad gzip"],
)
def test_only_whole_messages_are_recorded_and_others_asked_again(fault, tmp_path, record, server):
    server.respond = lambda _: fault(message) if len(server.seen) < 3 else message("whole")

    [reply] = record(tmp_path, [call("x")])

    assert reply.text == "whole"
    assert len(server.seen) == 3
    assert len(Reader(tmp_path).open(EPISODE).cassette.interactions) == 1


@loopback
def test_bodies_are_stored_decoded(tmp_path, record, server):
    packed = gzip.compress(json.dumps(message("unpacked")).encode())
    server.respond = lambda _: (200, {"content-encoding": "gzip"}, packed)

    assert record(tmp_path, [call("x")])[0].text == "unpacked"
    playback = Reader(tmp_path).open(EPISODE)
    assert at_once(playback.reply(EPISODE, call("x"))).text == "unpacked"


@loopback
def test_a_failed_call_leaves_the_others_of_its_round_on_disk(tmp_path, record, server):
    server.respond = lambda body: (
        (400, {}, b"{}") if body["messages"][0]["content"] == "bad" else message("ok")
    )
    with pytest.raises(CallFailed):
        record(tmp_path, [call("good", agent="a"), call("bad", agent="b")])

    tape = open_tape(tmp_path, EPISODE)
    assert tape.holds(call("good", agent="a").key)
    assert not tape.holds(call("bad", agent="b").key)


@loopback
def test_a_recorded_call_is_never_sent_again_and_the_bytes_are_of_one_run(tmp_path, record, server):
    calls = [call(f"text {n}", agent=f"a{n}") for n in range(4)]
    record(tmp_path / "whole", calls)
    for count in range(1, 5):
        record(tmp_path / "parts", calls[:count], finish=count == 4)

    assert len(server.seen) == 8
    assert content(tmp_path / "whole") == content(tmp_path / "parts")

    record(tmp_path / "parts", calls)
    assert len(server.seen) == 8
    assert content(tmp_path / "whole") == content(tmp_path / "parts")


@loopback
def test_a_torn_journal_costs_the_torn_call_only(tmp_path, record, server):
    calls = [call(f"text {n}", agent=f"a{n}") for n in range(3)]
    record(tmp_path / "whole", calls)
    record(tmp_path / "whole-journal", calls, finish=False)
    journal = (tmp_path / "whole-journal" / f"{EPISODE}.journal.jsonl").read_bytes()
    lines = journal.splitlines(keepends=True)

    for cut in range(0, len(journal), 331):
        folder = tmp_path / str(cut)
        folder.mkdir()
        (folder / f"{EPISODE}.journal.jsonl").write_bytes(journal[:cut])
        kept = max(0, journal[:cut].count(b"\n") - 1)
        before = len(server.seen)

        record(folder, calls)

        assert len(server.seen) - before == len(lines) - 1 - kept
        assert [*content(folder)] == [f"{EPISODE}.json"]
        assert sorted(json_of(folder)) == sorted(json_of(tmp_path / "whole"))


def json_of(folder):
    data = json.loads((folder / f"{EPISODE}.json").read_bytes())
    return [json.dumps(entry) for entry in data["interactions"]]


@loopback
def test_a_call_that_changed_since_it_was_recorded_is_refused(tmp_path, record):
    record(tmp_path, [call("old words")], finish=False)

    with pytest.raises(ChangedCallError, match=r"messages\[0\].content differs at character 0"):
        asyncio.run(open_tape(tmp_path, EPISODE).reply(EPISODE, call("new words")))


@loopback
def test_a_failed_episode_is_taken_up_from_its_cassette(tmp_path, record, server):
    first, second = call("one", agent="a"), call("two", agent="b")
    record(tmp_path, [first])
    record(tmp_path, [first, second], finish=False)
    # The cassette of the failed attempt and the journal of the second one are both there.
    assert len(content(tmp_path)) == 2

    record(tmp_path, [first, second])

    assert len(server.seen) == 2
    assert [*content(tmp_path)] == [f"{EPISODE}.json"]


@loopback
def test_a_kill_between_cassette_and_journal_does_no_harm(tmp_path, record, server):
    record(tmp_path, [call("x")], finish=False)
    journal = content(tmp_path)
    record(tmp_path, [call("x")])
    whole = content(tmp_path)
    for name, data in journal.items():
        (tmp_path / name).write_bytes(data)

    record(tmp_path, [call("x")])

    assert content(tmp_path) == whole
    assert len(server.seen) == 1


@loopback
def test_a_full_disk_loses_nothing(tmp_path, record, server, monkeypatch):
    first, second = call("one", agent="a"), call("two", agent="b")
    record(tmp_path, [first], finish=False)
    before = content(tmp_path)
    write = os.write

    def half(handle, data):
        if Path(f"/proc/self/fd/{handle}").readlink().name.endswith(".journal.jsonl"):
            write(handle, bytes(data[:20]))
            raise OSError(28, "No space left on device")
        return write(handle, data)

    with monkeypatch.context() as patch:
        patch.setattr(os, "write", half)
        with pytest.raises(FolderError, match="No space left") as caught:
            record(tmp_path, [first, second])
    assert caught.value.exit_code == 2
    assert "Free some space" in caught.value.hint
    assert content(tmp_path) == before

    record(tmp_path, [first, second])
    assert len(server.seen) == 3  # The second reply could not be kept, so it was asked for again.


@loopback
def test_a_cassette_that_cannot_be_written_keeps_the_journal(tmp_path, record, server, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(Path, "replace", full)
        with pytest.raises(FolderError, match="No space left"):
            record(tmp_path, [call("x")])
    assert [*content(tmp_path)] == [f"{EPISODE}.journal.jsonl"]

    record(tmp_path, [call("x")])
    assert len(server.seen) == 1


@pytest.mark.costly
@loopback
def test_many_episodes_record_side_by_side_each_into_its_own_cassette(tmp_path, server):
    names = [f"sciq.q{n}.p.simple" for n in range(20)]

    async def run():
        store = CassetteStore(tmp_path, study_digest=DIGEST, packages={})
        async with SdkModel(transport=store.transport(HttpTransport())) as live:

            async def one(name):
                calls = [call(f"{name} {n}", agent=f"a{n}") for n in range(4)]
                with store.open(name, live) as tape:
                    await asyncio.gather(*(tape.reply(name, c) for c in calls))
                    await tape.sync()
                    await tape.finish([c.key for c in calls])

            await asyncio.gather(*(one(name) for name in names))

    asyncio.run(run())
    assert len(server.seen) == 80
    for name in names:
        playback = Reader(tmp_path).open(name)
        for n in range(4):
            text = f"{name} {n}"
            assert at_once(playback.reply(name, call(text, agent=f"a{n}"))).text == f"re: {text}"


@loopback
def test_nothing_is_sent_that_no_open_tape_would_record(tmp_path, server):
    async def run():
        store = CassetteStore(tmp_path, study_digest=DIGEST, packages={})
        async with SdkModel(transport=store.transport(HttpTransport())) as live:
            store.open(EPISODE, live).close()
            await live.reply(EPISODE, call("x"))

    with pytest.raises(RecordingRefused, match="outside any open recording"):
        asyncio.run(run())
    assert server.seen == []


@pytest.mark.parametrize("order", [[], ["1/propose/a/1"] * 2, ["1/propose/b/1"]])
def test_the_order_must_name_every_recorded_call_once(order, tmp_path):
    tape = open_tape(tmp_path, EPISODE)
    tape.add(interaction(call("x", agent="a"), message("y")))

    with pytest.raises(RecordingError, match="disagree on calls"):
        asyncio.run(tape.finish([CallKey.parse(key) for key in order]))


def test_what_a_tape_holds_can_be_counted(tmp_path):
    tape = open_tape(tmp_path, EPISODE)
    tape.add(interaction(call("x"), message("y", model="model-1-dated")))

    assert list(tape.replies()) == [("model-1", Reply("y", "model-1-dated", "end_turn", 7, 3))]


def test_a_call_is_answered_once(tmp_path):
    tape = open_tape(tmp_path, EPISODE)
    tape.add(interaction(call("x"), message("y")))

    with pytest.raises(RecordingRefused, match="answered twice"):
        tape.add(interaction(call("x"), message("z")))
    assert tape.paid == 1


def test_an_episode_without_any_reply_has_an_empty_cassette(tmp_path):
    cassette = asyncio.run(open_tape(tmp_path, EPISODE).finish([]))

    assert len(cassette.interactions) == 0
    assert Reader(tmp_path).open(EPISODE).unused() == ()


def test_a_tape_of_another_study_is_refused(tmp_path):
    tape = open_tape(tmp_path, EPISODE)
    tape.add(interaction(call("x"), message("y")))
    with pytest.raises(RecordingError, match=r"journal\.jsonl"):
        open_tape(tmp_path, EPISODE, "1" * 64)

    asyncio.run(tape.finish([call("x").key]))
    with pytest.raises(RecordingError, match="belongs to another study"):
        open_tape(tmp_path, EPISODE, "1" * 64)


def test_a_cassette_and_a_journal_that_disagree_are_refused(tmp_path):
    open_tape(tmp_path, EPISODE).add(interaction(call("x"), message("y")))
    write(tmp_path, [interaction(call("x"), message("z"))])

    with pytest.raises(RecordingError, match="disagree on call 1/propose/motivation/1"):
        open_tape(tmp_path, EPISODE)


@pytest.mark.parametrize("name", ["../x.y.z.w", "a/b.c.d.e", "sciq.q..p.simple", "", "manifest"])
def test_no_episode_id_leaves_the_folder(name, tmp_path):
    with pytest.raises(UsageError, match="is not an episode id"):
        open_tape(tmp_path, name)


def test_a_link_in_place_of_a_journal_is_not_followed(tmp_path):
    victim = tmp_path / "victim"
    victim.write_text("untouched")
    folder = tmp_path / "recording"
    folder.mkdir()
    tape = open_tape(folder, EPISODE)
    (folder / f"{EPISODE}.journal.jsonl").symlink_to(victim)

    with pytest.raises(FolderError, match="symbolic link"):
        tape.add(interaction(call("x"), message("y")))
    with pytest.raises(RecordingError):
        open_tape(folder, EPISODE)
    assert victim.read_text() == "untouched"


@pytest.mark.parametrize(
    ("kinds", "combined"),
    [(["api"], "api"), (["stand-in"], "stand-in"), (["api", "relay"], "relay"), ([], "relay")],
)
def test_a_mixture_of_sources_counts_as_a_relay(kinds, combined):
    assert combined_kind(kinds) == combined


@loopback
def test_a_stand_in_tells_its_name_and_is_recorded_as_one(tmp_path, record, server):
    data = json.dumps(message("x")).encode()
    server.respond = lambda _: (200, {"x-tutorsim-standin": "stand-in 1"}, data)
    record(tmp_path, [call("x")])

    cassette = Reader(tmp_path).open(EPISODE).cassette
    [one] = cassette.interactions.values()
    assert cassette.kind == "stand-in"
    assert one.response_headers["x-tutorsim-standin"] == "stand-in 1"


def test_the_real_endpoint_is_recorded_as_such(tmp_path, monkeypatch):
    class Real(httpx2.AsyncBaseTransport):
        async def handle_async_request(self, request):
            return httpx2.Response(200, json=message("x"))

    monkeypatch.delenv("ANTHROPIC_BASE_URL", raising=False)
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)

    async def run():
        store = CassetteStore(tmp_path, study_digest=DIGEST, packages={})
        async with SdkModel(transport=store.transport(Real())) as live:
            with store.open(EPISODE, live) as tape:
                await tape.reply(EPISODE, call("x"))
                await tape.finish([call("x").key])

    asyncio.run(run())
    assert Reader(tmp_path).open(EPISODE).cassette.kind == "api"


# --- The journal: what it holds, and what it refuses ----------------------------------------------


@pytest.fixture
def entries():
    return [interaction(call("x\n\u2028", agent=name), message("y")) for name in "ab"]


def test_what_was_appended_is_read_back(tmp_path, entries):
    journal = Journal(tmp_path, EPISODE, DIGEST)
    assert journal.read() == {}
    for one in entries:
        journal.append(one)
    journal.close()

    assert list(Journal(tmp_path, EPISODE, DIGEST).read().values()) == entries


def test_a_journal_that_was_removed_begins_with_its_head_again(tmp_path, entries):
    journal = Journal(tmp_path, EPISODE, DIGEST)
    journal.append(entries[0])
    journal.remove()
    journal.append(entries[1])
    journal.close()
    assert [*Journal(tmp_path, EPISODE, DIGEST).read().values()] == entries[1:]


def test_lines_that_name_no_method_and_address_are_messages(tmp_path, entries):
    """As journals were written before they could hold calls of other APIs."""
    journal = Journal(tmp_path, EPISODE, DIGEST)
    journal.append(entries[0])
    journal.close()
    path = journal_path(tmp_path, EPISODE)
    head, line, _ = path.read_text().split("\n")
    fields = {k: v for k, v in json.loads(line).items() if k not in ("method", "uri")}
    path.write_text(f"{head}\n{json.dumps(fields)}\n")

    assert [*Journal(tmp_path, EPISODE, DIGEST).read().values()] == entries[:1]


def test_nothing_is_on_disk_before_the_first_reply(tmp_path):
    Journal(tmp_path, EPISODE, DIGEST).read()

    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("damage", "why"),
    [
        (lambda lines: [lines[0].replace(b"1", b"2", 1), *lines[1:]], "It begins with"),
        (lambda lines: [b"not json", *lines[1:]], "first line"),
        (lambda lines: lines[1:], "It begins with"),
        (lambda lines: [*lines[:2], b"not json", lines[2]], "Line 3"),
        (lambda lines: [*lines, lines[1]], "Line 4 holds call 1/propose/a/1 a second time"),
        (lambda lines: [lines[0], b"[]"], "Line 2"),
        (lambda lines: [lines[0], b"{}"], "Line 2: fields are missing"),
        (lambda lines: [lines[0], lines[1].replace(b'"key"', b'"name"', 1)], "Line 2"),
        (lambda lines: [lines[0], b"\x00" * 40], "Line 2"),
    ],
)
def test_anything_but_a_torn_last_line_is_refused(damage, why, tmp_path, entries):
    journal = Journal(tmp_path, EPISODE, DIGEST)
    for one in entries:
        journal.append(one)
    journal.close()
    path = journal_path(tmp_path, EPISODE)
    path.write_bytes(b"".join(line + b"\n" for line in damage(path.read_bytes().splitlines())))
    before = path.read_bytes()

    with pytest.raises(RecordingError, match=why) as caught:
        Journal(tmp_path, EPISODE, DIGEST).read()

    assert caught.value.exit_code == 4
    assert path.name in caught.value.what
    assert path.read_bytes() == before
