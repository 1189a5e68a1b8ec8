"""The client: what it sends, what it retries, and what its failures say."""

import asyncio
import json
import os
import warnings

import httpx2
import pytest

from tests.tutorsim.conftest import Scripted
from tests.tutorsim.replay.made import message
from tutorsim.errors import CallFailed, RecordingError, UsageError
from tutorsim.model import Call, CallKey, Reply, Request
from tutorsim.model import sdk_model_and_reasons_of_failed_calls as sdk

KEY = "sk-ant-test-0123456789-credential"
CALL = Call(
    CallKey(1, "propose", "motivation", 1),
    Request("model-1", "You tutor.", "Hé \U0001f600", 64, (("temperature", 0.5),)),
)
MESSAGE = message("fine")


def error_response(status, kind, text, **headers):
    body = {"type": "error", "error": {"type": kind, "message": text}, "request_id": "req_1"}
    return httpx2.Response(status, json=body, headers={"request-id": "req_1", **headers})


@pytest.fixture(autouse=True)
def environment(monkeypatch, tmp_path):
    for name in [name for name in os.environ if name.startswith("ANTHROPIC_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
    monkeypatch.setattr("anthropic._base_client.INITIAL_RETRY_DELAY", 0.001)


def ask(transport, call=CALL, **options):
    async def run():
        async with sdk.SdkModel(transport=transport, **options) as model:
            return await model.reply("sciq.q.p.simple", call)

    return asyncio.run(run())


def test_what_is_sent_is_the_request_body_and_the_call_header():
    transport = Scripted(httpx2.Response(200, json=MESSAGE))

    assert ask(transport) == Reply("fine", "model-1", "end_turn", 7, 3)

    [sent] = transport.requests
    assert httpx2.Response(200, content=sent.content).json() == CALL.request.body()
    assert sent.headers["x-tutorsim-call"] == "sciq.q.p.simple/1/propose/motivation/1"
    assert sent.url == "https://api.anthropic.com/v1/messages"
    assert sent.headers["authorization"] == f"Bearer {KEY}"


@pytest.mark.parametrize("spelling", [{}, {"indent": 2}])
def test_a_request_from_a_recording_is_sent_again_in_its_own_bytes(spelling):
    transport = Scripted(httpx2.Response(200, json=MESSAGE))
    text = json.dumps(CALL.request.body(), **spelling)

    ask(transport)
    ask(transport, Call(CALL.key, Request.from_text(text)))

    new, again = transport.requests
    assert again.content == text.encode()
    assert dict(again.headers) == {**new.headers, "content-length": str(len(text))}


@pytest.mark.parametrize(
    "fault",
    [
        error_response(429, "rate_limit_error", "slow down", **{"retry-after-ms": "1"}),
        error_response(529, "overloaded_error", "busy"),
        error_response(500, "api_error", "oops"),
        httpx2.ReadError("reset"),
        httpx2.ReadTimeout("slow"),
    ],
    ids=["429", "529", "500", "dropped", "slow"],
)
def test_a_passing_fault_is_retried(fault):
    transport = Scripted(fault, fault, httpx2.Response(200, json=MESSAGE))

    assert ask(transport).text == "fine"
    assert len(transport.requests) == 3


@pytest.mark.parametrize(
    ("fault", "attempts", "what"),
    [
        (lambda: error_response(529, "overloaded_error", "Overloaded"), 3,
         "HTTP 529, overloaded_error: Overloaded."),
        (lambda: error_response(400, "invalid_request_error", f"bad\n\x1bkey {KEY}"), 1,
         "HTTP 400, invalid_request_error: bad key [credential]."),
        (lambda: httpx2.Response(503, text="<html>"), 3, "HTTP 503."),
        (lambda: httpx2.Response(308, headers={"location": "/x"}), 1, "HTTP 308."),
        (lambda: httpx2.ConnectError("[Errno 111] 127.0.0.1:4242"), 3,
         "The connection failed: nothing answers at the endpoint's address."),
        (lambda: httpx2.ReadTimeout("after 3 s"), 3, "No reply in time."),
        (lambda: httpx2.Response(200, json={"type": "other"}), 1, "The reply is not a message."),
        (lambda: httpx2.Response(200, text="{"), 1, "The reply is not a message."),
    ],
)  # fmt: skip
def test_a_lasting_fault_is_told_in_stable_words(fault, attempts, what):
    class Again(Scripted):
        async def handle_async_request(self, request):
            self.answers = [fault()]
            return await super().handle_async_request(request)

    transport = Again()
    with pytest.raises(CallFailed) as caught:
        ask(transport, max_retries=2)

    assert caught.value.what == what
    assert caught.value.why == ""
    assert caught.value.key == "1/propose/motivation/1"
    assert len(transport.requests) == attempts


def test_a_long_message_of_the_endpoint_is_cut():
    with pytest.raises(CallFailed) as caught:
        ask(Scripted(error_response(400, "invalid_request_error", "x" * 5000)))

    assert len(caught.value.what) < 350


def test_refused_credentials_end_the_run():
    with pytest.raises(UsageError, match="HTTP 401, authentication_error: no") as caught:
        ask(Scripted(error_response(401, "authentication_error", "no")))

    assert caught.value.exit_code == 2
    assert "ANTHROPIC_API_KEY" in caught.value.hint


@pytest.mark.parametrize("error", [RecordingError("broken", why="because"), KeyError("a defect")])
def test_an_error_that_is_not_the_networks_comes_out_as_it_is_and_is_not_retried(error):
    transport = Scripted(error)

    with pytest.raises(type(error)) as caught:
        ask(transport)

    assert caught.value is error
    assert len(transport.requests) == 1


@pytest.mark.parametrize("base_url", [None, "http://127.0.0.1:9"])
def test_missing_credentials_are_told_before_anything_is_sent(monkeypatch, base_url):
    monkeypatch.delenv("ANTHROPIC_API_KEY")
    if base_url:
        monkeypatch.setenv("ANTHROPIC_BASE_URL", base_url)

    with pytest.raises(UsageError, match="No credentials") as caught:
        sdk.SdkModel(transport=Scripted(httpx2.Response(200)))

    assert "ANTHROPIC_API_KEY" in caught.value.hint


@pytest.mark.parametrize(
    ("name", "value"),
    [("ANTHROPIC_AUTH_TOKEN", "token"), ("ANTHROPIC_CUSTOM_HEADERS", "X-Api-Key: one")],
)
def test_other_credentials_of_the_environment_do_too(monkeypatch, name, value):
    monkeypatch.delenv("ANTHROPIC_API_KEY")
    monkeypatch.setenv(name, value)

    assert ask(Scripted(httpx2.Response(200, json=MESSAGE))).text == "fine"


def test_an_unusable_profile_is_told():
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("ANTHROPIC_API_KEY")
        patch.setenv("ANTHROPIC_PROFILE", "absent")
        with pytest.raises(UsageError, match="cannot be used"):
            sdk.SdkModel(transport=Scripted(httpx2.Response(200)))


def test_a_placeholder_needs_no_environment(monkeypatch):
    monkeypatch.delenv("ANTHROPIC_API_KEY")
    monkeypatch.setenv("ANTHROPIC_BASE_URL", "http://127.0.0.1:9")
    transport = Scripted(httpx2.Response(200, json=MESSAGE))

    ask(transport, placeholder="none")

    assert transport.requests[0].url.host == "api.anthropic.com"


def test_a_retiring_model_is_told_once_and_never_as_a_warning():
    told: list[str] = []
    retiring = Call(CALL.key, Request("claude-sonnet-4-5", "", "?", 8))

    async def run():
        answer = {**MESSAGE, "model": "claude-sonnet-4-5-20250929"}
        transport = Scripted(httpx2.Response(200, json=answer))
        async with sdk.SdkModel(transport=transport, on_warning=told.append) as model:
            for _ in range(3):
                await model.reply("sciq.q.p.simple", retiring)

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        asyncio.run(run())
    assert len(told) == 1
    assert "claude-sonnet-4-5" in told[0]


@pytest.mark.parametrize(
    ("answered", "told"),
    [("model-1", 0), ("model-1-20260101", 0), ("model-1-latest", 0), ("model-2", 1), ("", 1)],
)
def test_another_model_than_asked_is_told_once(answered, told):
    said: list[str] = []

    async def run():
        transport = Scripted(httpx2.Response(200, json={**MESSAGE, "model": answered}))
        async with sdk.SdkModel(transport=transport, on_warning=said.append) as model:
            for _ in range(3):
                await model.reply("sciq.q.p.simple", CALL)

    asyncio.run(run())
    assert (
        said
        == [f"The endpoint answers calls to model-1 as {answered}; each recorded reply says so."][
            :told
        ]
    )


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b'{"type": "error", "error": {"type": "overloaded_error"}}', 529),
        (b'{"type": "error", "error": {"type": "rate_limit_error", "message": "slow"}}', 429),
        (b'{"type": "error", "error": {"type": "of no known kind"}}', None),
        (b'{"error": "busy"}', None),
        (b"[]", None),
        (b"<html>", None),
    ],
)
def test_an_error_that_came_as_a_success_has_its_status(body, status):
    assert sdk.status_told_in(body) == status


def test_no_more_calls_are_in_flight_than_allowed():
    class Counting(httpx2.AsyncBaseTransport):
        now = most = 0

        async def handle_async_request(self, request):
            self.now += 1
            self.most = max(self.most, self.now)
            await asyncio.sleep(0.002)
            self.now -= 1
            return httpx2.Response(200, json=MESSAGE)

    transport = Counting()

    async def run():
        async with sdk.SdkModel(transport=transport, max_connections=3) as model:
            await asyncio.gather(*(model.reply("sciq.q.p.simple", CALL) for _ in range(12)))

    asyncio.run(run())
    assert transport.most == 3


def test_a_proxy_of_the_environment_is_used_but_not_for_this_machine(monkeypatch):
    from tutorsim.model.sdk_model_and_reasons_of_failed_calls import proxy_for

    monkeypatch.setenv("https_proxy", "http://proxy.example:3128")
    monkeypatch.setenv("http_proxy", "http://proxy.example:3128")
    monkeypatch.setenv("no_proxy", "inside.example")

    assert proxy_for(httpx2.URL("https://api.anthropic.com/")) == "http://proxy.example:3128"
    assert proxy_for(httpx2.URL("https://inside.example/")) is None
    assert proxy_for(httpx2.URL("http://127.0.0.1:8000/")) is None


# --- Each thing that comes between a request and its reply has words of its own ------------------


REQUEST = httpx2.Request("POST", "http://127.0.0.1/")
CAUSES = {
    "dead server": httpx2.ConnectError("[Errno 111] 127.0.0.1:4242"),
    "closed": httpx2.RemoteProtocolError("Server disconnected without sending a response."),
    "cut": httpx2.RemoteProtocolError(
        "peer closed connection without sending complete message body (received 3 bytes)"
    ),
    "reset": httpx2.ReadError("[Errno 104]"),
    "page": sdk.NotAMessage(b" <!doctype html>", "text/plain", REQUEST),
    "other": sdk.NotAMessage(b'{"type": "other"}', "application/json", REQUEST),
}


def test_no_two_causes_share_their_words_and_none_names_a_host():
    texts = {name: sdk.connection_text(cause) for name, cause in CAUSES.items()}
    assert len(set(texts.values())) == len(CAUSES)
    assert texts["page"] == "The reply is not a message but a page"
    assert texts["other"] == "The reply is not a message"
    assert not any(char in text for text in texts.values() for char in "0123456789")


@pytest.mark.parametrize("name", CAUSES)
def test_what_never_reached_the_endpoint_is_known_by_its_words(name):
    reached = name in ("page", "other")
    assert sdk.connection_text(CAUSES[name]).startswith(sdk.OF_THE_MOMENT) is not reached


def test_why_a_call_may_be_answered_later_is_known_by_its_cause_or_status():
    broken = dict.fromkeys(("closed", "cut", "reset"), "broken")
    values = {name: why for name, cause in CAUSES.items() if (why := sdk.away(cause))}
    assert values == {"dead server": "nobody", **broken}
    assert sdk.away(httpx2.ConnectTimeout("x")) == "nobody"
    assert sdk.away(httpx2.ReadTimeout("x")) is None
    statuses = (400, 401, 404, 408, 409, 413, 422, 429, 500, 502, 503, 504, 520, 529)
    found = {status: why for status in statuses if (why := sdk.away(None, status))}
    assert found == {
        **dict.fromkeys((408, 409, 500, 502, 504, 520), "broken"),
        **dict.fromkeys((429, 503, 529), "busy"),
    }
    texts = {status: f"HTTP {status}, some_error: no." for status in statuses}
    assert {s for s, text in texts.items() if text.startswith(sdk.OF_THE_MOMENT)} == set(found)


async def connections(transport, *rounds):
    """How many a server gets that is asked so many times at once, one round after the other."""
    seen = []

    async def answer(reader, writer):
        seen.append(asyncio.current_task())
        while await reader.read(4096):
            await asyncio.sleep(0.01)
            writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}")
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/"
        async with httpx2.AsyncClient(transport=transport) as client:
            for at_once in rounds:
                await asyncio.gather(*(client.get(url) for _ in range(at_once)))
        await asyncio.gather(*seen)
    return len(seen)


@pytest.mark.loopback
@pytest.mark.parametrize(
    ("options", "rounds", "expected"),
    [({}, (3, 1, 2), 3), ({"max_connections": 2}, (5, 3), 2), ({"kept_open": False}, (3, 1, 2), 6)],
)  # fmt: skip
def test_a_connection_waits_for_a_request_and_no_more_are_open_than_said(options, rounds, expected):
    assert asyncio.run(connections(sdk.HttpTransport(**options), *rounds)) == expected
