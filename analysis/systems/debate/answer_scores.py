"""How well and how fast debates answer: one cell per benchmark, variant and condition."""

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from statistics import mean, stdev

from tutorsim.analysis.statistics.intervals_and_tests import (
    Estimate,
    Interval,
    NotEstimable,
    share_over_tasks,
)
from tutorsim.records import BallotRecord
from tutorsim.records.debate import DebateRecord

__all__ = ["Cell", "CostCell", "cells", "costs", "grouped", "percent_over_tasks", "turn_shares"]

Key = tuple[str, str, str]
"""Benchmark, variant and condition."""


@dataclass(frozen=True)
class Cell:
    """What came of the debates of one benchmark, variant and condition."""

    benchmark: str
    variant: str
    condition: str
    episodes: int
    """Complete ones; all means are over them."""
    failed: int
    score: Estimate | NotEstimable
    """Mean score in percent, with an interval over tasks."""
    sd: float | None
    """Deviation of the repeats' means (n - 1); `None` with one repeat."""
    decided: float | None
    """Share of debates that the protocol decided; `None` where there is nothing to decide."""
    turns: float | None
    unclear: int
    """Messages that were asked for a tag and had none."""
    abstentions: int
    unreadable: int
    """Answers that could not be read as an option."""


def grouped(records: Iterable[DebateRecord]) -> dict[Key, list[DebateRecord]]:
    """Records by benchmark, variant and condition, in the order of the grid."""
    groups: dict[Key, list[DebateRecord]] = {}
    for record in records:
        groups.setdefault((record.benchmark, record.variant, record.condition), []).append(record)
    return groups


def cells(records: Iterable[DebateRecord]) -> list[Cell]:
    """One cell per group of records."""
    return [_cell(key, group) for key, group in grouped(records).items()]


def _cell(key: Key, group: Sequence[DebateRecord]) -> Cell:
    complete = [record for record in group if record.status == "complete"]
    scored = [record for record in complete if record.score is not None]
    decided = [record.decided for record in complete if record.decided is not None]
    messages = [one for record in complete for turn in record.turns for one in turn.messages]
    return Cell(
        *key,
        episodes=len(complete),
        failed=len(group) - len(complete),
        score=percent_over_tasks(
            [100 * (record.score or 0.0) for record in scored],
            [record.task_id for record in scored],
        ),
        sd=_deviation(scored),
        decided=mean(decided) if decided else None,
        turns=mean(r.turns_taken for r in complete) if any(r.turns for r in complete) else None,
        unclear=sum(one.agreement == "unclear" for one in messages),
        abstentions=sum(
            ballot.ballot_status == "abstained" for record in complete for ballot in _cast(record)
        ),
        unreadable=sum(record.readable is False for record in complete),
    )


def percent_over_tasks(
    scores: Sequence[float], tasks: Sequence[Hashable]
) -> Estimate | NotEstimable:
    """Mean of scores in percent, as the share that they are of the greatest score."""
    found = share_over_tasks([score / 100 for score in scores], tasks)
    if isinstance(found, NotEstimable):
        return found
    interval = found.interval
    if isinstance(interval, Interval):
        interval = Interval(100 * interval.low, 100 * interval.high, interval.method)
    return Estimate(100 * found.value, found.n, interval)


def _cast(record: DebateRecord) -> Iterator[BallotRecord]:
    for turn in record.turns:
        for ballots in (turn.cast, *turn.ballots_as.values()):
            yield from ballots


def _deviation(scored: Sequence[DebateRecord]) -> float | None:
    repeats: dict[int, list[float]] = {}
    for record in scored:
        repeats.setdefault(record.repeat, []).append(100 * (record.score or 0.0))
    means = [mean(values) for values in repeats.values()]
    return stdev(means) if len(means) > 1 else None


@dataclass(frozen=True)
class CostCell:
    """What one condition of a variant costs."""

    variant: str
    condition: str
    debates: int
    calls: float
    """Mean calls of an episode."""
    tokens: float
    """Mean input and output tokens of an episode."""
    call_factor: float | None
    """Calls as a multiple of `baseline_cot` on the same tasks; `None` if it was not run."""
    token_factor: float | None


def costs(records: Iterable[DebateRecord]) -> list[CostCell]:
    """Cost by variant and condition, failed episodes left out."""
    groups: dict[tuple[str, str], list[DebateRecord]] = {}
    for record in records:
        if record.status == "complete":
            groups.setdefault((record.variant, record.condition), []).append(record)
    base = {
        (record.benchmark, record.task_id, record.repeat): record
        for group in groups.values()
        for record in group
        if record.condition == "baseline_cot"
    }
    return [_cost(key, group, base) for key, group in groups.items()]


def _cost(
    key: tuple[str, str],
    group: Sequence[DebateRecord],
    base: dict[tuple[str, str, int], DebateRecord],
) -> CostCell:
    names = [(record.benchmark, record.task_id, record.repeat) for record in group]
    beside = [
        (record, base[name]) for record, name in zip(group, names, strict=True) if name in base
    ]
    return CostCell(
        *key,
        debates=len(group),
        calls=mean(len(record.calls) for record in group),
        tokens=mean(map(_tokens, group)),
        call_factor=_factor(beside, lambda record: len(record.calls)),
        token_factor=_factor(beside, _tokens),
    )


def _tokens(record: DebateRecord) -> int:
    return sum(call.input_tokens + call.output_tokens for call in record.calls)


def _factor(
    beside: Sequence[tuple[DebateRecord, DebateRecord]], cost: Callable[[DebateRecord], int]
) -> float | None:
    below = sum(cost(base) for _, base in beside)
    return sum(cost(record) for record, _ in beside) / below if below else None


def turn_shares(group: Sequence[DebateRecord]) -> dict[int, float]:
    """Turn → percent of debates that ended in it; the last turn holds undecided ones too."""
    complete = [record for record in group if record.status == "complete" and record.turns]
    last = max((record.setup.max_turns or record.turns_taken for record in complete), default=0)
    return {
        turn: 100 * mean(record.turns_taken == turn for record in complete)
        for turn in range(1, last + 1)
    }
