"""Values that travel, and bytes that do not."""

import os
from collections import Counter, OrderedDict, deque
from contextlib import suppress
from decimal import Decimal
from fractions import Fraction
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tutorsim.sandbox.inner.wire import (
    Closed,
    Malformed,
    Opaque,
    decode,
    encode,
    frame_bytes,
    read_frame,
    write_frame,
)

SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(allow_nan=False),
    st.text(),
    st.binary(),
    st.complex_numbers(allow_nan=False),
    st.fractions(),
    st.decimals(allow_nan=False),
)
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
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: (
        st.lists(inner)
        | st.dictionaries(st.text(), inner)
        | st.dictionaries(
            st.sampled_from(["int", "tuple", "set", "dict", "range", "decimal", "opaque", "bytes",
                             "fraction", "complex", "iterator", "frozenset", "deque"]),
            inner, min_size=1, max_size=1,
        )
    ),
    max_leaves=12,
)  # fmt: skip


def _over_a_pipe(value: object) -> Any:
    reader, writer = os.pipe()
    try:
        write_frame(writer, encode(value))
        return decode(read_frame(reader))
    finally:
        os.close(reader)
        os.close(writer)


@given(VALUES)
def test_a_value_arrives_equal_and_of_the_same_type(value: object) -> None:
    arrived = _over_a_pipe(value)
    assert arrived == value
    assert type(arrived) is type(value)


@given(JSON)
def test_any_data_is_a_value_or_malformed(data: object) -> None:
    with suppress(Malformed):
        decode(data)


@given(st.binary(max_size=200))
def test_any_bytes_are_a_frame_or_refused(sent: bytes) -> None:
    reader, writer = os.pipe()
    os.write(writer, sent)
    os.close(writer)
    try:
        decode(read_frame(reader))
    except (Malformed, Closed):
        pass
    finally:
        os.close(reader)


class Pair(NamedTuple):
    a: int
    b: int


class Loud(str):
    def __str__(self) -> str:
        return "loud"

    def __eq__(self, other: object) -> bool:
        return True

    __hash__ = str.__hash__


@pytest.mark.parametrize(
    ("value", "plain"),
    [
        (Pair(1, 2), (1, 2)),
        (OrderedDict(a=1), {"a": 1}),
        (Counter("aab"), {"a": 2, "b": 1}),
        (Loud("quiet"), "quiet"),
        (deque([1], maxlen=1), deque([1])),
        (range(1, 9, 3), range(1, 9, 3)),
        (bytearray(b"x"), bytearray(b"x")),
        (Fraction(1, 3), Fraction(1, 3)),
        (Decimal("1.50"), Decimal("1.50")),
        (2**70, 2**70),
        (-(2**53), -(2**53)),
        (float("inf"), float("inf")),
        ("\udc80", "\udc80"),
    ],
)
def test_a_subclass_arrives_as_its_base(value: object, plain: object) -> None:
    arrived = _over_a_pipe(value)
    assert arrived == plain
    assert type(arrived) is type(plain)


def test_an_iterator_arrives_as_what_it_yields() -> None:
    assert list(_over_a_pipe(n * n for n in range(3))) == [0, 1, 4]


@pytest.mark.parametrize("value", [object(), len, Ellipsis, int, lambda: 1])
def test_what_cannot_travel_equals_nothing_and_keeps_its_truth(value: object) -> None:
    arrived = _over_a_pipe(value)
    assert isinstance(arrived, Opaque)
    assert arrived not in (value, None, 0)
    assert arrived.__eq__(arrived) is False
    assert bool(arrived) is True


def test_values_within_an_opaque_set_stay_apart() -> None:
    assert len(_over_a_pipe({len, int})) == 2


def test_a_frame_above_the_cap_is_not_sent() -> None:
    with pytest.raises(Malformed):
        frame_bytes("x" * (9 << 20))


def test_writing_to_nobody_says_so() -> None:
    reader, writer = os.pipe()
    os.close(reader)
    with pytest.raises(Closed):
        write_frame(writer, {})
    os.close(writer)
