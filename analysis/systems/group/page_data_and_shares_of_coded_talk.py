"""What the tables and charts of a group's run are of: its lessons, duels and cycles.

Measures of talk stand here too: Bales' categories of coded messages, who speaks, and how talk
changes.
"""

import tomllib
from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from functools import cache, cached_property
from importlib.resources import files
from math import fsum, sqrt
from typing import Final, Literal, NamedTuple

from tutorsim.analysis.pages.numbers_printed_in_studies import printed
from tutorsim.analysis.statistics import by_key
from tutorsim.analysis.systems.group.speakers_under_other_settings import Cycles, cycles_in
from tutorsim.records import RunRecord
from tutorsim.records.group import DuelRecord, GroupRecord, LessonRecord

PUBLISHED: Final = "tutorsim.analysis:data/group.published.toml"


class Evidence:
    """What a run's pages are counted from."""

    def __init__(self, records: Sequence[GroupRecord], run: RunRecord) -> None:
        self.run, self.records = run, records
        self.beside = printed(PUBLISHED, run)
        """Printed figures to stand beside the run's."""
        complete = [one for one in records if one.status == "complete"]
        self.lessons = [one for one in complete if isinstance(one, LessonRecord)]
        self.duels = [one for one in complete if isinstance(one, DuelRecord)]
        self.judged = [duel for duel in self.duels if duel.result is not None]
        """Duels with a readable verdict."""
        self.conditions = by_key((one.condition, one) for one in self.lessons)
        self.coded = by_key((one.condition, one) for one in self.lessons if one.codes)
        """Condition → lessons whose messages were put into categories."""

    @cached_property
    def cycles(self) -> Cycles:
        """The cycles of the lessons."""
        return cycles_in(self.lessons, self.run)

    def printed(self, quantity: str, *, public: bool = False, **cell: object) -> float | None:
        """A printed figure by what it is of; `None` if none stands beside the run's.

        `public`: computed from the authors' public files, and not from the text.
        """
        for one in self.beside:
            from_files = one.where.startswith("public files")
            if (one.quantity, one.cell, from_files) == (quantity, cell, public):
                return one.value
        return None

    def printed_share(self, quantity: str, *, public: bool = False, **cell: object) -> float | None:
        """The printed figure of a quantity in percent, as a share."""
        found = self.printed(quantity, public=public, **cell)
        return None if found is None else found / 100


def public_files(of: Evidence, what: str) -> str:
    """What figures of the authors' public files are of, where they stand beside the run's."""
    return f" {what}, computed by us." if of.beside else ""


# --- Shares of the talk --------------------------------------------------------------------------

CATEGORIES: Final = (
    "shows_solidarity",
    "tension_release",
    "agrees",
    "gives_suggestion",
    "gives_opinion",
    "gives_orientation",
    "asks_orientation",
    "asks_opinion",
    "asks_suggestion",
    "disagrees",
    "shows_tension",
    "shows_antagonism",
)
"""Names of the categories 1 to 12."""
CODERS: Final = ("coder_1", "coder_2")
WINDOW: Final = 10
"""Messages of the rolling share."""
PHASES: Final = ("early", "middle", "late")

Kind = Literal["guiding", "questioning", "affective", "other"]
KINDS: Final[tuple[Kind, ...]] = ("guiding", "questioning", "affective", "other")
"""Kinds of acts in a scaffolding phase."""


class Act(NamedTuple):
    """One coded message."""

    who: str
    category: int | None
    """1 to 12; `None` where no coding could be read."""


def acts_of(lesson: LessonRecord, coder: str) -> list[Act]:
    """The messages of a lesson in one coder's categories."""
    codes = {code.event: code.category for code in lesson.codes if code.coder == coder}
    messages = [event for event in lesson.events if event.kind == "message"]
    return [Act(event.who or "", codes.get(event.number)) for event in messages]


def kappa(first: Sequence[Hashable], second: Sequence[Hashable]) -> float | None:
    """Cohen's κ of two codings of the same messages; `None` where chance alone would agree."""
    n = len(first)
    if n == 0:
        return None
    agree = sum(a == b for a, b in zip(first, second, strict=True)) / n
    one, two = Counter(first), Counter(second)
    expected = sum(one[category] * two[category] for category in one) / n**2
    return None if expected == 1 else (agree - expected) / (1 - expected)


def area_of(category: int) -> Literal["task", "social_emotional"]:
    """The area of a category: 4 to 9 are about the task."""
    return "task" if 4 <= category <= 9 else "social_emotional"


def kind_of(category: int) -> Kind:
    """Guiding (4 to 6), questioning (7 to 9), affective (1 to 3) or other (10 to 12)."""
    if category <= 3:
        return "affective"
    return KINDS[(category - 4) // 3] if category <= 9 else "other"


def phase_of(place: int, messages: int) -> int:
    """The third of a lesson that message `place` of `messages` (from 0) lies in."""
    return 3 * place // messages


def phase_shares(acts: Sequence[Act], who: str) -> list[dict[Kind, float] | None]:
    """Per phase, the shares of the four kinds among a participant's acts; they sum to 1.

    `None` for a phase in which the participant has no coded act.
    """
    counts: list[Counter[Kind]] = [Counter(), Counter(), Counter()]
    for place, act in enumerate(acts):
        if act.who == who and act.category is not None:
            counts[phase_of(place, len(acts))][kind_of(act.category)] += 1
    return [
        {kind: count[kind] / count.total() for kind in KINDS} if count else None for count in counts
    ]


def rolling_task_share(acts: Sequence[Act]) -> list[float]:
    """Share of task acts among every `WINDOW` coded messages in a row; empty for a short lesson."""
    task = [area_of(act.category) == "task" for act in acts if act.category is not None]
    return [sum(task[i : i + WINDOW]) / WINDOW for i in range(len(task) - WINDOW + 1)]


def slope(values: Sequence[float]) -> float | None:
    """Least-squares change from the first value to the last; `None` for fewer than two."""
    n = len(values)
    if n < 2:
        return None
    middle, mean = (n - 1) / 2, fsum(values) / n
    over = fsum((i - middle) * (value - mean) for i, value in enumerate(values))
    return over / fsum((i - middle) ** 2 for i in range(n)) * (n - 1)


def adherence_to(ideal: Sequence[float], acts: Sequence[Act], who: str) -> dict[str, float] | None:
    """A participant's acts against an ideal profile of shares; `None` without an act.

    Returns `acts`, `distance` ½ Σ|p − q|, from 0 (equal) to 1, and `cosine`.
    """
    own = Counter(act.category for act in acts if act.who == who and act.category is not None)
    if not own:
        return None
    shares = [own[number] / own.total() for number in range(1, 13)]
    distance = fsum(abs(p - q) for p, q in zip(shares, ideal, strict=True)) / 2
    dot = fsum(p * q for p, q in zip(shares, ideal, strict=True))
    length = sqrt(fsum(p * p for p in shares)) * sqrt(fsum(q * q for q in ideal))
    return {"acts": own.total(), "distance": distance, "cosine": dot / length}


@cache
def ideal_profiles() -> Mapping[str, tuple[float, ...]]:
    """Agent → shares of the twelve categories that its role would have; ours, not the study's."""
    text = (files("tutorsim.analysis") / "data" / "group.profiles.toml").read_text("utf-8")
    return {
        name: tuple(float(shares[category]) for category in CATEGORIES)
        for name, shares in tomllib.loads(text).items()
    }


def gini(values: Sequence[float]) -> float | None:
    """Gini coefficient: 0 for equal shares; `None` where there is nothing to share."""
    total = fsum(values)
    if not total:
        return None
    n = len(values)
    ranked = fsum((2 * i - n + 1) * value for i, value in enumerate(sorted(values)))
    return ranked / (n * total)
