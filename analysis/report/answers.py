"""The first screen: five questions, each answered in a line or two."""

from fractions import Fraction

import polars as pl

from analysis.charts.words import counted, listed, share
from analysis.recount import RuleRow
from analysis.report.document import Answer
from analysis.report.evidence import Evidence
from tutorsim.records import Provenance
from tutorsim.types import PROTOCOLS

__all__ = ["answers"]


def answers(evidence: Evidence) -> tuple[Answer, ...]:
    """What was run, what answered, what rules agree on, what the order decided, what is open."""
    voted = evidence.turns.height > 0
    return (
        _ran(evidence),
        _answered(evidence),
        _agreed(evidence) if voted else _no_votes("What do the rules agree on?", "rules"),
        _decided(evidence) if voted else _no_votes("What did the fallback order decide?", "orders"),
        _open(evidence) if voted else _no_votes("What is not identified?", "rules"),
    )


def _no_votes(question: str, section: str) -> Answer:
    return Answer(question, "Not estimable", "No turn was put to a vote.", section)


def _ran(evidence: Evidence) -> Answer:
    run = evidence.source.run
    turns = evidence.turns
    if run is None:
        episodes = turns.get_column("episode_id").n_unique()
        return Answer(
            "What was run?",
            counted(turns.height, "vote"),
            f"Ballots from elsewhere: {counted(episodes, 'episode')}, "
            f"{counted(len(evidence.candidates), 'candidate')}, protocols "
            f"{listed([d.protocol for d in evidence.diagnostics])}. "
            "No students, drafts or scores are in the file.",
            "record",
        )
    counts = evidence.episodes
    tasks = {(e.benchmark, e.task_id) for e in evidence.source.episodes}
    study = run.study
    failed = f" {counted(counts['failed'], 'episode')} failed." if counts["failed"] else ""
    return Answer(
        "What was run?",
        f"{counted(counts['episodes'], 'episode')}, {counted(turns.height, 'voting turn')}",
        f"{counted(len(tasks), 'task')} × {counted(len(study.personas), 'student persona')} × "
        f"{counted(len(study.conditions), 'condition')} ({listed(study.conditions)}); a panel of "
        f"{len(study.roles)} tutors, at most {counted(study.max_turns, 'turn')}.{failed}",
        "outcomes",
    )


def _answered(evidence: Evidence) -> Answer:
    run = evidence.source.run
    question = "What answered the calls?"
    if run is None:
        return Answer(
            question, "Unknown", "Ballots from elsewhere do not say who or what voted.", "record"
        )
    stated = run.provenance
    calls = sum(len(e.calls) for e in evidence.source.episodes)
    return Answer(
        question,
        _KINDS[stated.kind],
        f"{stated.name}; {counted(calls, 'call')} {_ASKED[stated.kind]} {listed(stated.models)}, "
        f"{_days(stated)}.",
        "record",
    )


_KINDS = {
    "api": "The real endpoint",
    "stand-in": "A scripted stand-in, no language model",
    "relay": "A relay, on the user's word",
}


_ASKED = {
    "api": "answered by",
    "stand-in": "in the name of models that never saw them:",
    "relay": "in the name of",
}


def _days(stated: Provenance) -> str:
    if stated.recorded_from is None:
        return "no day recorded"
    if stated.recorded_to in (None, stated.recorded_from):
        return f"recorded on {stated.recorded_from}"
    return f"recorded from {stated.recorded_from} to {stated.recorded_to}"


def _agreed(evidence: Evidence) -> Answer:
    """Turns whose winner every other protocol surely keeps, or some protocol surely changes."""
    if evidence.sums_only:
        return _agreed_at_most(evidence)
    same = pl.col("necessary_winner").eq_missing(pl.col("logged_winner"))
    other = pl.col("possible_winners").list.contains(pl.col("logged_winner")).not_()
    turns = (
        evidence.protocols.filter(pl.col("target") != pl.col("logged_protocol"))
        .group_by("episode_id", "turn", "logged_protocol")
        .agg(
            keeps=(pl.col("settled") & same).all(),
            changes=(pl.col("settled") & other.fill_null(value=False)).any(),
        )
    )
    n = turns.height
    keeps, changes = (int(turns.get_column(name).sum()) for name in ("keeps", "changes"))
    return Answer(
        "What do the rules agree on?",
        f"All four protocols surely agree in {share(keeps, n, 'turn')}",
        f"In {share(changes, n, 'turn')} at least one other protocol would surely elect "
        f"another draft. In the other {n - keeps - changes:,} it depends on what the voters "
        "would have cast in the other formats, which their ballots do not say.",
        "rules",
    )


def _agreed_at_most(evidence: Evidence) -> Answer:
    """The same where only each protocol's own count is known: bounds over any overlap of them."""
    cells: dict[str, list[RuleRow]] = {}
    for row in evidence.rules:
        if row.target in PROTOCOLS and row.target != row.logged_protocol:
            cells.setdefault(row.logged_protocol, []).append(row)
    n = sum(rows[0].turns for rows in cells.values())
    keeps = sum(min(row.agreement.lower for row in rows) for rows in cells.values())
    changes = sum(max(row.turns - row.agreement.upper for row in rows) for rows in cells.values())
    return Answer(
        "What do the rules agree on?",
        f"All four protocols surely agree in at most {share(keeps, n, 'turn')}",
        f"In at least {share(changes, n, 'turn')} some other protocol would surely elect another "
        "draft. The turns are too many to recount each on its own, so each protocol was counted "
        "by itself, and not how their turns overlap.",
        "rules",
    )


def _decided(evidence: Evidence) -> Answer:
    found = evidence.orders
    spans = [(c.most - c.least, c) for c in found.candidates]
    _, widest = max(spans, key=lambda pair: pair[0])
    if not found.decided_by_order:
        return Answer(
            "What did the fallback order decide?",
            "Nothing",
            f"Counting left one winner in each of {counted(found.turns, 'turn')}, so all "
            f"{found.orders:,} role-priority orders elect the same.",
            "orders",
        )
    return Answer(
        "What did the fallback order decide?",
        share(found.decided_by_order, found.turns, "turn"),
        f"Another role-priority order could change these, and a random one would change "
        f"{found.changed_expected.value:.1f} on average. {widest.candidate} wins "
        f"{widest.least:,} to {counted(widest.most, 'turn')} depending on the order, and "
        f"{widest.logged:,} as logged.",
        "orders",
    )


def _open(evidence: Evidence) -> Answer:
    question = "What is not identified?"
    other = [r for r in evidence.rules if r.target in PROTOCOLS and r.target != r.logged_protocol]
    cases = sum(r.turns for r in other)
    open_ = cases - sum(r.identified for r in other)
    if not cases:
        return Answer(question, "Nothing was recounted", "No other rule was asked for.", "rules")
    least, most = (
        chosen(other, key=lambda r: Fraction(r.identified, r.turns)) for chosen in (min, max)
    )
    return Answer(
        question,
        f"The winner under another protocol, in {share(open_, cases, 'case')}",
        f"A case is a turn and another protocol. Several winners are possible there: in "
        f"{_missing(least)}, but in {_missing(most)}. What the student would have said to another "
        "reply is never identified.",
        "rules",
    )


def _missing(row: RuleRow) -> str:
    left = row.turns - row.identified
    return (
        f"{left:,} of {row.turns:,} turns when {row.logged_protocol} ballots are counted as "
        f"{row.target}"
    )
