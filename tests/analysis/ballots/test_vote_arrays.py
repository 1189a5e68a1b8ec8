"""Folding over a small axis is reducing over it."""

import numpy as np
import polars as pl
import pytest

from tests.reference.turns import read_turns
from tutorsim.analysis.ballots.vote_arrays import (
    Profile,
    TurnKey,
    count,
    fold,
    standing_order,
    summed,
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
