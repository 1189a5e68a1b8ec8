"""What processes that record one study together share: the cap, the verdicts, and the end.

The books are a small file in the recording's folder, locked for the moment of each entry; every
process sees the same file system, where the tapes are too. A process that dies leaves what it had
set aside in the books until the next command writes new ones, so the cap still holds.
"""

import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Final

from tutorsim.cost_plan import PriceTable
from tutorsim.errors import BudgetReached, FolderError, Interrupted, UsageError
from tutorsim.mechanisms.flow import CodeResult, CodeRun
from tutorsim.model import Call, Reply
from tutorsim.replay import VerdictStore, folder_error
from tutorsim.runner.cost_cap import Budget

__all__ = [
    "LEDGER_FILE",
    "Ledger",
    "SharedBudget",
    "SharedVerdicts",
    "at_work",
    "check_nobody_at_work",
]

LEDGER_FILE: Final = ".ledger.json"
WORK_FILE: Final = ".at-work.lock"
WIDTH: Final = 256
"""Bytes of the books, so that each entry is one write over the last."""
LOOK_AGAIN: Final = 0.05
PATIENCE: Final = 60.0
"""Seconds without an entry after which nobody is taken to be under way any more."""
NOTHING: Final = 1e-9
"""US dollars that are left over from adding and taking away."""


@dataclass
class _Books:
    committed: float = 0.0
    """US dollars."""
    reserved: float = 0.0
    """US dollars, of all processes."""
    stop: bool = False
    """Nothing new is to be sent."""


class Ledger:
    """The books of one recording.

    Args:
        folder: The recording's folder.
    """

    def __init__(self, folder: Path) -> None:
        self._path = folder / LEDGER_FILE

    def begin(self, committed: float) -> None:
        """Open new books.

        Args:
            committed: US dollars that the recording has cost so far.

        Raises:
            FolderError: If they cannot be written.
        """
        self._path.unlink(missing_ok=True)
        with self.books(os.O_CREAT) as books:
            books.committed = committed

    def end(self) -> None:
        """Remove the books."""
        self._path.unlink(missing_ok=True)

    def stop(self) -> None:
        """Let no process send anything new."""
        with self.books() as books:
            books.stop = True

    @contextmanager
    def books(self, flags: int = 0) -> Iterator[_Books]:
        """The books, for this process alone; what is changed in the block is written.

        Raises:
            FolderError: If they are not there or cannot be written.
        """
        try:
            handle = os.open(self._path, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW | flags, 0o644)
        except OSError as error:
            raise folder_error(self._path, error) from error
        try:
            locks = _file_locks()
            locks.flock(handle, locks.LOCK_EX)
            before = os.pread(handle, WIDTH, 0)
            books = _Books(**json.loads(before)) if before else _Books()
            yield books
            os.pwrite(handle, json.dumps(vars(books)).ljust(WIDTH).encode(), 0)
        finally:
            os.close(handle)


@contextmanager
def at_work(folder: Path) -> Iterator[None]:
    """Say that this process writes tapes in a folder; the kernel takes it back if it dies.

    Args:
        folder: The recording's folder.

    Raises:
        FolderError: If `check_nobody_at_work` has just said that nobody is.
    """
    handle = _locked(folder / WORK_FILE, os.O_CREAT, shared=True)
    try:
        yield
    finally:
        os.close(handle)


def check_nobody_at_work(folder: Path) -> None:
    """Refuse a folder in which workers of an earlier command still write tapes.

    Books that a killed command left are removed: nobody keeps them any more. A file of their name
    that is of another size was not written here, and stays.

    Raises:
        FolderError: If they do.
    """
    path = folder / WORK_FILE
    if path.exists():
        handle = _locked(path, 0, shared=False)
        path.unlink(missing_ok=True)
        os.close(handle)
    books = folder / LEDGER_FILE
    if books.is_file() and books.lstat().st_size in (0, WIDTH):
        books.unlink()


def _file_locks() -> ModuleType:
    """The system's file locks, imported here as a replay needs none.

    Raises:
        UsageError: If the system has none.
    """
    try:
        return import_module("fcntl")
    except ImportError as error:
        raise UsageError(
            "Episodes cannot be spread over workers on this machine.",
            why="Workers share a budget under file locks, which this system does not have.",
            hint="Record without --engine, or on Linux.",
        ) from error


def _locked(path: Path, flags: int, *, shared: bool) -> int:
    locks = _file_locks()
    kind = locks.LOCK_SH if shared else locks.LOCK_EX
    try:
        handle = os.open(path, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW | flags, 0o644)
    except OSError as error:
        raise folder_error(path, error) from error
    try:
        locks.flock(handle, kind | locks.LOCK_NB)
    except BlockingIOError as error:
        os.close(handle)
        raise FolderError(
            f"Workers of an earlier command are still at work in {path.parent}.",
            why="They end after the replies that are under way.",
            hint="Give the same command again in a moment.",
        ) from error
    return handle


class SharedBudget(Budget):
    """A budget whose cap is kept by all processes together.

    Args:
        prices: Prices.
        max_usd: The cap; `None`: none.
        ledger: The books that all share.
    """

    def __init__(self, prices: PriceTable, max_usd: float | None, ledger: Ledger) -> None:
        super().__init__(prices, max_usd)
        self._ledger = ledger
        self._own = 0.0
        """Set aside by this process and not given back."""
        self._loose = 0.0
        """Given back, and to be taken out of the books together with what the reply cost."""

    def reserve(self, call: Call) -> float:
        """Set aside what a call can cost at most, in the books.

        Where only calls of other processes are in the way, wait until they have settled: nothing
        of this process is under way that the wait could hold up.

        Raises:
            BudgetReached: If the call could pass the cap.
            Interrupted: If nothing new is to be sent.
        """
        most = self.most(call)
        last: tuple[float, float] | None = None
        since = time.monotonic()
        while True:
            with self._ledger.books() as books:
                self._settle(books, 0.0)
                if books.stop:
                    raise Interrupted("Another process has stopped the recording.")
                try:
                    self.check_cap(books.committed, books.reserved, most)
                except BudgetReached:
                    if not self._only_others(books) or time.monotonic() - since > PATIENCE:
                        raise
                else:
                    books.reserved += most
                    self._own += most
                    return most
            if last != (books.committed, books.reserved):
                last, since = (books.committed, books.reserved), time.monotonic()
            time.sleep(LOOK_AGAIN)

    def _only_others(self, books: _Books) -> bool:
        return self._own < NOTHING and books.reserved - self._own > NOTHING

    def release(self, reservation: float) -> None:
        self._own -= reservation
        self._loose += reservation

    def count(self, model: str, reply: Reply, *, new: bool) -> None:
        super().count(model, reply, new=new)
        if new:
            with self._ledger.books() as books:
                self._settle(books, self._cost(model, reply) or 0.0)

    def close(self) -> None:
        """Give back what calls that failed had set aside."""
        with self._ledger.books() as books:
            self._settle(books, 0.0)

    def _settle(self, books: _Books, cost: float) -> None:
        books.committed += cost
        books.reserved = max(0.0, books.reserved - self._loose)
        self._loose = 0.0


class SharedVerdicts(VerdictStore):
    """Verdicts that several processes add to: the first on a program counts for all.

    Args:
        folder: The recording.
        fingerprint: Of the verdicts that may be reused; `None`: any.
        ledger: Its books keep two processes from writing at once.
    """

    def __init__(self, folder: Path, *, fingerprint: str | None, ledger: Ledger) -> None:
        self._ledger = ledger
        super().__init__(folder, fingerprint=fingerprint)

    def add(self, run: CodeRun, result: CodeResult, *, fingerprint: str) -> None:
        with self._ledger.books():
            self.refresh()
            if self.find(run) is None:
                super().add(run, result, fingerprint=fingerprint)
            self.close()
