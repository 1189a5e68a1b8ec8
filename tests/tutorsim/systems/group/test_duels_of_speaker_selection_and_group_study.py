"""Study files of groups: the grid, and what is refused."""

import itertools
import json
import re
from functools import partial
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.tutorsim.systems.group.conftest import message, play, scores, standin, study_of, thought
from tests.tutorsim.systems.group.test_lesson_flow import bounded, quiet
from tests.tutorsim.test_guide import snippets
from tutorsim.errors import StudyError, TaskFileError
from tutorsim.kernel.cost_plan import estimate_tokens, total_tokens
from tutorsim.kernel.flow_drivers_and_call_log import PersonInput, drive, scripted
from tutorsim.kernel.load_and_check_study_file import load_recorded_study, load_study
from tutorsim.kernel.retest_flow_and_drawn_turns import askings, retest_flow
from tutorsim.kernel.system_and_loaded_study import Chance
from tutorsim.records.group import JudgmentRecord
from tutorsim.runner.begin_or_resume_recording import as_begun
from tutorsim.systems.group.duels_of_speaker_selection_and_group_study import duel_result
from tutorsim.systems.group.lesson_problem_and_duel_scenario_files import (
    KINDS,
    builtin_lessons,
    builtin_scenarios,
    read_lessons,
    read_scenarios,
    tasks_text,
)
from tutorsim.systems.group.settings import GroupModels, GroupSettings

# --- Duel ----------------------------------------------------------------------------------------

SYSTEMS = ("self_select", "next_speaker")


def judged(first, second):
    """Both askings: which of the two continuations shown was better."""
    pairs = zip(SYSTEMS, (first, second), strict=True)
    return [JudgmentRecord(first=system, better=better, reason="") for system, better in pairs]


# (first asking, second asking) → result of self-selection, depends on the order. In the second
# asking self-selection stands second.
TABLE = {
    ("first", "second"): ("win", False),
    ("second", "first"): ("loss", False),
    ("same", "same"): ("draw", False),
    ("first", "same"): ("win", False),
    ("same", "second"): ("win", False),
    ("second", "same"): ("loss", False),
    ("same", "first"): ("loss", False),
    ("first", "first"): ("draw", True),
    ("second", "second"): ("draw", True),
}


@pytest.mark.parametrize("said", TABLE)
def test_both_orders_make_the_result(said):
    assert duel_result(judged(*said)) == TABLE[said]


@pytest.mark.parametrize("said", [*itertools.product(["first", "second", "same"], repeat=2)])
def test_swapping_the_systems_swaps_wins_and_losses(said):
    swap = {"win": "loss", "loss": "win", "draw": "draw"}
    mine, dependent = duel_result(judged(*said), "self_select")
    theirs, also = duel_result(judged(*said), "next_speaker")
    assert (theirs, also) == (swap[mine], dependent)


def test_an_unread_asking_leaves_no_result():
    assert duel_result(judged("first", None)) == (None, False)


def replies(*, better, named="Alice", wants=True):
    def reply(call):
        stage = call.key.stage
        if stage == "judge":
            return f"BETTER: {better(call)}\nbecause"
        if stage.startswith("rate_"):
            return json.dumps(
                dict.fromkeys(("correctness", "relevance", "role_consistency", "reasoning"), 7.5)
            )
        return {
            "think": thought(action="speak" if wants else "listen"),
            "evaluate": scores(Bob=3.9, Alice=3.7),
            "speak": message("From a thought."),
            "predict": named,
            "speak_predicted": message("From a prediction."),
        }[stage]

    return reply


def test_a_judge_that_prefers_the_first_is_order_dependent_and_no_win(scenario):
    record = play(scenario, replies(better=lambda call: 1)).record
    assert (record.result, record.order_dependent, record.first_order) == ("draw", True, "win")


def test_a_judge_that_prefers_a_text_wins_in_both_orders(scenario):
    def better(call):
        first = call.request.user.index("From a thought.") < call.request.user.index(
            "From a prediction."
        )
        return 1 if first else 2

    record = play(scenario, replies(better=better)).record
    assert (record.result, record.order_dependent) == ("win", False)
    assert {judgment.first for judgment in record.judgments} == set(SYSTEMS)


def test_the_judge_never_reads_whom_the_scenario_expects(scenario):
    played = play(scenario, replies(better=lambda call: 1))
    for call in played.calls:
        assert scenario.expected.act not in call.request.user
        assert scenario.reference not in call.request.user


def test_with_nobody_speaking_anywhere_nobody_is_asked(scenario):
    played = play(scenario, replies(better=lambda call: 1, named="Tom", wants=False))
    record = played.record
    assert (record.result, record.judgments, record.ratings) == ("draw", (), ())
    assert record.self_selected is None


def test_a_reply_is_judged_against_silence(scenario):
    played = play(scenario, replies(better=lambda call: 1, named="Tom"))
    judge = next(call for call in played.calls if call.key.stage == "judge")
    assert "nobody speaks" in judge.request.user
    assert {rating.system for rating in played.record.ratings} == {"self_select"}


@pytest.mark.parametrize(("warm_up", "thinks"), [(True, 9), (False, 1)])
def test_a_warm_up_thinks_after_every_message(scenario, warm_up, thinks):
    played = play(scenario, replies(better=lambda call: 1), warm_up=warm_up)
    turns = {call.key.turn for call in played.calls if call.key.stage == "think"}
    assert len(turns) == thinks
    assert len(played.record.warm_up) == thinks - 1


def test_three_raters_rate_each_reply(scenario):
    record = play(scenario, replies(better=lambda call: 1)).record
    assert len(record.ratings) == 6
    assert record.ratings[0].scores == dict.fromkeys(
        ("correctness", "relevance", "role_consistency", "reasoning"), 7.5
    )


def test_the_other_rubric_shows_the_reference(scenario):
    def reply(call):
        if call.key.stage.startswith("rate_"):
            return '{"likeness": 4.0}'
        return replies(better=lambda call: 1)(call)

    played = play(scenario, reply, rubric="reference")
    rate = next(call for call in played.calls if call.key.stage.startswith("rate_"))
    assert scenario.reference in rate.request.user
    assert played.record.ratings[0].scores == {"likeness": 4.0}


# --- Study ---------------------------------------------------------------------------------------


def written(tmp_path, text):
    path = tmp_path / "study.toml"
    path.write_text(f'name = "x"\nsystem = "group"\n{text}')
    return path


LESSONS = '[benchmarks.lesson]\ntasks = "builtin"\n'
SCENARIOS = '[benchmarks.scenario]\ntasks = "builtin"\n'


def test_a_scenario_is_one_duel_of_both_conditions(tmp_path):
    loaded = load_study(
        written(tmp_path, 'learners = ["tom_quiet", "person"]\n' + LESSONS + SCENARIOS)
    )
    ids = [spec.episode_id for spec in loaded.grid()]
    assert ids[:2] == ["lesson.run.tom_quiet.self_select", "lesson.run.tom_quiet.next_speaker"]
    assert len(ids) == 4 * 2 * 2 + 16
    assert ids[16] == "scenario.perimeter_5Fslip.none.duel"
    with_person = [spec.episode_id for spec in loaded.with_person()]
    assert with_person == [name for name in ids if name.split(".")[2] == "person"]
    assert len(with_person) == 4 * 2


def test_a_person_can_be_in_the_first_lessons_only(tmp_path):
    text = 'learners = ["person"]\n' + LESSONS + "[group]\nperson_lessons = 3\n"
    assert len(list(load_study(written(tmp_path, text)).grid())) == 3


def test_the_learner_s_messages_and_no_others_are_asked_of_its_model(tmp_path):
    loaded = load_study(written(tmp_path, LESSONS + '[models]\nlearner = "small"\n'))
    models = {stage: loaded.model_of("rater_1", stage) for stage in loaded.system.stages}
    assert [stage for stage, model in models.items() if model == "small"] == ["learner"]


def test_lambda_is_written_as_such(tmp_path):
    loaded = load_study(written(tmp_path, LESSONS + "[group]\nlambda = 0.5\n"))
    assert loaded.study.group.weight == 0.5
    assert loaded.study_table()["group"]["lambda"] == 0.5
    assert loaded.settings().settings["group"] == {"lambda": 0.5, "withdraw": "once"}


def test_a_recording_without_a_later_setting_keeps_what_held_before(tmp_path):
    folder = Path(__file__).parents[4] / "cassettes" / "group"
    recorded = json.loads((folder / "manifest.json").read_bytes())["study_digest"]
    assert "withdraw" not in (folder / "study.toml").read_text()
    assert load_recorded_study(folder).study.group.withdraw == "always"
    assert load_recorded_study(folder).digest() == recorded
    begun_anew = load_study(folder / "study.toml")
    assert begun_anew.study.group.withdraw == "once"
    assert begun_anew.digest() != recorded == as_begun(begun_anew, folder).digest()
    chosen = load_study(written(tmp_path, LESSONS + '[group]\nwithdraw = "always"\n'))
    assert "group" not in chosen.settings().settings


def test_the_guide_shows_every_setting_and_the_form_of_both_files(tmp_path):
    files = {one.file: one.text for one in snippets("group") if one.file}
    for name, text in files.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    study = load_study(tmp_path / "group-study.toml").study
    assert (study.group, study.models) == (GroupSettings(), GroupModels())
    fields = {field.alias or name for name, field in GroupSettings.model_fields.items()}
    shown = re.findall(r"^(?:# )?(\w+) = ", files["group-study.toml"], re.MULTILINE)
    assert fields <= set(shown)
    assert [one.id for one in read_lessons(tmp_path / "my-lessons.toml")] == ["handshakes"]
    assert len(read_scenarios(tmp_path / "my-scenarios.json")) == 1


BAD = {
    "lambda = 1.5": "group.lambda",
    "threshold = 0.5": "group.threshold",
    'agents = ["bob", "Bob"]': "agents names 'bob' twice",
    'agents = ["bob"]': "a group has 2 to 6",
    'agents = ["bob", "learner"]': "stands for somebody else",
    'agents = ["bob", "zoe"]': "the catalog has no 'zoe'",
    'person_name = "ALICE"': "is the name of somebody else",
    'person_name = "a b"': "group.person_name",
    "weight = 0.5": "there is no setting 'weight'",
    'selection = "inner_thoughts"\ninterrupt_threshold = 4.5': "interrupt_threshold does nothing",
    "treshold = 3": "Did you mean 'threshold'?",
}


@pytest.mark.parametrize("line", BAD)
def test_bad_settings_are_refused_with_file_and_key(tmp_path, line):
    path = written(tmp_path, f"{LESSONS}[group]\n{line}\n")
    with pytest.raises(StudyError) as caught:
        load_study(path)
    assert BAD[line] in str(caught.value)
    assert str(path) in caught.value.what


def test_a_learner_named_like_an_agent_is_refused(tmp_path):
    more = '[catalog.learners.rob]\nname = "Bob"\ncharacter = "You are Bob."\n'
    path = written(tmp_path, f'learners = ["rob"]\n{LESSONS}{more}')
    with pytest.raises(StudyError, match="its name is that of an agent"):
        load_study(path)


def test_the_shipped_sets_are_whole():
    assert len(builtin_lessons()) == 4
    kinds = [scenario.kind for scenario in builtin_scenarios()]
    assert {kind: kinds.count(kind) for kind in KINDS} == dict.fromkeys(KINDS, 2)
    for scenario in builtin_scenarios():
        assert scenario.speakers <= {"bob", "alice", "charlie", "learner"}
        assert scenario.expected.speaker != scenario.messages[-1].name


@pytest.mark.parametrize("tasks", [builtin_lessons(), builtin_scenarios()])
def test_written_tasks_are_read_again(tmp_path, tasks):
    path = tmp_path / "tasks.json"
    path.write_text(tasks_text(tasks), encoding="utf-8")
    read = read_lessons if tasks[0].benchmark == "lesson" else read_scenarios
    assert read(path) == tasks


def changed_lesson(change):
    value = json.loads(tasks_text(builtin_lessons()[:1]))
    change(value[0])
    return value


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda x: x["stages"].append(x["stages"][0]), "a lesson has 4 stages, this one has 5"),
        (lambda x: x["stages"][1].update(tasks=[]), "stages.1.tasks"),
        (lambda x: x["stages"][1]["tasks"][0].update(id="1.1"), "'1.1' is there twice"),
        (lambda x: x.pop("problem"), "problem"),
        (lambda x: x.update(hint="no"), "hint"),
    ],
)
def test_lessons_that_are_none_are_refused(tmp_path, change, said):
    path = tmp_path / "lessons.json"
    path.write_text(json.dumps(changed_lesson(change)))
    with pytest.raises(TaskFileError) as caught:
        read_lessons(path)
    assert said in caught.value.what
    assert "'run'" in caught.value.what
    assert str(path) in caught.value.what
    assert caught.value.why
    assert caught.value.hint


def test_scenarios_of_eight_messages_and_strangers_are_refused(tmp_path):
    value = json.loads(tasks_text(builtin_scenarios()[:1]))
    short = tmp_path / "short.json"
    short.write_text(json.dumps([value[0] | {"messages": value[0]["messages"][:8]}]))
    with pytest.raises(TaskFileError, match="a scenario has 9 messages, this one has 8"):
        read_scenarios(short)
    value[0]["messages"][2]["name"] = "zoe"
    strange = tmp_path / "strange.json"
    strange.write_text(json.dumps(value))
    path = written(tmp_path, f'[benchmarks.scenario]\ntasks = "{strange.name}"\n')
    with pytest.raises(TaskFileError, match="has the speaker 'zoe'"):
        load_study(path)


def test_ids_that_repeat_are_refused(tmp_path):
    path = tmp_path / "lessons.json"
    value = json.loads(tasks_text(builtin_lessons()[:2]))
    value[1]["id"] = "RUN"
    path.write_text(json.dumps(value))
    with pytest.raises(TaskFileError, match="is there twice"):
        read_lessons(path)


# --- The range of calls that a lesson or a duel can take ------------------------------------------


def range_of(task, condition, **changed):
    loaded = study_of(task, **changed)
    [spec] = [one for one in loaded.grid() if one.condition in (condition, "duel")]
    return loaded.call_range(spec)


@pytest.mark.parametrize("condition", ["self_select", "next_speaker"])
def test_a_lesson_in_which_nobody_speaks_takes_the_least(lesson, condition):
    played = play(lesson, quiet, condition=condition)
    assert len(played.calls) == range_of(lesson, condition).least


def test_the_least_of_three_agents_is_a_hand_count(lesson):
    # event 1: three thoughts; silences 1 and 2: the learner and three thoughts; silence 3 ends it
    assert range_of(lesson, "self_select").least == 3 + 4 + 4
    assert range_of(lesson, "next_speaker").least == 1 + 2 + 2


def test_the_most_of_a_short_lesson_is_a_hand_count(lesson):
    # three events: the first cycle ends in an agent's message with the floor, the second in any.
    # 3 thoughts, scores, words, 2 codes; manager, learner asked by its name, 3 thoughts, scores,
    # words, 2 codes
    found = range_of(lesson, "self_select", max_events=3)
    assert found.most == (3 + 2 + 2) + (1 + 1 + 3 + 2 + 2)


@pytest.mark.parametrize("condition", ["self_select", "next_speaker"])
def test_a_talkative_lesson_stays_below_the_most(lesson, condition):
    played = play(lesson, bounded, condition=condition)
    bounds = range_of(lesson, condition)
    assert bounds.least < len(played.calls) <= bounds.most


@pytest.mark.parametrize("condition", ["self_select", "next_speaker"])
def test_the_longest_lesson_with_a_person_has_the_tokens_of_all_its_calls(lesson, condition):
    """The person stays to the end; on the shortest path they leave at once."""
    loaded = study_of(lesson, learner="person", conditions=[condition])
    [spec] = loaded.grid()
    assert not total_tokens(estimate_tokens(loaded, longest=False).values())
    tokens = total_tokens(estimate_tokens(loaded, longest=True).values())
    played = play(
        lesson, partial(loaded.usual_reply, spec, longest=True), condition=condition,
        persona="person", listen=lambda _: PersonInput(None, 0),
    )  # fmt: skip
    assert len(played.calls) == loaded.call_range(spec).most
    asked = sum(call.input_tokens for call in played.record.calls)
    assert sum(asked for asked, _ in tokens.values()) == asked > 100_000


@pytest.mark.costly
@given(st.integers(0, 10_000))
def test_lessons_of_any_course_stay_within_the_ceiling(seed):
    answer, chance = standin(seed), Chance(seed)

    def reply(call):
        return "no" if chance.happens(str(call.key), 0.05) else answer(call)

    lesson = builtin_lessons()[seed % 4]
    played = play(lesson, reply, max_events=12)
    bounds = range_of(lesson, "self_select", max_events=12)
    first = [call for call in played.calls if call.key.attempt == 1]
    assert bounds.least <= len(first) <= bounds.most
    assert len(played.calls) <= bounds.ceiling


@pytest.mark.parametrize("warm_up", [True, False])
def test_duels_stay_within_their_range(warm_up):
    for scenario in builtin_scenarios():
        first = [c for c in play(scenario, warm_up=warm_up).calls if c.key.attempt == 1]
        bounds = range_of(scenario, "duel", warm_up=warm_up)
        assert bounds.least <= len(first) <= bounds.most


# --- The evaluations of a group's thoughts are asked again and read as the lesson read them -------


def again(task, played, reply, repeats=1):
    """The record of a retest, whose calls `reply` answers."""
    loaded = study_of(task)
    [spec] = [one for one in loaded.grid() if one.condition in ("self_select", "duel")]
    sets = list(loaded.asked_again(spec, played.record))
    bodies = {str(call.key): json.dumps(call.request.body()) for call in played.calls}
    asked = [a.question for a in askings(sets, bodies, repeats, if_cut_off=None)]
    return drive(retest_flow(spec.episode_id, sets, repeats, asked), scripted(reply))


@pytest.mark.parametrize("task", ["lesson", "scenario"])
def test_the_same_reply_gives_the_logged_scores(task, request):
    task, said = request.getfixturevalue(task), {}
    canned = standin()

    def reply(call):
        return said.setdefault(str(call.key._replace(repeat=0)), canned(call))

    played = play(task, reply)
    found = again(task, played, reply)
    cycles = {event.number: event.cycle for event in played.record.events if event.cycle}
    evaluated = [turn for turn, one in cycles.items() if any(t.score_status for t in one.thoughts)]
    assert [one.turn for one in found.votes] == evaluated
    assert evaluated
    for one in found.votes:
        thoughts = cycles[one.turn].thoughts
        assert (one.stage, one.agent) == ("evaluate", "evaluator")
        assert one.values == ({t.agent: t.scores for t in thoughts if t.scores is not None},)


def test_what_cannot_be_read_is_asked_once_more_and_then_scores_nobody(lesson):
    played, asked = play(lesson), []

    def reply(call):
        asked.append(str(call.key))
        return "no scores"

    found = again(lesson, played, reply, repeats=2)
    assert all(one.values == ({}, {}) for one in found.votes)
    assert len(asked) == 4 * len(found.votes)


def test_prediction_evaluates_nothing(lesson):
    played = play(lesson, condition="next_speaker")
    loaded = study_of(lesson)
    spec = next(one for one in loaded.grid() if one.condition == "next_speaker")
    assert list(loaded.asked_again(spec, played.record)) == []
