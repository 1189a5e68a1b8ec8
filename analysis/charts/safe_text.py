"""How text that a model or a stranger wrote may stand on a page."""

import re
from typing import Final

__all__ = ["shown"]

_DIRECTIONS: Final = "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"
_HIDDEN = re.compile(f"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\ufeff\ud800-\udfff{_DIRECTIONS}]")


def shown(text: str) -> str:
    """The text with characters that nobody can see made visible.

    Controls, half surrogates and marks that turn the direction of text become `\\xNN` or
    `\\uNNNN`, so that a page reads as it was written; line ends, tabs and the joiners inside
    letters and emoji stay. Markup is the template's business, which escapes everything.
    """
    return _HIDDEN.sub(_code, text.replace("\r\n", "\n"))


def _code(found: re.Match[str]) -> str:
    code = ord(found[0])
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"
