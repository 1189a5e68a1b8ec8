"""A Messages API on loopback, small enough to read, and recordings made from it."""

import asyncio
import http.server
import json
import socket
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from tests.tutorsim.replay.made import DIGEST, EPISODE, KEY, message
from tutorsim.model.sdk_model_and_reasons_of_failed_calls import HttpTransport, SdkModel
from tutorsim.replay.recording_transport_tapes_and_journals import CassetteStore


def _answered(ended):
    if isinstance(ended, BaseException):
        raise ended
    return ended


@pytest.fixture
def record(server):
    """Records calls of one episode from the server, side by side, and writes the cassette."""

    def recorded(folder, calls, *, finish=True, **options):
        async def run():
            store = CassetteStore(folder, study_digest=DIGEST, packages={"tutorsim": "1"})
            transport = store.transport(HttpTransport())
            async with SdkModel(transport=transport, **options) as live:
                with store.open(EPISODE, live) as tape:
                    asked = (tape.reply(EPISODE, one) for one in calls)
                    # As the runner does: a round ends when each of its calls has ended.
                    ended = await asyncio.gather(*asked, return_exceptions=True)
                    await tape.sync()
                    replies = [_answered(one) for one in ended]
                    if finish:
                        await tape.finish([one.key for one in calls])
                    return replies

        return asyncio.run(run())

    return recorded


@dataclass
class Answering:
    """What the server does, and what it saw."""

    respond: Callable[[dict[str, Any]], Any] = lambda body: message(
        "re: " + body["messages"][0]["content"]
    )
    """A message body, bytes to send as they are, or (status, headers, bytes)."""
    seen: list[dict[str, Any]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    url: str = ""


@pytest.fixture
def server(monkeypatch):
    """A running server; the SDK's environment points at it."""
    state = Answering()

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def do_GET(self):
            self.do_POST()

        def do_POST(self):
            body = json.loads(self.rfile.read(int(self.headers["content-length"] or 0)) or "{}")
            state.seen.append(body)
            state.headers.append({k.lower(): v for k, v in self.headers.items()})
            self._send(state.respond(body))

        def _send(self, answer):
            if answer is None:
                self.close_connection = True
                self.connection.shutdown(socket.SHUT_RDWR)
                return
            status, extra, data = answer if isinstance(answer, tuple) else (200, {}, answer)
            if not isinstance(data, bytes):
                data = json.dumps(data).encode()
            headers = {
                "content-type": "application/json",
                "content-length": str(len(data)),
                "request-id": "req_secret",
                "anthropic-organization-id": "org_secret",
                "set-cookie": "session=secret",
                **extra,
            }
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(data)
            if int(headers["content-length"]) != len(data):
                self.close_connection = True

        def logmessage(self, *_):
            pass

    class Server(http.server.ThreadingHTTPServer):
        request_queue_size = 100

    running = Server(("127.0.0.1", 0), Handler)
    running.daemon_threads = True
    thread = threading.Thread(target=running.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    state.url = f"http://127.0.0.1:{running.server_port}"
    monkeypatch.setenv("ANTHROPIC_BASE_URL", state.url)
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
    monkeypatch.setattr("anthropic._base_client.INITIAL_RETRY_DELAY", 0.001)
    yield state
    running.shutdown()
    running.server_close()
    thread.join()


@pytest.fixture
def offline(monkeypatch):
    """Takes the credentials away and refuses every socket from here on."""

    def refuse(*_, **__):
        raise AssertionError("a connection was tried")

    def cut():
        for name in ("ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL"):
            monkeypatch.delenv(name, raising=False)
        monkeypatch.setattr(socket.socket, "connect", refuse)
        monkeypatch.setattr(socket, "getaddrinfo", refuse)

    return cut
