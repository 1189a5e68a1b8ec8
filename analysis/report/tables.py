"""The report's tables: estimates as text, each with its interval beside it."""

from collections import Counter
from collections.abc import Iterable, Sequence

import polars as pl

from analysis.charts import CASCADE
from analysis.published import published_figure
from analysis.report.document import Table
from analysis.report.evidence import Evidence
from analysis.statistics import Bounds, Estimate, NotEstimable
from tutorsim.types import PROTOCOLS

__all__ = [
    "chance_table",
    "diagnostics_table",
    "dial_table",
    "divergence_table",
    "gains_table",
    "panel_table",
    "published_table",
    "readings_table",
    "self_support_table",
    "threshold_table",
    "winners_table",
]

_BENCHMARKS = {"sciq": "science questions", "humaneval": "programs"}
_DASH = "not estimable"


def gains_table(evidence: Evidence) -> Table | None:
    """Scores and code verdicts before and after tutoring; `None` without episodes."""
    rows = [
        (
            f"{_BENCHMARKS[g.benchmark]}, {g.measure}",
            g.condition,
            g.n,
            _estimate(g.initial),
            _estimate(g.final),
            _estimate(g.gain, signed=True),
        )
        for g in sorted(evidence.gains, key=lambda g: (g.benchmark != "sciq", g.measure != "score"))
    ]
    return _table(
        "gains",
        "Before and after tutoring",
        "Mean [95 % interval] over tutored episodes with both values; n counts them. Code is the "
        f"share of programs that pass. {_few_tasks(evidence)}",
        ["what", "condition", "n", "first attempt", "last attempt", "gain"],
        rows,
    )


def published_table(evidence: Evidence) -> Table | None:
    """The run's diagnostics beside the published ones; `None` without published figures."""
    rows = []
    for d in evidence.diagnostics:
        own = {"shift": d.shift, "flip": d.flip, "tie_rate": d.tie_rate}
        for quantity, found in {**own, "fallback_rate": d.fallback_rate}.items():
            printed = published_figure(quantity, condition=d.protocol)
            if not isinstance(printed, NotEstimable):
                value = f"{printed.value:.2f}"
                rows.append((d.protocol, quantity, _estimate(found), value, printed.where))
    return _table(
        "published",
        "Beside the published study",
        "This run's figures and the printed ones, with their place in the published study.",
        ["protocol", "quantity", "this run", "published", "where"],
        rows,
    )


def _published_note(evidence: Evidence) -> str:
    if published_table(evidence) is None:
        return "The published study's figures for this table are not in the package."
    return ""


def _few_tasks(evidence: Evidence) -> str:
    """What intervals over tasks are worth with so many of them."""
    tasks = {(e.benchmark, e.task_id) for e in evidence.source.episodes}
    counts = Counter(benchmark for benchmark, _ in tasks)
    least = min(counts.values(), default=0)
    caution = "; with so few, read the intervals as a sketch" if least < _FEW else ""
    each = " and ".join(f"{n} {_BENCHMARKS[b]}" for b, n in sorted(counts.items()))
    return f"Intervals from a bootstrap over tasks ({each}){caution}."


_FEW = 10


def diagnostics_table(evidence: Evidence) -> Table | None:
    """Shift, flip, ties and fallback per protocol."""
    rows = [
        (
            d.protocol,
            d.turns,
            d.episodes,
            _estimate(d.shift),
            *(_rate(r) for r in (d.flip, d.flip_set, d.tie_rate, d.fallback_rate)),
            f"{d.abstentions} of {d.ballots}",
        )
        for d in evidence.diagnostics
    ]
    return _table(
        "diagnostics",
        "How the panels decided",
        "Vote shift: half the distance between the vote shares of the first and the final vote "
        "(0 to 1). Flip: the first vote's leader did not win; a tied lead goes to the "
        "role-priority order, or, in the next column, to all who lead. Fallback: decided by the "
        "role-priority order. 95 % intervals in brackets: bootstrap over tasks for the shift, "
        "Wilson for rates. How much of it re-asking alone would give, the noise floor, is "
        "unknown: each vote was asked for once. "
        f"{_published_note(evidence)}",
        [
            "protocol",
            "turns",
            "episodes",
            "vote shift",
            "flip",
            "flip outside the leaders",
            "final vote tied",
            "fallback",
            "abstentions",
        ],
        rows,
    )


def chance_table(evidence: Evidence) -> Table | None:
    """Flip and shift beside what independent votes would give."""
    rows = [
        (
            c.protocol,
            c.turns,
            *(_plain(v) for v in (c.flip, c.flip_expected, c.kappa, c.shift, c.shift_expected)),
        )
        for c in evidence.chance
    ]
    return _table(
        "chance",
        "Flip and shift beside chance",
        "By chance: first and final votes drawn independently from those of the protocol's turns. "
        "κ is 1 where the first leader always wins, 0 where it wins as often as by chance.",
        ["protocol", "turns", "flip", "flip by chance", "κ", "vote shift", "shift by chance"],
        rows,
    )


def winners_table(evidence: Evidence) -> Table | None:
    """Wins per role and protocol, by the step that decided."""
    cells = {(r["role"], r["protocol"]): r for r in evidence.winners.iter_rows(named=True)}
    protocols = [d.protocol for d in evidence.diagnostics]
    rows = []
    for role in (c for c in evidence.candidates if any((c, p) in cells for p in protocols)):
        own = [cells.get((role, p)) for p in protocols]
        rows.append((role, sum(c["wins"] for c in own if c), *map(_wins, own)))
    return _table(
        "winners",
        "Winning drafts, and the step that made them win",
        "Turns won, as logged; in brackets by final vote + tie round + role-priority order.",
        ["winner", "all", *protocols],
        rows,
    )


def _wins(cell: dict[str, int] | None) -> str:
    if cell is None:
        return "no candidate"
    return f"{cell['wins']} ({cell['by_vote']}+{cell['by_tie_round']}+{cell['by_fallback']})"


def self_support_table(evidence: Evidence) -> Table | None:
    """Mass that voters gave their own drafts."""
    rows = [
        (s.protocol, s.ballots, f"{s.share:.3f}", f"{s.expected:.3f}", _p_value(s.p_value))
        for s in evidence.self_support
        if not isinstance(s, NotEstimable)
    ]
    return _table(
        "self-support",
        "Votes for one's own draft",
        "Share of final ballot mass that voters gave their own draft, beside an even share; "
        "p from the exact distribution over redrawn labels, two-sided, not corrected for the "
        "number of protocols. Voters are not told which draft is theirs.",
        ["protocol", "ballots", "own share", "even share", "p"],
        rows,
    )


def panel_table(evidence: Evidence) -> Table | None:
    """How many votes a panel is worth, and how alike its drafts are."""
    rows = []
    for found in evidence.effective_votes:
        alike = evidence.similarity.get(found.protocol, {})
        missing = NotEstimable("no drafts")
        rows.append(
            (
                found.protocol,
                f"{found.voters:.1f}",
                _plain(found.correlation),
                _plain(found.votes),
                *(_estimate(alike.get(v, missing)) for v in ("initial", "final")),
            )
        )
    return _table(
        "panel",
        "How many votes the panel is worth",
        "Effective votes: n / (1 + (n − 1) ρ) with ρ the mean correlation of two voters' final "
        "ballots; four voters who think alike are not four votes. Similarity of drafts: mean "
        "TF–IDF cosine of two drafts of a turn, 1 for the same words, with a 95 % interval from "
        "a bootstrap over tasks.",
        [
            "protocol",
            "voters",
            "correlation ρ",
            "effective votes",
            "first drafts alike",
            "revised drafts alike",
        ],
        rows,
    )


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
                *(_of(found[k].identified, found[k].turns) for k in exempt),
                *(_of(found[k].agreement.lower, found[k].turns) for k in exempt),
            )
        )
    return _table(
        "dial",
        "What is left when voters are exempt",
        "The assumption is that a voter's preference is the same under every ballot format. With "
        "k voters exempt, any k of them may have cast any ballot at all under the other protocol. "
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


def _of(part: int, whole: int) -> str:
    return f"{part} of {whole}"


def readings_table(evidence: Evidence) -> Table | None:
    """Winners when the raw replies are read more strictly or more leniently."""
    rows = [
        (
            r.reading,
            r.turns,
            f"{r.ballots_changed} of {r.ballots}",
            r.abstained,
            _bounds_of(r.changed.lower, r.changed.upper),
        )
        for r in evidence.recount.readings
        if r.protocol is None
    ]
    return _table(
        "readings",
        "Ballots read again",
        "The raw replies of the recording, read by a stricter and by a more lenient reader; runs "
        f"use the standard one. {CASCADE}",
        ["reading", "turns", "ballots read otherwise", "unreadable ballots", "winners changed"],
        rows,
    )


def divergence_table(evidence: Evidence) -> Table | None:
    """First divergent turns, coverage, and bounds of success."""
    rows = []
    for found in evidence.divergences:
        n = sum(c.episodes for c in found.coverage)
        if n:
            paths = found.episodes.get_column("path").to_list()
            rows.append(
                (
                    found.question,
                    n,
                    *(paths.count(path) for path in ("covered", "possible", "divergent")),
                    _logged_success(evidence),
                    _pooled([c.bounds["success"] for c in found.coverage]),
                )
            )
    return _table(
        "divergence",
        "How far the recording speaks for another rule",
        "Episodes with a panel. Covered: no turn can have another winner, so the logged outcome "
        "is the alternative's too. Success is the share of all these episodes; its bounds let "
        "every outcome after a turn that may diverge be a success or none.",
        [
            "alternative",
            "episodes",
            "covered",
            "may diverge",
            "diverge for certain",
            "success as logged",
            "success, bounds",
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
            row.append(_bounds(at.success))
    own = evidence.source.run.study.success_threshold if evidence.source.run else None
    heads = [f"at {t:g}{' (logged)' if t == own else ''}" for t in evidence.thresholds]
    rows = [(_BENCHMARKS[b], condition, *row) for (b, condition), row in cells.items()]
    return _table(
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
    return f"{sum(s.successes for s in panels) / n:.2f}" if n else _DASH


def _pooled(cells: Sequence[Bounds | NotEstimable]) -> str:
    known = [cell for cell in cells if isinstance(cell, Bounds)]
    n = sum(cell.n for cell in known)
    if not n:
        return _DASH
    low, high = (sum(getattr(c, end) * c.n for c in known) / n for end in ("low", "high"))
    return _bounds(Bounds(low, high, n))


def _bounds(found: Bounds) -> str:
    if found.low == found.high:
        return f"{found.low:.2f}"
    return f"{found.low:.2f} to {found.high:.2f}"


def _bounds_of(low: int, high: int) -> str:
    return str(low) if low == high else f"{low} to {high}"


def _table(
    name: str, title: str, caption: str, columns: Sequence[str], rows: Iterable[Sequence[object]]
) -> Table | None:
    found = list(rows)
    if not found:
        return None
    return Table(name, title, caption, pl.DataFrame(found, schema=list(columns), orient="row"))


def _estimate(found: Estimate | NotEstimable, *, signed: bool = False) -> str:
    if isinstance(found, NotEstimable):
        return _DASH
    number = ("{:+.2f}" if signed else "{:.2f}").format
    text = number(found.value)
    if found.low is not None and found.high is not None:
        text += f" [{number(found.low)}, {number(found.high)}]"
    return text.replace("-", "−")


def _p_value(p: float) -> str:
    return "< 0.001" if p < 0.001 else f"{p:.3f}"


def _rate(found: Estimate | NotEstimable) -> str:
    return _estimate(found)


def _plain(found: float | NotEstimable) -> str:
    return _DASH if isinstance(found, NotEstimable) else f"{found:.2f}".replace("-", "−")
