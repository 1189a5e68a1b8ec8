"""Why a call failed on its way, in words that are the same on every machine."""

from typing import Final

import httpx2

__all__ = ["UNREACHABLE", "NotAMessage", "connection_text", "is_unreachable"]

_NOBODY: Final = "The connection failed: nothing answers at the endpoint's address"
_CLOSED: Final = "The connection failed: it was closed without a reply"
_CUT: Final = "The connection failed: the reply was cut off"
_BROKEN: Final = "The connection failed: it broke"
_BEFORE: Final = "The connection failed or the reply was cut off"
"""What earlier versions said of all of these."""
UNREACHABLE: Final = (_NOBODY, _CLOSED, _CUT, _BROKEN, _BEFORE, "HTTP 502", "HTTP 503", "HTTP 504")
"""How the error of an episode begins that failed because the endpoint was not reached."""
_AWAY: Final = (502, 503, 504)
"""Statuses that a relay gives while what is behind it does not answer."""


class NotAMessage(httpx2.RemoteProtocolError):
    """A reply that is whole and no message.

    Args:
        body: The reply.
        content_type: What it says that it is.
        request: What it answers.
    """

    def __init__(self, body: bytes, content_type: str, request: httpx2.Request) -> None:
        page = "html" in content_type.lower() or body.lstrip()[:1] == b"<"
        self.what = "The reply is not a message" + (" but a page" if page else "")
        super().__init__(self.what, request=request)


def connection_text(cause: BaseException | None) -> str:
    """What came between a request and its reply, without host or time."""
    match cause:
        case NotAMessage():
            return cause.what
        case httpx2.ConnectError() | httpx2.ConnectTimeout():
            return _NOBODY
        case httpx2.RemoteProtocolError():
            return _CUT if "incomplete" in str(cause) or "complete" in str(cause) else _CLOSED
        case _:
            return _BROKEN


def is_unreachable(cause: BaseException | None, status: int | None = None) -> bool:
    """Whether nothing answered at all, so that the same call may be answered later.

    Args:
        cause: What came between; `None` where a reply came.
        status: Of the reply.
    """
    return isinstance(cause, httpx2.ConnectError | httpx2.ConnectTimeout) or status in _AWAY
