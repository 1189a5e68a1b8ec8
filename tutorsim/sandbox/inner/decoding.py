"""From nodes to Python values, built again; see `wire` for what nodes are."""

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
from types import MappingProxyType
from typing import Any
from uuid import UUID
from zoneinfo import ZoneInfo

from .frames import Malformed
from .wire import NAME_CAP, Item, Node, Opaque

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
    nodes: list[Node],
    objects: Decoded,
    first: int,
    pulled: Callable[[int], Iterator[Any]] | None,
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
