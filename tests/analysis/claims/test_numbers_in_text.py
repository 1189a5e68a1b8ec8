"""The numbers of a text."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tutorsim.analysis.claims.claims_of_printed_numbers import numbers_in, span_of


def read(text):
    return [(n.printed, n.value, n.interval) for n in numbers_in(text)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("in 8 % of 200 turns", [("8 %", 8, None), ("200", 200, None)]),
        ("5,209 calls", [("5,209", 5209, None)]),
        ("0.28 [0.18, 0.42]", [("0.28 [0.18, 0.42]", 0.28, (0.18, 0.42))]),
        ("−0.02 [−0.10, +0.06]", [("−0.02 [−0.10, +0.06]", -0.02, (-0.1, 0.06))]),
        ("50.0 [17, 83]", [("50.0 [17, 83]", 50.0, (17, 83))]),
        ("28 [18, 42]", [("28 [18, 42]", 28, (18, 42))]),
        ("~0.185 ± 0.001", [("~0.185", 0.185, None), ("± 0.001", 0.001, None)]),
        ("p < 0.001", [("< 0.001", 0.001, None)]),
        ("18 (14+0+4)", [("18", 18, None), ("14", 14, None), ("0", 0, None), ("4", 4, None)]),
        ("2/12", [("2", 2, None), ("12", 12, None)]),
        ("simple − baseline +0.33, of 40.", [("+0.33", 0.33, None), ("40", 40, None)]),
        ("a 4-voter panel, −3 apart", [("4", 4, None), ("−3", -3, None)]),
        ("at least 1e-05", [("1e-05", 1e-05, None)]),
        ("2.42†", [("2.42", 2.42, None)]),
    ],
)
def test_a_number_is_read_with_what_qualifies_it(text, expected):
    assert read(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "claude-haiku-4-5 and claude-sonnet-4-5",
        "7cc561eba7f6",
        "recorded on 2026-11-21",
        "2.12.0",
        "Table 2",
        "macro-F1",
        "squad2, printed 8B",
        "predicted_0",
        "",
    ],
)
def test_a_name_with_digits_is_no_number(text):
    assert read(text) == []


def test_a_span_is_an_interval_without_a_value():
    assert span_of("0.25 to 0.33")[2:] == ("0.25 to 0.33", None, (0.25, 0.33))
    assert span_of("12") is None
    assert span_of("from 1 to 2") is None


@given(st.lists(st.sampled_from(["turn", " ", "0.5", "17", "%", "[", "]", ", ", "−", "x7", "."])))
def test_no_digit_outside_a_word_is_left_out(parts):
    text = "".join(parts)
    covered = {at for n in numbers_in(text) for at in range(n.start, n.end)}
    left = "".join(c if at not in covered else "\0" for at, c in enumerate(text))
    for word in re.split(r"[^\w.\-/]", left):
        assert not re.search(r"[0-9]", word) or re.search(r"[^\W0-9]|\d\.\d+\.\d", word), text
