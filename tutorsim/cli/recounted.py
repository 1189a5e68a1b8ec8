"""A recount as tables, each with the caption that says what it holds fixed."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final, TypeVar

from rich.console import RenderableType
from rich.text import Text

from analysis.recount import (
    ElectorateRow,
    OrderTable,
    RecountResult,
)
from tutorsim.cli.held import captions, exact, interval
from tutorsim.cli.render import (
    HELD,
    NOT_ESTIMABLE,
    Cell,
    Pair,
    Prose,
    caption,
    heading,
    percent,
    styled,
    table,
)
from tutorsim.cli.rule_tables import rules_shown

__all__ = ["SECTIONS", "recount_shown"]

Shown = Iterator[RenderableType]
R = TypeVar("R")
K = TypeVar("K")

POLICIES: Final = {
    "logged": "logged",
    "tie_round": "tie round",
    "no_tie_round": "no round",
    "random": "by lot",
    "random_no_tie_round": "by lot, no round",
}
SCENARIOS: Final = {
    "without_deliberation": "first vote decides",
    "no_own_votes": "no votes for oneself",
    "confidence_weighted": "weighted by confidence",
}


def recount_shown(found: RecountResult, sections: Sequence[str], *, full: bool) -> Shown:
    """The chosen sections, in the order of `SECTIONS`.

    Args:
        found: What was recounted.
        sections: Names from `SECTIONS`.
        full: Also every order, and the wins of every candidate under every rule.
    """
    if not found.turns:
        yield Prose("There is no voting turn to recount.")
        return
    yield Prose(styled(found.caption, "yellow"))
    for name, shown in SECTIONS.items():
        if name in sections:
            yield from shown(found, full)


def _orders(found: RecountResult, full: bool) -> Shown:
    everything = found.orders[0]
    yield Text()
    yield heading("Every fallback order", f"turns won, of {everything.turns}")
    yield _role_table(everything)
    yield caption(
        f"Logged order: {' > '.join(everything.logged_order)}. Robust: won under every order. "
        "By lot: mean over all orders. Owed: turns of “logged” that the order decided. "
        f"{captions(found.orders)}"
    )
    yield Text()
    yield heading("What the order decides", "turns")
    yield table(
        ("protocol", "turns", "by order", "changed by lot", "changed at most"),
        [
            (
                of.protocol or "all",
                str(of.turns),
                str(of.decided_by_order),
                exact(of.changed_expected),
                NOT_ESTIMABLE if of.changed_most is None else str(of.changed_most),
            )
            for of in found.orders
        ],
    )
    yield caption(f"At most: under the order that changes the most turns. {HELD}")
    if full:
        yield from _every_order(found.orders)


def _role_table(of: OrderTable) -> RenderableType:
    return table(
        ("candidate", "logged", "robust", "at most", "by lot", "owed", "owed %"),
        [
            (
                row.candidate,
                str(row.logged),
                str(row.robust),
                str(row.most),
                exact(row.expected),
                str(row.by_order),
                percent(row.share_by_order.value if row.share_by_order else None),
            )
            for row in of.candidates
        ],
    )


def _every_order(orders: Sequence[OrderTable]) -> Shown:
    for of in orders:
        yield Text()
        yield heading(f"Wins under each of {of.orders} orders", of.protocol or "all protocols")
        if not of.listed:
            yield Prose("Too many orders to list.")
            continue
        candidates = [row.candidate for row in of.candidates]
        short = {name: f"{place}" for place, name in enumerate(candidates, start=1)}
        yield Prose(", ".join(f"{short[name]} {name}" for name in candidates))
        yield table(
            ("order", *(short[name] for name in candidates), "changed"),
            [
                (
                    " > ".join(short[name] for name in row.order),
                    *(str(row.wins[name]) for name in candidates),
                    str(row.changed),
                )
                for row in of.listed
            ],
        )
        yield caption(captions([of]))


def _policies(found: RecountResult, full: bool) -> Shown:
    by_protocol = _grouped(found.policies, lambda row: row.protocol)
    for protocol, rows in by_protocol.items():
        if protocol is not None and not full:
            continue
        yield Text()
        yield heading("Other ways to break ties", f"{_of(protocol)}, {rows[0].turns} turns")
        yield table(
            ("wins", *(POLICIES[row.policy] for row in rows)),
            [(name, *(exact(row.wins[name]) for row in rows)) for name in rows[0].wins]
            + [("turns changed", *(exact(row.changed) for row in rows))],
        )
        yield caption(
            f"Ties go to {' > '.join(found.fallback_order)}, after the tie round, straight after "
            f"the final vote (no round), or to a lot. {captions(rows)}"
        )


def _electorates(found: RecountResult, full: bool) -> Shown:
    protocols = list(dict.fromkeys(row.protocol for row in found.electorates))
    rows = _grouped(found.electorates, lambda row: (row.scenario, row.voter))
    yield Text()
    yield heading("Other electorates", "turns with another winner, of turns recounted")
    yield table(
        ("scenario", *(p or "all" for p in protocols)),
        [
            (_scenario(*key), *(_changed(cells, protocol) for protocol in protocols))
            for key, cells in rows.items()
        ],
    )
    yield caption(f"“/ n”: turns that have what the scenario needs. {captions(found.electorates)}")


def _scenario(scenario: str, voter: str | None) -> str:
    if scenario == "leave_one_out":
        return f"without {voter}" if voter else "without some one voter"
    return SCENARIOS.get(scenario, scenario)


def _changed(rows: Sequence[ElectorateRow], protocol: str | None) -> Cell:
    for row in rows:
        if row.protocol == protocol and not row.turns:
            return Pair(NOT_ESTIMABLE, why_not="no turn has what the scenario needs")
        if row.protocol == protocol:
            changed = interval(row.changed)
            return Pair(f"{changed.figure} / {row.turns}", changed.detail)
    return ""


def _readings(found: RecountResult, full: bool) -> Shown:
    yield Text()
    yield heading("Ballots read again", "more strictly and more leniently")
    if not found.readings:
        yield Prose("There are no raw replies to read.")
        return
    yield table(
        ("reading", "protocol", "ballots", "read otherwise", "unreadable", "winners changed"),
        [
            (
                row.reading,
                row.protocol or "all",
                str(row.ballots),
                str(row.ballots_changed),
                str(row.abstained),
                interval(row.changed),
            )
            for row in found.readings
        ],
        left=2,
    )
    yield caption(captions(found.readings))


SECTIONS: Final[Mapping[str, Callable[[RecountResult, bool], Shown]]] = {
    "orders": _orders,
    "policies": _policies,
    "rules": rules_shown,
    "electorates": _electorates,
    "readings": _readings,
}
"""Name → tables, in the order of the questions."""


def _grouped(rows: Sequence[R], key: Callable[[R], K]) -> dict[K, list[R]]:
    groups: dict[K, list[R]] = {}
    for row in rows:
        groups.setdefault(key(row), []).append(row)
    return groups


def _of(protocol: str | None) -> str:
    return "all protocols" if protocol is None else f"{protocol} ballots"
