"""Every fallback order from counts of tied sets."""

from fractions import Fraction
from random import Random

import pytest

from tutorsim.analysis.recount.every_fallback_order import order_table, sweep_orders
from tutorsim.analysis.recount.turn_groups import TiedSet, TiedSets
from tutorsim.voting import first_in_order

ABC = ("a", "b", "c")


def tied_sets(**counts):
    """`tied_sets(ab=2, c=1)`: two turns tied between a and b, one won by c."""
    found = {
        TiedSet("simple", "fallback" if len(names) > 1 else "vote", tuple(names)): n
        for names, n in counts.items()
    }
    return TiedSets(found)


def test_a_hand_count_of_all_six_orders():
    # a won 3 alone, b 1; 2 turns tied a b, 4 tied b c.
    table = order_table(tied_sets(a=3, b=1, ab=2, bc=4), order=ABC, protocol=None)
    assert (table.turns, table.decided_by_order, table.orders) == (10, 6, 6)
    assert [(row.order, row.wins, row.changed) for row in table.listed] == [
        (("a", "b", "c"), {"a": 5, "b": 5, "c": 0}, 0),
        (("a", "c", "b"), {"a": 5, "b": 1, "c": 4}, 4),
        (("b", "a", "c"), {"a": 3, "b": 7, "c": 0}, 2),
        (("b", "c", "a"), {"a": 3, "b": 7, "c": 0}, 2),
        (("c", "a", "b"), {"a": 5, "b": 1, "c": 4}, 4),
        (("c", "b", "a"), {"a": 3, "b": 3, "c": 4}, 6),
    ]
    a, b, c = table.candidates
    assert (a.logged, a.least, a.most, a.expected.exact, a.robust, a.by_order) == (
        5,
        3,
        5,
        "4",
        3,
        2,
    )
    assert (b.least, b.most, b.expected.exact) == (1, 7, "4")
    assert (c.least, c.most, c.expected.exact, c.robust) == (0, 4, "2", 0)
    assert a.share_by_order.exact == "2/5"
    assert c.share_by_order is None
    assert (table.changed_expected.exact, table.changed_most) == ("3", 6)


def test_the_sweep_agrees_with_picking_first_in_order_turn_by_turn():
    random = Random(1)
    names = "abcde"
    for _ in range(20):
        sets = ["".join(sorted(random.sample(names, random.randint(1, 5)))) for _ in range(12)]
        tied = tied_sets(**{s: sets.count(s) for s in sets})
        swept = sweep_orders(tied, order=names)
        for order, wins in zip(swept.orders, swept.wins.tolist(), strict=True):
            plain = [first_in_order(s, order) for s in sets]
            assert wins == [plain.count(c) for c in names]
        table = order_table(tied, order=tuple(names), protocol=None)
        for column, role in enumerate(table.candidates):
            assert role.least == role.robust == swept.wins[:, column].min()
            assert role.most == swept.wins[:, column].max()
            mean = Fraction(int(swept.wins[:, column].sum()), len(swept.orders))
            assert Fraction(role.expected.exact) == mean
        assert table.changed_most == swept.changed.max()


@pytest.mark.costly
def test_eight_candidates_are_swept_and_summarised_but_not_listed():
    names = tuple("abcdefgh")
    table = order_table(tied_sets(abcdefgh=5, h=2), order=names, protocol=None)
    assert (table.orders, table.listed, table.changed_most) == (40_320, (), 5)
    assert table.candidates[-1].most == 7


def test_with_many_candidates_the_extremes_are_still_exact():
    names = tuple("abcdefghijkl")
    table = order_table(tied_sets(ab=3, kl=1, c=2), order=names, protocol=None)
    assert (table.changed_most, table.listed) == (None, ())
    by_name = {role.candidate: role for role in table.candidates}
    assert (by_name["b"].logged, by_name["b"].most, by_name["l"].expected.exact) == (0, 3, "1/2")


def test_the_cost_of_a_sweep_does_not_depend_on_the_number_of_turns():
    few, many = tied_sets(ab=1, abc=2), tied_sets(ab=10**9, abc=2 * 10**9)
    scaled = sweep_orders(few, order=ABC).wins * 10**9
    assert (sweep_orders(many, order=ABC).wins == scaled).all()


def test_no_turns_give_a_table_of_zeros():
    table = order_table(TiedSets({}), order=ABC, protocol=None)
    assert (table.turns, table.changed_most, table.candidates[0].share_by_order) == (0, 0, None)
    assert table.changed_expected.exact == "0"


def test_tables_per_protocol_add_up_to_that_of_all():
    tied = TiedSets(
        {TiedSet("simple", "fallback", ("a", "b")): 2, TiedSet("ranked", "fallback", ("a", "b")): 3}
    )
    parts = [order_table(tied, order=ABC, protocol=p) for p in ("simple", "ranked")]
    both = order_table(tied, order=ABC, protocol=None)
    assert sum(part.turns for part in parts) == both.turns == 5
    assert both.candidates[0].logged == 5
