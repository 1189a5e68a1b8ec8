"""What other fallback orders and ways to break ties would have given, as tables."""

from collections.abc import Iterator, Sequence
from typing import Final

from tutorsim.analysis.recount import OrderTable, PolicyRow
from tutorsim.analysis.views.cells import Part, Table, table
from tutorsim.analysis.views.counterfactual_captions import HELD, captions, exact

__all__ = ["by_order_table", "listed_orders", "order_wins_table", "policies_table"]

_POLICIES: Final = {
    "logged": "as logged",
    "tie_round": "as logged, under this order",
    "no_tie_round": "no tie round, the order at once",
    "random": "a lot instead of the order",
    "random_no_tie_round": "no tie round, a lot at once",
}


def order_wins_table(found: OrderTable) -> Table | None:
    """Wins of each candidate over all orders; nothing is owed to an order where none is logged."""
    if not found.logged_order:
        return table(
            "order-wins",
            "Wins whatever the order",
            f"Turns won, of {found.turns:,}, of which counting leaves {found.decided_by_order:,} "
            "tied; an order would decide those. Robust: won under every order. By lot: mean over "
            f"all orders. {captions([found])}",
            ["candidate", "robust", "at most", "by lot"],
            [(r.candidate, r.robust, r.most, exact(r.expected)) for r in found.candidates],
        )
    return table(
        "order-wins",
        "Wins under every fallback order",
        f"Turns won, of {found.turns:,}. Logged order: {' > '.join(found.logged_order)}. Robust: "
        "won under every order. By lot: mean over all orders. Owed: turns of “logged” that the "
        f"order decided. {captions([found])}",
        ["candidate", "logged", "robust", "at most", "by lot", "owed", "share owed"],
        [
            (
                *(r.candidate, r.logged, r.robust, r.most, exact(r.expected), r.by_order),
                f"{r.share_by_order.value:.2f}" if r.share_by_order else "–",
            )
            for r in found.candidates
        ],
    )


def by_order_table(found: Sequence[OrderTable]) -> Table | None:
    """Turns that the order decides, over all protocols and for each."""
    return table(
        "by-order",
        "What the order decides",
        "Turns. By lot: changed on average under an order drawn at random. At most: under the "
        f"order that changes the most turns. {HELD}",
        ["protocol", "turns", "decided by the order", "changed by lot", "changed at most"],
        [
            (
                *(of.protocol or "all", of.turns, of.decided_by_order),
                "–" if of.changed_expected is None else exact(of.changed_expected),
                of.changed_most,
            )
            for of in found
        ],
    )


def listed_orders(found: Sequence[OrderTable]) -> Iterator[Part | None]:
    """Wins under each single order, for all protocols and each of them."""
    for of in found:
        title = f"Wins under each of {of.orders:,} orders, {of.protocol or 'all protocols'}"
        if not of.listed:
            yield f"{title}: too many orders to list."
            continue
        names = [row.candidate for row in of.candidates]
        short = {name: str(place) for place, name in enumerate(names, start=1)}
        yield table(
            f"orders-{of.protocol or 'all'}",
            title,
            f"{', '.join(f'{place}: {name}' for name, place in short.items())}. {captions([of])}",
            ["order", *(short[name] for name in names), "changed"],
            [
                (
                    " > ".join(short[name] for name in row.order),
                    *(row.wins[name] for name in names),
                    row.changed,
                )
                for row in of.listed
            ],
        )


def policies_table(rows: Sequence[PolicyRow], protocol: str | None = None) -> Table | None:
    """Wins under other ways to break ties, expected ones where a lot is drawn.

    Args:
        rows: Of a recount.
        protocol: Of its ballots alone; of all when `None`.
    """
    own = [r for r in rows if r.protocol == protocol and r.turns]
    own = [r for r in own if r.policy != "tie_round" or r.changed.value]
    if not own:
        return None
    names, turns, compared = list(own[0].wins), own[0].turns, own[0].compared
    of = "" if compared is None else f" (compared: the {compared:,} that counting decided)"
    return table(
        f"policies-{protocol}" if protocol else "policies",
        f"Other ways to break ties{f', {protocol} ballots' if protocol else ''}",
        f"Turns whose winner changes{of}, and turns won per candidate, of "
        f"{turns:,} turns: as logged in the row of that name, recounted in the "
        f"others; expectations where a lot is drawn. Exact. {HELD}",
        ["tie policy", "turns changed", *(f"wins of {name}" for name in names)],
        [
            (
                _POLICIES[r.policy],
                f"{r.changed.value:.1f}",
                *(f"{r.wins[name].value:.1f}" for name in names),
            )
            for r in own
        ],
    )
