"""Labels against gold, by group: every score with its interval, and paired differences."""

from collections.abc import Callable, Mapping, Sequence
from itertools import combinations
from operator import itemgetter
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from tutorsim.analysis.statistics.intervals_and_tests import (
    Estimate,
    NotEstimable,
    PermutationTest,
    holm,
)
from tutorsim.analysis.systems.oversight.dialogue_intervals import (
    Over,
    cluster_numbers,
    drawn_sums,
    interval_of,
    paired_swaps,
)
from tutorsim.analysis.systems.oversight.label_scores import (
    CLASS_COUNTS,
    UNJUDGED,
    Counts,
    Scores,
    accuracy,
    always,
    confusion_cells,
    headline,
    lenient_guidance,
    macro_f1,
    scores_of,
)

__all__ = [
    "BASELINES",
    "METRICS",
    "Difference",
    "Evaluation",
    "Judged",
    "baselines",
    "differences",
    "evaluate",
]

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

_MISTAKE_CELLS: Final = 2 * 3
_CELLS: Final = _MISTAKE_CELLS + 3 * 4
"""Cells of both confusion matrices, mistake first, as they stand side by side in an array."""


class Judged(NamedTuple):
    """One item's labels and gold."""

    item: str
    conversation: str
    gold: tuple[int, int]
    """Mistake and guidance."""
    predicted: tuple[int | None, int | None]
    """`None`: unjudged."""


_ITEM, _CONVERSATION, _GOLD, _PREDICTED = range(len(Judged._fields))


class Evaluation(NamedTuple):
    """One group's scores."""

    items: int
    dialogues: int
    confusion: Mapping[str, Ints]
    """Label → matrix of shape (k, k + 1), the unjudged last."""
    labels: Mapping[str, Scores]
    metrics: Mapping[str, Estimate | NotEstimable]
    """Scores of `METRICS` with their intervals."""


class Difference(NamedTuple):
    """Two groups on the items that both have."""

    first: str
    second: str
    metric: str
    items: int
    test: PermutationTest | NotEstimable
    """First minus second."""
    p_holm: float | None
    """Corrected over all pairs of the metric; `None` without a test."""


def _mistake(cells: Counts) -> Counts:
    return cells[..., :_MISTAKE_CELLS].reshape(*cells.shape[:-1], 2, 3)


def _guidance(cells: Counts) -> Counts:
    return cells[..., _MISTAKE_CELLS:].reshape(*cells.shape[:-1], 3, 4)


METRICS: Final[Mapping[str, Callable[[Counts], Floats]]] = {
    "mistake_accuracy": lambda cells: accuracy(_mistake(cells)),
    "mistake_macro_f1": lambda cells: macro_f1(_mistake(cells)),
    "guidance_accuracy": lambda cells: accuracy(_guidance(cells)),
    "guidance_macro_f1": lambda cells: macro_f1(_guidance(cells)),
    "guidance_lenient_accuracy": lambda cells: accuracy(lenient_guidance(_guidance(cells))),
    "guidance_lenient_macro_f1": lambda cells: macro_f1(lenient_guidance(_guidance(cells))),
    "headline": lambda cells: headline(_mistake(cells), _guidance(cells)),
}
"""Score → from cells of shape (…, 18)."""

BASELINES: Final[Mapping[str, tuple[str, int]]] = {
    "always yes": ("mistake", 1),
    "always effective": ("guidance", 2),
}
"""Trivial baseline → label and the class that it always gives."""


def evaluate(
    groups: Mapping[str, Sequence[Judged]],
    *,
    seed: int,
    over: Over = "dialogues",
    metrics: Sequence[str] = tuple(METRICS),
) -> dict[str, Evaluation]:
    """Score groups of labelled items; groups of the same dialogues share their resamples.

    Args:
        groups: Name → items with gold. An empty group has no evaluation.
        seed: Of the draws.
        over: What is drawn.
        metrics: Scores that get an interval; without any, nothing is drawn.
    """
    cells = {name: _cells(items, over) for name, items in groups.items() if items}
    found: dict[str, Evaluation] = {}
    for size in sorted({len(counts) for counts in cells.values()}):
        names = [name for name, counts in cells.items() if len(counts) == size]
        counts = np.concatenate([cells[name] for name in names], axis=1)
        drawn = drawn_sums(counts, seed=seed) if metrics else counts[:0].astype(np.float64)
        for place, name in enumerate(names):
            own = drawn[:, place * _CELLS : (place + 1) * _CELLS]
            found[name] = _evaluation(groups[name], cells[name], own, over, metrics)
    return {name: found[name] for name in groups if name in found}


def _evaluation(
    items: Sequence[Judged], cells: Ints, drawn: Floats, over: Over, wanted: Sequence[str]
) -> Evaluation:
    total = cells.sum(axis=0)
    confusion = {
        "mistake": _mistake(total).astype(np.int64),
        "guidance": _guidance(total).astype(np.int64),
    }
    metrics = {
        name: interval_of(
            float(METRICS[name](total)),
            METRICS[name](drawn),
            n=len(items),
            clusters=len(cells),
            over=over,
        )
        for name in wanted
    }
    return Evaluation(
        items=len(items),
        dialogues=len(set(map(itemgetter(_CONVERSATION), items))),
        confusion=confusion,
        labels={label: scores_of(matrix) for label, matrix in confusion.items()},
        metrics=metrics,
    )


def _cells(items: Sequence[Judged], over: Over) -> Ints:
    """Counts of each cluster, shape (clusters, 18)."""
    cluster = itemgetter(_CONVERSATION if over == "dialogues" else _ITEM)
    return _counted(items, cluster_numbers(tuple(map(cluster, items))))


def _counted(items: Sequence[Judged], groups: Ints) -> Ints:
    said = list(map(itemgetter(_GOLD, _PREDICTED), items))
    kinds = {one: number for number, one in enumerate(dict.fromkeys(said))}
    labels = np.array(
        [[UNJUDGED if value is None else value for pair in one for value in pair] for one in kinds],
        dtype=np.int64,
    ).reshape(-1, 2, 2)[[kinds[one] for one in said]]
    gold, predicted = labels[:, 0], labels[:, 1]
    parts = [
        confusion_cells(gold[:, place], predicted[:, place], groups, classes=classes)
        for place, classes in enumerate(CLASS_COUNTS.values())
    ]
    return np.concatenate(
        [part.reshape(len(part), part.shape[1] * part.shape[2]) for part in parts], axis=1
    )


def baselines(items: Sequence[Judged]) -> dict[str, Scores]:
    """Trivial baselines on the items' gold: name → scores of the label that it is of."""
    place = {label: number for number, label in enumerate(CLASS_COUNTS)}
    return {
        name: always(
            value, [item.gold[place[label]] for item in items], classes=CLASS_COUNTS[label]
        )
        for name, (label, value) in BASELINES.items()
    }


def differences(
    groups: Mapping[str, Sequence[Judged]],
    *,
    seed: int,
    metrics: Sequence[str] = ("headline",),
    against: str | None = None,
) -> list[Difference]:
    """Paired differences between groups, on the items that both have, corrected by Holm.

    Args:
        groups: Name → items with gold.
        seed: Of the draws.
        metrics: Scores to compare.
        against: The one group that all others are compared with; every pair when left out.
    """
    pairs = [
        (first, second)
        for first, second in combinations(groups, 2)
        if against in (None, first, second)
    ]
    pairs = [(b, a) if a == against else (a, b) for a, b in pairs]
    named = {name: {item.item: item for item in groups[name]} for pair in pairs for name in pair}
    cells = _paired_cells(named, pairs)
    return [row for metric in metrics for row in _tested(cells, metric, seed)]


class _Cells(NamedTuple):
    """Two groups' counts on the items that both have."""

    items: int
    first: Ints
    """Shape (clusters, 18)."""
    second: Ints


def _paired_cells(
    named: Mapping[str, Mapping[str, Judged]], pairs: Sequence[tuple[str, str]]
) -> dict[tuple[str, str], _Cells]:
    """The counts of each pair; a group that stands in several on the same items is counted once."""
    counts: dict[tuple[str, tuple[str, ...]], Ints] = {}

    def counted(name: str, both: tuple[str, ...]) -> Ints:
        if (name, both) not in counts:
            items = [named[name][item] for item in both]
            clusters = cluster_numbers(tuple(map(itemgetter(_CONVERSATION), items)))
            counts[name, both] = _counted(items, clusters)
        return counts[name, both]

    found = {}
    for first, second in pairs:
        both = tuple(item for item in named[first] if item in named[second])
        found[first, second] = _Cells(len(both), counted(first, both), counted(second, both))
    return found


def _tested(cells: Mapping[tuple[str, str], _Cells], metric: str, seed: int) -> list[Difference]:
    """One metric's differences; pairs of as many dialogues share their swaps."""
    tests: dict[tuple[str, str], PermutationTest | NotEstimable] = {}
    for size in {len(found.first) for found in cells.values()}:
        pairs = [pair for pair, found in cells.items() if len(found.first) == size]
        first = np.stack([cells[pair].first for pair in pairs], axis=1)
        second = np.stack([cells[pair].second for pair in pairs], axis=1)
        made = paired_swaps(first, second, METRICS[metric], seed=seed)
        tests |= dict(zip(pairs, made, strict=True))
    corrected = holm(
        {pair: t.p_value for pair, t in tests.items() if isinstance(t, PermutationTest)}
    )
    return [
        Difference(*pair, metric, found.items, tests[pair], corrected.get(pair))
        for pair, found in cells.items()
    ]
