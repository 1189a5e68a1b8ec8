"""A report of a branch says in every place that part of it is re-simulated."""

from collections.abc import Callable
from typing import Any

import pytest

from analysis.report import Document, build_report, provenance_of, to_html, to_markdown
from tutorsim.records import Branch, BranchPoint

ROLES = ("scaffolding", "misconception", "motivation", "metacognitive")
Make = Callable[..., Any]


@pytest.fixture
def document(panel_turn: Make, panel_episode: Make, panel_source: Make) -> Document:
    turn = panel_turn("simple", dict.fromkeys(ROLES, ROLES[0]))
    kept, taken_up = panel_episode(turn, task="a"), panel_episode(turn, task="b")
    name = taken_up.episode_id
    point = BranchPoint(parent_episode=name, turn=1, continuation=1, left=1)
    draw = taken_up.model_copy(update={"episode_id": f"{name}.c01", "branch": point})
    branch = Branch(
        parent="first",
        parent_study="a" * 64,
        parent_recording="d" * 64,
        tie_policy="no_tie_round",
        covered=(kept.episode_id,),
    )
    return build_report(panel_source(kept, draw, branch=branch), episodes=[draw.episode_id])


def test_the_summary_tells_what_the_figures_are_of(document: Document) -> None:
    assert "1 logged episode and 1 episode re-simulated" in document.summary
    assert "branch of first under tie policy no_tie_round" in document.summary


def test_every_caption_names_the_branch(document: Document) -> None:
    assert "branch of first" in document.provenance
    leads = [section.lead for section in document.sections[:2]]
    assert all(lead.startswith("Logged and re-simulated together") for lead in leads)


def test_the_facts_name_the_parent(document: Document) -> None:
    facts = dict(document.facts)
    assert (facts["Branch of"], facts["Under"]) == ("first", "tie policy no_tie_round")
    assert facts["Parent's recording digest"] == "d" * 64


def test_the_trace_says_from_where_on_a_draw_is_the_branchs(document: Document) -> None:
    [chosen] = document.trace
    told = "Draw 1 of sciq.b.novice.simple; turn 1 is the first that the branch decides."
    assert (chosen.why, chosen.draw) == ((), told)
    assert told in to_html(document)
    assert told.replace("_", "\\_") in to_markdown(document)


def test_a_run_of_its_own_says_nothing_of_branches(
    rich_source: Any, rich_document: Document
) -> None:
    assert "branch" not in provenance_of(rich_source)
    assert "branch" not in rich_document.summary
    assert "Branch of" not in dict(rich_document.facts)
    assert rich_document.sections[0].lead.startswith("As logged.")
    assert not any(chosen.draw for chosen in rich_document.trace)
