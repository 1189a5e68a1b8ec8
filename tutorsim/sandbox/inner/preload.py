"""The standard library as a student's program finds it: loaded once, before any lock.

What is not named here, or drawn in by what is, cannot be imported: there are no files.
"""

import importlib
import os
from contextlib import suppress

__all__ = ["MODULES", "preload"]

MODULES = (
    "abc", "argparse", "array", "ast", "base64", "binascii", "bisect", "builtins", "calendar",
    "cmath", "codecs", "collections", "collections.abc", "colorsys", "configparser",
    "contextlib", "contextvars", "copy", "copyreg", "csv", "ctypes", "dataclasses", "datetime",
    "decimal", "difflib", "dis", "doctest", "encodings.ascii", "encodings.idna",
    "encodings.latin_1", "encodings.unicode_escape", "encodings.utf_16", "encodings.utf_32",
    "encodings.utf_8_sig", "enum", "errno", "fcntl", "fractions", "functools", "gc", "getopt",
    "glob", "graphlib", "hashlib", "heapq", "hmac", "html", "html.entities", "html.parser",
    "importlib", "inspect", "io", "ipaddress", "itertools", "json", "keyword", "linecache",
    "locale", "logging", "math", "numbers", "operator", "os", "os.path", "pathlib", "pickle",
    "pprint", "queue", "random", "re", "reprlib", "resource", "sched", "secrets", "select",
    "selectors", "shlex", "signal", "socket", "stat", "statistics", "string", "stringprep",
    "struct", "subprocess", "symtable", "sys", "tempfile", "textwrap", "threading", "time",
    "timeit", "token", "tokenize", "traceback", "types", "typing", "unicodedata", "unittest",
    "urllib.parse", "uuid", "warnings", "weakref", "zlib", "_pydecimal", "_strptime",
)  # fmt: skip


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


def _no_hooks(**_: object) -> None:
    """Stands in for `os.register_at_fork`."""
