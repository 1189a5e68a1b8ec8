import json
from collections import Counter

import pytest

from tests.tutorsim.systems.oversight.conftest import make_annotation, make_row
from tutorsim.errors import TaskFileError
from tutorsim.records.gold_labels_of_one_annotation import gold_labels
from tutorsim.systems.oversight.items_to_label_from_mrbench_or_audit_files import (
    Item,
    SpeakerTurn,
    has_revealing,
    published_rows,
    read_mrbench,
    speaker_turns,
)

# File, items, conversations, (mistake yes, some, no), (guidance no, some, yes): as published.
PUBLISHED = [
    ("MRBench_V1.json", 1589, 188, (1271, 92, 226), (293, 366, 930)),
    ("mrbench_v3_devset.json", 2476, 300, (1932, 174, 370), (566, 503, 1407)),
]


@pytest.mark.parametrize(("name", "items", "conversations", "mistake", "guidance"), PUBLISHED)
def test_published_files_give_the_counts(published, name, items, conversations, mistake, guidance):
    read = read_mrbench(published(name))
    assert len(read) == items
    assert len({item.conversation for item in read}) == conversations
    texts = Counter(item.annotation["Mistake_Identification"] for item in read)
    assert (texts["Yes"], texts["To some extent"], texts["No"]) == mistake
    gold = [gold_labels(i.annotation, mistake_map="lenient", guidance_map="plain") for i in read]
    counts = Counter(label.guidance for label in gold)
    assert (counts[0], counts[1], counts[2]) == guidance


def test_six_rows_of_each_published_file_end_with_the_tutor(published):
    for name, *_ in PUBLISHED:
        read = read_mrbench(published(name))
        ends = {(i.conversation, i.occurrence) for i in read if i.dialogue[-1].speaker == "Tutor"}
        assert len(ends) == 6


def test_published_rows_are_the_file_again(published):
    for name, *_ in PUBLISHED:
        path = published(name)
        rows = json.loads(path.read_text(encoding="utf-8"))
        assert published_rows(read_mrbench(path)) == rows


def test_only_the_first_versions_say_what_reveals_the_answer(bench):
    wide = read_mrbench(bench(make_row()))
    assert has_revealing(wide)
    narrow = make_row()
    narrow["tutor_responses"] = narrow.pop("anno_llm_responses")
    del narrow["tutor_responses"]["Expert"]["annotation"]["Revealing_of_the_Answer"]
    assert not has_revealing(read_mrbench(bench(narrow)))


def test_a_conversation_that_comes_again_is_numbered_and_keeps_both_replies(bench):
    first, second = read_mrbench(bench(make_row("same"), make_row("same")))
    assert (first.task_id, second.task_id) == ("same-1-Expert", "same-2-Expert")
    assert first.conversation == second.conversation
    assert first.reply == second.reply


def test_files_without_labels_are_read(bench):
    [item] = read_mrbench(bench(make_row(replies={"Expert": {"response": "Count again."}})))
    assert item.annotation == {}
    assert published_rows([item])[0]["tutor_responses"] == {"Expert": {"response": "Count again."}}


def test_a_line_without_a_speaker_continues_the_turn(bench):
    [item] = read_mrbench(bench(make_row()))
    assert item.message == "It is 5.\nI am sure."
    assert [turn.speaker for turn in item.dialogue] == ["Tutor", "Student"]


def changed(make_row, **fields):
    return {**make_row(), **fields}


def with_reply(make_row, reply):
    return make_row(replies={"Expert": reply})


@pytest.mark.parametrize(
    ("build", "named"),
    [
        (lambda r, a: with_reply(r, {"response": "x", "annotation": a("Maybe")}), "'Maybe'"),
        (
            lambda r, a: with_reply(r, {"response": "", "annotation": a()}),
            "tutor Expert, field resp",
        ),
        (lambda r, a: with_reply(r, {"annotation": a()}), "response: it is missing"),
        (lambda r, a: with_reply(r, {"response": 3}), "it is a number, not text"),
        (lambda r, a: with_reply(r, "text"), "the reply is text"),
        (lambda r, a: with_reply(r, {"response": "x", "annotation": {"x": "y"}}), "Mistake_Ident"),
        (lambda r, a: changed(r, conversation_history="Hello."), "no speaker begins it: 'Hello.'"),
        (lambda r, a: changed(r, conversation_history="Tutor: Hello."), "the student says nothing"),
        (lambda r, a: changed(r, anno_llm_responses={}), "there are no replies"),
        (lambda r, a: {"conversation_id": "x"}, "conversation_history: it is missing"),
        (lambda r, a: 5, "this is a number"),
        *(
            (lambda r, a, row=row: {**r(), **row}, "half of a surrogate pair")
            for row in (
                {"conversation_id": "\ud800"},
                {"Ground_Truth_Solution": "\udfff"},
                {"anno_llm_responses": {"\ud800": {"response": "x"}}},
            )
        ),
    ],
)
def test_a_bad_row_is_refused_by_file_row_tutor_and_field(bench, build, named):
    path = bench(make_row("good"), build(make_row, make_annotation))
    with pytest.raises(TaskFileError) as error:
        read_mrbench(path)
    assert named in str(error.value)
    assert f"{path}, row 2" in str(error.value)
    assert error.value.hint


def test_a_reply_without_labels_among_labelled_ones_is_refused(bench):
    bare = make_row("two", {"GPT4": {"response": "x"}})
    with pytest.raises(TaskFileError, match="conversation two, tutor GPT4, field annotation"):
        read_mrbench(bench(make_row(), bare))


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ('{"a": 1}\n{"a": 2}\n', "JSON Lines"),
        ("[]", "an empty list"),
        ('"x"', "text"),
        ("?", "no JSON"),
    ],
)
def test_a_file_that_is_no_list_of_dialogues_is_refused(bench, text, named):
    with pytest.raises(TaskFileError, match=named):
        read_mrbench(bench(text=text))


# --- Labelled item --------------------------------------------------------------------------------


def test_a_speaker_is_found_after_any_white_space_at_a_line_start():
    text = "Tutor: a \n\xa0 Student: b\nc\n\tTutor : d, said Student: e"
    assert speaker_turns(text) == (
        SpeakerTurn("Tutor", "a"),
        SpeakerTurn("Student", "b\nc"),
        SpeakerTurn("Tutor", "d, said Student: e"),
    )


def test_text_without_a_speaker_at_its_start_is_no_dialogue():
    assert speaker_turns("Hello\nTutor: a") is None
    assert speaker_turns("") is None


def test_a_written_history_reads_back():
    turns = (SpeakerTurn("Tutor", "a\nb"), SpeakerTurn("Student", "c"))
    written = "\n".join(f"{turn.speaker}: {turn.text}" for turn in turns)
    assert speaker_turns(written) == turns


def test_the_message_is_the_last_student_turn_even_if_the_tutor_speaks_after_it():
    turns = [("Student", "1"), ("Tutor", "2"), ("Student", "3"), ("Tutor", "4")]
    item = Item("x", tuple(SpeakerTurn(*turn) for turn in turns), "reply", "x")
    assert item.message == "3"
    assert [turn.text for turn in item.before(5)] == ["1", "2"]
    assert [turn.text for turn in item.before(1)] == ["2"]
    assert item.before(0) == ()
