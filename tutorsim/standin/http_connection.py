"""HTTP/1.1 on one connection: requests are read, answered in order, and the line is kept open."""

import asyncio
from collections.abc import Mapping
from http import HTTPStatus
from typing import NamedTuple

from tutorsim.standin.batch_endpoint import BATCHES_PATH, LARGEST_BATCH
from tutorsim.standin.endpoint import STANDIN_VERSION, Endpoint
from tutorsim.standin.http_response import Problem, Response, error_response

__all__ = ["Connection"]

_LARGEST_HEAD = 64 * 1024
_LARGEST_BODY = 32 * 1024 * 1024
"""The API's own limit for a message."""


class _Head(NamedTuple):
    method: str
    target: str
    headers: Mapping[str, str]
    """Names in lower case."""
    length: int
    keeps: bool
    """Whether the client keeps the connection open."""


class Connection(asyncio.Protocol):
    """One client's connection.

    Args:
        endpoint: What answers.
        others: All open connections of the server; this one adds and removes itself.
    """

    def __init__(self, endpoint: Endpoint, others: set["Connection"]) -> None:
        self._endpoint = endpoint
        self._others = others
        self._received = bytearray()
        self._head: _Head | None = None
        self._waiting: asyncio.TimerHandle | None = None
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._others.add(self)

    def connection_lost(self, exc: Exception | None) -> None:
        self._others.discard(self)
        if self._waiting:
            self._waiting.cancel()

    def data_received(self, data: bytes) -> None:
        self._received += data
        self._advance()

    def close(self) -> None:
        """End the connection now; a reply that waits is not sent."""
        if self._transport:
            self._transport.abort()

    def _advance(self) -> None:
        """Answer as many whole requests as have come in, one after the other."""
        while self._transport and not self._transport.is_closing() and not self._waiting:
            try:
                head = self._read_head()
                if head is None or len(self._received) < head.length:
                    break
            except Problem as problem:
                self._refuse(problem)
                break
            self._head = None
            content = bytes(self._received[: head.length])
            del self._received[: head.length]
            response = self._endpoint.answer(head.method, head.target, head.headers, content)
            self._send_later(response, keeps=head.keeps)
        if self._waiting and self._transport and len(self._received) > _LARGEST_HEAD:
            self._transport.pause_reading()

    def _read_head(self) -> _Head | None:
        """The head of the request that is coming in; `None` while it is not complete."""
        if self._head is None:
            end = self._received.find(b"\r\n\r\n")
            if max(end, len(self._received) if end < 0 else 0) > _LARGEST_HEAD:
                raise Problem(431, "The header fields are too large.")
            if end < 0:
                return None
            self._head = _parse_head(bytes(self._received[:end]))
            del self._received[: end + 4]
            if self._head.headers.get("expect", "").lower() == "100-continue":
                self._write(b"HTTP/1.1 100 Continue\r\n\r\n")
        return self._head

    def _refuse(self, problem: Problem) -> None:
        """Answer what is no request that can be read, and close: its end is not known."""
        self._send(error_response(problem.status, problem.message, "req_unread"), keeps=False)

    def _send_later(self, response: Response, *, keeps: bool) -> None:
        if not response.delay:
            self._send(response, keeps=keeps)
            return

        def send() -> None:
            self._waiting = None
            self._send(response, keeps=keeps)
            if self._transport and not self._transport.is_closing():
                self._transport.resume_reading()
            self._advance()

        self._waiting = asyncio.get_running_loop().call_later(response.delay, send)

    def _send(self, response: Response, *, keeps: bool) -> None:
        data = _encoded(response, keeps=keeps)
        if response.kept < 1:
            keeps = False
            data = data[: len(data) - len(response.body) // 2] if response.kept else b""
        self._write(data)
        if not keeps and self._transport:
            self._transport.close()

    def _write(self, data: bytes) -> None:
        if self._transport and data:
            self._transport.write(data)


def _parse_head(data: bytes) -> _Head:
    first, *lines = data.decode("latin-1").split("\r\n")
    words = first.split(" ")
    if len(words) != 3 or words[2] not in ("HTTP/1.0", "HTTP/1.1"):
        raise Problem(400, "This is not an HTTP/1.1 request.")
    headers: dict[str, str] = {}
    for line in lines:
        name, colon, value = line.partition(":")
        if not colon or not name or name != name.strip():
            raise Problem(400, "A header field cannot be read.")
        name = name.lower()
        if name == "content-length" and name in headers:
            raise Problem(400, "There are two content-length fields.")
        headers[name] = value.strip()
    wish = headers.get("connection", "").lower()
    keeps = wish == "keep-alive" if words[2] == "HTTP/1.0" else wish != "close"
    largest = LARGEST_BATCH if words[1].startswith(BATCHES_PATH) else _LARGEST_BODY
    return _Head(words[0], words[1], headers, _length(headers, largest), keeps)


def _length(headers: Mapping[str, str], largest: int) -> int:
    if "transfer-encoding" in headers:
        raise Problem(411, "Send the body with a content-length.")
    text = headers.get("content-length", "0")
    if not (text.isascii() and text.isdecimal()) or len(text) > 18:
        raise Problem(400, "content-length is no length.")
    if int(text) > largest:
        raise Problem(413, f"The body is larger than {largest} bytes.")
    return int(text)


def _encoded(response: Response, *, keeps: bool) -> bytes:
    fields = [
        f"HTTP/1.1 {response.status} {_phrase(response.status)}",
        f"content-type: {response.content_type}",
        f"content-length: {len(response.body)}",
        f"request-id: {response.request_id}",
        f"x-tutorsim-standin: {STANDIN_VERSION}",
        *(f"{name}: {value}" for name, value in response.headers),
        f"connection: {'keep-alive' if keeps else 'close'}",
    ]
    return "\r\n".join(fields).encode() + b"\r\n\r\n" + response.body


def _phrase(status: int) -> str:
    return "Overloaded" if status == 529 else HTTPStatus(status).phrase
