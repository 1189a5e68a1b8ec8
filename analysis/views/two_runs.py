"""Two runs side by side, as tables."""

from collections.abc import Mapping, Sequence

from tutorsim.analysis.outcomes.two_runs import OutcomeDifference
from tutorsim.analysis.statistics.intervals_and_tests import Estimate, NotEstimable
from tutorsim.analysis.views.cells import Table, absent, estimate, plain, table
from tutorsim.analysis.views.condition_contrasts import OUTCOME_NAMES, p_words

__all__ = ["differences_table", "same_winner_table"]


def differences_table(found: Sequence[OutcomeDifference]) -> Table | None:
    """Second run − first run, one row an outcome, benchmark and condition."""
    places = list(OUTCOME_NAMES)
    rows = sorted(found, key=lambda row: places.index(row.outcome))
    return table(
        "differences",
        "Second run − first run",
        "Means over the pairs that both runs share; difference [95 % interval over tasks]. p: "
        "signs flipped by task, exact unless marked ~, with Holm's correction over all rows. "
        "Gains are of tutored episodes." + absent(row.difference for row in rows),
        ["benchmark", "condition", "outcome", "pairs", "first", "second", "difference", "p"],
        [
            (
                *(row.benchmark, row.condition, OUTCOME_NAMES[row.outcome]),
                *(getattr(row.difference, "n", 0), plain(row.first), plain(row.second)),
                *(estimate(row.difference, signed=True), p_words(row)),
            )
            for row in rows
        ],
    )


def same_winner_table(found: Mapping[str, Estimate | NotEstimable], caption: str) -> Table | None:
    """Share of first turns that both runs gave to one role.

    Args:
        found: By protocol.
        caption: Of the comparison.
    """
    return table(
        "same-winner",
        "Same winner in the first turn",
        f"Share of shared episodes [95 % interval over tasks]. {caption}{absent(found.values())}",
        ["protocol", "same winner"],
        [(protocol, estimate(share)) for protocol, share in found.items()],
    )
