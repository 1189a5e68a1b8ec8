"""The plan of a branch in the terminal."""

from collections.abc import Iterator

from rich.console import RenderableType
from rich.text import Text

from tutorsim.cli.output_elements import Prose, caption, heading, number, table
from tutorsim.runner.branching import BranchPlan, EpisodePlan
from tutorsim.systems import CallRange

__all__ = ["branch_plan_shown", "calls_to_pay_shown"]

LISTED = 12
"""Episodes of a plan listed in the terminal; JSON has them all."""


def branch_plan_shown(
    question: str, planned: BranchPlan, left_open: int
) -> Iterator[RenderableType]:
    """A plan for the terminal.

    Args:
        question: The alternative in words.
        planned: The plan.
        left_open: Episodes that it does not take up.
    """
    yield heading(f"Branch: {question}")
    taken_up = len(planned.episodes)
    yield Prose(
        f"Episodes: {planned.covered:,} cannot change and are kept as logged, {taken_up:,} are "
        f"taken up again" + (f", {left_open:,} are left open." if left_open else "."),
        indent=2,
    )
    yield Prose(f"Calls taken over from the recording: {planned.reused:,}, at no cost", indent=2)
    yield Prose(f"Calls to pay: {calls_to_pay_shown(planned.calls)}", indent=2)
    asked, answered = planned.tokens
    yield Prose(
        f"Estimated: at most {asked:,} tokens in, {answered:,} out; "
        f"{_money(planned.least_cost, planned.cost)} (prices of {planned.prices_as_of})",
        indent=2,
    )
    if planned.expected_cost is not None:
        length = "halfway" if planned.share is None else f"{100 * planned.share:.0f} % of the way"
        yield Prose(
            f"Expected: {planned.expected_cost:,.3f} US dollars, {length} from the shortest to the "
            "longest path, as the recorded episodes are",
            indent=2,
        )
    if not planned.episodes:
        return
    yield Text()
    yield heading("Episodes", "those first that shrink the outcome bounds most per dollar")
    yield table(
        ("episode", "from turn", "first paid call", "taken over", "to pay", "US $", "bounds −"),
        [_row(plan) for plan in planned.episodes[:LISTED]],
    )
    if taken_up > LISTED:
        yield Prose(f"and {taken_up - LISTED} more; --json has them all", indent=2)
    yield caption(
        "To pay: fewest to most calls, every reply read at the first asking. Bounds −: by how "
        "much the worst-case bounds of the episode's benchmark and condition can shrink, in "
        "percentage points. Tokens and cost: estimates from the recorded calls."
    )


def _row(plan: EpisodePlan) -> tuple[str, ...]:
    return (
        plan.episode_id,
        str(plan.turn),
        plan.first_paid or "none",
        f"{plan.reused:,}",
        f"{plan.calls.least:,} to {plan.calls.most:,}",
        _amounts(plan.least_cost, plan.cost),
        number(100 * plan.shrinks, 1),
    )


def calls_to_pay_shown(calls: CallRange) -> str:
    """A range of calls in words."""
    exact = (
        f"{calls.least:,}" if calls.least == calls.most else f"{calls.least:,} to {calls.most:,}"
    )
    return f"{exact}; at most {calls.ceiling:,} if every reply had to be asked for twice"


def _money(least: float | None, most: float | None) -> str:
    known = least is not None and most is not None
    return f"{_amounts(least, most)} US dollars" if known else "cost unknown: no price for a model"


def _amounts(least: float | None, most: float | None) -> str:
    return "unknown" if least is None or most is None else f"{least:,.3f} to {most:,.3f}"
