"""The short names that calls have in a batch.

An entry of a batch has no headers, and its `custom_id` takes 64 characters; `<episode>/<key>` can
be longer. So an entry is named by three parts: 32 digits for the call, 16 for its request, and 14
for the batch that it was sent in. They tell whose reply a result is, that it answers the very
request that is asked now, and which submission a batch came from whose id was never written down.
"""

import hashlib
import secrets
from typing import Final, NamedTuple

__all__ = ["CustomId", "call_digest", "new_mark"]

_CALL: Final = 32
_REQUEST: Final = 16
_MARK: Final = 14


def call_digest(name: str) -> str:
    """32 hexadecimal digits that stand for `<episode>/<key>`."""
    return _hexadecimal(name)[:_CALL]


def new_mark() -> str:
    """14 hexadecimal digits that no other submission has."""
    return secrets.token_hex(_MARK // 2)


class CustomId(NamedTuple):
    """What a `custom_id` says."""

    call: str
    """Digest of the call's name."""
    request: str
    """Digest of the request's body, as it is sent."""
    mark: str
    """Of the submission."""

    def __str__(self) -> str:
        return "-".join(self)

    @classmethod
    def of(cls, call: str, request: str, mark: str) -> "CustomId":
        """Name an entry.

        Args:
            call: `<episode>/<key>`.
            request: The request's body, as it is sent.
            mark: From `new_mark`.
        """
        return cls(call_digest(call), _hexadecimal(request)[:_REQUEST], mark)

    @classmethod
    def parse(cls, text: str) -> "CustomId | None":
        """Read an id back; `None` where it is another's."""
        parts = text.split("-")
        return cls(*parts) if [len(part) for part in parts] == [_CALL, _REQUEST, _MARK] else None


def _hexadecimal(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
