"""From a panel's evidence to its charts: frames in the shape that each takes, and students'."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Final

import altair as alt
import polars as pl

from tutorsim.analysis.charts.figure import (
    ACCENT,
    INK,
    LOGGED,
    PAPER,
    Drawing,
    Figure,
    absent,
    condition_colors,
    faceted,
    inline,
    tips,
    unchecked,
)
from tutorsim.analysis.counting.rule_definitions import TARGETS
from tutorsim.analysis.pages.words import SMALL, counted, listed, percent
from tutorsim.analysis.statistics.intervals_and_tests import FEWEST_TASKS, Estimate, NotEstimable
from tutorsim.analysis.systems.paired_comparison import contrast_headline
from tutorsim.analysis.systems.panel.charts_of_fallback_orders import (
    decided_figure,
    movement_figure,
    orders_figure,
    span_figure,
)
from tutorsim.analysis.systems.panel.charts_of_rules import (
    PARTS,
    UNSETTLED,
    agreement_figure,
    identification_figure,
    kept_figure,
    noise_figure,
)
from tutorsim.analysis.systems.panel.charts_of_voters import (
    labels_figure,
    margins_figure,
    pivotal_figure,
)
from tutorsim.analysis.systems.panel.contrasts import OUTCOME_NAMES
from tutorsim.analysis.systems.panel.evidence import Evidence

# --- Student outcomes ----------------------------------------------------------------------------

_FEW: Final = 10
"""Tasks below which an interval over them is rough."""

_BENCHMARKS: Final = {"sciq": "science questions (sciq)", "humaneval": "programs (humaneval)"}


def scores_figure(frame: pl.DataFrame, *, max_turns: int, tasks: int, held: str = LOGGED) -> Figure:
    """Lines: mean judge score after each turn, one line per condition.

    Args:
        frame: `benchmark`, `condition`, `turn` (0 is the first attempt), `mean`, `lower`, `upper`
            (95 % interval, null where not estimable), `n` (episodes); an episode that ended
            earlier stays in with its last score.
        max_turns: The most tutoring turns that an episode may have.
        tasks: Tasks behind the intervals, of the benchmark with fewest.
        held: What the caption ends with: whether all is logged.
    """
    if frame.is_empty():
        return absent("scores", "No episode has a judge score, so there is nothing to follow.")
    return Figure(
        name="scores",
        finding=_scores_finding(frame),
        caption=(
            "Mean judge score after each tutoring turn, 0 being the first attempt; an episode that "
            "ended earlier keeps its last score, so that n stays the same from turn to turn. Bars "
            f"are 95 % intervals over {counted(tasks, 'task')}{_sketch(tasks)}. At most "
            f"{counted(max_turns, 'turn')}. {held}"
        ),
        method=(
            "Intervals are over tasks, because episodes of one task are not independent. "
            "First attempts are drawn separately in each condition, so lines start apart "
            "by chance."
        ),
        data=frame,
        chart=_draw_scores(frame),
        alternative="; ".join(
            f"{r['benchmark']}, {r['condition']}, after turn {r['turn']}: {r['mean']:.2f}"
            for r in frame.iter_rows(named=True)
            if r["mean"] is not None
        ),
    )


def _sketch(tasks: int) -> str:
    return ": too few tasks, so that there are none" if tasks < FEWEST_TASKS else ""


def _scores_finding(frame: pl.DataFrame) -> str:
    ends = frame.filter(pl.col("mean").is_not_null())
    first = ends.filter(pl.col("turn") == 0)
    last = ends.filter(pl.col("turn") == pl.col("turn").max().over("benchmark", "condition"))
    joined = first.join(last, on=["benchmark", "condition"], suffix="_last").with_columns(
        gain=pl.col("mean_last") - pl.col("mean")
    )
    n = int(first.get_column("n").sum())
    if n < SMALL:
        return f"Judge scores by turn in {counted(n, 'episode')}, too few for a comparison"
    low, high = joined.get_column("gain").min(), joined.get_column("gain").max()
    return (
        f"From first attempt to last, mean judge scores moved by {_signed(low)} to {_signed(high)} "
        f"across conditions"
    )


def _signed(value: object) -> str:
    return f"{value:+.2f}".replace("-", "−")


@unchecked
def _draw_scores(frame: pl.DataFrame) -> Drawing:
    conditions = frame.get_column("condition").unique(maintain_order=True).to_list()
    benchmarks = frame.get_column("benchmark").unique(maintain_order=True).to_list()
    data = frame.with_columns(test=pl.col("benchmark").replace(_BENCHMARKS))
    color = alt.Color(
        "condition:N",
        title="condition",
        sort=conditions,
        scale=alt.Scale(domain=conditions, range=condition_colors(conditions)),
    )
    tips = [
        alt.Tooltip("test:N", title="benchmark"),
        alt.Tooltip("condition:N"),
        alt.Tooltip("turn:O", title="after turn"),
        alt.Tooltip("mean:Q", title="mean score", format=".3f"),
        alt.Tooltip("lower:Q", format=".3f"),
        alt.Tooltip("upper:Q", format=".3f"),
        alt.Tooltip("n:Q", title="episodes"),
    ]
    base = alt.Chart().encode(
        x=alt.X("turn:O", title="after tutoring turn", axis=alt.Axis(labelAngle=0)),
        xOffset=alt.XOffset("condition:N", sort=conditions),
    )
    spread = base.mark_rule(strokeWidth=2, opacity=0.45).encode(
        y=alt.Y("lower:Q", title="mean judge score", scale=alt.Scale(domain=[0, 1])),
        y2=alt.Y2("upper:Q"),
        color=color,
    )
    dots = base.mark_point(filled=True, size=65, opacity=1).encode(
        y=alt.Y("mean:Q"),
        color=color,
        shape=alt.Shape(
            "condition:N",
            title="condition",
            sort=conditions,
            scale=alt.Scale(domain=conditions, range=_SHAPES[: len(conditions)]),
        ),
        tooltip=tips,
    )
    return (
        alt.layer(spread, dots)
        .properties(data=inline(data), width=alt.Step(16, **{"for": "offset"}), height=240)
        .facet(
            facet=alt.Facet("test:N", sort=[_BENCHMARKS.get(b, b) for b in benchmarks], title=None),
            columns=2,
            spacing=30,
        )
    )


_SHAPES: Final = ["circle", "square", "triangle-up", "diamond", "triangle-down"]


def personas_figure(
    frame: pl.DataFrame,
    *,
    personas: Sequence[str],
    conditions: Sequence[str],
    held: str = LOGGED,
) -> Figure:
    """Heat maps: success rate by persona and condition, one per benchmark.

    Args:
        frame: `benchmark`, `persona`, `condition`, `successes`, `n`, `rate` (null where n is 0).
        personas: In the study's order.
        conditions: In the study's order.
        held: What the caption ends with: whether all is logged.
    """
    seen = frame.filter(pl.col("n") > 0) if not frame.is_empty() else frame
    if seen.is_empty():
        return absent("personas", "No episode was finished, so there is no success rate.")
    return Figure(
        name="personas",
        finding=_personas_finding(seen, personas),
        caption=(
            "Successful episodes of all finished ones, per persona and condition; success is a "
            "judge score at the threshold or above, and for programs also passing tests. "
            f"{held}"
        ),
        method="Plain counts over all finished episodes, tutored or not; no interval is drawn.",
        data=frame,
        chart=_draw_personas(frame, list(personas), list(conditions)),
        alternative="; ".join(
            f"{r['benchmark']}, {r['persona']}, {r['condition']}: {r['successes']} of {r['n']}"
            for r in seen.iter_rows(named=True)
        ),
    )


def _personas_finding(seen: pl.DataFrame, personas: Sequence[str]) -> str:
    sums = seen.group_by("persona").agg(pl.col("successes").sum(), pl.col("n").sum())
    rates = {r["persona"]: r["successes"] / r["n"] for r in sums.iter_rows(named=True)}
    n = int(sums.get_column("n").sum())
    if n < SMALL or len(rates) < 2:
        done = int(sums.get_column("successes").sum())
        return f"{done} of {counted(n, 'finished episode')} ended in success"
    low, high = min(rates.values()), max(rates.values())
    if low == high:
        return f"Every persona succeeds in {percent(low)} of its episodes"
    best = listed([p.replace("_", " ") for p in personas if rates.get(p) == high])
    worst = listed([p.replace("_", " ") for p in personas if rates.get(p) == low])
    return f"Success runs from {percent(low)} ({worst}) to {percent(high)} ({best}) of episodes"


@unchecked
def _draw_personas(frame: pl.DataFrame, personas: list[str], conditions: list[str]) -> Drawing:
    benchmarks = frame.get_column("benchmark").unique(maintain_order=True).to_list()
    data = frame.with_columns(
        test=pl.col("benchmark").replace(_BENCHMARKS),
        who=pl.col("persona").str.replace_all("_", " "),
        note=pl.format("{}/{}", "successes", "n"),
    )
    rows = [p.replace("_", " ") for p in personas]
    base = alt.Chart().encode(
        x=alt.X(
            "condition:N",
            sort=conditions,
            title=None,
            axis=alt.Axis(labelAngle=-35, domain=False, ticks=False),
        ),
        y=alt.Y("who:N", sort=rows, title=None, axis=alt.Axis(domain=False, ticks=False)),
    )
    cells = base.mark_rect(stroke=PAPER, strokeWidth=2).encode(
        color=alt.ColorValue(ACCENT),
        opacity=alt.Opacity(
            "rate:Q",
            title="success rate",
            scale=alt.Scale(domain=[0, 1], range=[0.05, 0.95]),
            legend=None,
        ),
        tooltip=[
            alt.Tooltip("test:N", title="benchmark"),
            alt.Tooltip("who:N", title="persona"),
            alt.Tooltip("condition:N"),
            alt.Tooltip("successes:Q"),
            alt.Tooltip("n:Q", title="episodes"),
        ],
    )
    text = base.mark_text(fontSize=11, aria=False).encode(
        text=alt.Text("note:N"),
        color=alt.ColorValue(INK, condition={"test": "datum.rate > 0.72", "value": PAPER}),
    )
    return (
        alt.layer(cells, text)
        .properties(data=inline(data), width=alt.Step(48), height=alt.Step(28))
        .facet(
            facet=alt.Facet("test:N", sort=[_BENCHMARKS.get(b, b) for b in benchmarks], title=None),
            columns=2,
            spacing=24,
        )
    )


# --- Chart list ----------------------------------------------------------------------------------


def _scores(evidence: Evidence) -> Figure:
    run = evidence.source.run
    assert run is not None  # a page on ballots from elsewhere has no outcomes
    frame = evidence.scores
    known = frame.filter(pl.col("mean").is_not_null())
    tasks = Counter(b for b, _ in {(e.benchmark, e.task_id) for e in evidence.source.episodes})
    fewest = min(tasks.values(), default=0)
    return scores_figure(known, max_turns=run.panel.max_turns, tasks=fewest, held=evidence.held)


def _personas(evidence: Evidence) -> Figure:
    run = evidence.source.run
    assert run is not None
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


def _kept(evidence: Evidence) -> Figure:
    counts: dict[str, Counter[str]] = {}
    for r in evidence.rule_rows:
        if r.reading == "set" and r.target != r.logged_protocol and r.turns and not r.point_only:
            turns = r.turns if r.compared is None else r.compared
            sure = (r.agreement.lower, turns - r.agreement.lower - r.changes, r.changes)
            counts.setdefault(r.target, Counter()).update(dict(zip(PARTS, sure, strict=True)))
    rows = [
        (target.replace("_", " "), part, found[part], PARTS.index(part))
        for target, found in sorted(counts.items(), key=lambda one: _place(one[0]))
        for part in PARTS
        if found[part]
    ]
    frame = _frame(rows, protocol=pl.String, part=pl.String, turns=pl.Int64, place=pl.Int64)
    return kept_figure(frame, without=evidence.no_winner)


def _place(target: str) -> int:
    """Own rules stand after the shipped ones."""
    return TARGETS.index(target) if target in TARGETS else len(TARGETS)


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


def _contrasts(evidence: Evidence) -> Figure | None:
    rows = [
        (
            f"{OUTCOME_NAMES[one.outcome]} ({one.benchmark})",
            f"{one.second} − {one.first}",
            one.difference.value,
            one.difference.low,
            one.difference.high,
        )
        for one in evidence.contrasts
        if isinstance(one.difference, Estimate)
    ]
    if not rows:
        return None
    frame = _frame(
        rows,
        outcome=pl.String,
        contrast=pl.String,
        difference=pl.Float64,
        lower=pl.Float64,
        upper=pl.Float64,
    )
    few = frame.get_column("lower").is_null().all()
    bars = "No bars: tasks are too few for an interval." if few else "Bars are 95 % intervals."
    return Figure(
        name="contrasts",
        finding=f"Do the conditions differ? {contrast_headline(evidence.contrasts)}",
        caption=f"Mean difference over pairs of the same task and persona, about zero. {bars} "
        f"{evidence.as_logged}.",
        method="The table has pairs, tasks and p-values, corrected together.",
        data=frame,
        chart=_about_zero(frame),
        alternative="; ".join(
            f"{outcome}, {contrast}: {value:+.2f}" for outcome, contrast, value, *_ in rows
        ),
    )


@unchecked
def _about_zero(frame: pl.DataFrame) -> Drawing:
    scale = alt.Scale(domain=[-1, 1])
    base = alt.Chart().encode(y=alt.Y("contrast:N", sort=None, title=None))
    zero = alt.Chart().mark_rule().encode(x=alt.datum(0))
    bar = base.mark_bar(height=6, opacity=0.4, color=ACCENT).encode(
        x=alt.X("lower:Q", title="difference", scale=scale), x2=alt.X2("upper:Q")
    )
    dot = base.mark_point(filled=True, size=50, color=INK, opacity=1).encode(
        x=alt.X("difference:Q", scale=scale),
        tooltip=tips("outcome:N", "contrast:N", *(f"{n}:Q|.2f" for n in frame.columns[2:])),
    )
    order = frame.get_column("outcome").unique(maintain_order=True).to_list()
    return faceted(zero, bar, dot, data=frame, by="outcome", order=order)


FIGURES: Final[Mapping[str, Callable[[Evidence], Figure | None]]] = {
    "orders": _orders,
    "wins": _wins,
    "kept": _kept,
    "agreement": _agreement,
    "identification": _identification,
    "contrasts": _contrasts,
    "scores": _scores,
    "personas": _personas,
    "decided-by": _decided,
    "movement": _movement,
    "noise": _noise,
    "margins": margins_figure,
    "pivotal": pivotal_figure,
    "labels": labels_figure,
}
"""Every chart by name, in the report's order. Each says why, if there is nothing to draw."""


CHART_NAMES: Final = tuple(FIGURES)


def _frame(rows: Sequence[tuple[object, ...]], **schema: type[pl.DataType]) -> pl.DataFrame:
    return pl.DataFrame(rows, schema=schema, orient="row")
