"""The scripted group: it answers every prompt of a group, and no other."""

from collections import Counter

from tests.tutorsim.systems.group.conftest import play
from tutorsim.kernel.system_and_loaded_study import Asking, Chance
from tutorsim.systems.group import scripted_agents_learner_and_raters as script
from tutorsim.systems.group.lesson_problem_and_duel_scenario_files import (
    builtin_lessons,
    builtin_scenarios,
)


def test_prompts_of_other_systems_are_left_alone():
    for system in ("You grade a student's answer", "You play a student", "You are a tutor", ""):
        assert script.group_reply(Asking(system, "Question:\nWhy?"), Chance(1)) is None


def test_the_same_request_gets_the_same_reply():
    first, second = (play(builtin_lessons()[1]).record for _ in range(2))
    assert first == second


def test_lessons_hold_corrections_addresses_and_silences():
    records = [play(lesson, persona=who).record for lesson in builtin_lessons()
               for who in ("tom_average", "tom_overconfident")]  # fmt: skip
    events = [event for record in records for event in record.events]
    kinds = Counter(event.kind for event in events)
    assert kinds["silence"] > 5
    thoughts = [one for e in events if e.cycle for one in e.cycle.thoughts]
    assert any(one.corrects for one in thoughts)
    assert {one.action for one in thoughts} == {"speak", "listen"}
    assert any(event.to for event in events)
    assert any(event.continues for event in events)


def test_the_learner_makes_mistakes_after_seven_messages_and_not_before():
    problem, known = script._words().problems[0]
    for heard, errs in ((6, False), (7, True)):
        chat = script.Prompt("", problem + "".join(f"\nM{n} Bob: Hm." for n in range(heard)))
        lines = {script._learner_words(chat, Chance(n), anxious=False, sure=True) for n in range(9)}
        assert any(wrong.says in lines for wrong in known.wrong) == errs


def test_usual_scores_of_thoughts_lie_on_the_scale():
    assert all(1 <= score <= 5 for scores in script._WEIGHTS.values() for score in scores)


def test_a_continuation_in_which_nobody_speaks_is_worth_half_a_point():
    assert script._worth(None, "A long silence.") == 0.5


def test_some_replies_are_malformed_and_some_judges_biased():
    records = [play(scenario).record for scenario in builtin_scenarios()]
    assert any(record.order_dependent for record in records)
    assert len({record.result for record in records}) > 1
    attempts = [one.attempts for record in records for w in record.warm_up for one in w.thoughts]
    assert 2 in attempts
