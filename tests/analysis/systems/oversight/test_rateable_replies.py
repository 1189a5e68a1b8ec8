"""What people can rate of oversight runs: each labelled reply once, whoever labelled it."""

from tutorsim.analysis.ratings.rateable_items import items_of
from tutorsim.analysis.systems.oversight.rateable_replies import (
    delivered_passages,
    proposal_passages,
)


def test_a_reply_is_one_item_at_one_place_under_all_conditions_that_label_it(played):
    found = items_of(delivered_passages(played))
    replies = {(record.conversation, record.tutor) for record in played.episodes}
    assert len(found) == len(replies)
    assert all(len(item.places) == 1 for item in found.values())
    assert found == items_of(proposal_passages(played))  # no audit: every reply was delivered
