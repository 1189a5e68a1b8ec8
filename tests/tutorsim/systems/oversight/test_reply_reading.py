import json

import pytest

from tutorsim.records.oversight import Labels
from tutorsim.systems.oversight import reply_reading

ONE_TWO = Labels(mistake=1, guidance=2)


@pytest.mark.parametrize(
    "line",
    [
        "LABELS: mistake=1 guidance=2",
        "labels: Mistake = TRUE  guidance=2",
        "Labels : mistake:yes guidance:2.",
        "**LABELS:** mistake=1 guidance=2",
        "THESIS: x\nLABELS: mistake=1 guidance=2",
        "```\nTHESIS: x\nLABELS: mistake=1 guidance=2\n```",
        "LABELS: mistake=1 guidance=2\nLABELS: mistake=yes guidance=2",
    ],
)
def test_forgiven_label_lines_are_read(line):
    assert reply_reading.read_labels(line) == ONE_TWO


@pytest.mark.parametrize(
    "line",
    [
        "", "LABELS:", "LABELS: mistake=1", "LABELS: mistake=1 guidance=3",
        "LABELS: mistake=2 guidance=2", "LABELS: mistake=1 guidance=2 or 1",
        "LABELS: mistake=1 guidance=12", "LABELS: guidance=2 mistake=1",
        "LABELS: mistake=maybe guidance=2",
        "LABELS: mistake=1 guidance=2\nLABELS: mistake=0 guidance=2",
        "The labels: mistake=1 guidance=2", "THESIS: x\n  LABELS: mistake=1 guidance=2",
        'THESIS: it says "So.\nLABELS: mistake=1 guidance=2"',
        "THESIS: it says “So.\nLABELS: mistake=1 guidance=2\nGo on.”",
        "THESIS: it says\n```\nLABELS: mistake=1 guidance=2\n```\nwhich is odd",
        "> LABELS: mistake=1 guidance=2",
    ],
)  # fmt: skip
def test_other_label_lines_are_not_guessed_at(line):
    assert reply_reading.read_labels(line) is None


def test_the_strict_reading_forgives_nothing_and_the_lenient_one_takes_the_last_line():
    assert reply_reading.read_labels("LABELS: mistake=1 guidance=2", reading="strict") == ONE_TWO
    assert reply_reading.read_labels("Labels: mistake=1 guidance=2", reading="strict") is None
    loose = "LABELS: mistake=0 guidance=0\nLABELS: guidance: 2, mistake: yes"
    assert reply_reading.read_labels(loose, reading="lenient") == ONE_TWO
    assert reply_reading.read_labels("LABELS: mistake=1 mistake=0", reading="lenient") is None


GOOD = {
    "mistake_identified": True, "guidance_quality": 2, "confidence": 0.8, "reasoning": "It asks.",
}  # fmt: skip


def answer(**changed):
    fields = {**GOOD, **changed}
    return json.dumps({name: value for name, value in fields.items() if value is not ...})


# Shape of a reply → labels on the first asking, and on the second.
SHAPES = [
    (answer(), ONE_TWO, ONE_TWO),
    (f"```json\n{answer()}\n```", ONE_TWO, ONE_TWO),
    (f"I think so.\n{answer()}\nDone.", ONE_TWO, ONE_TWO),
    (f"{answer(guidance_quality=0)} no: {answer()}", ONE_TWO, ONE_TWO),
    (f'{{"answer": {answer()}}}', ONE_TWO, ONE_TWO),
    (f"{answer()} {{}}", ONE_TWO, ONE_TWO),
    (f'{answer()} {{"note": 1}}', ONE_TWO, ONE_TWO),
    (answer(extra=[1]), ONE_TWO, ONE_TWO),
    (answer(mistake_identified="true"), None, ONE_TWO),
    (answer(guidance_quality="2"), None, ONE_TWO),
    (answer(guidance_quality=2.0), None, ONE_TWO),
    (answer(guidance_quality=2.5), None, None),
    (answer(guidance_quality=3), None, None),
    (answer(guidance_quality=-1), None, None),
    (answer(guidance_quality=True), None, None),
    (answer(guidance_quality=[2]), None, None),
    (answer(guidance_quality=None), None, None),
    (answer(guidance_quality="high"), None, None),
    (answer(mistake_identified=1), None, None),
    (answer(mistake_identified="maybe"), None, None),
    (answer(mistake_identified=None), None, None),
    (answer(confidence=0), ONE_TWO, ONE_TWO),
    (answer(confidence=1), ONE_TWO, ONE_TWO),
    (answer(confidence=1.2), None, None),
    (answer(confidence=-0.1), None, None),
    (answer(confidence=True), None, None),
    (answer(confidence="high"), None, None),
    (answer(confidence=...), None, None),
    (answer(reasoning=...), None, None),
    (answer(reasoning=3), None, None),
    (answer()[:-10], None, None),
    (answer().replace("0.8", "NaN"), None, None),
    (answer()[:-1] + ', "guidance_quality": 0}', None, None),
    (f"{answer()} {answer(guidance_quality=9)}", None, None),
    (f"[{answer()}, {answer(mistake_identified='?')}]", None, None),
    (answer().replace('"', "'"), None, None),
    ("The reply guides: 2.", None, None),
    ("", None, None),
    ("{" * 500, None, None),
]


@pytest.mark.parametrize(("reply", "first", "second"), SHAPES)
def test_a_lead_reply_gives_the_listed_labels_or_none(reply, first, second):
    for attempt, expected in ((1, first), (2, second)):
        read = reply_reading.read_lead(reply, attempt=attempt)
        assert (read.labels if read else None) == expected


def test_a_json_object_quoted_in_the_reasoning_is_no_answer():
    inner = json.dumps({**GOOD, "guidance_quality": 0})
    read = reply_reading.read_lead(answer(reasoning=f"The tutor wrote {inner}"))
    assert read.labels == ONE_TWO


TAKEN = answer(mistake_identified=False, guidance_quality=0)


@pytest.mark.parametrize(
    "quoted",
    [
        f"The tutor wrote: '{TAKEN}'", f'The tutor wrote: "{TAKEN}"', f'The tutor wrote: "{TAKEN}',
        f'The tutor wrote: "Say {TAKEN} and go on."', f"The tutor wrote: “Well.\n{TAKEN}\nGo on.”",
        f"The tutor wrote `{TAKEN}`.", f"The tutor wrote:\n> {TAKEN}",
        f"The tutor wrote:\n    {TAKEN}", f"The tutor wrote:\n```text\n{TAKEN}\n```",
    ],
)  # fmt: skip
def test_what_the_lead_quotes_is_not_its_verdict(quoted):
    assert reply_reading.read_lead(quoted) is None
    for reply in (f"{answer()}\n{quoted}", f"{quoted}\n{answer()}"):
        read = reply_reading.read_lead(reply)
        assert read.labels == ONE_TWO


def test_quoted_fields_are_part_of_the_text_around_them():
    quote = 'it says "So.\nWINNER: permissive\nLABELS: mistake=0 guidance=0\nCONFIDENCE: 1"'
    text = f"WINNER: strict\nWHY: {quote}\nLABELS: mistake=1 guidance=2\nCONFIDENCE: 70"
    read = reply_reading.read_judgment(text, sides=("permissive", "strict"))
    assert read == ("strict", quote, ONE_TWO, 70)
    inches = 'THESIS: a board of 5" and one of 7"\nEVIDENCE: none\nLABELS: mistake=1 guidance=2'
    assert reply_reading.read_thesis(inches) == ('a board of 5" and one of 7"', "none", ONE_TWO)


def test_the_strict_reading_wants_the_object_alone_and_the_lenient_one_forgives_types_at_once():
    assert reply_reading.read_lead(answer(), reading="strict") is not None
    assert reply_reading.read_lead(f"```\n{answer()}\n```", reading="strict") is None
    assert reply_reading.read_lead(answer(guidance_quality="2"), reading="lenient") is not None


def test_halves_of_surrogate_pairs_in_the_reasoning_do_not_break_the_log():
    read = reply_reading.read_lead(answer().replace("It asks.", "\\ud800"))
    assert read is not None
    read.reasoning.encode()


def test_a_thesis_needs_its_labels_and_keeps_what_it_has_without_them():
    whole = "THESIS: It helps.\nIt asks.\nEVIDENCE: 'why?'\nLABELS: mistake=1 guidance=2"
    assert reply_reading.read_thesis(whole) == ("It helps.\nIt asks.", "'why?'", ONE_TWO)
    assert reply_reading.read_thesis("THESIS: It helps.") is None
    assert reply_reading.salvage_thesis("THESIS: It helps.") == ("It helps.", "", None)
    assert reply_reading.salvage_thesis("It helps.") == ("It helps.", "", None)
    assert reply_reading.salvage_thesis("  ") is None


def test_an_indented_field_belongs_to_the_text_before_it():
    read = reply_reading.read_judgment(
        "WINNER: strict\nWHY: the tutor wrote\n  WINNER: permissive\n"
        "LABELS: mistake=1 guidance=2\nCONFIDENCE: 70%",
        sides=("permissive", "strict"),
    )
    assert read.winner == "strict"
    assert "WINNER: permissive" in read.why


def test_a_field_that_comes_twice_with_other_texts_is_not_read():
    assert reply_reading.read_fields("KIND: none\nKIND: unclear", ("KIND",)) is None
    assert reply_reading.read_fields("KIND: none\nKIND: none", ("KIND",)) == {"KIND": "none"}


@pytest.mark.parametrize(
    "changed", [("WINNER: strict", "WINNER: both"), ("70", "170"), ("70", "high"), ("=2", "=7")]
)
def test_a_verdict_with_a_wrong_field_is_not_read(changed):
    text = "WINNER: strict\nWHY: x\nLABELS: mistake=1 guidance=2\nCONFIDENCE: 70"
    assert reply_reading.read_judgment(text, sides=("permissive", "strict")) is not None
    assert (
        reply_reading.read_judgment(text.replace(*changed), sides=("permissive", "strict")) is None
    )


def test_each_critic_gets_one_to_three_challenges():
    text = "TO PERMISSIVE:\n1. Why so?\n2) And\n then?\nTO STRICT: \n1. Where?"
    expected = {"permissive": ("Why so?", "And then?"), "strict": ("Where?",)}
    assert reply_reading.read_challenges(text) == expected
    assert reply_reading.read_challenges("TO PERMISSIVE:\n1. Why so?") is None
    values = reply_reading.salvage_challenges("TO PERMISSIVE:\n1. Why so?")
    assert values == {"permissive": ("Why so?",), "strict": ()}
    assert reply_reading.read_challenges(text + "\n2. b\n3. c\n4. d") is None


def test_a_press_is_there_exactly_if_the_defence_is_unmet():
    text = "PERMISSIVE: met\nSTRICT: Unmet\nPRESS PERMISSIVE: no matter\nPRESS STRICT: Quote it."
    read = reply_reading.read_press(text)
    assert read == {"permissive": (True, ""), "strict": (False, "Quote it.")}
    without = "PERMISSIVE: met\nSTRICT: unmet"
    assert reply_reading.read_press(without) is None
    assert reply_reading.salvage_press(without) == {"permissive": (True, ""), "strict": (None, "")}
    assert reply_reading.salvage_press("nothing") is None


def test_a_stress_test_needs_weakness_severity_and_labels():
    text = "WEAKNESS: thin\nSEVERITY: 2\nLABELS: mistake=1 guidance=2"
    assert reply_reading.read_stress(text) == ("thin", 2, ONE_TWO)
    assert reply_reading.read_stress(text.replace("2\n", "5\n")) is None
