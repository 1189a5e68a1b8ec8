"""A report of a branch says in every place that part of it is re-simulated."""

import pytest

from tests.analysis.made import figure_of, report_of
from tests.analysis.panel_runs import panel_episode, panel_source, panel_turn
from tutorsim.analysis.pages.document import Document
from tutorsim.analysis.pages.document_as_html_with_packed_episodes import to_html
from tutorsim.analysis.pages.document_as_markdown import to_markdown
from tutorsim.analysis.systems.panel.first_sentence_answers_and_facts_of_summary import (
    provenance_of,
)
from tutorsim.records import Branch, BranchPoint

ROLES = ("scaffolding", "misconception", "motivation", "metacognitive")
BUILT: list[Document] = []


@pytest.fixture
def document():
    """Built once: it takes seconds."""
    if not BUILT:
        BUILT.append(_built())
    return BUILT[0]


def _built():
    turn = panel_turn("simple", dict.fromkeys(ROLES, ROLES[0]))
    kept, taken_up = panel_episode(turn, task="a"), panel_episode(turn, task="b")
    name = taken_up.episode_id
    draws = []
    for number in (1, 2):
        point = BranchPoint(parent_episode=name, turn=1, continuation=number, left=1)
        changed = {"episode_id": f"{name}.c{number:02d}", "branch": point, "success": number == 1}
        draws.append(taken_up.model_copy(update=changed))
    branch = Branch(
        parent="first",
        parent_study="a" * 64,
        parent_recording="d" * 64,
        tie_policy="no_tie_round",
        continuations=2,
        covered=(kept.episode_id,),
    )
    source = panel_source(kept, *draws, branch=branch)
    return report_of(source, episodes=(draws[0].episode_id,))


def test_the_summary_tells_what_the_figures_are_of(document):
    assert "1 logged episode and 1 episode re-simulated" in document.summary
    assert "branch of first under tie policy no_tie_round" in document.summary


def test_every_caption_names_the_branch(document):
    assert "branch of first" in document.provenance
    leads = [one.lead for one in document.sections if one.id in ("conditions", "panels")]
    assert all(lead.startswith("Logged and re-simulated together") for lead in leads)
    captions = [figure.caption for figure in document.figures()]
    assert any("Logged and re-simulated together; nothing is recounted." in c for c in captions)
    assert not any("As logged" in caption for caption in captions)


def test_the_facts_name_the_parent(document):
    facts = dict(document.facts)
    assert (facts["Branch of"], facts["Under"]) == ("first", "tie policy no_tie_round")
    assert facts["Parent's recording digest"] == "d" * 64


def test_the_trace_says_from_where_on_a_draw_is_the_branchs(document):
    [shown] = document.episodes
    told = (
        "from turn 1 on under tie policy no_tie_round: draw 1 of 2 of what might have followed in "
        "sciq.b.novice.simple of first; the logged path was left at turn 1"
    )
    assert (shown.why, shown.facts[1:]) == ("", (("Re-simulated", told),))
    assert told.replace("_", "\\_") in to_markdown(document)


@pytest.mark.slow
def test_the_page_says_it_too(document):
    page = to_html(document)
    assert page.count("branch of first") > 5


def test_a_run_of_its_own_says_nothing_of_branches():
    source = panel_source(panel_episode(panel_turn("simple", dict.fromkeys(ROLES, ROLES[0]))))
    assert "branch" not in provenance_of(source)
    assert figure_of(source, "decided-by").caption.count("As logged;") == 1


def test_a_success_in_one_of_two_draws_is_half_of_one(document):
    [personas] = [figure for figure in document.figures() if figure.name == "personas"]
    # The covered episode does not succeed, the other does in one draw of two.
    assert personas.data["successes"].to_list() == [0.5]
