"""Tables of what the debate did, what other aggregations give, and what it cost."""

from typing import Any

from tutorsim.analysis.report.document import Table
from tutorsim.analysis.statistics.intervals_and_tests import PermutationTest
from tutorsim.analysis.systems.oversight.debate_diagnostics import (
    Share,
    brier,
    debate_shares,
    phases,
    severity_errors,
    sycophancy,
)
from tutorsim.analysis.systems.oversight.other_aggregations import (
    RULES,
    Aggregated,
)
from tutorsim.analysis.systems.oversight.run_inputs import Evidence, interval_text
from tutorsim.analysis.systems.oversight.score_tables import frame
from tutorsim.analysis.systems.oversight.scored_items import Pair, changed_labels, logged_pair
from tutorsim.analysis.systems.oversight.scores_by_group import differences, evaluate
from tutorsim.records.oversight import OversightRecord

__all__ = [
    "adaptive_table",
    "aggregation_table",
    "calibration_table",
    "cost_table",
    "diagnostics_table",
]

_MOST_POINTS = 24
"""Rows of the adaptive curve that a table shows."""


def aggregation_table(evidence: Evidence) -> Table | None:
    """Other ways to put the logged opinions together."""
    table: list[dict[str, Any]] = []
    for condition, records in evidence.debated.items():
        rows = evidence.aggregated[condition]
        logged = [logged_pair(record) for record in records]
        groups = evidence.under_rules(condition)
        found = evaluate(groups, seed=evidence.seed, over=evidence.over, metrics=["headline"])
        tests = {
            row.first: row
            for row in differences(groups, seed=evidence.seed, against="lead")
            if row.items
        }
        for rule in RULES:
            row: dict[str, Any] = {
                "condition": condition,
                "rule": rule,
                **_changes(logged, [labels[rule] for labels in rows]),
            }
            if rule in found:
                row["headline"] = interval_text(found[rule].metrics["headline"])
            test = tests[rule].test if rule in tests else None
            if isinstance(test, PermutationTest):
                row |= {"difference": test.difference, "p_holm": tests[rule].p_holm}
            table.append(row)
    if not table:
        return None
    return Table(
        "aggregation",
        "Other ways to put the opinions together",
        "Exact, from the labels that critics, judge, stress tester and lead stated; `lead` is what "
        "was logged. `changed` counts labels, two an item. A tie goes to the lead's label. An "
        "agent that states no confidence has half a vote under `confidence_weighted`. Difference "
        "of the headline to the logged one, paired, corrected by Holm.",
        frame(table),
    )


def _changes(logged: list[Pair], found: list[Aggregated]) -> dict[str, int]:
    pairs = [(one.mistake, one.guidance) for one in found]
    return {
        "items": len(pairs),
        "changed": changed_labels(logged, pairs),
        "ties": sum(one.ties for one in found),
        "unjudged": sum(None in pair for pair in pairs),
    }


def adaptive_table(evidence: Evidence) -> Table | None:
    """The adaptive debate at thresholds from full debate to none."""
    curve = evidence.adaptive
    if curve is None:
        return None
    points = curve.points
    step = max(1, -(-len(points) // _MOST_POINTS))
    shown = [p for i, p in enumerate(points) if i % step == 0 or i + 1 == len(points)]
    rows = [
        {
            "skip_above": point.threshold,
            "skipped": point.skipped,
            "share_skipped": point.skipped / curve.items,
            "calls_saved": point.calls_saved,
            "tokens_saved": point.tokens_saved,
            "headline": None if point.headline != point.headline else point.headline,
        }
        for point in shown
    ]
    return Table(
        "adaptive",
        "What an adaptive debate would have been",
        f"Exact for every threshold: the debate is skipped if the quick confidence is above it. "
        f"{curve.items} items, {len(points)} different outcomes, {len(shown)} of them shown. Above "
        "1 nothing is skipped; below every stated confidence the quick labels stand.",
        frame(rows),
    )


def diagnostics_table(evidence: Evidence) -> Table | None:
    """Shares of what happened in debates."""
    rows = [
        {
            "condition": name,
            "what": share.name,
            "share": share.share,
            "count": share.hits,
            "of": share.of,
        }
        for name, records in evidence.conditions.items()
        for share in _shares(records)
    ]
    if not rows:
        return None
    return Table(
        "diagnostics",
        "What happened in the debates",
        "Each share with its count and what it is of. Sides are shown in an order drawn by hash.",
        frame(rows),
    )


def _shares(records: list[OversightRecord]) -> list[Share]:
    blind = sycophancy(records)
    return [
        *debate_shares(records),
        *severity_errors(records),
        *([blind] if blind.of else []),
    ]


def calibration_table(evidence: Evidence) -> Table | None:
    """The lead's stated confidence against both labels being right."""
    rows = [
        {
            "condition": name,
            "confidence": f"{bin_.low:.1f} to {bin_.high:.1f}",
            "items": bin_.items,
            "mean_confidence": bin_.stated,
            "both_right": bin_.right,
        }
        for name, bins in evidence.calibrations.items()
        for bin_ in bins
    ]
    if not rows:
        return None
    scores = {name: brier(records) for name, records in evidence.conditions.items()}
    listed = ", ".join(f"{name} {score:.3f}" for name, score in scores.items() if score is not None)
    return Table(
        "calibration",
        "Confidence of the lead",
        f"Right means both labels. Brier score (0 is best): {listed}. Unjudged items state none.",
        frame(rows),
    )


def cost_table(evidence: Evidence) -> Table | None:
    """Calls and tokens by condition and phase."""
    rows = [
        {
            "condition": name,
            "phase": phase.phase,
            "calls": phase.calls,
            "calls_per_item": phase.calls / len(records),
            "input_tokens": phase.input_tokens,
            "output_tokens": phase.output_tokens,
        }
        for name, records in evidence.conditions.items()
        for phase in phases(records)
    ]
    if not rows:
        return None
    caption = "Second askings are counted in their phase. A log has no times."
    return Table("cost", "Calls and tokens by phase", caption, frame(rows))
