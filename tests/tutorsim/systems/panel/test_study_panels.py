"""Studies that compare panels: the grid, the draw, what tutors see, and what is refused."""

import re
from collections.abc import Callable
from typing import Any

import pytest

from tutorsim.errors import StudyError
from tutorsim.kernel.flow import drive, scripted
from tutorsim.kernel.load import load_recorded_study, write_study
from tutorsim.systems.panel.study import PanelStudy
from tutorsim.vocabularies import DEFAULT_ROLES

Make = Callable[..., PanelStudy]
S, M, V, C = DEFAULT_ROLES
PANELS: dict[str, Any] = {
    "three": {"roles": [S, M, V]},
    "six": {"roles": [S, M, V, C, "transfer", "precision"]},
    "copies": {"placebo": "copied", "roles": [V], "size": 3},
    "lot": {"placebo": "random", "size": 4},
}
COPIES = tuple(f"{V}-{i}" for i in (1, 2, 3))
OWN = {"title": "t", "objective": "o", "means": "m"}


def test_panels_stand_behind_the_condition_and_the_single_tutor_has_none(make_study: Make) -> None:
    loaded = make_study(conditions=["baseline", "simple"], repeats=2, panels=PANELS)
    ids = [spec.episode_id.removeprefix("sciq.ice.help_avoidant.") for spec in loaded.grid()]
    assert ids == [
        *(f"baseline.r0{i}" for i in (1, 2)),
        *(f"simple.{panel}.r0{i}" for panel in PANELS for i in (1, 2)),
    ]


def test_a_study_of_one_panel_says_nothing_of_panels(make_study: Make) -> None:
    loaded = make_study()
    assert "panels" not in loaded.study_table()
    assert "panels" not in loaded.settings().model_dump(mode="json")
    [spec] = loaded.grid()
    record = drive(loaded.episode(spec), scripted(lambda call: "?"))
    assert "panel" not in record.model_dump()  # type: ignore[attr-defined]


def test_calls_are_counted_for_each_panels_own_size(make_study: Make) -> None:
    loaded = make_study(max_turns=1, panels=PANELS)
    sizes = [3, 6, 3, 4]
    # Student and judge twice; five stages and the tie round's two for each tutor.
    assert [loaded.call_range(spec).most for spec in loaded.grid()] == [4 + 7 * n for n in sizes]
    assert [len(panel.roles) for panel in loaded.settings().panels.values()] == sizes


def test_roles_are_drawn_by_the_seed_and_stay_drawn(make_study: Make, tmp_path: Any) -> None:
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


def test_the_order_of_a_run_has_every_panels_order_in_it(make_study: Make) -> None:
    panels = {
        "a": {"roles": [S, M, V], "fallback_order": [V, S, M]},
        "b": {"roles": [C, V, M]},
        "copies": {**PANELS["copies"], "fallback_order": [COPIES[2], COPIES[0], COPIES[1]]},
    }
    settings = make_study(panels=panels).settings()
    assert settings.fallback_order == (C, V, S, M, COPIES[2], COPIES[0], COPIES[1])
    assert set(settings.roles) == {*DEFAULT_ROLES, *COPIES}


def test_copies_are_told_apart_in_records_and_by_no_prompt(make_study: Make, script: Any) -> None:
    class Bare(script):  # type: ignore[misc]
        def _usual(self, call: Any) -> str:
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
def test_a_panel_that_cannot_sit_is_refused_in_three_parts(
    make_study: Make, panel: dict[str, Any], what: str, why: str, hint: str
) -> None:
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
def test_settings_that_contradict_panels_are_refused_in_three_parts(
    make_study: Make, settings: dict[str, Any], said: str
) -> None:
    with pytest.raises(StudyError) as caught:
        make_study(**{"panels": PANELS, **settings})
    assert said in caught.value.what
    assert caught.value.why
    assert caught.value.hint
