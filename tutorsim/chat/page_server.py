"""The page's server: one page, its events, and what the person sends.

Everything lies under a random token, on the loopback address only. `Host` must name that address,
so no rebound name gets in, and `Origin`, where it is sent, the page's own.
"""

import asyncio
import hashlib
import json
import re
from base64 import b64encode
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from functools import cache
from hmac import compare_digest
from importlib import resources
from typing import Any, Final, Protocol

from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import (
    HTMLResponse,
    JSONResponse,
    PlainTextResponse,
    Response,
    StreamingResponse,
)
from starlette.routing import Route

from tutorsim.errors import TutorsimError
from tutorsim.runner.job import Person, RefusedMessage

MAX_BODY: Final = 64_000
"""Bytes of a request; a message of 2,000 characters needs fewer, however it is escaped."""
_BEAT_S: Final = 15.0
"""Seconds after which a quiet stream sends a sign of life."""


class Page(Person, Protocol):
    """What an episode's page shows and what the person sends; its system says both."""

    about: Mapping[str, Any]
    """What stays the same: the task, who takes part, where it is recorded."""
    entries: list[dict[str, Any]]
    """What has been said, as the page shows it, each with its `number`."""
    begun: asyncio.Event
    """Set once the person has read what is recorded, and started."""
    closed: bool
    """The server ends, and its streams with it."""

    def begin(self) -> None: ...
    def say(self, message_id: str, text: str) -> None:
        """Take a message, or raise `RefusedMessage`."""
        ...

    def leave(self) -> None: ...
    def why(self, number: int) -> dict[str, Any] | None:
        """What stands behind a message; `None` while that may not be shown."""
        ...

    def next_change(self) -> asyncio.Event:
        """Set as soon as there is something newer to show than now."""
        ...

    def state(self) -> dict[str, Any]:
        """All that the page shows beside the messages."""
        ...

    def transcript(self) -> str: ...
    def finish(self, line: str) -> None:
        """Show the whole episode, of which this is the line in the log."""
        ...

    def stop(self, error: TutorsimError) -> None:
        """Show why nothing more comes; what there is stays readable."""
        ...

    def close(self) -> None:
        """Let every stream end before the server does."""
        ...


Endpoint = Callable[[Request], Awaitable[Response]]


def chat_app(session: Page, *, token: str, port: int) -> Starlette:
    """The application of one lesson.

    Args:
        session: The lesson.
        token: The path under which everything lies.
        port: The port that it is served on, for checks of `Host` and `Origin`.
    """
    served = _Served(session, token, port)
    routes = {
        "": ("GET", served.page),
        "about": ("GET", served.about),
        "events": ("GET", served.events),
        "transcript.txt": ("GET", served.transcript),
        "why/{number:int}": ("GET", served.why),
        "begin": ("POST", served.begin),
        "say": ("POST", served.say),
        "leave": ("POST", served.leave),
    }
    return Starlette(
        routes=[
            Route(f"/{{token}}/{path}", served.guarded(endpoint), methods=[method])
            for path, (method, endpoint) in routes.items()
        ]
    )


class _Served:
    def __init__(self, session: Page, token: str, port: int) -> None:
        self.session = session
        self.token = token
        self.hosts = {f"{name}:{port}" for name in ("127.0.0.1", "localhost")}

    def guarded(self, endpoint: Endpoint) -> Endpoint:
        """The endpoint behind the checks of token, host and origin."""

        async def checked(request: Request) -> Response:
            refusal = self._refusal(request)
            response = refusal or await endpoint(request)
            for name, value in _HEADERS.items():
                response.headers.setdefault(name, value)
            return response

        return checked

    def _refusal(self, request: Request) -> Response | None:
        headers = request.headers
        origin = headers.get("origin")
        own = {f"http://{host}" for host in self.hosts}
        if headers.get("host", "") not in self.hosts:
            return PlainTextResponse("This address is not served here.", 421)
        if not compare_digest(request.path_params["token"].encode(), self.token.encode()):
            return PlainTextResponse("There is nothing here.", 404)
        if origin is not None and origin not in own:
            return PlainTextResponse("Another site's page may not do this.", 403)
        as_page = origin is not None and headers.get("content-type", "") == "application/json"
        if request.method != "GET" and not as_page:
            return PlainTextResponse("Only the lesson's page may do this.", 403)
        if headers.get("sec-fetch-site", "none") not in ("none", "same-origin"):
            return PlainTextResponse("Another site's page may not do this.", 403)
        return None

    async def page(self, request: Request) -> Response:
        return HTMLResponse(_page(), headers={"content-security-policy": page_policy(_page())})

    async def about(self, request: Request) -> Response:
        return JSONResponse(self.session.about)

    async def events(self, request: Request) -> Response:
        """Messages after the last one that the page has, then everything as it comes."""
        last = request.headers.get("last-event-id", "0")
        seen = int(last) if re.fullmatch(r"[0-9]{1,9}", last) else 0
        return StreamingResponse(self._stream(seen), media_type="text/event-stream")

    async def _stream(self, seen: int) -> AsyncIterator[str]:
        session = self.session
        shown: dict[str, Any] | None = None
        while True:
            changed = session.next_change()
            for entry in session.entries[seen:]:
                yield _event("entry", entry, number=entry["number"])
            seen = max(seen, len(session.entries))
            state = session.state()
            if shown is None or {**state, "quiet_ms": 0} != {**shown, "quiet_ms": 0}:
                yield _event("state", state)
                shown = state
            if session.closed:
                return
            try:
                async with asyncio.timeout(_BEAT_S):
                    await changed.wait()
            except TimeoutError:
                yield ": still here\n\n"

    async def transcript(self, request: Request) -> Response:
        disposition = {"content-disposition": 'attachment; filename="lesson.txt"'}
        return PlainTextResponse(self.session.transcript(), headers=disposition)

    async def why(self, request: Request) -> Response:
        thoughts = self.session.why(request.path_params["number"])
        if thoughts is None:
            return JSONResponse({"error": "Thoughts are not shown now."}, 403)
        return JSONResponse(thoughts)

    async def begin(self, request: Request) -> Response:
        self.session.begin()
        return JSONResponse({})

    async def leave(self, request: Request) -> Response:
        self.session.leave()
        return JSONResponse({})

    async def say(self, request: Request) -> Response:
        try:
            message_id, text = _message(await _body(request))
            self.session.say(message_id, text)
        except RefusedMessage as error:
            return JSONResponse({"error": str(error)}, error.status)
        except ClientDisconnect:
            return Response(status_code=400)
        return JSONResponse({}, 202)


async def _body(request: Request) -> bytes:
    parts, size = [], 0
    async for part in request.stream():
        size += len(part)
        if size > MAX_BODY:
            raise RefusedMessage("The message is too long.")
        parts.append(part)
    return b"".join(parts)


def _message(body: bytes) -> tuple[str, str]:
    """Name and text of a message.

    Raises:
        RefusedMessage: If the body is not `{"id": …, "text": …}` with characters that exist.
    """
    try:
        value = json.loads(body)
        message_id, text = value["id"], value["text"]
        text.encode()
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise RefusedMessage("This is no message.") from None
    if not isinstance(message_id, str) or not re.fullmatch(r"[A-Za-z0-9-]{8,64}", message_id):
        raise RefusedMessage("The message has no name.")
    return message_id, text


def _event(kind: str, data: Any, *, number: int | None = None) -> str:
    head = f"id: {number}\n" if number is not None else ""
    return f"{head}event: {kind}\ndata: {json.dumps(data)}\n\n"


@cache
def _page() -> str:
    return (resources.files(__package__) / "page.html").read_text(encoding="utf-8")


def page_policy(page: str) -> str:
    """The page's content policy: its own style, script and (empty) icon, and nothing else."""
    script, style = (
        _digest(re.search(rf"<{tag}>(.*?)</{tag}>", page, re.DOTALL)) for tag in ("script", "style")
    )
    return (
        f"default-src 'none'; script-src {script}; style-src {style}; connect-src 'self'; "
        "img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )


def _digest(found: re.Match[str] | None) -> str:
    assert found is not None
    return f"'sha256-{b64encode(hashlib.sha256(found[1].encode()).digest()).decode()}'"


_HEADERS: Final = {
    "cache-control": "no-store",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
}
