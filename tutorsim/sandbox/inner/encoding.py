"""From Python values to nodes; see `wire` for what nodes are."""

from array import array
from collections import Counter, OrderedDict, UserDict, UserList, UserString, defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal
from fractions import Fraction
from itertools import islice
from keyword import iskeyword
from types import MappingProxyType
from typing import Any
from uuid import UUID
from zoneinfo import ZoneInfo

from .wire import NAME_CAP, Item, ItemOf, Node

EAGER_CAP = 100_000
"""Items of an iterator that is an argument; an answer's iterator is asked for more instead."""
_PLAIN_INT = 1 << 53


class Encoder:
    """Writes values that belong together.

    `known` are objects that the reader has already, in the order of their numbers. `lazily` turns
    an iterator into a handle, by which the reader asks for its items; without it an iterator is
    written as what it yields, up to a cap.
    """

    def __init__(
        self, known: Sequence[object] = (), lazily: Callable[[Iterator[Any]], Node] | None = None
    ) -> None:
        self.objects: list[object] = list(known)
        """Number → object. Held here, so that no other object takes its identity."""
        self.nodes: list[Node] = []
        """The new nodes, numbered on from the known objects."""
        self._first = len(self.objects)
        self._numbers = {id(value): number for number, value in enumerate(self.objects)}
        self._unwritten: list[int] = []
        self._lazily = lazily

    def item(self, value: object) -> Item:
        """The value as an item; never fails, except as a method of the value's own fails."""
        return self._with_nodes(self._item(value))

    def node(self, value: object) -> Node:
        """The value as a node of its own, also where its number is known."""
        node = self._node(value)
        self._with_nodes(None)
        return node

    def _with_nodes(self, item: Item) -> Item:
        while self._unwritten:
            number = self._unwritten.pop()
            self.nodes[number - self._first] = self._node(self.objects[number])
        return item

    def _item(self, value: object) -> Item:
        kind = type(value)
        if kind is str or kind is float or kind is bool or value is None:
            return value
        if issubclass(kind, int):
            plain = int.__add__(value, 0)  # type: ignore[operator]
            if -_PLAIN_INT < plain < _PLAIN_INT:
                return plain
        elif issubclass(kind, str):
            return str.__str__(value)[:]
        elif issubclass(kind, float):
            return float.__add__(value, -0.0)  # type: ignore[operator]
        number = self._numbers.get(id(value))
        if number is None:
            number = self._numbers[id(value)] = len(self.objects)
            self.objects.append(value)
            self.nodes.append([])
            self._unwritten.append(number)
        return [number]

    def _node(self, value: object) -> Node:
        kind = type(value)
        writer = _WRITERS.get(kind)
        if writer is None:
            base = next((b for b in _BASES if issubclass(kind, b)), None)
            writer = _WRITERS[base] if base else None
        try:
            if writer is not None:
                return writer(value, self._item)
            if isinstance(value, Iterator):
                return self._iterator(value)
        except Exception:
            # A value that cannot be looked into is opaque, like one that has no plain form.
            return _opaque(value)
        return _opaque(value)

    def _iterator(self, value: Iterator[Any]) -> Node:
        if self._lazily is not None:
            return self._lazily(value)
        items = [self._item(item) for item in islice(value, EAGER_CAP + 1)]
        return ["iterator", *items] if len(items) <= EAGER_CAP else _opaque(value)


def _items(tag: str, base: Any) -> Callable[[Any, ItemOf], Node]:
    return lambda value, item: [tag, *map(item, base.__iter__(value))]


def _pairs(tag: str, base: Any) -> Callable[[Any, ItemOf], Node]:
    """Keys and values by turns."""

    def write(value: Any, item: ItemOf) -> Node:
        return [tag, *(item(part) for pair in base.items(value) for part in pair)]

    return write


def _tuple(value: tuple[Any, ...], item: ItemOf) -> Node:
    kind = type(value)
    items = map(item, tuple.__iter__(value))
    fields = () if kind is tuple else getattr(kind, "_fields", ())
    name = str(kind.__name__)
    if not fields or len(fields) != tuple.__len__(value) or not _are_names((name, *fields)):
        return ["tuple", *items]
    return ["named", name, ",".join(fields), *items]


def _are_names(names: Iterable[Any]) -> bool:
    """Whether a named tuple may have them, for itself and its fields."""
    return all(
        type(name) is str and name.isidentifier() and name[0] != "_" and not iskeyword(name)
        for name in names
    )


def _memoryview(value: memoryview, item: ItemOf) -> Node:
    if value.ndim != 1 or value.format not in "bBhHiIlLqQfd":
        return _opaque(value)
    return ["memoryview", value.format, *map(item, value.tolist())]


def _moment(value: datetime, item: ItemOf) -> Node:
    if not isinstance(value.tzinfo, timezone | ZoneInfo | None):
        return _opaque(value)
    return ["datetime", datetime.isoformat(value.replace(tzinfo=None)), value.fold,
            item(value.tzinfo)]  # fmt: skip


def _time(value: time, item: ItemOf) -> Node:
    if not isinstance(value.tzinfo, timezone | ZoneInfo | None):
        return _opaque(value)
    return ["time", time.isoformat(value.replace(tzinfo=None)), value.fold, item(value.tzinfo)]


def _held(tag: str) -> Callable[[Any, ItemOf], Node]:
    return lambda value, item: [tag, item(value.data)]


# A class comes before those that it is a subclass of.
_WRITERS: dict[type, Callable[[Any, ItemOf], Node]] = {
    int: lambda value, _: ["int", hex(int.__add__(value, 0))],
    list: _items("list", list),
    tuple: _tuple,
    set: _items("set", set),
    frozenset: _items("frozenset", frozenset),
    deque: _items("deque", deque),
    OrderedDict: _pairs("ordered", OrderedDict),
    Counter: _pairs("counter", dict),
    defaultdict: _pairs("defaultdict", dict),
    dict: _pairs("dict", dict),
    type({}.keys()): lambda value, item: ["keys", *map(item, value)],
    type({}.values()): lambda value, item: ["values", *map(item, value)],
    type({}.items()): lambda value, item: ["items", *(item(p) for pair in value for p in pair)],
    MappingProxyType: lambda value, item: ["proxy", *_pairs("", dict)(dict(value), item)[1:]],
    bytes: lambda value, _: ["bytes", bytes.hex(value)],
    bytearray: lambda value, _: ["bytearray", bytearray.hex(value)],
    array: lambda value, item: ["array", value.typecode, *map(item, array.tolist(value))],
    memoryview: _memoryview,
    complex: lambda value, _: ["complex", value.real, value.imag],
    range: lambda value, item: ["range", *map(item, (value.start, value.stop, value.step))],
    Fraction: lambda value, item: ["fraction", item(value.numerator), item(value.denominator)],
    Decimal: lambda value, _: ["decimal", Decimal.__str__(value)],
    datetime: _moment,
    date: lambda value, _: ["date", date.isoformat(value)],
    time: _time,
    timedelta: lambda value, _: ["timedelta", value.days, value.seconds, value.microseconds],
    timezone: lambda value, item: ["timezone", item(value.utcoffset(None))],
    ZoneInfo: lambda value, _: ["zone", str(value.key)] if value.key else _opaque(value),
    UUID: lambda value, _: ["uuid", value.hex],
    UserList: _held("userlist"),
    UserDict: _held("userdict"),
    UserString: lambda value, _: ["userstring", str.__str__(value.data)],
}
_BASES = tuple(_WRITERS)
_ORDERED = OrderedDict[object, object]()
for _kind, _like in (
    (type(_ORDERED.keys()), {}.keys()), (type(_ORDERED.values()), {}.values()),
    (type(_ORDERED.items()), {}.items()),
):  # fmt: skip
    _WRITERS[_kind] = _WRITERS[type(_like)]


def _opaque(value: object) -> Node:
    try:
        truth = bool(value)
    except Exception:
        truth = True
    return ["opaque", str(type(value).__name__)[:NAME_CAP], truth]
