"""Numbers of ballots, held to the ballots themselves."""

import numpy as np
import pytest

from analysis.identify import chunks, numbering
from analysis.identify.numbering import RAISED, Book, numbered


def drawn(turns, m, most, seed=1):
    random = np.random.default_rng(seed)
    masses = random.integers(0, most + 1, (turns, 3, m))
    masses[random.random((turns, 3)) < 0.1] = -1
    return masses


def ballots_again(numbers, ballots, m):
    return np.array([*ballots, (-1,) * m])[numbers]


def test_cells_up_to_31_have_different_codes():
    cells = np.indices((32,) * 4, dtype=np.int8).reshape(4, -1).T.copy()
    codes = numbering._codes(cells[:, None, :])
    assert int(codes.max()) < numbering._CODES
    assert np.bincount(codes.ravel()).max() == 1


@pytest.mark.parametrize("m", [1, 2, 3, 4, 5])
@pytest.mark.parametrize("most", [1, 30, 31, 10**12])
def test_numbers_stand_for_the_ballots(m, most):
    masses = drawn(200, m, most)
    numbers, ballots = numbered(masses)
    assert len(set(ballots)) == len(ballots)
    assert (ballots_again(numbers, ballots, m) == masses).all()


@pytest.mark.parametrize("m", [3, 4])
@pytest.mark.parametrize("kind", [np.int8, np.int16, np.int32])
@pytest.mark.parametrize("most", [3, 100])
def test_integers_may_be_of_any_size(m, kind, most):
    masses = drawn(200, m, most)
    numbers, ballots = numbered(masses.astype(kind))
    assert (ballots_again(numbers, ballots, m) == masses).all()
    cast = masses[(masses >= 0).all(axis=(1, 2))].astype(kind)
    numbers, ballots = numbered(cast)
    assert (ballots_again(numbers, ballots, m) == cast).all()


def test_small_masses_keep_their_numbers_among_large_ones():
    small, large = drawn(50, 3, 2), drawn(50, 3, 40)
    named = []

    def name(new):
        named.extend(map(tuple, new.tolist()))
        return new @ np.array([1, 64, 4_096])

    book = Book(name, 3)
    before = book.entries(small)
    both = book.entries(np.concatenate([small, large]))
    assert (both[:, :50] == before).all()
    assert len(set(named)) == len(named)


def test_more_ballots_than_16_bits_can_tell_apart_have_numbers():
    masses = np.indices((15,) * 4).reshape(4, -1).T[:, None]
    numbers, ballots = numbered(masses)
    assert len(ballots) == 15**4 > 1 << 15
    assert (ballots_again(numbers, ballots, 4) == masses).all()


@pytest.mark.parametrize("cores", [1, 2, 3])
def test_chunks_and_threads_change_nothing(cores, monkeypatch):
    masses = drawn(1_000, 4, 3)
    monkeypatch.setattr(chunks, "_CHUNK", 64)
    monkeypatch.setattr(chunks, "_WORTH", 128)
    monkeypatch.setattr(chunks, "thread_pool_size", lambda: cores)
    numbers, ballots = numbered(masses)
    assert (ballots_again(numbers, ballots, 4) == masses).all()


def test_no_turns_have_no_ballots():
    numbers, ballots = numbered(np.zeros((0, 3, 4), dtype=np.int64))
    assert (numbers.shape, ballots) == ((0, 3), [])


def test_each_ballot_is_named_once_however_many_turns_there_are():
    named = []
    book = Book(lambda new: named.append(len(new)) or np.zeros(len(new), dtype=np.int64), 3)
    votes = np.eye(3, dtype=np.int64)[np.random.default_rng(1).integers(0, 3, (5_000, 4))]
    for _ in range(3):
        assert (book.entries(votes) == RAISED).all()
    assert sum(named) == 3
