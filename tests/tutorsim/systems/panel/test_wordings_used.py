"""What a study is said to use is what its prompts are made of, no more and no less."""

from dataclasses import replace

import pytest

from tutorsim.kernel.flow import drive, scripted
from tutorsim.records import Branch
from tutorsim.systems.panel.settings import FIRST_FORM_PROMPTS, PanelCatalog, load_panel_catalog

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
def test_the_templates_that_a_study_uses_are_those_that_its_episodes_fill(
    settings, make_study, filled
):
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
        parent="p",
        parent_study="s",
        parent_recording="r",
        rule="ranked",
        tie_policy="tie_round",
        roles=roles,
    )
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
