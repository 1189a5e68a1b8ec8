"""What people said of the items of a run, gathered by what was asked and who answered.

Ratings are put together only where they are of one kind of text, on one rubric, and by one kind of
rater: people and programs that stand in for them are never one figure.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import fsum
from typing import Final, Literal, NamedTuple

from tutorsim.analysis.ratings.rateable_items import Item, items_of
from tutorsim.analysis.systems.system_view import SystemRun, view_of
from tutorsim.records.ratings import RatedBy, RatedSheet, Rubric, Subject

__all__ = ["Gathered", "Kind", "Rater", "gathered"]

Kind = Literal["replies", "answers"]
"""Replies of tutors, delivered or not, or the student's answers."""

_KINDS: Final[Mapping[Subject, Kind]] = {
    "replies": "replies",
    "proposals": "replies",
    "answers": "answers",
}


class Rater(NamedTuple):
    """One rater of one survey: the first rater of another survey may be somebody else."""

    survey: str
    number: int


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
    def raters(self) -> tuple[Rater, ...]:
        return tuple(sorted({rater for said in self.scores.values() for rater in said}))

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
    cells: dict[tuple[Kind, str, RatedBy], list[RatedSheet]] = {}
    for one in sheets:
        place = (_KINDS[one.survey.subject], one.survey.rubric.model_dump_json(), one.by)
        cells.setdefault(place, []).append(one)
    items = {kind: _items(run, kind) for kind, _, _ in cells}
    return tuple(
        Gathered(
            kind,
            of[0].survey.rubric,
            by,
            items[kind],
            _scores(of, items[kind]),
            kind in view_of(run.head.system).judged,
        )
        for (kind, _, by), of in sorted(cells.items(), key=lambda cell: cell[0][0] == "answers")
    )


def _items(run: SystemRun, kind: Kind) -> dict[str, Item]:
    """Every item of a kind; a person's lessons are among them, and no word of theirs is shown."""
    passages, whole = view_of(run.head.system).passages, replace(run, with_messages=True)
    subjects: tuple[Subject, ...] = ("proposals", "replies") if kind == "replies" else ("answers",)
    subject = next(one for one in subjects if one in passages)
    return items_of(passages[subject](whole))


def _scores(
    sheets: Iterable[RatedSheet], items: Mapping[str, Item]
) -> dict[str, dict[Rater, float]]:
    found: dict[str, dict[Rater, float]] = {}
    for one in sheets:
        rater = Rater(one.survey.text(), one.rater)
        for rating in one.ratings:
            if rating.item in items:
                found.setdefault(rating.item, {})[rater] = rating.value
    return found
