"""Calls, tokens and cost of a run, from the calls that it logged."""

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

from rich.console import RenderableType

from tutorsim.cli.render import caption, heading, table
from tutorsim.plan import PriceTable
from tutorsim.records import EpisodeRecord
from tutorsim.types import ProvenanceKind

__all__ = ["usage", "usage_shown"]


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


def usage_shown(value: dict[str, Any], kind: ProvenanceKind) -> Iterator[RenderableType]:
    """Calls, tokens and cost as a table."""
    yield heading("Calls, tokens and cost")
    rows = [_row(model, row) for model, row in value["models"].items()]
    if len(rows) > 1:
        rows.append(_row("all", value))
    yield table(("model", "calls", "input tokens", "output tokens", "US$"), rows)
    paid = (
        "" if kind == "api" else " Not what was paid: the Messages API did not answer these calls."
    )
    yield caption(f"At list prices of {value['prices_as_of']}.{paid}")


def _row(name: str, row: dict[str, Any]) -> tuple[str, ...]:
    cost = "unknown" if row["cost_usd"] is None else f"{row['cost_usd']:.2f}"
    tokens = (f"{row['input_tokens']:,}", f"{row['output_tokens']:,}")
    return (name, f"{row['calls']:,}", *tokens, cost)
