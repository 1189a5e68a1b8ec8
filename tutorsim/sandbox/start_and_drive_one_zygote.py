"""The near side of one zygote process: start it, hand it programs, read what comes back."""

import json
import os
import select
import socket
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tutorsim.sandbox.inner.frames_layers_and_longest_program import (
    TASK_CAP,
    Closed,
    Frames,
    Layer,
    Malformed,
    write_frame,
)
from tutorsim.sandbox.protection_levels_limits_and_near_limit import Limits

_BOOT = (
    "import sys; sys.path.append({!r}); "
    "from inner.preload_standard_library import preload; preload(); "
    "from inner.zygote import main; main()"
)
_ENVIRONMENT = {"PYTHONHASHSEED": "0", "LC_ALL": "C.UTF-8", "TZ": "UTC"}
_START_SECONDS = 30.0
_GRACE_SECONDS = 30.0
_KEPT_OUTPUT = 64 * 1024
_END_SECONDS = 2.0
_CHUNK = 65536
_STANDARD = 3
"""Descriptors below this number are standard input, output and error."""


class Broken(Exception):
    """The sandbox itself failed; says where."""


@dataclass(frozen=True)
class Job:
    """One program to judge: found in `message`, or given as `program`."""

    message: str
    program: str | None
    prompt: str
    entry_point: str
    test: str


@dataclass
class Aftermath:
    """All that came back for one program."""

    frames: list[dict[str, Any]] = field(default_factory=list)
    """What the judge said, in order."""
    ends: dict[str, Any] = field(default_factory=dict)
    """How the processes ended, from the zygote."""
    output: bytearray = field(default_factory=bytearray)
    """The first bytes that the program wrote."""
    written: int = 0
    """Bytes that the program wrote in all."""

    def said(self, key: str) -> Any:
        """The judge's word under this key; `None` where it said none."""
        return next((frame[key] for frame in self.frames if key in frame), None)


class Zygote:
    """A started zygote. Not thread-safe: one program at a time. `Broken` if it does not start."""

    def __init__(self, layers: frozenset[Layer], limits: Limits) -> None:
        self._limits = limits
        self._ends: list[int] = []
        self._judged = False
        try:
            self._control, self._process = _start(layers, limits)
        except OSError as error:
            raise Broken(f"the zygote cannot be started: {error.strerror or error}") from error
        try:
            self.started = self._reply()
        except Broken as error:
            raise Broken(f"{error} while it started{self._last_words()}") from error
        except BaseException:
            self.close()
            raise

    def run(self, job: Job) -> Aftermath:
        """Judge one program; raises `Broken` when the zygote fails to."""
        self._await_pair()
        if len(self._ends) != 2:
            raise Broken("this process has no room for two more open files")
        judge, reader = self._ends
        self._ends, self._judged = [], True
        try:
            _send_job(judge, job)
            self._command(b"R")
            return self._collect(judge, reader)
        finally:
            os.close(judge)
            os.close(reader)

    def _await_pair(self) -> None:
        """Take the ends of the pair that was forked since the last verdict."""
        if self._judged and not self._ends:  # the first pair comes as it starts
            self._reply()

    def fixed_loop(self) -> float:
        """Seconds for three million turns of an empty loop, as a measure of the machine."""
        self._await_pair()
        self._command(b"B")
        return float(self._reply()["fixed_loop"])

    def close(self) -> None:
        """End the process and everything under it."""
        self._control.close()
        for descriptor in self._ends:
            os.close(descriptor)
        self._ends = []
        try:
            self._process.wait(timeout=_END_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        if self._process.stderr is not None:
            self._process.stderr.close()

    def _last_words(self) -> str:
        """End a zygote that did not start; the last line that it wrote, if any."""
        assert self._process.stderr is not None
        self._control.close()
        self._process.kill()
        # What is there now, as a process that it left behind may hold the pipe open.
        pipe = self._process.stderr.fileno()
        text = os.read(pipe, _CHUNK) if _readable([pipe], _END_SECONDS) else b""
        lines = text.decode("utf-8", "backslashreplace").splitlines()
        self.close()
        return f": {lines[-1][:200]}" if lines else ""

    def _command(self, command: bytes) -> None:
        try:
            self._control.sendall(command)
        except OSError as error:
            raise Broken("the zygote is gone") from error

    def _reply(self) -> dict[str, Any]:
        frames = Frames()
        while not frames.ready:
            if not _readable([self._control.fileno()], _START_SECONDS):
                raise Broken("the zygote does not answer")
            self._hear(frames)
        return _mapping(frames)

    def _hear(self, frames: Frames) -> None:
        """Read from the zygote; the ends of the next pair come with its frames."""
        try:
            part, ends, _, _ = socket.recv_fds(self._control, _CHUNK, 2, socket.MSG_CMSG_CLOEXEC)
        except OSError as error:
            raise Broken("the zygote is gone") from error
        self._ends += ends
        if not part:
            raise Broken("the zygote ended")
        _feed(frames, part)

    def _collect(self, judge: int, reader: int) -> Aftermath:
        """Read the judge, the output and the zygote until each has said all."""
        aftermath = Aftermath()
        said, report = Frames(), Frames()
        control = self._control.fileno()
        deadline = time.monotonic() + self._limits.wall + _GRACE_SECONDS
        waiting = [judge, reader, control]
        while waiting:
            ready = _readable(waiting, deadline - time.monotonic())
            if not ready:
                raise Broken("the zygote does not answer")
            for source in ready:
                if source == control:
                    self._hear(report)
                    finished = bool(report.ready)
                else:
                    part = _read(source)
                    finished = not part
                    if source == judge:
                        _feed(said, part)
                    else:
                        self._took(aftermath, part)
                if finished:
                    waiting.remove(source)
        aftermath.frames = [frame for frame in said.ready if isinstance(frame, dict)]
        aftermath.ends = _mapping(report)
        return aftermath

    def _took(self, aftermath: Aftermath, part: bytes) -> None:
        before = aftermath.written
        aftermath.written += len(part)
        aftermath.output += part[: max(0, _KEPT_OUTPUT - before)]
        if before <= self._limits.output < aftermath.written:
            self._command(b"O")


def _start(
    layers: frozenset[Layer], limits: Limits
) -> tuple[socket.socket, subprocess.Popen[bytes]]:
    """The process of a zygote, and our end of its control socket; raises `OSError`."""
    ours, theirs = (_above_standard(end) for end in socket.socketpair())
    options = {
        "control": theirs.fileno(),
        "layers": sorted(layers),
        "limits": limits.as_dict(),
        "owner": os.getpid(),
    }
    boot = _BOOT.format(str(Path(__file__).parent))
    try:
        process = subprocess.Popen(
            [_interpreter(), "-s", "-S", "-P", "-B", "-c", boot, json.dumps(options)],
            env=_ENVIRONMENT,
            cwd="/",
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            pass_fds=(theirs.fileno(),),
            start_new_session=True,
        )
    except BaseException:
        ours.close()
        raise
    finally:
        theirs.close()
    return ours, process


def _above_standard(end: socket.socket) -> socket.socket:
    """A socket under a number that is no standard stream's, where those are closed."""
    if end.fileno() >= _STANDARD:
        return end
    with end:
        import fcntl  # here, as a replay needs no Linux

        return socket.socket(fileno=fcntl.fcntl(end.fileno(), fcntl.F_DUPFD_CLOEXEC, _STANDARD))


def _readable(descriptors: list[int], seconds: float) -> list[int]:
    """Descriptors with something to read, or at their end; none if there are none in that time."""
    poll = select.poll()  # `select` knows no descriptor from 1,024 on
    for descriptor in descriptors:
        poll.register(descriptor, select.POLLIN)
    return [descriptor for descriptor, _ in poll.poll(max(0.0, seconds) * 1000)]


def _feed(frames: Frames, part: bytes) -> None:
    try:
        frames.feed(part)
    except Malformed as error:
        raise Broken("a process of the sandbox sent what cannot be read") from error


def _mapping(frames: Frames) -> dict[str, Any]:
    frame = frames.ready[0]
    if not isinstance(frame, dict):
        raise Broken("the zygote sent what cannot be read")
    return frame


def _read(descriptor: int) -> bytes:
    """What is there to read; nothing at the end, which a reset connection is too."""
    try:
        return os.read(descriptor, _CHUNK)
    except ConnectionError:
        return b""


def _send_job(judge: int, job: Job) -> None:
    try:
        write_frame(judge, vars(job), TASK_CAP)
    except Malformed as error:
        raise Broken(f"a task with its tests is more than {TASK_CAP >> 20} MiB") from error
    except Closed as error:
        raise Broken("the judge does not listen") from error


def _interpreter() -> str:
    """The interpreter behind a virtual environment: no installed package is in its reach."""
    return getattr(sys, "_base_executable", None) or sys.executable
