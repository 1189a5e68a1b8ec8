"""Turns decided as arrays, held to one turn at a time: `tests.reference.cases`."""

from random import Random

import numpy as np
import pytest

from tests.reference.cases import Case, decided
from tests.reference.drawn import drawn_turns
from tests.reference.turns import read_turns
from tutorsim.analysis.ballots.table_to_arrays import read_votes
from tutorsim.analysis.ballots.vote_arrays_and_profiles import first_of, in_order
from tutorsim.analysis.counting.winners_as_logged_and_with_votes_changed import (
    decide_turns,
    largest,
)

ORDER = ("bob", "ann", "cyd")


def compare(frame, order, change):
    """Who stands and wins, as arrays and by the reference; `change` gives both forms of it."""
    votes = in_order(read_votes(frame), order)
    turns = read_turns(frame, fallback_order=order)
    keys = votes.turns.rows()
    compared = 0
    for final in votes.final:
        group = decide_turns(final, votes.tie)
        ended, plain = change(group, votes)
        for i, turn in enumerate(final.turn.tolist()):
            key = next(key for key in turns.final if tuple(key) == keys[turn])
            case = Case(turns.final[key], None, turns.tie.get(key))
            expected = decided(case, order=order, change=plain)
            names = [votes.order[c] for c in final.candidates[i].tolist()]
            stands = tuple(n for n, is_in in zip(names, ended.standing[i], strict=True) if is_in)
            assert stands == expected.standing
            assert names[int(ended.winner[i])] == expected.winner
            compared += 1
    assert compared == len(turns.final) > 0


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("order", [ORDER, ORDER[::-1]])
def test_turns_end_as_they_do_one_by_one(seed, order):
    compare(drawn_turns(Random(seed), 30), order, lambda group, _: (group, None))


@pytest.mark.parametrize("seat", [0, 2])
def test_turns_without_a_voter_end_as_they_do_one_by_one(seat):
    def change(group, votes):
        gone = votes.voters[group.final.voters[0, seat]]
        return group.without(seat), lambda cast: [pair for pair in cast if pair[0] != gone]

    compare(drawn_turns(Random(7), 40), ORDER, change)


def test_turns_without_own_votes_end_as_they_do_one_by_one():
    def change(group, votes):
        names = np.array(votes.voters)[group.final.voters]
        same = names[:, :, None] == np.array(votes.order)[group.final.candidates][:, None, :]
        return group.without_own(same), lambda cast: [
            (who, {c: x for c, x in masses.items() if c != who}) for who, masses in cast
        ]

    compare(drawn_turns(Random(8), 40), ORDER, change)


def test_turns_with_weighted_votes_end_as_they_do_one_by_one():
    weights = {"ann": 3, "bob": 0, "cyd": 2}

    def change(group, votes):
        of = np.array([weights[name] for name in votes.voters])
        return group.weighted(of[group.final.voters]), lambda cast: [
            (who, {c: x * weights[who] for c, x in masses.items()}) for who, masses in cast
        ]

    compare(drawn_turns(Random(9), 40), ORDER, change)


def test_the_largest_may_be_looked_for_among_some_only():
    totals = np.array([[3, 3, 1], [0, 2, 2]])
    assert largest(totals).tolist() == [[True, True, False], [False, True, True]]
    among = np.array([[False, True, True], [True, False, False]])
    assert largest(totals, among).tolist() == [[False, True, False], [True, False, False]]
    assert first_of(largest(totals)).tolist() == [0, 1]
