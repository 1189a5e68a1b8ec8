"""Replies as read."""

import pytest

from tutorsim.systems.debate.scene import read_answer, read_persona, read_text
from tutorsim.voting import read_agreement


@pytest.mark.parametrize(
    ("text", "tag", "lenient"),
    [
        ("[AGREE] fine", "agree", "agree"),
        ("[ disagree ] no", "disagree", "disagree"),
        ("Well, [Agree] now, though I would [DISAGREE] later", "agree", "disagree"),
        ("I agree with this", "unclear", "agree"),
        ("This is right", "unclear", "disagree"),
        ("[AGREEMENT]", "unclear", "agree"),
    ],
)
def test_agreement_is_the_first_tag_or_the_two_words(text, tag, lenient):
    assert read_agreement(text, "tag") == tag
    assert read_agreement(text, "lenient") == lenient


@pytest.mark.parametrize(
    ("reply", "role"),
    [
        ('{"role": "Chemist", "description": "Knows salts"}', "Chemist"),
        ('Sure: {"note": 1} {"role": " A  b ", "description": "d"}', "A b"),
        ('{"role": "", "description": "d"} {"role": "X", "description": "d"}', "X"),
        ('{"person": {"role": "Inner", "description": "d"}}', "Inner"),
        ('{"role": "CHEF", "description": "d"}', None),  # taken
        ('{"role": "Cook"', None),
        ('{"role": 3, "description": "d"}', None),
        ("no object", None),
    ],
)
def test_a_persona_is_the_first_object_with_role_and_description(reply, role):
    read = read_persona(reply, ["Chef"])
    assert (read.role if read else None) == role


@pytest.mark.parametrize(
    ("reply", "text", "confidence"),
    [
        ("B\nCONFIDENCE: 70", "B", 70),
        ("**Confidence:** 80%\nB", "B", 80),
        ("B\nCONFIDENCE: 170", "B", None),
        ("B", "B", None),
        ("CONFIDENCE: 70", None, None),
    ],
)
def test_the_line_of_confidence_is_no_part_of_the_answer(reply, text, confidence):
    read = read_answer(reply, confidence=True)
    assert (read.text if read else None, read.confidence if read else None) == (text, confidence)


def test_without_confidence_the_whole_reply_is_the_answer():
    assert read_answer("B\nCONFIDENCE: 70", confidence=False).text == "B\nCONFIDENCE: 70"
    assert read_text("  \n") is None
