"""What prompts are built from."""

from hypothesis import given
from hypothesis import strategies as st

from tutorsim.systems.panel.scene import Exchange, indented


def test_calls_go_to_the_model_of_their_agent(make_scene):
    models = {"tutor": "t", "judge": "j", "student": "s", "max_tokens": 77, "temperature": 0.5}
    scene = make_scene(models=models)
    for agent, stage, model in (
        ("student", "student", "s"),
        ("judge", "judge", "j"),
        ("motivation", "vote_final", "t"),
        ("baseline", "propose", "t"),
    ):
        call = scene.call(2, stage, agent, system="S", user="U")
        assert str(call.key) == f"2/{stage}/{agent}/1"
        assert call.request.body() == {
            "max_tokens": 77,
            "messages": [{"role": "user", "content": "U"}],
            "model": model,
            "system": "S",
            "temperature": 0.5,
        }


def test_a_temperature_is_sent_only_where_it_is_set(make_scene):
    call = make_scene().call(0, "student", "student", system="S", user="U")
    assert set(call.request.body()) == {"max_tokens", "messages", "model", "system"}


def test_history_numbers_messages_and_leaves_out_a_reply_that_is_not_there(make_scene):
    exchanges = [Exchange("One.", "Help.\nMore."), Exchange("Two.", None)]
    assert make_scene().history(exchanges) == (
        "Student, message 1: One.\n\nTutor, reply 1: Help.\n  More.\n\nStudent, message 2: Two."
    )


@given(st.text())
def test_indented_text_starts_no_line_after_the_first(text):
    assert all(line.startswith("  ") for line in indented(text).splitlines()[1:])


def test_the_reference_of_a_science_task_is_answer_and_support(make_scene):
    assert make_scene().reference == "answer-of-ice\nsupport-of-ice"


def test_the_reference_of_a_program_is_its_solution(make_scene):
    scene = make_scene(benchmarks={"humaneval": {"tasks": "programs.jsonl"}})
    assert scene.is_code
    assert scene.reference == "    return 'solution-of-double'"
