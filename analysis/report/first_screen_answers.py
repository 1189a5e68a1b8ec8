"""The first screen: five questions, each answered in a line or two."""

from fractions import Fraction

from tutorsim.analysis.charts.number_words import counted, listed, share
from tutorsim.analysis.recount import RuleRow
from tutorsim.analysis.report.document import Answer
from tutorsim.analysis.report.report_inputs import Evidence
from tutorsim.analysis.runs.run_panels import sizes_of
from tutorsim.records import Provenance, RunRecord
from tutorsim.vocabularies import PROTOCOLS

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
    study = run.panel
    failed = f" {counted(counts['failed'], 'episode')} failed." if counts["failed"] else ""
    return Answer(
        "What was run?",
        f"{counted(counts['episodes'], 'episode')}, {counted(turns.height, 'voting turn')}",
        f"{counted(len(tasks), 'task')} × {counted(len(study.personas), 'student persona')} × "
        f"{counted(len(study.conditions), 'condition')} ({listed(study.conditions)}); "
        f"{_seats(run)} tutors, at most {counted(study.max_turns, 'turn')}.{failed}",
        "outcomes",
    )


def _seats(run: RunRecord) -> str:
    sizes = listed([str(size) for size in sizes_of(run)])
    return (
        f"{counted(len(run.panels), 'panel')} of {sizes}" if run.panels else f"a panel of {sizes}"
    )


def _answered(evidence: Evidence) -> Answer:
    run = evidence.source.run
    question = "What answered the calls?"
    if run is None and evidence.source.stated:
        kinds = evidence.source.kinds
        told = _KINDS[kinds[0]] if len(kinds) == 1 else "Several"
        detail = f"The ballots were exported from a recording: {'; '.join(evidence.source.stated)}."
        return Answer(question, told, detail, "record")
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
    "imported": "Another program, whose logs were imported",
}


_ASKED = {
    "api": "answered by",
    "stand-in": "in the name of models that never saw them:",
    "relay": "in the name of",
    "imported": "logged as answered by",
}


def _days(stated: Provenance) -> str:
    if stated.recorded_from is None:
        return "no day recorded"
    if stated.recorded_to in (None, stated.recorded_from):
        return f"recorded on {stated.recorded_from}"
    return f"recorded from {stated.recorded_from} to {stated.recorded_to}"


def _agreed(evidence: Evidence) -> Answer:
    """Turns whose winner every other protocol surely keeps, or some protocol surely changes."""
    keeps, changes, n = evidence.recount.agreed("set")
    detail = (
        f"A tie under another protocol stays a tie here. In {share(changes, n, 'turn')} at least "
        "one other protocol would surely elect another draft. In the other "
        f"{n - keeps - changes:,} it depends on what the voters would have cast in the other "
        "formats, which their ballots do not say, or on who breaks a tie."
    )
    if not evidence.unordered:
        given, _, _ = evidence.recount.agreed("fallback")
        detail += f" With ties given to the fallback order, all agree in {share(given, n, 'turn')}."
    return Answer(
        "What do the rules agree on?",
        f"All four protocols surely agree in {share(keeps, n, 'turn')}",
        detail,
        "rules",
    )


def _decided(evidence: Evidence) -> Answer:
    found = evidence.orders
    if not found.logged_order and found.decided_by_order:
        return Answer(
            "What would an order decide?",
            share(found.decided_by_order, found.turns, "turn"),
            "Counting leaves a tie there, and no order is logged: such a turn has no winner in "
            "this report, and every order gives it another one.",
            "orders",
        )
    spans = [(c.most - c.least, c) for c in found.candidates]
    _, widest = max(spans, key=lambda pair: pair[0])
    if not found.decided_by_order:
        return Answer(
            "What did the fallback order decide?",
            "Nothing",
            f"Counting left one winner in each of {counted(found.turns, 'turn')}, so all "
            f"{found.orders:,} fallback orders elect the same.",
            "orders",
        )
    drawn = 0.0 if found.changed_expected is None else found.changed_expected.value
    return Answer(
        "What did the fallback order decide?",
        share(found.decided_by_order, found.turns, "turn"),
        f"Another fallback order could change these, and a random one would change "
        f"{drawn:.1f} on average. {widest.candidate} wins "
        f"{widest.least:,} to {counted(widest.most, 'turn')} depending on the order, and "
        f"{widest.logged:,} as logged.",
        "orders",
    )


def _open(evidence: Evidence) -> Answer:
    question = "What is not identified?"
    every = [r for r in evidence.rule_rows if r.target in PROTOCOLS]
    other = [r for r in every if r.target != r.logged_protocol and r.reading == "set"]
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
        "A case is a turn and another protocol, under which a tie stays a tie. Several winners are "
        f"possible there: in {_missing(least)}, but in {_missing(most)}.{_given(evidence, cases)} "
        "What the student would have said to another reply is never identified.",
        "rules",
    )


def _given(evidence: Evidence, cases: int) -> str:
    """The same with ties given to the order; empty where no order is logged."""
    if evidence.unordered:
        return ""
    given = [r for r in evidence.rules if r.target in PROTOCOLS and r.target != r.logged_protocol]
    left = sum(r.turns - r.identified for r in given)
    return f" With ties given to the fallback order it is {share(left, cases, 'case')}."


def _missing(row: RuleRow) -> str:
    left = row.turns - row.identified
    return (
        f"{left:,} of {row.turns:,} turns when {row.logged_protocol} ballots are counted as "
        f"{row.target}"
    )
