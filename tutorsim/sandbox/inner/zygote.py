"""The process that forks: loaded once, locked once, and then a worker and a judge per program.

It never reads a program or a test: they pass from the owner straight to the judge. It watches
the clocks, ends what outlives its verdict, and reports how the two processes ended. While one
pair works, the next is forked and locked: it waits for its program with nothing in it.

Every frame on the control socket that tells of a start or an end carries two descriptors, the
owner's ends of the next judge's socket and of the next worker's output. Commands are one byte
each: `R` watch the pair that now has its program, `O` stop it because it wrote too much, `B`
time a fixed loop.
"""

import fcntl
import gc
import json
import os
import select
import signal
import socket
import sys
import time
import types
import warnings
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .frames_layers_and_longest_program import frame_bytes
from .jail import Jail
from .judge import WORKER_GONE, run_judge
from .load_program_and_answer_calls import run_worker
from .probes import open_targets

_FIRST_LOOK, _LONGEST_LOOK = 0.005, 0.025
_FIXED_LOOP = 3_000_000
_PATIENCE = 1.0
_DESCRIPTORS = 4096
_OOM_SCORE = 500
"""Points of 1000: the kernel ends the sandbox's processes first, the largest before others."""


def main() -> None:
    """Start, report the layers and probes, and serve until the owner closes the socket.

    The standard library has to be loaded by now: nothing can be read after this.
    """
    options = json.loads(sys.argv[1])
    _take_no_heritage()
    control = _low(options["control"])
    null = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
    jail = Jail(frozenset(options["layers"]), options["limits"])
    targets = open_targets(options["owner"], int(jail.limits["memory"]))
    resident = _resident()
    jail.enclose(targets)
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGCHLD})
    probes = jail.probe(targets)
    targets.close()
    _leave_the_library_only()
    gc.collect()
    gc.freeze()
    zygote = _Zygote(control, jail, null)
    started = {"layers": jail.status, "proven": jail.proven, "probes": probes}
    zygote.serve(started | {"resident": resident})


def _resident() -> int:
    """Bytes of memory that this process holds now; its largest so far counts the owner's too."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def _low(descriptor: int) -> socket.socket:
    """The socket under a low number, so that it is among those that a child closes."""
    with socket.socket(fileno=descriptor) as given:
        return socket.socket(fileno=fcntl.fcntl(given.fileno(), fcntl.F_DUPFD_CLOEXEC, 3))


def _take_no_heritage() -> None:
    """Undo what the owner left to its children, and be ended before it when memory runs out."""
    signal.pthread_sigmask(signal.SIG_SETMASK, [])
    # Where the owner ignores it, ended children would leave no status.
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    score = Path("/proc/self/oom_score_adj")
    with suppress(OSError, ValueError):
        score.write_text(str(max(_OOM_SCORE, int(score.read_text()))))


def _leave_the_library_only() -> None:
    """Leave the standard library to import. This is tidiness; the locks are the wall."""
    package = __name__.partition(".")[0]
    for name in [n for n in sys.modules if n.partition(".")[0] == package]:
        del sys.modules[name]
    sys.modules["__main__"] = types.ModuleType("__main__")
    sys.path.clear()
    sys.path_importer_cache.clear()
    sys.argv[:] = ["solution"]
    warnings.simplefilter("ignore")


def _fixed_loop() -> float:
    start = time.perf_counter()
    for _ in range(_FIXED_LOOP):
        pass
    return time.perf_counter() - start


@dataclass
class _Pair:
    """A worker and a judge, and what is known of their ends."""

    worker: int
    judge: int
    owners: tuple[int, int]
    """The owner's ends: the judge's socket, and the pipe of the worker's output."""
    killed: str = ""


class _Zygote:
    """Forks pairs and watches over one at a time."""

    def __init__(self, control: socket.socket, jail: Jail, null: int) -> None:
        self._control = control
        self._jail = jail
        self._null = null
        # What a worker reads as its input: at its end, and no file of this machine.
        self._nothing, writer = os.pipe()
        os.close(writer)
        self._ended: dict[int, tuple[int, Any]] = {}

    def serve(self, started: dict[str, Any]) -> None:
        """Report the start, then serve until the owner closes the control socket."""
        pair = self._fork_pair()
        self._tell(started, pair)
        while command := self._control.recv(1):
            if command == b"R":
                start = time.monotonic()
                self._watch(pair, start)
                self._bury(pair)
                self._tell(self._report(pair, time.monotonic() - start))
                pair = self._fork_pair()
                self._tell({}, pair)
            elif command == b"B":
                self._tell({"fixed_loop": _fixed_loop()})
        for pid in (pair.worker, pair.judge):
            _kill(pid)

    def _tell(self, frame: dict[str, Any], pair: _Pair | None = None) -> None:
        """Send a frame, with the owner's ends of a new pair."""
        ends = pair.owners if pair else ()
        with suppress(BrokenPipeError):
            socket.send_fds(self._control, [frame_bytes(frame)], ends)
        for descriptor in ends:
            os.close(descriptor)

    def _fork_pair(self) -> _Pair:
        between = socket.socketpair()
        to_judge = socket.socketpair()
        reader, writer = os.pipe()
        worker = self._fork_worker(writer, between[1].fileno())
        judge = self._fork_judge(to_judge[1].fileno(), between[0].fileno())
        for end in (*between, to_judge[1]):
            end.close()
        os.close(writer)
        return _Pair(worker, judge, (to_judge[0].detach(), reader))

    def _fork_worker(self, output: int, wire: int) -> int:
        pid = os.fork()
        if pid == 0:
            try:
                _take_descriptors(self._nothing, output, wire)
                run_worker(self._jail)
            finally:
                os._exit(0)
        return pid

    def _fork_judge(self, owner: int, wire: int) -> int:
        pid = os.fork()
        if pid == 0:
            status = 1
            try:
                _take_descriptors(self._null, self._null, owner, wire)
                status = run_judge(self._jail)
            finally:
                os._exit(status)
        return pid

    def _watch(self, pair: _Pair, start: float) -> None:
        """Until the judge has ended: look at clocks often enough that limits mean something."""
        look, since_kill = _FIRST_LOOK, 0.0
        self._reap()
        while pair.judge not in self._ended:
            signal.sigtimedwait({signal.SIGCHLD}, look)
            self._reap()
            look = min(look * 2, _LONGEST_LOOK)
            now = time.monotonic()
            if pair.killed:
                if now - since_kill > _PATIENCE:
                    _kill(pair.judge)
                continue
            pair.killed = self._over_limit(pair, now - start)
            if pair.killed:
                _kill(pair.judge if pair.killed in ("tests", "owner") else pair.worker)
                since_kill = now

    def _over_limit(self, pair: _Pair, wall: float) -> str:
        if pair.judge in self._ended:
            return ""
        limits = self._jail.limits
        cpu = _cpu_time(pair.worker) if pair.worker not in self._ended else 0.0
        tests_cpu = _cpu_time(pair.judge)
        if cpu > limits["cpu"]:
            return "cpu"
        if tests_cpu > limits["tests_cpu"]:
            return "tests"
        if wall > limits["wall"]:
            return "wall"
        if select.select([self._control], [], [], 0)[0]:
            return "output" if self._control.recv(1) else "owner"
        return ""

    def _bury(self, pair: _Pair) -> None:
        """End and reap the worker; wait for its own end where the judge saw it leave."""
        status = os.waitstatus_to_exitcode(self._ended[pair.judge][0])
        patience = _PATIENCE if status == WORKER_GONE else 0.0
        deadline = time.monotonic() + patience
        while pair.worker not in self._ended and time.monotonic() < deadline:
            signal.sigtimedwait({signal.SIGCHLD}, _FIRST_LOOK)
            self._reap()
        if pair.worker not in self._ended:
            pair.killed = pair.killed or ("left" if status == WORKER_GONE else "done")
            _kill(pair.worker)
            _, waited, usage = os.wait4(pair.worker, 0)
            self._ended[pair.worker] = (waited, usage)
        if not self._jail.has("seccomp") and not self._jail.has("namespaces"):
            # Only on the user's word: what it started goes with it, as far as a group reaches.
            with suppress(OSError):
                os.killpg(pair.worker, signal.SIGKILL)

    def _reap(self) -> None:
        with suppress(ChildProcessError):
            while True:
                pid, status, usage = os.wait4(-1, os.WNOHANG)
                if pid == 0:
                    return
                self._ended[pid] = (status, usage)

    def _report(self, pair: _Pair, wall: float) -> dict[str, Any]:
        status, usage = self._ended.pop(pair.worker)
        judge, judge_usage = self._ended.pop(pair.judge)
        return {
            "killed": pair.killed,
            "worker": os.waitstatus_to_exitcode(status),
            "judge": os.waitstatus_to_exitcode(judge),
            "cpu": usage.ru_utime + usage.ru_stime,
            "wall": wall,
            "rss": usage.ru_maxrss * 1024,
            "judge_rss": judge_usage.ru_maxrss * 1024,
        }


def _take_descriptors(source: int, output: int, *wires: int) -> None:
    """Standard input from `source`, output to its pipe, the wires from 3 on, and nothing else."""
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
