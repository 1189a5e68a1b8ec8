"""The report's tables of what was logged, estimates with their intervals beside them."""

from collections import Counter

from analysis.published import published_figure
from analysis.report.cells import BENCHMARKS, estimate, p_value, plain, table
from analysis.report.document import Table
from analysis.report.evidence import Evidence
from analysis.report.noise import noise_told
from analysis.statistics import NotEstimable

__all__ = [
    "chance_table",
    "diagnostics_table",
    "gains_table",
    "panel_table",
    "published_table",
    "self_support_table",
    "winners_table",
]


def gains_table(evidence: Evidence) -> Table | None:
    """Scores and code verdicts before and after tutoring; `None` without episodes."""
    rows = [
        (
            f"{BENCHMARKS[g.benchmark]}, {g.measure}",
            g.condition,
            g.n,
            estimate(g.initial),
            estimate(g.final),
            estimate(g.gain, signed=True),
        )
        for g in sorted(evidence.gains, key=lambda g: (g.benchmark != "sciq", g.measure != "score"))
    ]
    return table(
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
                rows.append((d.protocol, quantity, estimate(found), value, printed.where))
    return table(
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
    each = " and ".join(f"{n} {BENCHMARKS[b]}" for b, n in sorted(counts.items()))
    return f"Intervals from a bootstrap over tasks ({each}){caution}."


_FEW = 10


def diagnostics_table(evidence: Evidence) -> Table | None:
    """Shift, flip, ties and fallback per protocol."""
    rows = [
        (
            d.protocol,
            d.turns,
            d.episodes,
            estimate(d.shift),
            *(estimate(r) for r in (d.flip, d.flip_set, d.tie_rate, d.fallback_rate)),
            f"{d.abstentions} of {d.ballots}",
        )
        for d in evidence.diagnostics
    ]
    return table(
        "diagnostics",
        "How the panels decided",
        "Vote shift: half the distance between the vote shares of the first and the final vote "
        "(0 to 1). Flip: the first vote's leader did not win; a tied lead goes to the "
        "role-priority order, or, in the next column, to all who lead. Fallback: decided by the "
        "role-priority order. 95 % intervals in brackets: bootstrap over tasks for the shift, "
        f"Wilson for rates. {noise_told(evidence)} {_published_note(evidence)}",
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
            *(plain(v) for v in (c.flip, c.flip_expected, c.kappa, c.shift, c.shift_expected)),
        )
        for c in evidence.chance
        if c.turns
    ]
    return table(
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
    return table(
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
        (s.protocol, s.ballots, f"{s.share:.3f}", f"{s.expected:.3f}", p_value(s.p_value))
        for s in evidence.self_support
        if not isinstance(s, NotEstimable)
    ]
    return table(
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
                plain(found.correlation),
                plain(found.votes),
                *(estimate(alike.get(v, missing)) for v in ("initial", "final")),
            )
        )
    return table(
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
