"""The standard library as a student's program finds it: loaded once, before any lock.

What is not named here, or drawn in by what is, cannot be imported: there are no files.
"""

import importlib
import io
import os
import time
from contextlib import suppress
from typing import Any

MODULES = (
    "abc", "argparse", "array", "ast", "asyncio", "base64", "binascii", "bisect", "builtins",
    "calendar", "cmath", "codecs", "collections", "collections.abc", "colorsys",
    "concurrent.futures", "concurrent.futures.process", "concurrent.futures.thread",
    "configparser", "contextlib", "contextvars", "copy", "copyreg", "csv", "ctypes",
    "dataclasses", "datetime", "decimal", "difflib", "dis", "doctest", "encodings.ascii",
    "encodings.idna", "encodings.latin_1", "encodings.unicode_escape", "encodings.utf_16",
    "encodings.utf_32", "encodings.utf_8_sig", "enum", "errno", "fcntl", "fractions",
    "functools", "gc", "getopt", "glob", "graphlib", "hashlib", "heapq", "hmac", "html",
    "html.entities", "html.parser", "importlib", "inspect", "io", "ipaddress", "itertools",
    "json", "keyword", "linecache", "locale", "logging", "math", "numbers", "operator", "os",
    "os.path", "pathlib", "pickle", "pprint", "queue", "random", "re", "reprlib", "resource",
    "sched", "secrets", "select", "selectors", "shlex", "signal", "socket", "stat",
    "statistics", "string", "stringprep", "struct", "subprocess", "symtable", "sys",
    "tempfile", "textwrap", "threading", "time", "timeit", "token", "tokenize", "traceback",
    "types", "typing", "unicodedata", "unittest", "urllib.parse", "uuid", "warnings",
    "weakref", "xml.dom.expatbuilder", "xml.dom.minidom", "xml.etree.ElementTree",
    "xml.sax.expatreader", "xml.sax.saxutils", "zlib", "zoneinfo", "_pydecimal", "_strptime",
)  # fmt: skip
_ZONE_MARK = b"TZif"
_LONGEST_ZONE = 1 << 16


def preload() -> None:
    """Import everything; what this interpreter was built without is passed over.

    What the modules would do after each fork is left out: the zygote has one thread and no
    lock to renew, and each child seeds its random numbers itself.
    """
    register = os.register_at_fork
    os.register_at_fork = _no_hooks
    try:
        for name in MODULES:
            with suppress(ImportError):
                importlib.import_module(name)
    finally:
        os.register_at_fork = register
    _keep_time_zones()
    _run_coroutines_without_descriptors()


def _no_hooks(**_: object) -> None:
    """Stands in for `os.register_at_fork`."""


def _keep_time_zones() -> None:
    """Let `zoneinfo` take this machine's time zones from memory, as there will be no files."""
    import zoneinfo
    from zoneinfo import _common

    zones: dict[str, bytes] = {}
    for folder in zoneinfo.TZPATH:
        for place, _, names in os.walk(folder):
            for name in names:
                path = f"{place}/{name}"  # a thousand of them, at every start
                _keep_zone(zones, path[len(folder) + 1 :], path)

    def load(key: str) -> io.BytesIO:
        if key not in zones:
            raise zoneinfo.ZoneInfoNotFoundError(f"No time zone found with key {key}")
        return io.BytesIO(zones[key])

    zoneinfo.reset_tzpath(())
    _common.load_tzdata = load  # type: ignore[assignment]


def _keep_zone(zones: dict[str, bytes], key: str, path: str) -> None:
    """Keep a file under its key, if it is a time zone; the first folder that has the key counts."""
    if key in zones or key.startswith(("posix/", "right/")):
        return
    with suppress(OSError):
        descriptor = os.open(path, os.O_RDONLY)
        data = os.read(descriptor, _LONGEST_ZONE)
        os.close(descriptor)
        if data.startswith(_ZONE_MARK):
            zones[key] = data


def _run_coroutines_without_descriptors() -> None:
    """Let `asyncio.run` work where no socket can be made: its loop waits for the clock alone."""
    import asyncio

    class Clock:
        """Stands in for a selector, which waits for sockets."""

        def select(self, timeout: float | None = None) -> list[Any]:
            time.sleep(1.0 if timeout is None else max(0.0, timeout))
            return []

    class Loop(asyncio.BaseEventLoop):
        """An event loop of tasks and timers, without sockets, signals, threads and processes."""

        def __init__(self) -> None:
            super().__init__()
            self._selector = Clock()

        def _process_events(self, event_list: list[Any]) -> None:
            """Process no events: a loop without sockets has none."""

        def _write_to_self(self) -> None:
            """Nobody else could wake the loop."""

    # Policies are on their way out; a Python without them keeps its own loop, which needs sockets.
    with suppress(AttributeError):
        asyncio.DefaultEventLoopPolicy._loop_factory = Loop  # type: ignore[attr-defined]
