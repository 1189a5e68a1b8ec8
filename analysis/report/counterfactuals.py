"""The report's tables of what other orders, electorates, rules and thresholds would have given."""

from collections.abc import Sequence

from analysis.charts import CASCADE
from analysis.invariance import invariance_words
from analysis.report.cells import BENCHMARKS, DASH, bounds, bounds_of, part_of, table
from analysis.report.document import Table
from analysis.report.evidence import Evidence
from analysis.statistics import Bounds, Estimate, NotEstimable
from tutorsim.types import PROTOCOLS

__all__ = [
    "dial_table",
    "divergence_table",
    "electorates_table",
    "policies_table",
    "readings_table",
    "threshold_table",
]


def dial_table(evidence: Evidence) -> Table | None:
    """Turns with one possible winner as voters are exempt from the assumption."""
    rows = []
    exempt = evidence.recount.exempt
    for logged, target in _pairs(evidence):
        found = {
            r.exempt: r
            for r in evidence.recount.rules
            if (r.logged_protocol, r.target, r.reading) == (logged, target, "fallback")
        }
        rows.append(
            (
                logged,
                target,
                *(part_of(found[k].identified, found[k].turns) for k in exempt),
                *(part_of(found[k].agreement.lower, found[k].turns) for k in exempt),
            )
        )
    return table(
        "dial",
        "What is left when voters are exempt",
        f"Recounted. {invariance_words(evidence.invariance)} With "
        "k voters exempt, any k of them may have cast any ballot at all under the other protocol; "
        "the breakdown point of a turn is the smallest k at which its one possible winner is "
        "lost. Ties go to the order. "
        f"{CASCADE}",
        [
            "logged",
            "counted as",
            *(f"one possible winner, k = {k}" for k in exempt),
            *(f"logged winner certain, k = {k}" for k in exempt),
        ],
        rows,
    )


def _pairs(evidence: Evidence) -> list[tuple[str, str]]:
    return [
        (r.logged_protocol, r.target)
        for r in evidence.rules
        if r.target in PROTOCOLS and r.target != r.logged_protocol and r.turns
    ]


_POLICIES = {
    "no_tie_round": "no tie round, the order at once",
    "random": "a lot instead of the order",
    "random_no_tie_round": "no tie round, a lot at once",
}


def policies_table(evidence: Evidence) -> Table | None:
    """Wins under other ways to break ties, expected ones where a lot is drawn."""
    found = [r for r in evidence.recount.policies if r.protocol is None and r.turns]
    rows = [
        (
            _POLICIES.get(r.policy, "as logged"),
            f"{r.changed.value:.1f}",
            *(f"{r.wins[c].value:.1f}" for c in evidence.candidates),
        )
        for r in found
        if r.policy in _POLICIES or r.policy == "logged"
    ]
    return table(
        "policies",
        "Other ways to break ties",
        f"Turns whose winner changes, and turns won per candidate, of "
        f"{evidence.turns.height:,} turns: as logged in the row of that name, recounted in the "
        f"others; expectations where a lot is drawn. Exact. {CASCADE}",
        ["tie policy", "turns changed", *(f"wins of {c}" for c in evidence.candidates)],
        rows,
    )


_SCENARIOS = {
    "without_deliberation": "the first vote decides",
    "leave_one_out": "without one voter",
    "no_own_votes": "no votes for one's own draft",
    "confidence_weighted": "votes weighted by stated confidence",
}


def electorates_table(evidence: Evidence) -> Table | None:
    """Winners that change when other ballots, or fewer, are counted."""
    rows = [
        (
            f"without {r.voter}" if r.voter else _SCENARIOS[r.scenario],
            r.turns,
            r.not_computable,
            bounds_of(r.changed.lower, r.changed.upper),
            r.changed.point,
        )
        for r in evidence.recount.electorates
        if r.protocol is None and r.turns
    ]
    return table(
        "electorates",
        "Other electorates",
        "Recounted: turns whose winner changes. Bounds leave ties open that nobody was asked to "
        "vote on; the last column lets the role-priority order decide them. Left out: turns that "
        f"lack a first vote, the voter or a stated confidence. {CASCADE}",
        ["counted", "turns", "left out", "winners changed", "ties to the order"],
        rows,
    )


def readings_table(evidence: Evidence) -> Table | None:
    """Winners when the raw replies are read more strictly or more leniently."""
    rows = [
        (
            r.reading,
            r.turns,
            f"{r.ballots_changed} of {r.ballots}",
            r.abstained,
            bounds_of(r.changed.lower, r.changed.upper),
        )
        for r in evidence.recount.readings
        if r.protocol is None
    ]
    return table(
        "readings",
        "Ballots read again",
        "The raw replies of the recording, read by a stricter and by a more lenient reader; runs "
        f"use the standard one. {CASCADE}",
        ["reading", "turns", "ballots read otherwise", "unreadable ballots", "winners changed"],
        rows,
    )


def divergence_table(evidence: Evidence) -> Table | None:
    """First divergent turns, coverage, and bounds of success where outcomes are known."""
    known = evidence.source.run is not None
    rows = []
    for found in evidence.divergences:
        paths = found.episodes.get_column("path").to_list()
        counts = [paths.count(path) for path in ("covered", "possible", "divergent")]
        success = [_pooled([c.bounds["success"] for c in found.coverage])] if known else []
        if paths:
            rows.append((found.question, len(paths), *counts, *success))
    logged = f"success: {_logged_success(evidence)} as logged, bounds"
    return table(
        "divergence",
        "How far the recording speaks for another rule",
        "Episodes with a panel. Covered: no turn can have another winner, so the logged outcome "
        "is the alternative's too; any other episode leaves the log at its first turn that "
        "diverges. Success is the share of all these episodes; its bounds let every outcome after "
        "a turn that may diverge be a success or none.",
        [
            "alternative",
            "episodes",
            "covered",
            "may diverge",
            "diverge for certain",
            *([logged] if known else []),
        ],
        rows,
    )


def threshold_table(evidence: Evidence) -> Table | None:
    """Success rates under other thresholds."""
    if not evidence.thresholds:
        return None
    cells: dict[tuple[str, str], list[str]] = {}
    for found in evidence.thresholds.values():
        for at in found:
            row = cells.setdefault((at.benchmark, at.condition), [str(at.episodes)])
            row.append(bounds(at.success))
    own = evidence.source.run.study.success_threshold if evidence.source.run else None
    heads = [f"at {t:g}, {'logged' if t == own else 'recounted'}" for t in evidence.thresholds]
    rows = [(BENCHMARKS[b], condition, *row) for (b, condition), row in cells.items()]
    return table(
        "thresholds",
        "Success under another threshold",
        "Share of complete episodes. Exact for thresholds at or below the logged one: an episode "
        "ends at its first attempt that reaches it. Above, an episode that ended as a success "
        "may have gone on, and the bounds let it end either way.",
        ["tasks", "condition", "episodes", *heads],
        rows,
    )


def _logged_success(evidence: Evidence) -> str:
    """Of the panels' episodes with a known end."""
    panels = [s for s in evidence.successes if s.condition != "baseline"]
    n = sum(s.rate.n for s in panels if isinstance(s.rate, Estimate))
    return f"{sum(s.successes for s in panels) / n:.2f}" if n else DASH


def _pooled(cells: Sequence[Bounds | NotEstimable]) -> str:
    known = [cell for cell in cells if isinstance(cell, Bounds)]
    n = sum(cell.n for cell in known)
    if not n:
        return DASH
    low, high = (sum(getattr(c, end) * c.n for c in known) / n for end in ("low", "high"))
    return bounds(Bounds(low, high, n))
