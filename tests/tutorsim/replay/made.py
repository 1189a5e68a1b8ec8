"""Messages, calls and cassettes made for tests of recordings."""

import json

from tutorsim.model import CALL_HEADER, Call, CallKey, Request
from tutorsim.replay import read_cassette
from tutorsim.replay.cassette_file import write_cassette
from tutorsim.replay.recorded_calls_event_streams_and_mismatches import Interaction

EPISODE = "sciq.q1.help_avoidant.simple"
KEY = "sk-ant-test-0123456789-credential"
DIGEST = "0" * 64


def message(text, **fields):
    """The body of a Messages API response with a text."""
    return {
        "id": "msg_1", "type": "message", "role": "assistant", "model": "model-1",
        "content": [{"type": "text", "text": text}],
        "stop_reason": "end_turn", "stop_sequence": None,
        "usage": {"input_tokens": 7, "output_tokens": 3},
        **fields,
    }  # fmt: skip


def call(text, *, agent="motivation", turn=1):
    """A call with a user message."""
    key = CallKey(turn, "propose", agent, 1)
    return Call(key, Request("model-1", "You tutor.", text, 64, (("temperature", 0.5),)))


def interaction(call, body, episode_id=EPISODE):
    """What a recorder would keep of a call and a response body."""
    return Interaction(
        key=str(call.key), kind="relay", status=200,
        request_headers={"content-type": "application/json",
                         CALL_HEADER: f"{episode_id}/{call.key}"},
        request=json.dumps(call.request.body(), ensure_ascii=False),
        response_headers={"content-type": "application/json"},
        response=json.dumps(body, ensure_ascii=False),
    )  # fmt: skip


def write(folder, interactions, episode_id=EPISODE):
    """Write a cassette without a server and read it back."""
    write_cassette(
        folder, episode_id, interactions, kind="relay", study_digest=DIGEST,
        packages={"tutorsim": "1"},
    )  # fmt: skip
    return read_cassette(folder, episode_id)
