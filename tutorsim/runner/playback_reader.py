"""Opening a folder of cassettes for playback: directly, or through the real client and vcrpy."""

from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tutorsim.flow_drivers import at_once
from tutorsim.replay import FastReader, Reader

__all__ = ["Run", "open_reader"]

Run = Callable[[Coroutine[Any, Any, Any]], Any]
"""Runs a step that the reader may wait in."""


@contextmanager
def open_reader(folder: Path, *, sdk: bool) -> Iterator[tuple[Reader, Run]]:
    """A reader of a folder, and what runs the steps that wait for it.

    Args:
        folder: The cassettes.
        sdk: Go through the real client and vcrpy.
    """
    if not sdk:
        yield FastReader(folder), at_once
        return
    import asyncio

    from tutorsim.replay.replay_through_sdk import SdkReader

    with asyncio.Runner() as runner:
        reader = SdkReader(folder)
        try:
            yield reader, runner.run
        finally:
            runner.run(reader.aclose())
