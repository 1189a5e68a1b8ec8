import re
from collections import Counter

import pytest

from tutorsim.systems.panel.scene import read_proposal, read_reviews
from tutorsim.systems.panel.scripted_prompt_reading import style_weights
from tutorsim.systems.panel.scripted_replies import style_of_system
from tutorsim.systems.panel.settings import load_panel_catalog

ROLES = ("scaffolding", "misconception", "motivation", "metacognitive")


def replies(played, stage, attempt=1):
    return [
        (spec, call, text)
        for spec, call, text in played.calls
        if (call.key.stage, call.key.attempt) == (stage, attempt)
    ]


@pytest.mark.parametrize("role", ROLES)
def test_a_role_is_known_by_its_title(role):
    catalog = load_panel_catalog()
    system = catalog.fill("tutor_system", **catalog.roles[role].model_dump())
    assert style_of_system(system).name == role


def test_the_single_tutor_has_a_style_of_its_own():
    catalog = load_panel_catalog()
    system = catalog.fill("baseline_system", **catalog.roles["baseline"].model_dump())
    assert style_of_system(system).name == "general"


def test_a_role_from_elsewhere_is_known_by_its_objective():
    assert style_of_system("You cheer. Objective: encourage, build confidence").name == "motivation"
    assert style_of_system("You make them plan and watch themselves").name == "metacognitive"


def test_drafts_show_the_style_of_their_role(played):
    for _, call, text in replies(played, "propose"):
        weights = style_weights(text)
        expected = "general" if call.key.agent == "baseline" else call.key.agent
        assert max(weights, key=weights.get) == expected


def test_proposals_have_two_to_four_sentences_and_mention_the_task(played):
    for stage in ("propose", "revise"):
        for _, _, text in replies(played, stage):
            found = read_proposal(text)
            if found is not None:
                assert 2 <= len(re.findall(r"[.?!]'?\.?(?:\s|$)", found.text)) <= 4, found.text


def test_confidence_is_stated_where_it_is_asked_for(played):
    for _, call, text in replies(played, "propose"):
        found = read_proposal(text)
        if found is not None:
            assert (found.confidence is None) == (call.key.agent == "baseline")


def test_a_proposal_now_and_then_lacks_its_marker(played):
    first = replies(played, "propose") + replies(played, "revise")
    unread = sum(read_proposal(text) is None for _, _, text in first)
    assert 0 < unread < 0.03 * len(first)


def test_a_revision_keeps_its_opening_and_takes_at_most_one_sentence_of_a_peer(played):
    for record in played.records:
        for turn in record.turns:
            for role, final in turn.proposals_final.items():
                own = sentences(turn.proposals_initial[role].text)
                assert sentences(final.text)[0] == own[0]
                peers = [
                    set(sentences(draft.text)) - set(own)
                    for other, draft in turn.proposals_initial.items()
                    if other != role
                ]
                assert all(len(peer & set(sentences(final.text))) <= 1 for peer in peers)


def sentences(text):
    return re.split(r"(?<=[.?!])\s+", text)


def test_some_revisions_change_the_draft_and_some_do_not(played):
    changed = Counter(
        turn.proposals_initial[role].text != turn.proposals_final[role].text
        for record in played.records
        for turn in record.turns
        for role in turn.proposals_final
        if role != "baseline"
    )
    assert 0.4 < changed[True] / changed.total() < 0.95


def test_a_belief_is_called_the_students_own_only_when_it_was_said(played):
    for record in played.records:
        for turn in record.turns:
            said = record.attempts[turn.turn - 1].text
            draft = turn.proposals_initial.get("misconception")
            if draft is not None and ("One belief here" in draft.text or "Your b" in draft.text):
                assert re.search(r": '(.*?)'\.", draft.text)[1] in said


def test_reviews_have_a_block_for_every_label(played):
    first = [*replies(played, "critique"), *replies(played, "tie_critique")]
    unread = 0
    for _, call, text in first:
        labels = re.findall(r"^([A-H]): ", call.request.user, re.MULTILINE)
        notes = read_reviews(text, labels)
        unread += notes is None
        assert notes is None or (list(notes) == labels and all(n.weakness for n in notes.values()))
    assert 0 < unread < 0.02 * len(first)


def test_some_reviews_compare_with_another_draft(played):
    compared = [text for _, _, text in replies(played, "critique") if "draft " in text]
    assert compared
    assert all(re.search(r"draft [A-D]\b", text) for text in compared)
