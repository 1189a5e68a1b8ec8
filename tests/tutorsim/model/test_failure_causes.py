"""Each thing that comes between a request and its reply has words of its own."""

import httpx2
import pytest

from tutorsim.model.sdk import OF_THE_MOMENT, NotAMessage, away, connection_text

REQUEST = httpx2.Request("POST", "http://127.0.0.1/")
CAUSES = {
    "dead server": httpx2.ConnectError("[Errno 111] 127.0.0.1:4242"),
    "closed": httpx2.RemoteProtocolError("Server disconnected without sending a response."),
    "cut": httpx2.RemoteProtocolError(
        "peer closed connection without sending complete message body (received 3 bytes)"
    ),
    "reset": httpx2.ReadError("[Errno 104]"),
    "page": NotAMessage(b" <!doctype html>", "text/plain", REQUEST),
    "other": NotAMessage(b'{"type": "other"}', "application/json", REQUEST),
}


def test_no_two_causes_share_their_words_and_none_names_a_host():
    texts = {name: connection_text(cause) for name, cause in CAUSES.items()}
    assert len(set(texts.values())) == len(CAUSES)
    assert texts["page"] == "The reply is not a message but a page"
    assert texts["other"] == "The reply is not a message"
    assert not any(char in text for text in texts.values() for char in "0123456789")


@pytest.mark.parametrize("name", CAUSES)
def test_what_never_reached_the_endpoint_is_known_by_its_words(name):
    reached = name in ("page", "other")
    assert connection_text(CAUSES[name]).startswith(OF_THE_MOMENT) is not reached


def test_why_a_call_may_be_answered_later_is_known_by_its_cause_or_status():
    broken = dict.fromkeys(("closed", "cut", "reset"), "broken")
    assert {name: why for name, cause in CAUSES.items() if (why := away(cause))} == {
        "dead server": "nobody",
        **broken,
    }
    assert away(httpx2.ConnectTimeout("x")) == "nobody"
    assert away(httpx2.ReadTimeout("x")) is None
    statuses = (400, 401, 404, 408, 409, 413, 422, 429, 500, 502, 503, 504, 520, 529)
    found = {status: why for status in statuses if (why := away(None, status))}
    assert found == {
        **dict.fromkeys((408, 409, 500, 502, 504, 520), "broken"),
        **dict.fromkeys((429, 503, 529), "busy"),
    }
    texts = {status: f"HTTP {status}, some_error: no." for status in statuses}
    assert {s for s, text in texts.items() if text.startswith(OF_THE_MOMENT)} == set(found)
