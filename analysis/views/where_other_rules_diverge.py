"""Where other rules would have left the logged path, as tables."""

from collections.abc import Iterator, Sequence
from typing import Final

from tutorsim.analysis.charts.number_words import counted
from tutorsim.analysis.outcomes.where_other_rules_diverge import Divergence
from tutorsim.analysis.statistics.intervals_and_tests import Bounds, NotEstimable
from tutorsim.analysis.views.cells import DASH, Table, bounds, plain, table

__all__ = ["alternatives_table", "coverage_table", "first_turns"]

_COVERED: Final = (
    "Covered: no turn can have another winner, so the logged outcome is the alternative's too; "
    "any other episode leaves the log at its first turn that diverges."
)
_BOUNDS: Final = "its bounds let every outcome after a turn that may diverge be a success or none."
_COLUMNS: Final = ("episodes", "covered", "may diverge", "diverge for certain")


def alternatives_table(found: Sequence[Divergence], logged: str | None) -> Table | None:
    """First divergent turns, coverage, and bounds of success, one row an alternative.

    Args:
        found: By alternative.
        logged: Success as logged; `None` where no outcome is known.
    """
    rows = []
    for of in found:
        paths = of.episodes.get_column("path").to_list()
        counts = [paths.count(path) for path in ("covered", "possible", "divergent")]
        success = [] if logged is None else [_pooled([c.bounds["success"] for c in of.coverage])]
        if paths:
            rows.append((of.question, len(paths), *counts, *success))
    return table(
        "divergence",
        "How far the recording speaks for another rule",
        f"Episodes with a panel. {_COVERED} Success is the share of all these episodes; {_BOUNDS}",
        [
            *("alternative", *_COLUMNS),
            *([] if logged is None else [f"success: {logged} as logged, bounds"]),
        ],
        rows,
    )


def coverage_table(found: Divergence) -> Table | None:
    """The same of one alternative, one row a benchmark and condition."""
    known = any(not isinstance(row.logged["success"], NotEstimable) for row in found.coverage)
    rows = []
    for row in found.coverage:
        counts = (row.episodes, row.covered, row.episodes - row.covered - row.divergent)
        success = [_bounds(row.bounds["success"])]
        success += [plain(row.logged["success"]), plain(row.on_covered["success"])]
        rows.append(
            (
                *(row.benchmark or "", row.condition or "", *counts, row.divergent),
                *(_bounds(row.coverage), *(success if known else [])),
            )
        )
    return table(
        "coverage",
        found.question,
        f"Episodes with a panel. {_COVERED} Coverage: share of episodes that are covered. Success "
        f"is the share of all episodes; {_BOUNDS} Covered episodes are a selected part of all. "
        f"{found.caption}",
        [
            *("benchmark", "condition", *_COLUMNS, "coverage"),
            *(("success, bounds", "success, logged", "success, on covered") if known else ()),
        ],
        rows,
        secondary=("success, on covered",) if known else (),
    )


def _bounds(found: Bounds | NotEstimable) -> str:
    return DASH if isinstance(found, NotEstimable) else bounds(found)


def _pooled(cells: Sequence[Bounds | NotEstimable]) -> str:
    known = [cell for cell in cells if isinstance(cell, Bounds)]
    n = sum(cell.n for cell in known)
    if not n:
        return DASH
    low, high = (sum(getattr(c, end) * c.n for c in known) / n for end in ("low", "high"))
    return bounds(Bounds(low, high, n))


def first_turns(found: Divergence, most: int) -> Iterator[str]:
    """The first turn of every uncovered episode that may differ, in a line each.

    Args:
        found: Of one alternative.
        most: How many lines.
    """
    rows = [row for row in found.episodes.to_dicts() if row["path"] != "covered"]
    yield f"First turns that may differ, of {counted(len(rows), 'episode')}:"
    for row in rows[:most]:
        won = row["alternatives"]
        yield (
            f"  {row['episode_id']}: turn {row['first_possible']}, {row['path']}: logged "
            f"{row['logged_winner']}, alternative {' or '.join(won) if won else 'not settled'}"
        )
    if len(rows) > most:
        yield f"  and {len(rows) - most} more; --episodes FILE writes them all"
