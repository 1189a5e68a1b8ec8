"""A recount as tables, each with the caption that says what it holds fixed."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final, TypeVar

from rich.console import RenderableType
from rich.text import Text

from analysis.recount import (
    HELD_FIXED,
    ElectorateRow,
    Exact,
    Interval,
    OrderTable,
    PolicyRow,
    ReadingRow,
    RecountResult,
    RuleRow,
)
from analysis.threshold import AtThreshold
from tutorsim.cli.figures import bounds
from tutorsim.cli.render import (
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

__all__ = ["SECTIONS", "recount_shown", "thresholds_shown"]

Shown = Iterator[RenderableType]
R = TypeVar("R")
K = TypeVar("K")

Cells = Mapping[tuple[str, str, str, int], RuleRow]
"""Logged protocol, target, reading of ties, exempt voters → row."""

HELD: Final = "The logged dialogue is held fixed."

POLICIES: Final = {
    "logged": "logged",
    "tie_round": "tie round",
    "no_tie_round": "no round",
    "random": "by lot",
    "random_no_tie_round": "by lot, no round",
}
SCENARIOS: Final = {
    "without_deliberation": "first vote decides",
    "leave_one_out": "without",
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
        f"{_captions(found.orders)}"
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
                _exact(of.changed_expected),
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
                _exact(row.expected),
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
        yield caption(_captions([of]))


def _policies(found: RecountResult, full: bool) -> Shown:
    by_protocol = _grouped(found.policies, lambda row: row.protocol)
    for protocol, rows in by_protocol.items():
        if protocol is not None and not full:
            continue
        yield Text()
        yield heading("Other ways to break ties", f"{_of(protocol)}, {rows[0].turns} turns")
        yield table(
            ("wins", *(POLICIES[row.policy] for row in rows)),
            [(name, *(_exact(row.wins[name]) for row in rows)) for name in rows[0].wins]
            + [("turns changed", *(_exact(row.changed) for row in rows))],
        )
        yield caption(
            f"Ties go to {' > '.join(found.fallback_order)}, after the tie round, straight after "
            f"the final vote (no round), or to a lot. {_captions(rows)}"
        )


def _rules(found: RecountResult, full: bool) -> Shown:
    if not found.rules:
        return
    least = min(found.exempt)
    cells: Cells = {(r.logged_protocol, r.target, r.reading, r.exempt): r for r in found.rules}
    turns = {row.logged_protocol: row.turns for row in found.rules}
    yield Text()
    exempt = f", {least} exempt voters" if least else ""
    yield heading("The same ballots under other rules", f"turns{exempt}")
    yield table(
        ("ballots, rule", "single", "single*", "same", "same*", "flips", "not settled"),
        _by_protocol(turns, found.rules, lambda at: _rule_cells(cells, *at, least)),
    )
    yield caption(
        "Single: turns whose ballots leave one winner. Same: turns with the logged winner. Flips: "
        "turns whose first leader did not win. Ties go to the role-priority order; with * a tie "
        "stays a tie. The figure is the named projection's, “a to b” what the ballots leave open. "
        f"Not settled: too costly to decide, counted as open. {_captions(found.rules)}"
    )
    yield from _dial(found, cells, turns)
    if full:
        yield from _rule_wins(found, cells, turns, least)


def _by_protocol(
    turns: Mapping[str, int],
    rules: Sequence[RuleRow],
    cells: Callable[[tuple[str, str]], Sequence[Cell]],
) -> list[Sequence[Cell]]:
    """Rows of all targets, under a line for each logged protocol."""
    rows: list[Sequence[Cell]] = []
    for protocol, n in turns.items():
        targets = dict.fromkeys(r.target for r in rules if r.logged_protocol == protocol)
        found = [(f"  {target}", *cells((protocol, target))) for target in targets]
        title = styled(f"{protocol} ({n})", "bold")
        rows += [(title, *[""] * (len(found[0]) - 1)), *found]
    return rows


def _rule_cells(cells: Cells, protocol: str, target: str, k: int) -> Sequence[Cell]:
    order, tie = cells[protocol, target, "fallback", k], cells[protocol, target, "set", k]
    return (
        str(order.identified),
        str(tie.identified),
        _interval(order.agreement),
        _interval(tie.agreement),
        _interval(order.flips),
        str(max(tie.not_settled, order.not_settled)),
    )


def _dial(found: RecountResult, cells: Cells, turns: Mapping[str, int]) -> Shown:
    """How the sets grow when k voters may have cast anything."""

    def dialled(at: tuple[str, str]) -> Sequence[Cell]:
        rows = [cells[*at, "fallback", k] for k in found.exempt]
        same = [f"{row.identified}, {_open(row.agreement)}" for row in rows]
        return (*same, _breakdown(rows[0].breakdown))

    yield Text()
    yield heading("With k exempt voters", "turns with a single winner, with the logged one")
    yield table(
        ("ballots, rule", *(f"k={k}" for k in found.exempt), "lost at k: turns"),
        _by_protocol(turns, found.rules, dialled),
    )
    yield caption(
        "An exempt voter may have cast any ballot at all. Lost at k: exempt voters that it takes "
        "until a second winner is possible, and in how many turns; at 0 two were possible to begin "
        f"with. Ties go to the role-priority order. {HELD}"
    )


def _rule_wins(found: RecountResult, cells: Cells, turns: Mapping[str, int], k: int) -> Shown:
    rows = [row for row in found.rules if row.exempt == k and row.reading == "fallback"]
    names = list(dict.fromkeys(name for row in rows for name in row.wins))

    def won(at: tuple[str, str]) -> Sequence[Cell]:
        row = cells[*at, "fallback", k]
        return [_interval(row.wins[name]) if name in row.wins else "" for name in names]

    yield Text()
    yield heading("Wins under other rules", "turns, the role-priority order decides ties")
    yield table(("ballots, rule", *names), _by_protocol(turns, found.rules, won))
    projections = dict.fromkeys(
        f"{row.logged_protocol} as {row.target} by {row.projection}" for row in rows
    )
    yield caption(f"Projections: {'; '.join(projections)}. {_captions(rows)}")


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
    yield caption(f"“/ n”: turns that have what the scenario needs. {_captions(found.electorates)}")


def _scenario(scenario: str, voter: str | None) -> str:
    if scenario == "leave_one_out":
        return f"without {voter}" if voter else "without some one voter"
    return SCENARIOS.get(scenario, scenario)


def _changed(rows: Sequence[ElectorateRow], protocol: str | None) -> Cell:
    for row in rows:
        if row.protocol == protocol and not row.turns:
            return Pair(NOT_ESTIMABLE, why_not="no turn has what the scenario needs")
        if row.protocol == protocol:
            changed = _interval(row.changed)
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
                _interval(row.changed),
            )
            for row in found.readings
        ],
        left=2,
    )
    yield caption(_captions(found.readings))


SECTIONS: Final[Mapping[str, Callable[[RecountResult, bool], Shown]]] = {
    "orders": _orders,
    "policies": _policies,
    "rules": _rules,
    "electorates": _electorates,
    "readings": _readings,
}
"""Name → tables, in the order of the questions."""


def thresholds_shown(found: Mapping[float, Sequence[AtThreshold]]) -> Shown:
    """Outcomes under other success thresholds."""
    for threshold, rows in found.items():
        yield Text()
        yield heading(f"Success threshold {threshold:g}")
        yield table(
            ("benchmark", "condition", "episodes", "exact", "success %", "turns", "gain"),
            [
                (
                    row.benchmark,
                    row.condition,
                    str(row.episodes),
                    str(row.exact),
                    bounds(row.success, unit=percent),
                    bounds(row.turns),
                    bounds(row.gain),
                )
                for row in rows
            ],
            left=2,
        )
        yield caption(
            "Exact: episodes whose path the log holds to its end; the others are bounded, which "
            f"gives “a to b”. Gain: in judge score, over tutored episodes. {HELD}"
        )


def _grouped(rows: Sequence[R], key: Callable[[R], K]) -> dict[K, list[R]]:
    groups: dict[K, list[R]] = {}
    for row in rows:
        groups.setdefault(key(row), []).append(row)
    return groups


def _captions(rows: Sequence[OrderTable | PolicyRow | RuleRow | ElectorateRow | ReadingRow]) -> str:
    """What the rows say of themselves, once; the head of the page has the long warning."""
    return " ".join(dict.fromkeys(row.caption for row in rows)).replace(HELD_FIXED, HELD)


def _of(protocol: str | None) -> str:
    return "all protocols" if protocol is None else f"{protocol} ballots"


def _exact(found: Exact) -> str:
    """An exact number, whole where it is one."""
    return str(int(found.value)) if found.value.is_integer() else f"{found.value:.1f}"


def _interval(found: Interval | None) -> Pair:
    """The point, and what the ballots leave open around it."""
    if found is None:
        return Pair(NOT_ESTIMABLE, why_not="no first votes")
    point = NOT_ESTIMABLE if found.point is None else str(found.point)
    return Pair(point, "" if found.lower == found.upper else _open(found))


def _open(found: Interval) -> str:
    return f"{found.lower} to {found.upper}"


def _breakdown(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{k}: {n}" for k, n in counts.items() if n)
