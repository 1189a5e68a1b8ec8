"""The Messages API as a function: a request comes in, a response goes out, no network here.

Chat completions, as other APIs have them, are answered as the same request to that API would be.
A batch has ended as soon as it is there, unless the fault `pending` gives it time. Batches live
as long as the server; after a restart they are gone, as those of a real account are in the end.
"""

import hashlib
import re
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any, Final, NamedTuple
from urllib.parse import parse_qs, urlsplit

import orjson

from tutorsim.kernel.system_and_loaded_study import Asking, Chance, Recogniser, System
from tutorsim.model import CALL_HEADER
from tutorsim.model.batch_api import call_digest
from tutorsim.standin.http_responses_and_faults import (
    BATCH_FAULTS,
    ENTRY_FAULTS,
    FAILURES,
    REPLY_FAULTS,
    REQUEST_FAULTS,
    Fault,
    Faults,
    Problem,
    Response,
    error_response,
    error_value,
    failure_response,
)
from tutorsim.system_registry import load, system_names

BATCHES_PATH: Final = "/v1/messages/batches"
LARGEST_BATCH: Final = 256_000_000
"""Bytes of a body, the API's own limit."""
_MOST_ENTRIES: Final = 100_000
_CUSTOM_ID: Final = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_WITH_DIGEST: Final = re.compile(r"([0-9a-f]{32})-")
_KINDS: Final = ("succeeded", "errored", "canceled", "expired")
_LIFE: Final = timedelta(hours=24)

Ask = Callable[[object, str], dict[str, Any]]


def entry_error(status: int, message: str) -> dict[str, Any]:
    """The result of an entry that was not answered."""
    return {"type": "errored", "error": {"type": "error", "error": error_value(status, message)}}


def _occurrence(custom_id: str) -> str:
    """The digest of the call's name: what the id begins with, or the digest of the whole id."""
    found = _WITH_DIGEST.match(custom_id)
    return found[1] if found else call_digest(custom_id)


@dataclass
class _Batch:
    id: str
    entries: dict[str, object]
    """`custom_id` → parameters of the message."""
    created: datetime
    ends_at: float
    """Time on the server's own clock."""
    cancelled: datetime | None = None
    results: dict[str, dict[str, Any]] = field(default_factory=dict)
    """`custom_id` → result; empty until the batch has ended."""


class Batches:
    """All batches of a server. `ask`: answers one entry, from its parameters and its occurrence."""

    def __init__(
        self, ask: Ask, faults: Faults, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._ask = ask
        self._faults = faults
        self._clock = clock
        self._batches: dict[str, _Batch] = {}

    @staticmethod
    def name(method: str, target: str, content: bytes) -> str:
        """What names a request: the same for each time that it is sent."""
        return f"{method} {target} {hashlib.sha256(content).hexdigest()}"

    def answer(self, method: str, target: str, host: str | None, content: bytes) -> Response:
        """Answer a request below `BATCHES_PATH`.

        `host`: what the client calls the server. Raises `Problem` if it is refused.
        """
        parts = urlsplit(target)
        match method, *parts.path.removeprefix(BATCHES_PATH).strip("/").split("/"):
            case "POST", "":
                return _value(self._shown(self._created(content), host))
            case "GET", "":
                return _value(self._listed(parts.query, host))
            case "GET", batch_id:
                return _value(self._shown(self._found(batch_id), host))
            case "GET", batch_id, "results":
                return self._read(self._found(batch_id))
            case "POST", batch_id, "cancel":
                return _value(self._shown(self._cancelled(batch_id), host))
        raise Problem(404, f"There is nothing for {method[:20]} at {target[:200]}.")

    def _created(self, content: bytes) -> _Batch:
        entries = _checked_entries(content)
        named = orjson.dumps([len(self._batches), *map(_occurrence, entries)])
        batch_id = f"msgbatch_{hashlib.sha256(named).hexdigest()[:24]}"
        fault = self._faults.meets(batch_id, 0)
        ends_at = self._clock() + (fault.seconds if fault else 0.0)
        batch = _Batch(batch_id, entries, datetime.now(UTC), ends_at)
        self._batches[batch_id] = batch
        return batch

    def _found(self, batch_id: str) -> _Batch:
        batch = self._batches.get(batch_id)
        if batch is None:
            raise Problem(404, f"There is no batch {batch_id[:100]}.")
        if not batch.results and self._clock() >= batch.ends_at:
            batch.results = {
                custom_id: self._ask(params, _occurrence(custom_id))
                for custom_id, params in batch.entries.items()
            }
        return batch

    def _cancelled(self, batch_id: str) -> _Batch:
        """End a batch now: of one under way, the first half has been answered."""
        batch = self._found(batch_id)
        if not batch.results:
            batch.cancelled = datetime.now(UTC)
            half = len(batch.entries) // 2
            for place, (custom_id, params) in enumerate(batch.entries.items()):
                reached = place < half
                batch.results[custom_id] = (
                    self._ask(params, _occurrence(custom_id)) if reached else {"type": "canceled"}
                )
        return batch

    def _listed(self, query: str, host: str | None) -> dict[str, Any]:
        """A page of batches, the newest first."""
        fields = {name: values[-1] for name, values in parse_qs(query).items()}
        limit = fields.get("limit", "20")
        if not limit.isdecimal() or not 1 <= int(limit) <= 1000:
            raise Problem(400, "limit: a whole number from 1 to 1000 is required.")
        ids = [*reversed(self._batches)]
        after = fields.get("after_id")
        if after is not None and after not in self._batches:
            raise Problem(400, f"after_id: there is no batch {after[:100]}.")
        start = ids.index(after) + 1 if after is not None else 0
        page = ids[start : start + int(limit)]
        return {
            "data": [self._shown(self._found(batch_id), host) for batch_id in page],
            "has_more": start + len(page) < len(ids),
            "first_id": page[0] if page else None,
            "last_id": page[-1] if page else None,
        }

    def _shown(self, batch: _Batch, host: str | None) -> dict[str, Any]:
        ended = bool(batch.results)
        base = f"http://{host}" if host else ""
        counted = Counter(result["type"] for result in batch.results.values())
        counts = {kind: counted[kind] for kind in _KINDS}
        return {
            "id": batch.id,
            "type": "message_batch",
            "processing_status": "ended" if ended else "in_progress",
            "request_counts": {"processing": 0 if ended else len(batch.entries), **counts},
            "created_at": _moment(batch.created),
            "expires_at": _moment(batch.created + _LIFE),
            "ended_at": _moment(batch.created) if ended else None,
            "cancel_initiated_at": _moment(batch.cancelled),
            "archived_at": None,
            "results_url": f"{base}{BATCHES_PATH}/{batch.id}/results" if ended else None,
        }

    def _read(self, batch: _Batch) -> Response:
        if not batch.results:
            raise Problem(404, f"The batch {batch.id} has not ended yet.")
        lines = b"".join(orjson.dumps(line) + b"\n" for line in _lines(batch))
        return Response(200, lines, "", content_type="application/x-jsonl")


def _lines(batch: _Batch) -> Iterator[dict[str, Any]]:
    """Results in another order than the entries, as the API may give them."""
    for custom_id in reversed(batch.results):
        yield {"custom_id": custom_id, "result": batch.results[custom_id]}


def _value(value: object) -> Response:
    return Response(200, orjson.dumps(value), "")


def _moment(moment: datetime | None) -> str | None:
    return moment.isoformat() if moment else None


def _checked_entries(content: bytes) -> dict[str, object]:
    try:
        requests = orjson.loads(content)["requests"]
        entries = {str(one["custom_id"]): one["params"] for one in requests}
    except (orjson.JSONDecodeError, KeyError, TypeError) as error:
        raise Problem(400, "requests: entries with custom_id and params are required.") from error
    if not 1 <= len(requests) <= _MOST_ENTRIES:
        raise Problem(400, f"requests: from 1 to {_MOST_ENTRIES} entries are required.")
    if len(entries) < len(requests):
        raise Problem(400, "requests: every custom_id may come once only.")
    for custom_id in entries:
        if not _CUSTOM_ID.fullmatch(custom_id):
            raise Problem(400, f"custom_id: {custom_id[:100]!r} is not [a-zA-Z0-9_-]{{1,64}}.")
    return entries


# --- Mind ----------------------------------------------------------------------------------------


class Thought(NamedTuple):
    """A reply before it is put into a response."""

    text: str
    input_tokens: int
    output_tokens: int
    stop_reason: str
    recognised: bool = True
    """Whether a system knows the prompt; else the text is `NOBODY`."""


def think(body: Mapping[str, Any], chance: Chance, *, steady: Chance | None = None) -> Thought:
    """Answer a checked request body; the same body and chances give the same reply.

    `steady`: what steady voters draw from; `None` for voters with moods and slips.
    """
    asked = read_request(body)
    replies = (recognise(asked, chance, steady) for recognise in _recognisers())
    found = next((text for text in replies if text is not None), None)
    text = NOBODY if found is None else found
    limit = 4 * int(body["max_tokens"])
    stop = "end_turn" if len(text) <= limit else "max_tokens"
    text = text[:limit]
    asked_tokens = tokens(asked.system + asked.user)
    return Thought(text, asked_tokens, tokens(text), stop, found is not None)


NOBODY = "I play tutors, students and judges, and this asks for none of them."
"""The reply to a request that no mind takes."""


def forget_minds() -> None:
    """Look for systems again, as a test that installs one has to."""
    _recognisers.cache_clear()


@cache
def _recognisers() -> tuple[Recogniser, ...]:
    """The minds of all systems; those that ask least of a prompt come last."""
    systems: list[System] = [load(name, "system") for name in system_names()]
    ordered = sorted(systems, key=lambda system: system.standin_last)
    return tuple(recognise for system in ordered for recognise in system.standin)


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
_SHOWN: Final = 60
"""Characters of a prompt that no system knows by which it is named."""


_Form = tuple[str, Callable[[dict[str, Any]], bytes]]
"""Content type, and a message written in it."""


class _Asked(NamedTuple):
    """A request for a message that can be answered."""

    name: str
    """Name of the request, one for all times that it is sent."""
    sent_before: int
    chance: Chance


class Endpoint:
    """Answers requests; remembers how often it has seen each of them, and batches.

    A reply depends on the seed, the JSON value of the body and the occurrence, so that neither
    order nor a restart matters. The occurrence is the digest of the header `x-tutorsim-call`; an
    entry of a batch has no headers of its own and brings that digest in its `custom_id`, so that
    it gets the reply of the direct call. Without a call's name it is the number of times that the
    body has come before.

    `seed`: another seed is another model. `steady`: voters prefer the same under every ballot
    format, and write every ballot well; without it they have moods and slips. `on_unknown`: called
    with how a prompt begins that no system knows, once for each such beginning.
    """

    def __init__(
        self,
        *,
        seed: int,
        faults: Sequence[Fault] = (),
        steady: bool = False,
        on_unknown: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._seed = seed
        self._steady = Chance(seed, "steady") if steady else None
        self._faults = Faults(faults, seed=seed, kinds=REQUEST_FAULTS + REPLY_FAULTS)
        self._entry_faults = Faults(faults, seed=seed, kinds=REPLY_FAULTS + ENTRY_FAULTS)
        self._batches = Batches(self._entry, Faults(faults, seed=seed, kinds=BATCH_FAULTS))
        self._seen: Counter[bytes] = Counter()
        self.requests = 0
        """Requests answered so far, refused and failed ones among them."""
        self.unknown: Counter[str] = Counter()
        """Beginning of a prompt that no system knows → how often such a prompt was answered."""
        self._on_unknown = on_unknown

    def answer(
        self, method: str, target: str, headers: Mapping[str, str], content: bytes
    ) -> Response:
        """Answer one request. `headers`: names in lower case."""
        self.requests += 1
        try:
            if target.startswith(BATCHES_PATH):
                return self._about_batches(method, target, headers, content)
            path = _route(method, target)
            value = _parsed(content)
            streamed = isinstance(value, dict) and bool(value.get("stream"))
            if path != _PATH:
                value = _as_message_request(value)
            elif isinstance(value, dict) and streamed:
                del value["stream"]
            body = _checked_body(value)
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
        if fault is not None and fault.kind in FAILURES:
            return failure_response(fault, request_id)
        message = _message(_disturbed(self._think(body, chance), fault), str(body["model"]), chance)
        content_type, written = form
        whole = Response(200, written(message), request_id, content_type=content_type)
        return _delivered(whole, fault)

    def _think(self, body: dict[str, Any], chance: Chance) -> Thought:
        thought = think(body, chance, steady=self._steady)
        if not thought.recognised:
            self._note_unknown(read_request(body))
        return thought

    def _note_unknown(self, asked: Asking) -> None:
        words = " ".join((asked.system or asked.user).split())
        begins = words if len(words) <= _SHOWN else f"{words[: _SHOWN - 1]}…"
        self.unknown[begins] += 1
        if self.unknown[begins] == 1:
            self._on_unknown(begins)

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
            return entry_error(*FAILURES["500"])
        message = _message(_disturbed(self._think(body, chance), fault), str(body["model"]), chance)
        return {"type": "succeeded", "message": message}

    def _about_batches(
        self, method: str, target: str, headers: Mapping[str, str], content: bytes
    ) -> Response:
        name = self._batches.name(method, target, content)
        sent_before = self._count(name, counts=True)
        fault = self._faults.meets(name, sent_before) if self._faults else None
        request_id = f"req_{hashlib.sha256(f'{name} {sent_before}'.encode()).hexdigest()[:24]}"
        if fault is not None and fault.kind in FAILURES:
            return failure_response(fault, request_id)
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
    system: list[Any] = [*filter(None, [value.get("system")])]
    messages: list[object] = []
    for message in value["messages"]:
        told = isinstance(message, dict) and message.get("role") in ("system", "developer")
        if told and not _is_content(message.get("content")):
            raise Problem(400, "messages: text is required of a system message.")
        (system if told else messages).append(message["content"] if told else message)
    limit = value.get("max_completion_tokens", value.get("max_tokens", _CHAT_LIMIT))
    texts = "\n\n".join(map(_text, system))
    asked = {"model": value.get("model"), "max_tokens": limit, "messages": messages}
    return asked | ({"system": texts} if texts else {})


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
        raise Problem(400, "stream: an entry of a batch is answered by a whole message.")
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


def _disturbed(thought: Thought, fault: Fault | None) -> Thought:
    """The reply as a refusal, empty, or cut short, where the fault says so."""
    if fault is not None and fault.kind in ("refusal", "empty"):
        stop_reason = "refusal" if fault.kind == "refusal" else thought.stop_reason
        return thought._replace(text="", output_tokens=1, stop_reason=stop_reason)
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


def _message_events(message: dict[str, Any]) -> bytes:
    """A message as a stream, a word an event."""
    begun = message | {"content": [], "stop_reason": None}
    begun["usage"] = message["usage"] | {"output_tokens": 0}
    events: list[dict[str, Any]] = [{"type": "message_start", "message": begun}]
    for index, block in enumerate(message["content"]):
        deltas = [{"type": "text_delta", "text": word} for word in _words(block["text"])]
        empty = {"content_block": block | {"text": ""}}
        events.append({"type": "content_block_start", "index": index} | empty)
        at = {"type": "content_block_delta", "index": index}
        events += [at | {"delta": delta} for delta in deltas]
        events.append({"type": "content_block_stop", "index": index})
    ended = {"stop_reason": message["stop_reason"], "stop_sequence": None}
    usage = {"output_tokens": message["usage"]["output_tokens"]}
    events.append({"type": "message_delta", "delta": ended, "usage": usage})
    events.append({"type": "message_stop"})
    return b"".join(
        b"event: %b\ndata: %b\n\n" % (str(event["type"]).encode(), orjson.dumps(event))
        for event in events
    )


def _chat_events(message: dict[str, Any]) -> bytes:
    """A chat completion as a stream, a word an event."""
    words = _words(_text_of(message))
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


def _words(text: str) -> list[str]:
    return re.findall(r"\s*\S+\s*$|\s*\S+|\s+", text)


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
    (_PATH, True): ("text/event-stream", _message_events),
    (_CHAT_PATH, False): ("application/json", _chat_completion),
    (_CHAT_PATH, True): ("text/event-stream", _chat_events),
}


def _delivered(response: Response, fault: Fault | None) -> Response:
    kind = fault.kind if fault else None
    if kind == "garbage":
        return replace(response, body=b"<html>" + response.body[:40])
    delay = fault.seconds if fault and kind == "slow" else 0.0
    return replace(response, delay=delay, kept=0.5 if kind == "cut" else 1.0)
