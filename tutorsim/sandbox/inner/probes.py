"""Proof of the layers: a child as locked as a worker tries what must not be possible.

Return codes of a set-up say what was asked for; these say what holds. Every attempt has a real
target: a file that exists, a listener that would answer, a process that is there.
"""

import mmap
import os
import signal
import socket
import threading
from collections.abc import Callable
from typing import Any, NamedTuple

from .jail import Jail
from .linux import errno_name, read_all

__all__ = ["PROBES", "Targets", "open_targets", "run_probes"]

PROBES = (
    "read a file", "list a folder", "write a file", "connect over TCP", "send over UDP",
    "connect to an abstract socket", "fork", "start a thread", "execute a program",
    "signal a parent", "read a parent's environment", "take more memory than allowed",
)  # fmt: skip
_MORE = 64 << 20


class Targets(NamedTuple):
    """What the probes aim at; opened before any layer is on."""

    tcp: socket.socket
    udp: socket.socket
    abstract: socket.socket
    parent: int

    def close(self) -> None:
        """Close the listeners."""
        for listener in (self.tcp, self.udp, self.abstract):
            listener.close()


def open_targets(parent: int) -> Targets:
    """Listeners on this machine, and the process that started the zygote."""
    tcp = socket.create_server(("127.0.0.1", 0))
    udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    udp.bind(("127.0.0.1", 0))
    abstract = socket.socket(socket.AF_UNIX)
    abstract.bind(f"\0tutorsim-probe-{os.getpid()}")
    abstract.listen()
    return Targets(tcp, udp, abstract, parent)


def run_probes(jail: Jail, targets: Targets) -> dict[str, str]:
    """Each attempt, in a locked child, and what came of it: `denied: EPERM` or `allowed`."""
    addresses = (targets.tcp.getsockname(), targets.udp.getsockname(),
                 targets.abstract.getsockname())  # fmt: skip
    ours, theirs = os.pipe()
    pid = jail.fork()
    if pid == 0:
        try:
            signal.pthread_sigmask(signal.SIG_SETMASK, [])
            os.close(ours)
            jail.lock(cpu=jail.limits["cpu"], descriptors=True)
            _attempt_all(theirs, _attempts(addresses, targets.parent, int(jail.limits["memory"])))
        finally:
            os._exit(0)
    os.close(theirs)
    lines = read_all(ours).decode().splitlines()
    os.waitpid(pid, 0)
    results = dict(line.split("\t", 1) for line in lines if "\t" in line)
    # An attempt that ended the child is one that nobody knows the result of.
    return {name: results.get(name, "unknown: the probe ended") for name in PROBES}


def _attempt_all(report: int, attempts: dict[str, Callable[[], object]]) -> None:
    for name, attempt in attempts.items():
        try:
            attempt()
            result = "allowed"
        except OSError as error:
            result = f"denied: {errno_name(error)}"
        except MemoryError:
            result = "denied: ENOMEM"
        except RuntimeError:
            result = "denied: EAGAIN"
        os.write(report, f"{name}\t{result}\n".encode())


def _attempts(
    addresses: tuple[Any, Any, Any], parent: int, memory: int
) -> dict[str, Callable[[], object]]:
    tcp, udp, abstract = addresses
    inet, stream, datagram = socket.AF_INET, socket.SOCK_STREAM, socket.SOCK_DGRAM
    created = f"/tmp/tutorsim-probe-{os.getpid()}"
    attempts = (
        lambda: os.open("/etc/passwd", os.O_RDONLY),
        lambda: os.scandir(os.environ.get("HOME", "/etc")),
        lambda: os.open(created, os.O_CREAT | os.O_EXCL),
        lambda: socket.socket(inet, stream).connect(tcp),
        lambda: socket.socket(inet, datagram).sendto(b"probe", udp),
        lambda: socket.socket(socket.AF_UNIX).connect(abstract),
        _fork,
        lambda: threading.Thread(target=int).start(),
        lambda: os.execv("/bin/true", ["true"]),
        lambda: os.kill(parent, 0),
        lambda: os.open(f"/proc/{parent}/environ", os.O_RDONLY),
        lambda: mmap.mmap(-1, memory + _MORE),
    )
    return dict(zip(PROBES, attempts, strict=True))


def _fork() -> None:
    if os.fork() == 0:
        os._exit(0)
    os.wait()
