"""What the tables and charts of a group's run are of: its lessons, duels and cycles."""

from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Final

from tutorsim.analysis.pages.published_figures import printed
from tutorsim.analysis.systems.group.speakers import Cycles, cycles_in
from tutorsim.records import RunRecord
from tutorsim.records.group import DuelRecord, GroupRecord, LessonRecord

PUBLISHED: Final = "tutorsim.analysis:data/group.published.toml"


class Evidence:
    """What a run's pages are counted from.

    Args:
        records: Episodes.
        run: The run's head.
    """

    def __init__(self, records: Sequence[GroupRecord], run: RunRecord) -> None:
        self.run, self.records = run, records
        complete = [one for one in records if one.status == "complete"]
        self.lessons = [one for one in complete if isinstance(one, LessonRecord)]
        self.duels = [one for one in complete if isinstance(one, DuelRecord)]
        self.judged = [duel for duel in self.duels if duel.result is not None]
        """Duels with a readable verdict."""
        self.conditions = _by_condition(self.lessons)
        self.coded = _by_condition(one for one in self.lessons if one.codes)
        """Condition → lessons whose messages were put into categories."""

    @cached_property
    def cycles(self) -> Cycles:
        """The cycles of the lessons."""
        return cycles_in(self.lessons, self.run)


def _by_condition(lessons: Iterable[LessonRecord]) -> dict[str, list[LessonRecord]]:
    groups: dict[str, list[LessonRecord]] = {}
    for lesson in lessons:
        groups.setdefault(lesson.condition, []).append(lesson)
    return groups


def published(quantity: str, *, public: bool = False, **cell: object) -> float | None:
    """A printed figure by what it is of; `None` if none is printed.

    Args:
        quantity: What it measures.
        public: Computed from the authors' public files, and not from the text.
        cell: What it is of.
    """
    for one in printed(PUBLISHED):
        from_files = one.where.startswith("public files")
        if (one.quantity, one.cell, from_files) == (quantity, cell, public):
            return one.value
    return None


def published_share(quantity: str, *, public: bool = False, **cell: object) -> float | None:
    """As `published`, of a figure in percent."""
    found = published(quantity, public=public, **cell)
    return None if found is None else found / 100
