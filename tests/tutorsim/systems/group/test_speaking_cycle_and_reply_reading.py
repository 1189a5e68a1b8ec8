"""Replies as models write them, and those that are none."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tutorsim.systems.group import speaking_cycle_and_reply_reading as reading
from tutorsim.systems.group.speaker_selection_and_its_reasons import CRITERIA

SIX = dict.fromkeys(CRITERIA, 3.5)


def test_json_is_found_in_a_fence_and_between_words():
    body = '{"reason": "r", "signal": "next", "completed": ["1.1"]}'
    for reply in (body, f"```json\n{body}\n```", f"Sure! {body} Bye."):
        assert reading.read_ruling(reply) == ("r", "next", ("1.1",))


@pytest.mark.parametrize(
    "reply",
    [
        "", "next", "{}", '{"signal": "skip", "completed": []}', '{"signal": "next"}',
        '{"signal": "next", "completed": "1.1"}', '{"signal": "next", "completed": [1]}',
        "{" * 9000,
    ],
)  # fmt: skip
def test_rulings_that_are_none(reply):
    assert reading.read_ruling(reply) is None


def test_a_thought_needs_words_and_an_action():
    whole = {"stimuli": ["M1"], "thought": " t ", "action": "speak", "corrects": True}
    assert reading.read_thought(json.dumps(whole)) == (("M1",), "t", "speak", True)
    for change in ({"thought": ""}, {"action": "shout"}, {"thought": 5}):
        assert reading.read_thought(json.dumps(whole | change)) is None
    odd = whole | {"stimuli": "M1", "corrects": "yes"}
    assert reading.read_thought(json.dumps(odd)) == ((), "t", "speak", False)


@pytest.mark.parametrize("score", [0.9, 5.1, 3.55, "4", None, True, -1, 1e9, [4]])
def test_a_score_out_of_form_is_no_score(score):
    read = reading.read_scores(["Bob"])
    assert read(json.dumps([{"agent": "Bob", **SIX, "impact": score}])) is None


def test_scores_are_tenths_and_everybody_must_have_them():
    both = [{"agent": "bob", **SIX}, {"agent": "Alice", **SIX, "urgency": 5}]
    found = reading.read_scores(["Bob", "Alice"])(json.dumps(both))
    assert found["Bob"]["impact"] == 35
    assert found["Alice"]["urgency"] == 50
    one = json.dumps(both[:1])
    assert reading.read_scores(["Bob", "Alice"])(one) is None
    assert set(reading.salvage_scores(["Bob", "Alice"])(one)) == {"Bob"}
    assert reading.salvage_scores(["Bob"])("[]") is None


def test_the_first_of_two_entries_for_one_agent_counts():
    twice = [{"agent": "Bob", **SIX}, {"agent": "Bob", **SIX, "impact": 1.0}]
    assert reading.read_scores(["Bob"])(json.dumps(twice))["Bob"]["impact"] == 35


def test_a_message_needs_a_text():
    assert reading.read_said('{"message": "Hi", "to": "Bob"}') == ("Hi", ("Bob",), False)
    assert reading.read_said('{"message": " ", "to": []}') is None
    assert reading.read_said("Hi") is None


def test_a_learner_writes_or_waits():
    assert reading.read_contribution('{"action": "wait", "message": "x"}') == ("wait", "")
    assert reading.read_contribution('{"action": "write", "message": "x"}') == ("write", "x")
    assert reading.read_contribution('{"action": "write", "message": ""}') is None


@pytest.mark.parametrize(
    ("reply", "who"),
    [("Bob", "bob"), (" **bob**.\n", "bob"), ("Tom", "learner"), ("Bob, Tom", None)],
)
def test_a_prediction_is_exactly_one_name(reply, who):
    assert reading.read_name({"Bob": "bob", "Tom": "learner"})(reply) == who


@pytest.mark.parametrize(
    ("reply", "better"),
    [
        ("BETTER: 1\nbecause", "first"), ("better: 2", "second"), ("**BETTER:** same\nx", "same"),
        ("BETTER: 1\nBETTER: 2", None), ("BETTER: 3", None), ("The first", None),
    ],
)  # fmt: skip
def test_a_verdict_is_one_line(reply, better):
    found = reading.read_verdict(reply)
    assert (found and found.better) == better


@pytest.mark.parametrize(
    ("reply", "number"),
    [("CATEGORY: 12", 12), ("category: 1\n", 1), ("CATEGORY: 0", None), ("CATEGORY: 13", None),
     ("CATEGORY: 4\nCATEGORY: 5", None), ("six", None)],
)  # fmt: skip
def test_a_category_is_one_of_twelve(reply, number):
    assert reading.read_category(reply) == number


def test_ratings_need_every_criterion():
    read = reading.read_ratings(("correctness", "reasoning"))
    assert read('{"correctness": 10, "reasoning": 1.5}') == {"correctness": 100, "reasoning": 15}
    assert read('{"correctness": 10}') is None
    assert read('{"correctness": 10.1, "reasoning": 1}') is None


@given(st.text())
def test_no_text_breaks_a_reader(reply):
    reading.read_ruling(reply)
    reading.read_thought(reply)
    reading.read_scores(["Bob"])(reply)
    reading.read_said(reply)
    reading.read_verdict(reply)
    reading.read_category(reply)


def test_half_surrogates_do_not_get_into_a_log():
    said = reading.read_said('{"message": "a\\ud800b", "to": []}')
    assert said.text.encode() == b"a?b"


@pytest.mark.parametrize(
    ("written", "read"),
    [
        (r"$\frac{1}{2} \times x$", r"$\frac{1}{2} \times x$"),
        (r"\(a \neq b\), \[\beta \right\]", r"\(a \neq b\), \[\beta \right\]"),
        (r"\theta \nabla \underline{x} \tan x \to 0", r"\theta \nabla \underline{x} \tan x \to 0"),
        (r"\\frac{1}{2} and C:\\new", r"\frac{1}{2} and C:\new"),
        (r"one\ntwo\tthree \"four\" \u00e9 \/", 'one\ntwo\tthree "four" é /'),
    ],
)
def test_formulas_are_read_as_they_are_written(written, read):
    """With one backslash or with two, `\\frac` is a fraction and never a form feed."""
    assert reading.read_said(f'{{"message": "{written}", "to": "all"}}').text == read
