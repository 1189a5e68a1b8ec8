"""What names the turns of a source: the order of each, and what intervals are over."""

from collections.abc import Callable

from tutorsim.analysis.ballots.recount_source import Source
from tutorsim.analysis.ballots.turn_profiles import TurnKey, standing_order

__all__ = ["Cluster", "turn_orders"]

Cluster = tuple[str | None, str]
"""What intervals are over: benchmark and task, or the episode where no task is named."""

Order = tuple[str, ...]


def turn_orders(source: Source, order: Order) -> Callable[[TurnKey], Order]:
    """The order of each turn: in a branch that changes it, the logged one before the change."""
    branch = source.run.branch if source.run else None
    if source.run is None or branch is None or branch.fallback_order is None:
        return lambda _: order
    logged = standing_order(source.ballots, source.run.panel.fallback_order)
    cursors = {e.episode_id: e.branch.turn for e in source.episodes if e.branch}

    def order_of(key: TurnKey) -> Order:
        cursor = cursors.get(key.episode_id)
        return logged if cursor is None or key.turn < cursor else order

    return order_of
