"""Consoles, and the rule for text that a model wrote: shown, never interpreted."""

import json
import os
import sys
import unicodedata
from typing import Any

from rich.console import Console
from rich.text import Text

from tutorsim.errors import TutorsimError

__all__ = ["emit_json", "err", "out", "safe", "show_error"]


def _width(stream: Any) -> int | None:
    """The terminal's own width; 100 columns where there is no terminal to ask."""
    if stream.isatty() or os.environ.get("COLUMNS"):
        return None
    return 100


def out() -> Console:
    """The console for results, on stdout: plain text when it is not a terminal."""
    return Console(highlight=False, width=_width(sys.stdout))


def err() -> Console:
    """The console for progress and warnings, on stderr."""
    return Console(stderr=True, highlight=False, width=_width(sys.stderr))


def safe(text: str) -> Text:
    """Untrusted text for a console.

    Markup is not read. Control characters, escapes and direction marks are shown as
    `\\xNN` or `\\uNNNN`; line ends and tabs stay.
    """
    return Text("".join(_visible(char) for char in text))


def _visible(char: str) -> str:
    if char in "\n\t":
        return char
    if unicodedata.category(char) in ("Cc", "Cf", "Cs", "Co", "Zl", "Zp"):
        code = ord(char)
        if code > 0xFFFF:
            return f"\\U{code:08x}"
        return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"
    return char


def emit_json(value: Any) -> None:
    """Write a value as JSON to stdout, keys as given, one line end at the end."""
    sys.stdout.write(json.dumps(value, ensure_ascii=False, indent=2, allow_nan=False) + "\n")


def show_error(error: TutorsimError) -> None:
    """Show what happened, why, and what to do, on stderr."""
    console = err()
    console.print(Text("Error: ", style="bold red") + safe(error.what))
    for part, style in ((error.why, ""), (error.hint, "green")):
        if part:
            text = safe(part)
            text.stylize(style or "none")
            console.print(text)
