"""What an HTTP exchange with the stand-in consists of on its side: responses and refusals."""

from collections.abc import Mapping
from dataclasses import dataclass

import orjson

_ERROR_TYPES: Mapping[int, str] = {
    400: "invalid_request_error",
    404: "not_found_error",
    405: "invalid_request_error",
    411: "invalid_request_error",
    413: "request_too_large",
    429: "rate_limit_error",
    431: "invalid_request_error",
    500: "api_error",
    529: "overloaded_error",
}


@dataclass(frozen=True)
class Response:
    """What to send back, and how badly."""

    status: int
    body: bytes
    request_id: str
    headers: tuple[tuple[str, str], ...] = ()
    content_type: str = "application/json"
    delay: float = 0.0
    """Seconds to wait before sending."""
    kept: float = 1.0
    """Share of the response to send before the connection closes; 1 sends all, 0 nothing."""


class Problem(Exception):
    """A request that is refused, with the status and the words of the refusal."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.message = message


def error_value(status: int, message: str) -> dict[str, str]:
    """What went wrong, as the API says it."""
    return {"type": _ERROR_TYPES[status], "message": message}


def error_response(
    status: int, message: str, request_id: str, headers: tuple[tuple[str, str], ...] = ()
) -> Response:
    """An error in the API's own shape."""
    error = error_value(status, message)
    body = orjson.dumps({"type": "error", "error": error, "request_id": request_id})
    return Response(status, body, request_id, headers)
