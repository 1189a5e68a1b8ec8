"""Who rates what: items drawn by seed, dealt to raters, and shuffled for each of them.

Every draw is by hash, so that it is the same on any machine, and a larger one of the same seed
holds a smaller one.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha256

from tutorsim.analysis.ratings.rateable_items import Item
from tutorsim.errors import UsageError
from tutorsim.records import RunRecord
from tutorsim.records.ratings import Rubric, Subject, Survey

__all__ = ["Asked", "Sheet", "draw_sheets"]


@dataclass(frozen=True)
class Asked:
    """What the user asked for."""

    subject: Subject
    raters: int
    items: int
    overlap: int | None
    """Items that every rater has; `None` for all."""
    seed: int


@dataclass(frozen=True)
class Sheet:
    """What one rater gets."""

    survey: Survey
    rater: int
    """From 1."""
    items: tuple[Item, ...]
    """In the order shown."""

    @property
    def digest(self) -> str:
        return self.survey.sheet_digest(self.rater, tuple(item.id for item in self.items))


def draw_sheets(
    items: Sequence[Item], asked: Asked, *, rubric: Rubric, run: RunRecord
) -> tuple[Sheet, ...]:
    """One sheet per rater.

    Of proposals whole turns are drawn, and a turn's proposals go to the same raters: only then
    does a turn say what other winners would have delivered.

    Args:
        items: All that can be rated.
        asked: How many of them, for how many raters.
        rubric: What is asked of each.
        run: The head of the run.

    Raises:
        UsageError: If the numbers leave some rater without an item.
    """
    overlap = asked.items if asked.overlap is None else asked.overlap
    if overlap > asked.items:
        raise UsageError(
            f"--overlap {overlap} is more than --items {asked.items}.",
            why="The overlap is among the items that are drawn.",
            hint="Leave --overlap out, so that every rater has every item.",
        )
    groups = _drawn(items, asked)
    shared = list(_first(groups, overlap))
    rest = groups[len(shared) :]
    dealt = [[*shared, *rest[rater :: asked.raters]] for rater in range(asked.raters)]
    drawn = {item.id for group in groups for item in group}
    if not all(dealt):
        raise UsageError(
            f"{asked.raters} raters share {len(drawn)} items, and some have none.",
            why="Proposals are drawn and dealt by the turn."
            if asked.subject == "proposals"
            else "The overlap leaves fewer items than raters.",
            hint="Draw more with --items, or ask fewer --raters.",
        )
    survey = Survey(
        study_digest=run.study_digest,
        recording_digest=run.recording_digest,
        subject=asked.subject,
        seed=asked.seed,
        raters=asked.raters,
        items=len(drawn),
        overlap=len({item.id for group in shared for item in group}),
        rubric=rubric,
    )
    return tuple(
        Sheet(survey, number, _shuffled(groups, asked.seed, number))
        for number, groups in enumerate(dealt, start=1)
    )


def _place(seed: int, *parts: object) -> bytes:
    return sha256("\x1f".join(map(str, (seed, *parts))).encode()).digest()


def _drawn(items: Sequence[Item], asked: Asked) -> list[list[Item]]:
    """Groups in the order drawn, as many as the number of items has room for."""
    if asked.subject != "proposals":
        groups = [[item] for item in items]
    else:
        turns: dict[tuple[str, int], list[Item]] = {}
        for item in items:
            for one in item.places:
                turns.setdefault((one.episode, one.turn), []).append(item)
        groups = [list(dict.fromkeys(group)) for group in turns.values()]

    def place(group: list[Item]) -> bytes:
        return _place(asked.seed, "draw", *sorted(item.id for item in group))

    return list(_first(sorted(groups, key=place), asked.items))


def _first(groups: Sequence[list[Item]], count: int) -> Iterator[list[Item]]:
    """Groups from the first on, as long as they bring no more than so many items."""
    seen: set[str] = set()
    for group in groups:
        seen |= {item.id for item in group}
        if len(seen) > count:
            return
        yield group


def _shuffled(groups: Sequence[list[Item]], seed: int, rater: int) -> tuple[Item, ...]:
    """The items of one rater, each once, in an order of the rater's own."""
    items = {item.id: item for group in groups for item in group}
    return tuple(sorted(items.values(), key=lambda item: _place(seed, "order", rater, item.id)))
