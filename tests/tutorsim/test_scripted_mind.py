from collections import Counter

from tutorsim.kernel.system import Chance


def test_draws_are_the_same_on_every_machine():
    assert Chance(7, "a").digest("b").hex()[:16] == "8ac5786ae848d9b0"
    assert round(Chance(7, "a").unit("b"), 9) == 0.542075659


def test_other_parts_or_another_name_draw_anew():
    draws = {Chance(*parts).unit(name) for parts in [(1,), (2,), (1, 2)] for name in "ab"}
    assert len(draws) == 6


def test_parts_do_not_run_together():
    assert Chance("a", "b").unit("c") != Chance("ab").unit("c")
    assert Chance("a").unit("bc") != Chance("a", "b").unit("c")


def test_units_spread_evenly_from_0_to_1():
    draws = [Chance(i).unit("x") for i in range(4000)]
    assert 0 <= min(draws) < 0.01
    assert 0.99 < max(draws) < 1
    assert abs(sum(draws) / 4000 - 0.5) < 0.02


def test_every_option_is_picked_equally_often():
    counts = Counter(Chance(i).pick("x", "abcd") for i in range(4000))
    assert all(abs(counts[option] - 1000) < 120 for option in "abcd")


def test_bells_have_mean_0_and_deviation_1():
    draws = [Chance(i).bell("x") for i in range(4000)]
    assert abs(sum(draws) / 4000) < 0.05
    assert abs(sum(draw * draw for draw in draws) / 4000 - 1) < 0.06
    assert max(map(abs, draws)) <= 3.5


def test_text_with_half_a_surrogate_pair_is_no_obstacle():
    assert 0 <= Chance("\ud800").unit("\udfff") < 1
