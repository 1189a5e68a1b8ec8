"""Tables of an audit: what delivered replies do, and what other rules would have delivered."""

from collections.abc import Iterator
from typing import Any

from tutorsim.analysis.counting.rule_definitions import TARGETS, conventions_of
from tutorsim.analysis.report.document import Table
from tutorsim.analysis.statistics.intervals_and_tests import Estimate
from tutorsim.analysis.systems.oversight.delivered_guidance import (
    Predicted,
    delivered_shares,
    score_changes,
)
from tutorsim.analysis.systems.oversight.run_inputs import Evidence, interval_text
from tutorsim.analysis.systems.oversight.score_tables import frame

__all__ = ["change_table", "delivered_table", "rules_table"]


def delivered_table(evidence: Evidence) -> Table | None:
    """Shares of delivered replies that guide, hint, give away and see the mistake."""
    rows = [
        {
            "labelled_by": condition,
            "by": found.grouping,
            "group": found.group,
            "replies": found.replies,
            "unjudged": found.unjudged,
            **{name: interval_text(share) for name, share in found.shares.items()},
        }
        for condition, records in evidence.conditions.items()
        for found in delivered_shares(records, seed=evidence.seed)
    ]
    if not rows:
        return None
    return Table(
        "delivered",
        "What the delivered replies do",
        "Shares of the judged replies: guide (2), hint (1), give away or give no help (0), and "
        "identify the mistake. In brackets, intervals at 95 % from a bootstrap over tasks, if they "
        "are enough.",
        frame(rows),
    )


def change_table(evidence: Evidence) -> Table | None:
    """What followed in the student's next score."""
    rows: list[dict[str, Any]] = [
        {
            "labelled_by": condition,
            "guidance": guidance,
            "replies": change.n,
            "next_score_minus_this": interval_text(change),
        }
        for condition, records in evidence.conditions.items()
        for guidance, change in score_changes(records, seed=evidence.seed).items()
        if isinstance(change, Estimate)
    ]
    if not rows:
        return None
    caption = "As logged. A link and no cause: whoever needs help gets other replies."
    return Table("after", "What followed the delivered replies", caption, frame(rows))


def rules_table(evidence: Evidence) -> Table | None:
    """What other rules would have delivered, from an audit of all proposals."""
    rows = [row for condition, found in evidence.predicted for row in _rule_rows(condition, found)]
    if not rows:
        return None
    return Table(
        "rules",
        "What other rules would have delivered",
        "The first row of each format is what was delivered. For every turn and rule the recount "
        "of the run says which proposals could have won; the label of what it would have delivered "
        "is among theirs. Sums over turns are ranges, not intervals of chance; `one_winner` counts "
        "turns with one possible winner. The logged dialogue is held fixed, ties stay open, and a "
        f"proposal without a label could have any. {conventions_of(TARGETS)}",
        frame(rows),
    )


def _rule_rows(condition: str, found: Predicted) -> Iterator[dict[str, Any]]:
    """A row for a rule; before the first rule of a format, one for what was delivered."""
    place = {"labelled_by": condition, "voted_in": found.logged}
    if found.rule == found.first_rule:
        shown = {name: _range(ends) for name, ends in found.delivered.items()}
        yield {**place, "rule": "(delivered)", "turns": found.turns, "one_winner": None, **shown}
    shown = {name: _range(ends) for name, ends in found.shares.items()}
    row = {"rule": found.rule, "turns": found.turns, "one_winner": found.identified}
    yield {**place, **row, **shown}


def _range(ends: tuple[float, float]) -> str:
    low, high = ends
    return f"{low:.2f}" if low == high else f"{low:.2f} to {high:.2f}"
