"""Serving one lesson: the page and the recorder in one event loop."""

import asyncio
import json
import secrets
import socket
from collections.abc import Callable, Coroutine, Iterator
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import uvicorn

from tutorsim.chat.page_server import Page, chat_app
from tutorsim.errors import Interrupted, TutorsimError, UsageError
from tutorsim.kernel.load import system_named
from tutorsim.kernel.study import EpisodeSpec
from tutorsim.kernel.system import Chat, LoadedStudy
from tutorsim.replay import write_atomic
from tutorsim.replay.cassette_file import cassette_file
from tutorsim.runner.calls_in_flight import RecordingOptions
from tutorsim.runner.job import run_in_loop
from tutorsim.runner.record import record, record_episode
from tutorsim.runner.recording_session import Session, recording
from tutorsim.runner.stops import Budget, Stop, stop_on_interrupt
from tutorsim.sandbox import Sandbox
from tutorsim.system_registry import named, system_names

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

    Returns:
        The lesson's episode id.

    Raises:
        UsageError: If the study has no lesson with a person left, or the port is in use.
        TutorsimError: As `tutorsim.runner.record.record`.
    """
    page = chat_of(loaded).page
    with (
        _door(chat.port, _earlier_port(cassette_dir)) as door,
        recording(
            loaded, cassette_dir, log_dir, sandbox=sandbox, budget=budget, options=options
        ) as (loaded, session),
    ):
        spec = next_lesson(loaded, cassette_dir)
        served = _Served(loaded, session, spec, page(loaded, spec, cassette_dir), door, chat)
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

    Raises:
        UsageError: If nobody can, or the study has no such episode.
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
    """The first lesson with a person that is not on tape.

    Raises:
        UsageError: If there is none.
    """
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
    """A listening socket on the loopback address.

    Args:
        port: The port; 0 takes that of an earlier server, where it is free, or any other.
        earlier: The port of an earlier server; 0 for none.

    Raises:
        UsageError: If the port is in use.
    """
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


class _Served:
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
