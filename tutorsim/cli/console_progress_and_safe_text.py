"""Consoles, progress of long work, and text that a model wrote: shown, never interpreted."""

import errno
import io
import json
import os
import re
import sys
import time
import unicodedata
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Protocol, TextIO

import click

from tutorsim.errors import TutorsimError

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

PLAIN_WIDTH = 160
"""Columns of output that no terminal shows; a cell is seldom wrapped, so that it can be found."""


def _width(stream: Any) -> int | None:
    """The terminal's own width; wide enough for any table where there is no terminal to ask."""
    if stream.isatty() or os.environ.get("COLUMNS"):
        return None
    return PLAIN_WIDTH


def out() -> "Console":
    """The console for results, on stdout: plain text when it is not a terminal."""
    return console_for(sys.stdout)


def err() -> "Console":
    """The console for progress and warnings, on stderr; it says nothing under `--quiet`."""
    console = console_for(sys.stderr)
    console.quiet = _given("quiet")
    return console


def tell(text: str) -> None:
    """Say a line on stderr that a model may have a part in, as `safe` has it; nothing under
    `--quiet`.

    The line stays in one piece. No console is needed, and so none is loaded.
    """
    if not _given("quiet"):
        sys.stderr.write(f"{_all_visible(text)}\n")


_PASS_FOR_A_TERMINAL = ("FORCE_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE")
"""Variables by which a stream can count as a terminal that is none."""


def progress_shown() -> bool:
    """Whether progress is drawn: on a terminal, and not under `--quiet` or `--no-progress`."""
    if not sys.stderr.isatty() and not any(name in os.environ for name in _PASS_FOR_A_TERMINAL):
        return False
    console = err()
    return console.is_terminal and not console.quiet and not _given("no_progress")


@contextmanager
def working(text: str) -> Iterator[None]:
    """Say what takes long, while it does, where progress is drawn."""
    if not progress_shown():
        yield
        return
    with err().status(text):
        yield


def _given(option: str) -> bool:
    """Whether an option of the whole program was given."""
    context = click.get_current_context(silent=True)
    return context is not None and bool(context.find_root().params.get(option))


def console_for(stream: TextIO) -> "Console":
    """A console without markup, emoji codes or highlighting: a string is printed as it is.

    A closed pipe ends the command as any other end of output does.
    """
    from rich.console import Console

    class Ending(Console):
        def on_broken_pipe(self) -> None:
            raise BrokenPipeError(errno.EPIPE, "nobody reads the output any more")

    if isinstance(stream, io.TextIOWrapper):
        stream.reconfigure(errors="backslashreplace")
    return Ending(file=stream, highlight=False, markup=False, emoji=False, width=_width(stream))


def safe(text: str) -> "Text":
    """Untrusted text for a console.

    Markup is not read. Control characters, escapes and direction marks are shown as
    `\\xNN` or `\\uNNNN`; line ends and tabs stay.
    """
    from rich.text import Text

    return Text(_all_visible(text))


def listing(names: Sequence[str], *, last: str = "and") -> str:
    """`a`, `a and b`, `a, b and c`."""
    return f" {last} ".join(filter(None, (", ".join(names[:-1]), *names[-1:])))


def _all_visible(text: str) -> str:
    if text.replace("\n", "").replace("\t", "").isprintable():
        return text  # as most are; to look at each character takes ten times as long
    return "".join([_visible(char) for char in text])


def _visible(char: str) -> str:
    if char in "\n\t":
        return char
    if _is_hidden(char):
        code = ord(char)
        if code > 0xFFFF:
            return f"\\U{code:08x}"
        return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"
    return char


def _is_hidden(char: str) -> bool:
    """Controls, format and direction marks, surrogates, private use, line separators."""
    return unicodedata.category(char) in ("Cc", "Cf", "Cs", "Co", "Zl", "Zp")


def json_text(value: Any, *, ascii_only: bool = False) -> str:
    """A value as JSON, keys as given, ending with a line end.

    Characters that a terminal could obey or hide are written as `\\uXXXX`, so the text is safe
    to print and reads back as the same value.
    """
    text = json.dumps(value, ensure_ascii=ascii_only, indent=2, allow_nan=False)
    return re.sub(r"[^\n -~]", _escaped, text) + "\n"


def _escaped(match: re.Match[str]) -> str:
    char = match[0]
    if not _is_hidden(char):
        return char
    return json.dumps(char)[1:-1] if char > "\x7f" else f"\\u{ord(char):04x}"


def emit_json(value: Any) -> None:
    """Write a value as JSON to stdout, in ASCII where the stream takes no more; see `json_text`."""
    unicode = (sys.stdout.encoding or "").lower().startswith("utf")
    sys.stdout.write(json_text(value, ascii_only=not unicode))


def show_error(error: TutorsimError) -> None:
    """Show what happened, why, and what to do, on stderr; a part a line where nobody sees it.

    No credential is shown, wherever the error has it from.
    """
    from rich.text import Text

    from tutorsim.replay.durable_files_folder_lock_key_leaks import without_keys

    credentials = [
        os.environ.get(name, "") for name in ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN")
    ]
    what, why, hint = (
        safe(without_keys(part, credentials)) for part in (error.what, error.why, error.hint)
    )
    console = err()
    whole = not console.is_terminal
    console.print(Text("Error: ", style="bold red") + what, soft_wrap=whole)
    for part, style in ((why, "none"), (hint, "green")):
        if part:
            part.stylize(style)
            console.print(part, soft_wrap=whole)


# --- Progress ------------------------------------------------------------------------------------


class Count(Protocol):
    """Receives how far the work is."""

    def __call__(self, done: int, total: int, text: str = "") -> None:
        """Say that `done` of `total` are done, and what else there is to say."""


@contextmanager
def counted(what: str) -> Iterator[Count]:
    """A bar of `what`, with count, rate and expected end; nothing where no progress is drawn."""
    if not progress_shown():
        yield lambda done, total, text="": None
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    columns = (BarColumn(), MofNCompleteColumn(), TextColumn("{task.description}", markup=False))
    with Progress(*columns, console=err(), transient=True) as bar:
        task = bar.add_task(what, total=None)
        started, first = time.monotonic(), -1

        def update(done: int, total: int, text: str = "") -> None:
            nonlocal started, first
            if first < 0:  # what was there before says nothing about the pace
                started, first = time.monotonic(), done
            said = pace(done - first, total - done, time.monotonic() - started)
            words = " · ".join(part for part in (text or what, said) if part)
            bar.update(task, completed=done, total=total, description=words)

        yield update


def pace(done: int, left: int, seconds: float) -> str:
    """Rate and expected end in words, `done` being done in `seconds`; empty before anything was."""
    if done < 1 or seconds <= 0:
        return ""
    rate = done / seconds
    shown = f"{rate:.1f} a second" if rate >= 1 else f"{60 * rate:.1f} a minute"
    if left < 1:
        return shown
    minutes, rest = divmod(round(left / rate), 60)
    hours, minutes = divmod(minutes, 60)
    wait = f"{hours} h {minutes:02d} min" if hours else f"{minutes} min {rest:02d} s"
    return f"{shown} · {wait} left"
