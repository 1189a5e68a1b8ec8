import pytest

from tutorsim.kernel.system import Chance
from tutorsim.systems.panel.scene import read_score
from tutorsim.systems.panel.scripted_prompt_reading import knowledge_of
from tutorsim.systems.panel.scripted_replies import judge_reply
from tutorsim.tasks import builtin

TASK = builtin("sciq")[2]
ABOUT = knowledge_of(TASK.question)
SYSTEM = "You grade a student's answer. SCORE: <number>"


def user(answer, question=TASK.question, reference=f"{TASK.correct_answer}\n{TASK.support}"):
    return f"Question:\n{question}\n\nReference answer:\n{reference}\n\nStudent's answer:\n{answer}"


def scores(asked):
    read = [read_score(judge_reply(asked, Chance(i))) for i in range(200)]
    return {score.value for score in read if score is not None}


@pytest.mark.parametrize(
    ("answer", "least", "most"),
    [
        (f"{ABOUT.answer}. {ABOUT.because}", 0.85, 1.0),
        (ABOUT.answer, 0.6, 0.75),
        (ABOUT.clue, 0.3, 0.5),
        (ABOUT.beliefs[0], 0.0, 0.2),
        (f"I give up on {ABOUT.topic}.", 0.0, 0.0),
        ("", 0.0, 0.0),
    ],
)
def test_the_score_follows_what_the_answer_shows(ask, answer, least, most):
    found = scores(ask(SYSTEM, user(answer)))
    assert least <= min(found)
    assert max(found) <= most


def test_judging_the_same_answer_again_seldom_changes_the_score(ask):
    asked = ask(SYSTEM, user(ABOUT.clue))
    read = [read_score(judge_reply(asked, Chance(i))) for i in range(400)]
    values = [score.value for score in read if score is not None]
    assert 0 < sum(value != max(set(values), key=values.count) for value in values) < 60


def test_a_judge_seldom_forgets_the_form(ask):
    asked = ask(SYSTEM, user(ABOUT.answer))
    unread = sum(read_score(judge_reply(asked, Chance(i))) is None for i in range(3000))
    assert 0 < unread < 30


def test_an_unknown_question_is_graded_by_the_reference(ask):
    strange = {"question": "What is zorb?", "reference": "a green moss\nIt grows on old stones."}
    assert min(scores(ask(SYSTEM, user("Zorb is green moss.", **strange)))) >= 0.6
    assert min(scores(ask(SYSTEM, user("Green moss, it grows on old stones.", **strange)))) >= 0.85
    assert max(scores(ask(SYSTEM, user("Zorb is a planet.", **strange)))) <= 0.2


def test_code_does_not_count_as_words(ask):
    prompt = builtin("humaneval")[0].prompt.rstrip()
    answer = f"No idea.\n  ```python\n  # {knowledge_of(prompt).answer}\n  ```"
    asked = ask(SYSTEM, f"Programming task:\n{prompt}\n\nStudent's message:\n{answer}\n\nGrade")
    assert max(scores(asked)) <= 0.2
