import json

import pytest

from tutorsim.ballot_reading_and_decisions import decide
from tutorsim.errors import TaskFileError
from tutorsim.records import Attempt, EpisodeRecord, Proposal, Turn
from tutorsim.records.group import EventRecord, LessonRecord
from tutorsim.systems.oversight.audit_study_of_replies_of_a_run import (
    audited_items,
    drawn_turns,
    lesson_items,
)
from tutorsim.systems.oversight.items_to_label_from_mrbench_or_audit_files import (
    read_audited,
    written_audited,
)

ROLES = ("first", "second", "third")


def turn(number, winner="second"):
    masses = [{role: int(role == winner) for role in ROLES}]
    texts = {role: f"{role} says {number}" for role in ROLES}
    return Turn(
        turn=number,
        proposals_final={role: Proposal(text=text) for role, text in texts.items()},
        decision=decide(masses, ROLES, order=ROLES),
        delivered=texts[winner],
    )


def episode(name="sciq.ice.novice.simple", turns=2, **fields):
    return EpisodeRecord(
        **{
            "episode_id": name,
            "benchmark": "sciq",
            "task_id": "ice",
            "persona": "novice",
            "condition": "simple",
            "question": "Why does ice float?",
            "reference": "It is less dense.",
            "attempts": tuple(
                Attempt(turn=i, text=f"message {i}", score=i / 4) for i in range(turns + 1)
            ),
            "turns": tuple(turn(i) for i in range(1, turns + 1)),
            "turns_taken": turns,
            **fields,
        }
    )


POSSIBLE = {("sciq.ice.novice.simple", 1): {"ranked": ("second", "first")}}


def test_a_delivered_reply_is_an_item_with_the_task_as_the_tutor_s_first_turn():
    first, second = audited_items("demo", [episode()])
    assert [tuple(t) for t in second.dialogue] == [
        ("Tutor", "Why does ice float?"),
        ("Student", "message 0"),
        ("Tutor", "second says 1"),
        ("Student", "message 1"),
    ]
    assert (second.message, second.reply) == ("message 1", "second says 2")
    assert (first.audited.score_before, first.audited.score_after) == (0.0, 0.25)
    assert first.conversation == second.conversation == "sciq.ice"
    assert (first.audited.role, first.audited.delivered) == ("second", True)


def test_all_proposals_of_a_turn_are_items_with_who_could_have_won():
    items = audited_items("demo", [episode()], possible=POSSIBLE)
    assert len(items) == 6
    assert [i.audited.role for i in items[:3]] == list(ROLES)
    assert [i.audited.delivered for i in items[:3]] == [False, True, False]
    assert items[0].audited.possible == {"ranked": ("second", "first")}
    assert items[0].audited.score_after is None
    assert items[3].audited.possible == {}


def test_ids_are_sixteen_hexadecimal_digits_and_differ():
    items = audited_items("demo", [episode(), episode("other")], possible=POSSIBLE)
    names = {item.task_id for item in items}
    assert len(names) == len(items) == 12
    assert all(len(name) == 16 and int(name, 16) >= 0 for name in names)


def test_the_single_tutor_and_failed_episodes():
    alone = Turn(turn=1, proposals_initial={"baseline": Proposal(text="hm")}, delivered="hm")
    single = episode(condition="baseline", turns=1).model_copy(update={"turns": (alone,)})
    [item] = audited_items("demo", [single], possible={})
    assert (item.audited.role, item.audited.decided_by) == ("baseline", "none")
    assert audited_items("demo", [episode(status="failed")]) == ()


def test_drawn_turns_keep_all_of_their_items_and_are_nested():
    items = audited_items("demo", [episode(), episode("other")], possible=POSSIBLE)
    two, three = (drawn_turns(items, n, seed=3) for n in (2, 3))
    assert (len(two), len(three)) == (6, 9)
    assert {i.task_id for i in two} < {i.task_id for i in three}
    assert drawn_turns(items, None, seed=3) == items


def test_the_file_of_an_audit_reads_back(tmp_path):
    items = audited_items("demo", [episode()], possible=POSSIBLE)
    path = tmp_path / "tasks.audit.jsonl"
    path.write_text(written_audited(items), encoding="utf-8")
    assert read_audited(path) == items


@pytest.mark.parametrize(
    "change",
    [
        {"replies": None}, {"replies": {}}, {"replies": {"second": {"task_id": "x"}}},
        {"replies": {"second": {"task_id": 3, "response": "", "delivered": True,
                                "score_after": 1}}},
        {"dialogue": [["Parent", "x"]]}, {"dialogue": [["Tutor", "x"]]}, {"dialogue": 4},
        {"turn": "first"}, {"episode": None},
    ],
)  # fmt: skip
def test_a_line_that_is_no_turn_is_refused_by_its_number(tmp_path, change):
    items = audited_items("demo", [episode(turns=1)])
    row = json.loads(written_audited(items))
    path = tmp_path / "tasks.audit.jsonl"
    path.write_text(json.dumps({**row, **change}) + "\n", encoding="utf-8")
    with pytest.raises(TaskFileError, match=f"{path}, line 1"):
        read_audited(path)


def test_messages_of_agents_in_a_lesson_are_replies_to_the_learner():
    said = [("peer", "Hello."), ("learner", "It is 5."), ("peer", "Why?"), ("tutor", "Count.")]
    lesson = LessonRecord(
        episode_id="lessons.sum.novice.self",
        benchmark="lessons",
        task_id="sum",
        variant="novice",
        condition="self",
        agents=("peer", "tutor"),
        learner_name="Ana",
        problem="What is 2 + 2?",
        events=tuple(
            EventRecord(number=i, kind="message", at_s=8 * i, stage=1, who=who, text=text)
            for i, (who, text) in enumerate(said, start=1)
        ),
        ended_by="tasks_done",
        stage_reached=1,
        tasks_done=(),
        progress=0.0,
    )
    first, second = lesson_items("lessons", [lesson])
    assert (first.reply, first.message, first.audited.turn) == ("Why?", "It is 5.", 3)
    assert [tuple(turn) for turn in second.dialogue] == [
        ("Tutor", "What is 2 + 2?"),
        ("Tutor", "Hello."),
        ("Student", "It is 5."),
        ("Tutor", "Why?"),
    ]
    assert (second.audited.persona, second.audited.decided_by) == ("novice", "none")
    failed = lesson.model_copy(update={"status": "failed"})
    assert lesson_items("lessons", [failed]) == ()
