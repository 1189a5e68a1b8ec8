"""What makes a rich ballot: its points, its order and its line of approval tell one story."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

import polars as pl

from tutorsim.analysis.ballots.row_refusals import Places, refuse
from tutorsim.analysis.ballots.turn_profiles import RICH, rich_mass, rich_rule
from tutorsim.vocabularies import PROTOCOLS

__all__ = ["check_rich"]

_BALLOT: Final = ("episode_id", "turn", "stage", "voter")


def check_rich(frame: pl.DataFrame, file: Path | Places, budget: int) -> None:
    """Points, a strict order and an approval line that agree, and the masses of one rule.

    Args:
        frame: The rows of ballots cast, in any format, with the data row's number as `row`.
        file: Named in errors.
        budget: What the points must sum to.

    Raises:
        BallotFileError: With file, row and reason.
    """
    cast = frame.filter(pl.col("protocol") == "rich").sort(*_BALLOT, "rank", maintain_order=True)
    if not cast.height:
        return
    points, rank, approved = (pl.col(name) for name in RICH)
    missing = pl.any_horizontal(pl.col(*RICH).is_null())
    refuse(cast, missing, file, lambda row: f"a rich ballot without {', '.join(RICH)}")
    place = pl.int_range(1, pl.len() + 1).over(_BALLOT)
    before = points.shift(1).over(_BALLOT)
    upper = approved.shift(1).over(_BALLOT)
    line = upper & ~approved & (before <= points)
    checks = {
        "its ranks are not 1, 2, … each once": rank != place,
        f"its points do not sum to {budget}": points.sum().over(_BALLOT) != budget,
        "its points are negative or contradict its order": (points < 0) | (before < points),
        "it approves of nobody, or of somebody below one it does not approve of": (
            (approved & ~upper) | (~approved.any().over(_BALLOT))
        ),
        "somebody it approves of has no more points than one it does not": line,
    }
    for reason, bad in checks.items():
        refuse(cast, bad, file, _of_voter(reason))
    if rich_rule(cast) is None:
        refuse(
            cast,
            pl.any_horizontal(rich_mass(p).ne(pl.col("mass")) for p in PROTOCOLS),
            file,
            "the masses of the rich ballots are not those of one protocol",
        )


def _of_voter(reason: str) -> Callable[[Mapping[str, Any]], str]:
    return lambda row: f"the ballot of {row['voter']!r}: {reason}"
