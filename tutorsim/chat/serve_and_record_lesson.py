"""Serving one lesson: the page and the recorder in one event loop.

The server has one page, its events, and what the person sends. Everything lies under a random
token, on the loopback address only. `Host` must name that address, so no rebound name gets in,
and `Origin`, where it is sent, the page's own.
"""

import asyncio
import hashlib
import json
import re
import secrets
import socket
from base64 import b64encode
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator, Mapping
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from dataclasses import dataclass, replace
from functools import cache
from hmac import compare_digest
from importlib import resources
from pathlib import Path
from typing import Any, Final, Protocol

import uvicorn
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

from tutorsim.errors import Interrupted, TutorsimError, UsageError
from tutorsim.kernel.load_and_check_study_file import system_named
from tutorsim.kernel.study_file_and_episode_spec import EpisodeSpec
from tutorsim.kernel.system_and_loaded_study import Chat, LoadedStudy
from tutorsim.replay import write_atomic
from tutorsim.replay.cassette_file import cassette_file
from tutorsim.runner.begin_or_resume_recording import Session, recording
from tutorsim.runner.early_stops_by_signal_cost_cap_or_outage import Budget, Stop, stop_on_interrupt
from tutorsim.runner.pieces_of_work_person_heard_event_loop import (
    Person,
    RefusedMessage,
    run_in_loop,
)
from tutorsim.runner.record import record, record_episode
from tutorsim.runner.recording_options_and_queue_of_episodes_and_calls import RecordingOptions
from tutorsim.sandbox import Sandbox
from tutorsim.system_registry import named, system_names

# --- Page server ---------------------------------------------------------------------------------

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

    `token`: the path under which everything lies. `port`: the port that it is served on, for checks
    of `Host` and `Origin`.
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
    """Name and text of a message `{"id": …, "text": …}`; refused if the body is something else."""
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


# --- Recorder ------------------------------------------------------------------------------------

ADDRESS_FILE: Final = ".tutorsim.chat.json"
"""Port and token of a lesson under way, so that its page finds a restarted server."""


@dataclass(frozen=True)
class ChatOptions:
    """How to serve."""

    port: int
    """0 takes a free one, or that of the lesson's earlier server."""
    stays: bool
    """The page is served after the lesson, until the command is interrupted."""
    on_ready: Callable[[str], None]
    """Receives the page's address."""


def serve_lesson(
    loaded: LoadedStudy,
    *,
    cassette_dir: Path,
    log_dir: Path,
    sandbox: Sandbox,
    budget: Budget,
    options: RecordingOptions,
    chat: ChatOptions,
) -> str:
    """Serve the next unfinished lesson of a study; write the log when it was the last.

    Returns the lesson's episode id. Raises `UsageError` if the study has no lesson with a person
    left, or the port is in use; `TutorsimError` as `tutorsim.runner.record.record`.
    """
    page = chat_of(loaded).page
    with (
        _door(chat.port, _earlier_port(cassette_dir)) as door,
        recording(
            loaded, cassette_dir, log_dir, sandbox=sandbox, budget=budget, options=options
        ) as (loaded, session),
    ):
        spec = next_lesson(loaded, cassette_dir)
        served = _Lesson(loaded, session, spec, page(loaded, spec, cassette_dir), door, chat)
        run_in_loop(served.run(sandbox, budget, options))
    if all(_on_tape(cassette_dir, one) for one in loaded.with_person()):
        whole = replace(options, person=served.page)
        record(
            loaded,
            cassette_dir=cassette_dir,
            log_dir=log_dir,
            sandbox=sandbox,
            budget=Budget(budget.prices, budget.max_usd),
            options=whole,
        )
    (cassette_dir / ADDRESS_FILE).unlink(missing_ok=True)
    return spec.episode_id


def chat_of(loaded: LoadedStudy) -> Chat:
    """How a person takes part in a study's episodes.

    Raises `UsageError` if nobody can, or the study has no such episode.
    """
    if not loaded.system.chat or next(loaded.with_person(), None) is None:
        others = [name for name in system_names() if system_named(name).chat]
        systems = " or ".join(repr(name) for name in others)
        raise UsageError(
            f"`tutorsim chat` serves lessons with a person, and the study {loaded.study.name!r} "
            f"of the system {loaded.system.name!r} has none.",
            why=f"Only a study of the system {systems} with the learner `person` has one.",
            hint='Add `learners = ["person"]`, or record the study with `tutorsim run`.',
        )
    chat: Chat = named(loaded.system.chat)
    return chat


def next_lesson(loaded: LoadedStudy, folder: Path) -> EpisodeSpec:
    """The first lesson with a person that is not on tape; `UsageError` if there is none."""
    for spec in loaded.with_person():
        if not _on_tape(folder, spec):
            return spec
    raise UsageError(
        f"Every lesson of {loaded.study.name!r} with a person is recorded.",
        why=f"{folder} holds them.",
        hint=f"`tutorsim replay {folder} --log-dir DIR` plays them again.",
    )


def _on_tape(folder: Path, spec: EpisodeSpec) -> bool:
    return cassette_file(folder, spec.episode_id, "text").is_file()


@contextmanager
def _door(port: int, earlier: int) -> Iterator[socket.socket]:
    """A listening socket on the loopback address: of `port`, or that of `earlier` if free."""
    with ExitStack() as stack:
        try:
            door = _listening(port or earlier)
        except OSError as error:
            if port:
                raise UsageError(
                    f"Port {port} cannot be used.",
                    why=error.strerror or str(error),
                    hint="Name another with --port, or end what uses it.",
                ) from error
            door = _listening(0)
        stack.enter_context(door)
        yield door


def _listening(port: int) -> socket.socket:
    door = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        door.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        door.bind(("127.0.0.1", port))
        door.listen(128)
    except OSError:
        door.close()
        raise
    return door


def _earlier(folder: Path) -> dict[str, Any]:
    """Port and token of a server that was cut off; empty where there was none."""
    with suppress(OSError, ValueError):
        found = json.loads((folder / ADDRESS_FILE).read_text(encoding="utf-8"))
        if isinstance(found, dict):
            return found
    return {}


def _earlier_port(folder: Path) -> int:
    port = _earlier(folder).get("port", 0)
    return port if isinstance(port, int) and 0 < port < 65536 else 0


class _Server(uvicorn.Server):
    def capture_signals(self) -> Any:
        """Leave signals to the recorder, which ends the lesson for them."""
        return nullcontext()


class _Lesson:
    def __init__(
        self,
        loaded: LoadedStudy,
        session: Session,
        spec: EpisodeSpec,
        page: Page,
        door: socket.socket,
        chat: ChatOptions,
    ) -> None:
        self.loaded = loaded
        self.session = session
        self.spec = spec
        self.door = door
        self.chat = chat
        self.page = page

    async def run(self, sandbox: Sandbox, budget: Budget, options: RecordingOptions) -> None:
        """Serve the page, record the lesson, and serve on until nobody needs the page."""
        token, port = self._token(), self.door.getsockname()[1]
        config = uvicorn.Config(
            chat_app(self.page, token=token, port=port),
            log_config=None,
            server_header=False,
            timeout_graceful_shutdown=1,
            lifespan="off",
            ws="none",
        )
        server = _Server(config)
        serving = asyncio.create_task(server.serve(sockets=[self.door]))
        try:
            self._remember(port, token)
            if not await _until_interrupted(self._begun(f"http://127.0.0.1:{port}/{token}/")):
                raise Interrupted(
                    "Nobody started the lesson.", hint="The same command offers it again."
                )
            try:
                line = await record_episode(
                    self.loaded,
                    self.session,
                    episode_id=self.spec.episode_id,
                    sandbox=sandbox,
                    budget=budget,
                    options=replace(options, person=self.page),
                )
            except TutorsimError as error:
                self.page.stop(error)
                if not isinstance(error, Interrupted):
                    await self._stay()
                raise
            self.page.finish(line)
            await self._stay()
        finally:
            self.page.close()
            server.should_exit = True
            await serving

    async def _begun(self, address: str) -> None:
        self.chat.on_ready(address)
        await self.page.begun.wait()

    async def _stay(self) -> None:
        """Keep the page readable: until Ctrl-C, or for a moment."""
        await _until_interrupted(asyncio.sleep(10**9 if self.chat.stays else 1))

    def _token(self) -> str:
        token = _earlier(self.session.folder).get("token")
        return token if isinstance(token, str) and len(token) >= 32 else secrets.token_urlsafe(32)

    def _remember(self, port: int, token: str) -> None:
        path = self.session.folder / ADDRESS_FILE
        write_atomic(path, json.dumps({"port": port, "token": token}).encode())
        path.chmod(0o600)


async def _until_interrupted(wanted: Coroutine[Any, Any, object]) -> bool:
    """Wait for something, or for a signal that ends the command; whether it was the first."""
    stop = Stop()
    with stop_on_interrupt(stop, lambda: None):
        waiting = [asyncio.ensure_future(one) for one in (wanted, stop.wait())]
        await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        for one in waiting:
            one.cancel()
    return stop.reason is None
