"""Studies that compare panels: the grid, the draw, what tutors see, and what is refused."""

import re
from dataclasses import replace
from typing import Any

import pytest

from tutorsim.errors import CallFailed, StudyError
from tutorsim.kernel.flow_drivers_and_call_log import CodeResult, CodeRun, drive, scripted
from tutorsim.kernel.load_and_check_study_file import load_recorded_study, write_study
from tutorsim.records import Branch, VerdictRecord
from tutorsim.systems.panel.episode_flow_and_study import PanelStudy, episode
from tutorsim.systems.panel.settings_and_members_of_compared_panels import (
    FIRST_FORM_PROMPTS,
    PanelCatalog,
    load_panel_catalog,
)
from tutorsim.vocabularies import DEFAULT_ROLES

# --- Episode -------------------------------------------------------------------------------------

CODE = {"benchmarks": {"humaneval": {"tasks": "programs.jsonl", "limit": 1}}}


def scores(*texts):
    return {f"{turn}/judge": f"SCORE: {text}\nWhy." for turn, text in enumerate(texts)}


def test_an_episode_that_succeeds_at_once_has_no_turn(make_scene, script):
    played = script(scores("0.75"))
    record = played.play(make_scene())
    assert played.keys == ["0/student/student/1", "0/judge/judge/1"]
    assert (record.success, record.turns_taken, record.turns) == (True, 0, ())
    assert record.initial_correctness == record.final_correctness == 0.75
    scene = make_scene()
    assert (record.question, record.reference) == (scene.question, scene.reference)
    assert scene.question in played.prompt("0/student/student/1")
    assert record.attempts[0].model_dump() == {
        "turn": 0, "text": "Attempt 0.", "score": 0.75, "score_rationale": "Why.", "code": None,
        "code_passed": None, "verdict": None,
    }  # fmt: skip


def test_success_ends_the_episode(make_scene, script):
    record = script(scores("0.1", "0.74", "0.8")).play(make_scene())
    assert (record.success, record.turns_taken) == (True, 2)
    assert [attempt.score for attempt in record.attempts] == [0.1, 0.74, 0.8]
    assert [turn.turn for turn in record.turns] == [1, 2]


def test_three_turns_are_the_most_and_the_last_score_counts(make_scene, script):
    record = script(scores("0.4", "0.7", "0.7", "0.1")).play(make_scene())
    assert (record.success, record.turns_taken, record.status) == (False, 3, "complete")
    assert (record.initial_correctness, record.final_correctness) == (0.4, 0.1)


@pytest.mark.parametrize(
    ("threshold", "score", "success"),
    [
        (0.75, "0.75", True),
        (0.75, "0.7499", False),
        (0.7, "0.7", True),
        (1, "1", True),
        (0, "0", True),
    ],
)
def test_the_threshold_itself_is_a_success(make_scene, script, threshold, score, success):
    record = script({"judge": f"SCORE: {score}"}).play(make_scene(success_threshold=threshold))
    assert record.success is success
    assert (record.turns_taken == 0) is success


def test_no_turns_at_all_are_a_study_too(make_scene, script):
    record = script().play(make_scene(max_turns=0))
    assert (record.turns_taken, record.success, len(record.calls)) == (0, False, 2)


@pytest.mark.parametrize("threshold", [0.75, 0])
def test_unscored_is_not_zero_and_no_success(make_scene, script, threshold):
    played = script({"judge": "I would say well done."})
    record = played.play(make_scene(max_turns=1, success_threshold=threshold))
    assert [attempt.score for attempt in record.attempts] == [None, None]
    assert (record.initial_correctness, record.final_correctness) == (None, None)
    assert record.success is False
    assert played.keys[1:3] == ["0/judge/judge/1", "0/judge/judge/2"]
    assert record.attempts[0].score_rationale is None


def test_a_second_judgement_counts_when_the_first_has_no_score(make_scene, script):
    record = script({"judge/judge/1": "?", "judge/judge/2": "SCORE: 0.9\nOh."}).play(make_scene())
    assert (record.success, record.turns_taken) == (True, 0)


def test_an_empty_message_of_the_student_is_asked_for_again(make_scene, script):
    played = script({"student/student/1": " \n", "student/student/2": " Now. "})
    record = played.play(make_scene(max_turns=0))
    assert played.keys == ["0/student/student/1", "0/student/student/2", "0/judge/judge/1"]
    assert record.attempts[0].text == "Now."


def test_a_student_that_stays_silent_is_judged_on_nothing(make_scene, script):
    record = script({"student": ""}).play(make_scene(max_turns=0))
    assert (record.attempts[0].text, record.status) == ("", "complete")


def test_the_record_names_its_cell_of_the_grid(make_scene, script):
    record = script().play(make_scene(repeats=2, max_turns=0, **CODE))
    assert record.episode_id == "humaneval.Set_2Fdouble.help_avoidant.simple.r01"
    values = (record.benchmark, record.task_id, record.persona)
    assert values == ("humaneval", "Set/double", "help_avoidant")
    assert (record.condition, record.repeat) == ("simple", 1)


def test_every_call_is_logged_in_order(make_scene, script):
    played = script({"vote_final/motivation": "?"})
    record = played.play(make_scene())
    assert [call.key for call in record.calls] == played.keys
    assert [call.stage for call in record.calls] == [call.key.stage for call in played.calls]
    assert all(call.input_tokens > 0 and call.output_tokens > 0 for call in record.calls)


def verdicts(*outcomes):
    """A world's code runs, and what it was asked."""
    runs: list[CodeRun] = []

    def judge_code(run):
        runs.append(run)
        outcome = outcomes[len(runs) - 1]
        return CodeResult(
            None if outcome == "no_code" else "code", VerdictRecord(outcome=outcome, reason="r")
        )

    return runs, judge_code


def play_code(scene, script, *outcomes, score="0.9"):
    runs, judge_code = verdicts(*outcomes)
    replies = script({"judge": f"SCORE: {score}\nWhy."})
    return drive(episode(scene), scripted(replies, judge_code=judge_code)), runs


def test_a_program_needs_a_passing_verdict_as_well(make_scene, script):
    record, runs = play_code(make_scene(**CODE), script, "fail", "timeout", "pass")
    assert (record.success, record.turns_taken) == (True, 2)
    assert (record.initial_code_passed, record.code_passed) == (False, True)
    assert [run.turn for run in runs] == [0, 1, 2]
    assert runs[0].message == "Attempt 0."
    assert (runs[0].entry_point, runs[0].prompt.split("(")[0]) == ("double", "def double")
    assert "def check" in runs[0].test


def test_a_passing_program_needs_the_score_as_well(make_scene, script):
    record, _ = play_code(make_scene(max_turns=1, **CODE), script, "pass", "pass", score="0.7")
    assert (record.success, record.code_passed, record.turns_taken) == (False, True, 1)


def test_a_message_without_a_program_did_not_pass(make_scene, script):
    record, _ = play_code(make_scene(max_turns=0, **CODE), script, "no_code")
    assert (record.attempts[0].code, record.attempts[0].code_passed) == (None, False)
    assert record.attempts[0].verdict.outcome == "no_code"


def fails_at(key, replies):
    def reply(call):
        if str(call.key) == key:
            raise CallFailed("529 overloaded", why="Retries used up.", key=key)
        return replies(call)

    return reply


@pytest.mark.parametrize(
    ("key", "attempts", "turns", "taken"),
    [
        ("0/student/student/1", 0, 0, 0),
        ("0/judge/judge/1", 0, 0, 0),
        ("1/propose/motivation/1", 1, 0, 0),
        ("1/tie_vote/scaffolding/1", 1, 0, 0),
        ("1/student/student/1", 1, 1, 0),
        ("2/revise/metacognitive/1", 2, 1, 1),
    ],
)
def test_a_failed_call_leaves_what_was_reached(make_scene, script, key, attempts, turns, taken):
    replies = script(
        dict(zip((f"vote_final/{r}" for r in DEFAULT_ROLES), DEFAULT_ROLES, strict=True))
    )
    record = drive(episode(make_scene()), scripted(fails_at(key, replies)))
    assert (record.status, record.success) == ("failed", None)
    assert record.failure.model_dump() == {"key": key, "error": "529 overloaded Retries used up."}
    assert (len(record.attempts), len(record.turns), record.turns_taken) == (attempts, turns, taken)
    reached = 0.1 if attempts else None
    assert (record.initial_correctness, record.final_correctness) == (reached, reached)
    assert key not in [call.key for call in record.calls]


def test_other_errors_are_not_swallowed(make_scene):
    def broken(call):
        raise KeyError("bug")

    with pytest.raises(KeyError, match="bug"):
        drive(episode(make_scene()), scripted(broken))


# --- Panels --------------------------------------------------------------------------------------

S, M, V, C = DEFAULT_ROLES
PANELS: dict[str, Any] = {
    "three": {"roles": [S, M, V]},
    "six": {"roles": [S, M, V, C, "transfer", "precision"]},
    "copies": {"placebo": "copied", "roles": [V], "size": 3},
    "lot": {"placebo": "random", "size": 4},
}
COPIES = tuple(f"{V}-{i}" for i in (1, 2, 3))
OWN = {"title": "t", "objective": "o", "means": "m"}


def test_panels_stand_behind_the_condition_and_the_single_tutor_has_none(make_study):
    loaded = make_study(conditions=["baseline", "simple"], repeats=2, panels=PANELS)
    ids = [spec.episode_id.removeprefix("sciq.ice.help_avoidant.") for spec in loaded.grid()]
    assert ids == [
        *(f"baseline.r0{i}" for i in (1, 2)),
        *(f"simple.{panel}.r0{i}" for panel in PANELS for i in (1, 2)),
    ]


def test_a_study_of_one_panel_says_nothing_of_panels(make_study):
    loaded = make_study()
    assert "panels" not in loaded.study_table()
    assert "panels" not in loaded.settings().model_dump(mode="json")
    [spec] = loaded.grid()
    record = drive(loaded.episode(spec), scripted(lambda call: "?"))
    assert "panel" not in record.model_dump()  # type: ignore[attr-defined]


def test_calls_are_counted_for_each_panels_own_size(make_study):
    loaded = make_study(max_turns=1, panels=PANELS)
    sizes = [3, 6, 3, 4]
    # Student and judge twice; five stages and the tie round's two for each tutor.
    assert [loaded.call_range(spec).most for spec in loaded.grid()] == [4 + 7 * n for n in sizes]
    assert [len(panel.roles) for panel in loaded.settings().panels.values()] == sizes


def test_roles_are_drawn_by_the_seed_and_stay_drawn(make_study, tmp_path):
    loaded = make_study(panels=PANELS)
    drawn = loaded.study.panels["lot"].roles
    assert len(set(drawn)) == 4
    assert not {"baseline", "student", "judge"} & set(drawn)
    others = {make_study(panels=PANELS, seed=seed).study.panels["lot"].roles for seed in range(9)}
    assert len(others) > 1
    folder = tmp_path / "rec"
    folder.mkdir()
    write_study(loaded, folder)
    again = load_recorded_study(folder)
    assert isinstance(again, PanelStudy)
    assert (again.study.panels["lot"].roles, again.digest()) == (drawn, loaded.digest())


def test_the_order_of_a_run_has_every_panels_order_in_it(make_study):
    panels = {
        "a": {"roles": [S, M, V], "fallback_order": [V, S, M]},
        "b": {"roles": [C, V, M]},
        "copies": {**PANELS["copies"], "fallback_order": [COPIES[2], COPIES[0], COPIES[1]]},
    }
    settings = make_study(panels=panels).settings()
    assert settings.fallback_order == (C, V, S, M, COPIES[2], COPIES[0], COPIES[1])
    assert set(settings.roles) == {*DEFAULT_ROLES, *COPIES}


def test_copies_are_told_apart_in_records_and_by_no_prompt(make_study, script):
    class Bare(script):  # type: ignore[misc]
        def _usual(self, call):
            return re.sub(r"-[0-9]\b", "", super()._usual(call))

    loaded = make_study(max_turns=1, panels={"copies": PANELS["copies"]})
    [spec] = loaded.grid()
    played = Bare({"vote": "A"})
    record: Any = drive(loaded.episode(spec), scripted(played))
    assert record.panel == "copies"
    [turn] = record.turns
    assert tuple(turn.proposals_final) == COPIES
    assert {ballot.voter for ballot in turn.ballots_final} == set(COPIES)
    assert turn.decision.winner in COPIES
    drafts = [call.request for call in played.calls if call.key.stage == "propose"]
    assert len(drafts) == 3
    assert len(set(drafts)) == 1  # nothing tells one copy from another before labels are drawn
    objective = loaded.catalog.roles[V].objective
    assert all(objective in request.system for request in drafts)
    for call in played.calls:
        assert not re.search(rf"{V}-[0-9]", call.request.system + call.request.user)


@pytest.mark.parametrize(
    ("panel", "what", "why", "hint"),
    [
        ({"roles": [S, M, "motivaton"]}, "has no 'motivaton'", "'motivation'", "[catalog.roles"),
        ({"roles": [S, M]}, "names 2 roles", "3 to 8", "more"),
        ({"roles": [*DEFAULT_ROLES, *"vwxyz"]}, "names 9 roles", "3 to 8", "fewer"),
        ({"roles": [S, S, S]}, "'scaffolding' 3 times", "placebo", 'placebo = "copied"'),
        ({"roles": [S, M, V], "size": 3}, "size is 3", "placebo", "Leave size out"),
        ({"roles": [S, M, V], "fallback_order": [S, M]}, "order is", "every member", "Name each"),
        ({"roles": [S, M, V], "fallback_order": [S, M, C]}, "order is", "every member", "each"),
        ({"placebo": "copied", "roles": [S]}, "has no size", "as its size says", "3 to 8"),
        ({"placebo": "copied", "roles": [S], "size": 9}, "size is 9", "3 to 8", "fewer"),
        ({"placebo": "copied", "roles": [S, M], "size": 3}, "2 roles", "one role", "one role"),
        ({"placebo": "copied", "size": 3}, "0 roles", "one role", "one role"),
        ({"placebo": "random", "size": 4, "roles": [S, M, V]}, "3 roles", "is 4", "more roles"),
        ({"placebo": "random", "size": 3, "fallback_order": [S]}, "order", "Nobody", "Leave"),
        ({"roles": [S, M, "judge"]}, "'judge'", "", "start from"),
    ],
)
def test_a_panel_that_cannot_sit_is_refused_in_three_parts(make_study, panel, what, why, hint):
    with pytest.raises(StudyError) as caught:
        make_study(panels={"odd": panel})
    assert "study.toml" in caught.value.what
    assert what in caught.value.what
    assert why in caught.value.why
    assert hint in caught.value.hint


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"roles": [S, M, V]}, "roles stands beside [panels]"),
        ({"fallback_order": [S, M, V, C]}, "fallback_order stands beside [panels]"),
        ({"conditions": ["baseline"]}, "no condition has a panel"),
        ({"catalog": {"roles": {COPIES[0]: OWN}}}, "both called 'motivation-1'"),
        ({"panels": {"a": {"roles": [S, M, V]}, "b": {"roles": [M, S, C]}}}, "puts scaffolding"),
        ({"panels": {"big": {"placebo": "random", "size": 8}}, "baseline_role": S}, "cannot be"),
    ],
)
def test_settings_that_contradict_panels_are_refused_in_three_parts(make_study, settings, said):
    with pytest.raises(StudyError) as caught:
        make_study(**{"panels": PANELS, **settings})
    assert said in caught.value.what
    assert caught.value.why
    assert caught.value.hint


# --- What a study is said to use is what its prompts are made of, no more and no less -------------

BOTH = {"sciq": {"limit": 1}, "humaneval": {"limit": 1}}
STUDIES = {
    "one panel on questions": {},
    "one panel on programs": {"benchmarks": {"humaneval": {"limit": 1}}},
    "the single tutor": {"conditions": ["baseline"]},
    "nobody": {"max_turns": 0, "benchmarks": BOTH},
    "no tie round": {"conditions": ["ranked"], "tie_policy": "no_tie_round"},
    "own criterion": {"vote_criterion": "Which?"},
    "diagnostic ballots": {"conditions": ["rich"], "vote_formats": ["approval", "simple"]},
    "everything": {
        "conditions": ["baseline", "simple", "ranked", "cumulative", "approval", "rich", "score"],
        "benchmarks": BOTH,
    },
}


@pytest.fixture
def filled(monkeypatch):
    """The templates that a study fills; by default no reply can be read and every vote ties."""

    def of(loaded, reply="?"):
        names: set[str] = set()

        def noting(filled):
            def noted(self, template, **values):
                names.add(template)
                return filled(self, template, **values)

            return noted

        with monkeypatch.context() as patch:
            for way in ("fill", "part"):
                patch.setattr(PanelCatalog, way, noting(getattr(PanelCatalog, way)))
            for spec in loaded.grid():
                drive(loaded.episode(spec), scripted(lambda call: reply))
        return names

    return of


@pytest.mark.parametrize("settings", STUDIES.values(), ids=STUDIES)
def test_templates_that_a_study_uses_are_those_that_its_episodes_fill(settings, make_study, filled):
    loaded = make_study(**settings)
    used = loaded.used()["prompts"]
    criterion = set() if loaded.study.vote_criterion else {"vote_criterion"}
    notes = {"note_strength", "note_weakness"} if "critique" in used else set()
    assert used == filled(loaded) | criterion | notes


def test_everything_that_ships_is_used_by_some_study(make_study):
    loaded = make_study(**STUDIES["everything"])
    assert loaded.used()["prompts"] == set(load_panel_catalog().prompts)


def test_a_branch_uses_the_ballots_the_tie_round_and_the_roles_of_its_alternative(make_study):
    loaded = make_study(conditions=["simple"], tie_policy="no_tie_round")
    roles = ("scaffolding", "motivation", "baseline")
    branch = Branch(
        parent="p", parent_study="s", parent_recording="r", rule="ranked", tie_policy="tie_round",
        roles=roles,
    )  # fmt: skip
    study = loaded.study.model_copy(update={"branch": branch})
    more = replace(loaded, study=study).used()
    added = {part: set(names) - set(loaded.used()[part]) for part, names in more.items()}
    assert added == {
        "prompts": {"ballot_ranked", "critique_tied", "vote_tied"},
        "roles": {"baseline"},
        "personas": set(),
    }


def test_the_roles_and_personas_used_are_those_that_are_told_of(make_study):
    used = make_study(conditions=["baseline"]).used()
    assert (used["roles"], used["personas"]) == ({"baseline"}, {"help_avoidant"})
    panel = make_study().used()
    assert "baseline" not in panel["roles"]


def test_a_note_that_can_be_read_is_shown_in_the_words_for_it(make_study, filled):
    told = filled(make_study(), "A:\nSTRENGTH: s\nWEAKNESS: w")
    assert told >= {"note_strength", "note_weakness"}


def test_the_first_form_covers_what_shipped_then():
    """A template that ships later is in no digest of the first form."""
    assert len(FIRST_FORM_PROMPTS) == len(set(FIRST_FORM_PROMPTS)) == 32
    assert set(FIRST_FORM_PROMPTS) <= set(load_panel_catalog().prompts)
