"""Python values as plain data.

A value is written as *nodes*: one JSON list for each object that is no scalar, of a tag and the
items in it. An item is a scalar (`None`, a truth value, a number, a text) or `[index]`, which
names a node. So no depth of nesting costs a call stack, an object that is held twice arrives as
one object, and a list may hold itself.

A value travels by its builtin type: subclasses are flattened by the base class's own methods,
and whatever has no plain form becomes an `Opaque`, equal to nothing. The reader builds every
object itself, so no method of the sender's is ever called on the reader's side.

Both sides of a call number its arguments alike: the nodes of an answer are numbered on from
those of the arguments. So an answer can name an argument, and say what became of one.
"""

from array import array
from collections import (
    Counter,
    OrderedDict,
    UserDict,
    UserList,
    UserString,
    defaultdict,
    deque,
    namedtuple,
)
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from itertools import islice
from keyword import iskeyword
from types import MappingProxyType
from typing import Any
from uuid import UUID
from zoneinfo import ZoneInfo

from .frames_layers_and_longest_program import Malformed

# --- Nodes ---------------------------------------------------------------------------------------

NAME_CAP = 60
"""Characters of a class's name that travel with an opaque value or an exception."""

Item = object
Node = list[Any]
ItemOf = Callable[[object], Item]
"""What writes the parts of a value."""


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


# --- Writing: from values to nodes ---------------------------------------------------------------

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
        if kind is bool or value is None:
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


# --- Reading: from nodes to values, built again --------------------------------------------------

DEPTH_CAP = 10_000
"""Levels of tuples within tuples, and of other values that are made from the inside out: the
interpreter computes hashes of deep ones, and takes deep deques apart, on the C stack."""


class _Unbuilt:
    """Stands for an object that is not made yet."""


Decoded = list[Any]
"""Number → object: those that were known, then one for each node."""


def decode(
    nodes: object,
    known: Sequence[object] = (),
    pulled: Callable[[int], Iterator[Any]] | None = None,
) -> Decoded:
    """Build the objects again.

    Nothing is assumed of the nodes but what an `Encoder` writes: `Malformed` for other data.
    `known` are objects that they may name by number; `pulled` turns a handle into an iterator.
    """
    if not isinstance(nodes, list) or not all(_is_node(node) for node in nodes):
        raise Malformed("not a list of nodes")
    first = len(known)
    try:
        objects: Decoded = [*known, *map(_shell, nodes)]
        _build(nodes, objects, first, pulled)
        for number, node in enumerate(nodes, start=first):
            if node[0] in _SHELLS:
                refill(objects[number], node, objects)
    except _REFUSED as error:
        raise Malformed("not a value") from error
    return objects


_REFUSED = (LookupError, TypeError, ValueError, ArithmeticError, AttributeError, RecursionError,
            MemoryError, SystemError)  # fmt: skip


def item_of(item: Item, objects: Decoded) -> Any:
    """What an item stands for; raises `Malformed` if it is none."""
    if item is None or isinstance(item, bool | int | float | str):
        return item
    return objects[_number(item, objects)]


def refill(target: Any, node: Node, objects: Decoded) -> None:
    """Give an object that can change the content of a node of its kind."""
    try:
        _FILLERS[node[0]](target, [item_of(item, objects) for item in node[1:]])
    except _REFUSED as error:
        raise Malformed(f"no content of a {node[0][:20]}") from error


def _number(item: Item, objects: Decoded) -> int:
    if not isinstance(item, list) or len(item) != 1 or type(item[0]) is not int:
        raise Malformed("not an item")
    if not 0 <= item[0] < len(objects):
        raise Malformed("no such node")
    return item[0]


def _shell(node: Node) -> Any:
    """An empty object that can change, to be filled; a mark for one that cannot."""
    make = _SHELLS.get(node[0])
    return _Unbuilt if make is None else make(node)


def _is_node(node: object) -> bool:
    return isinstance(node, list) and bool(node) and isinstance(node[0], str)


def _build(
    nodes: list[Node], objects: Decoded, first: int, pulled: Callable[[int], Iterator[Any]] | None
) -> None:
    """Make what cannot change once it is made, the innermost first."""
    depths: dict[int, int] = {}
    entered: set[int] = set()
    for start in range(first, len(objects)):
        waiting = [start]
        while waiting:
            number = waiting[-1]
            if objects[number] is not _Unbuilt:
                waiting.pop()
                continue
            node = nodes[number - first]
            inner = [_number(item, objects) for item in node[1:] if isinstance(item, list)]
            missing = [n for n in inner if objects[n] is _Unbuilt]
            if missing:
                if number in entered:
                    raise Malformed("a value that holds itself")
                entered.add(number)
                waiting += missing
                continue
            depths[number] = 1 + max((depths.get(n, 0) for n in inner), default=0)
            if depths[number] > DEPTH_CAP:
                raise Malformed("too deep")
            items = [item_of(item, objects) for item in node[1:]]
            objects[number] = _made(node[0], items, pulled)


def _made(tag: str, items: list[Any], pulled: Callable[[int], Iterator[Any]] | None) -> Any:
    if tag != "handle":
        return MAKERS[tag](*items)
    if pulled is None or len(items) != 1 or type(items[0]) is not int:
        raise Malformed("no handle")
    return pulled(items[0])


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise Malformed("not a text")
    return value


def _paired(items: Iterable[Any]) -> Iterable[tuple[Any, Any]]:
    parts = iter(items)
    return zip(parts, parts, strict=True)


@lru_cache(maxsize=256)
def _named(name: str, fields: str) -> Any:
    return namedtuple(_text(name), _text(fields).split(","))


def _zoned(moment: Any, fold: Any, zone: Any) -> Any:
    if not isinstance(zone, timezone | ZoneInfo | None):
        raise Malformed("no time zone")
    return moment.replace(fold=fold, tzinfo=zone)


MAKERS: dict[str, Callable[..., Any]] = {
    "int": lambda digits: int(_text(digits), 16),
    "tuple": lambda *items: items,
    "named": lambda name, fields, *items: _named(name, fields)(*items),
    "frozenset": lambda *items: frozenset(items),
    "deque": lambda *items: deque(items),
    "keys": lambda *items: dict.fromkeys(items).keys(),
    "values": lambda *items: dict(enumerate(items)).values(),
    "items": lambda *items: dict(_paired(items)).items(),
    "proxy": lambda *items: MappingProxyType(dict(_paired(items))),
    "bytes": lambda digits: bytes.fromhex(_text(digits)),
    "memoryview": lambda code, *items: memoryview(array(_text(code), items)),
    "complex": lambda real, imag: complex(float(real), float(imag)),
    "range": lambda *items: range(*items),
    "fraction": lambda above, below: Fraction(int(above), int(below)),
    "decimal": lambda text: Decimal(_text(text)),
    "datetime": lambda text, *zone: _zoned(datetime.fromisoformat(text), *zone),
    "date": lambda text: date.fromisoformat(text),
    "time": lambda text, *zone: _zoned(time.fromisoformat(text), *zone),
    "timedelta": lambda days, seconds, micro: timedelta(days, seconds, micro),
    "timezone": lambda offset: timezone(offset),
    "zone": lambda key: ZoneInfo(_text(key)),
    "uuid": lambda digits: UUID(_text(digits)),
    "userstring": lambda text: UserString(_text(text)),
    "iterator": lambda *items: iter(items),
    "opaque": lambda kind, truth: Opaque(_text(kind)[:NAME_CAP], truth is True),
}
_SHELLS: dict[str, Callable[[Node], Any]] = {
    "list": lambda _: [],
    "set": lambda _: set(),
    "dict": lambda _: {},
    "ordered": lambda _: OrderedDict(),
    "counter": lambda _: Counter(),
    "defaultdict": lambda _: defaultdict(),
    "bytearray": lambda _: bytearray(),
    "array": lambda node: array(_text(node[1])),
    "userlist": lambda _: UserList(),
    "userdict": lambda _: UserDict(),
}
MUTABLE = frozenset({*_SHELLS, "deque"})
"""Tags of what can change after it was made. A deque is made from the inside out all the same."""


def _fill_list(target: Any, items: list[Any]) -> None:
    target[:] = items


def _fill_set(target: Any, items: list[Any]) -> None:
    target.clear()
    target.update(items)


def _fill_deque(target: Any, items: list[Any]) -> None:
    target.clear()
    target.extend(items)


def _fill_dict(target: Any, items: list[Any]) -> None:
    pairs = list(_paired(items))
    target.clear()
    for key, value in pairs:
        target[key] = value


def _fill_bytes(target: Any, items: list[Any]) -> None:
    (digits,) = items
    target[:] = bytes.fromhex(_text(digits))


def _fill_array(target: Any, items: list[Any]) -> None:
    if items[0] != target.typecode:
        raise Malformed("another kind of array")
    target[:] = array(target.typecode, items[1:])


def _fill_held(kind: type) -> Callable[[Any, list[Any]], None]:
    def fill(target: Any, items: list[Any]) -> None:
        (data,) = items
        if not isinstance(data, kind):
            raise Malformed("holds something else")
        target.data = data

    return fill


_FILLERS: dict[str, Callable[[Any, list[Any]], None]] = {
    "list": _fill_list,
    "set": _fill_set,
    "deque": _fill_deque,
    "dict": _fill_dict,
    "ordered": _fill_dict,
    "counter": _fill_dict,
    "defaultdict": _fill_dict,
    "bytearray": _fill_bytes,
    "array": _fill_array,
    "userlist": _fill_held(list),
    "userdict": _fill_held(dict),
}
