"""Scores, with the reason beside each answer."""

import pytest

from tutorsim.tasks.task_types_ids_digests_and_scoring import (
    AnswerScore,
    chosen_letter,
    exact_match,
    named_choices,
    score_answer,
    token_f1,
)

OPTIONS = ("dog", "cat", "bird", "fish")


@pytest.mark.parametrize(
    ("text", "letter"),
    [
        ("B", "B"),
        ("b.", "B"),
        ("**(C)**", "C"),
        ("C) bird", "C"),
        ("[D]", "D"),
        ("D: fish", "D"),
        ("The answer is B.", "B"),
        ("Final solution: **A**", "A"),
        ("I choose option C because birds fly", "C"),
        ("Answer: (A)", "A"),
        ("cat", "B"),
        ("Cat.", "B"),
        ("B) or C)", None),  # two letters, and no option's text
        ("A nurse would know", None),  # an article
        ("E) horse", None),  # no such option
        ("a dog, I think", None),
        ("answer B's author", None),
        ("", None),
    ],
)
def test_a_letter_is_read_where_it_can_only_be_an_option(text, letter):
    assert chosen_letter(text, OPTIONS) == letter


def test_a_single_letter_that_is_an_option_text_is_read_as_a_letter():
    assert chosen_letter("C", ("C", "A", "D", "B")) == "C"


def test_unreadable_is_wrong_and_said_apart():
    score = score_answer("A or B", kind="choice", options=OPTIONS, gold=("A",))
    assert score == AnswerScore(0.0, None, None, readable=False)
    assert score_answer("A", kind="choice", options=OPTIONS, gold=("A",)).value == 1
    for kind, exact in (("choice", None), ("names", None), ("passage", 0.0)):
        score = score_answer(None, kind=kind, options=(), gold=("A",))
        assert score == AnswerScore(0.0, exact, None, readable=False)


def test_nothing_delivered_is_worth_zero():
    assert score_answer(None, kind="choice", options=OPTIONS, gold=("A",)).value == 0
    assert score_answer(None, kind="passage", options=(), gold=()).value == 0


@pytest.mark.parametrize(
    ("text", "value", "readable"),
    [
        ("Martin Hale", 1.0, True),
        ("It was martin hale, because of the gloves", 1.0, True),
        ("Clara Voss", 0.0, True),
        ("Martin Hale and not Clara Voss", 0.0, False),
        ("Martin Halewood", 0.0, False),
    ],
)
def test_a_name_counts_if_it_is_the_only_choice_named(text, value, readable):
    names = ("Clara Voss", "Martin Hale")
    score = score_answer(text, kind="names", options=names, gold=("Martin Hale",))
    assert (score.value, score.readable) == (value, readable)


def test_named_choices_are_whole_words():
    assert named_choices("Anna did it", ("Ann", "Anna")) == ("Anna",)


@pytest.mark.parametrize(
    ("prediction", "gold", "exact", "f1"),
    [
        ("The grey heron.", ("grey heron",), 1.0, 1.0),
        # one token of two predicted is right, of one wanted: p 1/2, r 1, F1 2/3
        ("high trees", ("trees",), 0.0, 2 / 3),
        # common: "in", "high", "trees"; p 3/3, r 3/5 for the first; the best counts
        ("in high trees", ("in the colonies high in trees", "high trees"), 0.0, 0.8),
        ("", (), 1.0, 1.0),
        ("something", (), 0.0, 0.0),
        ("", ("x",), 0.0, 0.0),
        ("a", ("the",), 1.0, 1.0),  # both are empty after normalisation
    ],
)
def test_passages_are_scored_as_the_official_script_does(prediction, gold, exact, f1):
    assert exact_match(prediction, gold) == exact
    assert token_f1(prediction, gold) == pytest.approx(f1)


def test_unknown_stands_for_no_answer():
    score = score_answer("The answer is Unknown.", kind="passage", options=(), gold=())
    assert (score.value, score.exact) == (1.0, 1.0)
    assert score_answer("unknown", kind="passage", options=(), gold=("x",)).value == 0


@pytest.mark.parametrize(
    ("text", "letter"),
    [("X) or B)", "X"), ("the answer is B", "B"), ("B is right", None), ("(D) fish", "D")],
)
def test_the_programs_scoring_takes_the_first_capital_before_a_mark(text, letter):
    score = score_answer(text, kind="choice", options=OPTIONS, gold=("B",), scoring="mallm")
    assert score.letter == letter


def test_the_programs_scoring_takes_a_name_that_is_contained():
    names = ("Clara Voss", "Martin Hale")
    text = "Clara Voss or Martin Hale"
    score = score_answer(text, kind="names", options=names, gold=("Martin Hale",), scoring="mallm")
    assert score.value == 1
