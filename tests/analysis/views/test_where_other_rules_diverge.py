"""Where another rule would have left the log, one row an alternative or a condition."""

import pytest

from tutorsim.analysis.systems.panel.divergence import (
    alternatives_table,
    coverage_table,
    diverge,
    first_turns_table,
    under_order,
)
from tutorsim.vocabularies import DEFAULT_ROLES

S, MI, MO, ME = DEFAULT_ROLES


@pytest.fixture
def found(two_votes):
    """MI first in the order: the second turn goes to MI, and nothing is known of what follows."""
    return diverge(two_votes, under_order(two_votes, (MI, S, MO, ME)), question="MI first")


def test_one_alternative_is_told_by_condition(found):
    [row] = coverage_table(found).data.rows()
    assert row[:6] == ("sciq", "simple", 1, 0, 0, 1)
    assert row[6:] == ("0.00", "0.00 to 1.00", "1.00", "not estimable")


def test_several_alternatives_are_told_a_row_each(found):
    assert alternatives_table([found], "1.00").data.rows() == [
        ("MI first", 1, 0, 0, 1, "0.00 to 1.00")
    ]
    assert alternatives_table([found], None).data.width == 5


def test_first_turns_are_listed_with_who_may_win_them(found):
    [row] = first_turns_table(found).data.rows()
    assert row[1:] == (2, "divergent", S, MI)
