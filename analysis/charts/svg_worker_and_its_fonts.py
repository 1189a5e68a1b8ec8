"""The renderer of charts: a Vega-Lite specification to SVG, without a browser or a network.

A page is drawn by a process of its own, which loads nothing but the renderer, while Python counts.
A second one would start for as long as it saves.

The renderer measures each text with the font file that the machine has for it, which it opens some
twenty times a text. The process sees no font but those that the renderer brings: it draws twice as
fast, and the same on every machine. What their alphabets lack is drawn by this process, with all
fonts of the machine.
"""

import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from subprocess import PIPE, Popen
from tempfile import TemporaryFile
from typing import IO, Any, Final

import vl_convert

Run = Callable[[Iterable[dict[str, Any]]], list[str]]
"""Draws specifications, each once it is made, and gives the drawings in order."""

_PROGRAM: Final = """
import sys, vl_convert
for spec in sys.stdin:
    drawing = vl_convert.vegalite_to_svg(spec, vl_version=sys.argv[1])
    print(drawing, end="\\0", flush=True)
"""
"""What the process runs: a specification on each line, a drawing before each null."""

_FIRST: Final = {"data": {"values": [{}]}, "mark": "text", "encoding": {"text": {"value": "a"}}}
"""What the renderer starts on: a chart with text, so that it finds its fonts."""

_ENVIRONMENT: Final = {
    "FONTCONFIG_FILE": str(Path(__file__).with_name("no_fonts.conf")),
    "PYTHONPATH": str(Path(vl_convert.__file__).parents[1]),  # it looks for no other package
}
_LAST: Final = "\u04ff"
"""Last letter that the renderer's own fonts have; all are at the beginning of Unicode."""
_SIGNS: Final = range(0x2000, 0x2600)
"""Dashes, quotation marks, arrows, signs of arithmetic and shapes, which they have too."""


def svg(spec: dict[str, Any], *, version: str) -> str:
    """Draw a specification."""
    drawn: str = vl_convert.vegalite_to_svg(spec, vl_version=version)
    return drawn


@contextmanager
def drawers(*, version: str) -> Iterator[Run]:
    """A process that draws, started at once: it is ready by the time there is a chart."""
    with TemporaryFile() as drawings:
        try:
            process = Popen(
                [sys.executable, "-SP", "-X", "utf8", "-c", _PROGRAM, version],
                bufsize=0,
                stdin=PIPE,
                stdout=drawings,
                env={**os.environ, **_ENVIRONMENT},
                start_new_session=True,  # Ctrl-C ends the main process, and it this one
            )
        except OSError:
            yield partial(_drawn, None, drawings, version)
            return
        with process:
            try:
                _asked(process, _FIRST)
                yield partial(_drawn, process, drawings, version)
            finally:
                process.terminate()


def _drawn(
    process: Popen[bytes] | None, drawings: IO[bytes], version: str, specs: Iterable[dict[str, Any]]
) -> list[str]:
    """What the process drew, in order; where it cannot start or was killed, this one draws."""
    asked = [(spec, _asked(process, spec)) for spec in specs]
    if process is not None:
        process.communicate()
    drawings.seek(0)
    made = iter(drawings.read().decode().split("\0")[1:-1])
    return [(next(made, "") if sent else "") or svg(spec, version=version) for spec, sent in asked]


def _asked(process: Popen[bytes] | None, spec: dict[str, Any]) -> bool:
    """Whether the process got a specification: its own fonts need every letter."""
    text = json.dumps(spec, ensure_ascii=False)
    if process is None or process.stdin is None or not _in_its_fonts(text):
        return False
    with suppress(BrokenPipeError):
        process.stdin.write(f"{text}\n".encode())
        return True
    return False


def _in_its_fonts(text: str) -> bool:
    """Whether the renderer's own fonts have every letter of a text."""
    return all(letter <= _LAST or ord(letter) in _SIGNS for letter in set(text))
