"""From a source to a report."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Final

import polars as pl

from analysis.charts import Figure
from analysis.charts.words import counted, listed
from analysis.continuations import branch_changes, branch_counts, branch_words
from analysis.report import counterfactuals, invariance, noise, tables
from analysis.report.answers import answers
from analysis.report.document import Document, Section, Table
from analysis.report.evidence import Evidence
from analysis.report.figures import FIGURES
from analysis.report.trace import choose
from analysis.sources import MOST_LISTED, Source
from tutorsim.records import RunRecord
from tutorsim.types import ProvenanceKind

__all__ = ["build_figure", "build_report", "provenance_of"]

_WARNINGS: Final[dict[ProvenanceKind, str]] = {
    "api": "The real endpoint, with the models named.",
    "stand-in": (
        "A scripted model gave the replies. The figures show what the methods do; they say "
        "nothing about any language model, and must not be set beside published ones without "
        "this label."
    ),
    "relay": (
        "Something else than the real endpoint answered, under the name that the user gave it. "
        "What it was rests on the user's word."
    ),
}

_UNKNOWN = "unknown: ballots from elsewhere"
_UNKNOWN_WARNING = (
    "The file does not say who voted, or on what. Everything about episodes, drafts and students "
    "is absent, and labelled as absent."
)


def build_report(source: Source, *, episodes: Iterable[str] = ()) -> Document:
    """The report of a run, or of ballots from elsewhere.

    Args:
        source: What to report on.
        episodes: Ids for the trace; telling ones are chosen when none is named.

    Raises:
        UsageError: If the run holds no episode of a name.
    """
    evidence = Evidence(source)
    run = source.run
    trace = choose(source.episodes, episodes, flipped=_flipped(evidence))
    return Document(
        title=f"Report of {run.study.name if run else source.name}",
        summary=_summary(evidence),
        provenance=provenance_of(source),
        warning=_WARNINGS[run.provenance.kind] if run else _UNKNOWN_WARNING,
        answers=answers(evidence),
        sections=_sections(evidence),
        trace=trace,
        no_trace="" if source.episodes else _no_trace(source),
        facts=_facts(evidence, run),
    )


def build_figure(source: Source, name: str) -> Figure:
    """One chart of the report, without computing the others.

    Args:
        source: What to draw from.
        name: One of `CHART_NAMES`.
    """
    return _figure(Evidence(source), name)


def provenance_of(source: Source) -> str:
    """What answered the calls, for captions."""
    if source.run is None:
        return f"{_UNKNOWN} ({source.name})"
    stated, branch = source.run.provenance, source.run.study.branch
    return f"{stated.kind} ({stated.name})" + (f"; {branch_words(branch)}" if branch else "")


def _summary(evidence: Evidence) -> str:
    run = evidence.source.run
    if run is None:
        return (
            f"What the ballots of {evidence.source.name} say about ties, orders and rules; "
            f"{counted(evidence.turns.height, 'vote')}."
        )
    words = (
        f"How panels of {len(run.study.roles)} tutors chose what to tell a student, what became of "
        f"the students, and what other decision rules would have chosen from the same ballots."
    )
    return words if run.study.branch is None else f"{words} {_mixed(evidence.source, run)}"


def _mixed(source: Source, run: RunRecord) -> str:
    """What a branch's figures are of."""
    branch = run.study.branch
    assert branch is not None
    counts = branch_counts(branch, source.episodes)
    return (
        f"The run is a {branch_words(branch)}. Its figures are of both together: "
        f"{counted(counts.covered, 'logged episode')} and {counted(counts.continued, 'episode')} "
        "re-simulated. The comparison with its parent keeps them apart."
    )


def _sections(evidence: Evidence) -> tuple[Section, ...]:
    run = evidence.source.run
    said = "Logged and re-simulated together" if run and run.study.branch else "As logged"
    return (
        Section(
            "outcomes",
            "What became of the students",
            f"{said}. Differences between conditions are differences between recordings of the "
            "same tasks and personas, whose first attempts were drawn anew.",
            _figures(evidence, "scores", "personas"),
            _present(tables.gains_table(evidence), counterfactuals.threshold_table(evidence)),
        ),
        Section(
            "decisions",
            "How the panels decided",
            f"{said}, except what is headed “re-asked”. The turn is the unit; turns of one "
            "episode are not independent.",
            _figures(evidence, "decided-by", "movement", "noise"),
            _present(
                tables.diagnostics_table(evidence),
                tables.published_table(evidence),
                tables.chance_table(evidence),
                noise.beside_floor_table(evidence),
                noise.askings_table(evidence),
                tables.winners_table(evidence),
            ),
        ),
        Section(
            "orders",
            "What the fallback order decided",
            "Exact: under another order only turns that counting left tied can change, and how "
            "often each set of candidates was tied says what every order would have done.",
            _figures(evidence, "orders", "wins"),
            _present(counterfactuals.policies_table(evidence)),
        ),
        Section(
            "rules",
            "What other rules would have chosen",
            "Mostly not exact: a ballot in one format says only part of what its voter would have "
            "cast in another. What is certain and what is possible stand side by side.",
            _figures(evidence, "agreement", "identification"),
            _present(
                counterfactuals.dial_table(evidence),
                invariance.invariance_table(evidence),
                invariance.askings_by_format_table(evidence),
                counterfactuals.electorates_table(evidence),
                counterfactuals.readings_table(evidence),
                counterfactuals.divergence_table(evidence),
            ),
        ),
        Section(
            "voters",
            "How far to trust the votes",
            "Signs that ballots follow something else than the drafts, and how many ballots "
            "each decision hangs on.",
            _figures(evidence, "margins", "pivotal", "labels"),
            _present(tables.panel_table(evidence), tables.self_support_table(evidence)),
        ),
    )


def _figures(evidence: Evidence, *names: str) -> tuple[Figure, ...]:
    return tuple(_figure(evidence, name) for name in names)


def _figure(evidence: Evidence, name: str) -> Figure:
    """A chart; in a branch what is not recounted is not all logged either."""
    made, run = FIGURES[name](evidence), evidence.source.run
    if run is None or run.study.branch is None:
        return made
    caption = made.caption.replace("As logged;", "Logged and re-simulated together;")
    return replace(made, caption=caption)


def _present(*found: Table | None) -> tuple[Table, ...]:
    return tuple(table for table in found if table is not None)


def _facts(evidence: Evidence, run: RunRecord | None) -> tuple[tuple[str, str], ...]:
    """Settings, digests and versions; what a reader needs to find the same recording again."""
    source = evidence.source
    if run is None:
        return (
            ("Source", source.name),
            ("What answered", _UNKNOWN),
            ("Points of a cumulative ballot", str(source.budget)),
            *_left_out(evidence),
            *(("Reader's note", note) for note in source.notes),
        )
    study, stated = run.study, run.provenance
    return (
        ("Study", study.name),
        *_branch_facts(run),
        ("Seed", str(study.seed)),
        ("What answered", f"{stated.kind}: {stated.name}"),
        ("Models that replied", listed(stated.models)),
        ("Models asked for", listed([f"{who} {name}" for who, name in study.models.items()])),
        ("Recorded", f"{stated.recorded_from or 'no day'} to {stated.recorded_to or 'no day'}"),
        ("Roles", listed(study.roles)),
        ("Role-priority order", " › ".join(study.fallback_order)),
        ("Labels", f"drawn {study.blinding.replace('_', ' ')}"),
        ("Success", f"judge score of at least {study.success_threshold:g}; programs also pass"),
        ("Points of a cumulative ballot", str(study.cumulative_budget)),
        ("Repeats", str(study.repeats)),
        ("Study digest", run.study_digest),
        ("Recording digest", run.recording_digest),
        *((f"Package {name}", version) for name, version in run.packages.items()),
    )


def _left_out(evidence: Evidence) -> tuple[tuple[str, str], ...]:
    if not evidence.sums_only:
        return ()
    why = (
        f"Where other rules would have left the path, and in how many turns all rules agree: with "
        f"more than {MOST_LISTED:,} turns they are counted, and none is looked at on its own."
    )
    return (("Left out", why),)


def _branch_facts(run: RunRecord) -> tuple[tuple[str, str], ...]:
    branch = run.study.branch
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
