"""Responses of the stand-in, and faults on demand: what goes wrong, how often, for how long.

A fault is written `KIND[:HOW_OFTEN][:SECONDS][:persist]`.

| kind | what happens | seconds |
|---|---|---|
| `429` | rate limit error | value of `retry-after`, 1 |
| `529` | overloaded error | |
| `500` | internal error | |
| `slow` | the reply waits | how long, 1 |
| `drop` | the connection closes before any answer | |
| `cut` | the connection closes in the middle of the body | |
| `garbage` | status 200 with a body that is not JSON | |
| `refusal` | a message without text, `stop_reason` `refusal` | |
| `empty` | a message without text, `stop_reason` `end_turn` | |
| `truncated` | half of the reply, `stop_reason` `max_tokens` | |
| `expired` | a batch ends without having reached the entry | |
| `errored` | an entry of a batch comes back with an internal error | |
| `pending` | a batch takes its time | until it ends, 1 |

Those before `refusal` strike every request, those about batches too; `refusal`, `empty` and
`truncated` strike messages, `expired` and `errored` entries, and `pending` whole batches.

HOW_OFTEN is a share up to 1 (0.05 is one request in twenty, chosen by hash; the default) or a
whole number from 2 (every so many requests, in order of arrival). A request that is sent again
is answered, unless the fault says `persist`. `refusal`, `empty` and `truncated` are replies: the
same request always gets the same one.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import orjson

from tutorsim.errors import UsageError
from tutorsim.kernel.system_and_loaded_study import Chance

# --- Responses -----------------------------------------------------------------------------------

_ERROR_TYPES: Mapping[int, str] = {
    400: "invalid_request_error",
    404: "not_found_error",
    405: "invalid_request_error",
    413: "request_too_large",
    429: "rate_limit_error",
    500: "api_error",
    529: "overloaded_error",
}


@dataclass(frozen=True)
class Response:
    """What to send back, and how badly."""

    status: int
    body: bytes
    request_id: str
    headers: tuple[tuple[str, str], ...] = ()
    content_type: str = "application/json"
    delay: float = 0.0
    """Seconds to wait before sending."""
    kept: float = 1.0
    """Share of the response to send before the connection closes; 1 sends all, 0 nothing."""


class Problem(Exception):
    """A request that is refused, with the status and the words of the refusal."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.message = message


def error_value(status: int, message: str) -> dict[str, str]:
    """What went wrong, as the API says it."""
    return {"type": _ERROR_TYPES[status], "message": message}


def error_response(
    status: int, message: str, request_id: str, headers: tuple[tuple[str, str], ...] = ()
) -> Response:
    """An error in the API's own shape."""
    error = error_value(status, message)
    body = orjson.dumps({"type": "error", "error": error, "request_id": request_id})
    return Response(status, body, request_id, headers)


# --- Faults --------------------------------------------------------------------------------------

RequestFault = Literal["429", "529", "500", "slow", "drop", "cut", "garbage"]
ReplyFault = Literal["refusal", "empty", "truncated"]
EntryFault = Literal["expired", "errored"]
BatchFault = Literal["pending"]
FaultKind = RequestFault | ReplyFault | EntryFault | BatchFault
REQUEST_FAULTS: tuple[FaultKind, ...] = get_args(RequestFault)
REPLY_FAULTS: tuple[FaultKind, ...] = get_args(ReplyFault)
ENTRY_FAULTS: tuple[FaultKind, ...] = get_args(EntryFault)
BATCH_FAULTS: tuple[FaultKind, ...] = get_args(BatchFault)
FAULT_KINDS = REQUEST_FAULTS + REPLY_FAULTS + ENTRY_FAULTS + BATCH_FAULTS


@dataclass(frozen=True)
class Fault:
    """One kind of fault."""

    kind: FaultKind
    share: float = 0.05
    """Share of requests that meet it, from 0 to 1; unused when `every` is given."""
    every: int | None = None
    """Every so many requests, in order of arrival."""
    seconds: float = 1.0
    """Delay of a slow reply, value of `retry-after`, or time that a batch takes."""
    persist: bool = False
    """Whether a request that is sent again meets it again."""


FAILURES: Mapping[str, tuple[int, str]] = {
    "429": (429, "This request would pass the rate limit. Try again later."),
    "529": (529, "Overloaded"),
    "500": (500, "Internal server error"),
    "drop": (500, ""),
}
"""Fault that leaves a request without its answer → status and words of the response."""


def failure_response(fault: Fault, request_id: str) -> Response:
    """The response in place of an answer, for one of `FAILURES`."""
    status, words = FAILURES[fault.kind]
    if fault.kind == "drop":
        return Response(status, b"", request_id, kept=0.0)
    headers = (("retry-after", f"{fault.seconds:g}"),) if fault.kind == "429" else ()
    return error_response(status, words, request_id, headers)


def parse_fault(spec: str) -> Fault:
    """Read `KIND[:HOW_OFTEN][:SECONDS][:persist]`; `UsageError` if it is something else."""
    kind, *rest = spec.split(":")
    persist = bool(rest) and rest[-1] == "persist"
    numbers = [_number(part, spec) for part in (rest[:-1] if persist else rest)]
    if kind not in FAULT_KINDS or len(numbers) > 2:
        raise _unreadable(spec)
    often = numbers[0] if numbers else 0.05
    if often > 1 and often != int(often):
        raise _unreadable(spec)
    return Fault(
        kind=kind,
        share=min(often, 1.0),
        every=int(often) if often > 1 else None,
        seconds=numbers[1] if len(numbers) > 1 else 1.0,
        persist=persist,
    )


def _number(part: str, spec: str) -> float:
    try:
        value = float(part)
    except ValueError as error:
        raise _unreadable(spec) from error
    if not 0 <= value <= 86400:
        raise _unreadable(spec)
    return value


def _unreadable(spec: str) -> UsageError:
    return UsageError(
        f"{spec!r} is no fault.",
        why="A fault is KIND[:HOW_OFTEN][:SECONDS][:persist], for example 429:0.1:2 or drop:20.",
        hint=f"Kinds: {', '.join(FAULT_KINDS)}.",
    )


class Faults:
    """Decides which request meets which fault.

    `faults`: in order of precedence: a request meets the first that applies. `kinds`: the kinds
    that strike; others are left out.
    """

    def __init__(
        self, faults: Sequence[Fault], *, seed: int, kinds: Collection[FaultKind] = FAULT_KINDS
    ) -> None:
        self._faults = [(place, one) for place, one in enumerate(faults) if one.kind in kinds]
        self._seed = seed
        self._arrived = 0

    def __bool__(self) -> bool:
        return bool(self._faults)

    def meets(self, request: str, sent_before: int) -> Fault | None:
        """The fault that a request meets.

        `request`: what names the request: the same for each time that it is sent. `sent_before`:
        how often it has been sent before.
        """
        self._arrived += sent_before == 0
        for place, fault in self._faults:
            lasting = fault.persist or fault.kind in REPLY_FAULTS
            if (sent_before == 0 or lasting) and self._strikes(fault, place, request):
                return fault
        return None

    def _strikes(self, fault: Fault, place: int, request: str) -> bool:
        if fault.every is not None:
            return self._arrived % fault.every == 0
        return Chance(self._seed, "fault", place, request).happens(fault.kind, fault.share)
