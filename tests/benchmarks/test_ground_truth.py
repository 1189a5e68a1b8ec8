"""Run with `pytest tests/benchmarks/test_ground_truth.py -m slow -n 0 -s` to see the figures."""

import pytest
from rich.console import Console
from rich.table import Table

from tests.benchmarks.ground_truth import run_ground_truth


@pytest.mark.slow
@pytest.mark.loopback
def test_the_truth_is_always_among_the_possible_winners(tmp_path):
    predictions, branched = run_ground_truth(tmp_path)
    console = Console(width=120)
    console.print("Answered by the scripted stand-in model with steady voters.")
    console.print(_of_turns(predictions), _of_outcomes(branched))
    assert predictions
    assert all(p.contained == p.turns for p in predictions)
    assert all(b.bounds[0] <= b.realised <= b.bounds[1] for b in branched)


def _of_turns(predictions):
    table = Table(
        "logged", "rule", "turns", "set holds the truth", "one winner", "projection right"
    )
    for p in predictions:
        table.add_row(
            p.logged,
            p.rule,
            str(p.turns),
            f"{p.contained} of {p.turns}",
            f"{100 * p.single / p.turns:.0f} %",
            f"{100 * p.right / p.turns:.0f} %",
        )
    return table


def _of_outcomes(branched):
    table = Table(
        "rule", "episodes", "covered", "left", "logged", "bounds", "realised", "reused", "paid",
        "points of width a 1,000 calls",
    )  # fmt: skip
    for b in branched:
        low, high = (f"{100 * value:.0f}" for value in b.bounds)
        table.add_row(
            b.rule, str(b.episodes), str(b.covered), str(b.left), f"{100 * b.logged:.0f} %",
            f"{low} to {high} %", f"{100 * b.realised:.1f} %", f"{b.reused:,}", f"{b.paid:,}",
            f"{b.width_per_call:.1f}",
        )  # fmt: skip
    return table
