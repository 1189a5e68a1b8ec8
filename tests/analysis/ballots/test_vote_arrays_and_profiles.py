"""Folding over a small axis is reducing over it, and the width of numbers changes no result."""

from itertools import product
from random import Random

import numpy as np
import polars as pl
import pytest

from tests.reference.turns import read_turns
from tutorsim.analysis.ballots import table_to_arrays
from tutorsim.analysis.ballots import vote_arrays_and_profiles as arrays
from tutorsim.analysis.ballots.reading_options_and_column_words import Hints
from tutorsim.analysis.ballots.recount_source import open_frame
from tutorsim.analysis.ballots.table_to_arrays import read_votes
from tutorsim.analysis.ballots.vote_arrays_and_profiles import (
    RICH,
    Profile,
    Rounds,
    TurnKey,
    count,
    first_of,
    fold,
    rich_rules,
    set_columns,
    sorted_rows,
    standing_order,
    summed,
)
from tutorsim.analysis.counting import turns_winner_step_and_first_to_final_shift
from tutorsim.analysis.counting.winners_as_logged_and_with_votes_changed import leaders_of
from tutorsim.analysis.recount import recount
from tutorsim.analysis.systems.panel.self_support_labels_pivotality_margins import (
    effective_votes,
    label_positions,
    margins,
    pivotality,
    self_support,
)
from tutorsim.analysis.systems.panel.winning_roles_ties_ballots_shift_flip_chance import (
    chance_baselines,
    diagnostics,
    winning_roles,
)


@pytest.mark.parametrize("shape", [(3, 4, 2), (5, 1, 1), (0, 3, 2), (2, 0, 3), (2, 20, 3)])
@pytest.mark.parametrize("axis", [1, 2])
def test_a_fold_is_the_reduction(shape, axis):
    numbers = np.random.default_rng(1).integers(-9, 9, shape)
    truths = numbers > 0
    assert (summed(numbers, axis) == numbers.sum(axis=axis)).all()
    assert (count(truths, axis) == truths.sum(axis=axis)).all()
    assert (fold(np.logical_or, truths, axis) == truths.any(axis=axis)).all()
    assert (fold(np.logical_and, truths, axis) == truths.all(axis=axis)).all()
    if shape[axis]:
        assert (fold(np.maximum, numbers, axis) == numbers.max(axis=axis)).all()


@pytest.mark.parametrize("m", [1, 2, 3, 8, 9, 20, 40])
def test_sets_and_rows_of_any_length(m):
    numbers = np.random.default_rng(m).integers(-3, 3, (60, m))
    truths = numbers > 1
    assert (first_of(truths) == truths.argmax(axis=1)).all()
    assert (sorted_rows(numbers) == np.sort(numbers, axis=1)).all()
    columns = [column.tolist() for column in set_columns(truths)]
    sets, codes = {tuple(row) for row in truths.tolist()}, set(zip(*columns, strict=True))
    assert len(sets) == len(codes)
    assert all(number >= 0 for column in columns for number in column)


def test_a_sum_of_narrow_numbers_is_wider():
    largest = np.full((2, 3), 127, dtype=np.int8)
    assert summed(largest, 1).tolist() == [381, 381]
    assert summed(np.full((2, 20), 127, dtype=np.int8), 1).tolist() == [2540, 2540]


# --- Rich ballots ----------------------------------------------------------------------------


def test_a_rich_vote_that_fits_several_rules_counts_as_one_that_fits_another_vote_alone():
    """As plurality or approval in the first, as approval alone in the second."""
    names = ["episode_id", "turn", "stage", "voter", "protocol", "candidate", "mass", *RICH]
    turns = [((1, 0), (True, False)), ((1, 1), (True, True)), ((20, 5), (True, False))]
    rows = [
        ("e", turn, "vote_final", "v", "rich", name, mass, points, rank, approved)
        for turn, (masses, approvals) in enumerate(turns)
        for name, points, rank, mass, approved in zip(
            "ab", (20, 5), (1, 2), masses, approvals, strict=True
        )
    ]
    table = pl.DataFrame(rows, schema=names, orient="row")
    assert list(rich_rules(table).values()) == ["approval", "approval", "cumulative"]


# --- Profiles: any identifiers, any candidates, each distinct one once ---------------------------


def long_table(*rows):
    """Rows of episode, turn, stage, protocol, voter, candidate, mass."""
    names = ["episode_id", "turn", "stage", "protocol", "voter", "candidate", "mass"]
    return pl.DataFrame(list(rows), schema=names, orient="row")


def one_ballot(episode, voter, protocol="simple", stage="final", **mass):
    return [(episode, 1, stage, protocol, voter, c, x) for c, x in mass.items()]


def test_turns_that_voted_alike_share_one_profile_whatever_the_names():
    table = long_table(
        *one_ballot("e 1", "Anna", x=1, y=0),
        *one_ballot("e 1", "Ben", x=0, y=1),
        *one_ballot("💥", "Chris", p=1, q=0),
        *one_ballot("💥", "Dora", p=0, q=1),
    )
    turns = read_turns(table)
    first, second = turns.final.values()
    assert first.profile is second.profile
    assert first.profile == Profile("simple", 2, ((1, 0), (0, 1)))
    assert (first.candidates, second.candidates) == (("x", "y"), ("p", "q"))
    assert (first.voters, second.voters) == (("Anna", "Ben"), ("Chris", "Dora"))


def test_candidates_stand_in_the_fallback_order_and_strangers_behind_it():
    table = long_table(*one_ballot("e", "v", "cumulative", z=3, b=2, a=20))
    assert standing_order(table, ["a", "b"]) == ("a", "b", "z")
    turn = read_turns(table, fallback_order=["a", "b"]).final[TurnKey("e", 1, "cumulative")]
    assert turn.candidates == ("a", "b", "z")
    assert turn.profile.ballots == ((20, 2, 3),)


def test_rows_in_any_order_give_the_same_profiles():
    table = long_table(*one_ballot("e", "v", x=1, y=0), *one_ballot("e", "w", x=None, y=None))
    shuffled = table.sample(fraction=1.0, shuffle=True, seed=3)
    plain = read_turns(table, fallback_order=["x", "y"])
    assert plain.final == read_turns(shuffled, fallback_order=["x", "y"]).final


def test_an_abstention_is_none_and_a_ballot_of_zeros_is_a_ballot():
    table = long_table(
        *one_ballot("e", "v", "approval", x=None, y=None),
        *one_ballot("e", "w", "approval", x=0, y=0),
    )
    [turn] = read_turns(table).final.values()
    assert turn.profile.ballots == (None, (0, 0))
    assert turn.cast() == [{"x": 0, "y": 0}]


def test_stages_are_kept_apart():
    table = long_table(
        *one_ballot("e", "v", stage="vote_initial", x=0, y=1),
        *one_ballot("e", "v", stage="vote_final", x=1, y=0),
        *one_ballot("e", "v", stage="tie", x=1),
    )
    turns = read_turns(table)
    key = TurnKey("e", 1, "simple")
    assert turns.initial[key].profile.ballots == ((0, 1),)
    assert turns.final[key].profile.ballots == ((1, 0),)
    assert turns.tie[key].candidates == ("x",)


def test_a_table_without_rows_has_no_turns():
    empty = long_table(*one_ballot("e", "v", x=1)).clear()
    assert dict(read_turns(empty).final) == {}


# --- Widths of numbers ---------------------------------------------------------------------------


def test_twice_the_points_of_a_long_ranking_have_room():
    names = [f"c{i:02}" for i in range(70)]
    points = {"a": range(70), "b": [None, None, *range(2, 70)]}
    rows = [
        ("e", 1, "final", "ranked", voter, name, mass)
        for voter, masses in points.items()
        for name, mass in zip(names, masses, strict=True)
    ]
    [final] = read_votes(long_table(*rows)).final
    assert final.masses[0].tolist() == [[2 * i for i in range(70)], [1, 1, *range(4, 140, 2)]]


def test_means_of_many_voters_are_compared_as_they_are():
    masses = np.array([[[60, 100]] * 20], dtype=np.int8)  # 100 × 20 × 20 is above 16 bits
    rounds = Rounds(
        turn=np.zeros(1, dtype=np.int64),
        voters=np.arange(20, dtype=np.int8)[None],
        candidates=np.array([[0, 1]], dtype=np.int8),
        masses=masses,
        cast=np.ones((1, 20), dtype=np.bool_),
        whole=np.ones(1, dtype=np.bool_),
        by_mean=np.ones(1, dtype=np.bool_),
    )
    assert leaders_of(rounds).tolist() == [[False, True]]


def asked_of(source):
    """What metrics of votes say, and a recount."""
    return repr(
        [
            diagnostics(source),
            winning_roles(source),
            chance_baselines(source),
            pivotality(source).rows(),
            margins(source).rows(),
            effective_votes(source),
            self_support(source),
            label_positions(source),
            recount(source, targets=("simple", "ranked", "copeland"), exempt=(0, 1)),
        ]
    )


def extreme_turns(protocol, largest, left_out):
    """Turns of three voters who give all to one candidate, or share it, or say nothing of one."""
    random = Random(largest)
    for turn, stage in product(range(24), ("initial", "final")):
        for voter in "abc":
            some = random.choice([0, largest // 2, largest])
            cells = random.sample([largest - some, some, 0], 3)
            if left_out and random.random() < 0.5:
                cells[cells.index(min(cells))] = None
            for place, (candidate, mass) in enumerate(zip("abc", cells, strict=True)):
                yield f"e{turn}", 1, stage, protocol, voter, candidate, mass, f"L{place}"


@pytest.mark.parametrize("largest", [63, 64, 127, 16_383, 16_384, 32_767, 10**9])
@pytest.mark.parametrize(
    ("protocol", "left_out"), [("cumulative", False), ("score", False), ("score", True)]
)
def test_the_width_of_numbers_changes_no_result(largest, protocol, left_out, monkeypatch):
    rows = list(extreme_turns(protocol, largest, left_out))
    names = ["episode_id", "turn", "stage", "protocol", "voter", "candidate", "mass", "label"]
    table = pl.DataFrame(rows, schema=names, orient="row")
    scale = (0.0, float(largest)) if protocol == "score" else None
    hints = Hints(fallback_order=tuple("abc"), scale=scale)
    narrow = open_frame(table, hints=hints)
    assert narrow.votes.final[0].masses.dtype.itemsize < 8
    found = asked_of(narrow)
    for module in (arrays, table_to_arrays, turns_winner_step_and_first_to_final_shift):
        monkeypatch.setattr(module, "fitting", lambda _: np.dtype(np.int64))
    wide = open_frame(table, hints=hints)
    assert {part.masses.dtype for part in wide.votes.final} == {np.dtype(np.int64)}
    assert found == asked_of(wide)
