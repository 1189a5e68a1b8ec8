"""The cap: what is set aside, given back and counted."""

import pytest

from tutorsim.errors import BudgetReached
from tutorsim.kernel.cost_plan import Price, PriceTable
from tutorsim.model import Call, CallKey, Reply, Request
from tutorsim.runner.stops import Budget

PRICES = PriceTable(as_of="2026-01-01", models={"m": Price(input=1_000_000, output=2_000_000)})
"""One dollar a token in, two a token out."""


def call(text="", *, model="m", most=10):
    return Call(CallKey(1, "propose", "motivation", 1), Request(model, "", text, most))


def reply(asked, answered):
    return Reply("", "m", "end_turn", asked, answered)


def test_a_call_is_reserved_at_a_token_a_byte_and_all_that_it_may_answer():
    assert Budget(PRICES, 1000).reserve(call("äb")) == (3 + 64) + 2 * 10


def test_reservations_and_payments_together_stay_below_the_cap():
    budget = Budget(PRICES, 170)
    first = budget.reserve(call())  # 64 + 20 = 84
    second = budget.reserve(call())  # 168
    with pytest.raises(BudgetReached, match=r"could pass the cap of 170\.00"):
        budget.reserve(call())
    budget.release(first)
    budget.count("m", reply(10, 5), new=True)  # 20 of 84 were spent: 84 + 20 + 84 > 170
    with pytest.raises(BudgetReached):
        budget.reserve(call())
    budget.release(second)
    budget.count("m", reply(1, 1), new=True)  # 23, and 84 more is 107
    assert budget.reserve(call()) == 84
    assert (budget.calls, budget.input_tokens, budget.output_tokens) == (2, 11, 6)
    assert budget.spent == 23


def test_what_earlier_sessions_paid_counts_towards_the_cap_once():
    budget = Budget(PRICES, 100)
    budget.count_earlier("m", reply(20, 0))
    budget.count("m", reply(20, 0), new=False)
    assert budget.spent == 20
    with pytest.raises(BudgetReached, match="could pass"):
        budget.reserve(call())  # 20 + 84


def test_without_a_cap_models_without_a_price_are_named():
    budget = Budget(PRICES)
    assert budget.reserve(call(model="other")) == 0
    budget.count("other", reply(5, 5), new=True)
    assert (budget.spent, budget.unpriced, budget.calls) == (0, {"other"}, 1)
