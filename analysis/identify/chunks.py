"""Work on many turns, some thousands at a time and on every core: numpy lets threads run."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Final

import numpy as np
from polars import thread_pool_size

__all__ = ["in_chunks"]

_CHUNK: Final = 1 << 15
"""Turns at a time: few enough for the processor's cache, enough for threads not to wait."""
_WORTH: Final = 2 * _CHUNK
"""Turns for which a further thread is worth starting."""


def in_chunks(turns: int, work: Callable[[slice], None]) -> None:
    """Do work for all turns, on as many threads as polars uses."""

    def share(start: int, end: int) -> None:
        for first in range(start, end, _CHUNK):
            work(slice(first, min(first + _CHUNK, end)))

    cores = max(1, min(thread_pool_size(), turns // _WORTH))
    if cores == 1:
        share(0, turns)
        return
    edges = np.linspace(0, turns, cores + 1).astype(int).tolist()
    with ThreadPoolExecutor(cores) as pool:
        list(pool.map(share, edges, edges[1:]))
