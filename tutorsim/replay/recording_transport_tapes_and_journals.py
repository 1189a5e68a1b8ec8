"""Recording episodes: many side by side through one client, each with a journal and a cassette.

Each reply is a line of its episode's journal before it is handed on, so that a killed process loses
no paid call; a finished episode's journal becomes its cassette.
"""

import asyncio
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, get_args

import httpx2
import orjson

from tutorsim.errors import RecordingError, RecordingRefused
from tutorsim.model import CALL_HEADER, Call, CallKey, Model, Reply, json_value
from tutorsim.model.sdk_model_and_reasons_of_failed_calls import (
    DEFAULT_HOST,
    MESSAGES_PATH,
    SECRET_LENGTH,
    NotAMessage,
    credentials_in,
    status_told_in,
)
from tutorsim.replay.cassette_file import (
    Cassette,
    RecordedBy,
    cassette_file,
    parse_cassette,
    read_cassette_file,
    unreadable_reply,
    write_cassette,
)
from tutorsim.replay.durable_files_folder_lock_key_leaks import (
    SECRET_FIELDS,
    AppendFile,
    make_folder,
    redacted,
    without_secrets,
)
from tutorsim.replay.recorded_calls_event_streams_and_mismatches import (
    MESSAGES_URI,
    REQUEST_HEADERS,
    RESPONSE_HEADERS,
    STANDIN_HEADER,
    STOPPED_HEADER,
    Interaction,
    cassette_name,
    check_episode_id,
    check_same,
    is_event_stream,
    kept,
    missing,
    redacted_events,
    said_in_parts,
    why_not_whole,
)
from tutorsim.vocabularies import ProvenanceKind

# --- Journal -------------------------------------------------------------------------------------

JOURNAL_SCHEMA: Final = 1
_FIELDS: Final = frozenset(Interaction._fields)
_OPTIONAL: Final = frozenset(Interaction._field_defaults)


def journal_path(folder: Path, episode_id: str) -> Path:
    """Where an episode's journal is kept."""
    return folder / f"{episode_id}.journal.jsonl"


class Journal:
    """Appends interactions to an episode's journal, and reads what an earlier run left.

    A journal of another study is refused.
    """

    def __init__(self, folder: Path, episode_id: str, study_digest: str) -> None:
        self._file = AppendFile(journal_path(folder, episode_id))
        self._head = {
            "schema": JOURNAL_SCHEMA,
            "episode_id": episode_id,
            "study_digest": study_digest,
        }
        self._started = False

    def read(self) -> dict[str, Interaction]:
        """What is recorded so far, by call key. A torn last line counts as never written."""
        try:
            lines = self._file.read()
        except OSError as error:
            raise self._refused(error.strerror or str(error)) from error
        self._started = bool(lines)
        if lines:
            self._check_head(lines[0])
        found: dict[str, Interaction] = {}
        for number, line in enumerate(lines[1:], start=2):
            one = self._parsed(line, number)
            if one.key in found:
                raise self._refused(f"Line {number} holds call {one.key} a second time.")
            found[one.key] = one
        return found

    def append(self, one: Interaction) -> None:
        """Write a reply down; it survives a kill from here on."""
        if not self._started:
            self._file.append(orjson.dumps(self._head))
            self._started = True
        self._file.append(orjson.dumps(one._asdict()))

    @property
    def unsynced(self) -> bool:
        """Whether replies were added since the last `sync`."""
        return self._file.unsynced

    def sync(self) -> None:
        """Make the replies survive a failure of the machine."""
        self._file.sync()

    def close(self) -> None:
        """Release the file."""
        self._file.close()

    def remove(self) -> None:
        """Delete the file, once the cassette holds all of it."""
        self._file.remove()
        self._started = False

    def _check_head(self, line: bytes) -> None:
        try:
            head = orjson.loads(line)
        except orjson.JSONDecodeError as error:
            raise self._refused("Its first line is not a journal's.") from error
        if head != self._head:
            raise self._refused(f"It begins with {head!r}, not with {self._head!r}.")

    def _parsed(self, line: bytes, number: int) -> Interaction:
        try:
            fields: Mapping[str, Any] = orjson.loads(line)
            if not _FIELDS - _OPTIONAL <= fields.keys() <= _FIELDS:
                raise ValueError("fields are missing or unknown")
            one = Interaction(**fields)
            self._check(one)
            return one
        except (ValueError, AttributeError, TypeError, KeyError) as error:
            raise self._refused(f"Line {number}: {error}.") from error

    def _check(self, one: Interaction) -> None:
        """Hold a line against what is written: a request of this episode, and the reply to it."""
        CallKey.parse(one.key)
        if one.kind not in get_args(ProvenanceKind):
            raise ValueError(f"{one.kind!r} answered, which is of no known kind")
        if one.status not in range(200, 300):
            raise ValueError(f"the reply to call {one.key} is not a success")
        for headers in (one.request_headers, one.response_headers):
            if not all(isinstance(value, str) for value in headers.values()):
                raise ValueError(f"a header of call {one.key} is no text")
        called = one.request_headers[CALL_HEADER]
        if called != f"{self._head['episode_id']}/{one.key}":
            raise ValueError(f"call {one.key} was made as {called}")
        if self._head["study_digest"] == "":
            return
        if not isinstance(json_value(one.request), dict):
            raise ValueError(f"the request of call {one.key} is no JSON object")
        one.reply()

    def _refused(self, why: str) -> RecordingError:
        return RecordingError(
            f"{self._file.path.name} is not a journal of this recording.",
            why=why,
            hint="Record into a new folder, or move this file away to ask its calls again.",
        )


# --- Episode recording ---------------------------------------------------------------------------


class CassetteStore:
    """The cassettes and journals of a folder that is being recorded.

        store = CassetteStore(folder, study_digest=digest, packages=package_versions())
        async with SdkModel(transport=store.transport(HttpTransport())) as live:
            with store.open(episode_id, live) as tape:
                reply = await tape.reply(episode_id, call)
                await tape.finish([call.key])

    Args:
        folder: Where cassettes and journals go; created where it does not exist.
        study_digest: What is recorded.
        packages: Package → version, as kept in each cassette.
        kept_from: Study digest of the recording that a branch continues; finished cassettes of
            that one may stand in the folder.
        recorded: From whether a tape holds replies of today to what its cassette says of the
            recording; `None` for cassettes that do not say it.
        check_name: Refuses a name that no cassette of the folder can have.

    Raises:
        FolderError: If the folder cannot be created.
    """

    def __init__(
        self,
        folder: Path,
        *,
        study_digest: str,
        packages: Mapping[str, str],
        kept_from: str | None = None,
        recorded: Callable[[bool], RecordedBy | None] | None = None,
        check_name: Callable[[str], None] = check_episode_id,
    ) -> None:
        make_folder(folder)
        self.folder = folder
        self._check_name = check_name
        self.study_digest = study_digest
        self.packages = dict(packages)
        self.kept_from = kept_from
        self.recorded = recorded
        self._tapes: dict[str, Tape] = {}

    def transport(self, inner: httpx2.AsyncBaseTransport) -> httpx2.AsyncBaseTransport:
        """Wrap the client's transport, so that what passes through it is recorded."""
        return _RecordingTransport(self, inner)

    def guard(self, inner: httpx2.AsyncBaseTransport) -> httpx2.AsyncBaseTransport:
        """Wrap a transport that carries many calls in one request; nothing is recorded here."""
        return _GuardedTransport(inner)

    def open(self, episode_id: str, live: Model | None = None, *, anew: bool = False) -> "Tape":
        """Open an episode's tape with what is on disk of it.

        `live` is asked for what the tape does not hold; its client's transport must be wrapped by
        this store. `anew` begins with an empty tape: the old cassette stays until the tape is
        finished, an old journal is removed.
        """
        self._check_name(episode_id)
        tape = Tape(self, episode_id, live, anew=anew)
        self._tapes[episode_id] = tape
        return tape

    def has_cassette(self, episode_id: str) -> bool:
        """Whether the episode's cassette has been written."""
        self._check_name(episode_id)
        return cassette_file(self.folder, episode_id, "text").is_file()

    def tape_for(self, call: str) -> tuple["Tape", str]:
        """The open tape and the key that a call header names.

        If no such tape is open nothing may be sent, as it would not be recorded.
        """
        episode_id, _, key = call.partition("/")
        tape = self._tapes.get(episode_id)
        if tape is None:
            raise RecordingRefused(
                f"A request was made outside any open recording (call {call!r}).",
                why="What is paid for must be recorded.",
            )
        return tape, key

    def check(self, request: httpx2.Request) -> None:
        """Refuse a request that must not be recorded, before it is sent."""
        headers = _plain(request.headers)
        _, key = self.tape_for(headers.get(CALL_HEADER, ""))
        secrets = _secrets_of(request, headers)
        _refuse_secrets(secrets, request.content, f"The request of call {key}")

    def record(
        self, request: httpx2.Request, response: httpx2.Response, received: bytes
    ) -> httpx2.Response:
        """Put a call on its tape.

        The response is given back as it is on tape. A body that is no whole message is a
        `RemoteProtocolError`, so that the client tries again.
        """
        headers, said = _plain(request.headers), _plain(response.headers)
        tape, key = self.tape_for(headers.get(CALL_HEADER, ""))
        secrets = _secrets_of(request, headers)
        _refuse_secrets(secrets, received, f"The reply to call {key}")
        body = _message if self.study_digest else _whole
        one = Interaction(
            key=key,
            kind=_kind(request, said),
            status=response.status_code,
            request_headers=without_secrets(kept(headers, REQUEST_HEADERS), secrets),
            request=request.content.decode(),
            response_headers=without_secrets(kept(said, RESPONSE_HEADERS), secrets),
            response=body(received, said, request, secrets),
            method=request.method,
            uri=recorded_uri(request),
        )
        tape.add(one)
        content = one.response.encode()
        return httpx2.Response(one.status, headers=one.response_headers, content=content)

    def _closed(self, tape: "Tape") -> None:
        if self._tapes.get(tape.episode_id) is tape:
            del self._tapes[tape.episode_id]


class Tape:
    """The recording of one episode, while it is made. A `Model`; opened by `CassetteStore.open`.

    with store.open(episode_id, live) as tape:
        reply = await tape.reply(episode_id, call)  # from the tape, or paid for and journaled
        await tape.sync()
        cassette = await tape.finish([call.key])
    """

    def __init__(
        self,
        store: CassetteStore,
        episode_id: str,
        live: Model | None,
        *,
        anew: bool = False,
    ) -> None:
        self.episode_id = episode_id
        self.paid = 0
        """Replies added since the tape was opened."""
        self._store = store
        self._live = live
        self._journal = Journal(store.folder, episode_id, store.study_digest)
        if anew:
            self._journal.remove()
        self._cassette = None if anew else self._on_disk()
        self._held = dict(self._cassette.interactions) if self._cassette else {}
        self._journaled = self._journal.read()
        self._merge(self._journaled)

    def __enter__(self) -> "Tape":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def holds(self, key: CallKey) -> bool:
        """Whether the reply to a call is on the tape, so that asking for it costs nothing."""
        return str(key) in self._held

    def held(self, key: CallKey | str) -> Interaction | None:
        """What the tape has of a call."""
        return self._held.get(str(key))

    @property
    def recorded(self) -> Mapping[str, Interaction]:
        """The calls on the tape by key."""
        return self._held

    @property
    def keys(self) -> tuple[str, ...]:
        """The calls on the tape: those of the cassette first, then as they were answered."""
        return tuple(self._held)

    def replies(
        self, *, paid: Callable[[Interaction], bool] = lambda _: True
    ) -> Iterator[tuple[str, Reply]]:
        """Model asked for and reply, of the calls on the tape that were paid for."""
        for one in filter(paid, self._held.values()):
            yield str(self._value(one.request, one.key)["model"]), self._read(one)

    async def reply(self, episode_id: str, call: Call) -> Reply:
        """Answer from the tape, or from the live model and record it."""
        held = self._held.get(str(call.key))
        if held is None and self._live is not None:
            return await self._live.reply(episode_id, call)
        if held is None:
            name = cassette_name(self.episode_id)
            raise missing(name, str(call.key), held=self._held, played=False)
        check_same(cassette_name(self.episode_id), held, call)
        return self._read(held)

    def _read(self, one: Interaction) -> Reply:
        try:
            return one.reply()
        except ValueError as error:
            raise unreadable_reply(self.episode_id, one.key, error) from error

    def _value(self, text: str, key: str) -> Any:
        try:
            value = json_value(text)
            if not isinstance(value, dict) or "model" not in value:
                raise ValueError("it names no model")
            return value
        except ValueError as error:
            raise unreadable_reply(self.episode_id, key, error) from error

    def add(self, one: Interaction) -> None:
        """Record a reply that was paid for, durably against a kill of this process.

        A second reply to a call is refused.
        """
        self.adopt(one)
        self.paid += 1

    def adopt(self, one: Interaction) -> None:
        """Take a reply over from another recording; otherwise as `add`."""
        if one.key in self._held:
            raise RecordingRefused(
                f"Call {one.key} of {self.episode_id} was answered twice.",
                why="A call key names one call of an episode.",
            )
        self._journal.append(one)
        self._journaled[one.key] = one
        self._held[one.key] = one

    async def sync(self) -> None:
        """Make the replies of a round durable against a failure of the machine."""
        if self._journal.unsynced:
            await asyncio.to_thread(self._journal.sync)

    async def rest(self) -> None:
        """Make the replies of a round durable, and hold no file open until the next reply comes."""
        await self.sync()
        self._journal.close()

    async def finish(self, order: Sequence[CallKey]) -> Cassette:
        """Write the cassette and remove the journal.

        `order` names exactly the keys that the tape holds, in call order. If the cassette cannot be
        written the journal stays.
        """
        keys = [str(key) for key in order]
        self._check_order(keys)
        return await asyncio.to_thread(self._finish, keys)

    def finish_now(self, *, unasked: Sequence[str]) -> Cassette:
        """Write the cassette in the order in which replies came, without an event loop.

        `unasked` are keys that nobody asked for since the tape was opened.
        """
        return self._finish([*self._held], tuple(unasked))

    def close(self) -> None:
        """Release the tape; what is recorded stays on disk."""
        self._journal.close()
        self._store._closed(self)

    def _on_disk(self) -> Cassette | None:
        if not self._store.has_cassette(self.episode_id):
            return None
        data = read_cassette_file(self._store.folder, self.episode_id)
        cassette = parse_cassette(data, self.episode_id)
        if cassette.study_digest not in (self._store.study_digest, self._store.kept_from):
            raise RecordingError(
                f"{cassette.name} belongs to another study.",
                why=f"Its study digest is {cassette.study_digest}, "
                f"this study's is {self._store.study_digest}.",
                hint="Record into another folder.",
            )
        return cassette

    def _merge(self, journaled: Mapping[str, Interaction]) -> None:
        for key, one in journaled.items():
            if self._held.setdefault(key, one).response != one.response:
                raise RecordingError(
                    f"{self.episode_id}: cassette and journal disagree on call {key}.",
                    why="Both hold a reply to it, and the replies differ.",
                    hint="Record into a new folder, or move one of the two files away.",
                )

    def _check_order(self, keys: list[str]) -> None:
        if len(set(keys)) == len(keys) and set(keys) == self._held.keys():
            return
        odd = sorted(set(keys) ^ self._held.keys()) or keys
        raise RecordingError(
            f"{self.episode_id}: the recording and the episode disagree on calls, first {odd[0]}.",
            why="Every recorded call belongs to the episode exactly once.",
            hint="Record into a new folder, or move the episode's files away to ask again.",
        )

    def _finish(self, keys: list[str], unasked: tuple[str, ...] = ()) -> Cassette:
        done = self._cassette
        if (
            done is None
            or self._journaled
            or ([*done.interactions], done.unasked) != (keys, unasked)
        ):
            done = self._cassette = self._written(keys, unasked)
        self._journal.remove()
        self._journaled = {}
        return done

    def _written(self, keys: list[str], unasked: tuple[str, ...]) -> Cassette:
        self._journal.sync()
        write_cassette(
            self._store.folder,
            self.episode_id,
            [self._held[key] for key in keys],
            kind=combined_kind(one.kind for one in self._held.values()),
            study_digest=self._store.study_digest,
            packages=self._store.packages,
            recorded=self._store.recorded and self._store.recorded(bool(self.paid)),
            unasked=unasked,
        )
        return parse_cassette(
            read_cassette_file(self._store.folder, self.episode_id), self.episode_id
        )


class _RecordingTransport(httpx2.AsyncBaseTransport):
    """Sends requests on, and puts successful replies on tape before they are handed on."""

    def __init__(self, store: CassetteStore, inner: httpx2.AsyncBaseTransport) -> None:
        self._store = store
        self._inner = inner

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        await request.aread()
        self._store.check(request)
        response = await self._inner.handle_async_request(request)
        if not response.is_success:
            return response
        body = await _whole_body(response)
        try:
            return self._store.record(request, response, body)
        except NotAMessage:
            status = status_told_in(body)
            if status is None:
                raise
            return httpx2.Response(status, content=body, request=request)

    async def aclose(self) -> None:
        await self._inner.aclose()


class _GuardedTransport(httpx2.AsyncBaseTransport):
    """Sends a request on unless its body contains the credential."""

    def __init__(self, inner: httpx2.AsyncBaseTransport) -> None:
        self._inner = inner

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        _refuse_secrets(credentials_in(request.headers), await request.aread(), "A request")
        return await self._inner.handle_async_request(request)

    async def aclose(self) -> None:
        await self._inner.aclose()


def combined_kind(kinds: Iterable[ProvenanceKind]) -> ProvenanceKind:
    """What answered, as one word: `api` or `stand-in` only where nothing else did."""
    found = set(kinds)
    return found.pop() if len(found) == 1 else "relay"


async def _whole_body(response: httpx2.Response) -> bytes:
    try:
        return await response.aread()
    except BaseException:
        await response.aclose()
        raise


def _message(
    body: bytes, said: Mapping[str, str], request: httpx2.Request, secrets: Sequence[str]
) -> str:
    """The body's text; anything but a whole message is a fault of the connection, to be retried."""
    try:
        Reply.from_body(json_value(body))
        return redacted(body.decode(), secrets)
    except ValueError as error:
        raise NotAMessage(body, said.get("content-type", ""), request) from error


def _whole(
    body: bytes, said: Mapping[str, str], request: httpx2.Request, secrets: Sequence[str]
) -> str:
    """The text of any JSON or event stream; messages are held to their own form, see `_message`."""
    kind = said.get("content-type", "")
    if is_event_stream(kind):
        why = why_not_whole(request.url.path, body, stopped=STOPPED_HEADER in said)
        if why is not None:
            raise httpx2.RemoteProtocolError(f"The event stream is not whole: {why}.")
        text = body.decode()
        _refuse_secrets(secrets, said_in_parts(text).encode(), "A streamed reply")
        return redacted_events(text, secrets)
    if request.method == "POST" and recorded_uri(request) == MESSAGES_URI:
        return _message(body, said, request, secrets)
    if body and "json" not in kind and not kind.startswith("text/"):
        raise RecordingRefused(
            f"The reply to {request.method} {request.url.path} is of the type {kind or 'none'}.",
            why="A cassette holds replies that are JSON or an event stream.",
            hint="Ask for it with a client of its own.",
        )
    try:
        if body:
            json_value(body)
        return redacted(body.decode(), secrets)
    except ValueError as error:
        raise httpx2.RemoteProtocolError(
            f"The reply to {request.method} {request.url.path}, of the type {kind or 'none'}, is "
            "no JSON; a cassette holds replies that are JSON or an event stream.",
            request=request,
        ) from error


def recorded_uri(request: httpx2.Request) -> str:
    """Where a call says it went: the API's own address for messages, else as sent, no secrets."""
    if request.url.path == MESSAGES_PATH and "anthropic-version" in request.headers:
        return MESSAGES_URI
    url = request.url.copy_with(username=None, password=None, fragment=None)
    for field in SECRET_FIELDS:
        url = url.copy_remove_param(field) if field in url.params else url
    return str(url)


def _secrets_of(request: httpx2.Request, headers: Mapping[str, str]) -> list[str]:
    """The credentials of a request, in its headers and its query."""
    found = credentials_in(headers)
    if request.url.query:
        asked = (request.url.params.get(field, "") for field in SECRET_FIELDS)
        found += [one for one in asked if len(one) >= SECRET_LENGTH]
    return found


def _plain(headers: httpx2.Headers) -> dict[str, str]:
    """Headers by name in lower case; the client's own mapping is searched whole for each name."""
    return dict(headers.items())


def _kind(request: httpx2.Request, said: Mapping[str, str]) -> ProvenanceKind:
    if STANDIN_HEADER in said:
        return "stand-in"
    return "api" if request.url.host == DEFAULT_HOST else "relay"


def _refuse_secrets(secrets: Sequence[str], body: bytes, what: str) -> None:
    if any(secret.encode() in body for secret in secrets):
        raise RecordingRefused(
            f"{what} contains the credential, so it must not be recorded.",
            why="Recordings are shared; a credential in one is a credential given away.",
            hint="Remove it from the study, its tasks and prompts; if the endpoint sent it, "
            "do not use that endpoint. Then replace the credential.",
        )
