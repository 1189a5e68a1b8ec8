"""A branch beside the recording that it continues, as texts and tables."""

from collections.abc import Iterator, Sequence

from tutorsim.analysis.pages.cells import (
    DASH,
    Part,
    Table,
    absent,
    bounds,
    estimate,
    plain,
    table,
)
from tutorsim.analysis.statistics.intervals_and_tests import Bounds, Interval, NotEstimable
from tutorsim.analysis.systems.paired_comparison import p_words
from tutorsim.analysis.systems.panel.branches import (
    BranchCell,
    BranchComparison,
    BranchedPath,
    BranchOutcome,
)
from tutorsim.analysis.systems.panel.contrasts import OUTCOME_NAMES

LISTED = 8
"""Episodes told one by one; JSON has them all."""


def branch_parts(
    found: BranchComparison, dollars: Sequence[float | None], prices_as_of: str
) -> Iterator[Part | None]:
    """Logged, bounded and re-simulated figures, each in a column of its own.

    Args:
        found: The comparison.
        dollars: What the calls paid for come to in each cell; `None` where a price is unknown.
        prices_as_of: The day of the list prices.
    """
    if not found.cells:
        yield "The parent has no episode with a panel."
        return
    yield _episodes_table(found)
    yield _outcomes_table(found)
    yield _differences_table(found.cells)
    yield _moves_table(found.cells)
    yield from _paths(found)
    yield _calls_table(found.cells, dollars, prices_as_of)
    yield found.caption


def _episodes_table(found: BranchComparison) -> Table | None:
    draws = "1 draw" if found.continuations == 1 else f"{found.continuations} draws"
    return table(
        "branch",
        f"Branch under {found.changes}: {draws} of each episode taken up",
        "Episodes: with a panel, complete in the parent. Taken up: re-simulated, with a complete "
        "draw. Open: neither covered nor taken up. Left path: share of the episodes taken up that "
        "another winner led away, by their draws." + absent(cell.left for cell in found.cells),
        [
            *("benchmark", "condition", "episodes", "covered", "taken up", "open", "draws"),
            *("draws failed", "left path"),
        ],
        [
            (
                *(cell.benchmark, cell.condition, cell.episodes, cell.covered, cell.continued),
                *(cell.left_out, cell.draws, cell.failed, plain(cell.left)),
            )
            for cell in found.cells
        ],
        secondary=("draws failed",),
    )


def _outcomes_table(found: BranchComparison) -> Table | None:
    return table(
        "branch-outcomes",
        "Outcomes of all episodes with a panel",
        "Logged: the parent. Bounds: the parent's, every uncovered outcome 0 or 1. Re-simulated: "
        "covered outcomes as logged, and the mean draw of each episode taken up; what is left "
        f"open is 0 or 1. {_interval_words(found)} Width: of the bounds, and of what is left.",
        [
            *("benchmark", "condition", "outcome", "logged", "bounds", "re-simulated"),
            *("width", "width left"),
        ],
        [
            (
                *(cell.benchmark, cell.condition, OUTCOME_NAMES[row.outcome]),
                *(plain(row.logged), _bounds(row.before), _resimulated(row)),
                *(_width(row.before), _width(row.after)),
            )
            for outcome in dict.fromkeys(row.outcome for c in found.cells for row in c.outcomes)
            for cell in found.cells
            for row in cell.outcomes
            if row.outcome == outcome
        ],
        secondary=("width", "width left"),
    )


def _interval_words(found: BranchComparison) -> str:
    words = "In brackets: a 95 % interval over tasks"
    if found.continuations == 1:
        return f"{words}; a single draw of an episode is not what would have happened."
    return f"{words}; the spread between draws of an episode is part of it."


def _bounds(found: Bounds | NotEstimable) -> str:
    return DASH if isinstance(found, NotEstimable) else bounds(found)


def _resimulated(row: BranchOutcome) -> str:
    if isinstance(row.after, NotEstimable) or not isinstance(row.interval, Interval):
        return _bounds(row.after)
    return f"{bounds(row.after)} [{row.interval.low:.2f}, {row.interval.high:.2f}]"


def _width(found: Bounds | NotEstimable) -> str:
    return DASH if isinstance(found, NotEstimable) else f"{found.high - found.low:.2f}"


def _differences_table(cells: Sequence[BranchCell]) -> Table | None:
    rows = [(cell, row) for cell in cells if cell.continued for row in cell.outcomes]
    return table(
        "branch-differences",
        "Re-simulated − logged, over the episodes taken up",
        "Paired; mean draw: re-simulated. p: signs flipped by task, exact unless marked ~, "
        "with Holm's correction over all rows." + absent(row.difference for _, row in rows),
        [
            *("benchmark", "condition", "outcome", "pairs", "logged", "mean draw"),
            *("difference", "p"),
        ],
        [
            (
                *(cell.benchmark, cell.condition, OUTCOME_NAMES[row.outcome]),
                *(getattr(row.difference, "n", 0), plain(row.continued_logged)),
                plain(row.continued_resimulated),
                *(estimate(row.difference, signed=True), p_words(row)),
            )
            for cell, row in rows
        ],
    )


def _moves_table(cells: Sequence[BranchCell]) -> Table | None:
    rows = [(cell, move) for cell in cells for move in cell.moves]
    return table(
        "branch-moves",
        "Where the draws left the logged path",
        f"{len(rows)} ways, those of most draws first.",
        ["benchmark", "condition", "logged winner", "re-simulated winner", "turn", "draws"],
        [
            (cell.benchmark, cell.condition, m.before or "–", m.after or "–", m.turn, m.draws)
            for cell, m in sorted(rows, key=lambda row: -row[1].draws)
        ],
    )


def _paths(found: BranchComparison) -> Iterator[str]:
    taken_up = [path for path in found.paths if path.continuations]
    if not taken_up:
        return
    yield f"Success of the {len(taken_up)} episodes taken up:"
    for path in taken_up[:LISTED]:
        draws = ", ".join(_whole(value) for value in path.draws["success"])
        yield (
            f"  {path.episode_id}: from turn {path.turn}; logged "
            f"{_whole(path.logged['success'])} [logged]; draws {draws}, mean {_mean(path)} "
            "[re-simulated]"
        )
    if len(taken_up) > LISTED:
        yield f"  and {len(taken_up) - LISTED} more; --json has them all"
    yield "Both futures of one: `tutorsim show NEW EPISODE --beside PARENT`."


def _whole(value: float | None) -> str:
    return "–" if value is None else f"{value:.0f}"


def _mean(path: BranchedPath) -> str:
    value = path.resimulated["success"]
    return "not estimable from a single draw" if isinstance(value, NotEstimable) else f"{value:.2f}"


def _calls_table(
    cells: Sequence[BranchCell], dollars: Sequence[float | None], prices_as_of: str
) -> Table | None:
    return table(
        "branch-calls",
        "Calls of the episodes taken up",
        "Taken over: answered by the parent's recording. Paid for: the others; where the logs "
        "leave it in doubt a call counts as paid for. Tokens and US$, at list prices of "
        f"{prices_as_of}: of the calls paid for.",
        ["benchmark", "condition", "taken over", "paid for", "tokens in", "tokens out", "US$"],
        [
            (
                *(cell.benchmark, cell.condition, cell.calls.reused, cell.calls.paid),
                *(*cell.calls.total, "unknown" if cost is None else f"{cost:.2f}"),
            )
            for cell, cost in zip(cells, dollars, strict=True)
        ],
    )
