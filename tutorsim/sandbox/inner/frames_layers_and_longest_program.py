"""What both sides of the sandbox agree on: frames, the names of the layers, the longest program.

A frame is four bytes of length and that many of JSON.
"""

import json
import os
from typing import Final, Literal, get_args

CODE_CAP = 64 * 1024
"""Characters of a program."""

Layer = Literal["seccomp", "namespaces", "landlock", "rlimits", "uid"]
"""One mechanism of the kernel; `uid` gives up root for a user that nobody else is."""

LAYERS: Final[tuple[Layer, ...]] = get_args(Layer)

# --- Frames --------------------------------------------------------------------------------------

FRAME_CAP = 8 << 20
"""Bytes of a frame that a student's program may send."""
TASK_CAP = 64 << 20
"""Bytes of a frame that brings a task, or arguments, to a process of the sandbox."""
_HEADER = 4


class Closed(Exception):
    """The other side is gone."""


class Malformed(Exception):
    """The other side sent what is no frame or no value."""


class Frames:
    """Puts frames together from parts, however they were cut. The longest frame has `cap` bytes."""

    def __init__(self, cap: int = FRAME_CAP) -> None:
        self.ready: list[object] = []
        """Values of whole frames, in the order in which they came."""
        self._cap = cap
        self._rest = bytearray()

    @property
    def missing(self) -> int:
        """Bytes that the current frame lacks, as far as its length is known."""
        return self._needed() - len(self._rest)

    def feed(self, part: bytes) -> None:
        """Take in a part; raises `Malformed` for a frame above the cap, or that is not JSON."""
        self._rest += part
        while len(self._rest) >= _HEADER:
            end = self._needed()
            if end - _HEADER > self._cap:
                raise Malformed("too large")
            if len(self._rest) < end:
                return
            self.ready.append(_parsed(bytes(self._rest[_HEADER:end])))
            del self._rest[:end]

    def _needed(self) -> int:
        if len(self._rest) < _HEADER:
            return _HEADER
        return _HEADER + int.from_bytes(self._rest[:_HEADER], "big")


def _parsed(body: bytes) -> object:
    try:
        value: object = json.loads(body)
    except (ValueError, RecursionError, MemoryError) as error:
        raise Malformed("not JSON") from error
    return value


def read_frame(descriptor: int, cap: int = FRAME_CAP) -> object:
    """Receive one frame; raises `Closed` at the end and `Malformed` for anything else."""
    frames = Frames(cap)
    while not frames.ready:
        try:
            part = os.read(descriptor, min(frames.missing, 1 << 20))
        except OSError as error:
            raise Closed from error
        if not part:
            raise Closed
        frames.feed(part)
    return frames.ready[0]


def write_frame(descriptor: int, value: object, cap: int = FRAME_CAP) -> None:
    """Send a JSON value; raises `Malformed` above the cap and `Closed` when nobody listens."""
    view = memoryview(frame_bytes(value, cap))
    try:
        while view:
            view = view[os.write(descriptor, view) :]
    except OSError as error:
        raise Closed from error


def frame_bytes(value: object, cap: int = FRAME_CAP) -> bytes:
    """A JSON value as a frame; raises `Malformed` above the cap."""
    body = json.dumps(value, separators=(",", ":")).encode("ascii")
    if len(body) > cap:
        raise Malformed("too large")
    return len(body).to_bytes(_HEADER, "big") + body
