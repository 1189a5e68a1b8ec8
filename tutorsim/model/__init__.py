"""A model call: request, reply, the key that names it, and the question that it belongs to.

`Call` is one request with its key; `Question` adds how the reply is read and what a second asking
says; `Model` is the one-method seam that answers a call. Bodies are parsed in one way everywhere.
"""

import json
import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, Final, Generic, NamedTuple, NoReturn, Protocol, TypeVar

import orjson

from tutorsim.vocabularies import ReadStatus

__all__ = [
    "CALL_HEADER",
    "CUT_OFF",
    "Answer",
    "Call",
    "CallKey",
    "Model",
    "Question",
    "Reply",
    "Request",
    "json_value",
]

# --- Call ----------------------------------------------------------------------------------------

CALL_HEADER: Final = "x-tutorsim-call"
"""Request header that carries `<episode>/<key>`."""


_KEY: Final = re.compile(
    r"(?P<turn>[0-9]+)/(?P<stage>[a-z][a-z0-9_]*)/(?P<agent>[^/]+)/(?P<attempt>[0-9]+)"
    r"(?:/r(?P<repeat>[0-9]{2,}))?",
    re.ASCII,
)


class CallKey(NamedTuple):
    """`turn/stage/agent/attempt`, for example `2/vote_final/motivation/1`.

    A retest asks a recorded call again; its key has the repeat behind it, as in
    `2/vote_final/motivation/1/r02`.
    """

    turn: int
    """Number of the turn, from 0; what a turn is, the system says."""
    stage: str
    """What the call is for: a lower-case word of its system."""
    agent: str
    """Who is asked; the names are the system's."""
    attempt: int
    """1, or 2 when the first reply could not be read."""
    repeat: int = 0
    """0 for the recorded call; from 1 for the same prompt asked again by a retest."""

    def __str__(self) -> str:
        return _written(self)

    @classmethod
    def parse(cls, text: str) -> "CallKey":
        """Read a key back from its text. `ValueError` if the text is not a key."""
        found = _KEY.fullmatch(text)
        if found is None:
            raise ValueError(f"{text!r} is not a call key (turn/stage/agent/attempt)")
        return cls(
            int(found["turn"]),
            found["stage"],
            found["agent"],
            int(found["attempt"]),
            int(found["repeat"] or 0),
        )


@lru_cache(maxsize=1024)
def _written(key: CallKey) -> str:
    """A key's text; the same few hundred keys come in every episode."""
    turn, stage, agent, attempt, repeat = key
    tail = f"/r{repeat:02d}" if repeat else ""
    return f"{turn}/{stage}/{agent}/{attempt}{tail}"


class Request(NamedTuple):
    """One Messages API request: a system text and one user message."""

    model: str
    system: str
    user: str
    max_tokens: int
    extra: tuple[tuple[str, float], ...] = ()
    """Further body fields that the study sets, such as `("temperature", 1.0)`."""
    text: str | None = None
    """The body as it was sent before, to be sent again byte for byte; `None` for a new request."""

    @classmethod
    def from_text(cls, text: str) -> "Request":
        """Read a request back from the body that was sent, to send the same bytes again.

        `ValueError` if the text is not such a body.
        """
        try:
            body = json.loads(text)
            [message] = body["messages"]
            known = ("max_tokens", "messages", "model", "system")
            extra = tuple((name, value) for name, value in body.items() if name not in known)
            found = cls(
                model=body["model"],
                system=body["system"],
                user=message["content"],
                max_tokens=body["max_tokens"],
                extra=extra,
                text=text,
            )
        except (KeyError, TypeError, AttributeError, RecursionError) as error:
            raise ValueError(f"the body is not a request of this package: {error!r}") from error
        if found.body() != body or not isinstance(found.user, str):
            raise ValueError("the body is not a request of this package")
        return found

    def followed_by(self, more: str) -> "Request":
        """A new request, its message with a paragraph behind it."""
        return self._replace(user=f"{self.user}\n\n{more}", text=None)

    def body(self) -> dict[str, Any]:
        """The JSON value of the request body, as the endpoint receives it."""
        return {
            "max_tokens": self.max_tokens,
            "messages": [{"role": "user", "content": self.user}],
            "model": self.model,
            "system": self.system,
            **dict(self.extra),
        }


_MOST: Final = 2**63 - 1
"""Tokens that every table can hold."""

CUT_OFF: Final = "max_tokens"
"""Stop reason of a reply that reached the limit of its length."""


class Reply(NamedTuple):
    """What came back for one request."""

    text: str
    """The text blocks, joined; no lone surrogates. Empty for a refusal without text."""
    model: str
    stop_reason: str | None
    input_tokens: int
    output_tokens: int

    @property
    def is_cut_off(self) -> bool:
        """Whether it ends where its length reached the limit."""
        return self.stop_reason == CUT_OFF

    @classmethod
    def from_body(cls, body: Mapping[str, Any]) -> "Reply":
        """Read a Messages API response body. `ValueError` if the value is no message."""
        try:
            if body["type"] != "message":
                raise ValueError(f"the response is a {body['type']!r}, not a message")
            text = "".join([block["text"] for block in body["content"] if block["type"] == "text"])
            model, stop_reason = body["model"], body.get("stop_reason") or None
            asked = _input_tokens(body["usage"])
            answered = int(body["usage"]["output_tokens"])
            if not (-_MOST <= asked <= _MOST and -_MOST <= answered <= _MOST):
                raise OverflowError(f"{asked} and {answered} tokens")
            return cls(
                text if text.isascii() else _encodable(text),
                model if model.isascii() else _encodable(model),
                stop_reason
                if stop_reason is None or stop_reason.isascii()
                else _encodable(stop_reason),
                asked,
                answered,
            )
        except (KeyError, TypeError, AttributeError, OverflowError) as error:
            raise ValueError(f"the response is not a message: {error!r}") from error


def _input_tokens(usage: Mapping[str, Any]) -> int:
    """All input tokens, those written to and read from a prompt cache among them."""
    new = int(usage.get("input_tokens") or 0)
    if "cache_creation_input_tokens" not in usage and "cache_read_input_tokens" not in usage:
        return new
    written = int(usage.get("cache_creation_input_tokens") or 0)
    return new + written + int(usage.get("cache_read_input_tokens") or 0)


def _encodable(text: str) -> str:
    """The text with lone surrogates replaced, so that it can be written as UTF-8."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


class Call(NamedTuple):
    """A request and its name within an episode."""

    key: CallKey
    request: Request
    if_cut_off: str | None = None
    """What a second asking adds where the first reply reached the limit of its length; `None`
    takes such a reply as it is."""


class Model(Protocol):
    """Whatever answers calls: the real endpoint, a recording, or a script."""

    async def reply(self, episode_id: str, call: Call) -> Reply:
        """Answer one call.

        Raises `CallFailed` if no reply can be had; the episode is then marked failed; `ReplayError`
        if a recording does not hold the call.
        """
        ...


# --- Question and reader -------------------------------------------------------------------------

T = TypeVar("T")


class Question(NamedTuple, Generic[T]):
    """A call to make and how its reply is read.

    question = Question(call, read_score, reminder="Reply with a number from 0 to 1.")
    [answer] = yield from ask([question])
    answer.value  # what `read_score` gave; None if neither reply could be read
    """

    call: Call
    read: Callable[[str], T | None]
    """Reads a reply; `None` means that it has to be asked for once more."""
    reminder: str
    """What the second asking adds to the message: the form that was expected."""
    salvage: Callable[[str], T | None] = lambda _: None
    """Reads what can be read of the second reply when `read` cannot."""


class Answer(NamedTuple, Generic[T]):
    """What a question got."""

    value: T | None
    """`None` when neither reply could be read or salvaged."""
    raw: str
    """The last reply."""
    raw_first: str | None
    """The first reply, when it had to be asked for again."""
    salvaged: bool
    attempts: int

    @property
    def status(self) -> ReadStatus:
        """How the reply could be read, as logs have it."""
        if self.value is None:
            return "missing"
        return "repaired" if self.salvaged else "valid"


# --- Json bodies ---------------------------------------------------------------------------------

_BOM: Final = "\ufeff"


def json_value(body: str | bytes) -> Any:
    """Parse JSON in UTF-8; a byte order mark before it does not count.

    Escaped lone surrogates, which the fast parser refuses, are let through. `ValueError` if the
    body is no JSON in UTF-8.
    """
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError:
        pass
    text = body.decode() if isinstance(body, bytes) else body
    try:
        return json.loads(text.removeprefix(_BOM), parse_constant=_no_constant)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")
