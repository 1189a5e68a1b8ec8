import asyncio
import json
import socket
import threading
import time
from unittest.mock import AsyncMock

import anthropic
import pytest
from uvicorn.server import ServerState

from tests.tutorsim.standin.conftest import body
from tutorsim.errors import UsageError
from tutorsim.standin import STANDIN_VERSION, Endpoint, StandIn, serve
from tutorsim.standin import server as server_module
from tutorsim.standin.http_responses_and_faults import parse_fault

pytestmark = pytest.mark.loopback


def client(server, **settings):
    return anthropic.Anthropic(base_url=server.url, api_key="none", **settings)


def create(opened, body, name):
    return opened.messages.create(**body, extra_headers={"x-tutorsim-call": name})


def test_the_stock_client_gets_a_message():
    with StandIn(seed=2) as server, client(server) as opened:
        message = create(opened, body(), "one")
        assert message.content[0].text in set("ABCD")
        assert server.requests == 1


@pytest.mark.costly
@pytest.mark.parametrize("fault", ["429:1:0.01", "529:1", "drop:1", "cut:1"])
def test_the_clients_own_retry_gets_what_an_undisturbed_server_gives(fault):
    with StandIn(seed=2) as server, client(server) as opened:
        undisturbed = create(opened, body(), "one")
    with StandIn(seed=2, faults=[fault]) as server, client(server, max_retries=1) as opened:
        assert create(opened, body(), "one") == undisturbed
        assert server.requests == 2


def test_a_fault_that_persists_outlasts_every_retry():
    with StandIn(faults=["429:1:0.01:persist"]) as server, client(server, max_retries=2) as opened:
        with pytest.raises(anthropic.RateLimitError) as caught:
            create(opened, body(), "one")
        assert caught.value.request_id.startswith("req_")
        assert server.requests == 3


def test_errors_reach_the_client_as_its_own_kinds():
    with StandIn() as server, client(server) as opened:
        with pytest.raises(anthropic.BadRequestError, match="max_tokens"):
            create(opened, body(max_tokens=0), "one")
        with pytest.raises(anthropic.NotFoundError):
            opened.models.list()


@pytest.mark.costly
def test_sixty_four_calls_in_flight_get_the_replies_of_one_after_the_other():
    names = [f"call {i}" for i in range(64)]

    async def all_at_once(url):
        async with anthropic.AsyncAnthropic(base_url=url, api_key="none") as opened:
            return await asyncio.gather(*(create(opened, body(), name) for name in names))

    with StandIn(seed=9) as server:
        together = asyncio.run(all_at_once(server.url))
    with StandIn(seed=9) as server, client(server) as opened:
        assert [create(opened, body(), name) for name in names] == together


def test_nothing_is_left_running_and_the_port_is_free_again():
    before = threading.active_count()
    with StandIn() as server:
        url = server.url
        assert threading.active_count() == before + 1
    assert threading.active_count() == before
    with pytest.raises(anthropic.APIConnectionError):
        anthropic.Anthropic(base_url=url, api_key="none", max_retries=0).models.list()


def test_a_server_ends_while_a_reply_still_waits():
    with StandIn(faults=["slow:1:60"]) as server:
        opened = client(server, max_retries=0)
        failures = []

        def call():
            try:
                create(opened, body(), "one")
            except anthropic.APIConnectionError as error:
                failures.append(error)

        waiting = threading.Thread(target=call)
        waiting.start()
        while server.requests == 0:
            time.sleep(0.01)
    waiting.join(60)
    assert len(failures) == 1
    opened.close()


def test_an_error_in_the_block_is_not_hidden():
    with pytest.raises(ValueError, match="mine"), StandIn():
        raise ValueError("mine")


def test_a_fault_that_cannot_be_read_is_refused_before_the_server_starts():
    with pytest.raises(UsageError):
        StandIn(faults=["oops"])


def test_a_port_in_use_is_named():
    async def two():
        stop = asyncio.Event()
        urls = []
        first = asyncio.create_task(
            serve(Endpoint(seed=0), host="127.0.0.1", port=0, ready=urls.append, stop=stop)
        )
        while not urls:
            await asyncio.sleep(0.01)
        port = int(urls[0].rsplit(":", 1)[1])
        try:
            await serve(Endpoint(seed=0), host="127.0.0.1", port=port, ready=urls.append, stop=stop)
        finally:
            stop.set()
            await first

    with pytest.raises(UsageError, match=r"cannot listen on 127\.0\.0\.1 port"):
        asyncio.run(two())


# --- On the line ---------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def server():
    with StandIn(seed=1, faults=["slow:0:0"]) as running:
        yield running


@pytest.fixture
def line(server):
    """An open connection to the server."""
    with connect(server) as opened:
        yield opened


def connect(server):
    host, port = server.url.removeprefix("http://").split(":")
    return socket.create_connection((host, int(port)), timeout=60)


def request(body, *, name="x", more="", version="1.1"):
    content = json.dumps(body).encode()
    head = (
        f"POST /v1/messages HTTP/{version}\r\nHost: here\r\nX-Tutorsim-Call: {name}\r\n"
        f"{more}Content-Length: {len(content)}\r\n\r\n"
    )
    return head.encode() + content


def receive(line):
    """One response: status, headers and body."""
    data = b""
    while b"\r\n\r\n" not in data:
        data += line.recv(65536) or pytest.fail(f"the connection closed after {data!r}")
    head, _, content = data.partition(b"\r\n\r\n")
    first, *rest = head.decode().split("\r\n")
    headers = dict(field.split(": ", 1) for field in rest)
    while len(content) < int(headers["content-length"]):
        content += line.recv(65536)
    assert len(content) == int(headers["content-length"])
    return int(first.split()[1]), headers, content


def closed(line):
    return line.recv(1) == b""


def test_a_response_names_the_stand_in_and_the_request(line):
    line.sendall(request(body()))
    status, headers, content = receive(line)
    assert status == 200
    assert headers["x-tutorsim-standin"] == STANDIN_VERSION
    assert headers["request-id"].startswith("req_")
    assert headers["content-type"] == "application/json"
    assert "date" not in headers
    json.loads(content)


def test_a_connection_is_kept_for_the_next_request(line):
    for _ in range(3):
        line.sendall(request(body()))
        assert receive(line)[0] == 200


def test_requests_sent_at_once_are_answered_in_order(line):
    names = [f"call {i}" for i in range(20)]
    apart = []
    for name in names:
        line.sendall(request(body(), name=name))
        apart.append(receive(line))
    with_others = b"".join(request(body(), name=name) for name in names)
    line.sendall(with_others)
    data = b""
    while data.count(b"HTTP/1.1 200") < 20 or not data.endswith(apart[-1][2]):
        data += line.recv(65536)
    places = [data.index(content) for _, _, content in apart]
    assert places == sorted(places)


def test_a_refused_body_leaves_the_connection_open(line):
    line.sendall(request({}))
    assert receive(line)[0] == 400
    line.sendall(request(body()))
    assert receive(line)[0] == 200


@pytest.mark.costly
def test_a_slow_reply_holds_up_later_ones_of_its_own_connection_only():
    with (
        StandIn(faults=["slow:2:1"]) as server,
        connect(server) as waiting,
        connect(server) as other,
    ):
        other.sendall(request(body(), name="first"))
        receive(other)
        waiting.sendall(request(body(), name="slow") + request(body(), name="after"))
        while server.requests < 2:
            time.sleep(0.01)
        other.sendall(request(body(), name="quick"))
        assert receive(other)[0] == 200
        waiting.setblocking(False)
        with pytest.raises(BlockingIOError):
            waiting.recv(1)
        waiting.settimeout(60)
        assert receive(waiting)[0] == 200


def test_nothing_is_sent_to_a_client_that_went_away_while_it_waited():
    scope = {"type": "http", "method": "POST", "raw_path": b"/v1/messages", "query_string": b""}

    async def sent_after(seconds):
        asked = {"type": "http.request", "body": json.dumps(body()).encode()}
        receive = AsyncMock(side_effect=[asked, {"type": "http.disconnect"}])
        send = AsyncMock()
        endpoint = Endpoint(seed=1, faults=[parse_fault(f"slow:1:{seconds}")])
        application = server_module._application(endpoint, ServerState())
        await application({**scope, "headers": []}, receive, send)
        return [call.args[0]["type"] for call in send.await_args_list]

    assert asyncio.run(sent_after(0)) == ["http.response.start", "http.response.body"]
    assert asyncio.run(sent_after(60)) == []


def test_a_dropped_connection_brings_nothing_and_a_cut_one_a_part():
    with StandIn(faults=["drop:1"]) as server, connect(server) as line:
        line.sendall(request(body()))
        assert closed(line)
    with StandIn(faults=["cut:1"]) as server, connect(server) as line:
        line.sendall(request(body()))
        data = b""
        while part := line.recv(65536):
            data += part
        head, _, content = data.partition(b"\r\n\r\n")
        length = int(head.decode().split("content-length: ")[1].split("\r\n")[0])
        assert 0 < len(content) < length


@pytest.mark.parametrize(
    "framed", ["Content-Length: 99999999\r\n\r\n", "Transfer-Encoding: chunked\r\n\r\n"]
)
def test_a_body_that_is_too_large_is_refused(line, framed, monkeypatch):
    monkeypatch.setattr(server_module, "LARGEST_BODY", 10)
    chunk = b"0" * 11 if "Length" in framed else b"b\r\n" + b"0" * 11 + b"\r\n0\r\n\r\n"
    line.sendall(f"POST /v1/messages HTTP/1.1\r\nHost: here\r\n{framed}".encode() + chunk)
    status, _, content = receive(line)
    assert (status, json.loads(content)["error"]["type"]) == (413, "request_too_large")


def test_a_client_that_goes_away_leaves_no_word_in_the_log(caplog):
    with StandIn(faults=["slow:1:0.2", "drop:2"]) as server:
        with connect(server) as early:
            early.sendall(b"POST /v1/messages HTTP/1.1\r\nHost: here\r\nContent-Length: 9\r\n\r\n{")
        for name in ("one", "two"):
            with connect(server) as line:
                line.sendall(request(body(), name=name))
        while server.requests < 2:
            time.sleep(0.01)
    assert caplog.records == []
