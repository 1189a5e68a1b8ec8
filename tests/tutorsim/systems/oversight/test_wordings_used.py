import pytest

from tutorsim.systems.oversight import OVERSIGHT
from tutorsim.systems.oversight.settings import CONDITIONS


@pytest.fixture
def used(study):
    def of(*conditions, **settings):
        return study(conditions=conditions, **settings).used()["prompts"]

    return of


def test_all_conditions_and_settings_together_use_every_template(used):
    everything = used(*CONDITIONS, adaptive="log", show_reference=True)
    assert everything == set(OVERSIGHT.catalog().prompts)


def test_each_condition_runs_on_the_wordings_that_it_is_said_to_use(scene, play):
    # Scenes of the tests hold these wordings only, as a recording does.
    for condition in CONDITIONS:
        assert play(scene(condition, adaptive="skip", judge_orders=2)).record.status == "complete"


def test_what_a_condition_does_not_ask_is_not_used(used):
    assert "press" not in used("no_advocate")
    assert "rebut" not in used("no_advocate")
    assert "rebut_unchallenged" not in used("hpo")
    assert "alone" not in used("hpo")
    assert "alone" in used("hpo", adaptive="log")
    assert not any(name.startswith("brief_") for name in used("no_briefing", "single"))
