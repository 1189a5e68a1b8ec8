"""The one way to compare sides, and runs and conditions of any system compared in it.

Sides are conditions, runs, panels or protocols. Of each its units have values, of which those of
one task are taken together; a family of contrasts is tested together and told in one form:

    family = corrected([*contrasts_between(sides, pairs, cluster=itemgetter(1), measured="points")])
    rows = [row.cells("difference of", "difference", "p") for row in family]
    sentence = chance_words(family)
"""

from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import combinations, product
from math import inf
from operator import attrgetter
from typing import Any, Final, TypeVar

import polars as pl

from tutorsim.analysis.pages.cells_and_tables import (
    DASH,
    Table,
    Written,
    estimate,
    number,
    p_value,
    plain,
)
from tutorsim.analysis.pages.document import Answer, Document, Section
from tutorsim.analysis.pages.words_and_safe_text import counted, warning_of_run
from tutorsim.analysis.statistics import by_key
from tutorsim.analysis.statistics.intervals_and_tests import (
    ALPHA,
    SEED,
    Estimate,
    NotEstimable,
    PermutationTest,
    corrected,
    fewest_tasks,
    flips_by_task,
    mean_of,
    mean_over_tasks,
)
from tutorsim.analysis.systems.system_view_opened_run_and_cost import (
    Ballots,
    Opened,
    SystemRun,
    View,
    framed,
    view_for,
)
from tutorsim.errors import UsageError

# --- Contrasts ------------------------------------------------------------------------------------

K = TypeVar("K", bound=Hashable)
S = TypeVar("S", bound=str)
Repeats = Sequence[float]
"""The outcome of each repeat of a unit; they are averaged."""

_UNTESTED: Final = NotEstimable("no pairs")
_NO_PAIR: Final = "no pair with this outcome in both"
BASELINE: Final = "baseline"
"""The condition that the others are compared with, in systems that have it."""
NAMED: Final = 3
"""Differences that a sentence names."""


@dataclass(frozen=True)
class Contrast:
    """Two sides on one outcome, over the units that both have: `second` − `first`."""

    first: str
    second: str
    difference: Estimate | NotEstimable
    test: PermutationTest | NotEstimable
    measured: str
    """What was measured of which tasks, as a sentence ends: `in success (sciq)`."""
    benchmark: str = ""
    """Empty where those of every benchmark are compared together."""
    condition: str = ""
    """Condition of both sides; empty where conditions are the sides."""
    outcome: str = ""
    title: str | None = None
    """What it is called where that is not `second − first`."""
    repeats: tuple[Sequence[Repeats], Sequence[Repeats]] = field(default=((), ()), repr=False)
    """Repeats of each unit that both have, on the first side and on the second."""
    p_holm: float | None = None
    """Corrected over the family; `None` without a test."""
    p_alone: float | None = None
    """For these tasks alone, corrected; `None` where nobody asked, or tasks are enough for more."""
    detectable: float | NotEstimable = _UNTESTED
    """The least difference that so many tasks with this spread would show with 80 % power."""

    @property
    def name(self) -> str:
        return f"{self.second} − {self.first}" if self.title is None else self.title

    @property
    def pairs(self) -> int:
        return self.difference.n

    @property
    def tasks(self) -> int:
        return self.test.tasks if isinstance(self.test, PermutationTest) else 0

    @property
    def p(self) -> float | None:
        """p before the correction."""
        return self.test.p_value if isinstance(self.test, PermutationTest) else None

    @property
    def first_mean(self) -> float | NotEstimable:
        """Mean of the first side over the units that both have."""
        return mean_of([mean(unit) for unit in self.repeats[0]], _NO_PAIR)

    @property
    def second_mean(self) -> float | NotEstimable:
        return mean_of([mean(unit) for unit in self.repeats[1]], _NO_PAIR)

    @property
    def differing(self) -> int:
        """Units whose outcome is not the same on both sides."""
        return sum(mean(one) != mean(two) for one, two in zip(*self.repeats, strict=True))

    def values(self, *names: str) -> dict[str, Any]:
        """What JSON has of it, by name."""
        return {name: getattr(self, name) for name in names}

    def cells(self, *columns: str) -> dict[str, Any]:
        """The contrast's row of a table with these columns."""
        return {name: _CELLS[name](self) for name in columns}


def mean(repeats: Repeats) -> float:
    """Mean of the repeats of a unit."""
    return sum(repeats) / len(repeats)


def against(names: Iterable[str], reference: str | None = None) -> list[tuple[str, str]]:
    """The first and the second of every two; or the reference first, and each other."""
    every = combinations(names, 2)
    return [
        (two, one) if two == reference else (one, two)
        for one, two in every
        if reference in (None, one, two)
    ]


def contrasts_between(
    sides: Mapping[S, Mapping[K, Repeats]],
    pairs: Iterable[tuple[S, S]],
    *,
    cluster: Callable[[K], Hashable],
    ends: tuple[float, float] = (-inf, inf),
    seed: int = SEED,
    **place: Any,
) -> Iterator[Contrast]:
    """Contrasts of sides on one outcome, not yet corrected, with intervals over clusters.

    `sides`: side → unit → its repeats. `cluster`: what a unit is taken together with, its task as a
    rule. `ends`: least and greatest value that a difference can have. `place`: other fields of each
    contrast.
    """
    for first, second in pairs:
        one, two = sides.get(first, {}), sides.get(second, {})
        shared = [unit for unit in one if unit in two]
        differences = [mean(two[unit]) - mean(one[unit]) for unit in shared]
        clusters = [cluster(unit) for unit in shared]
        yield Contrast(
            first,
            second,
            mean_over_tasks(differences, clusters, ends=ends),
            flips_by_task(differences, clusters, seed=seed),
            repeats=([one[unit] for unit in shared], [two[unit] for unit in shared]),
            **place,
        )


# --- Contrasts in tables --------------------------------------------------------------------------


def p_words(row: Contrast) -> Written:
    """A corrected p-value, with the error of the draws where signs were drawn; none of one task."""
    if not isinstance(row.test, PermutationTest) or row.p_holm is None or row.test.tasks == 1:
        return Written(DASH, None)
    figure = p_value(row.p_holm)
    if row.test.exact:
        return figure
    return Written(f"~{figure} ± {row.test.error:.3f}", row.p_holm)


_CELLS: Final[Mapping[str, Callable[[Contrast], Any]]] = {
    **{name: attrgetter(name) for name in ("benchmark", "condition", "pairs", "tasks")},
    "difference of": attrgetter("name"),
    "first": lambda row: plain(row.first_mean),
    "second": lambda row: plain(row.second_mean),
    "difference": lambda row: estimate(row.difference, signed=True),
    "p": p_words,
    "these tasks alone": lambda row: number(None) if row.p_alone is None else p_value(row.p_alone),
    "detectable": lambda row: plain(row.detectable),
}
"""Column of a table → its cell of a contrast."""

_TEXTS: Final = ("benchmark", "outcome", "name", "first", "second")
_COUNTS: Final = ("pairs", "tasks")
_ENDS: Final = {"difference": "value", "low": "low", "high": "high"}


def frame_of(found: Sequence[Contrast], *columns: str, **others: str) -> pl.DataFrame:
    """Contrasts with a column for each number.

    `others`: column → what of a contrast it has, where that is not what its name says.
    """
    kinds = dict.fromkeys(_TEXTS, pl.String) | dict.fromkeys(_COUNTS, pl.Int64)
    made = []
    for name in columns:
        of = f"difference.{_ENDS[name]}" if name in _ENDS else others.get(name, name)
        values = [_number(attrgetter(of)(row)) for row in found]
        made.append(pl.Series(name, values, kinds.get(of, pl.Float64)))
    return pl.DataFrame(made)


def _number(value: Any) -> Any:
    return None if isinstance(value, NotEstimable) else value


def rows_about_zero(
    found: Iterable[Contrast], outcome: Callable[[Contrast], str]
) -> Iterator[dict[str, Any]]:
    """Rows of the chart `about_zero`: outcome, contrast and difference, where it is known."""
    for one in found:
        if one.pairs:
            ends = {"difference": one.difference.value, "lower": one.difference.low}
            upper = one.difference.high
            yield {"outcome": outcome(one), "contrast": one.name, **ends, "upper": upper}


# --- Contrasts in words ---------------------------------------------------------------------------


def difference_words(row: Contrast, digits: int = 2) -> str:
    """`ranked − simple +0.20 in success (sciq)`."""
    size = f"{row.difference.value or 0.0:+.{digits}f}".replace("-", "−")
    return f"{row.name} {size} {row.measured}".lstrip()


def contrast_headline(found: Sequence[Contrast]) -> str:
    """Whether any of the differences tested together is beyond chance, in a few words."""
    beyond, tested = sum(map(beyond_chance, found)), len(_tested(found))
    return f"Yes, in {beyond} of {counted(tested, 'contrast')}" if beyond else not_shown(found)


def not_shown(found: Sequence[Contrast]) -> str:
    """Sentence that no difference is beyond chance, or that none could be, on so few tasks."""
    tested = _tested(found)
    few = not tested or max(row.tasks for row in tested) < fewest_tasks(len(tested))
    return "Not known" if few else "Not shown"


def beyond_chance(row: Contrast) -> bool:
    """Whether a difference is beyond chance among all that were tested with it."""
    return row.p_holm is not None and row.p_holm < ALPHA


def _tested(found: Sequence[Contrast]) -> list[Contrast]:
    return [row for row in found if isinstance(row.test, PermutationTest)]


def leads(found: Sequence[Contrast], best: Collection[str], others: Collection[str]) -> bool:
    """Whether each of the best is better than each of the others, all beyond chance."""
    better = set()
    for row in filter(beyond_chance, found):
        assert isinstance(row.test, PermutationTest)
        up = row.test.difference > 0
        better.add((row.second, row.first) if up else (row.first, row.second))
    return better.issuperset(product(best, others))


def chance_words(
    found: Sequence[Contrast],
    told: Callable[[Contrast], str] = difference_words,
    *,
    between: str = "conditions",
    over: str = "tasks",
    largest: float = inf,
    shown: str = "",
) -> str:
    """Which of the differences tested together are beyond chance over tasks.

    `largest`: the greatest difference that there can be. `shown`: a sentence on how many tasks
    would show a difference, said where these cannot.
    """
    tested = _tested(found)
    if not tested:
        return f"No two {between} share enough pairs to be compared."
    number, tasks = len(tested), max(row.tasks for row in tested)
    family, flipped = counted(number, "contrast"), over.removesuffix("s")
    if tasks == 1:
        return (
            f"One {flipped} under each of the {between} compared: nothing here "
            f"speaks of other {over}, and there is no interval and no test."
        )
    if tasks < fewest_tasks(number):
        return (
            f"{_tasks_words(tested, over)} cannot show a difference between {between}. Signs "
            f"flipped by {flipped} give no p below {2.0 ** (1 - tasks):.2g}. For {family} at "
            f"least {fewest_tasks(number)} {over} are needed.{shown}"
        )
    how = (
        f"{family} {'was' if number == 1 else 'were'} tested over {_tasks_words(tested, over)}, by "
        f"flipping signs of {over}, with Holm's correction."
    )
    beyond = [row for row in tested if beyond_chance(row)]
    if beyond:
        named = named_differences(beyond, attrgetter("p_holm"), told)
        return f"Beyond chance over {over}: {named} {how}"
    least = min(row.p_holm for row in tested if row.p_holm is not None)
    return (
        f"No difference between {between} is beyond chance over {over}, which does not show that "
        f"there is none. {how} The least p is {p_value(least)}.{_power(tested, over, largest)}"
    )


def named_differences(
    found: Iterable[Contrast],
    p: Callable[[Contrast], float],
    told: Callable[[Contrast], str] = difference_words,
) -> str:
    """The surest differences, a sentence each, and how many more there are."""
    rows = sorted(found, key=p)
    named = [f"{told(row)}, p = {p_value(p(row))}." for row in rows[:NAMED]]
    return " ".join([*named, *([f"And {len(rows) - NAMED} more."] if len(rows) > NAMED else [])])


def _power(tested: Sequence[Contrast], over: str, largest: float) -> str:
    """The least difference that so many tasks would have shown, of the contrast that shows most."""
    what = tested[0].measured
    same = [row.detectable for row in tested if row.measured == what]
    known = [least for least in same if not isinstance(least, NotEstimable)]
    sizes = [least for least in known if least <= largest]
    if not known:
        return ""
    if not sizes:
        return f" With 80 % power so many {over} would show no difference {what} at all."
    return (
        f" To be shown with 80 % power by so many {over}, a difference would have to be at least "
        f"{min(sizes):.2f} {what}."
    )


def _tasks_words(tested: Sequence[Contrast], over: str) -> str:
    """`20 tasks`, or `2 tasks`, `1 or 2 tasks`, `2 to 20 tasks of each benchmark`."""
    own = by_key((row.benchmark, row.tasks) for row in tested)
    of = [max(tasks) for tasks in own.values()]
    least, largest = min(of), max(of)
    most = counted(largest, over.removesuffix("s"))
    if len(own) == 1 or not all(own):
        return most
    between = "or" if largest == least + 1 else "to"
    return f"{'' if least == largest else f'{least:,} {between} '}{most} of each benchmark"


# --- Two runs, or the conditions of one -----------------------------------------------------------

Unit = tuple[str, str, str]
"""Benchmark, task and variant: what is held fixed between sides."""
Cells = Mapping[tuple[str, str], Mapping[Unit, Repeats]]
"""Benchmark and condition → unit → its repeats."""


def compared(first: Opened, second: Opened | None) -> Document:
    """Two runs of one system, or the conditions of the first alone, beside one another.

    Refused without outcomes, of different systems, or if they share nothing to compare.
    """
    for opened in (first, second):
        if isinstance(opened, Ballots):
            raise UsageError(
                f"{opened.name} holds ballots from elsewhere, which have no outcomes to compare.",
                hint=f"Use `tutorsim recount {opened.name}`.",
            )
    assert isinstance(first, SystemRun)
    assert not isinstance(second, Ballots)
    view = view_for(first)
    compare = view.compare or partial(compared_on_outcomes, view)
    if second is None:
        return compare(first, None)
    if first.head.system != second.head.system:
        raise UsageError(
            f"{first.name} is of the system {first.head.system!r}, "
            f"{second.name} of {second.head.system!r}.",
            why="Their episodes have no outcome in common.",
            hint="Compare two runs of one system.",
        )
    made = compare(first, second)
    one, two = (warning_of_run(run.head) for run in (first, second))
    return made if one == two else replace(made, warning=f"First: {one} Second: {two}")


def compared_on_outcomes(view: View, first: SystemRun, second: SystemRun | None) -> Document:
    """Two runs, paired on benchmark, task, variant and condition; or the conditions of the first.

    Conditions are compared with the baseline, where the run has one, and else with one another.
    Repeats of a pair are averaged.

    Raises `UsageError` if two runs share nothing to compare.
    """
    run = second or first
    cluster = view.cluster_of(run)
    together = {_unit(record): cluster(record) for record in run.episodes}
    found: list[Contrast] = []
    for name, outcome in view.outcomes.items():
        one = _cells(first, outcome)
        every = _conditions(first, one) if second is None else _both(one, _cells(second, outcome))
        for benchmark, title, sides in every:
            found += contrasts_between(
                sides,
                against(sides, BASELINE if BASELINE in sides else None),
                cluster=together.__getitem__,
                measured=f"in {name} ({benchmark})",
                benchmark=benchmark,
                outcome=name,
                title=title,
            )
    rows = corrected([row for row in found if row.pairs])
    beyond = sorted(filter(beyond_chance, rows), key=lambda row: row.p_holm or 0)
    more = f", and {len(beyond) - 1} more" if len(beyond) > 1 else ""
    headline = f"{difference_words(beyond[0])}{more}" if beyond else "None"
    if second is None:
        summary = f"The conditions of {first.name} against one another."
        question, between = "Which differences are beyond chance?", "conditions"
        title = "One condition against another"
        lead = "Second minus first, over the tasks that both have."
    else:
        if not rows:
            raise UsageError(
                f"{first.name} and {second.name} share no item that both have an outcome of.",
                why="Runs are compared in pairs of the same benchmark, task, variant and "
                "condition.",
                hint="Compare runs over the same tasks, or read the two with `tutorsim summary`.",
            )
        if all(not row.difference.value for row in rows):
            headline = "Nothing differs"
        summary = f"{second.name} beside {first.name}."
        question, between = "What differs beyond chance?", "runs"
        title = "Outcomes of both runs"
        lead = (
            f"First: {first.name}, {first.provenance}. Second: {second.name}, {second.provenance}."
        )
    chance = chance_words(rows, between=between)
    others = {"first": "first_mean", "second": "second_mean", "holm": "p_holm"}
    data = frame_of(rows, *_COLUMNS, condition="name", **others)
    table = Table("differences", "Differences", _CAPTION, data)
    return framed(
        run,
        summary=summary,
        answers=(Answer(question, headline, chance, "differences"),),
        sections=(Section("differences", title, lead, tables=(table,)),),
    )


_CAPTION: Final = (
    "Paired on benchmark, task and variant, of two runs on condition too; repeats are averaged. "
    "Intervals at 95 % are over tasks, or over what the system takes together with a task, such as "
    "a dialogue; p by flipping the signs of all that is taken together, corrected by Holm over all "
    "rows."
)
_COLUMNS: Final = (
    *("benchmark", "condition", "outcome", "pairs", "tasks", "first", "second"),
    *("difference", "low", "high", "p", "holm"),
)


def _cells(run: SystemRun, outcome: Callable[[Any], float | None]) -> Cells:
    """Cells of complete episodes that have the outcome."""
    known = (
        ((record.benchmark, record.condition), (_unit(record), value))
        for record in run.episodes
        if record.status == "complete" and (value := outcome(record)) is not None
    )
    return {cell: by_key(found) for cell, found in by_key(known).items()}


def _unit(record: Any) -> Unit:
    return record.benchmark, record.task_id, record.variant


Sides = tuple[str, str | None, Mapping[str, Mapping[Unit, Repeats]]]
"""Benchmark, title, and side → unit → its repeats."""


def _conditions(run: SystemRun, cells: Cells) -> Iterator[Sides]:
    names = list(dict.fromkeys(record.condition for record in run.episodes))
    for benchmark in dict.fromkeys(record.benchmark for record in run.episodes):
        yield benchmark, None, {name: cells.get((benchmark, name), {}) for name in names}


def _both(one: Cells, two: Cells) -> Iterator[Sides]:
    for cell in one:
        if cell in two:
            yield *cell, {"first": one[cell], "second": two[cell]}
