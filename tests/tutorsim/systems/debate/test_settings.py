"""Settings of a debate, and how variants override them."""

import json

import pytest
from pydantic import ValidationError

from tutorsim.kernel.load_and_check_study_file import read_study
from tutorsim.kernel.study_file_and_episode_spec import shipped_studies
from tutorsim.systems.debate.episode_flow_and_study import DebateStudyFile
from tutorsim.systems.debate.settings import DebateSettings, DebateTable, idle_settings

ALL = (*("baseline", "simple", "approval", "cumulative", "majority", "unanimity", "full"),)


def resolved(conditions=ALL, **table):
    return {
        variant.name: variant for variant in DebateTable.model_validate(table).resolved(conditions)
    }


def test_without_variants_there_is_the_default_one():
    [variant] = resolved().values()
    assert (variant.name, variant.conditions) == ("default", ALL)
    assert variant.settings == DebateSettings()


def test_a_variant_overrides_settings_and_narrows_conditions():
    variants = resolved(
        max_turns=4,
        variants={
            "a": {"drafting": "first", "max_turns": 3},
            "ci": {"paradigm": "collective", "conditions": ["approval", "simple"]},
        },
    )
    assert (variants["a"].settings.max_turns, variants["a"].settings.drafting) == (3, "first")
    assert variants["ci"].settings.max_turns == 4
    assert variants["ci"].conditions == ("simple", "approval")


def test_given_personas_are_one_for_each_agent_and_their_roles_differ():
    def given(*roles):
        return [{"role": role, "description": "d"} for role in roles]

    settings = DebateSettings.model_validate({"personas": given("Doctor", "Nurse", "Patient")})
    assert [one.role for one in settings.given_personas] == ["Doctor", "Nurse", "Patient"]
    assert DebateSettings().given_personas == ()
    with pytest.raises(ValidationError, match="personas names the role 'nurse' twice"):
        DebateSettings.model_validate({"personas": given("Nurse", "Doctor", "nurse")})


def test_rounds_are_taken_over_only_with_their_paradigm():
    variants = resolved(paradigm="debate", debate_rounds=3, variants={"m": {"paradigm": "memory"}})
    assert variants["m"].settings.debate_rounds is None
    same = resolved(paradigm="debate", debate_rounds=3, variants={"d": {}})
    assert same["d"].settings.rounds == 3


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"agents": 0}, "agents"),
        ({"agents": 11}, "agents"),
        ({"debate_rounds": 3}, "debate_rounds = 3 needs paradigm"),
        ({"visible_turns": -1}, "visible_turns"),
        ({"personas": [{"role": "a", "description": "b"}]}, "personas names 1"),
        ({"challenge": ["facts", "facts"]}, "twice"),
        ({"colour": "red"}, "colour"),
    ],
)
def test_a_wrong_setting_is_refused_by_name(settings, words):
    with pytest.raises(ValidationError, match=words):
        DebateSettings(**settings)


def test_a_debate_that_holds_no_vote_may_be_shorter_than_the_first_vote():
    [variant] = resolved(("unanimity", "baseline"), max_turns=2).values()
    assert variant.settings.max_turns == 2


COLLECTIVE = {"paradigm": "collective"}
IDLE = (
    ("collective_shows", "solutions", {}, ("full",), COLLECTIVE, ("full",)),
    ("challenge", ["wrong"], {}, ("baseline", "full"), {}, ("unanimity",)),
    ("drafting", "first", COLLECTIVE, ("simple",), {}, ("simple",)),
    ("generator", "free", COLLECTIVE, ("simple",), {}, ("simple",)),
    ("visible_turns", 0, COLLECTIVE, ("simple",), {}, ("simple",)),
    ("agreement_reading", "lenient", COLLECTIVE, ("simple",), {}, ("simple",)),
    ("undecided", "none", {}, ("unanimity",), {}, ("simple",)),
    ("merge_identical", True, {}, ("unanimity",), {}, ("simple",)),
    ("confidence", True, {}, ("unanimity",), {}, ("full",)),
    ("blinding", "listed", {}, ("unanimity",), {}, ("simple",)),
    ("majority", "at_least_half", {}, ("unanimity",), {}, ("majority",)),
    ("cumulative_budget", 9, {}, ("simple",), {}, ("cumulative",)),
    ("vote_from", 2, {}, ("unanimity",), {}, ("self_refine",)),
    ("agents", 5, {}, ("baseline",), {}, ("self_refine",)),
    ("paradigm", "relay", {}, ("baseline",), {}, ("full",)),
    ("visible_turns", 0, {}, ("baseline",), {}, ("full",)),
)
"""Setting, value; where it has no effect; and where it has one."""


@pytest.mark.parametrize(("name", "value", "idle", "there", "used", "here"), IDLE)
def test_a_setting_without_effect_is_said_with_what_it_needs(name, value, idle, there, used, here):
    variants = {"idle": {**idle, "conditions": there}}
    [said] = idle_settings(list(resolved(variants=variants, **{name: value}).values()))
    assert said.startswith(
        f"{name} = {json.dumps(value)} has no effect in variant 'idle': it needs "
    )
    variants["used"] = {**used, "conditions": here}
    both = resolved((*there, *here), variants=variants, **{name: value})
    assert list(idle_settings(list(both.values()))) == []


@pytest.mark.parametrize("name", [name for name in shipped_studies() if name.startswith("debate-")])
def test_no_shipped_study_has_a_setting_without_effect(name):
    [*variants] = DebateStudyFile.model_validate(read_study(shipped_studies()[name], {})).variants
    assert list(idle_settings(variants)) == []


@pytest.mark.parametrize(
    ("variants", "words"),
    [
        ({"ci": {"paradigm": "collective"}}, "ci: condition 'majority' needs agreement"),
        ({"x": {"conditions": ["ranked"]}}, r"x.conditions = \['ranked'\] leaves none"),
        ({"x": {"conditions": ["most"]}}, "no list of conditions"),
        ({"x": {"agents": 11}}, "variants.x: agents = 11"),
        ({"x": {"vote_from": 6}}, "variants.x: vote_from = 6 lies behind max_turns = 5"),
        ({"x": {"max_turns": 2, "conditions": ["full"]}}, "vote_from = 3 lies behind max_turns"),
        ({"x": {"debate_rounds": 3}}, "variants.x: debate_rounds = 3"),
    ],
)
def test_a_wrong_variant_is_refused_by_name(variants, words):
    with pytest.raises(ValueError, match=words):
        resolved(variants=variants)
