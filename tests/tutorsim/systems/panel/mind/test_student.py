import re

import pytest

from tests.tutorsim.systems.panel.mind.conftest import ask
from tutorsim.kernel.system import Chance
from tutorsim.systems.panel.scripted_prompt_reading import knowledge_of, level_of, mood_of_text
from tutorsim.systems.panel.scripted_replies import student_reply
from tutorsim.systems.panel.settings import load_panel_catalog
from tutorsim.tasks import builtin

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
