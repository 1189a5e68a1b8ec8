"""Logs of councils: three shapes, every damage told and never guessed, and published trials."""

import json
import os
from collections import Counter
from pathlib import Path

import pytest

from tutorsim.errors import LogError
from tutorsim.kernel.system_and_loaded_study import LogReading
from tutorsim.records import read_run
from tutorsim.runner.import_logs_of_other_programs import import_logs, log_files
from tutorsim.systems.debate import DEBATE
from tutorsim.systems.debate import council_logs as logs

REAL = Path(os.environ.get("TUTORSIM_PUBLISHED_DATA", "nowhere")) / "council"
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


def read(tmp_path, value, name="talk.json", spelling=None):
    path = tmp_path / name
    path.write_text(json.dumps(value))
    return list(logs.read_council(path, LogReading(lambda _: 1, set(), spelling)))


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
    assert one.notes == (logs.NO_VOTE,)
    assert one.record.episode_id == "council.talk-1.council.rank-synthesize"
    assert (one.record.answer, one.record.answer_of) == ("So it is.", A)


def test_half_a_character_cannot_be_written_and_is_a_question_mark(tmp_path):
    talk = conversation([ranking(A, ["C", "A", "B"])])
    talk["messages"][1]["stage3"]["response"] = "\ud83d and é"
    [one] = read(tmp_path, talk)
    assert one.record.answer == "? and é"


ABC = ["A", "B", "C"]


@pytest.mark.parametrize(
    ("parsed", "order", "told"),
    [
        (["A", "B", "A", "C"], (A, B, C), logs.REPEATED),
        (["A", "Response Z", "B", "C"], (A, B, C), logs.UNKNOWN),
        (["A", "the second", "B", "C"], (A, B, C), logs.UNKNOWN),
        (["B", "A"], (B, A), logs.LEFT_OUT),
        ([], None, logs.EMPTY),
        (None, None, logs.EMPTY),
        ("A > C > B", None, logs.EMPTY),
        ({"A": 1, "B": 2}, None, logs.EMPTY),
        ({"1": "Response A", "2": "Response C", "3": "Response B"}, None, logs.EMPTY),
        ([["A", "B"], ["C"]], None, logs.UNKNOWN),
        ([1, 2, 3], None, logs.UNKNOWN),
        (["Antwort A", None, True], None, logs.UNKNOWN),
        ({"ranking": ABC, "scores": {"A": 3, "B": 7, "C": 1}}, (A, B, C), logs.CONTRADICTED),
        ({"ranking": ABC, "scores": {"A": "9/10", "B": None}}, (A, B, C), logs.BAD_SCORES),
        ({"ranking": ABC, "scores": [9, 8, 7]}, (A, B, C), logs.BAD_SCORES),
        ({"ranking": ABC, "scores": {"A": 9, "B": 4, "C": -5}}, (A, B, C), logs.BAD_SCORES),
        ({"ranking": ABC, "scores": {"A": 1e308, "B": 4, "C": 2}}, (A, B, C), logs.BAD_SCORES),
        ({"ranking": ABC, "scores": {"A": 9.5, "B": 4, "C": 2}}, (A, B, C), logs.BAD_SCORES),
    ],
)
def test_a_damaged_ranking_is_told_and_never_guessed(tmp_path, parsed, order, told):
    [one] = read(tmp_path, conversation([ranking(A, parsed), ranking(B, ABC)]))
    assert orders(one) == {A: order, B: MODELS}
    assert one.notes == (
        logs.NO_VOTE,
        *((told,) if order or told == logs.EMPTY else (told, logs.EMPTY)),
    )


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("Error: rate limit", True),
        ("Internal Server Error", True),
        ("[Error calling the model]", True),
        ("503 Service Unavailable", True),
        ("The request timed out.", True),
        ("Error correction needs redundancy. FINAL ANSWER: 4", False),
        ("500 grams of flour", False),
        ("Error: " + "the proof assumes what it shows. " * 20, False),
    ],
)
def test_an_answer_like_an_error_message_is_told_and_stays_a_candidate(tmp_path, text, told):
    said = [{"model": A, "response": text}, *({"model": m, "response": "Yes."} for m in (B, C))]
    [one] = read(tmp_path, conversation([ranking(m, ABC) for m in MODELS], stage1=said))
    assert one.notes == (logs.ERROR,) * told
    assert one.record.turns[0].candidates == MODELS


def test_a_reply_that_the_log_has_no_key_for_is_told_as_missing(tmp_path):
    value = conversation([ranking(m, ABC) for m in MODELS])
    del value["messages"][1]["stage3"]
    [one] = read(tmp_path, value)
    assert (one.notes, one.record.answer) == ((logs.NO_REPLY,), None)


@pytest.mark.parametrize("parsed", [{"Response A": 2, "Response C": 1}, "C > A > B"])
def test_a_parsed_form_that_is_no_list_is_not_replaced_by_the_text(tmp_path, parsed):
    [one] = read(tmp_path, conversation([ranking(A, parsed, "FINAL RANKING\n1. C\n2. B\n3. A")]))
    assert orders(one) == {A: None}
    assert one.notes == (logs.NO_VOTE, logs.EMPTY)


def test_labels_that_slid_as_an_answer_is_lost_are_given_to_nobody(tmp_path):
    """Without a map the first answer is A: if one of four is lost, nobody knows which."""
    four = [ranking(m, ["D", "A", "B", "C"]) for m in MODELS]
    [left] = read(tmp_path, conversation(four))
    assert "rankings name 'D' beside those of the answers" in left.why
    [one] = read(tmp_path, conversation([four[0], ranking(B, ABC)]))
    assert one.notes == (logs.NO_VOTE, logs.UNKNOWN)


def test_a_voter_who_was_not_asked_is_told(tmp_path):
    [one] = read(tmp_path, conversation([ranking("maker/delta", ABC), ranking(B, ABC)]))
    assert orders(one) == {"maker/delta": MODELS, B: MODELS}
    assert one.notes == (logs.NO_VOTE, logs.OUTSIDER)


ALL_VOTE = [ranking(m, ABC) for m in MODELS]


def test_a_vote_of_all_members_says_nothing_open(tmp_path):
    [one] = read(tmp_path, conversation(ALL_VOTE))
    assert (one.notes, one.place, one.record.council.file) == ((), "vote 1", "talk.json, vote 1")


def test_a_blank_answer_is_told_and_stands_as_it_was_shown(tmp_path):
    [one] = read(tmp_path, conversation(ALL_VOTE, stage1=said("I say A", "I say B", " \n")))
    assert one.record.turns[0].candidates == MODELS
    assert one.notes == (logs.BLANK,)


@pytest.mark.parametrize(
    "name",
    ["Maker/Alpha", "alpha", "maker/alpha ", "other/alpha", "maker/al-pha", "maker/al\u200bpha"],
)
def test_a_voter_spelled_otherwise_than_a_member_is_asked_about(tmp_path, name):
    talk = conversation([ranking(name, ["C", "A", "B"]), *ALL_VOTE[1:]])
    [asked] = read(tmp_path, talk)
    assert asked.why == f"{name!r} in one step and {A!r} in another may be one member, or two."
    assert asked.hint == "Say which: --spelling one or --spelling apart."
    [one] = read(tmp_path, talk, spelling="one")
    assert (orders(one)[A], one.notes) == ((C, A, B), ())
    [apart] = read(tmp_path, talk, spelling="apart")
    assert (orders(apart)[name], apart.notes) == ((C, A, B), (logs.NO_VOTE, logs.OUTSIDER))


def test_labels_of_a_member_spelled_otherwise_are_asked_about(tmp_path):
    labels = {"Response A": "alpha", "Response B": B, "Response C": C}
    talk = conversation(ALL_VOTE, meta={"label_to_model": labels})
    [asked] = read(tmp_path, talk)
    assert "'alpha' in one step" in asked.why
    [one] = read(tmp_path, talk, spelling="one")
    assert (orders(one)[A], one.notes) == (MODELS, ())


def test_labels_that_a_map_outside_of_the_vote_gives_to_others_are_given_to_nobody(tmp_path):
    talk = conversation(ALL_VOTE)
    fits = talk | {"metadata": {"label_to_model": dict(zip(ABC, MODELS, strict=True))}}
    [one] = read(tmp_path, fits)
    assert one.notes == ()
    [left] = read(tmp_path, talk | {"metadata": {"label_to_model": {"A": C, "B": B, "C": A}}})
    assert left.why.startswith(
        "The vote has no `label_to_model`, and labels that stand elsewhere are not"
    )


def test_two_votes_of_one_member_under_two_names_are_not_one(tmp_path):
    talk = conversation([ranking("alpha", ABC), *ALL_VOTE])
    [left] = read(tmp_path, talk, spelling="one")
    assert "has a member twice, under names that look alike" in left.why


def test_mean_places_that_the_rankings_do_not_give_are_told(tmp_path):
    def means(*places):
        stated = [{"model": m, "average_rank": p} for m, p in zip(MODELS, places, strict=True)]
        none = [{"model": "stranger", "average_rank": 9}, {"model": A, "average_rank": None}, "?"]
        return conversation(ALL_VOTE, meta={"aggregate_rankings": [*none, *stated]})

    [fits] = read(tmp_path, means(1.0, 2, 3.04))
    [other] = read(tmp_path, means(3.0, 2.0, 1.0))
    assert (fits.notes, other.notes) == ((), (logs.OTHER_MEANS,))


@pytest.mark.parametrize(
    ("scores", "told", "mass"),
    [
        ({"A": 9, "Response B": 4.0}, logs.SOME_SCORES, {A: 9, B: 4}),
        ({"A": 9, "B": 4, "C": 2, "E": 10}, logs.OTHER_SCORE, {A: 9, B: 4, C: 2}),
    ],
    ids=["an answer is left out", "a score for nobody's answer"],
)
def test_scores_beside_a_ranking_are_diagnostic_and_gaps_are_told(tmp_path, scores, told, mass):
    scored = {"ranking": ABC, "scores": scores}
    [one] = read(tmp_path, conversation([ranking(A, scored), *ALL_VOTE[1:]]))
    [ballot] = one.record.turns[0].ballots_as["score"]
    assert (one.notes, ballot.voter, ballot.mass) == ((told,), A, mass)


@pytest.mark.parametrize("rankings", [[], None])
def test_a_second_step_without_rankings_is_told(tmp_path, rankings):
    [one] = read(tmp_path, conversation(rankings))
    assert one.notes == (logs.NO_STEP,)


def test_a_vote_that_lost_its_answers_is_named_and_the_others_are_read(tmp_path):
    talk = conversation(ALL_VOTE)
    lost = {name: said for name, said in talk["messages"][1].items() if name != "stage1"}
    talk["messages"] += [talk["messages"][0], lost]
    one, left = read(tmp_path, talk)
    assert (one.notes, left.what[:6]) == ((), "Vote 2")
    assert left.why == "It has rankings or votes, and no answers (`stage1`)."


def test_a_verdict_that_the_answers_contradict_is_told(tmp_path):
    values = [trial(predicted=p, expected="18", is_correct=True) for p in ("18.0", "19")]
    fits, other = read(tmp_path, values)
    assert logs.OTHER_VERDICT not in fits.notes
    assert logs.OTHER_VERDICT in other.notes


def test_a_vote_that_stands_twice_counts_once_and_is_named(tmp_path):
    """Pasted twice into one conversation, or kept in an older copy of it."""
    talk, folder = conversation(ALL_VOTE), tmp_path / "logs"
    folder.mkdir()
    (folder / "a.json").write_text(json.dumps(talk))
    talk["messages"] += [talk["messages"][0], talk["messages"][1] | {"metadata": {"seconds": 3}}]
    (folder / "b.json").write_text(json.dumps(talk))
    found = import_logs(DEBATE, DEBATE.logs["council"], log_files([folder]), tmp_path / "run")
    assert found.episodes == 1
    first = f"{folder / 'a.json'}, vote 1"
    first = f"It has the question, the answers and the votes of {first}, word for word."
    assert [(e.what, e.why) for e in found.skipped] == [
        (f"{folder / 'b.json'}, vote {number} is left out.", first) for number in (1, 2)
    ]


def test_a_note_names_every_file_and_vote_that_it_is_about(tmp_path):
    files = [tmp_path / "a.json", tmp_path / "b.json"]
    for file, voter in zip(files, (A, B), strict=True):
        file.write_text(json.dumps(conversation([ranking(voter, ABC)])))
    found = import_logs(DEBATE, DEBATE.logs["council"], files, tmp_path / "run")
    assert found.notes == {
        logs.NO_VOTE: tuple(f"{file}, vote 1" for file in files),
        logs.SAME_ANSWERS: (f"{files[1]}, vote 1",),
    }


SHUFFLED = {"Response A": C, "Response B": A, "Response C": B}


@pytest.mark.parametrize(
    "talk",
    [
        conversation(ALL_VOTE, meta={"labelToModel": SHUFFLED}),
        conversation(
            ALL_VOTE, meta={"labels": [{"label": k, "model": m} for k, m in SHUFFLED.items()]}
        ),
        conversation(
            ALL_VOTE,
            stage1=[
                {"model": m, "response": m, "label": label}
                for m, label in zip(MODELS, ("B", "C", "A"), strict=True)
            ],
        ),
    ],
    ids=["another key", "a list", "with the answers"],
)
def test_labels_stated_in_another_way_are_not_passed_over(tmp_path, talk):
    [left] = read(tmp_path, talk)
    assert left.why.startswith("The vote has no `label_to_model`, and labels that stand elsewhere")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("FINAL RANKING:\n3. Response A\n2. Response B\n1. Response C", logs.OTHER_NUMBERS),
        ("FINAL RANKING:\n1. Response A\n1. Response B\n3. Response C", logs.OTHER_NUMBERS),
        ("Error: 429 Too Many Requests", logs.NO_RANKING_IN_TEXT),
        ("I like Response B most.", None),
    ],
)
def test_a_text_that_does_not_bear_its_parsed_form_out_is_told(tmp_path, text, told):
    [one] = read(tmp_path, conversation([ranking(A, ABC, text), *ALL_VOTE[1:]]))
    assert one.notes == (() if told is None else (told,))
    assert orders(one)[A] == (A, B, C)


@pytest.mark.parametrize(("first", "found"), [("True", (A, B, C)), (True, (B, C)), (None, (B, C))])
def test_a_label_is_a_text_or_a_whole_number(tmp_path, first, found):
    meta = {"label_to_model": {str(first): A, "2": B, "3": C}}
    [one] = read(tmp_path, conversation([ranking(m, [first, 2, "3"]) for m in MODELS], meta=meta))
    assert orders(one) == dict.fromkeys(MODELS, found)


def test_a_vote_without_question_or_reply_is_told(tmp_path):
    talk = conversation(ALL_VOTE)
    lost = conversation(ALL_VOTE, stage1=[{"model": m, "response": f"Else {m}"} for m in MODELS])
    talk["messages"] += [lost["messages"][1] | {"stage3": None}]
    first, second = read(tmp_path, talk)
    assert first.notes == ()
    assert second.notes == (logs.NO_QUESTION, logs.NO_REPLY)
    assert second.record.question == ""


@pytest.mark.parametrize("asked_again", [True, False])
def test_another_reply_to_the_same_votes_counts_them_once(tmp_path, asked_again):
    talk = conversation(ALL_VOTE)
    again = talk["messages"][1] | {"stage3": {"model": A, "response": "Another reply."}}
    talk["messages"] += [talk["messages"][0]] * asked_again + [again]
    file = tmp_path / "talk.json"
    file.write_text(json.dumps(talk))
    found = import_logs(DEBATE, DEBATE.logs["council"], [file], tmp_path / "run")
    assert found.episodes == 1
    assert [error.what for error in found.skipped] == [f"{file}, vote 2 is left out."]


@pytest.mark.parametrize(
    ("text", "order"),
    [
        ("ßß final ranking\n\n**1. Response c** - best\n2. **a**\n 3) B: weak", (C, A, B)),
        ("FINAL RANKING:\n1. A good one is C\n", None),
        ("FINAL RANKING:\n3. A\n2. B\n1. C", None),
        ("1. A\n2. B\n3. C", None),
        ("FINAL RANKING:" + "\n" * 300_000, None),
    ],
    ids=["marks", "prose", "from the last", "no head", "long"],
)
def test_only_a_numbered_list_under_its_head_is_a_texts_ranking(tmp_path, text, order):
    [one] = read(tmp_path, conversation([ranking(A, None, text)]))
    assert orders(one) == {A: order}


@pytest.mark.parametrize(
    ("rankings", "more", "found", "told"),
    [
        ([ranking(A, ["c", "response a", " b "])], {}, {A: (C, A, B)}, ()),
        ([ranking(A, [C, A, B])], {}, {A: (C, A, B)}, ()),
        ({A: {"parsed_ranking": ["C", "A", "B"]}, B: None}, {}, {A: (C, A, B)}, ()),
        ({"rankings": {A: ABC}, "label_to_model": {"A": B, "B": A, "C": C}}, {}, {A: (B, A, C)},
         ()),
        ([ranking(A, ABC, "FINAL RANKING\n1. C\n2. B\n3. A")], {}, {A: MODELS}, (logs.OTHER_TEXT,)),
        ([{"model": A, "error": "timeout"}, ranking(B, ABC)], {}, {B: MODELS}, ()),
        ([ranking(A, [3, "1", "Response 2"])],
         {"meta": {"label_to_model": {"1": A, "2": B, "3": C}}}, {A: (C, A, B)}, ()),
        ([ranking(A, ["Antwort C", "Antwort A"])],
         {"meta": {"label_to_model": {"Antwort A": A, "Antwort C": C}}}, {A: (C, A)},
         (logs.NO_LABEL,)),
        ([ranking(A, ABC) | {"label_to_model": {"A": C, "B": B, "C": A}}, ranking(B, ABC)],
         {"meta": {"label_to_model": dict(zip("ABC", MODELS, strict=True))}},
         {A: (C, B, A), B: MODELS}, ()),
    ],
    ids=[
        *("lower case", "by name", "by member", "by member with a map", "other text", "error"),
        *("numbers", "other language", "labels of a voter"),
    ],
)  # fmt: skip
def test_what_is_written_in_another_way_is_read_if_clear(tmp_path, rankings, more, found, told):
    [one] = read(tmp_path, conversation(rankings, **more))
    assert (orders(one), one.notes) == (found, (logs.NO_VOTE, *told))  # no case has all three vote


def said(*texts):
    return [{"model": m, "response": text} for m, text in zip(MODELS, texts, strict=False)]


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"stage1": None}, "Fewer than two members answered"),
        ({"stage1": said("x")}, "Fewer than two members answered"),
        ({"stage1": {A: "x", B: "y"}}, "`stage1` is no list"),
        ({"stage1": [None, *said("x", "y")]}, "names no model"),
        ({"stage1": [*said("x", "y"), {"model": A, "response": "z"}]}, "'maker/alpha' twice"),
        ({"stage1": said("x", {"why": 1})}, "An answer is no text"),
        ({"stage1": said("x", None, "y")}, "a member failed before one that answered"),
        ({"stage1": [said("x")[0], {"model": B, "response": "429", "error": True}]},
         "Fewer than two members answered"),
        ({"stage2": {"error": "timeout"}}, "by member, and 'error' is none"),
        ({"stage2": ["C > A"]}, "An entry of `stage2` is no object"),
        ({"stage2": [ranking(A, ABC), ranking(A, ABC[::-1])]}, "`stage2` has 'maker/alpha' twice"),
        ({"metadata": [1]}, "`metadata` is no object"),
        ({"metadata": {"label_to_model": {"A": A}}, "label_to_model": {"A": B}},
         "Two maps of labels differ"),
        ({"metadata": {"label_to_model": {"A": A, "Response A": B}}}, "a label or a member twice"),
        ({"metadata": {"label_to_model": {"A": A, "B": A}}}, "a label or a member twice"),
        ({"metadata": {"label_to_model": {"A": "x", "B": "y"}}}, "two answers have a label"),
        ({"stage3": {"response": [1]}}, "An answer is no text"),
    ],
)  # fmt: skip
def test_an_unreadable_vote_is_left_out_by_name_and_the_others_are_read(tmp_path, change, why):
    good = conversation([ranking(A, ABC)])["messages"][1]
    left, one = read(tmp_path, [good | change, good])
    assert left.what.startswith("Vote 1 of")
    assert "talk.json" in left.what
    assert why in left.why
    assert orders(one) == {A: MODELS}


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("$70,000", "70000 dollars", True),
        ("50%", "50", True),
        ("x = 3", "3", True),
        ("B) Paris", "b", True),
        ("2x", "2", False),
        ("√2", "2", False),
        ("1/2", "1", False),
        ("9" * 5000, "9" * 4999, False),
    ],
)
def test_answers_are_equal_as_numbers_or_letters_and_no_further(tmp_path, one, other, same):
    value = [trial(stage2_data={"extracted_answers": {A: one, B: other}})]
    [vote] = read(tmp_path, value)
    assert (len(vote.record.turns[0].candidates) == 1) == same


def test_a_ranking_that_leaves_somebody_out_says_nothing_of_that_one(tmp_path):
    """Of three, two are named: 2 and 1 points, and none, not zero, for the third."""
    [one] = read(tmp_path, conversation([ranking(A, ["B", "A"])]))
    [ballot] = one.record.turns[0].ballots_final
    assert ballot.mass == {B: 2, A: 1}


def test_a_member_that_failed_is_no_voter(tmp_path):
    said = [{"model": m, "response": None if m == C else f"I say {m}"} for m in MODELS]
    [one] = read(tmp_path, conversation([ranking(A, ["B", "A"])], stage1=said))
    assert one.record.turns[0].candidates == (A, B)
    assert one.notes == (logs.FAILED, logs.NO_VOTE)


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
    assert (council.over, one.notes, one.record.score) == ("answers", (logs.NO_ANSWER,), 1.0)
    value[0]["stage1_responses"] = said | {A: " "}
    assert logs.BLANK in read(tmp_path, value)[0].notes


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("{", "Expecting property name"),
        ("[]", "Nothing in it"),
        ('{"messages": [{"role": "user", "content": "Hi"}]}', "Nothing in it"),
        ('{"stage1": [], "stage1": []}', "the key 'stage1' twice"),
        ("[" * 100_000, "recursion"),
    ],
)
def test_what_is_no_council_is_refused_by_name(tmp_path, text, why):
    path = tmp_path / "other.json"
    path.write_text(text)
    with pytest.raises(LogError) as told:
        list(logs.read_council(path, LogReading(lambda _: 1, set())))
    assert "other.json" in told.value.what
    assert why in told.value.why


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"stage1_responses": {A: "x"}}, "Fewer than two members answered"),
        ({"stage1_responses": ["a"]}, "`stage1_responses` is no object"),
        ({"stage2_data": "none"}, "`stage2_data` is no object"),
        ({"stage2_data": {"rankings": [["A", "B"]]}}, "An entry of `rankings` is no object"),
        ({"stage2_data": {"rankings": {"somebody": ABC}}}, "'somebody' is none"),
        ({"stage2_data": {"extracted_answers": [1]}}, "`extracted_answers` is no object"),
        ({"is_correct": "yes"}, "`is_correct` is neither true nor false"),
        ({"expected": {"a": 1}}, "`expected` is no text"),
    ],
)
def test_a_trial_that_cannot_be_read_is_left_out_by_name(tmp_path, change, why):
    left, _ = read(tmp_path, [trial(**change), trial()])
    assert "Vote 1 of" in left.what
    assert why in left.why


def test_conversations_of_one_name_in_two_folders_are_two_questions(tmp_path):
    """They are no repeats of one question: nothing says so."""
    for folder, parsed in (("a", ABC), ("b", ABC[::-1])):
        (tmp_path / folder).mkdir()
        talk = json.dumps(conversation([ranking(A, parsed)]))
        (tmp_path / folder / "talk.json").write_text(talk)
    import_logs(DEBATE, DEBATE.logs["council"], log_files([tmp_path]), tmp_path / "run")
    lines = (tmp_path / "run" / "episodes.jsonl").read_text().splitlines()
    assert [json.loads(line)["task_id"] for line in lines] == ["talk-1", "talk-1.r02"]
    assert read_run(tmp_path / "run").study.repeats == 2


def test_if_nothing_can_be_read_every_file_is_told_and_nothing_is_written(tmp_path):
    for name in ("one.json", "two.json"):
        (tmp_path / name).write_text(name)
    with pytest.raises(LogError) as told:
        import_logs(DEBATE, DEBATE.logs["council"], log_files([tmp_path]), tmp_path / "run")
    assert "one.json" in told.value.why
    assert "two.json" in told.value.why
    assert not (tmp_path / "run").exists()


def test_a_folder_is_read_past_what_is_no_council_and_past_what_was_read(tmp_path):
    """What is left out is named, each file with its reason."""
    folder = tmp_path / "logs"
    folder.mkdir()
    text = json.dumps(conversation([ranking(A, ["A", "B", "C"])]))
    for name in ("one.json", "same.json"):
        (folder / name).write_text(text)
    (folder / "spaced.json").write_text(json.dumps(json.loads(text), indent=2, sort_keys=True))
    (folder / "settings.json").write_text("{}")
    (folder / "notes.txt").write_text("none")
    files = log_files([folder])
    found = import_logs(DEBATE, DEBATE.logs["council"], files, tmp_path / "run")
    assert found.episodes == 1
    left = {Path(error.what.split()[0]).name: error.why for error in found.skipped}
    assert left.keys() == {"same.json", "spaced.json", "settings.json", "notes.txt"}
    assert all("one.json" in (left[again] or "") for again in ("same.json", "spaced.json"))


@pytest.mark.skipif(not REAL.is_dir(), reason="the published trials are not here")
def test_the_published_trials_are_read_whole():
    names = ("frontier_test", "hard_frontier", "mmlu_pro_frontier", "test")
    every = [
        one
        for n in names
        for one in logs.read_council(REAL / f"{n}.json", LogReading(lambda _: 1, set()))
    ]
    ranked = [one for one in every if one.record.council.over == "members"]
    ranked = [one for one in ranked if one.record.turns[0].ballots_final]
    ballots = [b for one in ranked for b in one.record.turns[0].ballots_final]
    assert (len(every), len(ranked), len(ballots)) == (60, 15, 60)
    [short] = [b for b in ballots if len(b.parsed) < 4]
    assert short.voter == "mistralai/mistral-7b-instruct"
    told = Counter(note for one in every for note in one.notes)
    assert told == {logs.LEFT_OUT: 1, logs.NO_ANSWER: 3, logs.BLANK: 8}
