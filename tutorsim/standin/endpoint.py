"""The Messages API as a function: a request comes in, a response goes out, no network here."""

import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import orjson

from tutorsim.standin.chance import Chance
from tutorsim.standin.faults import Fault, Faults
from tutorsim.standin.mind import Thought, think

__all__ = ["STANDIN_VERSION", "Endpoint", "Problem", "Response", "error_response"]

STANDIN_VERSION: Final = "1"
"""Changes whenever the same request would get another reply than before."""

_CALL_HEADER = "x-tutorsim-call"
_PATH = "/v1/messages"
_ERROR_TYPES: Mapping[int, str] = {
    400: "invalid_request_error",
    404: "not_found_error",
    405: "invalid_request_error",
    411: "invalid_request_error",
    413: "request_too_large",
    429: "rate_limit_error",
    431: "invalid_request_error",
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


def error_response(
    status: int, message: str, request_id: str, headers: tuple[tuple[str, str], ...] = ()
) -> Response:
    """An error in the API's own shape."""
    error = {"type": _ERROR_TYPES[status], "message": message}
    body = orjson.dumps({"type": "error", "error": error, "request_id": request_id})
    return Response(status, body, request_id, headers)


class Endpoint:
    """Answers requests; remembers only how often it has seen each of them.

    A reply depends on the seed, the JSON value of the body and the occurrence: the value of
    the header `x-tutorsim-call` where there is one, so that neither order nor a restart matters,
    and otherwise the number of times that the body has come before.

    Args:
        seed: Another seed is another model.
        faults: What shall go wrong.
    """

    def __init__(self, *, seed: int, faults: Sequence[Fault] = ()) -> None:
        self._seed = seed
        self._faults = Faults(faults, seed=seed)
        self._seen: Counter[bytes] = Counter()
        self.requests = 0
        """Requests answered so far, refused and failed ones among them."""

    def answer(
        self, method: str, target: str, headers: Mapping[str, str], content: bytes
    ) -> Response:
        """Answer one request.

        Args:
            method: The HTTP method.
            target: Path and query as sent.
            headers: Names in lower case.
            content: The body.
        """
        self.requests += 1
        try:
            _check_route(method, target)
            body = _checked_body(content)
        except Problem as problem:
            unread = hashlib.sha256(f"{method} {target}\n".encode() + content).hexdigest()
            return error_response(problem.status, problem.message, f"req_{unread[:24]}")
        return self._answer(body, headers.get(_CALL_HEADER))

    def _answer(self, body: dict[str, Any], call: str | None) -> Response:
        digest = hashlib.sha256(orjson.dumps(body, option=orjson.OPT_SORT_KEYS)).hexdigest()
        name = digest if call is None else f"{digest} {call}"
        sent_before = self._count(name, counts=call is None or bool(self._faults))
        chance = Chance(self._seed, digest, f"#{sent_before}" if call is None else call)
        fault = self._faults.meets(name, sent_before)
        request_id = "req_" + chance.digest(f"request {sent_before}").hex()[:24]
        if fault is not None and fault.kind in _FAILURES:
            return _failure(fault, request_id)
        thought = _disturbed(think(body, chance), fault)
        message = _message(thought, str(body["model"]), chance)
        return _delivered(message, request_id, fault)

    def _count(self, name: str, *, counts: bool) -> int:
        if not counts:
            return 0
        key = hashlib.sha256(name.encode("utf-8", "surrogatepass")).digest()[:16]
        self._seen[key] += 1
        return self._seen[key] - 1


# --- Requests -------------------------------------------------------------------------------


def _check_route(method: str, target: str) -> None:
    if target.split("?", 1)[0] != _PATH:
        raise Problem(404, f"There is nothing at {target[:200]}; the model answers at {_PATH}.")
    if method != "POST":
        raise Problem(405, f"{method[:20]} is not allowed; send a POST.")


def _checked_body(content: bytes) -> dict[str, Any]:
    try:
        body = orjson.loads(content)
    except orjson.JSONDecodeError as error:
        raise Problem(400, f"The body is not JSON: {error}") from error
    if not isinstance(body, dict):
        raise Problem(400, "The body is not a JSON object.")
    if not isinstance(body.get("model"), str) or not body["model"]:
        raise Problem(400, "model: a name is required.")
    limit = body.get("max_tokens")
    if not isinstance(limit, int) or isinstance(limit, bool) or limit < 1:
        raise Problem(400, "max_tokens: a whole number of at least 1 is required.")
    if body.get("stream"):
        raise Problem(400, "stream: this server sends whole messages only.")
    if not _is_content(body.get("system", "")):
        raise Problem(400, "system: text or a list of text blocks is required.")
    _check_messages(body.get("messages"))
    return body


def _check_messages(messages: object) -> None:
    if not isinstance(messages, list) or not messages:
        raise Problem(400, "messages: at least one message is required.")
    for place, message in enumerate(messages):
        if not isinstance(message, dict) or message.get("role") not in ("user", "assistant"):
            raise Problem(400, f"messages.{place}.role: `user` or `assistant` is required.")
        if not message.get("content") or not _is_content(message["content"]):
            raise Problem(400, f"messages.{place}.content: text is required.")


def _is_content(value: object) -> bool:
    if isinstance(value, str):
        return True
    return isinstance(value, list) and all(
        isinstance(block, dict) and block.get("type") == "text" and _has_text(block)
        for block in value
    )


def _has_text(block: Mapping[str, Any]) -> bool:
    return isinstance(block.get("text"), str)


# --- Responses ------------------------------------------------------------------------------

_FAILURES: Mapping[str, tuple[int, str]] = {
    "429": (429, "This request would pass the rate limit. Try again later."),
    "529": (529, "Overloaded"),
    "500": (500, "Internal server error"),
    "drop": (500, ""),
}


def _failure(fault: Fault, request_id: str) -> Response:
    status, words = _FAILURES[fault.kind]
    if fault.kind == "drop":
        return Response(status, b"", request_id, kept=0.0)
    headers = (("retry-after", f"{fault.seconds:g}"),) if fault.kind == "429" else ()
    return error_response(status, words, request_id, headers)


def _disturbed(thought: Thought, fault: Fault | None) -> Thought:
    """The reply as a refusal, or cut short, where the fault says so."""
    if fault is not None and fault.kind == "refusal":
        return thought._replace(text="", output_tokens=1, stop_reason="refusal")
    if fault is not None and fault.kind == "truncated":
        half = thought.text[: len(thought.text) // 2]
        tokens = thought.output_tokens // 2
        return thought._replace(text=half, output_tokens=tokens, stop_reason="max_tokens")
    return thought


def _message(thought: Thought, model: str, chance: Chance) -> bytes:
    content = [{"type": "text", "text": thought.text}] if thought.text else []
    usage = {"input_tokens": thought.input_tokens, "output_tokens": thought.output_tokens}
    return orjson.dumps(
        {
            "id": "msg_" + chance.digest("message").hex()[:24],
            "type": "message",
            "role": "assistant",
            "model": model,
            "content": content,
            "stop_reason": thought.stop_reason,
            "stop_sequence": None,
            "usage": usage,
        }
    )


def _delivered(message: bytes, request_id: str, fault: Fault | None) -> Response:
    kind = fault.kind if fault else None
    if kind == "garbage":
        return Response(200, b"<html>" + message[:40], request_id)
    delay = fault.seconds if fault and kind == "slow" else 0.0
    return Response(200, message, request_id, delay=delay, kept=0.5 if kind == "cut" else 1.0)
