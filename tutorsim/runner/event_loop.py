"""The event loop in which calls are made, and what is said where a process cannot have one."""

import asyncio
import socket
from collections.abc import Coroutine
from typing import Any, TypeVar

from tutorsim.errors import SandboxError

__all__ = ["run_in_loop"]

T = TypeVar("T")


def run_in_loop(work: Coroutine[Any, Any, T]) -> T:
    """Run work to its end in an event loop of its own.

    A loop wakes itself through a pair of sockets, as the sandbox talks to its processes through
    one: a process that can have none is told so before a loop is half made.

    Raises:
        SandboxError: If the machine gives this process no pair of sockets.
    """
    try:
        for end in socket.socketpair():
            end.close()
    except OSError as error:
        work.close()
        raise SandboxError(
            "This process cannot open a pair of sockets.",
            why=f"Calls and the sandbox each need one: {error.strerror or error}.",
            hint="Raise the limit of open files (`ulimit -n`), or close other programs; then give "
            "the same command again. What was recorded stays usable.",
        ) from error
    return asyncio.run(work)
