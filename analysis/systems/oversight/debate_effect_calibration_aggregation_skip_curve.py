"""What the debate did, how far confidence holds, and other ways to put opinions together."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import chain, groupby
from math import fsum
from typing import Final, NamedTuple

import numpy as np

from tutorsim.analysis.statistics import by_key
from tutorsim.analysis.systems.oversight.label_accuracy import Pair, cells_of, headline, pair_of
from tutorsim.analysis.systems.system_view_opened_run_and_cost import Spent, spent_by
from tutorsim.records.oversight import LABELS, Labels, OversightRecord

# --- Debate diagnostics --------------------------------------------------------------------------

BINS: Final = 5
"""Equal bins of stated confidence."""


def debate_shares(records: Sequence[OversightRecord]) -> dict[str, list[bool]]:
    """What may be said of items of a condition → whether it holds, of each that it may be of."""
    said = (sorted(_moved(records)), _pressed(records), _judged(records), _wrong(records))
    return by_key(chain(*said))


Hits = Iterator[tuple[str, bool]]
"""What may be said of an item, and whether it holds."""


def _moved(records: Sequence[OversightRecord]) -> Hits:
    """Labels that an agent changed between its first and its last message."""
    for record in records:
        messages = by_key((one.agent, one.labels) for one in record.messages)
        for agent, (first, *later) in messages.items():
            last = later[-1] if later else None
            for label in LABELS if first and last else ():
                changed = getattr(first, label) != getattr(last, label)
                yield f"{agent}: {label} moved from first to last message", changed


def _pressed(records: Sequence[OversightRecord]) -> Hits:
    for critic in ("permissive", "strict"):
        for record in records:
            verdict = record.press and record.press.verdicts.get(critic)
            if verdict:
                yield f"{critic}: defence unmet, and pressed", verdict == "unmet"


def _judged(records: Sequence[OversightRecord]) -> Hits:
    judges = [r.judge for r in records if r.judge is not None and r.judge.winner is not None]
    for winner in sorted({str(judge.winner) for judge in judges}):
        yield from ((f"judge: {winner} wins", judge.winner == winner) for judge in judges)
    for side in sorted({judge.first_shown for judge in judges}):
        yield from ((f"judge: {side} shown first", judge.first_shown == side) for judge in judges)
    for judge in judges:
        yield "judge: the side shown first wins", judge.winner == judge.first_shown
    for one, other in ((r.judge, r.judge_swapped) for r in records):
        if one and other and one.winner and other.winner:
            yield "judge: another winner in the other order", one.winner != other.winner
    for pair in map(judge_and_lead, records):
        if pair is not None:
            yield "judge and lead state other labels", pair[0] != pair[1]


def _wrong(records: Sequence[OversightRecord]) -> Hits:
    """Wrong labels by the severity of the stress test; and mistakes that a label alone sees."""
    golds = [record for record in records if record.gold is not None]
    severe = [
        (f"severity {record.stress.severity}: a label is wrong", not all(record.scores.values()))
        for record in golds
        if record.stress is not None and record.stress.severity is not None
    ]
    yield from sorted(severe)
    for record in golds:
        if record.gold and record.gold.mistake == 0:
            seen = record.label is not None and record.label.mistake == 1
            yield "label sees a mistake identified that was not", seen


def judge_and_lead(record: OversightRecord) -> tuple[Labels, Labels] | None:
    """The labels of both; `None` if one of them states none."""
    judge = record.judge.labels if record.judge else None
    lead = record.lead.labels if record.lead else None
    return None if judge is None or lead is None else (judge, lead)


class Calibration(NamedTuple):
    """Stated confidence against what was right, in one bin."""

    low: float
    high: float
    items: int
    stated: float
    """Mean confidence."""
    right: float
    """Share of items with both labels right."""


def _stated(records: Sequence[OversightRecord]) -> list[tuple[float, bool]]:
    """The lead's confidence, and whether both labels are right; judged items with gold only."""
    return [
        (r.lead.confidence, all(r.scores.values()))
        for r in records
        if r.scores and r.lead is not None and r.lead.confidence is not None
    ]


def calibration(records: Sequence[OversightRecord]) -> list[Calibration]:
    """Bins of the lead's confidence that hold any item."""
    stated = _stated(records)
    bins = []
    for place in range(BINS):
        here = [(c, right) for c, right in stated if min(int(c * BINS), BINS - 1) == place]
        if here:
            mean, right = (fsum(map(float, one)) / len(here) for one in zip(*here, strict=True))
            bins.append(Calibration(place / BINS, (place + 1) / BINS, len(here), mean, right))
    return bins


def brier(records: Sequence[OversightRecord]) -> float | None:
    """Mean squared distance of the lead's confidence from 1 (both labels right) or 0.

    `None` without a judged item that has gold.
    """
    stated = _stated(records)
    return fsum((c - right) ** 2 for c, right in stated) / len(stated) if stated else None


def phases(records: Sequence[OversightRecord]) -> dict[str, Spent]:
    """Phase → calls and tokens, in order; second askings are in their phase."""
    calls = (call for record in records for call in record.calls)
    spent = spent_by((_PHASE_OF.get(call.stage, "debate"), call) for call in calls)
    return {name: spent[name] for name in _PHASES if name in spent}


_PHASES: Final[Mapping[str, tuple[str, ...]]] = {
    "briefing": ("brief",),
    "quick": ("quick",),
    "debate": (),  # and every other stage
    "judgment": ("judge", "judge_swapped", "stress", "lead"),
    "alone": ("sample", "member"),
}
_PHASE_OF: Final = {stage: phase for phase, stages in _PHASES.items() for stage in stages}


# --- Other aggregations --------------------------------------------------------------------------

_WHOLE: Final = 1_000_000
"""Weight of full confidence; weights are whole, so that ties are exact."""
_UNSTATED: Final = _WHOLE // 2
"""Weight of an agent that states no confidence, under the confidence-weighted rule."""

Label = int | None


class Aggregated(NamedTuple):
    """One item under one rule."""

    mistake: Label
    guidance: Label
    ties: int
    """Labels, of the two, that were tied."""


def _under_rules(
    said: Sequence[Label], judge_weight: int, lead_weight: int
) -> dict[str, tuple[Label, bool]]:
    """Rule → the label that it gives, and whether it was tied; `lead` is what was logged."""
    first, second, judge, _, lead = said
    known = [label for label in said if label is not None]
    stated = (_UNSTATED, _UNSTATED, judge_weight, _UNSTATED, lead_weight)
    return {
        "lead": (lead, False),
        "judge": (judge, False),
        "majority_of_five": _largest(said, [1] * 5, lead),
        "majority_of_three": _largest(said[2:], [1] * 3, lead),
        "critics_agree": (lead if first is None or first != second else first, False),
        "confidence_weighted": _largest(said, stated, lead),
        # the least guidance, and a seen mistake only if all say so
        "most_cautious": (min(known, default=None), False),
    }


def _largest(said: Sequence[Label], weights: Sequence[int], lead: Label) -> tuple[Label, bool]:
    totals = Counter[Label]()
    for label, weight in zip(said, weights, strict=True):
        totals[label] += weight
    del totals[None]
    leaders = [label for label, weight in totals.items() if weight == max(totals.values())]
    return (lead, True) if len(leaders) > 1 else (next(iter(leaders), None), False)


RULES: Final = tuple(_under_rules([0] * 5, 1, 1))
"""All rules, as tables list them."""


def aggregated(record: OversightRecord) -> dict[str, Aggregated] | None:
    """Rule → a debated item's labels under it; `None` if there was no debate to decide on."""
    opinions = record.opinions
    if not opinions:
        return None
    stated = {o.agent: round(o.confidence * _WHOLE) for o in opinions if o.confidence is not None}
    weights = (stated.get("judge", _UNSTATED), stated.get("lead", _UNSTATED))
    return _aggregated(tuple(pair_of(opinion.labels) for opinion in opinions), *weights)


@lru_cache(maxsize=1 << 16)
def _aggregated(said: tuple[Pair, ...], judge: int, lead: int) -> dict[str, Aggregated]:
    """Asked once of the same opinions: there are few."""
    mistake, guidance = (_under_rules(labels, judge, lead) for labels in zip(*said, strict=True))
    return {
        rule: Aggregated(mistake[rule][0], guidance[rule][0], mistake[rule][1] + guidance[rule][1])
        for rule in RULES
    }


class AdaptivePoint(NamedTuple):
    """The adaptive debate at one threshold."""

    threshold: float
    skipped: int
    """Items whose debate would not have been held."""
    calls_saved: int
    tokens_saved: int
    headline: float
    """`nan` without gold."""


class AdaptiveCurve(NamedTuple):
    """The adaptive debate at every threshold that changes anything."""

    items: int
    """Items with logged quick labels, whose debate was held. Repeats of an item count as items."""
    calls: int
    tokens: int
    points: tuple[AdaptivePoint, ...]
    """The first at threshold 1, where every debate is held, one below each stated confidence,
    and so last the quick labels."""


def adaptive_curve(records: Sequence[OversightRecord]) -> AdaptiveCurve | None:
    """The adaptive debate from full debate down; `None` if no quick labels were only logged."""
    quick = [(r, r.quick) for r in records if r.quick is not None and not r.skipped]
    if not quick:
        return None
    cells = np.zeros(18, dtype=np.int64)

    def count(record: OversightRecord, labels: Labels | None, by: int) -> None:
        if record.gold is not None:
            actual = (record.gold.mistake, record.gold.guidance)
            cells[list(cells_of(actual, pair_of(labels)))] += by

    for record, _ in quick:
        count(record, record.label, 1)
    stated = sorted(
        (-q.confidence, i) for i, (_, q) in enumerate(quick) if q.confidence is not None
    )
    levels = [
        (-low, [quick[i] for _, i in some]) for low, some in groupby(stated, lambda one: one[0])
    ]
    below = [level for level, _ in levels[1:]] + [-1.0]
    points = [AdaptivePoint(1.0, 0, 0, 0, float(headline(cells)))]
    for (_, some), threshold in zip(levels, below, strict=True):
        _, skipped, calls, tokens, _ = points[-1]
        for record, said in some:
            count(record, record.label, -1)
            count(record, said.labels, 1)
            later = [call for call in record.calls if not call.key.startswith("0/")]
            skipped, calls = skipped + 1, calls + len(later)
            tokens += sum(call.input_tokens + call.output_tokens for call in later)
        points.append(AdaptivePoint(threshold, skipped, calls, tokens, float(headline(cells))))
    every = [call for record, _ in quick for call in record.calls]
    tokens = sum(call.input_tokens + call.output_tokens for call in every)
    return AdaptiveCurve(len(quick), len(every), tokens, tuple(points))
