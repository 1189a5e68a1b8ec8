"""The first difference of two JSON values, in one sentence."""

import asyncio
import json
from typing import Any

import httpx2
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tutorsim.errors import CallFailed
from tutorsim.model import Call, CallKey, Reply, Request, json_value
from tutorsim.model.sdk_model_and_reasons_of_failed_calls import SdkModel
from tutorsim.replay.recorded_calls_event_streams_and_mismatches import (
    Interaction,
    first_difference,
)


@pytest.mark.parametrize(
    ("recorded", "asked", "told"),
    [
        ({"a": [1, 2]}, {"a": [1, 3]}, "a[1]: recorded 2, now 3."),
        ({"a": [1]}, {"a": [1, 2]}, "a has 1 items in the recording and 2 in this call."),
        ({"a": "1"}, {"a": 1}, "a: recorded '1', now 1."),
        ({"a": 1}, {"a": 1.0}, "The values are equal."),
        ("\x1b[31m", "\x1b[32m", "recorded '\\x1b[31m', now '\\x1b[32m'."),
        ("x" * 99 + "a" + "y" * 99, "x" * 99 + "b" + "y" * 99,
         f"recorded …'{'x' * 30}a{'y' * 29}'…, now …'{'x' * 30}b{'y' * 29}'…."),
        ({"a": ["z" * 500]}, {"a": 1}, "…, now 1."),
    ],
)  # fmt: skip
def test_the_first_difference_is_described(recorded, asked, told):
    assert first_difference(recorded, asked).endswith(told)


# --- The same bytes are read the same way live, from a journal and by both readers ----------------

MESSAGE: dict[str, Any] = {
    "type": "message",
    "model": "m",
    "content": [{"type": "text", "text": "fine"}],
    "stop_reason": "end_turn",
    "usage": {"input_tokens": 3, "output_tokens": 4},
}
CALL = Call(CallKey(0, "student", "student", 1), Request("m", "s", "u", 9))
COUNTS = st.one_of(
    st.integers(-(2**70), 2**70),
    st.floats(allow_nan=True, allow_infinity=True),
    st.sampled_from([2**63 - 1, 2**63, 2**64, 10**400, True, None, "7", "x"]),
)
TEXTS = st.one_of(
    st.text(st.characters(codec=None), max_size=20),
    st.sampled_from(["\ufeff", "\ud800", "a\udfff", "\x00", "\u2028", "𝔘"]),
)
BEFORE = st.sampled_from(
    [b"", b"\xef\xbb\xbf", b" \n", b"\xef\xbb\xbf ", b"\xff\xfe", b"\xef\xbb\xbf" * 2]
)
BEHIND = st.sampled_from([b"", b"\n", b"\x00", b"{}", b"\xff"])


class Answering(httpx2.AsyncBaseTransport):
    def __init__(self, body):
        self.body = body

    async def handle_async_request(self, request):
        return httpx2.Response(200, content=self.body)


def live(body):
    async def ask():
        async with SdkModel(transport=Answering(body), placeholder="x", max_retries=0) as model:
            return await model.reply("e", CALL)

    try:
        return asyncio.run(ask())
    except CallFailed:
        return None


def replayed(body):
    """As a recording keeps it: text, in a JSON file and read back."""
    try:
        text = json.loads(json.dumps(body.decode()))
        return Interaction("k", "relay", 200, {}, "{}", {}, text).reply()
    except ValueError:
        return None


@given(TEXTS, COUNTS, COUNTS, BEFORE, BEHIND, st.booleans())
@example("a", 3, 4, b"\xef\xbb\xbf", b"", True)
@example("a", 2**64, 4, b"", b"", True)
@example("a", 3, 10**400, b"", b"", True)
def test_live_and_replay_read_a_body_alike(text, asked, answered, before, behind, ascii_only):
    usage = {"input_tokens": asked, "output_tokens": answered}
    value = {**MESSAGE, "content": [{"type": "text", "text": text}], "usage": usage}
    written = json.dumps(value, ensure_ascii=ascii_only)
    body = before + written.encode("utf-8", "surrogatepass") + behind
    assert live(body) == replayed(body)


def test_a_byte_order_mark_does_not_count():
    body = b"\xef\xbb\xbf" + json.dumps(MESSAGE).encode()
    assert json_value(body) == json_value(body.decode()) == MESSAGE
    assert live(body) == Reply("fine", "m", "end_turn", 3, 4)


@pytest.mark.parametrize("tokens", [2**63, -(2**63), 10**30, 1e30])
def test_more_tokens_than_tables_hold_are_no_message(tokens):
    usage = {"input_tokens": 1, "output_tokens": tokens}
    with pytest.raises(ValueError, match="not a message"):
        Reply.from_body({**MESSAGE, "usage": usage})


@pytest.mark.parametrize("body", [b"NaN", b"[" * 100_000, b"\xff", b"", "{'a': 1}"])
def test_what_is_no_json_is_refused(body):
    with pytest.raises(ValueError):
        json_value(body)
