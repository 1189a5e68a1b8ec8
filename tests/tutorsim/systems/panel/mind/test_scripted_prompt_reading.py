import re

import pytest

from tests.reference.programs import verdicts
from tests.tutorsim.systems.panel.mind.conftest import ask
from tutorsim.kernel.system_and_loaded_study import Chance
from tutorsim.systems.panel.scripted_prompt_reading_tasks_moods_quality import (
    Asked,
    knowledge_of,
    level_of,
    load_wording,
    mood_of_text,
)
from tutorsim.systems.panel.scripted_replies import student_reply
from tutorsim.systems.panel.settings_and_members_of_compared_panels import load_panel_catalog
from tutorsim.tasks import builtin

KINDS = {
    "student": "student", "judge": "judge", "propose": "propose", "critique": "review",
    "tie_critique": "review", "revise": "revise", "vote_initial": "vote", "vote_final": "vote",
    "tie_vote": "vote",
}  # fmt: skip


def asked(call):
    return Asked(call.request.system, call.request.user)


def test_every_prompt_of_the_package_is_read_as_what_it_is(played):
    read = {(call.key.stage, asked(call).kind) for _, call, _ in played.calls}
    assert read == set(KINDS.items())


def test_the_ballot_format_is_read_from_the_prompt(played):
    votes = [(spec, call) for spec, call, _ in played.calls if "vote" in call.key.stage]
    assert {(spec.condition, asked(call).form) for spec, call in votes} == {
        (name, name) for name in ("simple", "ranked", "cumulative", "approval")
    }


def test_the_task_is_known_in_every_prompt(played):
    for spec, call, _ in played.calls:
        about = asked(call).known
        assert not about.invented
        text = spec.task.prompt if about.program else spec.task.question
        assert about.question == text.rstrip()


def test_drafts_are_read_with_their_labels_and_nothing_else(played):
    for _, call, _ in played.calls:
        if call.key.stage in ("vote_initial", "vote_final", "critique"):
            assert list(asked(call).drafts) == list("ABCD")
        if call.key.stage == "revise":
            own = asked(call).own_draft
            assert own
            assert len(asked(call).drafts) == 3
            assert own not in asked(call).drafts.values()


def test_what_the_student_said_and_was_told_is_read_from_the_prompt(played):
    for record in played.records[:60]:
        texts = [attempt.text for attempt in record.attempts]
        for turn, call in (
            (call.key.turn, call)
            for spec, call, _ in played.calls
            if spec.episode_id == record.episode_id and call.key.stage == "student"
        ):
            spoken = asked(call).spoken
            assert list(spoken.attempts) == texts[:turn]
            assert spoken.delivered == (record.turns[turn - 1].delivered if turn else None)


def test_the_judge_reads_the_whole_answer_and_nothing_more(played):
    texts = {attempt.text for record in played.records for attempt in record.attempts}
    graded = {asked(call).graded for _, call, _ in played.calls if call.key.stage == "judge"}
    assert graded == texts


def test_second_askings_are_noticed(played):
    for _, call, _ in played.calls:
        assert asked(call).again == (call.key.attempt == 2)


def test_the_budget_is_read_from_the_prompt():
    form = "Distribute exactly 40 points over the 3 replies"
    assert (ask("", form).form, ask("", form).budget) == ("cumulative", 40)


def test_traits_may_be_whole_numbers():
    system = (
        "traits: prior knowledge 0, confidence 1, persistence 0.5, "
        "frustration sensitivity 0.25, help seeking 1.0."
    )
    assert ask(system, "").traits == (0.0, 1.0, 0.5, 0.25, 1.0)
    assert ask("a student", "").traits is None


# --- Task knowledge -------------------------------------------------------------------------------

SCIENCE = builtin("sciq")
PROGRAMS = builtin("humaneval")


def known(task):
    text = task.prompt.rstrip() if task in PROGRAMS else task.question
    return knowledge_of(f"Some task:\n{text}\n\nMore words follow.")


def names(tasks):
    return [task.task_id for task in tasks]


def test_every_original_task_is_known_from_a_prompt():
    assert not any(known(task).invented for task in (*SCIENCE, *PROGRAMS))
    assert [known(task).answer for task in SCIENCE] == [task.correct_answer for task in SCIENCE]


def test_a_question_is_known_also_in_the_middle_of_a_line():
    assert knowledge_of(f"Asked was: {SCIENCE[0].question} Nothing else.").answer


@pytest.mark.parametrize("task", [*SCIENCE, *PROGRAMS], ids=names((*SCIENCE, *PROGRAMS)))
def test_what_a_student_says_shows_its_level_in_every_mood(task):
    about = known(task)
    said = [
        *((belief, 0) for belief in about.beliefs),
        (about.clue, 1),
        (about.answer, 2),
        (f"{about.answer}. {about.because}", 3),
    ]
    for mood in load_wording().moods.values():
        for lead, tail in zip(mood.leads, mood.tails, strict=True):
            for words, level in said:
                assert level_of(f"{lead}: {words}. {tail}", about) == level


def test_every_slip_changes_one_place_of_the_reference():
    for task in PROGRAMS:
        for old, new in known(task).slips:
            assert task.canonical_solution.count(old) == 1, (task.task_id, old)
            assert old != new


def test_every_slip_fails_the_tests_of_its_task():
    programs = {
        f"{task.task_id}: {old}": f"{task.prompt}{task.canonical_solution.replace(old, new)}\n"
        f"{task.test}\ncheck({task.entry_point})"
        for task in PROGRAMS
        for old, new in known(task).slips
    }
    assert len(programs) >= 40 - 2
    assert [name for name, passes in verdicts(programs).items() if passes] == []


# --- Tasks from elsewhere ---------------------------------------------------------------------

STRANGE = "Which gas do most fish take out of the water?"
HELPED = '''import math
from typing import List


def helper(x: int) -> int:
    """Helps."""
    return x


def wanted(
    values: List[int],
) -> List[int]:
    """Does it: now.

    >>> wanted([1])
    [1]
    """'''


def test_the_same_unknown_question_gives_the_same_phrases_in_every_prompt():
    first = knowledge_of(f"Question:\n{STRANGE}\n\nAnswer it.")
    other = knowledge_of(f"Question:\n{STRANGE}\n\nStudent, message 1: Fish?\n\nDraft a reply.")
    assert first is other
    assert first.invented
    assert first.topic == "the role of water"


def test_an_unknown_program_ends_where_the_prompt_goes_on_in_words():
    first = knowledge_of(f"Programming task:\n{HELPED}\n\nStudent, message 1: def x\n  def y():")
    other = knowledge_of(f"Programming task:\n{HELPED}\n\nReference solution:\n    return values")
    assert first is other
    assert first.question == HELPED


def test_the_stub_of_an_unknown_program_has_the_last_signature_and_the_imports():
    about = knowledge_of(f"Programming task:\n{HELPED}\n\nGo on.")
    assert about.program == (
        "import math\nfrom typing import List\ndef wanted(\n    values: List[int],\n) -> List[int]:"
    )


@pytest.mark.parametrize("text", ["", "\n\n", "???", "Question:", "Question:\n\n", "def (", "\x00"])
def test_any_text_at_all_is_a_task(text):
    about = knowledge_of(text)
    assert about.topic
    assert level_of(f"{about.answer}. {about.because}", about) == 3
    assert level_of(about.clue, about) == 1
    assert [level_of(belief, about) for belief in about.beliefs] == [0, 0]


MOODS = {
    "low_confidence_novice": "hesitant",
    "overconfident_misconception": "sure",
    "high_persistence_reflective": "reflective",
    "easily_frustrated_beginner": "strained",
    "help_avoidant": "guarded",
    "hint_seeking_dependent": "asking",
}
QUESTION = builtin("sciq")[0].question
ABOUT = knowledge_of(QUESTION)
FIRST = f"Question:\n{QUESTION}\n\nAnswer the question as this student would now."
FITTING = f"One belief here needs a second look: 'x'. Set it against this: {ABOUT.counter}."
POOR = "There is no rush, and many people find it hard. You will get there. Well done."


def system(persona):
    catalog = load_panel_catalog()
    return catalog.fill("student_system", **catalog.personas[persona].model_dump())


def told(reply, last):
    return (
        f"Question:\n{QUESTION}\n\nStudent, message 1: {last}\n\n"
        f"Your tutor now writes:\n{reply}\n\nAnswer the question as this student would now."
    )


@pytest.mark.parametrize("persona", MOODS)
def test_a_student_speaks_as_its_persona(persona):
    asked = ask(system(persona), FIRST)
    shown = [mood_of_text(student_reply(asked, Chance(i))).name for i in range(100)]
    assert shown.count(MOODS[persona]) >= 90


def test_a_student_says_one_to_three_sentences(played):
    for _, call, text in played.calls:
        if call.key.stage == "student":
            words = text.split("```")[0]
            assert 1 <= len(re.findall(r"[.?!](?:\s|$)", words)) <= 3, words


def test_help_that_fits_raises_the_level_more_often_than_help_that_does_not():
    last = f"Easy: {ABOUT.beliefs[0]}. I am certain of that."

    def rises(reply):
        asked = ask(system("overconfident_misconception"), told(reply, last))
        replies = [student_reply(asked, Chance(i)) for i in range(300)]
        return sum(level_of(text, ABOUT) > 0 for text in replies)

    assert rises(FITTING) > rises(POOR) + 90


def test_a_student_holds_on_to_the_same_belief_while_it_learns_nothing():
    last = f"Easy: {ABOUT.beliefs[1]}. I am certain of that."
    asked = ask(system("overconfident_misconception"), told(POOR, last))
    texts = [student_reply(asked, Chance(i)) for i in range(100)]
    unmoved = [text for text in texts if level_of(text, ABOUT) == 0]
    assert unmoved
    assert all(ABOUT.beliefs[1] in text for text in unmoved)


def test_more_prior_knowledge_gives_better_first_answers():
    def total(persona):
        asked = ask(system(persona), FIRST)
        return sum(level_of(student_reply(asked, Chance(i)), ABOUT) for i in range(300))

    assert total("high_persistence_reflective") > total("low_confidence_novice") + 60


def test_programs_are_nearly_always_given_and_define_the_function(played):
    texts = [
        (spec.task, text)
        for spec, call, text in played.calls
        if call.key.stage == "student" and spec.benchmark == "humaneval"
    ]
    blocks = [(task, re.search(r"```python\n(.*)\n```$", text, re.DOTALL)) for task, text in texts]
    missing = sum(block is None for _, block in blocks)
    assert 0 < missing < 0.05 * len(blocks)
    for task, block in blocks:
        if block is not None:
            compile(block[1], "<student>", "exec")
            assert f"def {task.entry_point}(" in block[1]


def test_a_right_program_is_kept(played):
    for record in played.records:
        if record.benchmark == "humaneval":
            passed = [a.code_passed for a in record.attempts if "```" in a.text]
            assert sorted(passed) == passed, record.episode_id


@pytest.mark.parametrize(
    ("signature", "value"),
    [
        ("def f(x) -> int:", "0"),
        ("def f(x) -> list[int]:", "[]"),
        ("def f(x: str) -> bool:", "False"),
        ("def f(x) -> str:", "''"),
        ("def f(x):", "None"),
    ],
)
def test_an_unknown_function_gets_a_stub_of_its_kind(signature, value):
    user = f'Programming task:\n{signature}\n    """Do it."""\n\nSay as this student'
    reply = student_reply(ask(system("help_avoidant"), user), Chance(1))
    assert f"{signature}\n    # not finished yet\n    return {value}\n```" in reply
