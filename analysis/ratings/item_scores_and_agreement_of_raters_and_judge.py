"""How far raters agree with one another and with the model judge, over gathered ratings."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from itertools import pairwise
from math import fsum, lcm
from typing import Final, Literal, get_args

import numpy as np
import polars as pl

from tutorsim.analysis.pages.decorators_to_declare_tables_and_charts import Row
from tutorsim.analysis.ratings.texts_to_rate_as_raters_see import Item, items_of
from tutorsim.analysis.runs.exported_tables import reader_of, real, run_id, text, whole, yes
from tutorsim.analysis.statistics import by_key
from tutorsim.analysis.statistics.array_types import Floats, Ints
from tutorsim.analysis.statistics.intervals_and_tests import (
    Estimate,
    Interval,
    NotEstimable,
    Weighted,
    mean_over_tasks,
    statistic_over_tasks,
)
from tutorsim.analysis.systems.system_view_opened_run_and_cost import SystemRun, view_of
from tutorsim.records.ratings import RatedBy, RatedSheet, Rubric, Subject

# --- Gathered ratings ----------------------------------------------------------------------------

Kind = Literal["replies", "answers"]
"""Replies of tutors, delivered or not, or the student's answers."""

_KINDS: Final[Mapping[Subject, Kind]] = {
    "replies": "replies",
    "proposals": "replies",
    "answers": "answers",
}


Rater = tuple[str, int]
"""A survey and the number of its rater: the first of another survey may be somebody else."""


@dataclass(frozen=True)
class Gathered:
    """Ratings that can be put together."""

    kind: Kind
    rubric: Rubric
    by: RatedBy
    items: Mapping[str, Item]
    """Every item of the kind that the run has, by id."""
    scores: Mapping[str, Mapping[Rater, float]]
    """Item → rater → value; items that somebody rated."""
    judged_itself: bool = True
    """The run's judge, or its labels, score these texts; `False`: the answers that followed."""

    @property
    def of(self) -> Row:
        """What figures of these ratings are of."""
        return {"kind": self.kind, "rubric": self.rubric.name, "by": self.by}

    @property
    def means(self) -> dict[str, float]:
        """Item → mean over its raters."""
        return {name: fsum(said.values()) / len(said) for name, said in self.scores.items()}

    def is_good(self, score: float) -> bool | None:
        """Whether a score is at least the rubric's threshold; `None` where that has none.

        A mean of tenths may lie a hair below the tenth that it is.
        """
        least = self.rubric.threshold
        return None if least is None else score >= least - 1e-9


def gathered(run: SystemRun, sheets: Sequence[RatedSheet]) -> tuple[Gathered, ...]:
    """The ratings of a run, replies first.

    A rating whose item the run no longer shows is left out; joining refuses such an item.
    """
    cells = by_key(
        ((_KINDS[one.survey.subject], one.survey.rubric.model_dump_json(), one.by), one)
        for one in sheets
    )
    items = {kind: _items(run, kind) for kind, _, _ in cells}
    found = []
    for (kind, _, by), of in sorted(cells.items(), key=lambda cell: cell[0][0] == "answers"):
        scores: dict[str, dict[Rater, float]] = {}
        for one in of:
            rater = one.survey.text(), one.rater
            for rating in one.ratings:
                if rating.item in items[kind]:
                    scores.setdefault(rating.item, {})[rater] = rating.value
        judged = kind in view_of(run.head.system).judged
        found.append(Gathered(kind, of[0].survey.rubric, by, items[kind], scores, judged))
    return tuple(found)


def _items(run: SystemRun, kind: Kind) -> dict[str, Item]:
    """Every item of a kind; a person's lessons are among them, and no word of theirs is shown."""
    passages, whole = view_of(run.head.system).passages, replace(run, with_messages=True)
    subjects: tuple[Subject, ...] = ("proposals", "replies") if kind == "replies" else ("answers",)
    subject = next(one for one in subjects if one in passages)
    return items_of(passages[subject](whole))


_RATED: Final = ("run", "sheet", "rating", "item", "place")
"""What a row of the ratings is of: item and place are null for what the run no longer shows."""
_RATINGS: Final = {
    "run_id": text(lambda run, *_: run_id(run)),
    "subject": text("sheet.survey.subject"),  # replies, proposals or answers
    "item": text("rating.item"),  # digest of what the rater read
    "episode_id": text("place.episode"),  # where it stands first; so are the next five
    "turn": whole(),
    "role": text(),  # who wrote it
    "condition": text(),
    "task": text(),
    "delivered": yes(),  # the student read it, or wrote it
    "places": whole(lambda _, __, ___, item, ____: len(item.places) if item else 0),  # of the text
    "judged": real("item.judged"),  # the run's own judge or label, mean over places; null without
    "rubric": text("sheet.survey.rubric.name"),
    "by": text("sheet.by"),  # people, or script
    "survey": text(  # the first rater of another survey may be somebody else
        lambda _, sheet, *__: sha256(sheet.survey.text().encode()).hexdigest()[:12]
    ),
    "rater": whole("sheet.rater"),
    "value": real("rating.value"),  # on the rubric's scale
    "note": text(lambda _, __, rating, *___: rating.note or None),
}


def ratings_table(run: SystemRun) -> pl.DataFrame:
    """Every rating of a run, one a row; what the run no longer shows has no place."""
    items = {kind: _items(run, kind) for kind in {_KINDS[s.survey.subject] for s in run.ratings}}
    row = reader_of(_RATINGS, _RATED)
    rows = [
        row(run.head, sheet, rating, item, item and item.places[0])
        for sheet in run.ratings
        for rating in sheet.ratings
        for item in [items[_KINDS[sheet.survey.subject]].get(rating.item)]
    ]
    kinds = {name: column.kind for name, column in _RATINGS.items()}
    return pl.DataFrame(rows, schema=kinds, orient="row")


# --- Judge calibration ---------------------------------------------------------------------------

EDGES: Final = (0.0, 0.2, 0.4, 0.6, 0.8)
"""Where a band of the judge's scores begins, as a part of the scale; the last one ends with it."""


def beside_judge(found: Gathered) -> Row | None:
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
    why_not: NotEstimable | None = None
    if not found.judged_itself:
        why_not = NotEstimable("the judge scored the answer that a reply led to, not the reply")
    elif not found.rubric.of_judge:
        why_not = NotEstimable("people rated on another scale than the judge")
    differences = judge - people

    def mean_of(values: Floats) -> Estimate | NotEstimable:
        return why_not or mean_over_tasks(values.tolist(), tasks)

    most = found.rubric.scale[-1]
    return {
        **found.of,
        "most": most,  # the greatest value of the scale
        "items": len(pairs),  # with both scores
        "bias": mean_of(differences),  # judge − people
        "distance": mean_of(np.abs(differences)),  # |judge − people|
        "pearson": _correlation(judge, people, tasks, ranked=False),
        "spearman": _correlation(judge, people, tasks, ranked=True),
        # None where the two are not of the same text on the same scale.
        "bands": [] if why_not else list(_bands(judge, people, most=most)),
    }


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


def _bands(judge: Floats, people: Floats, *, most: float) -> Iterator[Row]:
    """Items whose judge's score lies in one fifth of the scale, which ends with its last value."""
    edges = [most * edge for edge in EDGES]
    which = np.clip(np.searchsorted(edges, judge + 1e-9, side="right") - 1, 0, None)
    for place, (low, high) in enumerate(pairwise([*edges, most])):
        inside = which == place
        if inside.any():
            yield {
                "low": low,
                "high": high,
                "items": int(inside.sum()),
                "judge": float(judge[inside].mean()),
                "people": float(people[inside].mean()),
            }


# --- Rater agreement -----------------------------------------------------------------------------

Metric = Literal["ordinal", "interval"]


METRICS: Final[tuple[Metric, ...]] = get_args(Metric)


@dataclass(frozen=True)
class Alpha:
    """Krippendorff's alpha under one metric."""

    value: float
    over_tasks: Interval | NotEstimable
    over_items: Interval | NotEstimable


def agreement(found: Gathered) -> Row:
    """Alpha of gathered ratings under both metrics."""
    shared = [name for name, said in found.scores.items() if len(said) > 1]
    tasks = [found.items[name].task for name in shared]
    domain = np.array(sorted({v for name in shared for v in found.scores[name].values()}))
    counts = np.array(
        [[list(found.scores[name].values()).count(v) for v in domain] for name in shared],
        dtype=np.int64,
    )
    return {
        **found.of,
        "raters": len({rater for said in found.scores.values() for rater in said}),
        "items": len(found.scores),  # rated by anybody
        "shared": len(shared),  # rated by two or more; alpha is of these
        "ratings": sum(map(len, found.scores.values())),
        **{metric: _alpha(counts, domain, tasks, metric) for metric in METRICS},
    }


def _alpha(counts: Ints, domain: Floats, tasks: list[str], metric: Metric) -> Alpha | NotEstimable:
    """Alpha of `counts`, shape (items, values): how many raters gave an item a value."""
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
