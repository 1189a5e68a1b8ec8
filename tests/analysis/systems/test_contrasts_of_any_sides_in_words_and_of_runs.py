"""Comparing two runs of one system."""

from dataclasses import dataclass, replace
from operator import itemgetter

import pytest

from tutorsim.analysis.systems.contrasts_of_any_sides_in_words_and_of_runs import (
    compared_on_outcomes,
    contrasts_between,
    named_differences,
)
from tutorsim.analysis.systems.system_view_opened_run_and_cost import SystemRun, View
from tutorsim.errors import UsageError
from tutorsim.records import Provenance, RunRecord


@dataclass(frozen=True)
class Line:
    """What the comparison reads of a record."""

    task_id: str
    value: float
    benchmark: str = "b"
    variant: str = "none"
    condition: str = "c"
    status: str = "complete"

    @property
    def episode_id(self):
        return f"{self.benchmark}.{self.task_id}.{self.variant}.{self.condition}"


HEAD = RunRecord(provenance=Provenance(kind="stand-in", name="x"))


def run(values):
    lines = tuple(Line(str(i), value) for i, value in enumerate(values))
    return SystemRun("run", HEAD, lines)


def compared(first, second=None, **view):
    outcomes = {"value": lambda record: record.value}
    return compared_on_outcomes(View(tables={}, outcomes=outcomes, **view), first, second)


def row(**view):
    found = compared(run([0.0] * 12), run([1.0, 0.0] * 3 + [1.0] * 6), **view)
    [table] = found.sections[0].tables
    return next(table.data.iter_rows(named=True))


def test_units_that_both_sides_have_are_compared_second_minus_first():
    """Task a has two pairs, which flip together: 2 of 2³ changes of signs are as far as 5 of 4."""
    first = {("x", "a"): [0], ("y", "a"): [0], ("x", "b"): [0, 2], ("x", "c"): [0], ("x", "d"): [9]}
    second = {("x", "a"): [1], ("y", "a"): [2], ("x", "b"): [2], ("x", "c"): [1]}
    [found] = contrasts_between(
        {"one": first, "two": second}, [("one", "two")], cluster=itemgetter(1), measured="points"
    )
    assert (found.name, found.pairs, found.tasks, found.differing) == ("two − one", 4, 3, 4)
    assert (found.test.difference, found.difference.value) == (1.25, 1.25)
    assert found.test.p_value == 0.25
    assert (found.first_mean, found.second_mean) == (1 / 4, 6 / 4)


def test_what_is_taken_together_is_swapped_together():
    alone = row()
    halves = row(clusters=lambda rs: {r.episode_id: str(int(r.task_id) // 2) for r in rs})
    assert alone["difference"] == halves["difference"] == 9 / 12
    # Nine of twelve pairs differ, all one way: 2 · 2³ of 2¹² swaps are as far apart.
    assert alone["p"] == 16 / 4096
    # Six pairs of pairs that differ by 1, 1, 1, 2, 2 and 2, all one way: 2 of 64 swaps.
    assert halves["p"] == 2 / 64
    assert halves["low"] is not None


def test_variants_of_one_task_are_swapped_together():
    """Of eight pairs that all differ one way two each are of one task: 2 of 2⁴ swaps."""

    def taught(value):
        made = run([value] * 4)
        lines = [replace(r, variant=v) for r in made.episodes for v in ("none", "other")]
        return replace(made, episodes=tuple(lines))

    [table] = compared(taught(0.0), taught(1.0)).sections[0].tables
    assert table.data.select("pairs", "tasks", "p").row(0) == (8, 4, 2 / 16)


def test_runs_that_share_no_item_are_refused():
    first = run([0.0, 1.0])
    other = SystemRun("other", first.head, tuple(replace(r, task_id="x") for r in first.episodes))
    with pytest.raises(UsageError, match="run and other share no item"):
        compared(first, other)


def test_conditions_of_one_run_are_paired_on_their_tasks():
    measured = {"baseline": [0.0] * 8, "good": [1.0] * 8, "half": [1.0, 0.0] * 4}
    lines = [
        Line(str(i), value, condition=condition)
        for condition, values in measured.items()
        for i, value in enumerate(values)
    ]
    found = compared(SystemRun("run", HEAD, tuple(lines)))
    [table] = found.sections[0].tables
    good, half = table.data.iter_rows(named=True)
    assert (good["condition"], half["condition"]) == ("good − baseline", "half − baseline")
    assert (good["pairs"], good["difference"], half["difference"]) == (8, 1.0, 0.5)
    # All eight pairs differ one way: 2 of 2⁸ sign changes; four of eight: 2 of 2⁴.
    assert (good["p"], half["p"]) == (2 / 256, 2 / 16)
    assert (good["holm"], half["holm"]) == (4 / 256, 2 / 16)
    [answer] = found.answers
    assert answer.headline == "good − baseline +1.00 in value (b)"


def test_conditions_are_paired_within_a_benchmark():
    """The same task ids in two benchmarks: +1 in each of two tasks of one, nothing in the other."""
    measured = (("one", "a", 0.0), ("one", "b", 1.0), ("two", "a", 0.5), ("two", "b", 0.5))
    lines = [
        Line(task, value, benchmark=benchmark, condition=condition)
        for benchmark, condition, value in measured
        for task in ("1", "2")
    ]
    found = compared(SystemRun("run", HEAD, tuple(lines)))
    [table] = found.sections[0].tables
    rows = table.data.select("benchmark", "pairs", "difference").rows()
    assert rows == [("one", 2, 1.0), ("two", 2, 0.0)]


def test_without_a_baseline_every_two_conditions_are_compared():
    lines = [Line("1", 1.0, condition=name) for name in ("a", "b", "c")]
    found = compared(SystemRun("run", HEAD, tuple(lines)))
    [table] = found.sections[0].tables
    assert table.data["condition"].to_list() == ["b − a", "c − a", "c − b"]
    assert found.answers[0].detail == (
        "One task under each of the conditions compared: nothing here speaks of other tasks, and "
        "there is no interval and no test."
    )


def test_the_three_surest_differences_are_named_and_the_others_counted():
    rows = [(0.04, "d"), (0.001, "a"), (0.05, "e"), (0.02, "b"), (0.03, "c")]
    said = named_differences(rows, itemgetter(0), itemgetter(1))
    assert [said.find(f"{name}, p = ") >= 0 for name in "abcde"] == [True] * 3 + [False] * 2
    assert said.endswith(" And 2 more.")
