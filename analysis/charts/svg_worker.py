"""The renderer of charts: a Vega-Lite specification to SVG, without a browser or a network.

A page is drawn by a process of its own, which imports nothing but this module, while Python counts.
A second one would start for as long as it saves.

The renderer measures each text with the font file that the machine has for it, which it opens some
twenty times a text. The process sees no font but those that the renderer brings: it draws twice as
fast, and the same on every machine. What their alphabets lack is drawn by this process, with all
fonts of the machine.
"""

import json
import os
import signal
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, suppress
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any, Final

import vl_convert

Run = Callable[[Callable[[Any], str], Iterable[Any]], Iterable[str]]
"""Applies a function to each thing and gives the results in order: `map` is one."""

_FIRST: Final = {"data": {"values": [{}]}, "mark": "text", "encoding": {"text": {"value": "a"}}}
"""What the renderer starts on: a chart with text, so that it finds its fonts."""

_NO_FONTS: Final = Path(__file__).with_name("no_fonts.conf")
_LAST: Final = "\u04ff"
"""Of the letters that the renderer's own fonts have, all at the beginning of Unicode."""
_SIGNS: Final = range(0x2000, 0x2600)
"""Dashes, quotation marks, arrows, signs of arithmetic and shapes, which they have too."""


def svg(spec: dict[str, Any], *, version: str) -> str:
    """Draw a specification."""
    drawn: str = vl_convert.vegalite_to_svg(spec, vl_version=version)
    return drawn


@contextmanager
def drawers(*, version: str) -> Iterator[Run]:
    """A process that draws, started at once: it is ready by the time there is a chart."""
    pool = ProcessPoolExecutor(
        1, mp_context=get_context("spawn"), initializer=_start, initargs=(version,)
    )
    try:
        pool.submit(len, ())  # a process starts with its first task
        yield partial(_drawn, pool)
    finally:
        pool.shutdown(cancel_futures=True)


def _drawn(
    pool: ProcessPoolExecutor, draw: Callable[[Any], str], things: Iterable[Any]
) -> Iterable[str]:
    """What the process drew, in order; where it cannot start or was killed, this one draws."""
    asked = [(thing, _asked(pool, draw, thing)) for thing in things]
    return [_result(drawing) or draw(thing) for thing, drawing in asked]


def _asked(pool: ProcessPoolExecutor, draw: Callable[[Any], str], thing: Any) -> Future[str] | None:
    with suppress(BrokenProcessPool):
        return pool.submit(draw, thing) if _in_its_fonts(thing) else None
    return None


def _result(drawing: Future[str] | None) -> str | None:
    with suppress(BrokenProcessPool):
        return None if drawing is None else drawing.result()
    return None


def _in_its_fonts(thing: Any) -> bool:
    """Whether the renderer's own fonts have every letter of a specification."""
    letters = set(json.dumps(thing, ensure_ascii=False))
    return all(letter <= _LAST or ord(letter) in _SIGNS for letter in letters)


def _start(version: str) -> None:
    os.environ["FONTCONFIG_FILE"] = str(_NO_FONTS)  # of this process alone
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C ends the main process, and it this one
    svg(_FIRST, version=version)
