"""The model judge beside people: bias, correlation, calibration.

The judge scored the student's answers. Where people rated answers on the judge's own anchors, the
two are of the same text on the same scale. Where people rated replies, the judge's score is that
of the answer that a reply led to: it may go together with people's score of the reply, and a
difference between the two says nothing of the judge. Where the run labels replies, as an audit
does, its labels of guidance are the judge's scores of the replies themselves.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from tutorsim.analysis.ratings.gathered_ratings import Gathered, Kind
from tutorsim.analysis.statistics.intervals_and_tests import (
    Estimate,
    NotEstimable,
    mean_over_tasks,
    statistic_over_tasks,
    to_json,
)
from tutorsim.records.ratings import RatedBy

__all__ = ["EDGES", "Band", "BesideJudge", "beside_judge"]

EDGES: Final = (0.0, 0.2, 0.4, 0.6, 0.8)
"""Where a band of the judge's scores begins, as a part of the scale; the last one ends with it."""

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Band:
    """Items whose judge's score lies in one band."""

    low: float
    high: float
    items: int
    judge: float
    """Mean of the judge's scores."""
    people: float
    """Mean of people's scores."""


@dataclass(frozen=True)
class BesideJudge:
    """The model judge's scores beside people's."""

    kind: Kind
    rubric: str
    by: RatedBy
    most: float
    """The greatest value of the scale."""
    items: int
    """With both scores."""
    bias: Estimate | NotEstimable
    """Mean of judge − people."""
    distance: Estimate | NotEstimable
    """Mean of |judge − people|."""
    pearson: Estimate | NotEstimable
    spearman: Estimate | NotEstimable
    bands: tuple[Band, ...]
    """Those with an item; none where the two are not of the same text on the same scale."""

    def to_json(self) -> dict[str, object]:
        return {
            name: [vars(band) for band in value] if name == "bands" else to_json(value)
            for name, value in vars(self).items()
        }


def beside_judge(found: Gathered) -> BesideJudge | None:
    """The judge beside people; `None` where no rated item has a judge's score."""
    means = found.means
    both = [
        (found.items[name].judged, mean, found.items[name].task) for name, mean in means.items()
    ]
    pairs = [(judged, mean, task) for judged, mean, task in both if judged is not None]
    if not pairs:
        return None
    judge = np.array([judged for judged, _, _ in pairs])
    people = np.array([mean for _, mean, _ in pairs])
    tasks = [task for _, _, task in pairs]
    why_not = _incomparable(found)
    differences = judge - people

    def mean_of(values: Floats) -> Estimate | NotEstimable:
        return why_not or mean_over_tasks(values.tolist(), tasks)

    return BesideJudge(
        kind=found.kind,
        rubric=found.rubric.name,
        by=found.by,
        most=found.rubric.scale[-1],
        items=len(pairs),
        bias=mean_of(differences),
        distance=mean_of(np.abs(differences)),
        pearson=_correlation(judge, people, tasks, ranked=False),
        spearman=_correlation(judge, people, tasks, ranked=True),
        bands=() if why_not else tuple(_bands(judge, people, most=found.rubric.scale[-1])),
    )


def _incomparable(found: Gathered) -> NotEstimable | None:
    if not found.judged_itself:
        return NotEstimable("the judge scored the answer that a reply led to, not the reply")
    if not found.rubric.of_judge:
        return NotEstimable("people rated on another scale than the judge")
    return None


def _correlation(
    judge: Floats, people: Floats, tasks: Sequence[str], *, ranked: bool
) -> Estimate | NotEstimable:
    """Pearson's correlation, or Spearman's, which is that of the ranks."""

    def statistic(weights: Floats) -> Floats:
        first, second = (_ranks(x, weights) if ranked else x for x in (judge, people))
        return _weighted_correlation(first, second, weights)

    if len(judge) < 3:
        return NotEstimable("fewer than three items")
    value = float(statistic(np.ones((1, len(judge))))[0])
    if value != value:
        return NotEstimable("all scores of one side are the same")
    return Estimate(value, len(judge), statistic_over_tasks(statistic, tasks, ends=(-1, 1)))


def _weighted_correlation(first: Floats, second: Floats, weights: Floats) -> Floats:
    """Pearson's correlation in every draw; not a number where one side does not vary."""
    total = weights.sum(axis=1, keepdims=True)
    first, second = (x - (weights * x).sum(axis=1, keepdims=True) / total for x in (first, second))
    both, *own = ((weights * x * y).sum(axis=1) for x, y in
                  ((first, second), (first, first), (second, second)))  # fmt: skip
    spread = np.sqrt(own[0] * own[1])
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(spread > 1e-9, both / spread, np.nan)


def _ranks(values: Floats, weights: Floats) -> Floats:
    """Ranks in every draw, shape (draws, values); equal values share the mean of theirs."""
    distinct, which = np.unique(values, return_inverse=True)
    counts = weights @ np.eye(len(distinct))[which]
    ranks: Floats = (np.cumsum(counts, axis=1) - counts / 2)[:, which]
    return ranks


def _bands(judge: Floats, people: Floats, *, most: float) -> list[Band]:
    """Fifths of the scale, from 0 to its greatest value."""
    edges = [most * edge for edge in EDGES]
    which = np.clip(np.searchsorted(edges, judge + 1e-9, side="right") - 1, 0, None)
    return [
        Band(
            low,
            edges[place + 1] if place + 1 < len(edges) else most,
            int((which == place).sum()),
            float(judge[which == place].mean()),
            float(people[which == place].mean()),
        )
        for place, low in enumerate(edges)
        if (which == place).any()
    ]
