"""Why a call failed on its way, in words that are the same on every machine."""

from typing import Final

import httpx2

from tutorsim.errors import Away

__all__ = ["OF_THE_MOMENT", "NotAMessage", "away", "connection_text"]

_NOBODY: Final = "The connection failed: nothing answers at the endpoint's address"
_CLOSED: Final = "The connection failed: it was closed without a reply"
_CUT: Final = "The connection failed: the reply was cut off"
_BROKEN: Final = "The connection failed: it broke"
_BEFORE: Final = "The connection failed or the reply was cut off"
"""What earlier versions said of all of these."""
_BUSY: Final = (429, 503, 529)
"""Statuses by which an endpoint says that it has too much to do."""
_PASSING: Final = (408, 409)
"""Further statuses below 500 that are of the moment and not of the call."""
OF_THE_MOMENT: Final = (
    *(_NOBODY, _CLOSED, _CUT, _BROKEN, _BEFORE),
    *(f"HTTP {status}" for status in (*_PASSING, 429)),
    "HTTP 5",
)
"""How the error of an episode begins that may not fail when the same call is made later."""


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


def away(cause: BaseException | None, status: int = 0) -> Away | None:
    """Why the same call may be answered later; `None` where it may not.

    Args:
        cause: What came between; `None` where a reply came.
        status: Of the reply; 0 where none came.
    """
    if status in _BUSY:
        return "busy"
    match cause:
        case NotAMessage() | httpx2.ReadTimeout():
            return None
        case httpx2.ConnectError() | httpx2.ConnectTimeout():
            return "nobody"
        case httpx2.TransportError():
            return "broken"
    return "broken" if status >= 500 or status in _PASSING else None
