"""Events, their times, silence, and whom a message names."""

import pytest

from tutorsim.systems.group.timeline import Group, Timeline

GROUP = Group(("bob", "alice", "mary_ann"), "Tom")


def told(*messages):
    timeline = Timeline(GROUP)
    timeline.add("stage", stage=1)
    for who, text in messages:
        if who is None:
            timeline.add("silence", stage=1)
        else:
            timeline.add("message", stage=1, who=who, text=text)
    return timeline


def test_a_message_takes_eight_seconds_and_a_silence_ten():
    timeline = told(("bob", "a"), (None, ""), ("learner", "b"))
    assert [event.at_s for event in timeline.events] == [0, 8, 18, 26]
    assert [event.number for event in timeline.events] == [1, 2, 3, 4]


def test_silence_is_counted_in_messages_since_an_agent_spoke():
    timeline = told(("bob", "a"), (None, ""), ("learner", "b"), ("alice", "c"))
    assert timeline.silent("alice") == 0
    assert timeline.silent("learner") == 1
    assert timeline.silent("bob") == 2
    assert timeline.silent("mary_ann") == 3


def test_silences_in_a_row_end_with_a_message():
    assert told(("bob", "a"), (None, ""), (None, "")).silences() == 2
    assert told((None, ""), ("bob", "a")).silences() == 0


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("Bob, why?", {"bob"}),
        ("bobby and malice", set()),
        ("ALICE! tom?", {"alice", "learner"}),
        ("Mary Ann and mary_ann", {"mary_ann"}),
        ("the learner", set()),
        ("(Tom)", {"learner"}),
        ("Tom's idea", {"learner"}),
    ],
)
def test_names_are_whole_words_in_any_case(text, named):
    assert GROUP.named_in(text) == named


def test_an_author_does_not_address_itself():
    timeline = told(("bob", "Bob here, Alice?"))
    assert timeline.moment() == ("bob", False, ("alice",))


def test_before_the_first_message_nobody_is_addressed():
    assert told((None, "")).moment() == (None, False, ())


def test_the_last_message_stands_also_after_a_silence():
    assert told(("alice", "Tom?"), (None, "")).moment() == ("alice", False, ("learner",))
