import pytest

from tests.reference.programs import verdicts
from tutorsim.systems.panel.scripted_prompt_reading import knowledge_of, level_of, load_wording
from tutorsim.tasks import builtin

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
