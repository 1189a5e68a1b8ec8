"""What must not be possible behind the layers, tried in forked children.

Return codes of a set-up say what was asked for; these attempts say what holds. Every attempt has
a real target: a file that exists, a listener that would answer, a process that is there. `tried`
makes one change in a child of its own and then attempts something, so each layer is seen to stop
what it is there for while all others are missing; the zygote tries everything once more behind
all of them.
"""

import mmap
import os
import socket
import threading
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from .make_system_calls import errno_name

PROBES = (
    "read a file", "list a folder", "write a file", "connect over TCP", "send over UDP",
    "connect to an abstract socket", "fork", "start a thread", "execute a program",
    "signal a parent", "read a parent's environment", "take more memory than allowed",
)  # fmt: skip
_LAST = "execute a program"
"""An attempt that succeeds ends the child, so it comes last."""
_MORE = 64 << 20


class Targets(NamedTuple):
    """What the attempts aim at; opened before any layer is on."""

    tcp: socket.socket
    udp: socket.socket
    abstract: socket.socket
    parent: int
    """A process to signal and to look into."""
    memory: int
    """Bytes that a program may take."""

    def close(self) -> None:
        """Close the listeners."""
        for listener in (self.tcp, self.udp, self.abstract):
            listener.close()


class Trial(NamedTuple):
    """What came of a change and of the attempts after it."""

    failure: str
    """Why the change could not be made; empty if it was."""
    results: dict[str, str]
    """Attempt → `denied: EPERM` and the like, `allowed`, or `unknown: …`."""

    def allowed(self) -> list[str]:
        """Attempts that were not denied, in the order of `PROBES`."""
        return [name for name, result in self.results.items() if not result.startswith("denied")]


def open_targets(parent: int, memory: int) -> Targets:
    """Listeners on this machine, and a process."""
    tcp = socket.create_server(("127.0.0.1", 0))
    udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    udp.bind(("127.0.0.1", 0))
    abstract = socket.socket(socket.AF_UNIX)
    abstract.bind(f"\0tutorsim-probe-{os.getpid()}")
    abstract.listen()
    return Targets(tcp, udp, abstract, parent, memory)


def tried(change: Callable[[], object], targets: Targets, names: Iterable[str] = PROBES) -> Trial:
    """Make a change in a forked child, then attempt each of the named things there.

    The change may go on in a child of the child.
    """
    aims = _attempts(targets)
    wanted = set(names)
    ours, theirs = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.close(ours)
            failure = _failure(change)
            _say(theirs, "", failure)
            if not failure:
                for name in sorted(wanted & aims.keys(), key=lambda name: name == _LAST):
                    _say(theirs, name, _result(aims[name]))
        finally:
            os._exit(0)
    os.close(theirs)
    with os.fdopen(ours, "rb") as pipe:
        lines = pipe.read().decode().splitlines()
    os.waitpid(pid, 0)
    results = dict(line.split("\t", 1) for line in lines if "\t" in line)
    failure = results.pop("", "the child ended")
    if failure:
        return Trial(failure, {})
    # An attempt that ended the child is one that nobody knows the result of.
    unknown = "unknown: the probe ended"
    return Trial("", {name: results.get(name, unknown) for name in PROBES if name in wanted})


def _say(report: int, name: str, result: str) -> None:
    os.write(report, f"{name}\t{result}\n".encode())


def _failure(change: Callable[[], object]) -> str:
    try:
        change()
    except OSError as error:
        text = error.strerror or ""
        return text if ":" in text else errno_name(error)
    return ""


def _result(attempt: Callable[[], object]) -> str:
    try:
        attempt()
    except OSError as error:
        return f"denied: {errno_name(error)}"
    except MemoryError:
        return "denied: ENOMEM"
    except RuntimeError:
        return "denied: EAGAIN"
    return "allowed"


def _attempts(targets: Targets) -> dict[str, Callable[[], object]]:
    inet, stream, datagram = socket.AF_INET, socket.SOCK_STREAM, socket.SOCK_DGRAM
    tcp, udp, abstract = (t.getsockname() for t in (targets.tcp, targets.udp, targets.abstract))
    parent: Any = targets.parent
    attempts = (
        lambda: os.open("/etc/passwd", os.O_RDONLY),
        lambda: os.scandir(os.environ.get("HOME", "/etc")),
        _write,
        lambda: socket.socket(inet, stream).connect(tcp),
        lambda: socket.socket(inet, datagram).sendto(b"probe", udp),
        lambda: socket.socket(socket.AF_UNIX).connect(abstract),
        _fork,
        lambda: threading.Thread(target=int).start(),
        lambda: os.execv("/bin/true", ["true"]),
        lambda: os.kill(parent, 0),
        lambda: os.open(f"/proc/{parent}/environ", os.O_RDONLY),
        lambda: mmap.mmap(-1, targets.memory + _MORE),
    )
    return dict(zip(PROBES, attempts, strict=True))


def _write() -> None:
    created = f"/tmp/tutorsim-probe-{os.getpid()}"
    os.close(os.open(created, os.O_CREAT | os.O_EXCL))
    with suppress(OSError):
        Path(created).unlink()


def _fork() -> None:
    if os.fork() == 0:
        os._exit(0)
    os.wait()
