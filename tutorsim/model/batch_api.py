"""The Message Batches endpoint through the SDK's client: send, ask after, read, list, cancel.

A call has a short name in a batch, made from its episode and key.
"""

import hashlib
import json
import secrets
from collections.abc import Awaitable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

import anthropic
import httpx2
import orjson

from tutorsim.errors import Away, UsageError
from tutorsim.model import CALL_HEADER, Request
from tutorsim.model.sdk_model_and_reasons_of_failed_calls import (
    MESSAGES_PATH,
    STATUS_OF_ERROR,
    away,
    carried_by,
    credentials_in,
    error_text,
    open_client,
    refusal,
    said_in,
    told,
)

# --- Batch ---------------------------------------------------------------------------------------

MOST_ENTRIES: Final = 100_000
LARGEST_BATCH: Final = 256_000_000
"""Bytes of a batch; both are the endpoint's limits."""
PATH: Final = f"{MESSAGES_PATH}/batches"
PAGE: Final = 100
FOR_GOOD: Final = 500
"""Errors below it, but for these, are of the call and not of the moment."""
PASSING: Final = (408, 409, 429)
LEFT_OUT: Final = ("content-type", "content-length", "content-encoding", "transfer-encoding")


class BatchTrouble(Exception):
    """The endpoint gave no usable answer; it may give one another time.

    `away` is as in `CallFailed`.
    """

    def __init__(self, what: str, away: Away | None = None) -> None:
        super().__init__(what)
        self.away = away


class Entry(NamedTuple):
    """One request of a batch."""

    custom_id: str
    request: str
    """The body, as a direct call would send it."""


class Batch(NamedTuple):
    """What the endpoint says of a batch."""

    id: str
    ended: bool
    entries: int


@dataclass(frozen=True)
class EntryError:
    """Why an entry was not answered."""

    status: int
    """HTTP status that a direct call would have had; 500 for an error of unknown type."""
    said: str
    """The endpoint's own words, after a comma."""

    @property
    def lasting(self) -> bool:
        """Whether the same call fails the same way whenever it is made."""
        return self.status < FOR_GOOD and self.status not in PASSING

    @classmethod
    def of(cls, result: Mapping[str, Any], secrets: Sequence[str] = ()) -> "EntryError":
        """Read the error of a result."""
        outer = result.get("error")
        inner = outer.get("error") if isinstance(outer, Mapping) else None
        kind = inner.get("type") if isinstance(inner, Mapping) else None
        return cls(STATUS_OF_ERROR.get(str(kind), 500), said_in(outer, secrets))


@dataclass(frozen=True)
class BatchResults:
    """The results of a batch, and the response that brought them."""

    response: httpx2.Response
    by_id: Mapping[str, Mapping[str, Any]] = field(repr=False)
    """`custom_id` → result."""

    @property
    def secrets(self) -> list[str]:
        """The credentials with which the results were asked for."""
        return credentials_in(self.response.request.headers)

    def exchange(
        self, call: str, request: str, message: object
    ) -> tuple[httpx2.Request, httpx2.Response]:
        """Request and response as a direct call would have had them.

        `call` is `<episode>/<key>`; `message` the JSON value in the result.
        """
        asked = self.response.request
        url = asked.url.copy_with(path=MESSAGES_PATH, query=None)
        headers = {**asked.headers, "content-type": "application/json", CALL_HEADER: call}
        headers.pop("content-length", None)
        answered = [pair for pair in self.response.headers.items() if pair[0] not in LEFT_OUT]
        return (
            httpx2.Request("POST", url, headers=headers, content=request),
            httpx2.Response(
                200,
                headers=[*answered, ("content-type", "application/json")],
                content=_compact(message),
            ),
        )


def request_text(request: Request) -> str:
    """The body of a request as the SDK writes it for a direct call, or as it was sent before."""
    if request.text is not None:
        return request.text
    return json.dumps(request.body(), ensure_ascii=False, separators=(",", ":"), allow_nan=False)


class BatchEndpoint:
    """The endpoint, with the credentials and the base URL of the SDK's environment."""

    def __init__(
        self, transport: httpx2.AsyncBaseTransport, *, max_retries: int, timeout: float
    ) -> None:
        self._client = open_client(transport, max_retries=max_retries, timeout=timeout)
        self._once = self._client.with_options(max_retries=0)

    async def aclose(self) -> None:
        """Close the client and its connections."""
        await self._client.close()

    async def send(self, entries: Iterable[Entry]) -> Batch:
        """Send a batch, once.

        `BatchTrouble` if no answer says whether it was taken in; `UsageError` if it is refused.
        """
        parts = (f'{{"custom_id":"{one.custom_id}","params":{one.request}}}' for one in entries)
        content = f'{{"requests":[{",".join(parts)}]}}'.encode()
        sent = self._once.post(PATH, cast_to=httpx2.Response, content=content)
        return _batch(_json(await _answered(sent, PATH)))

    async def find(self, batch_id: str) -> Batch | None:
        """Ask after a batch; `None` where the endpoint knows of none."""
        try:
            return _batch(_json(await self._get(f"{PATH}/{batch_id}")))
        except _NotFound:
            return None

    async def cancel(self, batch_id: str) -> None:
        """End a batch early; what it has answered so far stays."""
        try:
            path = f"{PATH}/{batch_id}/cancel"
            await _answered(self._client.post(path, cast_to=httpx2.Response), path)
        except (_NotFound, UsageError):
            return  # it is gone, or has ended: asking after it tells

    async def newest(self) -> str | None:
        """The id of the batch that was sent last; `None` where there is none."""
        page = _json(await self._get(f"{PATH}?limit=1"))
        return next((batch.id for batch in _page(page)), None)

    async def since(self, newest: str | None) -> list[Batch]:
        """All batches that were sent after another one, or ever; the newest first."""
        found: list[Batch] = []
        after = ""
        while True:
            page = _json(await self._get(f"{PATH}?limit={PAGE}{after}"))
            for batch in (batches := _page(page)):
                if batch.id == newest:
                    return found
                found.append(batch)
            if not batches or not page.get("has_more"):
                return found
            after = f"&after_id={batches[-1].id}"

    async def results(self, batch_id: str) -> BatchResults | None:
        """Read the results of a batch that has ended; `None` where the endpoint has none."""
        try:
            response = await self._get(f"{PATH}/{batch_id}/results")
        except _NotFound:
            return None
        try:
            lines = [json.loads(line) for line in response.content.split(b"\n") if line.strip()]
            by_id = {str(line["custom_id"]): dict(line["result"]) for line in lines}
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise BatchTrouble("The results of a batch cannot be read") from error
        return BatchResults(response, by_id)

    async def _get(self, path: str) -> httpx2.Response:
        return await _answered(self._client.get(path, cast_to=httpx2.Response), path)


class _NotFound(Exception):
    """A batch that the API does not have."""


async def _answered(asked: Awaitable[httpx2.Response], path: str) -> httpx2.Response:
    try:
        return await asked
    except anthropic.NotFoundError as error:
        if path != PATH and not path.startswith(f"{PATH}?"):
            raise _NotFound from error
        raise _no_batches(error) from error
    except anthropic.APIStatusError as error:
        if error.status_code >= FOR_GOOD or error.status_code in PASSING:
            raise BatchTrouble(error_text(error), away(None, error.status_code)) from error
        raise _refused(error) from error
    except anthropic.AnthropicError as error:
        why = away(error.__cause__)
        raise carried_by(error) or BatchTrouble(error_text(error), why) from error


def _compact(message: object) -> bytes:
    """JSON without spaces; lone surrogates, which the fast writer refuses, are let through."""
    try:
        return orjson.dumps(message)
    except TypeError:
        return json.dumps(message, separators=(",", ":")).encode()


def _json(response: httpx2.Response) -> dict[str, Any]:
    try:
        value = json.loads(response.content)
    except (ValueError, RecursionError) as error:
        raise BatchTrouble("The answer is no JSON") from error
    if not isinstance(value, dict):
        raise BatchTrouble("The answer is no batch")
    return value


def _batch(value: Mapping[str, Any]) -> Batch:
    try:
        ended = value["processing_status"] == "ended"
        return Batch(str(value["id"]), ended, sum(map(int, value["request_counts"].values())))
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise BatchTrouble("The answer is no batch") from error


def _page(value: Mapping[str, Any]) -> list[Batch]:
    batches = value.get("data")
    if not isinstance(batches, list):
        raise BatchTrouble("The answer is no list of batches")
    return [_batch(batch) for batch in batches]


def _refused(error: anthropic.APIStatusError) -> UsageError:
    found = refusal(error.status_code, told(error), "the batch endpoint")
    return found or UsageError(
        f"The batch endpoint refused a request ({error_text(error)}).",
        why="It would refuse it again.",
        hint="Record without --batch. Everything paid for is kept.",
    )


def _no_batches(error: anthropic.NotFoundError) -> UsageError:
    return UsageError(
        f"The endpoint takes no batches (HTTP 404{told(error)}).",
        why=f"It has nothing at {PATH}.",
        hint="Record without --batch.",
    )


# --- Batch call ids ------------------------------------------------------------------------------

_CALL: Final = 32
_REQUEST: Final = 16
_MARK: Final = 14


def call_digest(name: str) -> str:
    """32 hexadecimal digits that stand for `<episode>/<key>`."""
    return _hexadecimal(name)[:_CALL]


def new_mark() -> str:
    """14 hexadecimal digits that no other submission has."""
    return secrets.token_hex(_MARK // 2)


class CustomId(NamedTuple):
    """What a `custom_id` says."""

    call: str
    """Digest of the call's name."""
    request: str
    """Digest of the request's body, as it is sent."""
    mark: str
    """Mark of the submission."""

    def __str__(self) -> str:
        return "-".join(self)

    @classmethod
    def of(cls, call: str, request: str, mark: str) -> "CustomId":
        """Name an entry. `call` is `<episode>/<key>`; `mark` comes from `new_mark`."""
        return cls(call_digest(call), _hexadecimal(request)[:_REQUEST], mark)

    @classmethod
    def parse(cls, text: str) -> "CustomId | None":
        """Read an id back; `None` where it is another's."""
        parts = text.split("-")
        return cls(*parts) if [len(part) for part in parts] == [_CALL, _REQUEST, _MARK] else None


def _hexadecimal(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
