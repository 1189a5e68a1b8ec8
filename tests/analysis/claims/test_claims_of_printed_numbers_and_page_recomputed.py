"""From texts and tables to claims."""

import random
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tutorsim.analysis.claims.claims_of_printed_numbers_and_page_recomputed import (
    ELSEWHERE,
    Cells,
    Words,
    cell_names,
    claims_in,
    column_names,
    key_columns,
    numbers_in,
    numbers_of,
    slug,
    unique,
)


def test_a_number_in_a_sentence_is_asked_by_the_sentence_around_it():
    words = Words("report.lead-a", "Orders", "It is so. 3 of 200 turns change; the rest stays.")
    first, second = words.claims("stand-in")
    assert (first.id, first.printed, first.value) == ("report.lead-a.1", "3", 3)
    assert first.question == "Orders: [?] of … turns change;"
    assert second.question == "Orders: … of [?] turns change;"
    assert first.provenance == "stand-in"


def test_a_question_is_followed_by_its_sentence():
    [claim] = Words("p", "How many?", "7").claims("api")
    assert claim.question == "How many? [?]"


def test_a_cell_is_asked_by_title_column_and_row():
    cells = Cells("report.table-t", "Wins", ["role", "all_turns"], [["first", "18 (14+4)"]])
    claims = list(cells.claims("relay"))
    assert [c.id for c in claims] == [
        "report.table-t.first.all_turns",
        "report.table-t.first.all_turns.2",
        "report.table-t.first.all_turns.3",
    ]
    assert claims[0].question == "Wins: all turns (role: first)"
    assert claims[1].question == "Wins: all turns, number 2 of the cell (role: first)"


def test_an_interval_in_columns_of_its_own_belongs_to_the_estimate_before_it():
    headers = ["role", "n", "share", "low", "high"]
    claims = {
        c.id: c for c in Cells("t", "T", headers, [["a", "4", "0.5", "0.1", "0.9"]]).claims("api")
    }
    assert claims["t.a.share"].interval == (0.1, 0.9)
    assert claims["t.a.n"].interval is None
    assert claims["t.a.low"].value == 0.1


def test_the_ends_of_bounds_are_no_interval_of_a_count_before_them():
    headers = ["role", "turns", "lower", "upper"]
    claims = {c.id: c for c in Cells("t", "T", headers, [["a", "53", "0.1", "0.9"]]).claims("api")}
    assert claims["t.a.turns"].interval is None


def test_a_figure_from_print_is_not_said_to_come_from_the_run():
    rows = [["this run", "0.5", "0.41"], ["printed, 8B", "0.6", "–"]]
    cells = Cells("t", "T", ["source", "share", "published"], rows)
    values = {c.printed: c.provenance for c in cells.claims("stand-in")}
    assert values == {"0.5": "stand-in", "0.41": ELSEWHERE, "0.6": ELSEWHERE}


def test_a_number_in_a_head_is_a_claim():
    cells = Cells("t", "T", ["role", "at 0.4"], [["a", "–"]])
    [claim] = cells.claims("api")
    assert (claim.id, claim.value) == ("t.~heads.at-0-4.1", 0.4)


def test_nothing_printed_gives_no_claim():
    assert claims_in([Words("p", "", ""), Cells("t", "T", ["a"], [])], "api") == ()


# --- Ids of cells --------------------------------------------------------------------------------


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
    assert names[0] == [f"simple.flip.{column}" for column in HEADERS]
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


# --- The numbers of a text -----------------------------------------------------------------------


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
        "claude-haiku-4-5 and claude-sonnet-4-5", "7cc561eba7f6", "recorded on 2026-11-21",
        "2.12.0", "Table 2", "macro-F1", "squad2, printed 8B", "predicted_0", "",
    ],
)  # fmt: skip
def test_a_name_with_digits_is_no_number(text):
    assert read(text) == []


def test_a_span_is_an_interval_without_a_value():
    [span] = numbers_of("0.25 to 0.33")
    assert span[2:] == ("0.25 to 0.33", None, (0.25, 0.33))
    assert [n.value for n in numbers_of("12")] == [12]
    assert [n.value for n in numbers_of("from 1 to 2")] == [1, 2]


@given(st.lists(st.sampled_from(["turn", " ", "0.5", "17", "%", "[", "]", ", ", "−", "x7", "."])))
def test_no_digit_outside_a_word_is_left_out(parts):
    text = "".join(parts)
    covered = {at for n in numbers_in(text) for at in range(n.start, n.end)}
    left = "".join(c if at not in covered else "\0" for at, c in enumerate(text))
    for word in re.split(r"[^\w.\-/]", left):
        assert not re.search(r"[0-9]", word) or re.search(r"[^\W0-9]|\d\.\d+\.\d", word), text
