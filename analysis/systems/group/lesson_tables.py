"""Tables of a report about lessons, and the measures of talk in them."""

import tomllib
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from importlib.resources import files
from math import fsum, sqrt
from typing import Any, Final, Literal, NamedTuple

import polars as pl

from tutorsim.analysis.pages.cells import Table, Written, number, of_rows
from tutorsim.analysis.statistics.intervals_and_tests import (
    FEWEST_TASKS,
    Estimate,
    Interval,
    mean_over_tasks,
)
from tutorsim.analysis.systems.group.published_figures import printed
from tutorsim.records.group import CycleRecord, LessonRecord

# --- Talk measures -------------------------------------------------------------------------------

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


class Adherence(NamedTuple):
    """A participant's acts against its ideal profile."""

    distance: float
    """½ Σ|p − q|, from 0 (equal) to 1."""
    cosine: float
    acts: int


def kappa(first: Sequence[Hashable], second: Sequence[Hashable]) -> float | None:
    """Cohen's κ of two codings of the same messages; `None` where chance alone would agree.

    Args:
        first: One coder's categories.
        second: The other's, of the same messages in the same order.
    """
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


def rolling_task_share(acts: Sequence[Act], window: int = WINDOW) -> list[float]:
    """Share of task acts among every `window` coded messages in a row; empty for a short lesson."""
    task = [area_of(act.category) == "task" for act in acts if act.category is not None]
    return [sum(task[i : i + window]) / window for i in range(len(task) - window + 1)]


def slope(values: Sequence[float]) -> float | None:
    """Least-squares change from the first value to the last; `None` for fewer than two."""
    n = len(values)
    if n < 2:
        return None
    middle, mean = (n - 1) / 2, fsum(values) / n
    over = fsum((i - middle) * (value - mean) for i, value in enumerate(values))
    return over / fsum((i - middle) ** 2 for i in range(n)) * (n - 1)


def distribution(acts: Sequence[Act], who: str) -> list[float] | None:
    """Shares of the twelve categories among a participant's acts; `None` without one."""
    own = Counter(act.category for act in acts if act.who == who and act.category is not None)
    total = own.total()
    return [own[number] / total for number in range(1, 13)] if total else None


def adherence(acts: Sequence[Act], who: str, ideal: Sequence[float]) -> Adherence | None:
    """A participant's acts against an ideal profile of shares; `None` without an act."""
    shares = distribution(acts, who)
    if shares is None:
        return None
    distance = fsum(abs(p - q) for p, q in zip(shares, ideal, strict=True)) / 2
    dot = fsum(p * q for p, q in zip(shares, ideal, strict=True))
    length = sqrt(fsum(p * p for p in shares)) * sqrt(fsum(q * q for q in ideal))
    coded = sum(act.who == who and act.category is not None for act in acts)
    return Adherence(distance, dot / length, coded)


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


# --- Lesson tables -------------------------------------------------------------------------------

Lessons = Sequence[LessonRecord]


def _by_condition(lessons: Lessons) -> Iterator[tuple[str, list[LessonRecord]]]:
    for condition in dict.fromkeys(lesson.condition for lesson in lessons):
        yield condition, [lesson for lesson in lessons if lesson.condition == condition]


def _share(part: int, whole: int) -> float | None:
    return part / whole if whole else None


def _mean(values: Sequence[float]) -> float | None:
    return sum(values) / len(values) if values else None


def _tenths(values: Sequence[float]) -> Written:
    """The mean of what is counted."""
    return number(_mean(values), digits=1)


def _frame(rows: Iterable[Mapping[str, Any]]) -> pl.DataFrame:
    return pl.DataFrame(list(rows), infer_schema_length=None)


def _cycles(lesson: LessonRecord) -> list[tuple[int, CycleRecord]]:
    """Cycles that came to a choice of the next speaker."""
    found = [(event.number, event.cycle) for event in lesson.events if event.cycle is not None]
    return [(number, cycle) for number, cycle in found if cycle.thoughts or cycle.prediction]


def ends_table(lessons: Lessons) -> Table | None:
    """How lessons ended and how far they came, by condition."""
    rows = []
    for condition, some in _by_condition(lessons):
        ends = Counter(lesson.ended_by for lesson in some)
        rows.append(
            {
                "condition": condition,
                "lessons": len(some),
                "with_a_person": sum(lesson.variant == "person" for lesson in some),
                "events": _tenths([len(lesson.events) for lesson in some]),
                "stage_reached": _tenths([lesson.stage_reached for lesson in some]),
                "tasks_done": _mean([lesson.progress for lesson in some]),
                "ended": Written(
                    ", ".join(f"{end or 'failed'} {n}" for end, n in ends.most_common()),
                    {end or "failed": n for end, n in ends.most_common()},
                ),
            }
        )
    turns, talks = (printed(name, study="human") for name in ("turns", "conversations"))
    caption = (
        "Means over lessons; tasks done is a share. Printed for lessons with people: about "
        f"{turns:.0f} turns each, {talks:.0f} conversations."
    )
    return of_rows("lessons", "Lessons", caption, rows) or Table(
        "lessons", "Lessons", "", _frame(())
    )


def participation_table(lessons: Lessons) -> Table:
    """Messages and words of each participant, by condition."""
    rows = []
    for condition, some in _by_condition(lessons):
        said = [(e.who, len(e.text.split())) for x in some for e in x.events if e.kind == "message"]
        messages = Counter(who for who, _ in said)
        for who in (*some[0].agents, "learner"):
            words = [count for name, count in said if name == who]
            row = {"condition": condition, "participant": who, "messages": messages[who]}
            rows.append(
                row | {"share": _share(messages[who], len(said)), "words_each": _tenths(words)}
            )
    ginis = [
        f"{condition} {value:.2f}"
        for condition, some in _by_condition(lessons)
        if (value := _gini(some)) is not None
    ]
    caption = f"Gini of messages, mean over lessons: {', '.join(ginis) or 'not estimable'}."
    return of_rows("participation", "Who spoke", caption, rows) or Table(
        "participation", "Who spoke", "", _frame(())
    )


def _gini(lessons: Lessons) -> float | None:
    values = []
    for lesson in lessons:
        counts = Counter(e.who for e in lesson.events if e.kind == "message")
        found = gini([counts[who] for who in (*lesson.agents, "learner")])
        values += [] if found is None else [found]
    return _mean(values)


def reasons_table(lessons: Lessons) -> Table:
    """Why somebody spoke, or nobody: shares of the cycles that came to a choice."""
    rows = []
    for condition, some in _by_condition(lessons):
        cycles = [cycle for lesson in some for _, cycle in _cycles(lesson)]
        rules = Counter(rule for cycle in cycles for rule in {step.rule for step in cycle.steps})
        cut = sum(_interrupted(cycle) for cycle in cycles)
        rows.append(
            {
                "condition": condition,
                "cycles": len(cycles),
                "nobody_spoke": _share(sum(c.chosen is None for c in cycles), len(cycles)),
                "floor": rules["floor"],
                "address": rules["address"],
                "interruptions": cut,
                "threshold_held_back": rules["threshold"],
                "ties": rules["silent_longest"],
                "withdrawn": sum(c.withdrawn for c in cycles),
            }
        )
    caption = (
        "Counts of cycles in which a rule applied; an interruption is a correction by somebody "
        "whom floor or address had left out."
    )
    return Table("reasons", "Why they spoke", caption, _frame(rows))


def _interrupted(cycle: CycleRecord) -> bool:
    kept = [step.kept for step in cycle.steps if step.rule == "interruption"]
    return bool(kept) and cycle.chosen in kept[0]


# --- Coding ---------------------------------------------------------------------------------------


def acts_of(lesson: LessonRecord, coder: str) -> list[Act]:
    """The messages of a lesson in one coder's categories."""
    codes = {code.event: code.category for code in lesson.codes if code.coder == coder}
    messages = [event for event in lesson.events if event.kind == "message"]
    return [Act(event.who or "", codes.get(event.number)) for event in messages]


def _coded(lessons: Lessons) -> list[LessonRecord]:
    return [lesson for lesson in lessons if lesson.codes]


def agreement_table(lessons: Lessons) -> Table | None:
    """Cohen's κ of both coders; `None` where nothing was coded twice."""
    first = [act.category for x in _coded(lessons) for act in acts_of(x, "coder_1")]
    second = [act.category for x in _coded(lessons) for act in acts_of(x, "coder_2")]
    pairs = [(a, b) for a, b in zip(first, second, strict=True) if a is not None and b is not None]
    if not pairs:
        return None
    areas = [(area_of(a), area_of(b)) for a, b in pairs]
    rows = [
        {
            "categories": name,
            "messages": len(both),
            "agreement": _mean([a == b for a, b in both]),
            "kappa": kappa([a for a, _ in both], [b for _, b in both]),
        }
        for name, both in (("twelve", pairs), ("two areas", areas))
    ]
    caption = f"{len(first) - len(pairs)} messages that a coder gave no category are left out."
    return Table("agreement", "Agreement of both coders", caption, _frame(rows))


def categories_table(lessons: Lessons) -> Table | None:
    """Shares of Bales' categories per condition and participant, beside printed ones."""
    rows = [
        row
        for condition, some in _by_condition(_coded(lessons))
        for who in _participants(some)
        for row in _category_rows(condition, some, who)
    ]
    if not rows:
        return None
    caption = (
        "Share of a participant's acts by coder 1; low and high over both coders. Printed figures "
        "are of self-selection."
    )
    return Table("categories", "What kind of acts", caption, _frame(rows))


def _participants(lessons: Lessons) -> list[str]:
    return list(dict.fromkeys((*(agent for x in lessons for agent in x.agents), "learner")))


def _category_rows(condition: str, lessons: Lessons, who: str) -> Iterator[dict[str, Any]]:
    by_coder = [
        [act.category for x in lessons for act in acts_of(x, coder) if act.who == who]
        for coder in ("coder_1", "coder_2")
    ]
    for category, name in enumerate(CATEGORIES, start=1):
        shares = [_category_share(codes, category) for codes in by_coder]
        known = [share for share in shares if share is not None]
        print_share = _printed(condition, "ipa_share", participant=who, category=name)
        if known and (max(known) > 0 or print_share is not None):
            yield {
                "condition": condition,
                "participant": who,
                "category": name,
                "share": shares[0],
                "low": min(known),
                "high": max(known),
                "printed": None if print_share is None else print_share / 100,
            }


def _printed(condition: str, quantity: str, **cell: Any) -> float | None:
    """A printed figure of lessons, which are all of self-selection."""
    return printed(quantity, **cell) if condition == "self_select" else None


def _category_share(codes: Sequence[int | None], number: int) -> float | None:
    known = [code for code in codes if code is not None]
    return _share(known.count(number), len(known))


def adherence_table(lessons: Lessons) -> Table | None:
    """Each agent's acts against its ideal profile, by condition."""
    rows = []
    for condition, some in _by_condition(_coded(lessons)):
        acts = [act for lesson in some for act in acts_of(lesson, "coder_1")]
        other = [act for lesson in some for act in acts_of(lesson, "coder_2")]
        for who, ideal in ideal_profiles().items():
            found, second = adherence(acts, who, ideal), adherence(other, who, ideal)
            if found is not None:
                rows.append(
                    {
                        "condition": condition,
                        "participant": who,
                        "acts": found.acts,
                        "distance": found.distance,
                        "cosine": found.cosine,
                        "distance_coder_2": second.distance if second else None,
                    }
                )
    if not rows:
        return None
    caption = (
        "Distance ½ Σ|p − q| from the role's ideal profile: 0 is equal, 1 has nothing in common. "
        "The profiles are ours, set before any lesson was recorded."
    )
    return Table("adherence", "Role adherence", caption, _frame(rows))


def balance_table(lessons: Lessons) -> Table | None:
    """The task share in a rolling window: at the start, at the end, and its slope."""
    rows = []
    for condition, some in _by_condition(_coded(lessons)):
        shares = [(x, rolling_task_share(acts_of(x, "coder_1"))) for x in some]
        whole = [(x, values) for x, values in shares if len(values) > 1]
        slopes = [value for _, values in whole if (value := slope(values)) is not None]
        if not slopes:
            continue
        estimate = mean_over_tasks(slopes, [x.episode_id for x, _ in whole], over="lessons")
        interval = estimate.interval if isinstance(estimate, Estimate) else None
        bounds = interval if isinstance(interval, Interval) else None
        rows.append(
            {
                "condition": condition,
                "lessons": len(slopes),
                "task_share_first": _mean([values[0] for _, values in whole]),
                "task_share_last": _mean([values[-1] for _, values in whole]),
                "change": _mean(slopes),
                "low": bounds.low if bounds else None,
                "high": bounds.high if bounds else None,
            }
        )
    if not rows:
        return None
    low, high = (printed(f"task_share_{end}", phase="start") for end in ("low", "high"))
    caption = (
        f"Share of task acts (4 to 9) in a rolling window of {WINDOW} messages; the rest "
        "is social-emotional. Change over a lesson by least squares; low and high: 95 %, over "
        f"lessons, also where several have one problem, from {FEWEST_TASKS} lessons on. Printed "
        f"for the start: {low:.0f} to {high:.0f} %."
    )
    return Table("balance", "Task and social-emotional acts", caption, _frame(rows))


def phases_table(lessons: Lessons) -> Table | None:
    """Per condition, participant and third of the lesson, the shares of four kinds of acts."""
    rows = [
        row
        for condition, some in _by_condition(_coded(lessons))
        for who in _participants(some)
        for row in _phase_rows(condition, some, who)
    ]
    if not rows:
        return None
    caption = (
        "Mean over lessons in which the participant acted in that third. Guiding 4 to 6, "
        "questioning 7 to 9, affective 1 to 3, other 10 to 12; the four sum to 1. Printed figures "
        "are of self-selection."
    )
    return Table("phases", "Scaffolding by thirds of a lesson", caption, _frame(rows))


def _phase_rows(condition: str, lessons: Lessons, who: str) -> Iterator[dict[str, Any]]:
    per_lesson = [phase_shares(acts_of(lesson, "coder_1"), who) for lesson in lessons]
    for place, phase in enumerate(PHASES):
        found = [shares for one in per_lesson if (shares := one[place]) is not None]
        if found:
            yield {
                "condition": condition,
                "participant": who,
                "phase": phase,
                "lessons": len(found),
                "printed": _printed_phase(condition, who, phase),
                **{kind: _mean([shares[kind] for shares in found]) for kind in KINDS},
            }


def _printed_phase(condition: str, who: str, phase: str) -> str | None:
    name = "tom" if who == "learner" else who
    found = [
        f"{kind} {share:.0f} %"
        for kind in KINDS
        if (
            share := _printed(condition, "scaffold_share", participant=name, phase=phase, kind=kind)
        )
        is not None
    ]
    return ", ".join(found) or None
