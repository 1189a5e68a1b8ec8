"""Ids of cells."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tutorsim.analysis.claims.claims_of_printed_numbers import (
    cell_names,
    column_names,
    key_columns,
    slug,
    unique,
)

HEADERS = ["protocol", "what", "turns", "share"]
ROWS = [
    ["simple", "flip", "53", "0.28"],
    ["simple", "tie", "53", "0.21"],
    ["ranked", "flip", "9", "1"],
]


def test_a_slug_keeps_letters_of_any_script_and_the_sign_of_a_number():
    assert slug("Wins of  “Ødegård”, ρ") == "wins-of-ødegård-ρ"
    assert slug("−1") == "minus-1"
    assert slug("simple − baseline") == "simple-baseline"
    assert slug("►") == slug("") == "none"


def test_different_texts_never_share_a_slug():
    first, second, third = unique(["a b", "a-b", "a b"])
    assert first == third != second
    assert first.startswith("a-b~")


def test_rows_are_told_apart_by_as_few_words_as_do():
    assert key_columns(HEADERS, ROWS) == [0, 1]
    assert key_columns(["turn", "n"], [["0", "5"], ["1", "5"]]) == [0]
    assert key_columns(["n"], [["5"]]) == []


def test_a_cell_is_named_by_its_row_and_column():
    names = cell_names(HEADERS, ROWS)
    assert names[0] == [
        "simple.flip.protocol",
        "simple.flip.what",
        "simple.flip.turns",
        "simple.flip.share",
    ]
    assert cell_names(["n"], [["5"]]) == [["n"]]


def test_equal_heads_take_the_one_before_them():
    names = column_names(["flip", "by chance", "shift", "by chance"])
    assert names == ["flip", "flip-by-chance", "shift", "shift-by-chance"]


@pytest.mark.costly
@given(
    st.lists(
        st.tuples(*(st.sampled_from(["a", "A", "a-", "1", "−1", "0.5", ""]),) * 3),
        min_size=1,
        max_size=12,
    ),
    st.randoms(use_true_random=False),
)
def test_names_are_unique_and_stay_when_rows_move(rows, chance):
    """The same cells have the same names in any sequence of the rows."""

    def named(some):
        names = cell_names(["x", "y", "x"], [list(row) for row in some])
        found = [
            pair
            for row, cells in zip(names, some, strict=True)
            for pair in zip(row, cells, strict=True)
        ]
        assert len({name for name, _ in found}) == len(found)
        return dict(found)

    moved = list(rows)
    assert isinstance(chance, random.Random)
    chance.shuffle(moved)
    assert named(moved) == named(rows)
