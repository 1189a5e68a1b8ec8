"""Any SDK over an HTTP client that is bound to one cassette: whole replies and event streams."""

import asyncio
import json
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import anthropic
import httpx2
import pytest
from vcr.cassette import Cassette as VcrCassette

import tutorsim
from tutorsim.errors import (
    ChangedCallError,
    RecordingRefused,
    TutorsimError,
    UnusedCallError,
    UsageError,
)

KEY = "sk-test-0123456789-credential"
CHAT = "/v1/chat/completions"
EVENTS = {"content-type": "text/event-stream"}
ASKED = {"model": "model-1", "messages": [{"role": "user", "content": "one"}]}


@pytest.fixture(autouse=True)
def _only_replaying(monkeypatch):
    for name in ("TUTORSIM_RECORD", "GOOGLE_API_KEY", "GEMINI_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "c.json"


def events(*data, last="data: [DONE]\n\n"):
    sent = "".join(f"data: {json.dumps(one, ensure_ascii=False)}\n\n" for one in data)
    return 200, EVENTS, (sent + last).encode()


def chunk(text, reason=None):
    choice = {"index": 0, "delta": {"role": "assistant", "content": text}, "finish_reason": reason}
    head = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "model-1"}
    return {**head, "choices": [choice]}


def chat(body):
    """What an endpoint of chat completions answers; every word is an event of its stream."""
    said = f"ré: {body['messages'][0]['content']}"
    if body.get("stream"):
        return events(*(chunk(f"{word} ") for word in said.split()), chunk("", "stop"))
    message = {"role": "assistant", "content": said}
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
    head = {"id": "c", "object": "chat.completion", "created": 1, "model": "model-1"}
    return {**head, "choices": [choice], "usage": usage}


def gemini(body):
    said = f"ré: {body['contents'][0]['parts'][0]['text']}"

    def part(text):
        return {"candidates": [{"content": {"role": "model", "parts": [{"text": text}]}}]}

    whole = part(said)
    whole["candidates"][0]["finishReason"] = "STOP"
    return whole


def respond(body):
    if not body:
        return {"object": "list", "data": []}
    return chat(body) if "messages" in body else gemini(body)


def by_openai(tape, url, asynchronous):
    openai = pytest.importorskip("openai")
    made = openai.AsyncOpenAI if asynchronous else openai.OpenAI
    http = tape.async_client if asynchronous else tape.client
    client = made(http_client=http, base_url=f"{url}/v1", api_key=KEY)
    return client.chat.completions.create


def openai_asks(tape, url):
    ask = by_openai(tape, url, False)
    whole = ask(**ASKED).choices[0].message.content
    streamed = [one.choices[0].delta.content for one in ask(**ASKED, stream=True)]
    return [whole, *streamed]


async def openai_async(tape, url):
    ask = by_openai(tape, url, True)
    whole = (await ask(**ASKED)).choices[0].message.content
    return [whole] + [one.choices[0].delta.content async for one in await ask(**ASKED, stream=True)]


def mistral(tape, url):
    client = pytest.importorskip("mistralai.client")
    both = {"client": tape.client, "async_client": tape.async_client}
    return client.Mistral(api_key=KEY, server_url=url, **both).chat


def mistral_asks(tape, url):
    chat = mistral(tape, url)
    whole = chat.complete(**ASKED).choices[0].message.content
    with chat.stream(**ASKED) as stream:
        return [whole, *(one.data.choices[0].delta.content for one in stream)]


async def mistral_async(tape, url):
    chat = mistral(tape, url)
    whole = (await chat.complete_async(**ASKED)).choices[0].message.content
    async with await chat.stream_async(**ASKED) as stream:
        return [whole] + [one.data.choices[0].delta.content async for one in stream]


def google(tape, url):
    genai = pytest.importorskip("google.genai")
    both = {"httpx_client": tape.client, "httpx_async_client": tape.async_client}
    return genai.Client(api_key=KEY, http_options=genai.types.HttpOptions(base_url=url, **both))


def google_asks(tape, url):
    models = google(tape, url).models
    return [models.generate_content(model="gemini-1", contents="one").text]


async def google_async(tape, url):
    models = google(tape, url).aio.models
    return [(await models.generate_content(model="gemini-1", contents="one")).text]


WORDS = ["ré: one", "ré: ", "one ", ""]


@pytest.mark.loopback
@pytest.mark.parametrize(
    ("asks", "asks_async", "expected", "calls"),
    [
        (openai_asks, openai_async, WORDS, 2),
        (mistral_asks, mistral_async, WORDS, 2),
        (google_asks, google_async, ["ré: one"], 1),
    ],
    ids=["openai", "mistralai", "google-genai"],
)
def test_any_sdk_records_and_plays_with_both_of_its_faces(
    path, server, offline, asks, asks_async, expected, calls
):
    """Half of the calls are made by the synchronous client, half by the other, over one session."""
    server.respond = respond

    async def both(mode):
        tape = tutorsim.recorded_http(path, mode=mode)
        async with tape:
            return [asks(tape, server.url), await asks_async(tape, server.url)]

    assert asyncio.run(both("once")) == [expected, expected]
    assert len(server.seen) == 2 * calls
    offline()
    assert asyncio.run(both("none")) == [expected, expected]
    tape = tutorsim.recorded_http(path)
    with tape:
        assert asks(tape, "http://127.0.0.2:1") == expected
        assert asyncio.run(asks_async(tape, "http://127.0.0.2:1")) == expected
    assert KEY not in path.read_text()
    assert len(VcrCassette.load(path=path, serializer=JsonOfVcr).requests) == 2 * calls


class JsonOfVcr:
    """The serializer that stock vcrpy has for JSON."""

    from vcr.serializers import jsonserializer

    serialize = staticmethod(jsonserializer.serialize)
    deserialize = staticmethod(jsonserializer.deserialize)


def stream(http, url, **headers):
    body = {**ASKED, "stream": True}
    with http.stream("POST", url + CHAT, json=body, headers=headers) as response:
        return list(response.iter_bytes())


@pytest.mark.loopback
@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (events(chunk("one"), last=""), "ends before its last event"),
        (events(chunk("one"), {"error": {"message": "busy"}}), "tells of an error"),
        ((200, {**EVENTS, "content-length": "9999"}, events(chunk("one"))[2][:60]), "peer closed"),
    ],
    ids=["no last event", "error event", "cut off"],
)
def test_a_stream_that_is_not_whole_is_no_success(path, server, answer, words):
    answers = iter([answer, events(chunk("one"), chunk("", "stop"))])
    server.respond = lambda body: next(answers)
    with tutorsim.recorded_http(path, mode="once") as http:
        with pytest.raises(httpx2.RemoteProtocolError, match=words):
            stream(http, server.url)
        assert b"[DONE]" in stream(http, server.url)[-1]
    assert len(json.loads(path.read_text())["interactions"]) == 1


@pytest.mark.loopback
@pytest.mark.parametrize("closes", [True, False], ids=["closed", "left open"])
@pytest.mark.parametrize("rest", [b"", b"d"], ids=["whole events", "part of one"])
def test_of_a_stream_that_was_left_the_events_read_are_kept_and_marked(path, server, closes, rest):
    sent = [f"data: {json.dumps(chunk(str(n)))}\n\n".encode() for n in range(3)]
    server.respond = lambda body: (200, {**EVENTS, "content-length": "9999"}, b"".join(sent) + rest)
    request = ("POST", server.url + CHAT)
    with tutorsim.recorded_http(path, mode="once") as http:
        response = http.send(http.build_request(*request, json=ASKED), stream=True)
        read = next(response.iter_bytes())
        if closes:
            response.close()
    (held,) = json.loads(path.read_text())["interactions"]
    assert held["response"]["headers"]["x-tutorsim-stopped"] == ["by its reader"]
    kept = held["response"]["body"]["string"].encode()
    assert kept == read[: read.rindex(b"\n\n") + 2]
    with tutorsim.recorded_http(path) as http, http.stream(*request, json=ASKED) as response:
        assert next(response.iter_bytes()) == sent[0]
    with (
        pytest.raises(ChangedCallError, match=r"c\.json: the stream of call 1/call/agent/1 ends"),
        tutorsim.recorded_http(path) as http,
    ):
        http.post(request[1], json=ASKED)


@pytest.mark.loopback
def test_a_block_that_fails_keeps_no_part_of_a_stream(tmp_path, path, server):
    server.respond = chat

    def left(http):
        asked = http.build_request("POST", server.url + CHAT, json={**ASKED, "stream": True})
        http.send(asked, stream=True).close()
        raise KeyError

    with pytest.raises(KeyError), tutorsim.recorded_http(path, mode="once") as http:
        left(http)
    assert [*tmp_path.iterdir()] == []
    with tutorsim.recorded_http(path, mode="once") as http:
        assert b"".join(stream(http, server.url)) == chat({**ASKED, "stream": True})[2]


@pytest.mark.loopback
@pytest.mark.parametrize("name", ["async_client", "httpx1_async_client"])
def test_one_asynchronous_client_asks_from_one_event_loop_after_another(tmp_path, server, name):
    """A connection that the first loop left open would belong to a loop that is closed."""
    server.respond = chat
    with (tape := tutorsim.recorded_http(tmp_path / "c.json", mode="once")):
        client = getattr(tape, name)
        for _ in range(3):
            asyncio.run(client.post(server.url + CHAT, json=ASKED)).raise_for_status()
    assert len(server.seen) == 3


@pytest.mark.loopback
def test_a_block_that_fails_leaves_no_file_open(tmp_path, server):
    server.respond = chat

    def left(http):
        http.post(server.url + CHAT, json=ASKED)
        raise KeyError

    with pytest.raises(KeyError), tutorsim.recorded_http(tmp_path / "c.json", mode="once") as http:
        left(http)
    [journal] = tmp_path.iterdir()
    assert journal.resolve() not in [one.resolve() for one in Path("/proc/self/fd").iterdir()]


@pytest.mark.loopback
@pytest.mark.parametrize("named", [True, False], ids=["named", "unnamed"])
def test_calls_side_by_side_find_their_replies_whatever_their_order(path, server, offline, named):
    server.respond = chat
    headers = tutorsim.keyed("voter") if named else {}

    def question(number):
        return {**ASKED, "messages": [{"role": "user", "content": str(number)}]}

    def said(response):
        return str(response.json()["choices"][0]["message"]["content"])

    async def fifty(order):
        async with tutorsim.recorded_http(path, mode="once") as http:
            asked = (http.post(server.url + CHAT, json=question(n), headers=headers) for n in order)
            return dict(zip(order, map(said, await asyncio.gather(*asked)), strict=True))

    expected = {number: f"ré: {number}" for number in range(50)}
    assert asyncio.run(fifty(range(50))) == expected
    offline()
    assert asyncio.run(fifty(range(49, -1, -1))) == expected
    with tutorsim.recorded_http(path) as http, ThreadPoolExecutor(16) as pool:
        heard = pool.map(
            lambda n: said(http.post(server.url + CHAT, json=question(n), headers=headers)),
            range(49, -1, -1),
        )
        assert list(heard) == [f"ré: {number}" for number in range(49, -1, -1)]


@pytest.mark.loopback
def test_a_request_that_is_sent_again_or_redirected_has_one_key(path, server):
    answers = iter([(307, {"location": f"{server.url}/v2/chat"}, b""), chat(ASKED), chat(ASKED)])
    server.respond = lambda body: next(answers)
    for mode in ("once", "none"):
        with tutorsim.recorded_http(path, mode=mode, partial=True) as http:
            url = server.url + (CHAT if mode == "once" else "/v2/chat")
            request = http.build_request("POST", url, json=ASKED)
            assert http.send(request, follow_redirects=True).json() == chat(ASKED)
            again = http.build_request("POST", f"{server.url}/v2/chat", json=ASKED)
            assert http.send(again).json() == chat(ASKED)
            assert "x-tutorsim-call" not in request.headers
    assert len(json.loads(path.read_text())["interactions"]) == 2


@pytest.mark.loopback
@pytest.mark.parametrize(
    "where", ["x-goog-api-key", "api-key", "authorization", "?key=", "?access_token="]
)
def test_no_credential_is_kept_and_none_is_sent_as_a_question(path, server, where):
    server.respond = chat
    url, headers = server.url + CHAT, {where: KEY}
    if where.startswith("?"):
        url, headers = f"{url}{where}{KEY}&alt=sse", {}
    leaking = {**ASKED, "messages": [{"role": "user", "content": f"my key is {KEY}"}]}
    with tutorsim.recorded_http(path, mode="once") as http:
        assert http.post(url, json=ASKED, headers=headers).is_success
        with pytest.raises(RecordingRefused, match="contains the credential"):
            http.post(url, json=leaking, headers=headers)
        server.respond = lambda body: events(chunk(KEY[:9]), chunk(KEY[9:]))
        with pytest.raises(RecordingRefused, match="A streamed reply contains the credential"):
            http.post(url, json={**ASKED, "stream": True}, headers=headers)
        server.respond = lambda body: events(chunk("asked again"), chunk("", "stop"))
        stream(http, server.url)
    assert len(server.seen) == 3
    calls = [one["request"]["headers"] for one in json.loads(path.read_text())["interactions"]]
    assert [one["x-tutorsim-call"] for one in calls] == [["c/1/call/agent/1"], ["c/3/call/agent/1"]]
    assert KEY not in path.read_text()
    with tutorsim.recorded_http(path) as http:
        assert http.post(url.replace(KEY, "another"), json=ASKED).json() == chat(ASKED)
        assert "asked again" in str(stream(http, server.url))


@pytest.mark.loopback
def test_what_is_no_text_is_refused_and_paths_and_methods_count(path, server):
    server.respond = respond
    with tutorsim.recorded_http(path, mode="once") as http:
        for body, why in (
            ({"content": b"\xff\x00"}, "of no stated type"),
            ({"files": {"f": b"one"}}, "of the type multipart/form-data"),
            ({"json": [1]}, "of the type application/json"),
        ):
            with pytest.raises(UsageError, match="is not kept in a cassette") as refused:
                http.post(server.url + "/v1/files", **body)  # type: ignore[arg-type]
            assert f"Its body, {why}, is no JSON object" in refused.value.why
        assert server.seen == []
        assert http.get(f"{server.url}/v1/models?limit=2").json()["object"] == "list"
        server.respond = lambda body: (200, {"content-type": "audio/mpeg"}, b"\xff\xfb")
        with pytest.raises(RecordingRefused, match="is of the type audio/mpeg"):
            http.post(server.url + "/v1/audio/speech", json={"input": "one"})
        server.respond = lambda body: (200, {"content-type": "text/html"}, b"<html>")
        with pytest.raises(httpx2.RemoteProtocolError, match="to GET /v1/login, of the type text"):
            http.get(server.url + "/v1/login")
    for method, target in (("GET", "/v1/models?limit=3"), ("GET", "/v1/x"), ("POST", "/v1/models")):
        with (
            pytest.raises(ChangedCallError, match="1/call/agent/1"),
            tutorsim.recorded_http(path) as http,
        ):
            http.request(method, server.url + target)
    with pytest.raises(UnusedCallError), tutorsim.recorded_http(path):
        pass


@pytest.mark.loopback
@pytest.mark.parametrize("asked", ["/v1/chat", "/v1/embed"])
def test_a_call_that_changed_is_held_against_one_of_its_own_endpoint(path, server, asked):
    """Whichever of the two was recorded first; without one, the next call that is left."""
    server.respond = lambda body: {"ok": 1}
    with tutorsim.recorded_http(path, mode="once") as http:
        for recorded in ("/v1/chat", "/v1/embed"):
            http.post(server.url + recorded, json={"text": "one"})
    with tutorsim.recorded_http(path, partial=True) as http:
        with pytest.raises(ChangedCallError) as changed:
            http.post(server.url + asked, json={"text": "two"})
        assert "recorded 'one', now 'two'" in changed.value.why
        with pytest.raises(ChangedCallError, match="path differs"):
            http.post(server.url + "/v1/other", json={"text": "one"})


@pytest.mark.loopback
def test_a_client_of_the_sdk_that_renames_errors_lets_ours_through(path, server):
    """One that the user made, over our HTTP client, which knows nothing of it."""
    one = {**ASKED, "max_tokens": 5}
    with tutorsim.recorded_http(path, mode="once") as http:
        anthropic.Anthropic(http_client=http).messages.create(**one)
    with tutorsim.recorded_http(path, partial=True) as http:
        client = anthropic.Anthropic(http_client=http)
        with pytest.raises(ChangedCallError, match="recorded with another request") as changed:
            client.messages.create(**{**one, "max_tokens": 6})
        assert isinstance(changed.value, anthropic.AnthropicError)
        assert changed.value.why
        assert changed.value.hint


@pytest.mark.parametrize("enter", [False, True])
def test_clients_are_there_inside_one_block(tmp_path, enter):
    tape = tutorsim.recorded_http(tmp_path / "c.json", mode="once")
    if enter:
        nothing = pytest.warns(UserWarning, match="Nothing was asked")
        with nothing, tape, pytest.raises(TutorsimError, match="is entered already"), tape:
            pass
    for face in ("client", "async_client"):
        with pytest.raises(UsageError, match="is not entered"):
            getattr(tape, face)


@pytest.mark.loopback
def test_what_a_recording_hands_on_is_what_its_replay_hands_on(path, server):
    """Our patience, no compression, and no header that the cassette does not keep."""
    server.respond = chat
    seen = []
    for mode in ("once", "none"):
        with tutorsim.recorded_http(path, mode=mode) as http:  # type: ignore[arg-type]
            assert (http.timeout.read, http.timeout.connect) == (600.0, 10.0)
            response = http.post(server.url + CHAT, json=ASKED)
            seen.append((sorted(response.headers.multi_items()), response.content))
    assert seen[0] == seen[1]
    assert "set-cookie" not in dict(seen[0][0])
    [headers] = server.headers
    assert headers["accept-encoding"] == "identity"


def by_httpx1(tape, url):
    """A program over httpx 1 and an SDK over it: whole, and as a stream."""
    httpx = pytest.importorskip("httpx")
    openai = pytest.importorskip("openai")
    client = tape.httpx1_client
    assert isinstance(client, httpx.Client)
    assert (client.timeout.read, client.timeout.connect) == (600.0, 10.0)
    whole = client.post(url + CHAT, json=ASKED).json()["choices"][0]["message"]["content"]
    ask = openai.OpenAI(http_client=client, base_url=f"{url}/v1", api_key=KEY).chat.completions
    streamed = ask.create(**ASKED, stream=True)
    return [whole, *(one.choices[0].delta.content for one in streamed)]


async def by_httpx1_async(tape, url):
    openai = pytest.importorskip("openai")
    client = tape.httpx1_async_client
    assert (client.timeout.read, client.timeout.connect) == (600.0, 10.0)
    whole = (await client.post(url + CHAT, json=ASKED)).json()["choices"][0]["message"]["content"]
    sdk = openai.AsyncOpenAI(http_client=client, base_url=f"{url}/v1", api_key=KEY)
    streamed = await sdk.chat.completions.create(**ASKED, stream=True)
    said = [one.choices[0].delta.content async for one in streamed]
    await client.aclose()
    return [whole, *said]


@pytest.mark.loopback
def test_clients_of_httpx_1_play_and_record_as_those_of_httpx2_do(path, server, offline):
    pytest.importorskip("httpx")
    server.respond = respond
    for mode in ("once", "none"):
        tape = tutorsim.recorded_http(path, mode=mode)  # type: ignore[arg-type]
        with tape:
            assert by_httpx1(tape, server.url) == WORDS
            assert asyncio.run(by_httpx1_async(tape, server.url)) == WORDS
        offline()
    assert len(server.seen) == 4
    assert KEY not in path.read_text()
    with tutorsim.recorded_http(path, partial=True) as http:  # recorded by one, played by the other
        assert http.post(server.url + CHAT, json=ASKED).json() == chat(ASKED)
    tape = tutorsim.recorded_http(path, partial=True)
    with tape, pytest.raises(ChangedCallError, match="recorded with another request"):
        tape.httpx1_client.post(server.url + CHAT, json={**ASKED, "n": 2})


@pytest.mark.loopback
def test_what_the_network_does_has_the_names_of_httpx_1_there(tmp_path, server):
    httpx = pytest.importorskip("httpx")
    tape = tutorsim.recorded_http(tmp_path / "c.json", mode="once")
    server.respond = lambda body: None
    with tape, pytest.raises(httpx.RemoteProtocolError):
        tape.httpx1_client.post(server.url + CHAT, json=ASKED)
    server.respond = lambda body: events(chunk("one"), last="")
    with tape, pytest.raises(httpx.RemoteProtocolError, match="ends before its last event"):
        tape.httpx1_client.post(server.url + CHAT, json={**ASKED, "stream": True})


def test_without_that_package_its_clients_are_refused(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "httpx", None)
    monkeypatch.delitem(sys.modules, "tutorsim.replay.httpx1_clients_over_httpx2", raising=False)
    tape = tutorsim.recorded_http(tmp_path / "c.json", mode="once")
    for face in ("httpx1_client", "httpx1_async_client"):
        nothing = pytest.warns(UserWarning, match="Nothing was asked")
        with nothing, tape, pytest.raises(UsageError, match="no client of httpx 1"):
            getattr(tape, face)
