"""Promises of `tutorsim guide statistics`, held in studies of which the truth is known.

`python -m tests.reference.simulated_studies 300` prints the tables of the guide.
"""

from itertools import product

import pytest

from tests.reference.simulated_studies import (
    RATES,
    SPREADS,
    TASKS,
    fewer_draws,
    power,
    share_held,
    told,
)
from tutorsim.analysis.statistics.intervals_and_tests import FEWEST_TASKS, fewest_tasks

pytestmark = pytest.mark.slow
STUDIES = 100
CELLS = list(product(TASKS, SPREADS, (1, 6), (1, 3)))


@pytest.fixture(autouse=True)
def draws():
    with fewer_draws():
        yield


def error(share, studies):
    """Three standard errors of a share of so many studies."""
    return 3 * (share * (1 - share) / studies) ** 0.5


@pytest.mark.parametrize(("tasks", "sd", "rate"), list(product(TASKS, SPREADS, RATES)))
def test_a_share_of_turns_is_inside_its_interval(tasks, sd, rate):
    held = share_held(tasks, sd, rate, 10 * STUDIES)
    assert (held is None) == (tasks < FEWEST_TASKS)
    assert held is None or held >= 0.93 - error(0.93, 10 * STUDIES)


@pytest.mark.parametrize(("tasks", "sd", "personas", "repeats"), CELLS)
def test_first_sentences_are_rarely_false_alarms_and_intervals_hold(tasks, sd, personas, repeats):
    found = told(tasks, sd, personas, repeats, STUDIES)
    assert found.alarms <= 0.05 + error(0.05, STUDIES)
    if tasks < fewest_tasks(8):  # four contrasts of two outcomes
        assert found.alarms == 0
    if sd == 0:
        assert found.alone <= 0.05 + error(0.05, STUDIES)
    for held in (found.differences, found.rates):
        assert (held is None) == (tasks < FEWEST_TASKS)
        assert held is None or held >= 0.93 - error(0.93, STUDIES)


@pytest.mark.parametrize(
    ("shown", "sd", "spread"), [(0.2, 0.75, 0.31), (0.3, 0, 0.25), (0.3, 1.5, 0.4)]
)
def test_as_many_tasks_as_are_said_show_a_difference_about_four_times_in_five(shown, sd, spread):
    _, named = power(shown, sd, spread, 2 * STUDIES)
    assert abs(named - 0.8) <= 0.08 + error(0.8, 2 * STUDIES)
