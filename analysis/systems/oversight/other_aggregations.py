"""Other ways to put the logged opinions together, and the adaptive debate at every threshold.

After a debate five agents hold labels: both critics (or reviewers), judge, stress tester and
lead. A tie goes to the lead's label, and is counted. An agent whose labels could not be read has
no say; where nobody has one, the item is unjudged under the rule too.
"""

from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from itertools import groupby
from typing import Final, NamedTuple

import numpy as np

from tutorsim.analysis.systems.oversight.scores import Pair, cells_of, headline, pair_of
from tutorsim.records.oversight import Labels, OversightRecord

__all__ = ["RULES", "AdaptiveCurve", "AdaptivePoint", "Aggregated", "adaptive_curve", "aggregated"]

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
    """With logged quick labels, whose debate was held. Repeats of an item count as items."""
    calls: int
    tokens: int
    points: tuple[AdaptivePoint, ...]
    """The first at threshold 1, where every debate is held, one below each stated confidence,
    and so last the quick labels."""


def adaptive_curve(records: Sequence[OversightRecord]) -> AdaptiveCurve | None:
    """The adaptive debate from full debate down; `None` if no quick labels were only logged.

    Args:
        records: Items of one condition.
    """
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
