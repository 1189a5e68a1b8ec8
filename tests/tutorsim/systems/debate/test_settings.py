"""Settings of a debate, and how variants override them."""

import pytest
from pydantic import ValidationError

from tutorsim.systems.debate.settings import DebateSettings, DebateTable

ALL = ("baseline", "simple", "approval", "majority", "full")


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
        ({"vote_from": 6}, "vote_from = 6 lies behind max_turns = 5"),
        ({"visible_turns": -1}, "visible_turns"),
        ({"personas": [{"role": "a", "description": "b"}]}, "personas names 1"),
        ({"challenge": ["facts", "facts"]}, "twice"),
        ({"colour": "red"}, "colour"),
    ],
)
def test_a_wrong_setting_is_refused_by_name(settings, words):
    with pytest.raises(ValidationError, match=words):
        DebateSettings(**settings)


@pytest.mark.parametrize(
    ("variants", "words"),
    [
        ({"ci": {"paradigm": "collective"}}, "ci: condition 'majority' needs agreement"),
        ({"x": {"conditions": ["ranked"]}}, r"x.conditions = \['ranked'\] leaves none"),
        ({"x": {"conditions": ["most"]}}, "no list of conditions"),
        ({"x": {"agents": 11}}, "variants.x: agents = 11"),
        ({"x": {"debate_rounds": 3}}, "variants.x: debate_rounds = 3"),
    ],
)
def test_a_wrong_variant_is_refused_by_name(variants, words):
    with pytest.raises(ValueError, match=words):
        resolved(variants=variants)
