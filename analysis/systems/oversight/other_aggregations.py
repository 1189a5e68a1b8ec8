"""Other ways to put the logged opinions together, and the adaptive debate at every threshold.

After a debate five agents hold labels: both critics (or reviewers), judge, stress tester and
lead. A tie goes to the lead's label, and is counted. An agent whose labels could not be read has
no say; where nobody has one, the item is unjudged under the rule too.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from tutorsim.analysis.systems.oversight.scored_items import pair_of
from tutorsim.analysis.systems.oversight.scores_by_group import METRICS
from tutorsim.records.oversight import Labels, OversightRecord

__all__ = [
    "RULES",
    "AdaptiveCurve",
    "AdaptivePoint",
    "Aggregated",
    "adaptive_curve",
    "aggregated",
]

Ints = npt.NDArray[np.int64]

_WHOLE: Final = 1_000_000
"""Weight of full confidence; weights are whole, so that ties are exact."""
_UNSTATED: Final = _WHOLE // 2
"""Weight of an agent that states no confidence, under the confidence-weighted rule."""


class _Held(NamedTuple):
    """What one item's agents say on one label; `None` for what could not be read.

    Critics or reviewers come first, as in an item's opinions.
    """

    critics: tuple[int | None, int | None]
    judge: int | None
    stress: int | None
    lead: int | None


class _Weights(NamedTuple):
    """The confidence that an item's agents state, in parts of `_WHOLE`."""

    judge: int = _UNSTATED
    lead: int = _UNSTATED


class _Outcome(NamedTuple):
    """A rule's label; `None`: unjudged."""

    label: int | None
    tied: bool = False


def _lead(held: _Held) -> _Outcome:
    return _Outcome(held.lead)


def _judge(held: _Held) -> _Outcome:
    return _Outcome(held.judge)


def _majority_of_five(held: _Held) -> _Outcome:
    return _majority(held, [*held.critics, held.judge, held.stress, held.lead])


def _majority_of_three(held: _Held) -> _Outcome:
    return _majority(held, [held.judge, held.stress, held.lead])


def _majority(held: _Held, said: Sequence[int | None]) -> _Outcome:
    return _largest(held, [(label, 1) for label in said])


@lru_cache(maxsize=1 << 16)
def _confidence_weighted(held: _Held, weights: _Weights) -> _Outcome:
    others = [(label, _UNSTATED) for label in (*held.critics, held.stress)]
    return _largest(held, [*others, (held.judge, weights.judge), (held.lead, weights.lead)])


def _largest(held: _Held, said: Sequence[tuple[int | None, int]]) -> _Outcome:
    weights: dict[int, int] = {}
    for label, weight in said:
        if label is not None:
            weights[label] = weights.get(label, 0) + weight
    if not weights:
        return _Outcome(None)
    top = max(weights.values())
    leaders = [label for label, weight in weights.items() if weight == top]
    return _Outcome(leaders[0]) if len(leaders) == 1 else _Outcome(held.lead, tied=True)


def _critics_agree(held: _Held) -> _Outcome:
    first, second = held.critics
    return _Outcome(first if first == second and first is not None else held.lead)


def _most_cautious(held: _Held) -> _Outcome:
    """The lowest label said: the least guidance, and a seen mistake only if all say so."""
    said = [*held.critics, held.judge, held.stress, held.lead]
    return _Outcome(min((label for label in said if label is not None), default=None))


_BY_LABELS: Final[Mapping[str, Callable[[_Held], _Outcome]]] = {
    "lead": _lead,
    "judge": _judge,
    "majority_of_five": _majority_of_five,
    "majority_of_three": _majority_of_three,
    "critics_agree": _critics_agree,
    "most_cautious": _most_cautious,
}
"""Rule that no confidence changes → the label that it gives."""

RULES: Final = (
    "lead",
    "judge",
    "majority_of_five",
    "majority_of_three",
    "critics_agree",
    "confidence_weighted",
    "most_cautious",
)
"""All rules, as tables list them. `lead` is what was logged."""


class Aggregated(NamedTuple):
    """One item under one rule."""

    mistake: int | None
    guidance: int | None
    ties: int
    """Labels, of the two, that were tied."""


def aggregated(record: OversightRecord) -> dict[str, Aggregated] | None:
    """Rule → a debated item's labels under it; `None` if there was no debate to decide on."""
    opinions = record.opinions
    if not opinions:
        return None
    stated = {
        opinion.agent: round(opinion.confidence * _WHOLE)
        for opinion in opinions
        if opinion.confidence is not None
    }
    weights = _Weights(**stated)
    said = zip(*(pair_of(opinion.labels) for opinion in opinions), strict=True)
    mistake, guidance = (_Held(labels[:2], *labels[2:]) for labels in said)
    weighted = (_confidence_weighted(held, weights) for held in (mistake, guidance))
    return {**_by_labels(mistake, guidance), "confidence_weighted": _both(*weighted)}


@lru_cache(maxsize=4096)
def _by_labels(mistake: _Held, guidance: _Held) -> Mapping[str, Aggregated]:
    """The rules of labels, asked once of the same labels: there are few."""
    return {name: _both(rule(mistake), rule(guidance)) for name, rule in _BY_LABELS.items()}


def _both(mistake: _Outcome, guidance: _Outcome) -> Aggregated:
    return Aggregated(mistake.label, guidance.label, mistake.tied + guidance.tied)


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
    quick = [record for record in records if record.quick is not None and not record.skipped]
    if not quick:
        return None
    calls = [call for record in quick for call in record.calls]
    tokens = sum(call.input_tokens + call.output_tokens for call in calls)
    return AdaptiveCurve(len(quick), len(calls), tokens, tuple(_points(quick)))


def _points(quick: Sequence[OversightRecord]) -> list[AdaptivePoint]:
    debated = sorted(
        (record for record in quick if record.quick and record.quick.confidence is not None),
        key=lambda record: -(record.quick.confidence or 0.0) if record.quick else 0.0,
    )
    cells = np.zeros(18, dtype=np.int64)
    for record in quick:
        _move(cells, record, record.label, 1)
    points = [AdaptivePoint(1.0, 0, 0, 0, _score(cells))]
    calls = tokens = skipped = 0
    for place, record in enumerate(debated):
        _move(cells, record, record.label, -1)
        _move(cells, record, record.quick.labels if record.quick else None, 1)
        saved = _after_quick(record)
        calls, tokens, skipped = calls + saved[0], tokens + saved[1], skipped + 1
        level = _confidence(record)
        if place + 1 == len(debated) or _confidence(debated[place + 1]) < level:
            below = _confidence(debated[place + 1]) if place + 1 < len(debated) else -1.0
            points.append(AdaptivePoint(below, skipped, calls, tokens, _score(cells)))
    return points


def _confidence(record: OversightRecord) -> float:
    return (record.quick.confidence or 0.0) if record.quick else 0.0


def _move(cells: Ints, record: OversightRecord, labels: Labels | None, by: int) -> None:
    """Count an item in, or out of, both confusion matrices."""
    if record.gold is None:
        return
    mistake = 2 if labels is None else labels.mistake
    guidance = 3 if labels is None else labels.guidance
    cells[record.gold.mistake * 3 + mistake] += by
    cells[6 + record.gold.guidance * 4 + guidance] += by


def _score(cells: Ints) -> float:
    return float(METRICS["headline"](cells))


def _after_quick(record: OversightRecord) -> tuple[int, int]:
    """Calls and tokens that come after the quick labels."""
    later = [
        call.input_tokens + call.output_tokens
        for call in record.calls
        if not call.key.startswith("0/")
    ]
    return len(later), sum(later)
