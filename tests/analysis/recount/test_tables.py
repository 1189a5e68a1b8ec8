"""The tables of a recount, counted by hand over a clear vote and a tie that the order decides."""

from dataclasses import replace

import pytest

from tutorsim.analysis.recount import recount, tables
from tutorsim.vocabularies import DEFAULT_ROLES

S, MI, MO, ME = DEFAULT_ROLES


@pytest.fixture
def found(two_votes):
    return recount(two_votes, targets=("simple", "ranked"), exempt=(0, 1))


def test_what_is_owed_to_the_order_stands_beside_what_any_order_gives(found):
    # S wins both, one of them by the order; with MI first in it MI wins that one.
    first, second, *others = tables.order_wins_table(found.orders[0]).data.rows()
    assert first == (S, 2, 1, 2, "1.5", 1, "0.50")
    assert second == (MI, 0, 0, 1, "0.5", 0, "–")
    assert [row[1:4] for row in others] == [(0, 0, 0)] * 2
    assert tables.by_order_table(found.orders).data.row(0) == ("all", 2, 1, "0.5", 1)


def test_a_lot_gives_half_of_a_tied_turn_to_each(found):
    rows = {row[0]: row[1:4] for row in tables.policies_table(found.policies).data.iter_rows()}
    assert rows == {
        "as logged": ("0.0", "2.0", "0.0"),
        "no tie round, the order at once": ("0.0", "2.0", "0.0"),
        "a lot instead of the order": ("0.5", "1.5", "0.5"),
        "no tie round, a lot at once": ("0.5", "1.5", "0.5"),
    }


def test_another_order_has_a_row_of_its_own(two_votes):
    changed = recount(two_votes, targets=("simple",), exempt=(0,), order=(MI, S, MO, ME))
    rows = {row[0]: row[1:4] for row in tables.policies_table(changed.policies).data.iter_rows()}
    assert rows["as logged, under this order"] == ("1.0", "1.0", "1.0")


def test_an_electorate_bounds_what_nobody_was_asked_to_vote_on(found):
    # The first votes tie in the second turn, without a tie round. Without one for S, MI leads it.
    rows = {row[0]: row[3:] for row in tables.electorates_table(found.electorates).data.iter_rows()}
    assert rows["the first vote decides"] == ("0 to 1", 0)
    assert rows[f"without {S}"] == rows[f"without {MI}"] == ("1", 1)
    assert rows[f"without {MO}"] == rows[f"without {ME}"] == ("0", 0)


def test_a_rule_keeps_for_certain_what_the_ballots_settle(found):
    # Whatever the four rank behind their choice: three firsts make 9 points of S and at most 9
    # of another, whom the order puts behind.
    simple, ranked = tables.rules_table(found, "fallback").data.rows()
    assert simple == ("simple", "simple", 2, 2, "2", "0", 0)
    assert ranked[:5] == ("simple", "ranked", 2, 1, "2 [1, 2]")
    assert tables.rules_table(found, "set").data.row(1)[3:5] == (0, "1 [0, 2]")
    assert tables.protocols_table(found, ("ranked",)).data.rows() == [
        ("simple", "ranked", 2, 0, 0, 2)
    ]
    wins = tables.rule_wins_table(found.rules, "fallback").data.row(1)
    assert wins[2:4] == ("2 [1, 2]", "0 [0, 1]")


def test_the_dial_counts_as_many_turns_as_the_breakdown(found):
    pairs = [("simple", "simple"), ("simple", "ranked")]
    dial = tables.dial_table(found.rules, "fallback", pairs, "Untested.").data
    assert dial["one possible winner, k = 0"].to_list() == ["2 of 2", "1 of 2"]
    assert dial["one possible winner, k = 1"].to_list() == ["1 of 2", "0 of 2"]
    lost = tables.breakdown_table(found.rules, "fallback").data
    # One of four who may vote anyhow turns 2 to 2; two turn 3 to 1.
    assert lost.row(0) == ("simple", "simple", 0, 1, 1)
    assert lost["0"].to_list() == [0, 1]
    assert lost["1"].to_list() == [1, 1]


def test_every_section_ends_its_captions_with_what_is_held_fixed(found):
    for name, section in tables.SECTIONS.items():
        parts = [part for part in section(found, "Untested.", True) if part is not None]
        assert parts, name
        assert all(part.caption.endswith("came before a vote is held fixed.") for part in parts), (
            name
        )


def test_one_protocol_alone_has_no_tables_beside_those_of_all(found):
    assert [part.name for part in tables.SECTIONS["policies"](found, "", True)] == ["policies"]


def test_without_an_order_nothing_is_owed_to_one(two_votes):
    source = replace(two_votes, run=None, episodes=(), fallback_order=None)
    found = recount(source, targets=("simple",), exempt=(0,))
    table = tables.order_wins_table(found.orders[0])
    assert table.data.columns == ["candidate", "robust", "at most", "by lot"]
    assert "of which counting leaves 1 tied" in table.caption
    rules = tables.rules_table(found, "set").data
    assert rules["compared"].to_list() == [1]
    [text] = tables.SECTIONS["readings"](found, "", False)
    assert "no raw replies" in text
