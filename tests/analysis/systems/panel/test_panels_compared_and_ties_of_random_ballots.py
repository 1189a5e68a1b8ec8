"""Two panels of one made-up run, counted by hand."""

import json
from collections import Counter
from dataclasses import replace
from fractions import Fraction
from itertools import permutations, product

import polars as pl
import pytest

from tests.analysis.made import report_of
from tests.analysis.panel_runs import panel_episode, panel_source, panel_turn
from tutorsim.analysis.ballots.names_and_properties_of_ballot_formats import BallotForm
from tutorsim.analysis.ballots.recount_source import of_panel
from tutorsim.analysis.counting.turns_winner_step_and_first_to_final_shift import turn_table
from tutorsim.analysis.pages.document import Section
from tutorsim.analysis.runs.exported_tables import TABLES
from tutorsim.analysis.systems.panel import (
    panels_compared_and_ties_of_random_ballots as ties_under_random_ballots,
)
from tutorsim.analysis.systems.panel.contrasts_of_conditions_or_two_runs import compare_runs
from tutorsim.analysis.systems.panel.panels_compared_and_ties_of_random_ballots import (
    OnMeasure,
    PanelsView,
    leaders_by_chance,
    panel_contrasts_table,
    uniform_chance,
)
from tutorsim.ballot_reading_and_decisions import decide
from tutorsim.errors import UsageError
from tutorsim.vocabularies import PROTOCOLS, TOP_SCORE

THREE = ("scaffolding", "misconception", "motivation")
COPIES = ("motivation-2", "motivation-1", "motivation-3")
PANELS = {
    "three": {"roles": THREE, "fallback_order": THREE},
    "copies": {"roles": ("motivation-1", "motivation-2", "motivation-3"), "fallback_order": COPIES,
               "placebo": "copied", "copied": "motivation"},
}  # fmt: skip


@pytest.fixture
def source():
    """Three tasks on each panel under single choices, and one by the single tutor."""

    def taught(panel, task, choices, score):
        made = PANELS[panel]
        order = made["fallback_order"]
        cast = dict(zip(order, (order[int(c)] for c in choices), strict=True))
        turn = panel_turn("simple", cast, roles=made["roles"], order=order)
        return panel_episode(turn, task=task, panel=panel, scores=(0.1, score))

    return panel_source(
        taught("three", "t1", "000", 0.9),
        taught("three", "t2", "011", 0.2),
        taught("three", "t3", "012", 0.2),  # all differ: a tie, to the first in the order
        taught("copies", "t1", "012", 0.3),
        taught("copies", "t2", "120", 0.2),
        taught("copies", "t3", "222", 0.2),
        panel_episode(task="t1"),
        panels=PANELS,
        roles=(*THREE, *COPIES),
        fallback_order=(*THREE, *COPIES),
    )


def test_each_panel_has_its_own_rates_beside_those_of_random_ballots(source):
    three, copies = PanelsView(source).votes
    assert (three.panel, three.size, copies.panel, copies.size) == ("three", 3, "copies", 3)
    tied = [(r.value, r.n) for r in (three.share("tied"), copies.share("tied"))]  # type: ignore[union-attr]
    assert tied == [(pytest.approx(1 / 3), 3), (pytest.approx(2 / 3), 3)]
    assert three.chance.tied == pytest.approx(6 / 27)  # type: ignore[union-attr]


def test_ties_go_to_the_first_in_the_panels_own_order(source):
    table = turn_table(source)
    won = table.names(table.winner).to_list()
    assert won == [THREE[0], THREE[1], THREE[0], COPIES[0], COPIES[0], COPIES[2]]
    own = turn_table(of_panel(source, "copies"))
    assert own.order == COPIES
    assert own.names(own.winner).to_list() == won[3:]


def test_outcomes_are_per_panel_and_leave_the_single_tutor_out(source):
    three, copies = PanelsView(source).outcomes
    assert [row.panel for row in (three, copies)] == ["three", "copies"]
    assert [row.success.value for row in (three, copies)] == pytest.approx([1 / 3, 0])  # type: ignore[union-attr]
    assert three.score.value == pytest.approx(1.3 / 3)  # type: ignore[union-attr]
    first = source.episodes[0]
    many = tuple(
        first.model_copy(update={"task_id": f"t{i}", "episode_id": f"e{i}"}) for i in range(20)
    )
    [alike] = PanelsView(replace(source, episodes=many)).outcomes
    score = alike.score
    assert score.interval.low < score.value < score.interval.high  # type: ignore[union-attr]


def test_panels_are_contrasted_with_the_first_over_shared_tasks(source):
    found = {row.outcome: row for row in PanelsView(source).contrasts}
    assert {(row.first, row.second, row.condition) for row in found.values()} == {
        ("three", "copies", "simple")
    }
    # Tied: 1, 1, 0 against 0, 0, 1. Two of the eight sign patterns of 1, 1, -1 are below 1/3.
    assert found["tied"].difference.value == pytest.approx(1 / 3)
    test = found["tied"].test
    assert (test.difference, test.p_value, test.tasks) == (pytest.approx(1 / 3), 1.0, 3)
    assert found["success"].difference.value == pytest.approx(-1 / 3)  # type: ignore[union-attr]
    assert all(row.p_holm == 1.0 for row in found.values())


def test_a_single_pair_is_counted(source):
    one = replace(source, episodes=tuple(e for e in source.episodes if e.task_id == "t1"))
    made = panel_contrasts_table(OnMeasure(PanelsView(one), "success"))
    [row] = made.data.iter_rows(named=True)
    assert row["pairs"] == 1


def test_tables_name_the_panel_only_where_there_are_several(source):
    for table in TABLES.values():
        frame = table.frame(source.episodes, source.run)
        assert frame.columns[5:7] == ["condition", "panel"]
        panels = frame.group_by("condition").agg(pl.col("panel").n_unique())
        assert dict(panels.iter_rows()).get("simple") == (2 if frame.height else None)
        plain = panel_source(panel_episode())
        assert "panel" not in table.frame(plain.episodes, plain.run).columns


def test_a_panel_is_a_source_of_its_own_with_the_single_tutor_beside_it(source):
    own = of_panel(source, "three")
    assert [e.panel for e in own.episodes] == ["three"] * 3 + [None]
    assert (own.run.panel.roles, own.fallback_order, own.run.panels) == (THREE, THREE, {})
    with pytest.raises(UsageError, match="Its panels are three, copies"):
        of_panel(source, "four")
    with pytest.raises(UsageError, match="It compares no panels"):
        of_panel(own, "three")


def test_two_runs_are_paired_on_the_panel_too(source):
    found = compare_runs(source, source)
    assert found.pairs == 7
    values = {row.condition for row in found.outcomes}
    assert values == {"simple.three", "simple.copies", "baseline"}


@pytest.mark.costly
def test_the_report_has_a_section_of_panels_where_a_run_compares_some(source):
    [section] = [s for s in report_of(source).sections if s.id == "panels"]
    assert isinstance(section, Section)
    names = [table.name for table in section.tables]
    assert names[:4] == ["panels", "panel-tied", "panel-fallback", "panel-flip"]
    assert names[4:] == [
        "panel-outcomes",
        *(f"panel-contrasts-{m}" for m in ("success", "final_score", "tied", "fallback", "flip")),
        "panel-certain",
    ]
    [certain] = [table for table in section.tables if table.name == "panel-certain"]
    assert certain.data["under simple"].to_list() == ["3 of 3", "3 of 3"]
    assert not PanelsView(panel_source(panel_episode()))


def test_who_sits_where_and_what_differs_is_said_in_words(source):
    view = PanelsView(source)
    [roster] = [table for table in view.tables() if table.name == "panels"]
    assert roster.data.rows() == [
        ("three", "scaffolding › misconception › motivation", 3),
        ("copies", "motivation, 3 times", 3),
    ]
    assert view.words() == (
        "3 tasks cannot show a difference between panels. Signs flipped by task give no p below "
        "0.25. For 5 contrasts at least 8 tasks are needed."
    )
    chances = [row["chance"] for row in json.loads(json.dumps(view.to_json()))["votes"]]
    assert [chance["size"] for chance in chances] == [3, 3]


# --- Ties, fallback and flips of random ballots, held to plain enumeration -----------------------


BUDGET = 3


def ballots(protocol, m):
    """Every ballot that a protocol allows, as masses."""
    if protocol == "ranked":
        return list(permutations(range(m)))
    if protocol == "cumulative":
        return [split for split in product(range(BUDGET + 1), repeat=m) if sum(split) == BUDGET]
    if protocol == "score":
        return list(product(range(TOP_SCORE + 1), repeat=m))
    sets = product((0, 1), repeat=m)
    return [s for s in sets if protocol == "approval" or sum(s) == 1]


def totals(protocol, n, m):
    """How often each vector of totals comes about."""
    found = Counter({(0,) * m: 1})
    for _ in range(n):
        more = Counter[tuple[int, ...]]()
        for before, ways in found.items():
            for ballot in ballots(protocol, m):
                more[tuple(a + b for a, b in zip(before, ballot, strict=True))] += ways
        found = more
    return found


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize(("n", "m"), [(3, 3), (4, 2), (4, 4)])
def test_leaders_are_those_of_every_vote_that_can_be_cast(protocol, n, m):
    counts = totals(protocol, n, m)
    led = Counter[int]()
    for vector, ways in counts.items():
        led[vector.count(max(vector))] += ways
    found = leaders_by_chance(protocol, n, m, budget=BUDGET)
    assert found.exact
    assert found.shares == pytest.approx([led[s] / counts.total() for s in range(1, m + 1)])


def winners(protocol, size, *, tie_round):
    """Chance of each first leader and each winner, and of a fallback, by the deciding rule."""
    order = tuple("abcdefgh"[:size])
    led, won, fallback = Counter[str](), Counter[str](), Fraction(0)
    counts = totals(protocol, size, size)
    for vector, ways in counts.items():
        share = Fraction(ways, counts.total())
        first = decide([dict(zip(order, vector, strict=True))], order, order=order)
        led[first.winner] += share  # type: ignore[assignment]
        if not (tie_round and first.tied_set):
            won[first.winner] += share  # type: ignore[assignment]
            fallback += share * (first.decided_by == "fallback")
            continue
        again = totals(protocol, size, len(first.tied_set))
        for tied, tied_ways in again.items():
            part = share * Fraction(tied_ways, again.total())
            masses = dict(zip(first.tied_set, tied, strict=True))
            last = decide(
                [dict(zip(order, vector, strict=True))], order, order=order, tie_round=[masses]
            )
            won[last.winner] += part  # type: ignore[assignment]
            fallback += part * (last.decided_by == "fallback")
    return led, won, fallback


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("tie_round", [True, False])
def test_flip_and_fallback_are_those_of_the_deciding_rule(protocol, tie_round):
    led, won, fallback = winners(protocol, 3, tie_round=tie_round)
    found = uniform_chance(protocol, 3, budget=BUDGET, tie_round=tie_round)
    assert found.fallback == pytest.approx(float(fallback))
    assert found.flip == pytest.approx(float(1 - sum(led[c] * won[c] for c in led)))
    assert tie_round or found.tied == pytest.approx(found.fallback)


def test_by_hand_for_three_single_choices():
    # All three differ in 6 of 27 votes; then the round among three ties again in 6 of 27.
    found = uniform_chance("simple", 3)
    assert (found.tied, found.fallback) == pytest.approx((6 / 27, (6 / 27) ** 2))


@pytest.mark.parametrize("protocol", ["ranked", "cumulative"])
def test_drawn_votes_come_near_the_counted_ones(protocol, monkeypatch):
    counted = leaders_by_chance(protocol, 4, 3)
    monkeypatch.setattr(ties_under_random_ballots, "_CELLS", 0)
    drawn = leaders_by_chance.__wrapped__(protocol, 4, 3)
    assert (counted.exact, drawn.exact) == (True, False)
    assert drawn.shares == pytest.approx(counted.shares, abs=0.01)


def test_random_scores_are_any_on_the_scale():
    counts = totals("score", 2, 3)
    alone = sum(ways for vector, ways in counts.items() if vector.count(max(vector)) == 1)
    found = leaders_by_chance("score", 2, 3)
    assert not found.exact
    assert found.shares[0] == pytest.approx(alone / counts.total(), abs=0.01)


def test_ballots_of_a_format_that_is_added_are_all_drawn_alike(monkeypatch):
    """A veto: one of three gets nothing. By hand: of 9 pairs 3 leave two level, 6 leave one."""
    veto = BallotForm(
        lambda masses, _: (masses.sum(axis=1) == masses.shape[1] - 1) & (masses <= 1).all(axis=1),
        lambda masses, _: None,
        lambda m, budget, top: 1,
    )
    monkeypatch.setitem(ties_under_random_ballots.FORMATS, "veto", veto)
    counted = leaders_by_chance("veto", 2, 3)
    assert counted.shares == pytest.approx((6 / 9, 3 / 9, 0))
    monkeypatch.setattr(ties_under_random_ballots, "_CELLS", 0)
    drawn = leaders_by_chance.__wrapped__("veto", 2, 3)
    assert drawn.shares == pytest.approx(counted.shares, abs=0.01)


@pytest.mark.parametrize("protocol", ["simple", "approval"])
@pytest.mark.parametrize("size", range(3, 9))
def test_choices_and_sets_are_counted_exactly_for_every_size(protocol, size):
    found = uniform_chance(protocol, size)
    assert found.exact
    assert sum(leaders_by_chance(protocol, size, size).shares) == pytest.approx(1)
    assert 0 < found.fallback < found.tied < found.flip < 1
