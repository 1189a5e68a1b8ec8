"""The process that forks: loaded once, locked once, and then a worker and a judge per program.

It never reads a program or a test: they pass from the owner to the judge over a socket that
the zygote only hands on. It watches the clocks, ends what outlives its verdict, and reports
how the two processes ended.

Commands, one byte each on the control socket: `R` with two descriptors (the judge's socket
and the pipe for output) runs a program, `O` stops the one that is running because its output
is over the limit, `B` times a fixed loop. Replies are frames.
"""

import gc
import json
import os
import resource
import select
import signal
import socket
import sys
import time
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from .jail import Jail
from .judge import WORKER_GONE, run_judge
from .preload import preload
from .probes import open_targets, run_probes
from .wire import write_frame
from .worker import run_worker

__all__ = ["main"]

_FIRST_LOOK, _LONGEST_LOOK = 0.005, 0.025
_FIXED_LOOP = 3_000_000
_PATIENCE = 1.0
_DESCRIPTORS = 4096


def main() -> None:
    """Start, report the layers and probes, and serve until the owner closes the socket."""
    options = json.loads(sys.argv[1])
    control = socket.socket(fileno=options["control"])
    preload()
    null = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
    jail = Jail(frozenset(options["layers"]), options["limits"])
    targets = open_targets(options["owner"])
    jail.enclose()
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGCHLD})
    probes = run_probes(jail, targets)
    targets.close()
    gc.collect()
    gc.freeze()
    resident = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    started = {"layers": jail.status, "probes": probes, "resident": resident}
    write_frame(control.fileno(), started)
    _serve(control, jail, null)


def _serve(control: socket.socket, jail: Jail, null: int) -> None:
    while True:
        command, descriptors, _, _ = socket.recv_fds(control, 1, 2)
        if not command:
            return
        if command == b"R":
            report = _Program(control, jail, null).run(*descriptors)
        elif command == b"B":
            report = {"fixed_loop": _fixed_loop()}
        else:
            # The output went over the limit just when the program had ended anyway.
            continue
        write_frame(control.fileno(), report)


def _fixed_loop() -> float:
    start = time.perf_counter()
    for _ in range(_FIXED_LOOP):
        pass
    return time.perf_counter() - start


@dataclass
class _Program:
    """One worker and one judge, from fork to burial."""

    control: socket.socket
    jail: Jail
    null: int
    killed: str = ""
    ended: dict[int, tuple[int, Any]] = field(default_factory=dict)

    def run(self, judge_socket: int, output: int) -> dict[str, Any]:
        """Fork both, watch them, and report how they ended."""
        start = time.monotonic()
        ours, theirs = socket.socketpair()
        self.worker = self._fork_worker(output, theirs.fileno())
        self.judge = self._fork_judge(judge_socket, ours.fileno())
        for descriptor in (judge_socket, output, ours.detach(), theirs.detach()):
            os.close(descriptor)
        self._watch(start)
        self._bury()
        return self._report(time.monotonic() - start)

    def _fork_worker(self, output: int, wire: int) -> int:
        pid = self.jail.fork()
        if pid == 0:
            try:
                _take_descriptors(self.null, output, wire)
                run_worker(self.jail)
            finally:
                os._exit(0)
        return pid

    def _fork_judge(self, judge_socket: int, wire: int) -> int:
        pid = os.fork()
        if pid == 0:
            status = 1
            try:
                _take_descriptors(self.null, self.null, judge_socket, wire)
                status = run_judge(self.jail)
            finally:
                os._exit(status)
        return pid

    def _watch(self, start: float) -> None:
        """Until the judge has ended: look at clocks often enough that limits mean something."""
        look, since_kill = _FIRST_LOOK, 0.0
        while self.judge not in self.ended:
            signal.sigtimedwait({signal.SIGCHLD}, look)
            self._reap()
            look = min(look * 2, _LONGEST_LOOK)
            now = time.monotonic()
            if self.killed:
                if now - since_kill > _PATIENCE:
                    _kill(self.judge)
                continue
            self.killed = self._over_limit(now - start)
            if self.killed:
                _kill(self.judge if self.killed in ("tests", "owner") else self.worker)
                since_kill = now

    def _over_limit(self, wall: float) -> str:
        limits = self.jail.limits
        cpu = _cpu_time(self.worker) if self.worker not in self.ended else 0.0
        if cpu > limits["cpu"]:
            return "cpu"
        # A busy machine gives a program less than its share: more CPU used, more time allowed.
        if wall > limits["wall"] * (1 + cpu):
            return "wall"
        if self.judge not in self.ended and _cpu_time(self.judge) > limits["tests_cpu"]:
            return "tests"
        if select.select([self.control], [], [], 0)[0]:
            return "output" if self.control.recv(1) else "owner"
        return ""

    def _bury(self) -> None:
        """End and reap the worker; wait for its own end where the judge saw it leave."""
        status = os.waitstatus_to_exitcode(self.ended[self.judge][0])
        patience = _PATIENCE if status == WORKER_GONE else 0.0
        deadline = time.monotonic() + patience
        while self.worker not in self.ended and time.monotonic() < deadline:
            signal.sigtimedwait({signal.SIGCHLD}, _FIRST_LOOK)
            self._reap()
        if self.worker not in self.ended:
            self.killed = self.killed or ("left" if status == WORKER_GONE else "done")
            _kill(self.worker)
            _, waited, usage = os.wait4(self.worker, 0)
            self.ended[self.worker] = (waited, usage)
        if self.jail.has("namespaces"):
            with suppress(ProcessLookupError):
                os.kill(-1, signal.SIGKILL)
            self._reap()

    def _reap(self) -> None:
        with suppress(ChildProcessError):
            while True:
                pid, status, usage = os.wait4(-1, os.WNOHANG)
                if pid == 0:
                    return
                self.ended[pid] = (status, usage)

    def _report(self, wall: float) -> dict[str, Any]:
        status, usage = self.ended[self.worker]
        return {
            "killed": self.killed,
            "worker": os.waitstatus_to_exitcode(status),
            "judge": os.waitstatus_to_exitcode(self.ended[self.judge][0]),
            "cpu": usage.ru_utime + usage.ru_stime,
            "wall": wall,
            "rss": usage.ru_maxrss * 1024,
        }


def _take_descriptors(source: int, output: int, *wires: int) -> None:
    """Standard input from nowhere, output to its pipe, the wires from 3 on, and nothing else."""
    signal.pthread_sigmask(signal.SIG_SETMASK, [])
    os.setsid()
    # Out of the way first: a wire may have a number that is to be overwritten.
    kept = [os.dup(d) for d in (source, output, output, *wires)]
    for number, descriptor in enumerate(kept):
        os.dup2(descriptor, number)
    os.closerange(len(kept), _DESCRIPTORS)


def _kill(pid: int) -> None:
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


def _cpu_time(pid: int) -> float:
    """CPU seconds of a child; zero when it has just ended."""
    try:
        return time.clock_gettime((~pid << 3) | 2)
    except OSError:
        return 0.0
