"""Frames between processes, and Python values as plain data.

A frame is four bytes of length and that many of JSON. A value travels by its exact builtin
type: subclasses are flattened by the base class's own methods, and whatever has no plain form
becomes an `Opaque`, equal to nothing. The reader builds every object itself, so no method of
the sender's is ever called on the reader's side.
"""

import json
import os
from collections import deque
from collections.abc import Callable, Iterator
from decimal import Decimal
from fractions import Fraction

__all__ = ["FRAME_CAP", "Closed", "Malformed", "Opaque", "decode", "encode",
    "frame_bytes", "read_frame",
           "write_frame"]  # fmt: skip

FRAME_CAP = 8 * 1024 * 1024
DEPTH_CAP = 200
ITERATOR_CAP = 10_000
_PLAIN_INT = 1 << 53
_HEADER = 4


class Closed(Exception):
    """The other side is gone."""


class Malformed(Exception):
    """The other side sent what is no frame or no value."""


class Opaque:
    """A value that cannot travel. Its truth travels; it equals nothing, not even itself."""

    __hash__ = object.__hash__

    def __init__(self, kind: str, truth: bool) -> None:
        self.kind = kind
        self.truth = truth

    def __eq__(self, other: object) -> bool:
        return False

    def __ne__(self, other: object) -> bool:
        return True

    def __bool__(self) -> bool:
        return self.truth

    def __repr__(self) -> str:
        return f"<{self.kind}>"


def write_frame(descriptor: int, value: object) -> None:
    """Send a JSON value; raises `Malformed` above the cap and `Closed` when nobody listens."""
    view = memoryview(frame_bytes(value))
    try:
        while view:
            view = view[os.write(descriptor, view) :]
    except OSError as error:
        raise Closed from error


def frame_bytes(value: object) -> bytes:
    """A JSON value as a frame; raises `Malformed` above the cap."""
    body = json.dumps(value, separators=(",", ":")).encode("ascii")
    if len(body) > FRAME_CAP:
        raise Malformed("too large")
    return len(body).to_bytes(_HEADER, "big") + body


def read_frame(descriptor: int) -> object:
    """Receive a JSON value; raises `Closed` at the end and `Malformed` for anything else."""
    length = int.from_bytes(_read_exactly(descriptor, _HEADER), "big")
    if length > FRAME_CAP:
        raise Malformed("too large")
    body = _read_exactly(descriptor, length)
    try:
        value: object = json.loads(body)
    except (ValueError, RecursionError, MemoryError) as error:
        raise Malformed("not JSON") from error
    return value


def _read_exactly(descriptor: int, length: int) -> bytes:
    parts = []
    while length:
        try:
            part = os.read(descriptor, min(length, 1 << 20))
        except OSError as error:
            raise Closed from error
        if not part:
            raise Closed
        parts.append(part)
        length -= len(part)
    return b"".join(parts)


def encode(value: object, depth: int = 0) -> object:
    """A value as JSON-able data; never fails, except as iterating the value itself fails."""
    if value is None or value is True or value is False:
        return value
    if depth > DEPTH_CAP:
        return _opaque(value)
    kind = type(value)
    writer = _WRITERS.get(kind)
    if writer is None:
        base = next((b for b in _BASES if issubclass(kind, b)), None)
        if base is None:
            return _iterator(value, depth) if isinstance(value, Iterator) else _opaque(value)
        writer = _WRITERS[base]
    return writer(value, depth + 1)


def _int(value: int, _: int) -> object:
    plain = int.__add__(value, 0)
    return plain if -_PLAIN_INT < plain < _PLAIN_INT else {"int": hex(plain)}


def _ints_of(*values: int) -> list[object]:
    return [_int(value, 0) for value in values]


def _items(tag: str, base: type) -> Callable[[object, int], object]:
    walk = base.__iter__  # type: ignore[attr-defined]

    def write(value: object, depth: int) -> object:
        return {tag: [encode(item, depth) for item in walk(value)]}

    return write


_WRITERS: dict[type, Callable[..., object]] = {
    int: _int,
    float: lambda value, _: float.__add__(value, -0.0),
    str: lambda value, _: str.__str__(value)[:],
    list: lambda value, depth: [encode(item, depth) for item in list.__iter__(value)],
    tuple: _items("tuple", tuple),
    set: _items("set", set),
    frozenset: _items("frozenset", frozenset),
    deque: _items("deque", deque),
    dict: lambda value, depth: {
        "dict": [[encode(k, depth), encode(v, depth)] for k, v in dict.items(value)]
    },
    bytes: lambda value, _: {"bytes": bytes.hex(value)},
    bytearray: lambda value, _: {"bytearray": bytearray.hex(value)},
    complex: lambda value, _: {"complex": [value.real, value.imag]},
    range: lambda value, _: {"range": _ints_of(value.start, value.stop, value.step)},
    Fraction: lambda value, _: {"fraction": _ints_of(value.numerator, value.denominator)},
    Decimal: lambda value, _: {"decimal": Decimal.__str__(value)},
}  # fmt: skip
_BASES = tuple(_WRITERS)


def _iterator(value: Iterator[object], depth: int) -> object:
    """What a lazy result yields: tests may ask for `list(candidate(x))`."""
    items: list[object] = []
    try:
        for item in value:
            if len(items) == ITERATOR_CAP:
                return _opaque(value)
            items.append(encode(item, depth + 1))
    except Exception:
        return _opaque(value)
    return {"iterator": items}


def _opaque(value: object) -> object:
    try:
        truth = bool(value)
    except Exception:
        truth = True
    return {"opaque": [str(type(value).__name__)[:60], truth]}


def decode(data: object, depth: int = 0) -> object:
    """Build the value anew; raises `Malformed` for data that `encode` does not write."""
    if data is None or isinstance(data, bool | int | float | str):
        return data
    if depth > DEPTH_CAP + 1:
        raise Malformed("too deep")
    if isinstance(data, list):
        return [decode(item, depth + 1) for item in data]
    if not isinstance(data, dict) or len(data) != 1:
        raise Malformed("not a value")
    ((tag, body),) = data.items()
    try:
        return _READERS[tag](body, depth + 1)
    except (
        LookupError,
        TypeError,
        ValueError,
        ArithmeticError,
        RecursionError,
        MemoryError,
    ) as error:
        raise Malformed(f"not a {tag[:20]}") from error


def _decoded(body: object, depth: int) -> list[object]:
    if not isinstance(body, list):
        raise Malformed("not a list")
    return [decode(item, depth) for item in body]


def _text(body: object) -> str:
    if not isinstance(body, str):
        raise Malformed("not a text")
    return body


def _ints(body: object, depth: int) -> list[int]:
    numbers = _decoded(body, depth)
    if not all(type(number) is int for number in numbers):
        raise Malformed("not whole numbers")
    return numbers  # type: ignore[return-value]


def _dict(body: object, depth: int) -> dict[object, object]:
    return dict(tuple(_decoded(pair, depth)) for pair in _decoded_pairs(body))  # type: ignore[misc]


def _decoded_pairs(body: object) -> list[object]:
    if not isinstance(body, list) or not all(isinstance(p, list) and len(p) == 2 for p in body):
        raise Malformed("not pairs")
    return body


_READERS: dict[str, Callable[..., object]] = {
    "int": lambda body, _: int(_text(body), 16),
    "tuple": lambda body, depth: tuple(_decoded(body, depth)),
    "set": lambda body, depth: set(_decoded(body, depth)),
    "frozenset": lambda body, depth: frozenset(_decoded(body, depth)),
    "deque": lambda body, depth: deque(_decoded(body, depth)),
    "dict": _dict,
    "bytes": lambda body, _: bytes.fromhex(_text(body)),
    "bytearray": lambda body, _: bytearray.fromhex(_text(body)),
    "complex": lambda body, depth: complex(*map(float, _numbers(body, depth))),
    "range": lambda body, depth: range(*_ints(body, depth)),
    "fraction": lambda body, depth: Fraction(*_ints(body, depth)),
    "decimal": lambda body, _: Decimal(_text(body)),
    "iterator": lambda body, depth: iter(_decoded(body, depth)),
    "opaque": lambda body, _: Opaque(_text(body[0]), body[1] is True),
}


def _numbers(body: object, depth: int) -> list[float]:
    numbers = _decoded(body, depth)
    if len(numbers) != 2 or not all(isinstance(number, float) for number in numbers):
        raise Malformed("not two numbers")
    return numbers  # type: ignore[return-value]
