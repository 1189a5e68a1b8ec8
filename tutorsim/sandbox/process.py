"""The near side of one zygote process: start it, hand it programs, read what comes back."""

import array
import json
import os
import selectors
import socket
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tutorsim.sandbox.inner.wire import FRAME_CAP
from tutorsim.sandbox.levels import Layer, Limits

__all__ = ["Aftermath", "Broken", "Job", "Zygote"]

_BOOT = "import sys; sys.path.append({!r}); from inner.zygote import main; main()"
_ENVIRONMENT = {"PYTHONHASHSEED": "0", "LC_ALL": "C.UTF-8", "TZ": "UTC"}
_START_SECONDS = 30.0
_GRACE_SECONDS = 30.0
_KEPT_OUTPUT = 64 * 1024
_HEADER = 4


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
    """A started zygote. Not thread-safe: one program at a time.

    Args:
        layers: The layers to try.
        limits: What a program may use.

    Raises:
        Broken: If it does not start.
    """

    def __init__(self, layers: frozenset[Layer], limits: Limits) -> None:
        self._limits = limits
        ours, theirs = socket.socketpair()
        options = {
            "control": theirs.fileno(),
            "layers": sorted(layers),
            "limits": limits.as_dict(),
            "owner": os.getpid(),
        }
        boot = _BOOT.format(str(Path(__file__).parent))
        with theirs:
            self._process = subprocess.Popen(
                [_interpreter(), "-s", "-S", "-P", "-B", "-c", boot, json.dumps(options)],
                env=_ENVIRONMENT,
                cwd="/",
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                pass_fds=(theirs.fileno(),),
                start_new_session=True,
            )
        self._control = ours
        try:
            self.started = self._reply(_START_SECONDS)
        except Broken:
            self.close()
            raise

    def run(self, job: Job) -> Aftermath:
        """Judge one program; raises `Broken` when the zygote fails to."""
        judge, judge_end = socket.socketpair()
        reader, writer = os.pipe()
        try:
            with judge_end:
                descriptors = array.array("i", [judge_end.fileno(), writer])
                self._send(b"R", descriptors)
                os.close(writer)
            _send_job(judge, job)
            return self._collect(judge, reader)
        finally:
            judge.close()
            os.close(reader)

    def fixed_loop(self) -> float:
        """Seconds for three million turns of an empty loop, as a measure of the machine."""
        self._send(b"B")
        return float(self._reply(_START_SECONDS)["fixed_loop"])

    def close(self) -> None:
        """End the process and everything under it."""
        self._control.close()
        try:
            self._process.wait(timeout=2)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def _send(self, command: bytes, descriptors: "array.array[int] | None" = None) -> None:
        ancillary = []
        if descriptors is not None:
            ancillary = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, descriptors)]
        try:
            self._control.sendmsg([command], ancillary)
        except OSError as error:
            raise Broken("the zygote is gone") from error

    def _reply(self, seconds: float) -> dict[str, Any]:
        frames = _Frames()
        deadline = time.monotonic() + seconds
        while not frames.ready:
            self._control.settimeout(max(0.01, deadline - time.monotonic()))
            try:
                part = self._control.recv(65536)
            except OSError as error:
                raise Broken("the zygote does not answer") from error
            if not part:
                raise Broken("the zygote ended")
            frames.feed(part)
        return frames.ready[0]

    def _collect(self, judge: socket.socket, reader: int) -> Aftermath:
        """Read the three sources until each is at its end."""
        aftermath = Aftermath()
        said, report = _Frames(), _Frames()
        deadline = time.monotonic() + self._limits.wall * (2 + self._limits.cpu) + _GRACE_SECONDS
        with selectors.DefaultSelector() as selector:
            for source in (judge, reader, self._control):
                selector.register(source, selectors.EVENT_READ)
            while not (report.ready and len(selector.get_map()) == 1):
                ready = selector.select(max(0.0, deadline - time.monotonic()))
                if not ready:
                    raise Broken("the zygote does not answer")
                for key, _ in ready:
                    part = os.read(key.fd, 65536)
                    if key.fd == self._control.fileno():
                        _fed(report, part)
                    elif not part:
                        selector.unregister(key.fileobj)
                    elif key.fd == reader:
                        self._took(aftermath, part)
                    else:
                        said.feed(part)
        aftermath.frames, aftermath.ends = said.ready, report.ready[0]
        return aftermath

    def _took(self, aftermath: Aftermath, part: bytes) -> None:
        before = aftermath.written
        aftermath.written += len(part)
        aftermath.output += part[: max(0, _KEPT_OUTPUT - before)]
        if before <= self._limits.output < aftermath.written:
            self._send(b"O")


class _Frames:
    """Puts frames together from parts."""

    def __init__(self) -> None:
        self.ready: list[dict[str, Any]] = []
        self._rest = bytearray()

    def feed(self, part: bytes) -> None:
        self._rest += part
        while len(self._rest) >= _HEADER:
            length = int.from_bytes(self._rest[:_HEADER], "big")
            if length > FRAME_CAP:
                raise Broken("a frame is too long")
            if len(self._rest) < _HEADER + length:
                return
            self.ready.append(json.loads(self._rest[_HEADER : _HEADER + length]))
            del self._rest[: _HEADER + length]


def _fed(report: _Frames, part: bytes) -> None:
    if not part:
        raise Broken("the zygote ended")
    report.feed(part)


def _send_job(judge: socket.socket, job: Job) -> None:
    body = json.dumps(vars(job), separators=(",", ":")).encode("ascii")
    judge.settimeout(_START_SECONDS)
    try:
        judge.sendall(len(body).to_bytes(_HEADER, "big") + body)
    except OSError as error:
        raise Broken("the judge does not listen") from error
    judge.settimeout(None)


def _interpreter() -> str:
    """The interpreter behind a virtual environment: no installed package is in its reach."""
    return getattr(sys, "_base_executable", None) or sys.executable
