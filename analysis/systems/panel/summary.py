"""The summary of a panel's run or of ballots: its first sentences, texts, tables and costs."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any, Final

from tutorsim.analysis.ballots.recount_source import Source
from tutorsim.analysis.counting.rule_definitions import TARGETS
from tutorsim.analysis.pages.cells import Part, Table, table
from tutorsim.analysis.pages.words import counted, listed, share
from tutorsim.analysis.ratings.ratings_section import (
    Ratings,
    ratings_of,
    ratings_section,
    ratings_verdict,
)
from tutorsim.analysis.recount import RecountResult, RuleRow
from tutorsim.analysis.runs.branch_continuations import branch_counts
from tutorsim.analysis.runs.exported_tables import panels_of
from tutorsim.analysis.statistics.intervals_and_tests import Estimate, to_json
from tutorsim.analysis.systems.panel.contrasts import (
    OUTCOME_NAMES,
    Contrast,
    chance_words,
    contrast_table,
    contrast_words,
    contrasts_of,
)
from tutorsim.analysis.systems.panel.diagnostics import ballots_table, chance_table
from tutorsim.analysis.systems.panel.evidence import Evidence, askings_table, beside_floor_table
from tutorsim.analysis.systems.panel.student_outcomes import (
    Rounds,
    SuccessRate,
    few_tasks_words,
    persona_tables,
    rounds,
    stops_table,
    success_rates,
    success_table,
)
from tutorsim.analysis.systems.panel.turns import turn_table
from tutorsim.analysis.systems.panel.two_runs import Comparison, OutcomeDifference
from tutorsim.records import EpisodeRecord, RunRecord, stop_counts
from tutorsim.vocabularies import BALLOT_STATUSES, PROTOCOLS, ProvenanceKind

# --- Opening verdict -----------------------------------------------------------------------------


def summary_verdict(source: Source, contrasts: Sequence[Contrast]) -> tuple[str, ...]:
    """What was run, what differs, what the order decided, and what is not identified."""
    said = (
        _ran(source),
        _differs(source, contrasts),
        _decided(source),
        _not_identified(source),
    )
    return tuple(filter(None, said))


def _ran(source: Source) -> str:
    if source.run is None:
        turns = len(turn_table(source).winner)
        return f"{counted(turns, 'vote')} without episodes: nothing says what became of anybody."
    episodes = source.episodes
    if not episodes:
        return "The run has no episode."
    failed = sum(e.status == "failed" for e in episodes)
    tasks = len({(e.benchmark, e.task_id) for e in episodes})
    conditions = list(dict.fromkeys(e.condition for e in episodes))
    left = f"; {failed} failed and are in no figure" if failed else ""
    return (
        f"{counted(len(episodes), 'episode')} of {counted(tasks, 'task')} under "
        f"{counted(len(conditions), 'condition')} ({listed(conditions)}){left}."
    )


def _differs(source: Source, contrasts: Sequence[Contrast]) -> str:
    return contrast_words(contrasts) if source.run is not None and source.episodes else ""


def _decided(source: Source) -> str:
    table = turn_table(source)
    turns, ties = len(table.winner), int(table.fallback.sum())
    if not turns:
        return "No turn was put to a vote."
    if not source.ordered:
        return f"Counting leaves {share(ties, turns, 'vote')} tied, and no order is logged."
    if not ties:
        return f"The fallback order decided none of {counted(turns, 'vote')}."
    return f"The fallback order decided {share(ties, turns, 'vote')}."


def _not_identified(source: Source) -> str:
    if not len(turn_table(source).winner):
        return ""
    answer = "" if source.run is None else ", and what a student would have said to that reply"
    return (
        f"Not identified here: who would have won under another ballot format{answer}. "
        "`tutorsim recount` bounds the winners."
    )


def recount_verdict(found: RecountResult) -> tuple[str, ...]:
    """What every rule that was asked surely keeps and changes, and what the ballots leave open.

    Where no rule in particular was asked, the order's part comes first, and of the shipped rules
    the protocols alone are told.
    """
    if not found.turns:
        return ("There is no voting turn to recount.",)
    by_order = (_by_order(found),) if found.orders and _asks_every_rule(found) else ()
    sentences = tuple(_under(rule, _other_than_logged(found, rule)) for rule in told_rules(found))
    if all(row.point_only for row in found.rules):
        return (*by_order, *sentences)
    return (*by_order, *sentences, _untested(found))


def told_rules(found: RecountResult) -> tuple[str, ...]:
    """The rules that a first screen tells of: those asked, or the protocols and own rules."""
    asked = tuple(dict.fromkeys(row.target for row in found.rules))
    if not _asks_every_rule(found):
        return asked
    logged = {row.logged_protocol for row in found.rules}
    return tuple(r for r in asked if {r} != logged and (r in PROTOCOLS or _is_own(r)))


def _asks_every_rule(found: RecountResult) -> bool:
    return not found.rules or {row.target for row in found.rules}.issuperset(TARGETS)


def _other_than_logged(found: RecountResult, target: str) -> list[RuleRow]:
    """Over all logged protocols, with the fewest exempt voters, both readings of ties."""
    least = min(found.exempt)
    return [
        row
        for row in found.rules
        if (row.target, row.exempt) == (target, least) and row.logged_protocol != target
    ]


def _by_order(found: RecountResult) -> str:
    everything = found.orders[0]
    tied, turns = everything.decided_by_order, everything.turns
    if not everything.logged_order:
        return f"Counting leaves {share(tied, turns, 'turn')} tied, and no order is logged."
    if not tied:
        return f"No fallback order would change a winner of {counted(turns, 'turn')}."
    return (
        f"The fallback order decided {share(tied, turns, 'turn')}: under another one they may "
        "be won by another candidate."
    )


def _is_own(target: str) -> bool:
    return target not in TARGETS


def _under(target: str, every: Sequence[RuleRow]) -> str:
    rows = [row for row in every if row.reading == "set"]
    by_order = [row.agreement.lower for row in every if row.reading == "fallback"]
    turns = sum(row.turns if row.compared is None else row.compared for row in rows)
    keeps = sum(row.agreement.lower for row in rows)
    changes = turns - sum(row.agreement.upper for row in rows)
    is_protocol = target in PROTOCOLS
    rule = f"{target.capitalize()} voting" if is_protocol else f"The rule {target}"
    if not every:
        return f"{rule}: every turn was logged under it, so there is nothing to recount."
    if not turns:
        return f"{rule}: no turn has a logged winner to compare with."
    if rows[0].point_only:
        return f"{rule} keeps the winner of {_points(every, turns)}: a point, which nothing bounds."
    logged = " logged under another protocol" if is_protocol else ""
    return (
        f"{rule} surely keeps the winner of {keeps:,} of {counted(turns, 'turn')}{logged}; "
        f"it surely changes {changes:,}, and {turns - keeps - changes:,} are open. A tie counts "
        "here as nobody's win." + _ties_to_the_order(by_order)
    )


def _points(every: Sequence[RuleRow], turns: int) -> str:
    """Of a rule that gives points alone: turns that keep their winner, by each reading of ties."""
    of = {
        reading: sum(row.agreement.point or 0 for row in every if row.reading == reading)
        for reading in dict.fromkeys(row.reading for row in every)
    }
    kept = f"{share(of['set'], turns, 'turn')}, as long as a tie counts as nobody's win"
    if "fallback" not in of:
        return kept
    return f"{kept}, and of {of['fallback']:,} with ties given to the fallback order"


def _ties_to_the_order(keeps: Sequence[int]) -> str:
    """What is sure once the order decides ties; empty where no order is logged."""
    if not keeps:
        return ""
    return f" With ties given to the fallback order it surely keeps {sum(keeps):,}."


def _untested(found: RecountResult) -> str:
    more = [k for k in found.exempt if k]
    if not more:
        return "This holds while every voter prefers the same in every format."
    k, told = more[0], told_rules(found)
    sure = [
        sum(
            row.agreement.lower
            for row in found.rules
            if (row.reading, row.exempt) == ("set", exempt)
            and row.target in told
            and row.logged_protocol != row.target
        )
        for exempt in (min(found.exempt), k)
    ]
    assumed = (
        "“Surely” holds while every voter prefers the same in every format, which these ballots "
        "do not test"
    )
    if not sure[0]:
        return f"{assumed}."
    return (
        f"{assumed}. Where {counted(k, 'voter')} of a turn may have cast anything, {sure[1]:,} of "
        f"the {sure[0]:,} answers “surely keeps” are left (a turn has one for each rule)."
    )


def comparison_verdict(found: Comparison) -> tuple[str, ...]:
    """Whether two runs differ, where, and how sure."""
    paired = (
        f"{counted(found.pairs, 'pair')} in both runs. Only in the first: {found.only_first}; only "
        f"in the second: {found.only_second}."
    )
    apart = [row for row in found.outcomes if row.differing]
    same = all(rate.value == 1 for rate in found.same_winner.values() if isinstance(rate, Estimate))
    if not apart:
        winners = " and every first turn has the same winner" if same else ""
        return (paired, f"Nothing differs: every paired outcome is equal{winners}.")
    words = chance_words(found.outcomes, _told, _measured, between="runs")
    return (paired, f"Means differ in {len(apart)} of {len(found.outcomes)} outcomes. {words}")


def _told(row: OutcomeDifference) -> str:
    value = row.difference.value if isinstance(row.difference, Estimate) else 0.0
    return f"{value:+.2f} {_measured(row)}".replace("-", "−")


def _measured(row: OutcomeDifference) -> str:
    return f"in {OUTCOME_NAMES[row.outcome]} under {row.condition} ({row.benchmark})"


# --- Call costs ----------------------------------------------------------------------------------


def usage_table(usage: Mapping[str, Any], kind: ProvenanceKind) -> Table | None:
    """Calls, tokens and cost by model; `None` without a call.

    Args:
        usage: `models`: name → calls, input_tokens, output_tokens and cost_usd, the sums beside
            it, and `prices_as_of`.
        kind: What answered the calls.
    """
    rows = [_row(model, row) for model, row in usage["models"].items()]
    if len(rows) > 1:
        rows.append(_row("all", usage))
    paid = "" if kind == "api" else " Not what was paid: the Messages API did not answer them."
    return table(
        "cost",
        "Calls, tokens and cost",
        f"At list prices of {usage['prices_as_of']}.{paid}",
        ["model", "calls", "input tokens", "output tokens", "US$"],
        rows,
    )


def _row(name: str, row: Mapping[str, Any]) -> tuple[object, ...]:
    cost = "unknown" if row["cost_usd"] is None else f"{row['cost_usd']:.2f}"
    return (name, row["calls"], row["input_tokens"], row["output_tokens"], cost)


# --- Summary sections ----------------------------------------------------------------------------

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
