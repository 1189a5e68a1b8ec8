"""What people can rate of oversight runs: each labelled reply once, whoever labelled it."""

import pytest

from tutorsim.analysis.ratings.items import items_of
from tutorsim.analysis.systems.oversight.audits_of_runs import (
    delivered_passages,
    proposal_passages,
)


def test_a_reply_is_one_item_at_one_place_under_all_conditions_that_label_it(played):
    found = items_of(delivered_passages(played))
    replies = {(record.conversation, record.tutor) for record in played.episodes}
    assert len(found) == len(replies)
    assert all(len(item.places) == 1 for item in found.values())
    assert found == items_of(proposal_passages(played))  # no audit: every reply was delivered


def test_a_reply_s_judge_is_its_label_of_guidance_the_mean_over_conditions(played):
    said: dict[str, list[int]] = {}
    for record in played.episodes:
        if record.label:
            said.setdefault(record.task_id, []).append(record.label.guidance)
    for item in items_of(proposal_passages(played)).values():
        given = said[item.places[0].episode]
        assert item.judged == pytest.approx(sum(given) / len(given))
