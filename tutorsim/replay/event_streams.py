"""Event streams as recordings keep them: their events, whether all came, credentials in them."""

import re
from collections import defaultdict
from collections.abc import Sequence
from typing import Any, Final

from tutorsim.model import json_value
from tutorsim.replay.safe_files import json_strings, redacted

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
    """As `redacted`, for the data of each event."""
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
