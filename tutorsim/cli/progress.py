"""Progress of long work: how many of how many, how fast, and when it will end."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

from tutorsim.cli.console import err, progress_shown


class Count(Protocol):
    """Receives how far the work is."""

    def __call__(self, done: int, total: int, text: str = "") -> None:
        """Say that `done` of `total` are done, and what else there is to say."""


@contextmanager
def counted(what: str) -> Iterator[Count]:
    """A bar with count, rate and expected end; nothing where no progress is drawn.

    Args:
        what: What is counted, in the plural.
    """
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
    """Rate and expected end in words; empty before anything was done.

    Args:
        done: How many were done in the time.
        left: How many are left.
        seconds: The time.
    """
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
