"""From evidence to figures: frames in the shape that each chart takes."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Final

import polars as pl

from tutorsim.analysis.charts.decision_steps import decided_figure, movement_figure
from tutorsim.analysis.charts.fallback_orders import orders_figure, span_figure
from tutorsim.analysis.charts.figure import Figure, absent
from tutorsim.analysis.charts.noise_floor import noise_figure
from tutorsim.analysis.charts.other_rules import UNSETTLED, agreement_figure, identification_figure
from tutorsim.analysis.charts.student_outcomes import personas_figure, scores_figure
from tutorsim.analysis.report.report_inputs import Evidence
from tutorsim.analysis.report.voters import labels_figure, margins_figure, pivotal_figure
from tutorsim.analysis.statistics.intervals_and_tests import Estimate, NotEstimable

__all__ = ["CHART_NAMES", "FIGURES"]


_NO_EPISODES: Final = "ballots from elsewhere do not say what became of the students."


def _scores(evidence: Evidence) -> Figure:
    run = evidence.source.run
    if run is None:
        return absent("scores", f"No scores by turn: {_NO_EPISODES}")
    frame = evidence.scores
    known = frame.filter(pl.col("mean").is_not_null())
    tasks = Counter(b for b, _ in {(e.benchmark, e.task_id) for e in evidence.source.episodes})
    fewest = min(tasks.values(), default=0)
    return scores_figure(known, max_turns=run.panel.max_turns, tasks=fewest, held=evidence.held)


def _personas(evidence: Evidence) -> Figure:
    run = evidence.source.run
    if run is None:
        return absent("personas", f"No success by persona: {_NO_EPISODES}")
    rows = [
        (s.benchmark, s.persona, s.condition, s.successes, *_known(s.rate))
        for s in evidence.successes
    ]
    frame = _frame(
        rows,
        benchmark=pl.String,
        persona=pl.String,
        condition=pl.String,
        successes=pl.Int64 if all(isinstance(row[3], int) for row in rows) else pl.Float64,
        n=pl.Int64,
        rate=pl.Float64,
    )
    return personas_figure(
        frame,
        personas=run.panel.personas,
        conditions=run.panel.conditions,
        held=evidence.held,
    )


def _known(rate: Estimate | NotEstimable) -> tuple[int, float | None]:
    return (rate.n, rate.value) if isinstance(rate, Estimate) else (0, None)


def _decided(evidence: Evidence) -> Figure:
    counts = {d.protocol: d.decided_by for d in evidence.diagnostics}
    rows = [(p, step, n) for p in counts for step, n in counts[p].items()]
    frame = _frame(rows, protocol=pl.String, decided_by=pl.String, turns=pl.Int64)
    return decided_figure(frame, held=evidence.held)


def _movement(evidence: Evidence) -> Figure:
    cells = (
        evidence.turns.filter(
            pl.col("initial_leader").is_not_null() & pl.col("winner").is_not_null()
        )
        .rename({"initial_leader": "leader"})
        .group_by("protocol", "leader", "winner", maintain_order=True)
        .agg(turns=pl.len().cast(pl.Int64))
    )
    return movement_figure(
        cells,
        candidates=evidence.candidates,
        by_chance=_flip_by_chance(evidence),
        ordered=not evidence.unordered,
        held=evidence.held,
    )


def _flip_by_chance(evidence: Evidence) -> float | None:
    """The expected flip over all protocols; `None` where one of them has none."""
    expected = [(c.flip_expected, c.turns) for c in evidence.chance if c.turns]
    known = [(flip, n) for flip, n in expected if not isinstance(flip, NotEstimable)]
    if not known or len(known) < len(expected):
        return None
    return sum(flip * n for flip, n in known) / sum(n for _, n in known)


def _noise(evidence: Evidence) -> Figure:
    """Flip and shift as logged beside the re-asked ones."""
    found = evidence.noise
    if isinstance(found, NotEstimable):
        return noise_figure(pl.DataFrame(), without="each vote was asked for once")
    rows = [
        (row.form, row.quantity, source, row.turns, figure.value, figure.low, figure.high)
        for row in found.beside
        if row.quantity != "flip_set"
        for source, figure in (("logged", row.logged), ("re-asked", row.floor))
        if isinstance(figure, Estimate)
    ]
    frame = _frame(
        rows,
        protocol=pl.String,
        quantity=pl.String,
        source=pl.String,
        turns=pl.Int64,
        value=pl.Float64,
        low=pl.Float64,
        high=pl.Float64,
    )
    return noise_figure(frame)


def _orders(evidence: Evidence) -> Figure:
    found = evidence.orders
    if found.turns and not found.logged_order:
        return absent(
            "orders",
            "No order is logged, so none can be changed; the span of each candidate's wins over "
            "all orders follows.",
        )
    if found.turns and not found.listed:
        return absent(
            "orders",
            f"{found.orders:,} orders of {len(found.candidates)} candidates are too many to list "
            f"one by one; the span of each candidate's wins follows without listing them.",
        )
    rows = [
        (list(row.order), candidate, wins, row.changed)
        for row in found.listed
        for candidate, wins in row.wins.items()
    ]
    frame = pl.DataFrame(
        rows,
        schema={
            "order": pl.List(pl.String),
            "candidate": pl.String,
            "wins": pl.Int64,
            "changed": pl.Int64,
        },
        orient="row",
    )
    return orders_figure(frame, logged=found.logged_order, turns=found.turns)


def _wins(evidence: Evidence) -> Figure:
    found = evidence.orders
    rows = [
        (c.candidate, c.logged, c.least, c.most, c.expected.value, c.robust)
        for c in found.candidates
    ]
    frame = _frame(
        rows,
        candidate=pl.String,
        logged=pl.Int64,
        fewest=pl.Int64,
        most=pl.Int64,
        expected=pl.Float64,
        robust=pl.Int64,
    )
    return span_figure(frame, orders=found.orders, turns=found.turns)


def _agreement(evidence: Evidence) -> Figure:
    open_ties = {
        (r.logged_protocol, r.target): r.agreement for r in evidence.rule_rows if r.reading == "set"
    }
    rows = [
        (
            r.logged_protocol,
            r.target,
            n,
            r.agreement.lower / n,
            r.agreement.upper / n,
            None if r.agreement.point is None else r.agreement.point / n,
            open_ties[r.logged_protocol, r.target].lower / n,
            open_ties[r.logged_protocol, r.target].upper / n,
            r.projection,
        )
        for r in evidence.rules
        if (n := r.turns if r.compared is None else r.compared)
    ]
    frame = _frame(
        rows,
        logged=pl.String,
        target=pl.String,
        turns=pl.Int64,
        lower=pl.Float64,
        upper=pl.Float64,
        point=pl.Float64,
        lower_open=pl.Float64,
        upper_open=pl.Float64,
        projection=pl.String,
    )
    return agreement_figure(frame, ordered=not evidence.unordered, without=evidence.no_winner)


def _identification(evidence: Evidence) -> Figure:
    rows = []
    for r in evidence.rules:
        counts = {str(size): n for size, n in sorted(r.widths.items())}
        counts[UNSETTLED] = r.not_settled
        rows += [
            (r.logged_protocol, r.target, size, n, n / r.turns) for size, n in counts.items() if n
        ]
    frame = _frame(
        rows,
        logged=pl.String,
        target=pl.String,
        possible=pl.String,
        turns=pl.Int64,
        share=pl.Float64,
    )
    return identification_figure(frame, ordered=not evidence.unordered)


FIGURES: Final[Mapping[str, Callable[[Evidence], Figure | None]]] = {
    "scores": _scores,
    "personas": _personas,
    "decided-by": _decided,
    "movement": _movement,
    "noise": _noise,
    "orders": _orders,
    "wins": _wins,
    "agreement": _agreement,
    "identification": _identification,
    "margins": margins_figure,
    "pivotal": pivotal_figure,
    "labels": labels_figure,
}
"""Every chart by name, in the report's order. Each says why, if there is nothing to draw."""


CHART_NAMES: Final = tuple(FIGURES)


def _frame(rows: Sequence[tuple[object, ...]], **schema: type[pl.DataType]) -> pl.DataFrame:
    return pl.DataFrame(rows, schema=schema, orient="row")
