"""Files that a person named: opened under that very name, and never waited for.

    text = read_named(Path("rubric.toml")).decode()

A pipe would be waited for until somebody writes into it, so it is refused, and so is a device.
"""

import errno
import os
import stat
import time
from hashlib import file_digest
from io import BufferedReader
from pathlib import Path
from typing import Final

_FLAGS: Final = os.O_RDONLY | sum(
    getattr(os, name, 0) for name in ("O_NONBLOCK", "O_CLOEXEC", "O_BINARY")
)
"""Opening a pipe does not wait for a writer; a system has only some of the names."""


def open_named(path: Path) -> BufferedReader:
    """Open a file for reading; `OSError` if it cannot be opened, or is no regular file."""
    handle = os.open(path, _FLAGS)
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise OSError(errno.EINVAL, "it is no regular file; a pipe is not waited for", str(path))
    return os.fdopen(handle, "rb")


def read_named(path: Path) -> bytes:
    """The bytes of a file; `OSError` if it cannot be read, or is no regular file."""
    with open_named(path) as file:
        return file.read()


_SETTLED: Final = 2.0
"""Seconds after which a further change of a file gets another time stamp than the last one."""
_SHA256: Final[dict[tuple[int, ...], str]] = {}
"""Place, size and time stamps of files that lay unchanged → SHA-256 of their content."""


def sha256_named(path: Path) -> str:
    """SHA-256 of a file in hexadecimal digits, by reading it once while it does not change.

    `OSError` if it cannot be read, or is no regular file.
    """
    with open_named(path) as file:
        now = os.fstat(file.fileno())
        state = now.st_dev, now.st_ino, now.st_size, now.st_mtime_ns, now.st_ctime_ns
        if state in _SHA256:
            return _SHA256[state]
        found = file_digest(file, "sha256").hexdigest()
    if time.time() - max(now.st_mtime, now.st_ctime) > _SETTLED:
        _SHA256[state] = found
    return found
