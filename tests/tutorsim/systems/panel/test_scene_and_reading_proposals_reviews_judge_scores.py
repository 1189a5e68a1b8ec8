"""What prompts are built from."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tutorsim.records import Note
from tutorsim.systems.panel import scene_and_reading_proposals_reviews_judge_scores as reading


def test_calls_go_to_the_model_of_their_agent(make_scene):
    models = {"tutor": "t", "judge": "j", "student": "s", "max_tokens": 77, "temperature": 0.5}
    scene = make_scene(models=models)
    for agent, stage, model in (
        ("student", "student", "s"),
        ("judge", "judge", "j"),
        ("motivation", "vote_final", "t"),
        ("baseline", "propose", "t"),
    ):
        call = scene.call(2, stage, agent, system="S", user="U")
        assert str(call.key) == f"2/{stage}/{agent}/1"
        assert call.request.body() == {
            "max_tokens": 77,
            "messages": [{"role": "user", "content": "U"}],
            "model": model,
            "system": "S",
            "temperature": 0.5,
        }


def test_a_temperature_is_sent_only_where_it_is_set(make_scene):
    call = make_scene().call(0, "student", "student", system="S", user="U")
    assert set(call.request.body()) == {"max_tokens", "messages", "model", "system"}


def test_history_numbers_messages_and_leaves_out_a_reply_that_is_not_there(make_scene):
    exchanges = [reading.Exchange("One.", "Help.\nMore."), reading.Exchange("Two.", None)]
    assert make_scene().history(exchanges) == (
        "Student, message 1: One.\n\nTutor, reply 1: Help.\n  More.\n\nStudent, message 2: Two."
    )


@given(st.text())
def test_indented_text_starts_no_line_after_the_first(text):
    assert all(line.startswith("  ") for line in reading.indented(text).splitlines()[1:])


def test_the_reference_of_a_science_task_is_answer_and_support(make_scene):
    assert make_scene().reference == "answer-of-ice\nsupport-of-ice"


def test_the_reference_of_a_program_is_its_solution(make_scene):
    scene = make_scene(benchmarks={"humaneval": {"tasks": "programs.jsonl"}})
    assert scene.is_code
    assert scene.reference == "    return 'solution-of-double'"


# --- Reading proposals, reviews and scores --------------------------------------------------------

anything = st.text(max_size=80) | st.text(alphabet="ABPROSALCNFIDETHWK: \n*_#>0129.-", max_size=60)


@pytest.mark.parametrize(
    ("reply", "read"),
    [
        ("PROPOSAL: Try.\nRATIONALE: Short.\nCONFIDENCE: 80", ("Try.", "Short.", 80)),
        ("PROPOSAL: Try.\r\nRATIONALE: Short.\r\nCONFIDENCE: 80\r\n", ("Try.", "Short.", 80)),
        ("**PROPOSAL:** Try.\n**RATIONALE:** Short.\n**CONFIDENCE:** 80%", ("Try.", "Short.", 80)),
        ("Sure!\nproposal:\nOne.\nTwo.\nConfidence: 7/100", ("One.\nTwo.", None, 7)),
        ("PROPOSAL: Try.", ("Try.", None, None)),
        ("PROPOSAL: Try.\nCONFIDENCE: 0", ("Try.", None, 0)),
        ("PROPOSAL: Try.\nCONFIDENCE: 100", ("Try.", None, 100)),
        ("PROPOSAL: Try.\nCONFIDENCE: 101", ("Try.", None, None)),
        ("PROPOSAL: Try.\nCONFIDENCE: high", ("Try.", None, None)),
        ("PROPOSAL: Try.\nCONFIDENCE: -5", ("Try.", None, None)),
        ("PROPOSAL: One.\nPROPOSAL: Two.", ("One.", None, None)),
        ("PROPOSAL: My PROPOSAL: stays.", ("My PROPOSAL: stays.", None, None)),
    ],
)
def test_a_proposal_is_read_field_by_field(reply, read):
    assert reading.read_proposal(reply) == reading.ReadProposal(*read)


@pytest.mark.parametrize("reply", ["", "Try this.", "PROPOSAL:", "PROPOSAL:\nRATIONALE: Why."])
def test_a_reply_without_proposed_text_is_no_proposal(reply):
    assert reading.read_proposal(reply) is None


def test_a_reply_without_the_marker_can_be_salvaged_as_the_text():
    assert reading.salvage_proposal("Try this.\nCONFIDENCE: 3") == reading.ReadProposal(
        "Try this.", None, 3
    )
    assert reading.salvage_proposal(" \n ") is None
    assert reading.salvage_proposal("RATIONALE: only that") is None


def test_reviews_are_read_for_the_labels_shown():
    reply = (
        "A:\nSTRENGTH: Clear.\nWEAKNESS: Long.\n"
        "**B:**\n**STRENGTH:** Kind.\n"
        "Reply C: STRENGTH: Short.\n"
        "E:\nSTRENGTH: Nobody.\n"
        "A:\nSTRENGTH: Again."
    )
    assert reading.read_reviews(reply, ("A", "B", "C", "D")) == {
        "A": Note(strength="Clear.", weakness="Long."),
        "B": Note(strength="Kind.", weakness=None),
        "C": Note(strength="Short.", weakness=None),
    }


@pytest.mark.parametrize("reply", ["", "All are fine.", "A:\nGood.", "STRENGTH: Good."])
def test_a_reply_without_a_block_is_no_review(reply):
    assert reading.read_reviews(reply, ("A", "B")) is None


@pytest.mark.parametrize(
    ("reply", "value", "rationale"),
    [
        ("SCORE: 0.7\nMinor issues.", 0.7, "Minor issues."),
        ("SCORE: 1\n\nAll there.\nMore.", 1.0, "All there."),
        ("SCORE: 0", 0.0, ""),
        ("SCORE: .4\nx", 0.4, "x"),
        ("SCORE: 1.\nx", 1.0, "x"),
        ("**Score:** 0.1\r\nWrong.", 0.1, "Wrong."),
        ("Here it is.\nSCORE: 0.75\nGood.", 0.75, "Good."),
        ("SCORE: 0.7 \nGood.", 0.7, "Good."),
    ],
)
def test_a_score_is_read_with_its_reason(reply, value, rationale):
    assert reading.read_score(reply) == reading.Score(value, rationale)


@pytest.mark.parametrize(
    "reply",
    [
        "", "0.7", "SCORE: high", "SCORE: 1.01", "SCORE: -0.1", "SCORE: 7/10", "SCORE: 0.4 or 0.7",
        "SCORE: nan", "SCORE: ٠", "The SCORE: 0.7", "SCORE: " + "9" * 5000,
    ],
)  # fmt: skip
def test_a_reply_without_a_number_in_range_is_unscored_and_not_zero(reply):
    assert reading.read_score(reply) is None


@given(anything)
def test_no_text_makes_a_reader_fail(reply):
    reading.read_proposal(reply)
    reading.salvage_proposal(reply)
    reading.read_reviews(reply, ("A", "B", "C"))
    score = reading.read_score(reply)
    assert score is None or 0 <= score.value <= 1


@pytest.mark.parametrize("filling", [" ", "*", "9", "A:\n", "\n", "PROPOSAL ", "STRENGTH ", "_#>"])
def test_a_huge_reply_is_read_in_reasonable_time(filling):
    start = time.process_time()
    long = filling * 20_000
    labelled = (f"A:\nSTRENGTH{long}", f"SCORE:{long}x", f"PROPOSAL: x\nCONFIDENCE: {long}")
    for reply in (long, *labelled):
        reading.read_proposal(reply)
        reading.salvage_proposal(reply)
        reading.read_reviews(reply, ("A", "B"))
        reading.read_score(reply)
    assert time.process_time() - start < 3
