"""Values that travel by value, and data that is no value."""

import array
import json
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
from contextlib import suppress
from datetime import UTC, date, datetime, time, timedelta, timezone, tzinfo
from decimal import Decimal
from fractions import Fraction
from types import MappingProxyType
from typing import Any, NamedTuple
from uuid import UUID
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tutorsim.sandbox.inner import encode_and_decode_plain_values as plain_values
from tutorsim.sandbox.inner.frames_layers_and_longest_program import Malformed

SCALARS = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), st.text(), st.binary(),
    st.complex_numbers(allow_nan=False), st.fractions(), st.decimals(allow_nan=False),
)  # fmt: skip
VALUES = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner)
        | st.lists(inner).map(tuple)
        | st.lists(st.tuples(SCALARS, inner)).map(dict)
        | st.lists(SCALARS).map(set)
        | st.lists(SCALARS).map(frozenset)
    ),
    max_leaves=8,
)
ITEMS = st.one_of(
    st.none(), st.booleans(), st.integers(-2, 9), st.floats(), st.text(max_size=3),
    SCALARS.map(str), st.lists(st.integers(-1, 6), max_size=2),
)  # fmt: skip
NODES = st.lists(
    st.builds(
        lambda tag, items: [tag, *items],
        st.sampled_from(
            [*sorted(plain_values.MUTABLE), *sorted(plain_values.MAKERS), "handle", "unknown", ""]
        ),
        st.lists(ITEMS, max_size=4),
    ),
    max_size=6,
)


def _over(value):
    """The value as it arrives, through JSON."""
    encoder = plain_values.Encoder()
    item = encoder.item(value)
    item, nodes = json.loads(json.dumps([item, encoder.nodes]))
    return plain_values.item_of(item, plain_values.decode(nodes))


@pytest.mark.costly
@given(VALUES)
def test_a_value_arrives_equal_and_of_the_same_type(value):
    arrived = _over(value)
    assert arrived == value
    assert type(arrived) is type(value)


@given(NODES)
def test_any_data_is_objects_or_malformed(nodes):
    with suppress(Malformed):
        assert len(plain_values.decode(nodes)) == len(nodes)


@pytest.mark.parametrize("nodes", [None, 1, {}, [1], [[]], [[1]], [["list", [7]]], [["list", {}]]])
def test_what_is_no_list_of_nodes_is_malformed(nodes):
    with pytest.raises(Malformed):
        plain_values.decode(nodes)


class Pair(NamedTuple):
    a: int
    b: int


class Odd(NamedTuple("Odd", [("a", int)])):
    __slots__ = ()
    _fields = ("__eq__",)


class Loud(str):
    def __str__(self):
        return "loud"

    def __eq__(self, other):
        return True

    __hash__ = str.__hash__


class Stack(list):  # type: ignore[type-arg]
    def __iter__(self):
        raise RuntimeError


SUMMER = datetime(2024, 7, 1, 12, 30, 15, 7)


@pytest.mark.parametrize(
    ("value", "plain"),
    [
        (Loud("quiet"), "quiet"),
        (Stack([1]), [1]),
        (Odd(1), (1,)),
        (True, True),
        (deque([1], maxlen=1), deque([1])),
        (2**70, 2**70),
        (-(2**53), -(2**53)),
        (float("inf"), float("inf")),
        ("\udc80", "\udc80"),
    ],
)
def test_a_subclass_arrives_as_its_base(value, plain):
    arrived = _over(value)
    assert arrived == plain
    assert type(arrived) is type(plain)


@pytest.mark.parametrize(
    "value",
    [
        OrderedDict([("b", 1), ("a", 2)]), Counter("aab"), defaultdict(list, {"a": [1]}),
        range(1, 9, 3), bytearray(b"x"), Fraction(1, 3), Decimal("1.50"),
        array.array("d", [1.5, 2]), array.array("i", []), memoryview(b"bytes"),
        *(memoryview(array.array(code, [1, 2])) for code in "bBhHiIlLqQfd"),
        UserList([1, [2]]), UserDict(a={1}),
        UserString("text"), MappingProxyType({"a": (1,)}), {"a": 1, "b": 2}.keys(),
        {"a": 1, "b": [2]}.items(), SUMMER, SUMMER.replace(tzinfo=UTC, fold=1),
        SUMMER.replace(tzinfo=timezone(timedelta(hours=-3, minutes=-30))), date(2024, 2, 29),
        time(23, 59, 1, 5, tzinfo=UTC), timedelta(-1, 3, 5), UUID(int=5),
        frozenset({(1, frozenset({2}))}),
    ],
    ids=lambda value: type(value).__name__,
)  # fmt: skip
def test_a_value_of_the_library_arrives_as_one(value):
    arrived = _over(value)
    assert arrived == value
    assert type(arrived) is type(value)


def test_the_order_of_an_ordered_dictionary_travels():
    moved = OrderedDict(a=1, b=2)
    moved.move_to_end("a")
    assert _over(moved) == OrderedDict(b=2, a=1)
    assert list(_over(moved.keys())) == ["b", "a"]


def test_the_values_of_a_dictionary_arrive_as_a_view():
    arrived = _over({"a": 1, "b": 1}.values())
    assert list(arrived) == [1, 1]
    assert type(arrived) is type({}.values())


def test_a_named_tuple_keeps_its_names():
    arrived = _over(Pair(1, [2]))
    assert arrived == (1, [2])
    assert (arrived.a, arrived.b, arrived._fields) == (1, [2], ("a", "b"))
    keyword = namedtuple("keyword", ["a"])
    keyword.__name__ = "class"
    assert type(_over(keyword(1))) is tuple


def test_a_zone_travels_by_its_key():
    moment = SUMMER.replace(tzinfo=ZoneInfo("Europe/Berlin"))
    assert _over(moment).utcoffset() == moment.utcoffset()


def test_what_is_held_twice_arrives_as_one_object():
    row: list[int] = []
    first, second = _over([row] * 2)
    assert first is second


def test_a_list_that_holds_itself_arrives_so():
    loop: list[object] = []
    loop.append((loop, {"again": loop}))
    arrived = _over(loop)
    assert arrived[0][0] is arrived
    assert arrived[0][1]["again"] is arrived


def _nested(levels, wrap):
    value = wrap(())
    for _ in range(levels):
        value = wrap((value,))
    return value


@pytest.mark.costly
@pytest.mark.parametrize(("levels", "wrap"), [(100_000, list), (9_000, tuple)])
def test_deep_values_travel(levels, wrap):
    arrived, depth = _over(_nested(levels, wrap)), 0
    while arrived:
        (arrived,) = arrived
        depth += 1
    assert depth == levels


def test_tuples_too_deep_for_the_stack_are_malformed():
    assert _over(_nested(9_999, tuple))
    with pytest.raises(Malformed):
        _over(_nested(10_000, tuple))


def test_a_small_value_of_many_paths_is_small_on_its_way():
    value: list[Any] = []
    for _ in range(60):
        value = [value, value]
    encoder = plain_values.Encoder()
    encoder.item(value)
    assert len(encoder.nodes) == 61


def test_an_iterator_arrives_as_what_it_yields():
    assert list(_over(n * n for n in range(3))) == [0, 1, 4]


def test_an_iterator_without_end_cannot_be_an_argument():
    assert isinstance(_over(iter(int, 1)), plain_values.Opaque)
    assert sum(1 for _ in _over(iter(range(100_000)))) == 100_000
    assert isinstance(_over(iter(range(100_001))), plain_values.Opaque)


class Elsewhere(tzinfo):
    def utcoffset(self, moment):
        return timedelta(0)


@pytest.mark.parametrize(
    "value",
    [
        object(), len, Ellipsis, int, lambda: 1, memoryview(bytes(4)).cast("B", (2, 2)),
        SUMMER.replace(tzinfo=Elsewhere()), time(1, tzinfo=Elsewhere()),
    ],
)  # fmt: skip
def test_what_cannot_travel_equals_nothing_and_keeps_its_truth(value):
    arrived = _over(value)
    assert isinstance(arrived, plain_values.Opaque)
    assert arrived not in (value, None, 0)
    assert (arrived.__eq__(arrived), arrived.__ne__(arrived)) == (False, True)
    assert bool(arrived) is True
    assert repr(arrived) == f"<{type(value).__name__}>"


@pytest.mark.parametrize(("truth", "travels"), [(False, False), (1 / 2, True)])
def test_an_opaque_value_is_true_unless_it_says_that_it_is_not(truth, travels):
    """A truth value that is none raises; the name is cut after 60 characters."""
    arrived = _over(type("A" * 61, (), {"__bool__": lambda self: truth})())
    assert (bool(arrived), repr(arrived)) == (travels, f"<{'A' * 60}>")


def test_values_within_an_opaque_set_stay_apart():
    assert len(_over({len, int})) == 2


MUTABLES = [
    [1, [2]], {1, 2}, deque([1]), {"a": 1}, OrderedDict(a=1), Counter("ab"),
    defaultdict(int, {1: 2}), bytearray(b"ab"), array.array("i", [1]), UserList([1]), UserDict(a=1),
]  # fmt: skip


@pytest.mark.parametrize("value", MUTABLES, ids=lambda value: type(value).__name__)
def test_what_changed_on_one_side_is_changed_on_the_other(value):
    encoder = plain_values.Encoder()
    (number,) = encoder.item(value)
    emptied = type(value)() if not isinstance(value, array.array) else array.array("i")
    there = plain_values.decode(json.loads(json.dumps(encoder.nodes)))
    assert there[number] == value
    node = json.loads(json.dumps(plain_values.Encoder(there).node(emptied)))
    if isinstance(value, UserList | UserDict):
        there = [*there, emptied.data]
        node = [node[0], [len(there) - 1]]
    plain_values.refill(encoder.objects[number], node, there)
    assert value == emptied


@pytest.mark.parametrize("value", MUTABLES, ids=lambda value: type(value).__name__)
def test_content_of_another_kind_is_malformed(value):
    (tag, *_) = plain_values.Encoder().node(value)
    with pytest.raises(Malformed):
        plain_values.refill(value, [tag, 1.5, [9]], [])
