"""The renderer of charts: a Vega-Lite specification to SVG, without a browser or a network.

It takes a second to start and then draws one chart after another, while Python waits. So a page
is drawn by a process of its own, which imports nothing but this module. A second one would start
for as long as it saves.
"""

import os
import signal
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from functools import partial
from itertools import chain
from multiprocessing import get_context
from typing import Any, Final

import vl_convert

Run = Callable[[Callable[[Any], str], Iterable[Any]], Iterable[str]]
"""Applies a function to each thing and gives the results in order: `map` is one."""

_FIRST: Final = {
    "data": {"values": [{}]},
    "mark": "text",
    "encoding": {"text": {"value": "a"}},
}
"""What the renderer starts on: a chart with text, so that it finds its fonts."""


def svg(spec: dict[str, Any], *, version: str) -> str:
    """Draw a specification.

    Args:
        spec: Of a chart, without control characters.
        version: Of Vega-Lite, such as `6.1`.
    """
    drawn: str = vl_convert.vegalite_to_svg(spec, vl_version=version)
    return drawn


@contextmanager
def drawers(*, version: str) -> Iterator[Run]:
    """A process that draws, started at once: it is ready by the time there is a chart.

    On a single core it would only be in the way, so this process draws.

    Args:
        version: Of Vega-Lite.
    """
    if _cores() == 1:
        yield map
        return
    pool = ProcessPoolExecutor(
        1, mp_context=get_context("spawn"), initializer=_start, initargs=(version,)
    )
    try:
        pool.submit(len, ())  # a process starts with its first task
        yield partial(_drawn, pool)
    finally:
        pool.shutdown(cancel_futures=True)


def _cores() -> int:
    """How many this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _drawn(
    pool: ProcessPoolExecutor, draw: Callable[[Any], str], things: Iterable[Any]
) -> Iterable[str]:
    """What the process drew; where it cannot start or was killed, this one draws."""
    asked: list[Any] = []
    rest = iter(things)

    def noted() -> Iterator[Any]:
        for thing in rest:
            asked.append(thing)
            yield thing

    try:
        return list(pool.map(draw, noted()))
    except BrokenProcessPool:
        return map(draw, chain(asked, rest))


def _start(version: str) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C ends the main process, and it this one
    svg(_FIRST, version=version)
