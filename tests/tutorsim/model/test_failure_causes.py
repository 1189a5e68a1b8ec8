"""Each thing that comes between a request and its reply has words of its own."""

import httpx2
import pytest

from tutorsim.model.failure_causes import UNREACHABLE, NotAMessage, connection_text, is_unreachable

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


def test_no_two_causes_share_their_words_and_none_names_a_host() -> None:
    texts = {name: connection_text(cause) for name, cause in CAUSES.items()}
    assert len(set(texts.values())) == len(CAUSES)
    assert texts["page"] == "The reply is not a message but a page"
    assert texts["other"] == "The reply is not a message"
    assert not any(char in text for text in texts.values() for char in "0123456789")


@pytest.mark.parametrize("name", CAUSES)
def test_what_never_reached_the_endpoint_is_known_by_its_words(name: str) -> None:
    reached = name in ("page", "other")
    assert connection_text(CAUSES[name]).startswith(UNREACHABLE) is not reached


def test_only_what_answers_nothing_at_all_is_waited_for() -> None:
    assert {name for name, cause in CAUSES.items() if is_unreachable(cause)} == {"dead server"}
    assert is_unreachable(httpx2.ConnectTimeout("x"))
    assert [
        status for status in (400, 429, 500, 502, 503, 504, 529) if is_unreachable(None, status)
    ] == [
        502,
        503,
        504,
    ]
