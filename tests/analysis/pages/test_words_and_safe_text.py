import pytest

from tutorsim.analysis.pages import words_and_safe_text as words


@pytest.mark.parametrize(
    ("value", "said"),
    [(0, "0 %"), (0.001, "under 1 %"), (0.314, "31 %"), (0.999, "over 99 %"), (1, "100 %")],
)
def test_a_share_that_is_not_all_or_nothing_never_reads_as_such(value, said):
    assert words.percent(value) == said


def test_small_numbers_are_given_as_counts():
    assert words.share(3, 19, "turn") == "3 of 19 turns"
    assert words.share(5, 20, "turn") == "25 % of 20 turns"
    assert words.share(1, 1, "turn") == "1 of 1 turn"
    assert words.share(0, 0, "turn") == "0 of 0 turns"


def test_counts_agree_in_number_and_have_thousands():
    assert words.counted(1, "turn") == "1 turn"
    assert words.counted(1204, "turn") == "1,204 turns"
    assert words.counted(2, "case", plural="cases of it") == "2 cases of it"


def test_names_are_listed_as_a_person_would():
    assert words.listed([]) == "none"
    assert words.listed(["a"]) == "a"
    assert words.listed(["a", "b", "c"]) == "a, b and c"
    assert words.listed(["a", "b"], "or") == "a or b"


def test_a_tie_has_several_tops_and_zeros_have_none():
    assert words.top({"a": 2, "b": 3, "c": 3}) == ["b", "c"]
    assert words.top({"a": 0, "b": 0}) == []
    assert words.top({}) == []


def test_short_names_stay_apart():
    values = words.short_names(["motivation", "metacognitive"])
    assert values == {"motivation": "moti", "metacognitive": "meta"}
    values = words.short_names(["tutor one", "tutor two"])
    assert values == {"tutor one": "tutor o", "tutor two": "tutor t"}
    assert words.short_names(["ab", "abc"]) == {"ab": "ab", "abc": "abc"}


def test_extremes_pass_over_what_is_missing():
    assert words.extremes([0.2, None, 0.7]) == (0.2, 0.7)


# --- Safe text ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("written", "seen"),
    [
        ("two\nlines\tand a tab", "two\nlines\tand a tab"),
        ("windows\r\nline", "windows\nline"),
        ("overwritten\rline", r"overwritten\x0dline"),
        ("\x1b[31mred", r"\x1b[31mred"),
        ("nul\x00", r"nul\x00"),
        ("\u202egnp.exe", r"\u202egnp.exe"),
        ("half \ud83d", r"half \ud83d"),
        ("👩‍🔬 stays whole", "👩‍🔬 stays whole"),
        ("مرحبا, שלום", "مرحبا, שלום"),
    ],
)
def test_what_nobody_can_see_is_made_visible_and_the_rest_stays(written, seen):
    assert words.shown(written) == seen
    words.shown(written).encode()


def test_a_sentence_ends_with_one_sign():
    said = {"done": "done.", "done.": "done.", "done?": "done?", "done…": "done…"}
    assert {one: words.ended(one) for one in said} == said
