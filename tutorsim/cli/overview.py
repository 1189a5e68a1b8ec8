"""The summary of a source, as values and as what readers see."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from typing import Any

from rich.console import RenderableType
from rich.text import Text

from analysis.continuations import branch_counts
from analysis.metrics import (
    ChanceBaseline,
    Diagnostics,
    Gain,
    NoiseFloor,
    Rounds,
    Success,
    SuccessRate,
    chance_baselines,
    diagnostics,
    gains,
    noise_floor,
    rounds,
    success_rates,
    successes,
    winning_roles,
)
from analysis.sources import Source
from analysis.statistics import NotEstimable, to_json
from tutorsim.cli.branched import branch_head
from tutorsim.cli.figures import estimate, plain_figure
from tutorsim.cli.noise import noise_shown
from tutorsim.cli.outcomes import gains_shown, persona_shown, success_shown
from tutorsim.cli.render import (
    Pair,
    Prose,
    caption,
    heading,
    listing,
    percent,
    provenance,
    table,
)
from tutorsim.cli.usage import usage, usage_shown
from tutorsim.plan import PriceTable
from tutorsim.records import EpisodeRecord, RunRecord
from tutorsim.types import BALLOT_STATUSES

__all__ = ["Overview", "overview", "overview_shown", "overview_value", "source_shown"]

Shown = Iterator[RenderableType]

FEW = 8
"""Tasks below which an interval over tasks comes with a warning."""
LISTED = 8
"""Failed episodes named in the terminal; JSON has them all."""


@dataclass(frozen=True)
class Overview:
    """What a summary tells of a source."""

    source: Source
    success: list[SuccessRate]
    personas: list[Success]
    rounds: list[Rounds]
    gains: list[Gain]
    diagnostics: list[Diagnostics]
    chance: list[ChanceBaseline]
    noise_floor: NoiseFloor | NotEstimable
    winning_roles: list[dict[str, Any]]
    """protocol, role, wins, by_vote, by_tie_round, by_fallback."""
    ballots: list[dict[str, Any]]
    """protocol, stage, valid, repaired, abstained."""
    usage: dict[str, Any] = field(repr=False)


def overview(source: Source, prices: PriceTable) -> Overview:
    """Collect what a summary tells."""
    return Overview(
        source=source,
        success=success_rates(source),
        personas=successes(source),
        rounds=rounds(source),
        gains=gains(source),
        diagnostics=diagnostics(source),
        chance=chance_baselines(source),
        noise_floor=noise_floor(source),
        winning_roles=winning_roles(source).to_dicts(),
        ballots=_ballot_counts(source),
        usage=usage(source.episodes, prices),
    )


def overview_value(found: Overview) -> dict[str, Any]:
    """The summary as JSON values."""
    source = found.source
    return {
        "source": source.name,
        **_head_value(source),
        "grid": _grid(source.episodes),
        "success": to_json(found.success),
        "success_by_persona": to_json(found.personas),
        "rounds": to_json(found.rounds),
        "gains": to_json(found.gains),
        "diagnostics": to_json(found.diagnostics),
        "chance": to_json(found.chance),
        "noise_floor": to_json(found.noise_floor),
        "winning_roles": found.winning_roles,
        "ballots": found.ballots,
        "failures": [
            {"episode_id": e.episode_id, **e.failure.model_dump()}
            for e in source.episodes
            if e.failure is not None
        ],
        "usage": found.usage,
    }


def _head_value(source: Source) -> dict[str, Any]:
    """What answered, what was asked for, and by which digests it is known."""
    run = source.run
    if run is None:
        return {"provenance": {"kind": "elsewhere", "name": source.name}, "study": None}
    branch = run.study.branch
    return {
        "provenance": run.provenance.model_dump(mode="json"),
        "branch": None if branch is None else asdict(branch_counts(branch, source.episodes)),
        "study": run.study.model_dump(mode="json"),
        "digests": {"study": run.study_digest, "recording": run.recording_digest},
    }


def overview_shown(found: Overview) -> Shown:
    """The summary for readers, provenance first."""
    source = found.source
    yield from source_shown(source)
    if source.run is not None:
        yield from _study_shown(source.run)
        yield from _grid_shown(source)
        yield from success_shown(found.success, found.rounds)
        yield from _mixed(source.run)
        yield from _few_tasks(source)
        yield from gains_shown(found.gains)
        yield from persona_shown(found.personas)
    yield from _diagnostics_shown(found)
    if source.run is not None:
        yield from _mixed(source.run)
    yield from _winners_shown(found)
    yield from _ballots_shown(found)
    if source.run is not None:
        yield Text()
        yield from usage_shown(found.usage, source.run.provenance.kind)
        if source.run.study.branch is not None:
            yield caption(
                "Calls taken over from the parent are among them, once for every draw; "
                "`tutorsim compare PARENT BRANCH` counts those that were paid for."
            )


def _mixed(run: RunRecord) -> Shown:
    if run.study.branch is not None:
        yield caption(
            "Logged and re-simulated together, without episodes that the branch left open; "
            "`tutorsim compare PARENT BRANCH` keeps them apart and bounds the open ones."
        )


def source_shown(source: Source) -> Shown:
    """What is looked at, and what answered its calls: the head of every view."""
    yield heading(source.name)
    if source.run is None:
        yield Prose("Ballots from elsewhere: nothing is known of what cast them.")
    else:
        yield provenance(source.run.provenance)
        if source.run.study.branch is not None:
            yield branch_head(source.run.study.branch, source.episodes)
    for note in source.notes:
        yield caption(note)


def _study_shown(run: RunRecord) -> Shown:
    study = run.study
    yield Prose(
        f"Study {study.name}, seed {study.seed}, digest {run.study_digest[:12] or 'not stated'}; "
        f"recording {run.recording_digest[:12] or 'not stated'}. "
        f"Success: score at least {study.success_threshold:g}, and passing tests for programs, "
        f"within {study.max_turns} turns. Labels: {study.blinding.replace('_', ' ')}. "
        f"Role-priority order: {' > '.join(study.fallback_order)}"
        + (", before the branch changes it." if _changes_order(run) else ".")
    )


def _changes_order(run: RunRecord) -> bool:
    return run.study.branch is not None and run.study.branch.fallback_order is not None


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


def _grid_shown(source: Source) -> Shown:
    grid = _grid(source.episodes)
    if not grid["episodes"]:
        yield Prose("The run has no episode.")
        return
    tasks = listing([f"{n} of {name}" for name, n in grid["tasks"].items()])
    yield Prose(
        f"Grid: tasks {tasks}; {len(grid['personas'])} personas; conditions "
        f"{listing(grid['conditions'])}. Episodes: {grid['episodes']}, "
        f"of which {grid['complete']} complete and {grid['failed']} failed."
    )
    failed = [e for e in source.episodes if e.failure is not None]
    for episode in failed[:LISTED]:
        assert episode.failure is not None
        yield Prose(f"failed: {episode.episode_id}, {episode.failure.error}", indent=2)
    if len(failed) > LISTED:
        yield Prose(f"and {len(failed) - LISTED} more", indent=2)


def _few_tasks(source: Source) -> Shown:
    """A warning where an interval over tasks rests on a handful of them."""
    few = [f"{n} of {name}" for name, n in _grid(source.episodes)["tasks"].items() if n < FEW]
    if few:
        yield caption(
            f"An interval that resamples so few tasks ({listing(few)}) is too narrow to rely on."
        )


def _diagnostics_shown(found: Overview) -> Shown:
    yield Text()
    yield heading("How the panels decided", "the turn is the unit")
    yield table(
        ("protocol", "turns", "shift", "flip %", "flip %, set", "tied %", "fallback %"),
        [
            (
                row.protocol,
                str(row.turns),
                estimate(row.shift),
                *(
                    estimate(rate, unit=percent)
                    for rate in (row.flip, row.flip_set, row.tie_rate, row.fallback_rate)
                ),
            )
            for row in found.diagnostics
        ],
    )
    yield caption(
        "Shift: half the distance between vote shares before and after deliberation. Flip: the "
        "first leader did not win; a tied lead goes to the role-priority order, in “set” to all "
        "who lead. Tied: the final vote. Fallback: decided by the role-priority order. "
        "“a to b”: 95 % intervals."
    )
    yield Text()
    yield heading("Beside chance", "first and final votes drawn independently")
    yield table(
        ("protocol", "flip %", "by chance", "shift", "by chance", "kappa"),
        [
            (
                row.protocol,
                plain_figure(row.flip, unit=percent),
                plain_figure(row.flip_expected, unit=percent),
                plain_figure(row.shift),
                plain_figure(row.shift_expected),
                plain_figure(row.kappa),
            )
            for row in found.chance
        ],
    )
    yield from noise_shown(found.noise_floor)


def _winners_shown(found: Overview) -> Shown:
    protocols = list(dict.fromkeys(row["protocol"] for row in found.winning_roles))
    roles = list(dict.fromkeys(row["role"] for row in found.winning_roles))
    cells = {(row["role"], row["protocol"]): row for row in found.winning_roles}
    yield Text()
    yield heading("Winning roles", "wins, then by vote + tie round + fallback")
    yield table(
        ("role", *protocols),
        [(role, *(_wins(cells.get((role, p))) for p in protocols)) for role in roles],
    )


def _wins(row: dict[str, Any] | None) -> Pair:
    if row is None:
        return Pair("", "")
    steps = "+".join(str(row[step]) for step in ("by_vote", "by_tie_round", "by_fallback"))
    return Pair(str(row["wins"]), steps)


def _ballot_counts(source: Source) -> list[dict[str, Any]]:
    """Ballots by protocol, stage and status, in the table's order."""
    one_each = source.ballots.unique(
        ["episode_id", "turn", "stage", "voter"], keep="first", maintain_order=True
    )
    columns = ("protocol", "stage", "ballot_status")
    groups = one_each.group_by(columns, maintain_order=True).len()
    counts = Counter({(p, stage, status): n for p, stage, status, n in groups.iter_rows()})
    places = dict.fromkeys((protocol, stage) for protocol, stage, _ in counts)
    return [
        {
            "protocol": protocol,
            "stage": stage,
            **{status: counts[protocol, stage, status] for status in BALLOT_STATUSES},
        }
        for protocol, stage in places
    ]


def _ballots_shown(found: Overview) -> Shown:
    yield Text()
    yield heading("Ballots", "all rounds")
    totals: dict[str, Counter[str]] = {}
    for row in found.ballots:
        counts = totals.setdefault(row["protocol"], Counter())
        counts.update({status: row[status] for status in BALLOT_STATUSES})
    yield table(
        ("protocol", "ballots", *BALLOT_STATUSES),
        [
            (protocol, str(counts.total()), *(str(counts[s]) for s in BALLOT_STATUSES))
            for protocol, counts in totals.items()
        ],
    )
