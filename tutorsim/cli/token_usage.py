"""Calls, tokens and cost of a run, from the calls that it logged."""

from collections import Counter
from collections.abc import Iterable
from typing import Any

from tutorsim.cost_plan import PriceTable
from tutorsim.records import EpisodeRecord

__all__ = ["usage"]


def usage(episodes: Iterable[EpisodeRecord], prices: PriceTable) -> dict[str, Any]:
    """Sum calls and tokens by model, those of failed episodes among them.

    Returns:
        `models`: name → calls, input_tokens, output_tokens and cost_usd, which is `None` for a
        model without a price; their sums beside it, where `cost_usd` is `None` when one of the
        prices is unknown; and `prices_as_of`.
    """
    calls: Counter[str] = Counter()
    asked: Counter[str] = Counter()
    answered: Counter[str] = Counter()
    for episode in episodes:
        for call in episode.calls:
            calls[call.model] += 1
            asked[call.model] += call.input_tokens
            answered[call.model] += call.output_tokens
    models = {
        model: {
            "calls": calls[model],
            "input_tokens": asked[model],
            "output_tokens": answered[model],
            "cost_usd": prices.cost(model, asked[model], answered[model]),
        }
        for model in sorted(calls)
    }
    costs = [row["cost_usd"] for row in models.values()]
    known = [cost for cost in costs if cost is not None]
    return {
        "models": models,
        "calls": calls.total(),
        "input_tokens": asked.total(),
        "output_tokens": answered.total(),
        "cost_usd": sum(known) if len(known) == len(costs) else None,
        "prices_as_of": prices.as_of,
    }
