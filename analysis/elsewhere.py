"""Ballots from elsewhere: Parquet, CSV and JSONL in the ballots table's shape, and PrefLib.

What makes a ballot, per protocol, over the candidates of its round (one stage of one turn):

* `simple`: 1 for one candidate, 0 for the others. All zero is an abstention.
* `ranked`: each of m-1, m-2, …, 0 exactly once.
* `cumulative`: points that sum to the budget. All zero is an abstention.
* `approval`: 0 or 1 each, all 0 among them.
* `rich`: `points` that sum to the budget, a `rank` from 1 for each candidate that the points do not
  contradict, and `approved`, true for the first ones of that order; whoever is approved has more
  points than whoever is not. `mass` is what the ballot gives under one of the four protocols,
  the same in the whole file.

A ballot whose masses are all missing is an abstention. Rows that make no ballot are refused
with file, row and reason. Two things that are no ballot row by row are read and noted:
candidates that a ballot leaves out have no mass there (never in a ranking), and a voter's
name that stands over several whole ballots of one round is that many voters of one name.
Columns that the ballots table does not have are left out.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple

import polars as pl

from analysis.ballotcheck import check_ballots
from analysis.ballotfiles import FILE_SUFFIXES, read_columns
from analysis.preflib import PREFLIB_SUFFIXES, read_preflib
from analysis.tables import BALLOTS_SCHEMA
from tutorsim.errors import BallotFileError
from tutorsim.types import CUMULATIVE_BUDGET

__all__ = ["BALLOT_SUFFIXES", "BallotsFound", "read_ballots"]

BALLOT_SUFFIXES: Final = (*FILE_SUFFIXES, *PREFLIB_SUFFIXES)
"""Endings of the files that hold ballots."""

_WITH_POINTS: Final = ("cumulative", "rich")


class BallotsFound(NamedTuple):
    """Checked ballots, and what reading them took."""

    ballots: pl.DataFrame
    """`analysis.tables.BALLOTS_SCHEMA`."""
    budget: int
    notes: tuple[str, ...]


def read_ballots(files: Sequence[Path], *, budget: int | None = None) -> BallotsFound:
    """Read and check files of ballots, one after the other.

    Args:
        files: Files ending in one of `BALLOT_SUFFIXES`.
        budget: What a cumulative ballot must sum to; by default what most of a file's do.

    Raises:
        BallotFileError: With file, row and reason, where rows make no ballot, where a file
            cannot be read, and where files disagree about the budget.
    """
    found = [_read_file(file, budget=budget) for file in files]
    with_points = [one for one in found if one.ballots["protocol"].is_in(_WITH_POINTS).any()]
    budgets = {one.budget for one in with_points}
    if len(budgets) > 1:
        raise BallotFileError(
            f"The cumulative ballots of these files sum to {sorted(budgets)}.",
            why="One recount works with one budget.",
            hint="Open the files one at a time.",
        )
    return BallotsFound(
        ballots=pl.concat([one.ballots for one in found]),
        budget=budgets.pop() if budgets else budget or CUMULATIVE_BUDGET,
        notes=tuple(note for one in found for note in one.notes),
    )


def _read_file(file: Path, *, budget: int | None) -> BallotsFound:
    suffix = file.suffix.lower()
    if suffix in PREFLIB_SUFFIXES:
        read = read_preflib(file)
        return BallotsFound(read.ballots, read.budget, read.notes)
    if suffix not in FILE_SUFFIXES:
        raise BallotFileError(
            f"{file} is no file of ballots that can be read.",
            why=f"Its name ends in {suffix!r}; known are {', '.join(BALLOT_SUFFIXES)}.",
            hint="Convert it to one of them, in the shape of `tutorsim export`'s ballots table.",
        )
    checked = check_ballots(read_columns(file), file, budget=budget)
    return BallotsFound(
        checked.ballots.select(BALLOTS_SCHEMA.names()), checked.budget, checked.notes
    )
