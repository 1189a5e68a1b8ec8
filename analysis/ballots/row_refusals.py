"""How rows that make no ballot are refused: file, row, reason, and what a file looks like."""

from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import polars as pl

from tutorsim.errors import BallotFileError

__all__ = ["EXAMPLE", "Places", "columns_missed", "refuse", "unreadable"]

EXAMPLE: Final = (
    "Three lines that can be read, one column a candidate:\n"
    "  voter,ann,ben,cid\n"
    "  v1,1,0,0\n"
    "  v2,0,1,0\n"
    "or one row a ballot and candidate:\n"
    "  voter,candidate,mass,protocol\n"
    "  v1,ann,1,simple\n"
    "  v1,ben,0,simple\n"
    "`tutorsim check FILE` says how a file is read. --map voter=NAME names its columns; so do\n"
    "episode_id, candidate, mass, rank, and for whole ballots choice, approvals, ranking, reply."
)
"""Ends the hint of a file whose columns say nothing."""


class Places(NamedTuple):
    """Where rows of several files stand, that were put one after the other."""

    files: tuple[Path, ...]
    starts: tuple[int, ...]
    """Row number before each file's first."""

    def of(self, row: int) -> tuple[Path, int]:
        """The file of a row, and its number there."""
        number = bisect_right(self.starts, row - 1) - 1
        return self.files[number], row - self.starts[number]


def refuse(
    frame: pl.DataFrame,
    bad: pl.Expr,
    file: Path | Places,
    reason: str | Callable[[Mapping[str, Any]], str],
    *,
    hint: str = "Correct or remove the ballot; no other row was used.",
) -> None:
    """Refuse the file if a row is bad, naming the first such row and the reason.

    Args:
        frame: Has the data row's number as `row`.
        bad: True for a row that makes no ballot.
        file: Named in the error; or the files whose rows stand one after the other.
        reason: What is wrong, or how to say it of a row.
        hint: What to do next.

    Raises:
        BallotFileError: If any row is bad.
    """
    found = frame.filter(bad).sort("row").head(1)
    if found.height:
        row = found.row(0, named=True)
        place, number = (file, row["row"]) if isinstance(file, Path) else file.of(row["row"])
        text = reason if isinstance(reason, str) else reason(row)
        raise BallotFileError(
            f"{place}, row {number}: {text}.",
            why="Rows count from 1 at the first one after the heading, if there is one.",
            hint=hint,
        )


def columns_missed(file: Path, missed: Sequence[str], columns: Sequence[str]) -> BallotFileError:
    """Refuses a file that lacks columns, naming those that it has."""
    several = "s" * (len(missed) > 1)
    return BallotFileError(
        f"{file} lacks the column{several} {', '.join(missed)}.",
        why=f"Its columns are {', '.join(columns)}." if columns else "It has no columns.",
        hint=EXAMPLE,
    )


def unreadable(file: Path, why: str) -> BallotFileError:
    """Refuses a file that is no table of ballots at all."""
    return BallotFileError(f"{file} cannot be read as ballots.", why=why, hint=EXAMPLE)
