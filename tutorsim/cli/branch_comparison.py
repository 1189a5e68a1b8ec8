"""A branch beside the recording that it continues, as tables."""

from collections.abc import Callable, Iterator, Sequence
from math import fsum

from rich.console import RenderableType
from rich.text import Text

from analysis.branches import BranchCell, BranchComparison, BranchedPath, BranchOutcome
from analysis.metrics.outcomes import Outcome
from analysis.statistics import Bounds, Interval, NotEstimable
from tutorsim.cli.figures import bounds, estimate, p_value, plain_figure, signed
from tutorsim.cli.render import (
    NOT_ESTIMABLE,
    Pair,
    Prose,
    caption,
    heading,
    number,
    percent,
    table,
)
from tutorsim.plan import PriceTable, load_prices

__all__ = ["branch_shown"]

Shown = Iterator[RenderableType]
Unit = Callable[[float], str]

LISTED = 8
"""Episodes and ways of leaving the path listed in the terminal; JSON has them all."""

TITLES: dict[Outcome, str] = {
    "success": "Success",
    "final_score": "Final judge score",
    "final_code": "Tests passed at the end",
}
SHORT: dict[Outcome, str] = {"success": "success", "final_score": "score", "final_code": "tests"}


def branch_shown(found: BranchComparison) -> Shown:
    """Logged, bounded and re-simulated figures, each in a column of its own."""
    if not found.cells:
        yield Prose("The parent has no episode with a panel.")
        return
    draws = "1 draw" if found.continuations == 1 else f"{found.continuations} draws"
    yield heading(f"Branch under {found.changes}", f"{draws} of each episode taken up")
    yield _episodes(found.cells)
    yield caption(
        "Episodes: with a panel, complete in the parent. Taken up: re-simulated, with a complete "
        "draw. Open: neither covered nor taken up. Left path: share of the episodes taken up that "
        "another winner led away, by their draws."
    )
    for name, title in TITLES.items():
        yield from _outcome(found, name, title)
    yield caption(
        "Logged: the parent. Bounds: the parent's, every uncovered outcome 0 or 1. Re-simulated: "
        "covered outcomes as logged, and the mean draw of each episode taken up; what is left "
        f"open is 0 or 1. {_interval_words(found)} Width: of the bounds, and of what is left."
    )
    yield from _differences(found)
    yield from _moves(found.cells)
    yield from _paths(found)
    yield from _cost(found.cells)
    yield Text()
    yield caption(found.caption)


def _interval_words(found: BranchComparison) -> str:
    words = "“a to b” beside or below it: a 95 % interval that resamples tasks"
    if found.continuations == 1:
        return (
            f"{words}, without the variation within an episode: a single draw is not what would "
            "have happened."
        )
    return f"{words} and the draws within an episode."


def _episodes(cells: Sequence[BranchCell]) -> RenderableType:
    return table(
        (
            *("benchmark", "condition", "episodes", "covered", "taken up", "open", "draws"),
            "left path %",
        ),
        [
            (
                cell.benchmark,
                cell.condition,
                *(f"{n:,}" for n in (cell.episodes, cell.covered, cell.continued, cell.left_out)),
                f"{cell.draws:,}" + (f" (+{cell.failed:,} failed)" if cell.failed else ""),
                plain_figure(cell.left, unit=percent),
            )
            for cell in cells
        ],
        left=2,
    )


def _outcome(found: BranchComparison, name: Outcome, title: str) -> Shown:
    rows = [(cell, row) for cell in found.cells for row in cell.outcomes if row.outcome == name]
    if not rows:
        return
    unit = _unit(name)
    yield Text()
    yield heading(title, "all episodes with a panel" + (", in %" if unit is percent else ""))
    yield table(
        ("benchmark", "condition", "logged", "bounds", "re-simulated", "width", "width left"),
        [
            (
                cell.benchmark,
                cell.condition,
                plain_figure(row.logged, unit=unit),
                bounds(row.before, unit=unit),
                _resimulated(row, unit),
                _width(row.before, unit),
                _width(row.after, unit),
            )
            for cell, row in rows
        ],
        left=2,
    )


def _unit(name: Outcome) -> Unit:
    return number if name == "final_score" else percent


def _resimulated(row: BranchOutcome, unit: Unit) -> Pair:
    shown = bounds(row.after, unit=unit)
    if isinstance(row.after, NotEstimable) or not isinstance(row.interval, Interval):
        return shown
    return Pair(shown.figure, f"{unit(row.interval.low)} to {unit(row.interval.high)}")


def _width(found: Bounds | NotEstimable, unit: Unit) -> Pair:
    if isinstance(found, NotEstimable):
        return Pair(NOT_ESTIMABLE, why_not=found.reason)
    return Pair(unit(found.high - found.low))


def _differences(found: BranchComparison) -> Shown:
    rows = [(cell, row) for cell in found.cells if cell.continued for row in cell.outcomes]
    yield Text()
    yield heading("Re-simulated − logged", "paired, over the episodes taken up")
    yield table(
        ("benchmark", "condition", "outcome", "pairs", "logged", "mean draw", "difference", "p"),
        [
            (
                cell.benchmark,
                cell.condition,
                SHORT[row.outcome],
                str(getattr(row.difference, "n", 0)),
                plain_figure(row.continued_logged),
                plain_figure(row.continued_resimulated),
                estimate(row.difference, unit=signed),
                p_value(row.test, row.p_holm),
            )
            for cell, row in rows
        ],
        left=3,
    )
    yield caption(
        "Score: the judge's at the end. Tests: passed at the end. Mean draw: re-simulated. p: "
        "permutation of whole pairs, Holm's correction over all rows."
    )


def _moves(cells: Sequence[BranchCell]) -> Shown:
    rows = [(cell, move) for cell in cells for move in cell.moves]
    yield Text()
    yield heading("Where the draws left the logged path", f"ways: {len(rows)}")
    yield table(
        ("benchmark", "condition", "logged winner", "re-simulated winner", "turn", "draws"),
        [
            (
                cell.benchmark,
                cell.condition,
                m.before or "–",
                m.after or "–",
                str(m.turn),
                f"{m.draws:,}",
            )
            for cell, m in sorted(rows, key=lambda row: -row[1].draws)[:LISTED]
        ],
        left=4,
    )
    if len(rows) > LISTED:
        yield Prose(f"and {len(rows) - LISTED} more; --json has them all", indent=2)


def _paths(found: BranchComparison) -> Shown:
    taken_up = [path for path in found.paths if path.continuations]
    yield Text()
    yield heading("Episodes taken up", f"{len(taken_up)}, success")
    for path in taken_up[:LISTED]:
        yield Prose(path.episode_id, indent=2)
        yield Prose(
            f"from turn {path.turn}; logged {number(path.logged['success'], 0)} [logged]; draws "
            f"{', '.join(number(value, 0) for value in path.draws['success'])}, mean "
            f"{_mean(path)} [re-simulated]",
            indent=4,
        )
    if len(taken_up) > LISTED:
        yield Prose(f"and {len(taken_up) - LISTED} more; --json has them all", indent=2)
    if taken_up:
        yield caption("Both futures of one: `tutorsim show NEW EPISODE --beside PARENT`.")


def _mean(path: BranchedPath) -> str:
    value = path.resimulated["success"]
    return "not estimable from a single draw" if isinstance(value, NotEstimable) else number(value)


def _cost(cells: Sequence[BranchCell]) -> Shown:
    yield Text()
    prices = load_prices()
    yield heading("Calls", "of the episodes taken up")
    yield table(
        ("benchmark", "condition", "taken over", "paid for", "tokens in", "tokens out", "US$"),
        [
            (
                cell.benchmark,
                cell.condition,
                *(f"{n:,}" for n in (cell.calls.reused, cell.calls.paid)),
                *(f"{n:,}" for n in cell.calls.total),
                _dollars(cell, prices),
            )
            for cell in cells
        ],
        left=2,
    )
    yield caption(
        "Taken over: answered by the parent's recording. Paid for: the others; where the logs "
        "leave it in doubt a call counts as paid for. Tokens and US$, at list prices of "
        f"{prices.as_of}: of the calls paid for."
    )


def _dollars(cell: BranchCell, prices: PriceTable) -> str:
    """What the calls paid for come to; `unknown` where a model has no price."""
    costs = [prices.cost(model, *tokens) for model, tokens in cell.calls.tokens.items()]
    known = [cost for cost in costs if cost is not None]
    return f"{fsum(known):.2f}" if len(known) == len(costs) else "unknown"
