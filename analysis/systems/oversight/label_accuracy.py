"""Labels against gold: accuracy, macro-F1 and the headline, over items or whole dialogues.

Everything is counted from confusion matrices, rows actual and columns predicted, with one more
column for the unjudged: an item without a label is wrong for every score and no false positive of
any class. The matrices of both labels stand side by side in 18 cells, and every score takes cells
of shape (…, 18): one item set, and each without one dialogue, are scored alike.

Replies to one dialogue are not independent, so intervals are over dialogues, and tests swap whole
ones. Intervals over items are what the oversight study has; they stay as a choice and say that they
are too narrow.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from itertools import product
from typing import Final, Literal, NamedTuple

import numpy as np

from tutorsim.analysis.statistics import by_key
from tutorsim.analysis.statistics.array_types import Floats, Ints, Numbers
from tutorsim.analysis.statistics.intervals_and_tests import (
    Estimate,
    Interval,
    NotEstimable,
    PermutationTest,
    corrected,
    leave_one_out,
    share_of_sums,
)
from tutorsim.analysis.systems.contrasts_of_any_sides_in_words_and_of_runs import Contrast, against
from tutorsim.records.oversight import Labels, OversightRecord, first_ids

Over = Literal["dialogues", "items"]
Pair = tuple[int | None, int | None]
"""Mistake and guidance; `None`: unjudged."""

HEADLINE: Final = "mean of the macro-F1 of both labels"
DRAWS: Final = 10_000
_BATCH: Final = 500_000
"""Drawn clusters held at once: few megabytes."""
_NEAR: Final = 1e-12


# --- Items ----------------------------------------------------------------------------------------


class Judged(NamedTuple):
    """One item's gold and labels."""

    item: str
    """What it is paired by between conditions."""
    conversation: str
    gold: tuple[int, int]
    predicted: Pair


def complete(records: Sequence[OversightRecord]) -> list[OversightRecord]:
    """Items that came to their end."""
    return [record for record in records if record.status == "complete"]


def by_text(records: Sequence[OversightRecord]) -> list[OversightRecord]:
    """Items of the first conversation, by name, that has their dialogue's text.

    Published files have one dialogue under several ids. Items of an audit stay with their task.
    """
    first = first_ids((one.conversation, one.dialogue_text) for one in records if not one.audited)
    found = []
    for record in records:
        name = record.conversation if record.audited else first[record.dialogue_text]
        same = name == record.conversation
        found.append(record if same else record.model_copy(update={"conversation": name}))
    return found


def by_condition(records: Sequence[OversightRecord]) -> dict[str, list[OversightRecord]]:
    """Condition → its items, in the order of the log."""
    return by_key((record.condition, record) for record in records)


def pair_of(labels: Labels | None) -> Pair:
    """Labels as a pair."""
    return (None, None) if labels is None else (labels.mistake, labels.guidance)


def changed_labels(before: Sequence[Pair], after: Sequence[Pair]) -> int:
    """How many labels differ, two an item."""
    pairs = Counter(zip(before, after, strict=True)).items()
    return sum(n * sum(old != new for old, new in zip(*pair, strict=True)) for pair, n in pairs)


def judged(
    records: Sequence[OversightRecord],
    gold: Callable[[OversightRecord], Labels | None] = lambda record: record.gold,
) -> list[Judged]:
    """Items with gold labels, by default under the study's maps, and their logged labels."""
    return [
        Judged(
            f"{record.benchmark}.{record.task_id}.{record.repeat}",
            record.conversation,
            (actual.mistake, actual.guidance),
            pair_of(record.label),
        )
        for record in records
        if (actual := gold(record)) is not None
    ]


def relabelled(items: Sequence[Judged], pairs: Sequence[Pair]) -> list[Judged]:
    """Items with other labels: a pair for each."""
    return [Judged(*one[:3], pair) for one, pair in zip(items, pairs, strict=True)]


# --- Scores of confusion cells --------------------------------------------------------------------

_CLASSES: Final = {"mistake": 2, "guidance": 3}
"""Label → number of its classes, which are 0, 1, …"""
_CELLS: Final = {"mistake": slice(0, 6), "guidance": slice(6, 18)}


def _confusion(cells: Numbers, label: str) -> Floats:
    """Shape (…, k, k + 1)."""
    k = _CLASSES[label]
    return np.asarray(cells[..., _CELLS[label]].reshape(*cells.shape[:-1], k, k + 1), np.float64)


def cells_of(gold: tuple[int, int], pair: Pair) -> tuple[int, int]:
    """Where an item is counted, of 18 cells."""
    mistake, guidance = pair
    return (
        gold[0] * 3 + (2 if mistake is None else mistake),
        6 + gold[1] * 4 + (3 if guidance is None else guidance),
    )


def _lenient(guidance: Floats) -> Floats:
    """Three classes of guidance as two: 0, and 1 or 2 together. Shape (…, 2, 3)."""
    rows = np.stack((guidance[..., 0, :], guidance[..., 1:, :].sum(axis=-2)), axis=-2)
    return np.stack((rows[..., 0], rows[..., 1] + rows[..., 2], rows[..., 3]), axis=-1)


def _accuracy(confusion: Floats) -> Floats:
    return _ratio(np.trace(confusion, axis1=-2, axis2=-1), confusion.sum(axis=(-2, -1)))


def _macro_f1(confusion: Floats) -> Floats:
    """Mean F1, 2TP / (2TP + FP + FN), of the classes that are actual or predicted."""
    hits = np.diagonal(confusion, axis1=-2, axis2=-1)
    f1 = _ratio(2 * hits, confusion.sum(axis=-1) + confusion.sum(axis=-2)[..., :-1])
    there = ~np.isnan(f1)
    return _ratio(np.where(there, f1, 0).sum(axis=-1), there.sum(axis=-1))


def _ratio(top: Numbers, bottom: Numbers) -> Floats:
    """Quotients, `nan` where the lower number is 0."""
    missing = np.full(np.shape(bottom), np.nan)
    quotients: Floats = np.divide(top, bottom, out=missing, where=np.asarray(bottom) != 0)
    return quotients


def headline(cells: Numbers) -> Floats:
    """Mean of the macro-F1 of both labels. Shape (…)."""
    return (_macro_f1(_confusion(cells, "mistake")) + _macro_f1(_confusion(cells, "guidance"))) / 2


METRICS: Final[Mapping[str, Callable[[Numbers], Floats]]] = {
    "mistake_accuracy": lambda cells: _accuracy(_confusion(cells, "mistake")),
    "mistake_macro_f1": lambda cells: _macro_f1(_confusion(cells, "mistake")),
    "guidance_accuracy": lambda cells: _accuracy(_confusion(cells, "guidance")),
    "guidance_macro_f1": lambda cells: _macro_f1(_confusion(cells, "guidance")),
    "guidance_lenient_accuracy": lambda cells: _accuracy(_lenient(_confusion(cells, "guidance"))),
    "guidance_lenient_macro_f1": lambda cells: _macro_f1(_lenient(_confusion(cells, "guidance"))),
    "headline": headline,
}
"""Score → from cells of shape (…, 18) to shape (…)."""


# --- Groups of items ------------------------------------------------------------------------------


class Evaluation(NamedTuple):
    """One group's scores."""

    items: int
    dialogues: int
    confusion: Mapping[str, Ints]
    """Label → matrix of shape (k, k + 1), the unjudged last."""
    metrics: Mapping[str, Estimate]
    """Scores of `METRICS` with their intervals."""


BASELINES: Final[Mapping[str, tuple[str, int]]] = {
    "always yes": ("mistake", 1),
    "always effective": ("guidance", 2),
}
"""Trivial baseline → label and the class that it always gives."""


def baselines(items: Sequence[Judged]) -> dict[str, Evaluation]:
    """Trivial baselines on the items' gold: name → scores, of the label that it is of alone."""
    found: dict[str, Evaluation] = {}
    for name, (label, value) in BASELINES.items():
        labelled = [one._replace(predicted=(value, value)) for one in items]
        metrics = [f"{label}_accuracy", f"{label}_macro_f1"]
        found |= evaluate({name: labelled}, metrics=metrics)
    return found


def _counted(items: Sequence[Judged], over: Over) -> Ints:
    """(clusters, 18): counts of each cluster by name, so that the items' order changes no digit."""
    names = [one.conversation if over == "dialogues" else one.item for one in items]
    number = {name: place for place, name in enumerate(sorted(set(names), key=repr))}
    cells = np.zeros((len(number), 18), dtype=np.int64)
    for (name, gold, pair), n in Counter(
        (name, one.gold, one.predicted) for name, one in zip(names, items, strict=True)
    ).items():
        cells[number[name], cells_of(gold, pair)] += n
    return cells


def evaluate(
    groups: Mapping[str, Sequence[Judged]],
    *,
    over: Over = "dialogues",
    metrics: Sequence[str] = tuple(METRICS),
) -> dict[str, Evaluation]:
    """Score groups of labelled items; an empty group has no evaluation."""
    found = {}
    for name, items in groups.items():
        if items:
            cells = _counted(items, over)
            total = cells.sum(axis=0)
            confusion = {label: _confusion(total, label) for label in _CLASSES}
            found[name] = Evaluation(
                items=len(items),
                dialogues=len({one.conversation for one in items}),
                confusion={label: matrix.astype(np.int64) for label, matrix in confusion.items()},
                metrics={metric: _estimate(metric, cells, over) for metric in metrics},
            )
    return found


def headline_of(items: Sequence[Judged]) -> float | None:
    """The headline of some items, without an interval; `None` without items."""
    return float(headline(_counted(items, "items").sum(axis=0))) if items else None


def _estimate(metric: str, cells: Ints, over: Over) -> Estimate:
    """A score with its interval over clusters: of a share, or from leaving one cluster out."""
    sizes = cells[:, : _CELLS["mistake"].stop].sum(axis=1).astype(np.float64)
    value, n = float(METRICS[metric](cells.sum(axis=0))), int(sizes.sum())
    if metric.endswith("accuracy"):
        interval = share_of_sums(METRICS[metric](cells) * sizes, sizes, over=over).interval
    else:
        without = METRICS[metric](cells.sum(axis=0) - cells).tolist()
        interval = leave_one_out(value, without, sizes, ends=(0, 1), over=over)
    if over == "items" and isinstance(interval, Interval):
        caution = "too narrow, as replies to one dialogue are not independent"
        interval = replace(interval, method=f"{interval.method}; {caution}")
    return Estimate(value, n, interval)


def differences(
    groups: Mapping[str, Sequence[Judged]], *, seed: int, reference: str | None = None
) -> list[Contrast]:
    """Paired differences of the headline between groups, on the items that both have, corrected by
    Holm.

    `reference`: the one group that all others are compared with; when left out, every group − each
    after it.
    """
    pairs = [pair if reference else pair[::-1] for pair in against(groups, reference)]
    named = {name: {one.item: one for one in items} for name, items in groups.items()}
    both = {(a, b): tuple(item for item in named[a] if item in named[b]) for a, b in pairs}

    @cache  # one group stands in several pairs on the same items
    def cells(name: str, items: tuple[str, ...]) -> Ints:
        return _counted([named[name][item] for item in items], "dialogues")

    sides = {pair: np.stack([cells(name, both[pair]) for name in pair]) for pair in pairs}
    tests = _swap_tests(sides, seed)
    return corrected(
        [
            Contrast(*pair, _apart(counts), tests[pair], "of the headline")
            for pair, counts in sides.items()
        ]
    )


def _apart(sides: Ints) -> Estimate | NotEstimable:
    """Second minus first with its interval, from leaving one dialogue out of both.

    `sides`: counts of shape (2, clusters, 18).
    """
    if not sides.size:
        return NotEstimable("no item that both have")
    every = sides.sum(axis=1)
    value = float(np.diff(headline(every))[0])
    without = np.diff(headline(every[:, None] - sides), axis=0)[0].tolist()
    sizes = sides[0, :, _CELLS["mistake"]].sum(axis=1).astype(np.float64)
    interval = leave_one_out(value, without, sizes, ends=(-1, 1), over="dialogues")
    return Estimate(value, int(sizes.sum()), interval)


def _swap_tests(
    sides: Mapping[tuple[str, str], Ints], seed: int
) -> dict[tuple[str, str], PermutationTest | NotEstimable]:
    """Tests that two conditions score the same, by swapping them within whole dialogues.

    Enumerated if the swaps are no more than would be drawn; pairs of as many dialogues share
    their swaps.

    `sides`: pair → counts of shape (2, clusters, 18).
    """
    tests: dict[tuple[str, str], PermutationTest | NotEstimable] = {}
    for n in dict.fromkeys(counts.shape[1] for counts in sides.values()):
        pairs = [pair for pair, counts in sides.items() if counts.shape[1] == n]
        if n < 2:
            few = NotEstimable("pairs of fewer than two dialogues have no distribution")
            tests |= dict.fromkeys(pairs, few)
            continue
        one, other = (np.stack([sides[pair][i] for pair in pairs]).sum(axis=1) for i in (0, 1))
        gap = np.concatenate([sides[pair][1] - sides[pair][0] for pair in pairs], axis=1)
        observed, exact, made = headline(other) - headline(one), 2**n <= DRAWS, 0
        beyond = np.zeros(len(pairs), dtype=np.int64)
        for swaps in _swaps(n, exact, seed):
            moved = (swaps @ gap.astype(np.float64)).reshape(len(swaps), len(pairs), -1)
            apart = np.abs(headline(one + moved) - headline(other - moved))
            beyond += np.count_nonzero(apart >= np.abs(observed) - _NEAR, axis=0)
            made += len(swaps)
        drawn = 0 if exact else 1  # the swaps seen are one of the draws
        for pair, difference, count in zip(pairs, observed.tolist(), beyond, strict=True):
            p = (int(count) + drawn) / (made + drawn)
            error = 0.0 if exact else (p * (1 - p) / made) ** 0.5
            tests[pair] = PermutationTest(difference, p, n, exact, error, tasks=n)
    return tests


def _swaps(n: int, exact: bool, seed: int) -> Iterator[Floats]:
    """Which dialogues are swapped, in batches of shape (batch, n)."""
    if exact:
        yield np.array(list(product((0.0, 1.0), repeat=n)))
        return
    rng = np.random.default_rng(seed)
    batch = max(1, _BATCH // n)
    for start in range(0, DRAWS, batch):
        yield rng.integers(0, 2, (min(batch, DRAWS - start), n)).astype(np.float64)
