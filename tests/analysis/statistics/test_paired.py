"""Differences within pairs, and families that are corrected together."""

from dataclasses import dataclass
from operator import itemgetter
from typing import Any

import pytest

from tutorsim.analysis.statistics.intervals_and_tests import (
    NotEstimable,
    PermutationTest,
    detectable_by,
)
from tutorsim.analysis.statistics.paired import corrected, paired_difference


@dataclass(frozen=True)
class Row:
    test: Any
    p_holm: float | None = None


@dataclass(frozen=True)
class Shown(Row):
    detectable: Any = None


def made(p, tasks=10):
    return PermutationTest(0.5, p, tasks, exact=True, error=0.0, tasks=tasks, spread=0.4)


def test_pairs_that_both_have_are_compared_second_minus_first():
    """Task a has two pairs, which flip together: 2 of 2³ changes of signs are as far as 5 of 4."""
    first = {("x", "a"): 0.0, ("y", "a"): 0.0, ("x", "b"): 1.0, ("x", "c"): 0.0, ("x", "d"): 9.0}
    second = {("x", "a"): 1.0, ("y", "a"): 2.0, ("x", "b"): 2.0, ("x", "c"): 1.0}
    found = paired_difference(first, second, cluster=itemgetter(1), seed=0)
    assert (found.test.difference, found.test.n, found.test.tasks) == (1.25, 4, 3)
    assert found.test.p_value == 0.25
    assert found.difference.value == 1.25


def test_a_family_is_corrected_together_and_a_row_without_a_test_is_left():
    """Holm: 3 · 0.01, then 2 · 0.04, then 0.5."""
    missing = Row(NotEstimable("no pairs"))
    rows = corrected([Row(made(0.04)), missing, Row(made(0.01)), Row(made(0.5))])
    assert [row.p_holm for row in rows] == [pytest.approx(0.08), None, pytest.approx(0.03), 0.5]
    assert rows[1] is missing


def test_rows_that_say_so_say_what_the_family_could_show():
    [one, other] = corrected([Shown(made(0.04)), Shown(made(0.2))])
    assert one.detectable == other.detectable == detectable_by(made(0.04), 2)
