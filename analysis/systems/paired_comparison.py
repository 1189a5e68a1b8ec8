"""Runs and conditions of a system side by side, and differences that are tested together."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import combinations, product
from math import fsum, inf
from typing import Any, Final, NamedTuple, Protocol, TypeVar

import polars as pl

from tutorsim.analysis.pages.cells_and_tables import DASH, Table, Written, p_value
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
    detectable_by,
    fewest_tasks,
    paired_difference,
)
from tutorsim.analysis.systems.system_view import Ballots, Opened, SystemRun, View, framed, view_for
from tutorsim.errors import UsageError

Key = tuple[str, ...]
"""What is paired: benchmark, task and variant, and of two runs condition."""
Outcomes = Mapping[str, Callable[[Any], float | None]]
Cluster = Callable[[Any], str]


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
    compare = view.compare or partial(_compared_on_outcomes, view)
    if second is None:
        return compare(first, None)
    _check_systems(first, second)
    made = compare(first, second)
    one, two = (warning_of_run(run.head) for run in (first, second))
    return made if one == two else replace(made, warning=f"First: {one} Second: {two}")


def _compared_on_outcomes(view: View, first: SystemRun, second: SystemRun | None) -> Document:
    cluster = view.cluster_of(second or first)
    if second is None:
        return compare_conditions(first, view.outcomes, cluster=cluster, over=view.over)
    return compare_system_runs(first, second, view.outcomes, cluster=cluster, over=view.over)


def _check_systems(first: SystemRun, second: SystemRun) -> None:
    if first.head.system != second.head.system:
        raise UsageError(
            f"{first.name} is of the system {first.head.system!r}, "
            f"{second.name} of {second.head.system!r}.",
            why="Their episodes have no outcome in common.",
            hint="Compare two runs of one system.",
        )


def compare_system_runs(
    first: SystemRun,
    second: SystemRun,
    outcomes: Outcomes,
    *,
    cluster: Cluster | None = None,
    over: str = "tasks",
) -> Document:
    """Compare two runs, paired on benchmark, task, variant and condition.

    Repeats of a pair are averaged. Intervals are over tasks, and tests flip signs by task; p-values
    carry Holm's correction over all rows.

    `cluster`: what a record is taken together with; its task, when left out. `over`: what that is
    called. Raises `UsageError` if the runs share nothing to compare.
    """
    clusters = _clusters(second, cluster, _pair)
    rows = _tested(_of_two_runs(first, second, outcomes), clusters)
    if not rows:
        raise UsageError(
            f"{first.name} and {second.name} share no item that both have an outcome of.",
            why="Runs are compared in pairs of the same benchmark, task, variant and condition.",
            hint="Compare runs over the same tasks, or read the two with `tutorsim summary`.",
        )
    same = all(not row.difference.value for row in rows)
    words = "Nothing differs" if same else _beyond(rows)
    chance = chance_words(rows, _told, _measured, between="runs", over=over)
    return _document(
        second,
        rows,
        summary=f"{second.name} beside {first.name}.",
        answer=Answer("What differs beyond chance?", words, chance, "differences"),
        title="Outcomes of both runs",
        lead=f"First: {first.name}, {first.provenance}. Second: {second.name}, "
        f"{second.provenance}.",
    )


def compare_conditions(
    run: SystemRun,
    outcomes: Outcomes,
    *,
    cluster: Cluster | None = None,
    over: str = "tasks",
) -> Document:
    """Compare the conditions of a run, paired on benchmark, task and variant.

    Every condition is compared with the baseline, where the run has one, and else with every
    other. Repeats of a pair are averaged; p-values carry Holm's correction over all rows.

    `cluster`: what a record is taken together with; its task, when left out. `over`: what that is
    called.
    """
    clusters = _clusters(run, cluster, _place)
    rows = _tested(_of_conditions(run, outcomes), clusters)
    chance = chance_words(rows, _told, _measured, over=over)
    return _document(
        run,
        rows,
        summary=f"The conditions of {run.name} against one another.",
        answer=Answer("Which differences are beyond chance?", _beyond(rows), chance, "differences"),
        title="One condition against another",
        lead="Second minus first, over the tasks that both have.",
    )


def _document(
    run: SystemRun, rows: Sequence["_Row"], *, summary: str, answer: Answer, title: str, lead: str
) -> Document:
    data = pl.DataFrame(list(map(_cells, rows)), schema=_SCHEMA, orient="row")
    found = Table("differences", "Differences", _CAPTION, data)
    section = Section("differences", title, lead, tables=(found,))
    return framed(run, summary=summary, answers=(answer,), sections=(section,))


_BASELINE = "baseline"
"""The condition that the others are compared with, in systems that have it."""
NAMED: Final = 3
"""Differences that a sentence names."""

_CAPTION = (
    "Paired on benchmark, task and variant, of two runs on condition too; repeats are averaged. "
    "Intervals at 95 % are over tasks, or over what the system takes together with a task, such as "
    "a dialogue; p by flipping the signs of all that is taken together, corrected by Holm over all "
    "rows."
)
_SCHEMA = {
    **{name: pl.String() for name in ("benchmark", "condition", "outcome")},
    "pairs": pl.Int64(),
    "tasks": pl.Int64(),
    **{
        name: pl.Float64() for name in ("first", "second", "difference", "low", "high", "p", "holm")
    },
}


@dataclass(frozen=True)
class _Row:
    """One outcome on two sides, tested along with others."""

    benchmark: str
    condition: str
    outcome: str
    pairs: int
    first: float
    second: float
    difference: Estimate
    test: PermutationTest | NotEstimable
    p_holm: float | None = None


def _cells(row: _Row) -> tuple[object, ...]:
    found = row.difference
    tested = row.test if isinstance(row.test, PermutationTest) else None
    return (
        *(row.benchmark, row.condition, row.outcome, row.pairs, tested and tested.tasks),
        *(row.first, row.second, found.value, found.low, found.high),
        *(tested and tested.p_value, row.p_holm),
    )


def _beyond(rows: Sequence[_Row]) -> str:
    """The surest of the differences beyond chance, and how many more there are."""
    beyond = sorted(filter(beyond_chance, rows), key=lambda row: row.p_holm or 0)
    more = f", and {len(beyond) - 1} more" if len(beyond) > 1 else ""
    return f"{_told(beyond[0])}{more}" if beyond else "None"


def _told(row: _Row) -> str:
    return difference_words(row.condition, row.difference, _measured(row))


def _measured(row: _Row) -> str:
    return f"in {row.outcome} ({row.benchmark})"


class _Compared(NamedTuple):
    """Values of one outcome on two sides, of one benchmark and one row of the table."""

    benchmark: str
    condition: str
    outcome: str
    one: Mapping[Key, float]
    two: Mapping[Key, float]


def _of_two_runs(first: SystemRun, second: SystemRun, outcomes: Outcomes) -> Iterator[_Compared]:
    """One row per outcome, benchmark and condition that both runs have."""
    for name, outcome in outcomes.items():
        one, two = _values(first, outcome, _pair), _values(second, outcome, _pair)
        cells = by_key(((pair[0], pair[3]), pair) for pair in one if pair in two)
        for (benchmark, condition), shared in cells.items():
            sides = ({pair: values[pair] for pair in shared} for values in (one, two))
            yield _Compared(benchmark, condition, name, *sides)


def _of_conditions(run: SystemRun, outcomes: Outcomes) -> Iterator[_Compared]:
    """One row per outcome, benchmark and two conditions that share a task."""
    conditions = list(dict.fromkeys(record.condition for record in run.episodes))
    benchmarks = list(dict.fromkeys(record.benchmark for record in run.episodes))
    compared = [
        (two, one) if two == _BASELINE else (one, two)
        for one, two in combinations(conditions, 2)
        if _BASELINE in (one, two) or _BASELINE not in conditions
    ]
    for name, outcome in outcomes.items():
        of = {c: _values(run, outcome, _place, condition=c) for c in conditions}
        for benchmark in benchmarks:
            for first, second in compared:
                shared = [p for p in of[first] if p in of[second] and p[0] == benchmark]
                if shared:
                    sides = ({place: of[c][place] for place in shared} for c in (first, second))
                    yield _Compared(benchmark, f"{second} − {first}", name, *sides)


def _tested(compared: Iterable[_Compared], clusters: Mapping[Key, str]) -> list[_Row]:
    """A row for each comparison, p-values corrected over all."""
    return corrected([_row(each, clusters) for each in compared])


def _row(each: _Compared, clusters: Mapping[Key, str]) -> _Row:
    def cluster(pair: Key) -> str:
        return clusters.get(pair, f"{pair[0]}.{pair[1]}")

    test, difference = paired_difference(each.one, each.two, cluster=cluster, seed=SEED)
    assert isinstance(difference, Estimate)
    n = len(each.one)
    one, two = (fsum(side.values()) / n for side in (each.one, each.two))
    return _Row(each.benchmark, each.condition, each.outcome, n, one, two, difference, test)


def _clusters(run: SystemRun, cluster: Cluster | None, key: Callable[[Any], Key]) -> dict[Key, str]:
    return {} if cluster is None else {key(record): cluster(record) for record in run.episodes}


def _place(record: Any) -> Key:
    return (record.benchmark, record.task_id, record.variant)


def _pair(record: Any) -> Key:
    return (*_place(record), record.condition)


def _values(
    run: SystemRun,
    outcome: Callable[[Any], float | None],
    key: Callable[[Any], Key],
    *,
    condition: str | None = None,
) -> dict[Key, float]:
    """Means over repeats, of complete episodes that have the outcome."""
    found = by_key(
        (key(record), value)
        for record in run.episodes
        if condition in (None, record.condition) and record.status == "complete"
        if (value := outcome(record)) is not None
    )
    return {place: fsum(values) / len(values) for place, values in found.items()}


# --- Differences tested together ------------------------------------------------------------------


class Tested(Protocol):
    """What was tested along with others."""

    @property
    def test(self) -> PermutationTest | NotEstimable: ...

    @property
    def p_holm(self) -> float | None: ...


class TestedPair(Tested, Protocol):
    """A difference of two, first minus second."""

    @property
    def first(self) -> str: ...

    @property
    def second(self) -> str: ...


class TestedTasks(Tested, Protocol):
    """What was tested on the tasks of a benchmark."""

    @property
    def benchmark(self) -> str: ...


ShownRow = TypeVar("ShownRow", bound=TestedTasks)


def difference_words(name: str, found: Estimate | NotEstimable, measured: str) -> str:
    """`ranked − simple +0.20 in success (sciq)`."""
    return f"{name} {found.value or 0.0:+.2f} {measured}".lstrip().replace("-", "−")


def p_words(row: Tested) -> Written:
    """A corrected p-value, with the error of the draws where signs were drawn; none of one task."""
    if not isinstance(row.test, PermutationTest) or row.p_holm is None or row.test.tasks == 1:
        return Written(DASH, None)
    figure = p_value(row.p_holm)
    if row.test.exact:
        return figure
    return Written(f"~{figure} ± {row.test.error:.3f}", row.p_holm)


def rows_about_zero(
    differences: Iterable[tuple[str, str, Estimate | NotEstimable]],
) -> Iterator[dict[str, Any]]:
    """Rows of the chart `about_zero`: outcome, contrast and difference, where it is known."""
    for outcome, contrast, one in differences:
        if one.n:
            ends = {"difference": one.value, "lower": one.low, "upper": one.high}
            yield {"outcome": outcome, "contrast": contrast, **ends}


def contrast_headline(found: Sequence[Tested]) -> str:
    """Whether any of the differences tested together is beyond chance, in a few words."""
    beyond, tests = sum(map(beyond_chance, found)), _tests(found)
    return f"Yes, in {beyond} of {counted(len(tests), 'contrast')}" if beyond else not_shown(found)


def not_shown(found: Sequence[Tested]) -> str:
    """That no difference is beyond chance; or that it could not have been, on so few tasks."""
    tests = _tests(found)
    few = not tests or max(test.tasks for test in tests) < fewest_tasks(len(tests))
    return "Not known" if few else "Not shown"


def beyond_chance(row: Tested) -> bool:
    """Whether a difference is beyond chance among all that were tested with it."""
    return row.p_holm is not None and row.p_holm < ALPHA


def _tests(found: Sequence[Tested]) -> list[PermutationTest]:
    return [row.test for row in found if isinstance(row.test, PermutationTest)]


def leads(found: Sequence[TestedPair], best: Collection[str], others: Collection[str]) -> bool:
    """Whether each of the best is better than each of the others, all beyond chance."""
    signs = {}
    for row in filter(beyond_chance, found):
        assert isinstance(row.test, PermutationTest)
        signs[row.first, row.second] = row.test.difference > 0
        signs[row.second, row.first] = row.test.difference < 0
    return all(signs.get(pair, False) for pair in product(best, others))


def chance_words(
    found: Sequence[ShownRow],
    told: Callable[[ShownRow], str],
    measured: Callable[[ShownRow], str],
    *,
    between: str = "conditions",
    over: str = "tasks",
    largest: float = inf,
    shown: str = "",
) -> str:
    """Which of the differences tested together are beyond chance over tasks.

    `measured`: what was measured of which tasks; what so many tasks would show is said of the
    first. `largest`: the greatest difference that there can be. `shown`: a sentence on how many
    tasks would show a difference, said where these cannot.
    """
    tested = [(row, row.test) for row in found if isinstance(row.test, PermutationTest)]
    if not tested:
        return f"No two {between} share enough pairs to be compared."
    number, tasks = len(tested), max(test.tasks for _, test in tested)
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
    beyond = [row for row, _ in tested if beyond_chance(row)]
    if beyond:
        beyond.sort(key=lambda row: row.p_holm or 0)
        named = [f"{told(row)}, p = {p_value(row.p_holm or 0)}" for row in beyond[:NAMED]]
        return f"Beyond chance over {over}: {and_more(named, len(beyond))} {how}"
    least = min(row.p_holm for row, _ in tested if row.p_holm is not None)
    return (
        f"No difference between {between} is beyond chance over {over}, which does not show that "
        f"there is none. {how} The least p is {p_value(least)}."
        f"{_power(tested, measured, over, largest)}"
    )


Pairs = Sequence[tuple[ShownRow, PermutationTest]]


def _power(
    tested: Pairs[ShownRow], measured: Callable[[ShownRow], str], over: str, largest: float
) -> str:
    """The least difference that so many tasks would have shown, of the contrast that shows most."""
    what = measured(tested[0][0])
    same = [detectable_by(test, len(tested)) for row, test in tested if measured(row) == what]
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


def _tasks_words(tested: Pairs[ShownRow], over: str) -> str:
    """`20 tasks`, or `2 tasks`, `1 or 2 tasks`, `2 to 20 tasks of each benchmark`."""
    of: dict[str, int] = {}
    for row, test in tested:
        of[row.benchmark] = max(of.get(row.benchmark, 0), test.tasks)
    most = counted(max(of.values()), over.removesuffix("s"))
    if len(of) == 1 or not all(of):
        return most
    least, largest = min(of.values()), max(of.values())
    between = "or" if largest == least + 1 else "to"
    return f"{'' if least == largest else f'{least:,} {between} '}{most} of each benchmark"


def and_more(named: Sequence[str], whole: int) -> str:
    """What is named, a sentence each, and how many more there are."""
    more = f" And {whole - len(named)} more." if whole > len(named) else ""
    return "".join(f"{one}. " for one in named).rstrip() + more
