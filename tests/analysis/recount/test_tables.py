"""The tables of a recount, counted by hand over a clear vote and a tie that the order decides."""

from dataclasses import replace

import pytest

from tutorsim.analysis.recount import recount, tables
from tutorsim.analysis.recount.first_screen_what_was_read_and_verdict import told_rows
from tutorsim.vocabularies import DEFAULT_ROLES

S, MI, MO, ME = DEFAULT_ROLES


@pytest.fixture
def found(two_votes):
    return recount(two_votes, targets=("simple", "ranked"), exempt=(0, 1))


def of_all(declared, rows):
    """The rows of a table of all protocols."""
    return declared(tables.of_protocol(rows)).data.iter_rows()


def under(found, reading):
    """The table of rules under a reading of ties."""
    return tables.rules_table(tables.fewest_exempt(found.rules, reading)).data


def test_what_is_owed_to_the_order_stands_beside_what_any_order_gives(found):
    # S wins both, one of them by the order; with MI first in it MI wins that one.
    first, second, *others = tables.order_wins_table(found.orders[0]).data.rows()
    assert first == (S, 2, 1, 2, "1.5", 1, "0.50")
    assert second == (MI, 0, 0, 1, "0.5", 0, "–")
    assert [row[1:4] for row in others] == [(0, 0, 0)] * 2
    assert tables.by_order_table(found.orders).data.row(0) == ("all", 2, 1, "0.5", 1)


def test_a_lot_gives_half_of_a_tied_turn_to_each(found):
    rows = {row[0]: row[1:4] for row in of_all(tables.policies_table, found.policies)}
    assert rows == {
        "as logged": ("0.0", "2.0", "0.0"),
        "no tie round, the order at once": ("0.0", "2.0", "0.0"),
        "a lot instead of the order": ("0.5", "1.5", "0.5"),
        "no tie round, a lot at once": ("0.5", "1.5", "0.5"),
    }


def test_another_order_has_a_row_of_its_own(two_votes):
    changed = recount(two_votes, targets=("simple",), exempt=(0,), order=(MI, S, MO, ME))
    rows = {row[0]: row[1:4] for row in of_all(tables.policies_table, changed.policies)}
    assert rows["as logged, under this order"] == ("1.0", "1.0", "1.0")


def test_an_electorate_bounds_what_nobody_was_asked_to_vote_on(found):
    # The first votes tie in the second turn, without a tie round. Without one for S, MI leads it.
    rows = {row[0]: row[3:] for row in of_all(tables.electorates_table, found.electorates)}
    assert rows["the first vote decides"] == ("0 to 1", 0)
    assert rows[f"without {S}"] == rows[f"without {MI}"] == ("1", 1)
    assert rows[f"without {MO}"] == rows[f"without {ME}"] == ("0", 0)


def test_a_rule_keeps_for_certain_what_the_ballots_settle(found):
    # Whatever the four rank behind their choice: three firsts make 9 points of S and at most 9
    # of another, whom the order puts behind.
    simple, ranked = under(found, "fallback").rows()
    assert simple == ("simple", "simple", 2, 2, "2", "0", 0)
    assert ranked[:5] == ("simple", "ranked", 2, 1, "2 [1, 2]")
    assert under(found, "set").row(1)[3:5] == (0, "1 [0, 2]")
    assert tables.protocols_table(told_rows(found)).data.rows() == [
        ("simple", "ranked", 2, 0, 0, 2)
    ]
    wins = tables.rule_wins_table(tables.fewest_exempt(found.rules, "fallback")).data.row(1)
    assert wins[2:4] == ("2 [1, 2]", "0 [0, 1]")


def test_the_dial_counts_as_many_turns_as_the_breakdown(found):
    rows = [row for row in found.rules if row.reading == "fallback"]
    dial = tables.dial_table(tables.Dial(rows, "Untested.")).data
    assert dial["one possible winner, k = 0"].to_list() == ["2 of 2", "1 of 2"]
    assert dial["one possible winner, k = 1"].to_list() == ["1 of 2", "0 of 2"]
    lost = tables.breakdown_table(tables.fewest_exempt(rows, "fallback")).data
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
    rules = under(found, "set")
    assert rules["compared"].to_list() == [1]
    [text] = tables.SECTIONS["readings"](found, "", False)
    assert "no raw replies" in text


def test_a_caption_speaks_of_rows_that_are_there(two_votes, found):
    """Without an order no row is as logged; without replies none are read again."""
    assert "as logged in the row of that name" in policies_of(found).caption
    source = replace(two_votes, run=None, episodes=(), fallback_order=None)
    unordered = policies_of(recount(source, targets=("simple",), exempt=(0,)))
    drawn = {"a lot instead of the order", "no tie round, a lot at once"}
    assert {row[0] for row in unordered.data.iter_rows()} == drawn
    assert "of 2: expectations where a lot is drawn. Exact." in unordered.caption
    silent = [row.model_copy(update={"turns": 0}) for row in found.readings]
    said = tables.SECTIONS["readings"](found.model_copy(update={"readings": silent}), "", False)
    assert [one for one in said if one] == ["Ballots read again: there are no raw replies to read."]


def policies_of(found):
    return tables.policies_table(tables.of_protocol(found.policies))


def test_a_rule_that_gives_points_alone_has_no_word_of_bounds(two_votes):
    def mine(ballots):
        return {name: sum(b[name] for b in ballots.cast.values()) for name in ballots.candidates}

    found = recount(two_votes, targets=(), exempt=(0,), rules={"mine": mine})
    rows = tables.fewest_exempt(found.rules, "set")
    for made in (tables.rules_table(rows), tables.rule_wins_table(rows)):
        assert "a point only, which nothing bounds" in made.caption
        assert not {"certain", "Single:", "Bounds"} & set(made.caption.split())
    both = recount(two_votes, targets=("ranked",), exempt=(0,), rules={"mine": mine})
    assert "what is certain" in tables.rules_table(tables.fewest_exempt(both.rules, "set")).caption
