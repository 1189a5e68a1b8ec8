"""Study files and their grid."""

import json
import re
import tomllib
from pathlib import Path

import pytest
import tomli_w

from tutorsim.errors import CatalogError, FolderError, StudyError, TaskFileError, UsageError
from tutorsim.kernel.load_and_check_study_file import load_study, write_study
from tutorsim.kernel.study_file_and_episode_spec import shipped_studies
from tutorsim.systems.panel.settings_and_members_of_compared_panels import load_panel_catalog
from tutorsim.vocabularies import DEFAULT_ROLES, PUBLISHED_CONDITIONS

PERSONAS = (
    "low_confidence_novice", "overconfident_misconception", "high_persistence_reflective",
    "easily_frustrated_beginner", "help_avoidant", "hint_seeking_dependent",
)  # fmt: skip
ENTRY = {"title": "t", "objective": "o", "means": "m"}


def test_the_published_grid_ships_and_has_1200_episodes():
    loaded = load_study(shipped_studies()["published"])
    specs = list(loaded.grid())
    assert len(specs) == 1200 == len({spec.episode_id for spec in specs})
    study = loaded.study
    assert (study.conditions, study.personas) == (PUBLISHED_CONDITIONS, PERSONAS)
    assert study.roles == DEFAULT_ROLES
    assert (study.max_turns, study.success_threshold, study.cumulative_budget) == (3, 0.75, 25)
    assert (study.blinding, study.order) == ("per_reader", DEFAULT_ROLES)
    assert (study.models.tutor, study.models.judge) == ("claude-sonnet-4-5",) * 2
    assert study.models.student == "claude-haiku-4-5"


def test_defaults_are_the_published_settings():
    published = load_study(shipped_studies()["published"]).settings()
    given = {"name", "seed"}
    demo = load_study(shipped_studies()["demo"]).settings()
    assert demo.model_dump(exclude=given) == published.model_dump(exclude=given)


@pytest.mark.parametrize("name", sorted(shipped_studies()))
def test_a_shipped_study_is_named_as_its_file_and_found_by_that_name(name, tmp_path, monkeypatch):
    """Also where a folder has that name, such as the one that a run of it writes."""
    monkeypatch.chdir(tmp_path)
    assert load_study(Path(name)).study.name == name
    (tmp_path / name).mkdir()
    assert load_study(Path(name)).study.name == name


def test_the_grid_runs_from_tasks_to_repeats(make_study):
    loaded = make_study(
        conditions=["ranked", "baseline"],
        personas=["hint_seeking_dependent", "help_avoidant"],
        repeats=2,
        benchmarks={
            "humaneval": {"tasks": "programs.jsonl", "limit": 1},
            "sciq": {"tasks": "science.jsonl"},
        },
    )
    ids = [spec.episode_id for spec in loaded.grid()]
    assert ids[:5] == [
        "humaneval.Set_2Fdouble.hint_seeking_dependent.ranked.r01",
        "humaneval.Set_2Fdouble.hint_seeking_dependent.ranked.r02",
        "humaneval.Set_2Fdouble.hint_seeking_dependent.baseline.r01",
        "humaneval.Set_2Fdouble.hint_seeking_dependent.baseline.r02",
        "humaneval.Set_2Fdouble.help_avoidant.ranked.r01",
    ]
    assert ids[8].startswith("sciq.ice.")
    assert ids[16].startswith("sciq.moon.")
    assert len(ids) == len(set(ids)) == 3 * 2 * 2 * 2
    assert all(re.fullmatch(r"[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+){4}", name) for name in ids)


def test_an_id_has_no_repeat_where_there_is_one_only(make_study):
    [spec] = make_study().grid()
    assert (spec.episode_id, spec.repeat) == ("sciq.ice.help_avoidant.simple", 1)


def error_of(make_study, **settings):
    with pytest.raises(UsageError) as caught:
        make_study(**settings)
    assert caught.value.exit_code == 2
    assert "study.toml" in caught.value.what
    assert caught.value.hint
    return caught.value


@pytest.mark.parametrize(
    ("settings", "field", "said"),
    [
        ({"condition": ["simple"]}, "'condition'", "Did you mean 'conditions'?"),
        ({"sucess_threshold": 1}, "'sucess_threshold'", "Did you mean 'success_threshold'?"),
        ({"zzz": 1}, "'zzz'", "Known are"),
        ({"benchmarks": {"sciQ": {}}}, "[benchmarks]", "Did you mean 'sciq'?"),
        ({"benchmarks": {"sciq": {"task": "x"}}}, "[benchmarks.sciq]", "Did you mean 'tasks'?"),
        ({"models": {"tutors": "x"}}, "[models]", "Did you mean 'tutor'?"),
        ({"personas": ["help_avoidand"]}, "personas", "Did you mean 'help_avoidant'?"),
        ({"roles": ["scafolding", *DEFAULT_ROLES[1:]]}, "roles", "Did you mean 'scaffolding'?"),
        ({"baseline_role": "basline"}, "baseline_role", "Did you mean 'baseline'?"),
    ],
)
def test_an_unknown_name_is_refused_with_the_nearest_known_one(make_study, settings, field, said):
    error = error_of(make_study, **settings)
    assert isinstance(error, StudyError)
    assert field in error.what
    assert said in str(error)


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"roles": ["scaffolding"]}, "roles names 1; a panel has 3 to 8 roles"),
        ({"roles": [f"r{n}" for n in range(9)]}, "roles names 9; a panel has 3 to 8 roles"),
        ({"roles": []}, "roles names 0"),
        ({"roles": [*DEFAULT_ROLES[:3], "judge"]}, "'judge', which call keys need"),
        ({"roles": [*DEFAULT_ROLES[:3], "scaffolding"]}, "roles names 'scaffolding' twice"),
        ({"conditions": []}, "conditions is empty, so the study has no episode"),
        ({"personas": []}, "personas is empty"),
        ({"benchmarks": {}}, "benchmarks is empty"),
        ({"conditions": ["simple", "simple"]}, "conditions names 'simple' twice"),
        ({"personas": ["help_avoidant"] * 2}, "personas names 'help_avoidant' twice"),
        ({"fallback_order": ["scaffolding"]}, "must name every role"),
        ({"fallback_order": [*DEFAULT_ROLES[:3], "tutor"]}, "must name every role"),
        ({"fallback_order": [*DEFAULT_ROLES[:3], "scaffolding"]}, "'scaffolding' twice"),
        ({"conditions": ["borda"]}, "conditions.0"),
        ({"conditions": "simple"}, "conditions"),
        ({"name": "a b"}, "name"),
        ({"name": "../x"}, "name"),
        ({"name": ""}, "name"),
        ({"seed": "7"}, "seed"),
        ({"seed": 7.0}, "seed"),
        ({"max_turns": True}, "max_turns"),
        ({"max_turns": -1}, "max_turns"),
        ({"repeats": 0}, "repeats"),
        ({"repeats": 100}, "repeats"),
        ({"success_threshold": 75}, "success_threshold"),
        ({"success_threshold": "0.75"}, "success_threshold"),
        ({"success_threshold": float("nan")}, "success_threshold"),
        ({"blinding": "none"}, "blinding"),
        ({"cumulative_budget": 0}, "cumulative_budget"),
        ({"benchmarks": {"sciq": {"limit": 0}}}, "benchmarks.sciq.limit"),
        ({"benchmarks": {"sciq": 3}}, "benchmarks.sciq"),
        ({"benchmarks": 3}, "benchmarks"),
        ({"models": "x"}, "models"),
        ({"models": {"tutor": ""}}, "models.tutor"),
        ({"models": {"max_tokens": 0}}, "models.max_tokens"),
        ({"vote_criterion": 5}, "vote_criterion"),
    ],
)
def test_a_wrong_value_is_refused_by_field(make_study, settings, said):
    error = error_of(make_study, **settings)
    assert isinstance(error, StudyError)
    assert said in error.what


@pytest.mark.parametrize(
    ("catalog", "said"),
    [
        ({"role": {}}, "no part 'role'"),
        ({"roles": 3}, "catalog.roles is 3, not a table"),
        ({"roles": {"x": 3}}, "catalog.roles.x"),
        ({"roles": {"x": {"title": "t"}}}, "catalog.roles.x.objective"),
        ({"personas": {"x": {"confidence": 2}}}, "catalog.personas.x"),
        ({"prompts": {"votes": "x"}}, "no prompt template 'votes'"),
        ({"prompts": {"vote": "$reference"}}, "catalog.prompts.vote"),
        ({"prompts": {"vote": "a $ b"}}, "catalog.prompts.vote"),
        ({"prompts": {"vote": 3}}, "catalog.prompts.vote"),
    ],
)
def test_a_wrong_catalog_entry_is_refused_by_name(make_study, catalog, said):
    error = error_of(make_study, catalog=catalog)
    assert isinstance(error, CatalogError)
    assert said in error.what


def test_a_missing_study_names_the_shipped_ones(tmp_path):
    with pytest.raises(StudyError, match="cannot be read") as caught:
        load_study(tmp_path / "none.toml")
    assert "published" in caught.value.hint


@pytest.mark.parametrize(
    ("data", "said"),
    [
        *((data, r"study\.toml is no TOML file") for data in (b"name = ", b"\xff", b"[a\n")),
        (b'name = "x"\n', "benchmarks"),
    ],
)
def test_what_is_no_toml_or_has_no_benchmark_is_refused(tmp_path, data, said):
    path = tmp_path / "study.toml"
    path.write_bytes(data)
    with pytest.raises(StudyError, match=said) as caught:
        load_study(path)
    assert caught.value.hint


def test_a_folder_is_no_study(tmp_path):
    with pytest.raises(StudyError, match="cannot be read"):
        load_study(tmp_path)


def test_zero_tasks_are_refused(make_study, tmp_path):
    (tmp_path / "none.jsonl").write_text("")
    with pytest.raises(TaskFileError, match=r"none\.jsonl"):
        make_study(benchmarks={"sciq": {"tasks": "none.jsonl"}})
    with pytest.raises(TaskFileError, match=r"missing\.jsonl"):
        make_study(benchmarks={"sciq": {"tasks": "missing.jsonl"}})


def test_overrides_take_the_file_s_place(make_study, tmp_path):
    make_study(models={"tutor": "a", "judge": "b"})
    over = {"seed": 99, "models": {"judge": "c"}, "benchmarks": {"sciq": {"limit": 2}}}
    loaded = load_study(tmp_path / "study.toml", overrides=over)
    assert (loaded.study.seed, len(loaded.tasks["sciq"])) == (99, 2)
    assert (loaded.study.models.tutor, loaded.study.models.judge) == ("a", "c")
    with pytest.raises(StudyError, match="max_turns"):
        load_study(tmp_path / "study.toml", overrides={"max_turns": "three"})


FULL = {
    "seed": 2**70,
    "conditions": ["approval", "baseline"],
    "personas": ["my-own", "help_avoidant"],
    "roles": ["extra", "motivation", "scaffolding"],
    "baseline_role": "extra", "max_turns": 2, "success_threshold": 0.6, "blinding": "shared",
    "fallback_order": ["scaffolding", "extra", "motivation"],
    "cumulative_budget": 10, "vote_criterion": 'Which "one"\n\u2028is $best?\t\\', "repeats": 2,
    "models": {"tutor": "t", "temperature": 0.5, "max_tokens": 99},
    "benchmarks": {"sciq": {"tasks": "science.jsonl"},
                   "humaneval": {"tasks": "programs.jsonl", "limit": 1}},
    "catalog": {"roles": {"extra": ENTRY},
                "personas": {"my-own": {"prior_knowledge": 0, "confidence": 1, "persistence": 0.5,
                                        "frustration_sensitivity": 0.5, "help_seeking": 0.5,
                                        "character": "Änders."}},
                "prompts": {"vote_reminder": "Only the ballot.\nPlease."}},
}  # fmt: skip


@pytest.mark.parametrize("settings", [{}, FULL, {"benchmarks": {"sciq": {"limit": 3}}}])
def test_a_written_study_loads_alone_with_the_same_digest(make_study, tmp_path, settings):
    loaded = make_study(**settings)
    folder = tmp_path / "recording"
    folder.mkdir()
    write_study(loaded, folder)
    again = load_study(folder / "study.toml")
    assert again.digest() == loaded.digest()
    assert list(again.grid()) == list(loaded.grid())
    assert again.settings() == loaded.settings()
    text = (folder / "study.toml").read_bytes()
    assert str(tmp_path).encode() not in text
    assert b"\r" not in text
    write_study(again, folder)
    assert (folder / "study.toml").read_bytes() == text


def test_a_folder_that_cannot_be_written_is_an_error(make_study, tmp_path):
    with pytest.raises(FolderError, match=r"study\.toml cannot be written") as caught:
        write_study(make_study(benchmarks={"sciq": {"limit": 1}}), tmp_path / "none")
    assert caught.value.hint


def test_the_digest_holds_settings_wordings_and_tasks_and_no_path(make_study, tmp_path):
    base = make_study().digest()
    (tmp_path / "sub").mkdir()
    (tmp_path / "science.jsonl").rename(tmp_path / "sub" / "other.jsonl")
    moved = make_study(benchmarks={"sciq": {"tasks": "sub/other.jsonl", "limit": 1}})
    assert moved.digest() == base
    moved_to = {"sciq": {"tasks": "sub/other.jsonl", "limit": 1}}
    changes = (
        {"seed": 12}, {"name": "other"}, {"max_turns": 2},
        {"fallback_order": list(reversed(DEFAULT_ROLES))}, {"vote_criterion": "Which?"},
        {"blinding": "shared"}, {"models": {"tutor": "x"}}, {"models": {"max_tokens": 5}},
        {"models": {"temperature": 0.0}}, {"repeats": 2},
        {"benchmarks": {"sciq": {"tasks": "sub/other.jsonl"}}},
        {"catalog": {"prompts": {"vote_reminder": "x"}}},
        {"catalog": {"roles": {"scaffolding": ENTRY}}},
    )  # fmt: skip
    digests = [make_study(**{"benchmarks": moved_to, **change}).digest() for change in changes]
    assert len({base, *digests}) == len(changes) + 1


def test_entries_of_the_catalog_that_a_study_does_not_use_are_not_in_its_digest(make_study):
    unused = {"roles": {"nobody": ENTRY}}
    assert make_study(catalog=unused).digest() == make_study().digest()


def test_the_prompt_digest_is_part_of_the_study_digest(make_study):
    own = make_study(catalog={"prompts": {"judge_reminder": "Again."}})
    assert own.prompt_digest() != make_study().prompt_digest()
    assert own.digest() != make_study().digest()


def test_words_around_what_was_said_are_stored_and_digested_where_a_study_changes_them(make_study):
    first, own = make_study(), make_study(catalog={"prompts": {"notes_on": "About $label:"}})
    assert first.wordings()["prompts"]["notes_on"] == "On $label:"
    assert own.wordings()["prompts"]["notes_on"] == "About $label:"
    assert own.prompt_digest() != first.prompt_digest()


def test_a_recording_older_than_a_template_is_of_the_study_that_does_not_change_it(make_study):
    first, own = make_study(), make_study(catalog={"prompts": {"notes_on": "About $label:"}})
    wordings = first.wordings()
    prompts = {name: text for name, text in wordings["prompts"].items() if name != "notes_on"}
    earlier = {**wordings, "prompts": prompts}
    assert first.with_wordings(earlier).digest() == first.digest()
    assert first.with_wordings(earlier).wordings() == wordings
    assert own.with_wordings(earlier).digest() == own.digest() != first.digest()


def test_the_criterion_is_the_study_s_or_the_catalog_s(make_study):
    values = make_study().study.criterion(load_panel_catalog())
    assert values == load_panel_catalog().prompts["vote_criterion"]
    assert make_study(vote_criterion="Which?").study.criterion(load_panel_catalog()) == "Which?"
    assert make_study(vote_criterion="Which?").settings().vote_criterion == "Which?"


def test_the_fallback_order_is_that_of_the_roles_where_none_is_given(make_study):
    roles = ["motivation", "scaffolding", "misconception"]
    assert make_study(roles=roles).settings().fallback_order == tuple(roles)


def test_shipped_files_are_in_the_form_that_is_written():
    for path in shipped_studies().values():
        data = tomllib.loads(path.read_text(encoding="utf-8"))
        assert tomllib.loads(tomli_w.dumps(data)) == data


def test_the_bundled_study_recorded_anew_has_another_digest_for_what_came_after_it_alone():
    """A setting that its file does not name, and a form in which unused wordings count too."""
    folder = Path(__file__).parents[3] / "cassettes" / "demo"
    recorded = json.loads((folder / "manifest.json").read_bytes())["study_digest"]
    today = load_study(folder / "study.toml")
    assert today.digest() != recorded
    assert today.study.ask_cut_off_again
    before = today.with_earlier_settings()
    assert not before.study.ask_cut_off_again
    assert before.in_first_form().digest() == recorded


def test_a_byte_order_mark_before_a_study_file_does_not_count(make_study, tmp_path):
    digest = make_study().digest()
    path = tmp_path / "study.toml"
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())
    assert load_study(path).digest() == digest
