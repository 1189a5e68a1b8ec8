"""A recount by section, as texts and tables."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

from tutorsim.analysis.identify import TieReading
from tutorsim.analysis.recount import ElectorateRow, PolicyRow, ReadingRow, RecountResult
from tutorsim.analysis.views.cells import Part
from tutorsim.analysis.views.fallback_orders import (
    by_order_table,
    listed_orders,
    order_wins_table,
    policies_table,
)
from tutorsim.analysis.views.other_electorates import electorates_table, readings_table
from tutorsim.analysis.views.other_rules import (
    breakdown_table,
    dial_table,
    rule_wins_table,
    rules_table,
)

__all__ = ["SECTIONS"]

Parts = Iterator[Part | None]


def _orders(found: RecountResult, _: str, full: bool) -> Parts:
    yield order_wins_table(found.orders[0])
    if found.orders[0].logged_order:
        yield by_order_table(found.orders)
    if full:
        yield from listed_orders(found.orders)


def _protocols(
    rows: Sequence[PolicyRow] | Sequence[ElectorateRow] | Sequence[ReadingRow], full: bool
) -> list[str | None]:
    """All protocols together; in full also each of them, if there are several."""
    every = list(dict.fromkeys(row.protocol for row in rows))
    return [p for p in every if p is None or (full and len(every) > 2)]


def _policies(found: RecountResult, _: str, full: bool) -> Parts:
    for protocol in _protocols(found.policies, full):
        yield policies_table(found.policies, protocol)


def _rules(found: RecountResult, tested: str, full: bool) -> Parts:
    readings = dict.fromkeys(row.reading for row in found.rules)
    yield from (rules_table(found, reading) for reading in readings)
    reading: TieReading = "fallback" if "fallback" in readings else "set"
    pairs = dict.fromkeys((row.logged_protocol, row.target) for row in found.rules)
    yield dial_table(found.rules, reading, pairs, tested)
    yield breakdown_table(found.rules, reading)
    if full:
        yield rule_wins_table(found.rules, reading)


def _electorates(found: RecountResult, _: str, full: bool) -> Parts:
    for protocol in _protocols(found.electorates, full):
        yield electorates_table(found.electorates, protocol)


def _readings(found: RecountResult, _: str, full: bool) -> Parts:
    if not found.readings:
        yield "Ballots read again: there are no raw replies to read."
    for protocol in _protocols(found.readings, full):
        yield readings_table(found.readings, protocol)


SECTIONS: Final[Mapping[str, Callable[[RecountResult, str, bool], Parts]]] = {
    "orders": _orders,
    "policies": _policies,
    "rules": _rules,
    "electorates": _electorates,
    "readings": _readings,
}
"""Name → what a recount shows of it, in the order of the questions.

Given: the recount; in words, how far the assumption behind the sets was tested; whether to show
every order, every protocol and all wins."""
