"""Logs of councils: three shapes, every damage told and never guessed, and published trials."""

import json
from collections import Counter
from pathlib import Path

import pytest

from tutorsim.errors import LogError
from tutorsim.runner.log_import import import_logs, log_files
from tutorsim.systems.debate import DEBATE
from tutorsim.systems.debate.council import (
    CONTRADICTED,
    EMPTY,
    FAILED,
    LEFT_OUT,
    NO_ANSWER,
    REPEATED,
    UNKNOWN,
    read_council,
)

REAL = Path(__file__).parents[5] / "shared" / "data" / "council"
MODELS = ("maker/alpha", "maker/beta", "maker/gamma")
A, B, C = MODELS


def conversation(rankings, *, meta=None, stage1=None, **more):
    said = stage1 or [{"model": m, "response": f"I say {m}. FINAL ANSWER: {m}"} for m in MODELS]
    message = {
        "role": "assistant",
        "stage1": said,
        "stage2": rankings,
        "stage3": {"model": A, "response": "So it is."},
    }
    return {
        "id": "x",
        "messages": [
            {"role": "user", "content": "Which?"},
            message | ({"metadata": meta} if meta else {}) | more,
        ],
    }


def ranking(model, parsed, text=""):
    return {"model": model, "ranking": text, "parsed_ranking": parsed}


def read(tmp_path, value, name="talk.json"):
    path = tmp_path / name
    path.write_text(json.dumps(value))
    return list(read_council(path, lambda _: 1))


def orders(one):
    return {b.voter: b.parsed for b in one.record.turns[0].ballots_final}


@pytest.mark.parametrize(
    "value",
    [
        conversation([ranking(A, ["Response C", "Response A", "Response B"])]),
        {"council_deliberation": conversation([ranking(A, ["C", "A", "B"])])["messages"]},
        {"wrapped": {"deep": [conversation([ranking(A, ["C", "A", "B"])])]}},
        conversation([ranking(A, None, "B is weak.\n\nFINAL RANKING:\n1. Response C\n2. A\n3. B")]),
        conversation(
            [ranking(A, {"ranking": ["C", "A", "B"], "scores": {"C": 9, "A": 8, "B": 1}})]
        ),
        conversation(
            [ranking(A, ["A", "B", "C"])],
            meta={"label_to_model": {"Response A": C, "Response B": A, "Response C": B}},
        ),
        conversation(
            [ranking(A, ["A", "B", "C"])],
            meta={"label_to_model": {"A": {"model": C, "display_index": 0}, "B": A, "C": B}},
        ),
    ],
    ids=["message", "other key", "wrapped", "text", "scores", "map", "map of objects"],
)
def test_a_conversation_of_any_fork_is_one_vote(tmp_path, value):
    [one] = read(tmp_path, value)
    assert orders(one) == {A: (C, A, B)}
    assert one.notes == ()
    assert one.record.episode_id == "council.talk-1.council.rank-synthesize"
    assert (one.record.answer, one.record.answer_of) == ("So it is.", A)


@pytest.mark.parametrize(
    ("parsed", "order", "told"),
    [
        (["A", "B", "A", "C"], (A, B, C), REPEATED),
        (["A", "Response Z", "B", "C"], (A, B, C), UNKNOWN),
        (["A", "the second", "B", "C"], (A, B, C), UNKNOWN),
        (["B", "A"], (B, A), LEFT_OUT),
        ([], None, EMPTY),
        (None, None, EMPTY),
        ({"ranking": ["A", "B", "C"], "scores": {"A": 3, "B": 7, "C": 1}}, (A, B, C), CONTRADICTED),
    ],
)
def test_a_damaged_ranking_is_told_and_never_guessed(tmp_path, parsed, order, told):
    [one] = read(tmp_path, conversation([ranking(A, parsed), ranking(B, ["A", "B", "C"])]))
    assert orders(one) == {A: order, B: MODELS}
    assert one.notes == (told,)


def test_a_ranking_that_leaves_somebody_out_says_nothing_of_that_one(tmp_path):
    """Of three, two are named: 2 and 1 points, and none, not zero, for the third."""
    [one] = read(tmp_path, conversation([ranking(A, ["B", "A"])]))
    [ballot] = one.record.turns[0].ballots_final
    assert ballot.mass == {B: 2, A: 1}


def test_a_member_that_failed_is_no_voter(tmp_path):
    said = [{"model": m, "response": None if m == C else f"I say {m}"} for m in MODELS]
    [one] = read(tmp_path, conversation([ranking(A, ["B", "A"])], stage1=said))
    assert one.record.turns[0].candidates == (A, B)
    assert one.notes == (FAILED,)


def trial(**more):
    return {
        "benchmark": "GSM8K",
        "question_id": "q",
        "structure": "Independent → Majority Vote",
        "stage1_responses": dict.fromkeys(MODELS, "an answer"),
        "stage2_data": {},
        "stage3_data": {},
        "expected": "70000",
        "is_correct": True,
    } | more


def test_equal_answers_are_one_candidate_and_a_known_answer_marks_it(tmp_path):
    """70000 is written in three ways; the fourth member says nothing that can be read."""
    answers = {A: "$70,000", B: "70000**", C: "65,000 dollars", "maker/delta": None}
    said = dict.fromkeys(answers, "an answer")
    value = [trial(stage1_responses=said, stage2_data={"extracted_answers": answers})]
    [one] = read(tmp_path, value)
    turn, council = one.record.turns[0], one.record.council
    chosen = {b.voter: b.parsed for b in turn.ballots_final}
    assert chosen == {A: "70,000", B: "70,000", C: "65,000 dollars", "maker/delta": None}
    assert council.right == {"70,000": True, "65,000 dollars": False}
    assert (council.over, one.notes, one.record.score) == ("answers", (NO_ANSWER,), 1.0)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("{", "unexpected end"),
        ("[]", "Nothing in it"),
        ('{"messages": [{"role": "user", "content": "Hi"}]}', "Nothing in it"),
        ('[{"stage1_responses": {"a": "x"}}]', "answers of two members"),
        ('[{"stage1": [{"response": "x"}], "stage2": []}]', "'model'"),
        ('[{"stage1_responses": ["a"]}]', "Vote 1"),
    ],
)
def test_what_is_no_council_is_refused_by_name(tmp_path, text, why):
    path = tmp_path / "other.json"
    path.write_text(text)
    with pytest.raises(LogError) as told:
        list(read_council(path, lambda _: 1))
    assert "other.json" in told.value.what
    assert why.lower() in f"{told.value.why}".lower()


def test_a_folder_is_read_past_what_is_no_council_and_past_what_was_read(tmp_path):
    """What is left out is named, each file with its reason."""
    folder = tmp_path / "logs"
    folder.mkdir()
    text = json.dumps(conversation([ranking(A, ["A", "B", "C"])]))
    for name in ("one.json", "same.json"):
        (folder / name).write_text(text)
    (folder / "settings.json").write_text("{}")
    (folder / "notes.txt").write_text("none")
    files = log_files([folder])
    found = import_logs(DEBATE, DEBATE.logs["council"], files, tmp_path / "run")
    assert found.episodes == 1
    left = {Path(error.what.split()[0]).name: error.why for error in found.skipped}
    assert left.keys() == {"same.json", "settings.json", "notes.txt"}
    assert "one.json" in (left["same.json"] or "")


@pytest.mark.skipif(not REAL.is_dir(), reason="the published trials are not here")
def test_the_published_trials_are_read_whole(tmp_path):
    names = ("frontier_test", "hard_frontier", "mmlu_pro_frontier", "test")
    every = [one for n in names for one in read_council(REAL / f"{n}.json", lambda _: 1)]
    ranked = [one for one in every if one.record.council.over == "members"]
    ranked = [one for one in ranked if one.record.turns[0].ballots_final]
    ballots = [b for one in ranked for b in one.record.turns[0].ballots_final]
    assert (len(every), len(ranked), len(ballots)) == (60, 15, 60)
    [short] = [b for b in ballots if len(b.parsed) < 4]
    assert short.voter == "mistralai/mistral-7b-instruct"
    assert Counter(note for one in every for note in one.notes) == {LEFT_OUT: 1, NO_ANSWER: 3}
