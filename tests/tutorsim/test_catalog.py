"""Roles, personas and wordings."""

import string

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tutorsim.catalog import (
    WORDINGS_FILE,
    BaseCatalog,
    read_wordings,
    templates_of,
    with_overrides,
    wordings_text,
)
from tutorsim.errors import CatalogError, RecordingError
from tutorsim.systems.panel.settings_and_members_of_compared_panels import load_panel_catalog
from tutorsim.vocabularies import DEFAULT_ROLES, MAX_ROLES, PROTOCOLS

DIMENSIONS = (
    "prior_knowledge", "confidence", "persistence", "frustration_sensitivity", "help_seeking",
)  # fmt: skip
TRAITS = {
    "low_confidence_novice": (0.2, 0.2, 0.5, 0.7, 0.8),
    "overconfident_misconception": (0.4, 0.9, 0.6, 0.3, 0.2),
    "high_persistence_reflective": (0.5, 0.6, 0.9, 0.2, 0.5),
    "easily_frustrated_beginner": (0.2, 0.3, 0.3, 0.9, 0.7),
    "help_avoidant": (0.4, 0.3, 0.6, 0.7, 0.1),
    "help_avoidant_table": (0.5, 0.7, 0.7, 0.4, 0.1),
    "hint_seeking_dependent": (0.3, 0.4, 0.4, 0.5, 1.0),
}


def test_personas_have_the_published_traits():
    personas = load_panel_catalog().personas
    assert {
        name: tuple(getattr(persona, field) for field in DIMENSIONS)
        for name, persona in personas.items()
    } == TRAITS


def test_both_readings_of_the_help_avoidant_learner_act_alike():
    personas = load_panel_catalog().personas
    assert personas["help_avoidant"].character == personas["help_avoidant_table"].character


def test_the_four_roles_come_first_and_eight_and_the_single_tutor_are_there():
    roles = tuple(load_panel_catalog().roles)
    assert roles[:4] == DEFAULT_ROLES
    assert (len(set(roles)), roles[-1]) == (MAX_ROLES + 1, "baseline")


@pytest.mark.parametrize(
    ("template", "rules"),
    [
        ("student_system", ["eighth grade", "unsure", "Never grade", "an AI"]),
        ("student_science", ["1 to 3 sentences"]),
        ("student_code", ["1 to 3 sentences", "```python", "required"]),
        ("judge_system", ["SCORE:", "1.0 fully", "0.7 ess", "0.4 part", "0.1 mostly", "0.0 no"]),
        ("judge_code", ["own words", "Do not grade the letters of the code"]),
        ("propose", ["2 to 4", "own specialisation", "PROPOSAL:", "RATIONALE:", "CONFIDENCE:"]),
        ("propose_baseline", ["2 to 4 sentences", "PROPOSAL:", "RATIONALE:"]),
        ("critique", ["random", "STRENGTH:", "WEAKNESS:", "one sentence"]),
        ("revise", ["objective stays first", "at most one idea", "never another tutor's whole"]),
        ("vote_system", ["impartial assessor", "hidden", "do not guess"]),
        ("vote", ["random order", "Criterion: $criterion", "one line"]),
        ("ballot_cumulative", ["exactly $budget", "non-negative whole number"]),
        ("ballot_approval", ["`none`"]),
        ("ballot_ranked", ["every label once"]),
    ],
)
def test_a_wording_keeps_its_rules(template, rules):
    text = load_panel_catalog().prompts[template]
    assert [rule for rule in rules if rule not in text] == []


def test_the_single_tutor_is_asked_for_no_confidence():
    assert "CONFIDENCE" not in load_panel_catalog().prompts["propose_baseline"]


def test_there_is_a_ballot_form_for_every_protocol():
    assert {f"ballot_{protocol}" for protocol in PROTOCOLS} <= set(load_panel_catalog().prompts)


@pytest.mark.parametrize("name", sorted(load_panel_catalog().prompts))
def test_every_template_can_be_filled_and_nothing_in_it_is_expanded_twice(name):
    catalog = load_panel_catalog()
    fields = string.Template(catalog.prompts[name]).get_identifiers()
    filled = catalog.fill(name, **dict.fromkeys(fields, "$criterion ${x} $$"))
    assert filled.count("$criterion ${x} $$") == sum(
        len(match) > 0
        for match in string.Template.pattern.findall(catalog.prompts[name])
        if match[1] or match[2]
    )


def test_filling_without_a_value_is_an_error():
    with pytest.raises(KeyError):
        load_panel_catalog().fill("vote")


PIECES = st.sampled_from(
    ["$$", "$name", "${name}", "$Name_2", "$é", "$", "{", "%", "%(name)s", "name", "\n", " "]
)


@given(st.lists(PIECES, max_size=8).map("".join))
def test_a_template_is_filled_as_the_standard_library_fills_it(text):
    catalog = load_panel_catalog().model_copy(update={"prompts": {"own": text}})
    values = {"name": " $name ", "Name_2": 3}
    try:
        expected = string.Template(text).substitute(values).strip()
    except (KeyError, ValueError):
        with pytest.raises((KeyError, ValueError)):
            catalog.fill("own", **values)
    else:
        assert catalog.fill("own", **values) == expected


def test_own_entries_are_added_and_shipped_ones_replaced():
    entry = {"title": "t", "objective": "o", "means": "m"}
    catalog = with_overrides(
        load_panel_catalog(),
        {"roles": {"own": entry, "motivation": entry}, "prompts": {"vote_reminder": "Again."}},
        where="f",
    )
    assert set(catalog.roles) == {*load_panel_catalog().roles, "own"}
    assert catalog.roles["motivation"] == catalog.roles["own"]
    assert catalog.fill("vote_reminder") == "Again."
    assert load_panel_catalog().roles["motivation"].title == "motivation tutor"


def test_an_unusable_template_names_what_it_can_have():
    with pytest.raises(CatalogError, match=r"f: catalog\.prompts\.vote") as caught:
        with_overrides(load_panel_catalog(), {"prompts": {"vote": "$reference $a"}}, where="f")
    assert caught.value.why.endswith("a, reference.")
    assert "$criterion" in caught.value.hint


def test_a_digest_does_not_depend_on_the_order_of_entries():
    catalog = load_panel_catalog()
    reverse = catalog.model_copy(update={"prompts": dict(reversed(list(catalog.prompts.items())))})
    assert reverse.digest() == catalog.digest()
    changed = catalog.model_copy(update={"prompts": {**catalog.prompts, "vote": "x"}})
    assert changed.digest() != catalog.digest()


@pytest.mark.parametrize(
    ("name", "text", "why", "hint"),
    [
        ("vote", "Vote: $ballot", "It lacks $proposals", "$proposals"),
        ("judge_science", "Grade.", "It lacks $attempt", "$attempt"),
        ("vote_reminder", "costs 5 $", "a $ that begins no placeholder", "no placeholder."),
        ("vote_reminder", "$x", "cannot have: x", "no placeholder."),
        ("vote", 3, "It is 3, not a text", "$ballot"),
    ],
)
def test_a_template_that_asks_about_nothing_is_refused_in_whole_sentences(name, text, why, hint):
    with pytest.raises(CatalogError) as caught:
        with_overrides(load_panel_catalog(), {"prompts": {name: text}}, where="f")
    assert why in caught.value.why
    assert hint in caught.value.hint


def test_a_part_of_a_prompt_keeps_the_white_space_at_its_ends():
    catalog = BaseCatalog(prompts={"said": "- $text", "plain": " 100 % "})
    assert catalog.part("said", text="") == "- "
    assert catalog.fill("said", text="") == "-"
    assert catalog.part("plain") == " 100 % "
    assert catalog.fill("plain") == "100 %"


def test_a_heading_says_in_which_parts_of_a_study_its_templates_are_used():
    opening = templates_of("tutorsim.systems.oversight", {"opening"})
    assert {"open", "thesis_form", "item"} <= opening
    assert "argue" not in opening
    assert "thesis_form" in templates_of("tutorsim.systems.oversight", {"argument"})
    assert templates_of("tutorsim.systems.oversight", ()) == {"item", "no_text", "scale"}


# --- Wordings kept with a recording --------------------------------------------------------------

TEXTS = st.text(st.characters(codec="utf-8"), max_size=40)


@given(TEXTS, TEXTS, st.floats(0, 1))
@example("a\r\nb\n", '"""\n\\', 0.5)
@example("\nfirst line empty\n\x00\x1b\u2028\ufeff", "a.b c", 1.0)
def test_any_text_comes_back_as_it_was(tmp_path_factory, text, name, value):
    wordings = {"prompts": {name: text}, "personas": {"p": {"character": text, "trust": value}}}
    folder = tmp_path_factory.mktemp("wordings")
    (folder / WORDINGS_FILE).write_bytes(wordings_text(wordings).encode())
    assert read_wordings(folder) == wordings


def test_the_text_does_not_depend_on_the_order_of_entries():
    prompts = load_panel_catalog().prompts
    turned = {"prompts": dict(reversed(prompts.items()))}
    assert wordings_text(turned) == wordings_text({"prompts": prompts})


def test_a_prompt_of_several_lines_can_be_read_as_such():
    text = wordings_text(load_panel_catalog().wordings())
    assert "Use exactly this form:\nPROPOSAL: <the reply to the student>\n" in text


def test_a_folder_without_the_file_has_no_wordings(tmp_path):
    assert read_wordings(tmp_path) is None


@pytest.mark.parametrize("data", [b"\xff", b"prompts = [", b"prompts = 3\n"])
def test_a_damaged_file_is_refused(tmp_path, data):
    (tmp_path / WORDINGS_FILE).write_bytes(data)
    with pytest.raises(RecordingError, match="does not hold the wordings") as caught:
        read_wordings(tmp_path)
    assert caught.value.why
    assert caught.value.hint
