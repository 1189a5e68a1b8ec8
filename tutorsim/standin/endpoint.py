"""The Messages API as a function: a request comes in, a response goes out, no network here.

Chat completions, as other APIs have them, are answered as the same request to that API would be.
"""

import hashlib
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Any, Final, NamedTuple

import orjson

from tutorsim.kernel.system import Asking, Chance, Recogniser
from tutorsim.model import CALL_HEADER
from tutorsim.model.batch import call_digest
from tutorsim.standin.batch_endpoint import BATCHES_PATH, Batches, entry_error
from tutorsim.standin.responses_and_faults import (
    BATCH_FAULTS,
    ENTRY_FAULTS,
    REPLY_FAULTS,
    REQUEST_FAULTS,
    Fault,
    Faults,
    Problem,
    Response,
    error_response,
)
from tutorsim.system_registry import DEFAULT_SYSTEM, load, system_names

# --- Mind ----------------------------------------------------------------------------------------


class Thought(NamedTuple):
    """A reply before it is put into a response."""

    text: str
    input_tokens: int
    output_tokens: int
    stop_reason: str


def think(body: Mapping[str, Any], chance: Chance, *, steady: Chance | None = None) -> Thought:
    """Answer a checked request body; the same body and chances give the same reply.

    Args:
        body: The request.
        chance: Draws of this call.
        steady: What steady voters draw from; `None` for voters with moods and slips.
    """
    asked = read_request(body)
    replies = (recognise(asked, chance, steady) for recognise in _recognisers())
    text = next((text for text in replies if text is not None), NOBODY)
    limit = 4 * int(body["max_tokens"])
    stop = "end_turn" if len(text) <= limit else "max_tokens"
    text = text[:limit]
    return Thought(text, tokens(asked.system + asked.user), tokens(text), stop)


NOBODY = "I play tutors, students and judges, and this asks for none of them."
"""The reply to a request that no mind takes."""


def forget_minds() -> None:
    """Look for systems again, as a test that installs one has to."""
    _recognisers.cache_clear()


@cache
def _recognisers() -> tuple[Recogniser, ...]:
    """The minds of all systems; the default system's comes last, as it asks least of a prompt."""
    names = sorted(system_names(), key=lambda name: name == DEFAULT_SYSTEM)
    return tuple(recognise for name in names for recognise in load(name, "system").standin)


def read_request(body: Mapping[str, Any]) -> Asking:
    """The texts of a Messages API request body that has been checked."""
    turns = [_text(message["content"]) for message in body["messages"]]
    return Asking(_text(body.get("system", "")), "\n\n".join(turns))


def _text(content: str | list[dict[str, Any]]) -> str:
    if isinstance(content, str):
        return content
    return "\n".join(str(block.get("text", "")) for block in content)


def tokens(text: str) -> int:
    """A stable estimate: four characters a token."""
    return -(-len(text) // 4)


# --- Endpoint ------------------------------------------------------------------------------------

STANDIN_VERSION: Final = "2"
"""Changes whenever the same request would get another reply than before."""

_PATH: Final = "/v1/messages"
_COUNT_PATH: Final = "/v1/messages/count_tokens"
_CHAT_PATH: Final = "/v1/chat/completions"
_CHAT_LIMIT: Final = 4096
"""Tokens of a chat completion that asks for no limit."""


_Form = tuple[str, Callable[[dict[str, Any]], bytes]]
"""Content type, and a message written in it."""


class _Asked(NamedTuple):
    """A request for a message that can be answered."""

    name: str
    """The same for each time that it is sent."""
    sent_before: int
    chance: Chance


class Endpoint:
    """Answers requests; remembers how often it has seen each of them, and batches.

    A reply depends on the seed, the JSON value of the body and the occurrence, so that neither
    order nor a restart matters. The occurrence is the digest of the header `x-tutorsim-call`; an
    entry of a batch has no headers of its own and brings that digest in its `custom_id`, so that
    it gets the reply of the direct call. Without a call's name it is the number of times that the
    body has come before.

    Args:
        seed: Another seed is another model.
        faults: What shall go wrong.
        steady: Voters prefer the same under every ballot format, and write every ballot well;
            without it they have moods and slips.
    """

    def __init__(self, *, seed: int, faults: Sequence[Fault] = (), steady: bool = False) -> None:
        self._seed = seed
        self._steady = Chance(seed, "steady") if steady else None
        self._faults = Faults(faults, seed=seed, kinds=REQUEST_FAULTS + REPLY_FAULTS)
        self._entry_faults = Faults(faults, seed=seed, kinds=REPLY_FAULTS + ENTRY_FAULTS)
        self._batches = Batches(self._entry, Faults(faults, seed=seed, kinds=BATCH_FAULTS))
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
            if target.startswith(BATCHES_PATH):
                return self._about_batches(method, target, headers, content)
            path = _route(method, target)
            value = _parsed(content)
            streamed = path == _CHAT_PATH and isinstance(value, dict) and bool(value.get("stream"))
            body = _checked_body(_as_message_request(value) if path != _PATH else value)
        except Problem as problem:
            unread = hashlib.sha256(f"{method} {target}\n".encode() + content).hexdigest()
            return error_response(problem.status, problem.message, f"req_{unread[:24]}")
        if path == _COUNT_PATH:
            asking = read_request(body)
            counted = {"input_tokens": tokens(asking.system + asking.user)}
            unnamed = hashlib.sha256(content).hexdigest()
            return Response(200, orjson.dumps(counted), f"req_{unnamed[:24]}")
        call = headers.get(CALL_HEADER)
        asked = self._asked(body, call and call_digest(call))
        return self._answer(asked, body, _FORMS[path, streamed])

    def _asked(self, body: dict[str, Any], occurrence: str | None) -> _Asked:
        digest = hashlib.sha256(orjson.dumps(body, option=orjson.OPT_SORT_KEYS)).hexdigest()
        name = digest if occurrence is None else f"{digest} {occurrence}"
        counts = occurrence is None or bool(self._faults) or bool(self._entry_faults)
        sent_before = self._count(name, counts=counts)
        return _Asked(
            name, sent_before, Chance(self._seed, digest, occurrence or f"#{sent_before}")
        )

    def _answer(self, asked: _Asked, body: dict[str, Any], form: _Form) -> Response:
        name, sent_before, chance = asked
        fault = self._faults.meets(name, sent_before)
        request_id = "req_" + chance.digest(f"request {sent_before}").hex()[:24]
        if fault is not None and fault.kind in _FAILURES:
            return _failure(fault, request_id)
        message = _message(_disturbed(self._think(body, chance), fault), str(body["model"]), chance)
        content_type, written = form
        whole = Response(200, written(message), request_id, content_type=content_type)
        return _delivered(whole, fault)

    def _think(self, body: dict[str, Any], chance: Chance) -> Thought:
        return think(body, chance, steady=self._steady)

    def _entry(self, params: object, occurrence: str) -> dict[str, Any]:
        """The result of an entry of a batch."""
        try:
            body = _checked_body(params)
        except Problem as problem:
            return entry_error(problem.status, problem.message)
        name, sent_before, chance = self._asked(body, occurrence)
        fault = self._entry_faults.meets(name, sent_before)
        if fault is not None and fault.kind == "expired":
            return {"type": "expired"}
        if fault is not None and fault.kind == "errored":
            return entry_error(*_FAILURES["500"])
        message = _message(_disturbed(self._think(body, chance), fault), str(body["model"]), chance)
        return {"type": "succeeded", "message": message}

    def _about_batches(
        self, method: str, target: str, headers: Mapping[str, str], content: bytes
    ) -> Response:
        name = self._batches.name(method, target, content)
        sent_before = self._count(name, counts=True)
        fault = self._faults.meets(name, sent_before) if self._faults else None
        request_id = f"req_{hashlib.sha256(f'{name} {sent_before}'.encode()).hexdigest()[:24]}"
        if fault is not None and fault.kind in _FAILURES:
            return _failure(fault, request_id)
        given = self._batches.answer(method, target, headers.get("host"), content)
        return _delivered(replace(given, request_id=request_id), fault)

    def _count(self, name: str, *, counts: bool) -> int:
        if not counts:
            return 0
        key = hashlib.sha256(name.encode("utf-8", "surrogatepass")).digest()[:16]
        self._seen[key] += 1
        return self._seen[key] - 1


# --- Requests -------------------------------------------------------------------------------


def _route(method: str, target: str) -> str:
    path = target.split("?", 1)[0]
    if path not in (_PATH, _COUNT_PATH, _CHAT_PATH):
        raise Problem(404, f"There is nothing at {target[:200]}; the model answers at {_PATH}.")
    if method != "POST":
        raise Problem(405, f"{method[:20]} is not allowed; send a POST.")
    return path


def _as_message_request(value: object) -> object:
    """A request for a chat completion, or for a count of tokens, as one for a message."""
    if not isinstance(value, dict) or not isinstance(value.get("messages"), list):
        return value
    system: list[str] = [*filter(None, [value.get("system")])]
    messages: list[object] = []
    for message in value["messages"]:
        told = isinstance(message, dict) and message.get("role") in ("system", "developer")
        if told and not _is_content(message.get("content")):
            raise Problem(400, "messages: text is required of a system message.")
        (system if told else messages).append(message["content"] if told else message)
    limit = value.get("max_completion_tokens", value.get("max_tokens", _CHAT_LIMIT))
    texts = "\n\n".join(one if isinstance(one, str) else _joined(one) for one in system)
    asked = {"model": value.get("model"), "max_tokens": limit, "messages": messages}
    return asked | ({"system": texts} if texts else {})


def _joined(blocks: Sequence[Mapping[str, Any]]) -> str:
    return "\n".join(str(block.get("text", "")) for block in blocks)


def _parsed(content: bytes) -> object:
    try:
        return orjson.loads(content)
    except orjson.JSONDecodeError as error:
        raise Problem(400, f"The body is not JSON: {error}") from error


def _checked_body(body: object) -> dict[str, Any]:
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


def _message(thought: Thought, model: str, chance: Chance) -> dict[str, Any]:
    content = [{"type": "text", "text": thought.text}] if thought.text else []
    usage = {"input_tokens": thought.input_tokens, "output_tokens": thought.output_tokens}
    return {
        "id": "msg_" + chance.digest("message").hex()[:24],
        "type": "message",
        "role": "assistant",
        "model": model,
        "content": content,
        "stop_reason": thought.stop_reason,
        "stop_sequence": None,
        "usage": usage,
    }


# --- What a message is written as -----------------------------------------------------------


def _chat_completion(message: dict[str, Any]) -> bytes:
    counts = message["usage"]["input_tokens"], message["usage"]["output_tokens"]
    usage = dict(zip(_CHAT_USAGE, (*counts, sum(counts)), strict=True))
    said = {"role": "assistant", "content": _text_of(message), "refusal": None}
    choice = {"index": 0, "message": said, "finish_reason": _finish(message), "logprobs": None}
    return orjson.dumps(_chat_head(message, "chat.completion", [choice]) | {"usage": usage})


def _chat_events(message: dict[str, Any]) -> bytes:
    """A chat completion as a stream, a word an event."""
    words = re.findall(r"\s*\S+\s*$|\s*\S+|\s+", _text_of(message))
    deltas: list[tuple[dict[str, str], str | None]] = [({"role": "assistant", "content": ""}, None)]
    deltas += [({"content": word}, None) for word in words]
    deltas.append(({}, _finish(message)))
    events = [
        _chat_head(
            message,
            "chat.completion.chunk",
            [{"index": 0, "delta": delta, "finish_reason": reason}],
        )
        for delta, reason in deltas
    ]
    return b"".join(b"data: %b\n\n" % orjson.dumps(one) for one in events) + b"data: [DONE]\n\n"


def _chat_head(message: dict[str, Any], kind: str, choices: list[dict[str, Any]]) -> dict[str, Any]:
    number = "chatcmpl-" + str(message["id"]).removeprefix("msg_")
    named = {"id": number, "object": kind, "created": 0, "model": message["model"]}
    return {**named, "choices": choices}


def _text_of(message: dict[str, Any]) -> str:
    return "".join(block["text"] for block in message["content"])


def _finish(message: dict[str, Any]) -> str:
    return _FINISHES[message["stop_reason"]]


_CHAT_USAGE: Final = ("prompt_tokens", "completion_tokens", "total_tokens")
_FINISHES: Final = {"end_turn": "stop", "max_tokens": "length", "refusal": "content_filter"}
_FORMS: Final[Mapping[tuple[str, bool], _Form]] = {
    (_PATH, False): ("application/json", orjson.dumps),
    (_CHAT_PATH, False): ("application/json", _chat_completion),
    (_CHAT_PATH, True): ("text/event-stream", _chat_events),
}


def _delivered(response: Response, fault: Fault | None) -> Response:
    kind = fault.kind if fault else None
    if kind == "garbage":
        return replace(response, body=b"<html>" + response.body[:40])
    delay = fault.seconds if fault and kind == "slow" else 0.0
    return replace(response, delay=delay, kept=0.5 if kind == "cut" else 1.0)
