"""The one way in which bodies are parsed: live, from a journal, and by every reader of a recording.

The same bytes give the same value, or are refused, wherever they are parsed.
"""

import json
from typing import Any, Final, NoReturn

import orjson

__all__ = ["json_value"]

_BOM: Final = "\ufeff"


def json_value(body: str | bytes) -> Any:
    """Parse JSON in UTF-8; a byte order mark before it does not count.

    Escaped lone surrogates, which the fast parser refuses, are let through.

    Raises:
        ValueError: If the body is not JSON in UTF-8.
    """
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError:
        pass
    text = body.decode() if isinstance(body, bytes) else body
    try:
        return json.loads(text.removeprefix(_BOM), parse_constant=_no_constant)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")
