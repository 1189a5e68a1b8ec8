"""The summary of a panel's run or of ballots, as values, texts and tables."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any, Final

from tutorsim.analysis.ballots.recount_source import Source
from tutorsim.analysis.charts.number_words import listed
from tutorsim.analysis.outcomes.condition_contrasts import Contrast
from tutorsim.analysis.outcomes.student_scores import Rounds, SuccessRate, rounds, success_rates
from tutorsim.analysis.ratings.ratings_section import (
    Ratings,
    ratings_of,
    ratings_section,
    ratings_verdict,
)
from tutorsim.analysis.report.report_inputs import Evidence
from tutorsim.analysis.runs.branch_continuations import branch_counts
from tutorsim.analysis.runs.run_panels import panels_of
from tutorsim.analysis.statistics.intervals_and_tests import to_json
from tutorsim.analysis.views.call_costs import usage_table
from tutorsim.analysis.views.cells import Part
from tutorsim.analysis.views.condition_contrasts import contrast_table, contrasts_of
from tutorsim.analysis.views.decision_tables import ballots_table, chance_table
from tutorsim.analysis.views.noise_floor import askings_table, beside_floor_table
from tutorsim.analysis.views.opening_verdict import summary_verdict
from tutorsim.analysis.views.student_outcomes import (
    few_tasks_words,
    persona_tables,
    stops_table,
    success_table,
)
from tutorsim.records import EpisodeRecord, RunRecord, stop_counts
from tutorsim.vocabularies import BALLOT_STATUSES

__all__ = ["SECTIONS", "Overview"]

Parts = Iterator[Part | None]

_LISTED: Final = 8
"""Failed episodes that are named; the values have them all."""


@dataclass(frozen=True)
class Overview:
    """What a summary tells of a source, each thing computed once and only if it is told."""

    evidence: Evidence
    usage: Mapping[str, Any]
    """Calls, tokens and cost, as `usage_table` takes them."""

    @property
    def source(self) -> Source:
        return self.evidence.source

    @cached_property
    def success(self) -> list[SuccessRate]:
        return success_rates(self.source)

    @cached_property
    def rounds(self) -> list[Rounds]:
        return rounds(self.source)

    @cached_property
    def contrasts(self) -> list[Contrast]:
        """Conditions against one another, on what they are compared on first."""
        return contrasts_of(self.source)

    @cached_property
    def ratings(self) -> Ratings | None:
        """What people said of the run; `None` where nobody was asked."""
        return ratings_of(self.source)

    @cached_property
    def ballots(self) -> list[dict[str, Any]]:
        """Ballots by protocol, stage and status, in the table's order."""
        one_each = self.source.ballots.unique(
            ["episode_id", "turn", "stage", "voter"], keep="first", maintain_order=True
        )
        columns = ("protocol", "stage", "ballot_status")
        groups = one_each.group_by(columns, maintain_order=True).len()
        counts = Counter({(p, stage, status): n for p, stage, status, n in groups.iter_rows()})
        return [
            {
                "protocol": protocol,
                "stage": stage,
                **{status: counts[protocol, stage, status] for status in BALLOT_STATUSES},
            }
            for protocol, stage in dict.fromkeys((p, stage) for p, stage, _ in counts)
        ]

    def verdict(self) -> Iterator[str]:
        """The first sentences: what was run, what differs and how sure, what the order decided."""
        yield from summary_verdict(self.source, self.contrasts)
        if self.evidence.panels:
            yield self.evidence.panels.words()
        if self.ratings is not None:
            yield from ratings_verdict(self.ratings)

    def brief(self) -> Parts:
        """The tables that the verdict rests on."""
        yield _success(self)
        yield self.evidence.winners_table
        yield from _mixed(self.source.run)
        yield stops_table(self.evidence.stops)

    def sections(self) -> tuple[str, ...]:
        """Names of the sections that have something to show."""
        there = {"panels": bool(self.evidence.panels), "ratings": self.ratings is not None}
        return tuple(name for name in SECTIONS if there.get(name, True))

    def to_json(self) -> dict[str, Any]:
        """The summary as JSON values."""
        source, evidence, printed = self.source, self.evidence, self.evidence.published_table
        return {
            "source": source.name,
            **_head_value(source),
            "grid": _grid(source.episodes),
            "success": to_json(self.success),
            "success_by_persona": to_json(evidence.successes),
            "rounds": to_json(self.rounds),
            "gains": to_json(evidence.gains),
            "contrasts": to_json(self.contrasts),
            "published": [] if printed is None else printed.data.to_dicts(),
            "diagnostics": to_json(evidence.diagnostics),
            "chance": to_json(evidence.chance),
            "noise_floor": to_json(evidence.noise),
            "winning_roles": evidence.winners.to_dicts(),
            "ballots": self.ballots,
            "failures": [
                {"episode_id": e.episode_id, **e.failure.model_dump()}
                for e in source.episodes
                if e.failure is not None
            ],
            "stop_reasons": [count._asdict() for count in stop_counts(source.episodes)],
            "usage": self.usage,
            **({"panels": evidence.panels.to_json()} if evidence.panels else {}),
            **({} if self.ratings is None else {"ratings": self.ratings.to_json()}),
        }


def _head_value(source: Source) -> dict[str, Any]:
    """What answered, what was asked for, and by which digests it is known."""
    run = source.run
    if run is None:
        told = {"kind": "elsewhere", "name": source.name, "stated": list(source.stated)}
        return {"provenance": told, "study": None}
    branch = run.branch
    return {
        "provenance": run.provenance.model_dump(mode="json"),
        "branch": None if branch is None else asdict(branch_counts(branch, source.episodes)),
        "study": run.study.model_dump(mode="json"),
        "digests": {"study": run.study_digest, "recording": run.recording_digest},
    }


def _grid(episodes: tuple[EpisodeRecord, ...]) -> dict[str, Any]:
    tasks = {(e.benchmark, e.task_id) for e in episodes}
    return {
        "episodes": len(episodes),
        "complete": sum(e.status == "complete" for e in episodes),
        "failed": sum(e.status == "failed" for e in episodes),
        "tasks": dict(sorted(Counter(benchmark for benchmark, _ in tasks).items())),
        "personas": list(dict.fromkeys(e.persona for e in episodes)),
        "conditions": list(dict.fromkeys(e.condition for e in episodes)),
    }


def _study(found: Overview) -> Parts:
    run = found.source.run
    if run is None:
        return
    study = run.panel
    changed = run.branch is not None and run.branch.fallback_order is not None
    yield (
        f"Study {study.name}, seed {study.seed}, digest {run.study_digest[:12] or 'not stated'}; "
        f"recording {run.recording_digest[:12] or 'not stated'}. "
        f"Success: score at least {study.success_threshold:g}, and passing tests for programs, "
        f"within {study.max_turns} turns. Labels: {study.blinding.replace('_', ' ')}. "
        f"Fallback order: {' > '.join(study.fallback_order)}"
        + (", before the branch changes it." if changed else ".")
    )
    grid = _grid(found.source.episodes)
    if not grid["episodes"]:
        yield "The run has no episode."
        return
    named = panels_of(run)
    panels = f"; panels {listed(list(named))}" if named else ""
    tasks = listed([f"{n} of {name}" for name, n in grid["tasks"].items()])
    yield (
        f"Grid: tasks {tasks}; {len(grid['personas'])} personas; conditions "
        f"{listed(grid['conditions'])}{panels}. Episodes: {grid['episodes']}, "
        f"of which {grid['complete']} complete and {grid['failed']} failed."
    )
    failures = [(e.episode_id, e.failure) for e in found.source.episodes if e.failure is not None]
    for name, failure in failures[:_LISTED]:
        yield f"  failed: {name}, {failure.error}"
    if len(failures) > _LISTED:
        yield f"  and {len(failures) - _LISTED} more"


def _success(found: Overview) -> Part | None:
    note = few_tasks_words(found.source.episodes)
    return success_table(found.success, found.rounds, note)


def _outcomes(found: Overview) -> Parts:
    if found.source.run is not None:
        yield _success(found)
        yield from _mixed(found.source.run)
        yield found.evidence.gains_table
        yield from persona_tables(found.evidence.successes)


def _contrasts(found: Overview) -> Parts:
    yield contrast_table(found.contrasts)


def _panels(found: Overview) -> Parts:
    if found.evidence.panels:
        yield from found.evidence.panels.tables()


def _decisions(found: Overview) -> Parts:
    evidence = found.evidence
    yield evidence.diagnostics_table
    if not evidence.unordered:
        yield chance_table(evidence.chance)
    yield beside_floor_table(evidence.noise)
    yield askings_table(evidence.noise)
    yield from _mixed(found.source.run)
    yield evidence.winners_table


def _ballots(found: Overview) -> Parts:
    yield ballots_table(found.ballots)


def _published(found: Overview) -> Parts:
    yield found.evidence.published_table


def _ratings(found: Overview) -> Parts:
    for section in ratings_section(found.ratings):
        yield section.lead
        yield from section.tables


def _cost(found: Overview) -> Parts:
    run = found.source.run
    if run is None:
        return
    yield usage_table(found.usage, run.provenance.kind)
    if run.branch is not None:
        yield (
            "Calls taken over from the parent are among them, once for every draw; "
            "`tutorsim compare PARENT BRANCH` counts those that were paid for."
        )
    yield stops_table(found.evidence.stops)


def _mixed(run: RunRecord | None) -> Parts:
    if run is not None and run.branch is not None:
        yield (
            "Logged and re-simulated together, without episodes that the branch left open; "
            "`tutorsim compare PARENT BRANCH` keeps them apart and bounds the open ones."
        )


SECTIONS: Final[Mapping[str, Callable[[Overview], Parts]]] = {
    "study": _study,
    "outcomes": _outcomes,
    "contrasts": _contrasts,
    "panels": _panels,
    "decisions": _decisions,
    "ballots": _ballots,
    "published": _published,
    "ratings": _ratings,
    "cost": _cost,
}
"""Name → what `summary --section NAME` shows, in order."""
