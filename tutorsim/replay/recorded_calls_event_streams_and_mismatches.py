"""One recorded call, what readers and writers agree on, and where two requests first differ.

Event streams are kept as their events; here is whether all came, and what credentials are in them.
"""

import hashlib
import json
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

import orjson

from tutorsim.errors import (
    ChangedCallError,
    MissingCallError,
    RecordingError,
    UnusedCallError,
    UsageError,
)
from tutorsim.model import CALL_HEADER, Call, Reply, json_value
from tutorsim.replay.durable_files_folder_lock_key_leaks import json_strings, redacted
from tutorsim.vocabularies import ProvenanceKind

# --- Event streams -------------------------------------------------------------------------------

STOPPED_HEADER: Final = "x-tutorsim-stopped"
"""Response header of a stream of which only the events are kept that its reader read."""
_GAP: Final = re.compile(rb"(?<=\n\n)|(?<=\r\n\r\n)|(?<=\r\r)")
_ENDS: Final = re.compile(
    rb"^data: ?\[DONE\]"  # OpenAI chat completions, Mistral
    rb"|^event: ?message_stop"  # Anthropic
    rb'|"type": ?"response\.(?:completed|incomplete)"'  # OpenAI responses
    rb'|"finishReason": ?"',  # Google
    re.MULTILINE,
)
_FAILED: Final = re.compile(
    rb'^event: ?error|^data: ?\{\s*"error"|^data: ?\{"type": ?"(?:error|response\.failed)"',
    re.MULTILINE,
)
_ENDING_IN_A_WORD: Final = (
    "/chat/completions",
    "/messages",
    "/responses",
    ":streamGenerateContent",
)
"""Endpoints whose streams have a last event of their own; others end when the body ends."""
_DATA: Final = re.compile(r"^(data: ?)([\[{].*)$", re.MULTILINE)


def is_event_stream(content_type: str) -> bool:
    """Whether a response of this type is a stream of server-sent events."""
    return content_type.lower().startswith("text/event-stream")


def split_events(body: bytes) -> list[bytes]:
    """The events of a stream, each with the empty line after it; what follows the last one too."""
    return [event for event in _GAP.split(body) if event]


def is_ended(body: bytes) -> bool:
    """Whether the last event that the protocol has was received."""
    return _ENDS.search(body) is not None and body.endswith((b"\n\n", b"\r\n\r\n", b"\r\r"))


def why_not_whole(path: str, body: bytes, *, stopped: bool) -> str | None:
    """Why a stream is no success; `None` where it is one.

    `stopped`: its reader stopped, so that no last event is expected.
    """
    if _FAILED.search(body):
        return "it tells of an error"
    if not stopped and path.endswith(_ENDING_IN_A_WORD) and not is_ended(body):
        return "it ends before its last event"
    return None


def redacted_events(text: str, secrets: Sequence[str]) -> str:
    """The text of an event stream with secrets taken out of each event's data."""
    return _DATA.sub(lambda found: found[1] + _redacted_data(found[2], secrets), text)


def _redacted_data(data: str, secrets: Sequence[str]) -> str:
    return data if _value(data) is None else redacted(data, secrets)


def said_in_parts(text: str) -> str:
    """The texts of all events, those in the same place joined, so that none is cut in two."""
    joined: defaultdict[str, str] = defaultdict(str)
    for found in _DATA.finditer(text):
        for place, part in json_strings(_value(found[2]), ""):
            joined[place] += part
    return "\n".join(joined.values())


def response_values(text: str, content_type: str) -> list[Any]:
    """The JSON values of a response: that of its body, or those of its events."""
    if not is_event_stream(content_type):
        return [json_value(text)] if text else []
    values = (_value(found[2]) for found in _DATA.finditer(text))
    return [value for value in values if value is not None]


def _value(data: str) -> Any:
    try:
        return json_value(data)
    except ValueError:
        return None  # `[DONE]`, or an event of several lines


# --- First difference ----------------------------------------------------------------------------

AROUND: Final = 30
"""Characters shown on each side of the first differing one."""
SHOWN: Final = 80
"""Characters shown of a value that is not a text."""


def first_difference(recorded: Any, asked: Any) -> str:
    """Describe the first difference: field, place in it, and the text around it from both sides.

    Fields are visited in sorted order. Texts are shown escaped, so that nothing in them acts on
    a terminal.
    """
    return _difference("", recorded, asked) or "The values are equal."


def _difference(path: str, recorded: Any, asked: Any) -> str | None:
    if type(recorded) is not type(asked):
        return None if recorded == asked else _values(path, recorded, asked)
    if isinstance(recorded, dict):
        return _in_fields(path, recorded, asked)
    if isinstance(recorded, list):
        return _in_items(path, recorded, asked)
    if recorded == asked:
        return None
    if isinstance(recorded, str):
        return _texts(path, recorded, asked)
    return _values(path, recorded, asked)


def _in_fields(path: str, recorded: dict[str, Any], asked: dict[str, Any]) -> str | None:
    for name in sorted(recorded.keys() | asked.keys()):
        field = f"{path}.{name}" if path else name
        if name not in asked:
            return f"{field} is in the recording only: {_short(recorded[name])}."
        if name not in recorded:
            return f"{field} is in this call only: {_short(asked[name])}."
        if found := _difference(field, recorded[name], asked[name]):
            return found
    return None


def _in_items(path: str, recorded: list[Any], asked: list[Any]) -> str | None:
    for index, (old, new) in enumerate(zip(recorded, asked, strict=False)):
        if found := _difference(f"{path}[{index}]", old, new):
            return found
    if len(recorded) != len(asked):
        return f"{path} has {len(recorded)} items in the recording and {len(asked)} in this call."
    return None


def _texts(path: str, recorded: str, asked: str) -> str:
    at = first_place(recorded, asked)
    return (
        f"{path or 'The value'} differs at character {at} "
        f"(of {len(recorded)} recorded, {len(asked)} in this call): "
        f"recorded {around(recorded, at)}, now {around(asked, at)}."
    )


def first_place(recorded: str, asked: str) -> int:
    """Index of the first character that differs, or at which one of the texts ends."""
    pairs = zip(recorded, asked, strict=False)
    shorter = min(len(recorded), len(asked))
    return next((i for i, (old, new) in enumerate(pairs) if old != new), shorter)


def around(text: str, at: int) -> str:
    """The text around a place, escaped so that nothing in it acts on a terminal."""
    start, end = max(0, at - AROUND), at + AROUND
    before, after = "…" if start else "", "…" if end < len(text) else ""
    return before + repr(text[start:end]) + after


def _values(path: str, recorded: Any, asked: Any) -> str:
    return f"{path or 'The value'}: recorded {_short(recorded)}, now {_short(asked)}."


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= SHOWN else text[:SHOWN] + "…"


# --- Recorded call -------------------------------------------------------------------------------

STANDIN_HEADER: Final = "x-tutorsim-standin"
REQUEST_HEADERS: Final = ("content-type", "anthropic-version", CALL_HEADER)
RESPONSE_HEADERS: Final = ("content-type", STANDIN_HEADER, STOPPED_HEADER)
MESSAGES_URI: Final = "https://api.anthropic.com/v1/messages"
"""Where every recorded call says it went, so that stock vcrpy and the stock SDK find it."""
_EPISODE_ID: Final = re.compile(r"[A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]+){3,6}")


class Interaction(NamedTuple):
    """A request and the reply to it."""

    key: str
    """`turn/stage/agent/attempt`, as in the call header after the episode."""
    kind: ProvenanceKind
    """What answered."""
    status: int
    request_headers: dict[str, str]
    request: str
    """The request's body."""
    response_headers: dict[str, str]
    response: str
    """The response's body; a Messages API message where the URI is that API's."""
    method: str = "POST"
    uri: str = MESSAGES_URI

    def reply(self) -> Reply:
        """Read the reply. `ValueError` if the body is no message."""
        return Reply.from_body(json_value(self.response))


def kept(headers: Mapping[str, str], allowed: Iterable[str]) -> dict[str, str]:
    """The headers on an allow-list, in its order."""
    return {name: value for name in allowed if (value := headers.get(name)) is not None}


def is_episode_id(text: str) -> bool:
    """Whether a text is `benchmark.task.variant.condition[.factor][.rNN][.cNN]`.

    Such a text is a safe file name.
    """
    return _EPISODE_ID.fullmatch(text) is not None


def check_episode_id(text: str) -> None:
    """Refuse a name that could leave its folder."""
    if not is_episode_id(text):
        raise UsageError(
            f"{text!r} is not an episode id.",
            why="An id is benchmark.task.variant.condition[.factor][.rNN][.cNN], its parts of "
            "A-Za-z0-9_-.",
        )


def cassette_name(episode_id: str) -> str:
    """File name of an episode's cassette."""
    return f"{episode_id}.json"


_canonical: Final = json.JSONEncoder(sort_keys=True, separators=(",", ":")).encode
"""One spelling of a JSON value; an encoder made for each request takes a seventh more."""


def requests_digest(requests: Iterable[tuple[str, str]]) -> str:
    """SHA-256 over keys and request bodies, in order; the spelling of the JSON does not count."""
    digest = hashlib.sha256()
    for key, body in requests:
        digest.update(f"{key}\n{_canonical(json_value(body))}\n".encode())
    return digest.hexdigest()


def request_value(cassette: str, one: Interaction) -> dict[str, Any]:
    """The JSON value of a recorded request."""
    try:
        value = json_value(one.request)
        if not isinstance(value, dict):
            raise ValueError("It is a value of another kind.")
        return value
    except ValueError as error:
        raise RecordingError(
            f"{cassette}: the request of call {one.key} is no JSON object.",
            why=str(error),
            hint="Restore the file from version control, or record again into a new folder.",
        ) from error


def check_same(cassette: str, recorded: Interaction, call: Call) -> None:
    """Hold a call against the recorded request with its key; their JSON values must be equal.

    The recorded text is parsed only where it is not the very text that the client sends.
    `ChangedCallError` names cassette, key, field, place and the text around it.
    """
    asked = call.request.body()
    try:
        if recorded.request == orjson.dumps(asked).decode():
            return
    except orjson.JSONEncodeError:
        pass  # only the client can spell it
    check_same_value(cassette, recorded, asked)


def check_same_value(cassette: str, recorded: Interaction, asked: Any) -> None:
    """Refuse a request whose body has another JSON value than the recorded one."""
    stored = request_value(cassette, recorded)
    if stored == asked:
        return
    raise ChangedCallError(
        f"{cassette}: call {recorded.key} was recorded with another request.",
        why=first_difference(stored, asked),
        hint="Replay with the study, prompts and tasks of the recording, "
        "or record into a new folder with `tutorsim run`.",
    )


def missing(cassette: str, key: str, *, held: Iterable[str], played: bool) -> MissingCallError:
    """The error for a call that a cassette cannot answer.

    `played`: the cassette has the key and was asked for it before.
    """
    keys = list(held)
    stage = key.rsplit("/", 2)[0] + "/"
    near = [other for other in keys if other.startswith(stage)] or keys[-3:]
    if played:
        why = "Its one reply was already used in this replay."
    else:
        why = f"The cassette holds {len(keys)} calls" + (
            f": {', '.join(near[:3])} …" if near else "."
        )
    return MissingCallError(
        f"{cassette}: call {key} is not in the recording.",
        why=why,
        hint="Replay with the study, prompts and tasks of the recording, "
        "or record the missing calls with `tutorsim run`.",
    )


def unused_error(cassette: str, keys: tuple[str, ...]) -> UnusedCallError:
    """The error for entries that a whole replay never asked for."""
    return UnusedCallError(
        f"{cassette}: recorded calls were never asked for, the first is {keys[0]}.",
        why=f"The replay took another path than the recording; calls left: {len(keys)}.",
        hint="Replay with the study, prompts and tasks of the recording.",
    )
