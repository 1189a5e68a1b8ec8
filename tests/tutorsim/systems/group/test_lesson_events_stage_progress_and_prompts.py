"""Events, their times, silence, and whom a message names."""

from fractions import Fraction
from types import SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tutorsim.systems.group.lesson_events_stage_progress_and_prompts import (
    SIGNALS,
    Conversation,
    Group,
    Progress,
    Ruling,
    Timeline,
)
from tutorsim.systems.group.lesson_problem_and_duel_scenario_files import builtin_lessons

# --- Stages --------------------------------------------------------------------------------------

STAGES = builtin_lessons()[0].stages
IDS = [task.id for stage in STAGES for task in stage.tasks]


def ruled(progress, signal, *completed):
    return progress.after(Ruling("", signal, completed))[0]


def test_a_stage_moves_on_only_when_signalled_and_done():
    start = Progress(STAGES)
    assert ruled(start, "next").stage == 1
    done = ruled(start, "close", "1.1", "1.2", "1.3")
    assert done.stage == 1
    assert ruled(done, "next").stage == 2


def test_the_last_task_and_the_signal_may_come_together():
    assert ruled(Progress(STAGES), "next", "1.1", "1.2", "1.3").stage == 2


def test_unknown_ids_are_given_back_and_ignored():
    after, unknown = Progress(STAGES).after(Ruling("", "start", ("1.1", "9.9", "bob")))
    assert (after.done, unknown) == (frozenset({"1.1"}), ("9.9", "bob"))


def test_progress_is_an_equal_share_for_each_stage():
    # 3 tasks a stage, 4 stages: (3/3 + 1/3 + 0 + 0) / 4
    progress = Progress(STAGES, 2, frozenset({"1.1", "1.2", "1.3", "2.1"}))
    assert progress.share == Fraction(1, 3)
    assert Progress(STAGES, 4, frozenset(IDS)).share == 1


def test_a_lesson_is_finished_in_its_last_stage_only():
    assert not Progress(STAGES, 3, frozenset(IDS)).finished
    assert Progress(STAGES, 4, frozenset(IDS)).finished


replies = st.lists(
    st.builds(Ruling, st.just(""), st.sampled_from(SIGNALS),
              st.lists(st.sampled_from([*IDS, "9.9", ""]), max_size=6).map(tuple)),
    min_size=200, max_size=200,
)  # fmt: skip


@pytest.mark.costly
@settings(max_examples=20)
@given(replies)
def test_no_two_hundred_replies_skip_a_stage_go_back_or_untick(rulings):
    progress = Progress(STAGES)
    for ruling in rulings:
        after, _ = progress.after(ruling)
        assert after.done >= progress.done
        assert after.stage - progress.stage in (0, 1)
        if after.stage > progress.stage:
            left = STAGES[progress.stage - 1]
            assert ruling.signal == "next"
            assert {task.id for task in left.tasks} <= after.done
        progress = after


# --- Timeline ------------------------------------------------------------------------------------

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


@pytest.mark.parametrize(
    ("template", "shown"), [("manager", 100), ("think", 50), ("code", 10), ("speak", 15)]
)
def test_a_prompt_shows_so_many_of_the_last_messages(template, shown):
    timeline = told(*(("bob", f"text {n}") for n in range(1, 131)))
    talk = Conversation(SimpleNamespace(group=GROUP, fill=str), timeline, None)
    lines = talk.shown_messages(template, 120).splitlines()
    assert (len(lines), lines[-1].split()[-1], len(talk.lines)) == (shown, "120", 130)
    assert talk.shown_messages(template, 0) == "messages_none"


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


@pytest.mark.parametrize(
    ("messages", "moment"),
    [
        ([("bob", "Bob here, Alice?")], ("bob", False, ("alice",))),
        ([(None, "")], (None, False, ())),
        ([("alice", "Tom?"), (None, "")], ("alice", False, ("learner",))),
    ],
    ids=["never itself", "before the first message", "also after a silence"],
)
def test_whom_the_last_message_addresses_is_the_moment(messages, moment):
    assert told(*messages).moment() == moment
