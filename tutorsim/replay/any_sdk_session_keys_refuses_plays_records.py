"""One cassette while a client of the SDK plays or records it: keys, answers, what is left.

A call's key has the form of ours, `turn/stage/agent/attempt`. A request that names agent and stage
only, or nothing, gets the next number of its agent and stage as the turn. A request that failed
gives its key back, so that the same request sent again has the same key, whoever sends it again.
"""

import json
import os
import re
import threading
import warnings
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Final, Literal, NamedTuple, get_args

import httpx2

from tutorsim.errors import (
    ChangedCallError,
    MissingCallError,
    RecordingError,
    RecordingRefused,
    ReplayError,
    UnusedCallError,
    UsageError,
)
from tutorsim.model import CALL_HEADER, CallKey, json_value
from tutorsim.replay.cassette_file import RecordedBy, cassette_file, read_cassette
from tutorsim.replay.durable_files_folder_lock_key_leaks import LOCK_FILE, FolderLock
from tutorsim.replay.manifests_of_recordings_and_retests_provenance import package_versions, today
from tutorsim.replay.recorded_calls_event_streams_and_mismatches import (
    Interaction,
    cassette_name,
    check_same_value,
    first_difference,
    missing,
    unused_error,
)
from tutorsim.replay.recording_transport_tapes_and_journals import CassetteStore, Tape, recorded_uri

RecordMode = Literal["none", "once", "new", "all"]
MODES: Final[tuple[RecordMode, ...]] = get_args(RecordMode)
NAMELESS: Final = "agent"
"""The agent of calls that name none."""
STAGE: Final = "call"
"""The stage of calls that name none."""
_NO_STUDY: Final = ""
"""Study digest of a cassette that belongs to no study."""
_TODAY: Final = RecordedBy("", "", None)
"""The days of a cassette that begins."""
_NAME: Final = re.compile(r"[A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]+)*")
_ASKED: Final = re.compile(r"[a-z][a-z0-9_]*/[^/]+")
_HINT: Final = (
    'Record it: mode="once" for a new cassette, mode="new" to add calls to this one; '
    "in pytest --tutorsim-record says the mode."
)
_ANEW: Final = 'Record the cassette again, with mode="all".'


def has_cassette(folder: Path, name: str) -> bool:
    """Whether a cassette of the name stands in the folder, in either form."""
    return any(cassette_file(folder, name, form).is_file() for form in ("text", "compressed"))


class Claim(NamedTuple):
    """The key that a request has while it is under way."""

    key: str
    named: str | None
    """Stage and agent that the call was counted under; `None` where the caller gave the turn."""


class Session:
    """Answers a client's requests from a cassette, and records what it may send.

    Its methods may be called from several threads. Mode `once` records only if there is no
    cassette.
    """

    def __init__(
        self, folder: Path, name: str, *, mode: RecordMode, record_in_ci: bool = False
    ) -> None:
        _check_name(name)
        self.name = name
        self.cannot_send: UsageError | None = None
        """Why nothing can be sent, where the environment holds no credentials."""
        self.replays = mode == "none" or (mode == "once" and has_cassette(folder, name))
        self._record_in_ci = record_in_ci
        self._lock = threading.Lock()
        self._counts: Counter[str] = Counter()
        self._failed: defaultdict[tuple[str, bytes], list[str]] = defaultdict(list)
        self._asked: set[str] = set()
        self._tape: Tape | None = None
        self._folder_lock: FolderLock | None = None
        self._held: dict[str, Interaction] = {}
        self.reading: dict[str, Callable[[], None]] = {}
        """Streams that were not read to their end: key → what keeps the part that was read."""
        self._claims = 0
        """Requests that reached the session, whatever became of them."""
        if self.replays:
            with _hinted():
                if not has_cassette(folder, name):
                    raise MissingCallError(f"{folder / cassette_name(name)} is not there.")
                self._held = dict(read_cassette(folder, name).interactions)
        else:
            self._record(folder, anew=mode == "all")
        self._by_question: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
        """Who asked, and what → the recorded calls that asked it and are not claimed yet."""
        for key, one in self._recorded.items():
            asked = _question(one.method, one.uri, one.request)
            self._by_question[key.split("/", 1)[1].rpartition("/")[0], asked].append(key)

    @property
    def _recorded(self) -> Mapping[str, Interaction]:
        return self._held if self._tape is None else self._tape.recorded

    def _record(self, folder: Path, *, anew: bool) -> None:
        """Open the tape, with what an interrupted session left on it."""
        if cassette_file(folder, self.name, "compressed").is_file():
            raise RecordingError(
                f"{cassette_file(folder, self.name, 'compressed')} is compressed.",
                why="A recording is made, and taken up again, in text.",
                hint="Unpack it with `zstd -d`, or remove it to record again.",
            )
        lock = FolderLock(folder, name=f".{self.name}{LOCK_FILE}")
        lock.__enter__()
        try:
            before = has_cassette(folder, self.name) and not anew
            old = read_cassette(folder, self.name).recorded if before else _TODAY
            store = CassetteStore(
                folder,
                study_digest=_NO_STUDY,
                packages=package_versions(),
                recorded=partial(_recorded_by, old),
                check_name=_check_name,
            )
            self._tape = store.open(self.name, anew=anew)
            self._store = store
        except BaseException:
            lock.__exit__(None, None, None)
            raise
        self._folder_lock = lock

    def claim(self, request: httpx2.Request) -> Claim:
        """Give a request its key, and put the key into its header.

        `UsageError` if it is no request that can be recorded, or its key is taken.
        """
        self._claims += 1
        _check_recordable(request)
        named = request.headers.get(CALL_HEADER, f"{STAGE}/{NAMELESS}")
        with self._lock:
            claim = self._claimed(named, request)
            if claim.key in self._asked:
                raise UsageError(
                    f"{cassette_name(self.name)}: two calls have the key {claim.key}.",
                    why="A key names one call of a cassette.",
                    hint="Leave the turn out, so that calls are counted, or give another one.",
                )
            self._asked.add(claim.key)
        request.headers[CALL_HEADER] = f"{self.name}/{claim.key}"
        return claim

    def _claimed(self, named: str, request: httpx2.Request) -> Claim:
        """The key of a request; side by side, calls that are counted come in any order.

        One that failed before has its key again. Else it has the key of a recorded call of the
        same agent that asked the same, while replaying the next one otherwise, of the same method
        and path if there is one, and the next number where there is none.
        """
        if not _ASKED.fullmatch(named):
            try:
                return Claim(str(CallKey.parse(named)), None)
            except ValueError as error:
                raise UsageError(
                    f"The header {CALL_HEADER} of a request is {named!r}.",
                    why="It names stage/agent, or turn/stage/agent/attempt.",
                    hint='Write it with `tutorsim.keyed("critic")`.',
                ) from error
        again = self._failed[named, request.content]
        if again:
            return Claim(again.pop(0), named)
        asked = _question(request.method, recorded_uri(request), request.content)
        same = (key for key in self._by_question[named, asked] if key not in self._asked)
        key = next(same, None)
        if key is None and self._tape is None:
            left = [one for one in self.unused() if _is_of(one, named)]
            at = _endpoint(request.method, str(request.url))
            key = next(
                (one for one in left if self._endpoint_of(one) == at), next(iter(left), None)
            )
        return Claim(self._next_number(named) if key is None else key, named)

    def _endpoint_of(self, key: str) -> tuple[str, str]:
        one = self._recorded[key]
        return _endpoint(one.method, one.uri)

    def _next_number(self, named: str) -> str:
        stage, _, agent = named.partition("/")
        while True:
            self._counts[named] += 1
            key = str(CallKey(self._counts[named], stage, agent, 1))
            if key not in self._recorded and key not in self._asked:
                return key

    def give_back(self, request: httpx2.Request, claim: Claim) -> None:
        """Free the key of a request that was not answered."""
        with self._lock:
            self._asked.discard(claim.key)
            if claim.named is not None:
                self._failed[claim.named, request.content].append(claim.key)

    def answer(self, request: httpx2.Request, key: str) -> httpx2.Response | None:
        """The recorded reply to a request; `None` where it has to be sent.

        A request that may not be sent, changed, or holds the credential raises.
        """
        found = self._recorded.get(key)
        if found is not None:
            with _hinted():
                _check_same(cassette_name(self.name), found, request)
            return httpx2.Response(
                found.status, headers=found.response_headers, content=found.response.encode()
            )
        if self._tape is None:
            with _hinted():
                raise missing(cassette_name(self.name), key, held=self._held, played=False)
        self._check_may_send()
        self._store.check(request)
        return None

    def _check_may_send(self) -> None:
        if self.cannot_send is not None:
            raise self.cannot_send
        if os.environ.get("CI") and not self._record_in_ci:
            raise RecordingRefused(
                "Recording is refused because CI is set.",
                why="A CI job should replay; recording there spends money on every push.",
                hint='Use mode="none", or recorded(…, record_in_ci=True).',
            )

    def record(
        self, request: httpx2.Request, response: httpx2.Response, received: bytes
    ) -> httpx2.Response:
        """Put a successful reply on the tape; see `CassetteStore.record`."""
        with self._lock:
            return self._store.record(request, response, received)

    def unused(self) -> tuple[str, ...]:
        """Keys of the cassette that were not asked for, in its order."""
        return tuple(key for key in self._recorded if key not in self._asked)

    def finish(self, *, partial: bool) -> None:
        """End the session: check that all was played, or write the cassette.

        A recorded call that nobody asked for is noted in the cassette that is written. `partial`
        lets a replay leave recorded calls unused.
        """
        try:
            for keep in [*self.reading.values()]:
                keep()
            if self._tape is not None:
                if self._tape.keys:
                    self._tape.finish_now(unasked=() if partial else self.unused())
                elif not self._claims:
                    warnings.warn(
                        f"Nothing was asked through the client that records {self.name}, and no "
                        "cassette was written. Some SDKs take one client for calls that wait and "
                        "another for asynchronous ones: give them both.",
                        stacklevel=4,
                    )
            elif self.unused() and not partial:
                with _hinted():
                    raise unused_error(cassette_name(self.name), self.unused())
        finally:
            self.close()

    def close(self) -> None:
        """Release the cassette; replies that were paid for wait in its journal."""
        if self._tape is not None:
            self._tape.close()
        if self._folder_lock is not None:
            self._folder_lock.__exit__(None, None, None)
            self._folder_lock = None


@contextmanager
def _hinted() -> Iterator[None]:
    """What does not fit a cassette of no study is mended by recording it, not by `tutorsim run`."""
    try:
        yield
    except (ReplayError, UnusedCallError) as error:
        error.hint = _HINT if isinstance(error, MissingCallError) else _ANEW
        raise


def _recorded_by(old: RecordedBy | None, paid: bool) -> RecordedBy | None:
    """What the cassette says of its days; nothing where an older one did not say it."""
    if old is None:
        return None
    day = today()
    return RecordedBy(old.first or day, day if paid else old.last or day, None)


def _is_of(key: str, named: str) -> bool:
    """Whether a key is one of the counted calls of a stage and agent."""
    return key.split("/", 1)[1] == f"{named}/1"


def _endpoint(method: str, uri: str) -> tuple[str, str]:
    return method, httpx2.URL(uri).path


def _question(method: str, uri: str, body: str | bytes) -> str:
    """What a request asks, whatever its host and the spelling of its JSON."""
    url = httpx2.URL(uri)
    value = json_value(body or b"{}")
    return json.dumps([method, url.path, dict(url.params), value], sort_keys=True)


def _check_name(name: str) -> None:
    if not _NAME.fullmatch(name) or len(name) > 200:
        raise UsageError(
            f"{name!r} is not the name of a cassette.",
            why="A name is of A-Za-z0-9_- in parts with single dots between them.",
            hint="For example cassettes/release-note.json.",
        )


def _check_recordable(request: httpx2.Request) -> None:
    """Refuse what a cassette does not keep, before anything is sent."""
    try:
        value = json_value(request.content or b"{}")
    except ValueError:
        value = None
    if not isinstance(value, dict):
        kind = request.headers.get("content-type", "").partition(";")[0]
        raise UsageError(
            f"The {request.method} request to {request.url.path} is not kept in a cassette.",
            why=f"Its body, of {f'the type {kind}' if kind else 'no stated type'}, is no JSON "
            "object; a cassette holds requests whose body is one, or that have none.",
            hint="Send it with a client of its own.",
        )


def _check_same(cassette: str, found: Interaction, request: httpx2.Request) -> None:
    """Hold a request against the recorded one: method, path and the JSON value of the body.

    Hosts may differ, as those of an endpoint and its stand-in do.
    """
    there, here = httpx2.URL(found.uri), httpx2.URL(recorded_uri(request))
    recorded = {"method": found.method, "path": there.path, "query": dict(there.params)}
    asked_for = {"method": request.method, "path": here.path, "query": dict(here.params)}
    if recorded != asked_for:
        raise ChangedCallError(
            f"{cassette}: call {found.key} was recorded with another request.",
            why=first_difference(recorded, asked_for),
        )
    asked = json_value(request.content or b"{}")
    check_same_value(cassette, found._replace(request=found.request or "{}"), asked)
