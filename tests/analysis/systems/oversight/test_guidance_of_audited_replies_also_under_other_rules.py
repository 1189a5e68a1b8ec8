from dataclasses import replace

import pytest

from tests.analysis.made import tables_of
from tutorsim.analysis.ratings.texts_to_rate_as_raters_see import delivered, items_of
from tutorsim.analysis.systems.oversight.guidance_of_audited_replies_also_under_other_rules import (
    audited_turns,
    delivered_shares,
    predicted,
    proposal_passages,
    score_changes,
)
from tutorsim.analysis.systems.oversight.page_tables_and_first_sentence import document
from tutorsim.records.oversight import AuditedReply, Labels, OversightRecord

ROLES = ("a", "b", "c")


def item(episode, role, pair, *, winner="a", possible=None, turn=1, **fields):
    audited = {
        "run": "demo", "episode": episode, "turn": turn, "role": role, "delivered": role == winner,
        "condition": "simple", "persona": "novice", "benchmark": "sciq", "task": episode,
        "decided_by": "vote", "score_before": 0.25, "score_after": 0.75 if role == winner else None,
        "possible": {"ranked": possible or (winner,)},
        **fields,
    }  # fmt: skip
    label = None if pair is None else Labels(mistake=pair[0], guidance=pair[1])
    return OversightRecord(
        episode_id=f"audit.{episode}-{turn}-{role}.none.single", benchmark="audit",
        task_id=f"{episode}-{turn}-{role}", variant="none", condition="single",
        conversation=f"sciq.{episode}", audited=AuditedReply(**audited), label=label,
        unjudged=label is None,
    )  # fmt: skip


def turn_of(episode, pairs, **fields):
    return [item(episode, role, pair, **fields) for role, pair in zip(ROLES, pairs, strict=True)]


# Three turns that delivered guidance 2, 2, 0. Under the other rule: a or b (2 or 0); c alone (1);
# a or c, where c has no label.
RECORDS = [
    *turn_of("x", [(1, 2), (0, 0), (1, 1)], possible=("a", "b")),
    *turn_of("y", [(1, 2), (1, 0), (1, 1)], possible=("c",)),
    *turn_of("z", [(0, 0), (1, 2), None], possible=("a", "c")),
]


def test_the_label_under_a_rule_lies_between_the_least_and_the_most_among_possible_winners():
    delivered, found = predicted(audited_turns(RECORDS), ["ranked"])
    assert (found.turns, found.identified) == (3, 1)
    third = pytest.approx(1 / 3)
    # guides: x may; y not; z may (c could be anything)
    assert found.shares["guides"] == (0, pytest.approx(2 / 3))
    # hints: x not; y must; z may
    assert found.shares["hints"] == (third, pytest.approx(2 / 3))
    # no guidance: x may; y not; z may
    assert found.shares["no_guidance"] == (0, pytest.approx(2 / 3))
    # mistake: x may; y must; z may
    assert found.shares["identifies_mistake"] == (third, 1)
    assert delivered.shares["guides"] == (pytest.approx(2 / 3),) * 2


def test_a_rule_that_is_not_settled_leaves_every_proposal_open():
    _, found = predicted(audited_turns(RECORDS[:3]), ["approval"])
    assert found.shares["guides"] == (0, 1)
    assert found.identified == 0


def test_turns_without_every_possible_winner_are_left_out():
    assert audited_turns(RECORDS[:1]) == []
    assert len(audited_turns(RECORDS)) == 3


def test_shares_of_delivered_replies_have_intervals_over_tasks():
    more = [item(f"t{i}", "a", (i % 2, 2 * (i % 2))) for i in range(6)]
    found = {(d["by"], d["group"]): d for d in delivered_shares([*RECORDS, *more])}
    whole = found["all", "all"]
    assert (whole["replies"], whole["unjudged"]) == (9, 0)
    assert whole["guides"].value == pytest.approx(5 / 9)
    assert "9 tasks" in whole["guides"].interval.method
    assert {group for _, group in found} >= {"simple", "a", "novice", "vote"}


def test_an_unjudged_reply_is_counted_beside_the_shares():
    records = [item("x", "a", None), item("y", "a", (1, 2))]
    [whole, *_] = delivered_shares(records)
    assert (whole["replies"], whole["unjudged"]) == (2, 1)
    assert whole["guides"].value == 1.0


def test_what_followed_is_the_change_of_the_next_score():
    changes = score_changes(RECORDS)
    assert {guidance: change.n for guidance, change in changes.items()} == {0: 1, 2: 2}
    assert changes[2].value == pytest.approx(0.5)
    for before, after in ((0.0, 1.0), (1.0, 0.0)):
        scores = {"score_before": before, "score_after": after}
        [alike] = score_changes([item(f"t{i}", "a", (1, 2), **scores) for i in range(20)]).values()
        interval = alike.interval
        assert (after - before) in (interval.low, interval.high), "no change is more than the scale"


def test_nothing_has_no_shares():
    assert list(delivered_shares([])) == []
    assert predicted([], ["ranked"]) == []
    assert score_changes([]) == {}


def test_an_audit_s_report_asks_about_the_run_and_not_about_gold(played):
    found = document(replace(played, episodes=tuple(RECORDS)), False)
    tables = tables_of(found)
    assert {"delivered", "rules", "after"} <= tables.keys()
    assert "scores" not in tables
    delivered, ranked = tables["rules"].data.iter_rows(named=True)
    assert (delivered["rule"], delivered["guides"]) == ("(delivered)", "0.67")
    assert (ranked["rule"], ranked["guides"]) == ("ranked", "0.00 to 0.67")


def test_an_audit_says_who_gave_the_replies_and_who_labelled_them(played):
    """Labels by the stand-in of a relay's replies, and of replies from nobody knows whom."""

    def shown(**settings):
        study = played.head.study.model_copy(update={"settings": settings})
        head = played.head.model_copy(update={"study": study})
        return document(replace(played, head=head, episodes=tuple(RECORDS)), True)

    given = {"run": "pilot", "provenance": {"kind": "relay", "name": "gpt"}}
    found = shown(inputs={**given, "recording_digest": "abc"})
    assert found.provenance == "texts by relay (gpt), labels by stand-in (scripted)"
    assert "user's word" in found.warning
    assert "scripted model" in found.warning
    assert ("Recording digest of that run", "abc") in found.facts
    assert "what gave them, this recording does not say" in shown().summary
    assert "does not say" not in found.summary


# --- What people can rate of oversight runs: each labelled reply once, whoever labelled it -------


def test_a_reply_is_one_item_at_one_place_under_all_conditions_that_label_it(played):
    found = items_of(delivered(proposal_passages)(played))
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
