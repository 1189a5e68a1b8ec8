"""What the calls of a run come to, as a table."""

from collections.abc import Mapping
from typing import Any

from tutorsim.analysis.views.cells import Table, table
from tutorsim.vocabularies import ProvenanceKind

__all__ = ["usage_table"]


def usage_table(usage: Mapping[str, Any], kind: ProvenanceKind) -> Table | None:
    """Calls, tokens and cost by model; `None` without a call.

    Args:
        usage: `models`: name → calls, input_tokens, output_tokens and cost_usd, the sums beside
            it, and `prices_as_of`.
        kind: What answered the calls.
    """
    rows = [_row(model, row) for model, row in usage["models"].items()]
    if len(rows) > 1:
        rows.append(_row("all", usage))
    paid = "" if kind == "api" else " Not what was paid: the Messages API did not answer them."
    return table(
        "cost",
        "Calls, tokens and cost",
        f"At list prices of {usage['prices_as_of']}.{paid}",
        ["model", "calls", "input tokens", "output tokens", "US$"],
        rows,
    )


def _row(name: str, row: Mapping[str, Any]) -> tuple[object, ...]:
    cost = "unknown" if row["cost_usd"] is None else f"{row['cost_usd']:.2f}"
    return (name, row["calls"], row["input_tokens"], row["output_tokens"], cost)
