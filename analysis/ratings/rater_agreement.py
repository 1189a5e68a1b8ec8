"""How far raters agree: Krippendorff's alpha.

Alpha is 1 − observed / expected disagreement of values given to the same item; 1 is agreement, 0
what raters who draw from the given values would show (Krippendorff, Content Analysis, 2018). The
ordinal metric counts how many ratings lie between two values, the interval metric squares their
difference. Intervals are over tasks with all their items, and over items each on its own, which
takes items of one task as independent. One computation gives the figure and its values without a
task: it adds up the items' coincidences, for the figure each of them once.
"""

from dataclasses import dataclass
from math import lcm
from typing import Final, Literal, get_args

import numpy as np
import numpy.typing as npt

from tutorsim.analysis.ratings.gathered_ratings import Gathered, Kind
from tutorsim.analysis.statistics.intervals_and_tests import (
    Interval,
    NotEstimable,
    Weighted,
    statistic_over_tasks,
    to_json,
)
from tutorsim.records.ratings import RatedBy

__all__ = ["METRICS", "Agreement", "Alpha", "Metric", "agreement"]

Metric = Literal["ordinal", "interval"]
Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

METRICS: Final[tuple[Metric, ...]] = get_args(Metric)


@dataclass(frozen=True)
class Alpha:
    """Krippendorff's alpha under one metric."""

    value: float
    over_tasks: Interval | NotEstimable
    over_items: Interval | NotEstimable

    def to_json(self) -> dict[str, object]:
        return {name: to_json(value) for name, value in vars(self).items()}


@dataclass(frozen=True)
class Agreement:
    """How far the raters of one kind of text, on one rubric, agree."""

    kind: Kind
    rubric: str
    by: RatedBy
    raters: int
    items: int
    """Rated by anybody."""
    shared: int
    """Rated by two or more; alpha is of these."""
    ratings: int
    ordinal: Alpha | NotEstimable
    interval: Alpha | NotEstimable

    def to_json(self) -> dict[str, object]:
        return {name: to_json(value) for name, value in vars(self).items()}


def agreement(found: Gathered) -> Agreement:
    """Alpha of gathered ratings under both metrics."""
    shared = [name for name, said in found.scores.items() if len(said) > 1]
    tasks = [found.items[name].task for name in shared]
    domain = np.array(sorted({v for name in shared for v in found.scores[name].values()}))
    counts = np.array(
        [[list(found.scores[name].values()).count(v) for v in domain] for name in shared],
        dtype=np.int64,
    )
    ordinal, interval = (_alpha(counts, domain, tasks, metric) for metric in METRICS)
    return Agreement(
        kind=found.kind,
        rubric=found.rubric.name,
        by=found.by,
        raters=len(found.raters),
        items=len(found.scores),
        shared=len(shared),
        ratings=sum(map(len, found.scores.values())),
        ordinal=ordinal,
        interval=interval,
    )


def _alpha(
    counts: Ints,
    domain: Floats,
    tasks: list[str],
    metric: Metric,
) -> Alpha | NotEstimable:
    """Alpha of value counts.

    Args:
        counts: Shape (items, values): how many raters gave an item a value.
        domain: The values, shape (values,).
        tasks: The task of each item.
        metric: Of the distance between values.
    """
    if not tasks:
        return NotEstimable("no item has two ratings")
    if len(domain) < 2:
        return NotEstimable("every rating is the same")
    alpha = _weighted_alpha(counts, domain, metric)
    items = range(len(tasks))
    return Alpha(
        value=float(alpha(np.ones((1, len(tasks))))[0]),
        over_tasks=statistic_over_tasks(alpha, tasks, ends=(-1, 1)),
        over_items=statistic_over_tasks(alpha, items, ends=(-1, 1), over="items"),
    )


def _weighted_alpha(counts: Ints, domain: Floats, metric: Metric) -> Weighted:
    """Alpha of weighted items.

    With every value at a point of a line, both disagreements are sums of squared distances: the
    points are the values themselves, or, under the ordinal metric, the number of ratings below a
    value plus half of those of it. Coincidences are summed as whole numbers, so that no
    processor's way to multiply matrices rounds them.
    """
    n, v = counts.shape
    both = counts[:, :, None] * (counts[:, None, :] - np.eye(v, dtype=np.int64))
    others = counts.sum(axis=1) - 1
    whole = lcm(*others.tolist())
    coincidences = (both * (whole // others)[:, None, None]).reshape(n, v * v).astype(np.float64)

    def statistic(weights: Floats) -> Floats:
        found = (weights @ coincidences).reshape(-1, v, v) / whole
        given = found.sum(axis=2)
        points = domain if metric == "interval" else np.cumsum(given, axis=1) - given / 2
        points = np.broadcast_to(points, given.shape)
        total = given.sum(axis=1)
        observed = (found * (points[:, :, None] - points[:, None, :]) ** 2).sum(axis=(1, 2))
        spread = total * (given * points**2).sum(axis=1) - (given * points).sum(axis=1) ** 2
        with np.errstate(invalid="ignore", divide="ignore"):  # one value alone has no alpha
            vary = (given > 0).sum(axis=1) > 1
            return np.where(vary, 1 - observed * (total - 1) / (2 * spread), np.nan)

    return statistic
