"""The report of a panel's run or of ballots: its first screen and its sections."""

from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from typing import Final

import polars as pl

from tutorsim.analysis.ballots.recount_source import Source
from tutorsim.analysis.charts.figure import Figure
from tutorsim.analysis.pages.cells import DASH, Table, present
from tutorsim.analysis.pages.document import WARNINGS, Answer, Document, Section, warning_of
from tutorsim.analysis.pages.words import counted, listed, share
from tutorsim.analysis.recount import Progress, RuleRow
from tutorsim.analysis.recount.tables import (
    dial_table,
    electorates_table,
    policies_table,
    readings_table,
)
from tutorsim.analysis.runs.branch_continuations import branch_changes, branch_counts, branch_words
from tutorsim.analysis.runs.exported_tables import makeup_words, sizes_of
from tutorsim.analysis.statistics.intervals_and_tests import Estimate
from tutorsim.analysis.systems.panel.contrasts import contrast_table, contrast_words
from tutorsim.analysis.systems.panel.diagnostics import chance_table
from tutorsim.analysis.systems.panel.divergence import alternatives_table
from tutorsim.analysis.systems.panel.episodes import choose
from tutorsim.analysis.systems.panel.evidence import Evidence, askings_table, beside_floor_table
from tutorsim.analysis.systems.panel.figures import FIGURES
from tutorsim.analysis.systems.panel.format_invariance import (
    askings_by_format_table,
    invariance_table,
    invariance_words,
)
from tutorsim.analysis.systems.panel.panels_compared import certain_table
from tutorsim.analysis.systems.panel.published import PublishedFigure
from tutorsim.analysis.systems.panel.student_outcomes import stops_table, threshold_table
from tutorsim.analysis.systems.panel.voters_page import panel_table, self_support_table
from tutorsim.records import Provenance, RunRecord
from tutorsim.vocabularies import PROTOCOLS

# --- First screen answers ------------------------------------------------------------------------


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


# --- Build ---------------------------------------------------------------------------------------

_UNKNOWN = "unknown: ballots from elsewhere"
_UNKNOWN_WARNING = (
    "The file does not say who voted, or on what. Everything about episodes, drafts and students "
    "is absent, and labelled as absent."
)


def build_report(
    source: Source,
    *,
    episodes: Iterable[str] = (),
    published: Sequence[PublishedFigure] | None = None,
    progress: Progress = lambda _done, _total: None,
) -> Document:
    """The report of a run, or of ballots from elsewhere.

    Args:
        source: What to report on.
        episodes: Ids for the trace; telling ones are chosen when none is named.
        published: Printed figures to stand beside the run's; by default those of the package.
        progress: Is told how many parts of how many are made.

    Raises:
        UsageError: If the run holds no episode of a name.
    """
    evidence = Evidence(source) if published is None else Evidence(source, tuple(published))
    run = source.run
    trace = choose(source.episodes, episodes, flipped=_flipped(evidence))
    return Document(
        title=f"Report of {run.study.name if run else source.name}",
        summary=_summary(evidence),
        provenance=provenance_of(source),
        warning=warning_of(run.provenance) if run else _warning_elsewhere(source),
        answers=answers(evidence),
        sections=_sections(evidence, progress),
        trace=trace,
        no_trace="" if source.episodes else _no_trace(source),
        facts=_facts(evidence, run),
        digest=run.recording_digest if run else "",
    )


def build_figure(source: Source, name: str) -> Figure:
    """One chart of the report, without computing the others.

    Args:
        source: What to draw from.
        name: One of `CHART_NAMES`.
    """
    return _figure(Evidence(source), name)


def _warning_elsewhere(source: Source) -> str:
    """What an export said of itself, and that the rest is absent."""
    said = [WARNINGS[kind] for kind in source.kinds]
    if not source.stated:
        return _UNKNOWN_WARNING
    absent = "Everything about episodes, drafts and students is absent, and labelled as absent."
    return " ".join([*said, absent])


def provenance_of(source: Source) -> str:
    """What answered the calls, for captions."""
    if source.run is None and source.stated:
        return f"{'; '.join(source.stated)} (exported ballots, {source.name})"
    if source.run is None:
        return f"{_UNKNOWN} ({source.name})"
    stated, branch = source.run.provenance, source.run.branch
    return f"{stated.kind} ({stated.name})" + (f"; {branch_words(branch)}" if branch else "")


def _summary(evidence: Evidence) -> str:
    run = evidence.source.run
    if run is None:
        return (
            f"What the ballots of {evidence.source.name} say about ties, orders and rules; "
            f"{counted(evidence.turns.height, 'vote')}."
        )
    sizes = listed([str(size) for size in sizes_of(run)])
    words = (
        f"How panels of {sizes} tutors chose what to tell a student, what became of "
        f"the students, and what other decision rules would have chosen from the same ballots."
    )
    return words if run.branch is None else f"{words} {_mixed(evidence.source, run)}"


def _mixed(source: Source, run: RunRecord) -> str:
    """What a branch's figures are of."""
    branch = run.branch
    assert branch is not None
    counts = branch_counts(branch, source.episodes)
    return (
        f"The run is a {branch_words(branch)}. Its figures are of both together: "
        f"{counted(counts.covered, 'logged episode')} and {counted(counts.continued, 'episode')} "
        "re-simulated. The comparison with its parent keeps them apart."
    )


def _sections(evidence: Evidence, progress: Progress) -> tuple[Section, ...]:
    """Every section, told as each is made."""
    made: list[Section | None] = []
    for make in _SECTIONS:
        progress(len(made) + 1, len(_SECTIONS) + 1)  # the answers were the first part
        made.append(make(evidence))
    progress(len(made) + 1, len(_SECTIONS) + 1)
    return tuple(section for section in made if section is not None)


def _conditions(evidence: Evidence) -> Section | None:
    compared = contrast_table(evidence.contrasts)
    if compared is None:
        return None
    return Section(
        "conditions",
        "One condition against another",
        contrast_words(evidence.contrasts),
        (),
        present(compared),
    )


def _outcomes(evidence: Evidence) -> Section:
    return Section(
        "outcomes",
        "What became of the students",
        f"{evidence.as_logged}. Differences between conditions are differences between recordings "
        "of the same tasks and personas, whose first attempts were drawn separately.",
        _figures(evidence, "scores", "personas"),
        present(
            evidence.gains_table,
            threshold_table(evidence.thresholds, evidence.threshold),
            stops_table(evidence.stops),
        ),
    )


def _decisions(evidence: Evidence) -> Section:
    return Section(
        "decisions",
        "How the panels decided",
        f"{evidence.as_logged}, except what is headed “re-asked”. The turn is the unit; turns of "
        "one episode are not independent.",
        _figures(evidence, "decided-by", "movement", "noise"),
        present(
            evidence.diagnostics_table,
            evidence.published_table,
            chance_table(evidence.chance),
            beside_floor_table(evidence.noise),
            askings_table(evidence.noise),
            evidence.winners_table,
        ),
    )


def _orders(evidence: Evidence) -> Section:
    return Section(
        "orders",
        "What the fallback order decided",
        "Exact: under another order only turns that counting left tied can change, and how "
        "often each set of candidates was tied says what every order would have done.",
        _figures(evidence, "orders", "wins"),
        present(policies_table(evidence.recount.policies)),
    )


def _rules(evidence: Evidence) -> Section:
    return Section(
        "rules",
        "What other rules would have chosen",
        "Mostly not exact: a ballot in one format says only part of what its voter would have "
        "cast in another. What is certain and what is possible stand side by side.",
        _figures(evidence, "agreement", "identification"),
        present(
            _dial(evidence),
            invariance_table({"": evidence.invariance}),
            askings_by_format_table({"": evidence.invariance}),
            electorates_table(evidence.recount.electorates),
            readings_table(evidence.recount.readings),
            alternatives_table(evidence.divergences, _logged_success(evidence)),
        ),
    )


def _dial(evidence: Evidence) -> Table | None:
    """Every protocol under the others, as voters are exempt."""
    pairs = [
        (r.logged_protocol, r.target)
        for r in evidence.rules
        if r.target in PROTOCOLS and r.target != r.logged_protocol and r.turns
    ]
    tested = invariance_words(evidence.invariance)
    return dial_table(evidence.recount.rules, evidence.reading, pairs, tested)


def _logged_success(evidence: Evidence) -> str | None:
    """Of the panels' episodes with a known end; `None` where no outcome is known."""
    if evidence.source.run is None:
        return None
    panels = [s for s in evidence.successes if s.condition != "baseline"]
    n = sum(s.rate.n for s in panels if isinstance(s.rate, Estimate))
    return f"{sum(s.successes for s in panels) / n:.2f}" if n else DASH


def _voters(evidence: Evidence) -> Section:
    return Section(
        "voters",
        "How far to trust the votes",
        "Signs that ballots follow something else than the drafts, and how many ballots "
        "each decision hangs on.",
        _figures(evidence, "margins", "pivotal", "labels"),
        present(
            panel_table(evidence),
            self_support_table(evidence),
        ),
    )


def _panels(evidence: Evidence) -> Section | None:
    """Size and roles, where the run compares panels."""
    panels = evidence.panels
    if not panels:
        return None
    turns = [evidence.recount.turns_under(target) for target in PROTOCOLS]
    certain = certain_table(evidence.source, pl.concat(turns).filter(reading="fallback"))
    return Section(
        "panels",
        "One panel against another",
        f"{panels.words()} A larger panel has more voters and more drafts to choose from, so "
        "ties and flips change with size by chance alone; the tables give that chance. All "
        "other sections take the panels together; --panel NAME reports on one of them.",
        (),
        (*panels.tables(), *present(certain)),
    )


_SECTIONS: Final[tuple[Callable[[Evidence], Section | None], ...]] = (
    _conditions,
    _panels,
    _outcomes,
    _decisions,
    _orders,
    _rules,
    _voters,
)


def _figures(evidence: Evidence, *names: str) -> tuple[Figure, ...]:
    return tuple(_figure(evidence, name) for name in names)


def _figure(evidence: Evidence, name: str) -> Figure:
    made = FIGURES[name](evidence)
    assert made is not None
    return made


def _facts(evidence: Evidence, run: RunRecord | None) -> tuple[tuple[str, str], ...]:
    """Settings, digests and versions; what a reader needs to find the same recording again."""
    source = evidence.source
    if run is None:
        return (
            ("Source", source.name),
            ("What answered", _UNKNOWN),
            ("Points of a cumulative ballot", str(source.budget)),
            *(("Reader's note", note) for note in source.notes),
        )
    study, stated = run.panel, run.provenance
    return (
        ("Study", study.name),
        *_branch_facts(run),
        ("Seed", str(study.seed)),
        ("What answered", f"{stated.kind}: {stated.name}"),
        ("Models that replied", listed(stated.models)),
        ("Models asked for", listed([f"{who} {name}" for who, name in study.models.items()])),
        ("Recorded", f"{stated.recorded_from or 'no day'} to {stated.recorded_to or 'no day'}"),
        *((f"Panel {name}", makeup_words(made)) for name, made in run.panels.items()),
        ("Roles", listed(study.roles)),
        ("Fallback order", " › ".join(study.fallback_order)),
        ("Labels", f"drawn {study.blinding.replace('_', ' ')}"),
        ("Success", f"judge score of at least {study.success_threshold:g}; programs also pass"),
        ("Points of a cumulative ballot", str(study.cumulative_budget)),
        ("Repeats", str(study.repeats)),
        ("Study digest", run.study_digest),
        ("Recording digest", run.recording_digest),
        *((f"Package {name}", version) for name, version in run.packages.items()),
    )


def _branch_facts(run: RunRecord) -> tuple[tuple[str, str], ...]:
    branch = run.branch
    if branch is None:
        return ()
    return (
        ("Branch of", branch.parent),
        ("Under", branch_changes(branch)),
        ("Draws of each episode taken up", str(branch.continuations)),
        ("Parent's recording digest", branch.parent_recording),
    )


def _no_trace(source: Source) -> str:
    if source.run is None:
        return "No trace: ballots from elsewhere hold no messages, drafts or reviews."
    return "No trace: the run holds no episode."


def _flipped(evidence: Evidence) -> set[str]:
    turns = evidence.turns
    return set(turns.filter(pl.col("flip")).get_column("episode_id").to_list())
