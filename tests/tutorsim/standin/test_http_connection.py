import json
import socket
import time

import pytest

from tutorsim.standin import STANDIN_VERSION, StandIn

pytestmark = pytest.mark.loopback


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


def test_a_response_names_the_stand_in_and_the_request(line, body):
    line.sendall(request(body()))
    status, headers, content = receive(line)
    assert status == 200
    assert headers["x-tutorsim-standin"] == STANDIN_VERSION
    assert headers["request-id"].startswith("req_")
    assert headers["content-type"] == "application/json"
    assert "date" not in headers
    json.loads(content)


def test_a_connection_is_kept_for_the_next_request(line, body):
    for _ in range(3):
        line.sendall(request(body()))
        status, headers, _ = receive(line)
        assert (status, headers["connection"]) == (200, "keep-alive")


def test_a_request_may_come_in_single_bytes(line, body):
    for byte in request(body(system="student")):
        line.sendall(bytes([byte]))
    assert receive(line)[0] == 200


def test_requests_sent_at_once_are_answered_in_order(line, body):
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


@pytest.mark.parametrize(
    ("more", "version"),
    [("Connection: close\r\n", "1.1"), ("", "1.0"), ("connection: CLOSE\r\n", "1.1")],
)
def test_a_client_that_wants_to_close_is_let_go(line, body, more, version):
    line.sendall(request(body(), more=more, version=version))
    status, headers, _ = receive(line)
    assert (status, headers["connection"]) == (200, "close")
    assert closed(line)


def test_an_old_client_may_ask_to_stay(line, body):
    line.sendall(request(body(), more="Connection: keep-alive\r\n", version="1.0"))
    assert receive(line)[1]["connection"] == "keep-alive"


def test_a_client_that_waits_for_a_go_ahead_gets_it(line, body):
    head, _, content = request(body(), more="Expect: 100-continue\r\n").partition(b"\r\n\r\n")
    line.sendall(head + b"\r\n\r\n")
    assert line.recv(100) == b"HTTP/1.1 100 Continue\r\n\r\n"
    line.sendall(content)
    assert receive(line)[0] == 200


@pytest.mark.parametrize(
    ("data", "status", "kind"),
    [
        (b"hello\r\n\r\n", 400, "invalid_request_error"),
        (b"GET / HTTP/2.0\r\n\r\n", 400, "invalid_request_error"),
        (b"GET / HTTP/1.1\r\nno colon\r\n\r\n", 400, "invalid_request_error"),
        (b"GET / HTTP/1.1\r\n folded: x\r\n\r\n", 400, "invalid_request_error"),
        (b"POST / HTTP/1.1\r\nContent-Length: -1\r\n\r\n", 400, "invalid_request_error"),
        (b"POST / HTTP/1.1\r\nContent-Length: \xb2\r\n\r\n", 400, "invalid_request_error"),
        (
            b"POST / HTTP/1.1\r\nContent-Length: 1\r\ncontent-length: 2\r\n\r\n",
            400,
            "invalid_request_error",
        ),
        (b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n", 411, "invalid_request_error"),
        (b"POST / HTTP/1.1\r\nContent-Length: 99999999\r\n\r\n", 413, "request_too_large"),
        (b"GET / HTTP/1.1\r\nx: " + b"y" * 70_000, 431, "invalid_request_error"),
    ],
)
def test_what_cannot_be_read_is_refused_and_the_connection_closed(line, data, status, kind):
    line.sendall(data)
    found, headers, content = receive(line)
    assert (found, json.loads(content)["error"]["type"]) == (status, kind)
    assert headers["connection"] == "close"
    assert closed(line)


def test_a_refused_body_leaves_the_connection_open(line, body):
    line.sendall(request({}))
    assert receive(line)[0] == 400
    line.sendall(request(body()))
    assert receive(line)[0] == 200


@pytest.mark.costly
def test_a_slow_reply_holds_up_later_ones_of_its_own_connection_only(body):
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


def test_a_dropped_connection_brings_nothing_and_a_cut_one_a_part(body):
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
