from tutorsim.systems.oversight.items import Item, SpeakerTurn, speaker_turns


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
