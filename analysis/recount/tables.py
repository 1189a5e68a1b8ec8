"""A recount by section, as texts and tables: orders, tie policies, rules, electorates."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final

from tutorsim.analysis.counting.rule_definitions import Approvals
from tutorsim.analysis.identify import TieReading
from tutorsim.analysis.pages.cells_and_tables import (
    DASH,
    Part,
    Table,
    Written,
    bounds_of,
    number,
    part_of,
    table,
)
from tutorsim.analysis.recount import (
    ElectorateRow,
    Exact,
    Interval,
    OrderTable,
    PolicyRow,
    ReadingRow,
    RecountResult,
    RuleRow,
)
from tutorsim.vocabularies import PROTOCOLS

# --- Counterfactual captions ---------------------------------------------------------------------

HELD: Final = "All that came before a vote is held fixed."
"""Ends the caption of every counterfactual; the head of a recount says it in full."""


def captions(rows: Sequence[OrderTable | PolicyRow | RuleRow | ElectorateRow | ReadingRow]) -> str:
    """What the rows say of themselves, once; the head of the page has the long warning."""
    return " ".join((*dict.fromkeys(row.asks for row in rows), HELD))


def exact(found: Exact) -> Written:
    """An exact number, whole where it is one."""
    return number(found.value, digits=0 if found.value.is_integer() else 1)


def interval(found: Interval | None) -> Written:
    """Turns by the named convention, and in brackets what the ballots leave open around them."""
    if found is None:
        return Written(DASH, None)
    point = "–" if found.point is None else f"{found.point:,}"
    if found.lower == found.upper:
        return Written(point, found.point)
    return Written(f"{point} [{found.lower:,}, {found.upper:,}]", found.model_dump())


# --- Fallback orders -----------------------------------------------------------------------------

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

    `protocol`: of its ballots alone; of all when `None`.
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
        f"Votes whose winner changes{of}, and wins of each candidate, of {turns:,}: as logged in "
        f"the row of that name, recounted in the others; expectations where a lot is drawn. Exact. "
        f"{HELD}",
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


# --- Other electorates ---------------------------------------------------------------------------

_SCENARIOS: Final = {
    "without_deliberation": "the first vote decides",
    "leave_one_out": "without one voter",
    "no_own_votes": "no votes for one's own draft",
    "confidence_weighted": "votes weighted by stated confidence",
}


def electorates_table(rows: Sequence[ElectorateRow], protocol: str | None = None) -> Table | None:
    """Winners that change when other ballots, or fewer, are counted.

    `protocol`: of its ballots alone; of all when `None`.
    """
    own = [r for r in rows if r.protocol == protocol and r.turns]
    compared = any(r.compared is not None for r in own)
    said = "Compared with logged winners are those that counting decided. " if compared else ""
    decide = "has a figure where they meet" if compared else "lets the fallback order decide them"
    return table(
        f"electorates-{protocol}" if protocol else "electorates",
        f"Other electorates{f', {protocol} ballots' if protocol else ''}",
        "Recounted: votes whose winner changes. Bounds leave ties open that nobody was asked to "
        f"vote on; the last column {decide}. Left out: votes that "
        f"lack a first vote, the voter or a stated confidence. {said}{HELD}",
        [
            *("counted", "turns", "left out"),
            *(("compared",) if compared else ()),
            *("winners changed", "ties to the order"),
        ],
        [
            (
                f"without {r.voter}" if r.voter else _SCENARIOS[r.scenario],
                *(r.turns, r.not_computable),
                *((r.compared,) if compared else ()),
                *(bounds_of(r.changed.lower, r.changed.upper), r.changed.point),
            )
            for r in own
        ],
    )


def readings_table(rows: Sequence[ReadingRow], protocol: str | None = None) -> Table | None:
    """Winners when the raw replies are read more strictly or more leniently.

    `protocol`: of its ballots alone; of all when `None`.
    """
    return table(
        f"readings-{protocol}" if protocol else "readings",
        f"Ballots read again{f', {protocol} ballots' if protocol else ''}",
        "The raw replies of the recording, read by a stricter and by a more lenient reader; runs "
        "use the standard one. What a reader refuses counts as an abstention, since nobody asked "
        f"again. {HELD}",
        ["reading", "turns", "ballots read otherwise", "unreadable ballots", "winners changed"],
        [
            (
                *(r.reading, r.turns, part_of(r.ballots_changed, r.ballots), r.abstained),
                bounds_of(r.changed.lower, r.changed.upper),
            )
            for r in rows
            if r.protocol == protocol
        ],
    )


# --- Other rules ---------------------------------------------------------------------------------

Rows = Sequence[RuleRow]
Pairs = Iterable[tuple[str, str]]
"""Logged protocol and target."""

_TIES: Final = {"fallback": "Ties go to the fallback order.", "set": "A tie stays a tie."}
_COUNTED: Final = ("ballots", "counted as")


def _conventions(rows: Rows) -> str:
    """Under which conventions a single winner is single."""
    return "".join(dict.fromkeys(f"{row.convention} " for row in rows if row.convention))


def protocols_table(found: RecountResult, told: Sequence[str]) -> Table | None:
    """Each protocol's ballots under some rules, a tie staying a tie."""
    least = min(found.exempt)
    rows = [
        row
        for row in found.rules
        if (row.reading, row.exempt) == ("set", least)
        and row.target in told
        and row.target != row.logged_protocol
    ]
    own = [row for row in rows if row.target not in PROTOCOLS]
    points = any(row.point_only for row in rows)
    return table(
        "protocols",
        f"Under {'other rules' if own else 'the other protocols'}",
        "Turns; a tie stays a tie. Single winner: the ballots leave one. "
        f"{_conventions(own)}{HELD}",
        [
            *(*_COUNTED, "turns", "single winner", "logged winner surely"),
            *("logged winner possibly", *(("logged winner, a point",) if points else ())),
        ],
        [
            (
                *(row.logged_protocol, row.target, row.turns),
                *_bound(row, row.identified, row.agreement.lower, row.agreement.upper),
                *((row.agreement.point,) if points else ()),
            )
            for row in rows
        ],
    )


def _bound(row: RuleRow, *cells: object) -> tuple[object, ...]:
    """Cells that say what bounds say; of a rule that gives a point alone there are none."""
    return (Written("–", None),) * len(cells) if row.point_only else cells


def _within_bounds(row: RuleRow, found: Interval | None) -> Written | int | None:
    """A count with what is certain and possible around it, if anything bounds it."""
    return found.point if row.point_only and found is not None else interval(found)


def rules_table(found: RecountResult, reading: TieReading) -> Table | None:
    """What every rule would have chosen with the fewest exempt voters, under a reading of ties."""
    least = min(found.exempt)
    rows = [r for r in found.rules if (r.reading, r.exempt) == (reading, least)]
    compared = any(row.compared is not None for row in rows)
    exempt = f", {least} exempt voters" if least else ""
    ties = "ties to the order" if reading == "fallback" else "a tie stays a tie"
    said = ", of those compared, which counting decided" if compared else ""
    return table(
        f"rules-{reading}",
        f"The same ballots under other rules, {ties}{exempt}",
        "Turns. Single: their ballots leave one winner. Same: with the logged winner"
        f"{said}. Flips: the first leader did not win. The figure is the named projection's, in "
        "brackets what is certain and what is possible. Not settled: too costly to decide, "
        f"counted as open. {_conventions(rows)}{captions(rows)}",
        [
            *(*_COUNTED, "turns", "single"),
            *(("compared",) if compared else ()),
            *("same", "flips", "not settled"),
        ],
        [
            (
                *(row.logged_protocol, row.target, row.turns, *_bound(row, row.identified)),
                *((row.compared,) if compared else ()),
                *(_within_bounds(row, row.agreement), _within_bounds(row, row.flips)),
                *_bound(row, row.not_settled),
            )
            for row in rows
        ],
    )


def approvals_table(found: RecountResult) -> Table | None:
    """Approval voting of ballots of other formats, by how many candidates each voter approves of,
    beside what logged approvals say of that; `None` where one number alone is asked about, or no
    winner is there to be kept."""
    least = min(found.exempt)
    rows = [
        row
        for row in found.approvals
        if (row.reading, row.exempt) == ("set", least) and row.logged_protocol != "approval"
        if kept_of(row)
    ]
    numbers = list(dict.fromkeys(row.approves for row in rows if row.approves is not None))
    if len(numbers) < 2:
        return None
    ballots = sum(found.approved.values())
    return table(
        "approvals",
        "Approval voting, by how many candidates each voter approves of",
        "A tie stays a tie. How many each voter approves of is an assumption of its own. In a "
        "range a voter may approve of one of two equal candidates, under “any number” of both or "
        f"neither. {_approved_words(found)}{HELD}",
        [
            *("ballots", "each approves of", "surely kept", "surely changed", "open", "turns"),
            *(("logged ballots",) if ballots else ()),
        ],
        [
            (
                *(row.logged_protocol, number.words, row.agreement.lower, row.changes),
                *(kept_of(row) - row.agreement.lower - row.changes, kept_of(row)),
                *((part_of(_within(found, number), ballots),) if ballots else ()),
            )
            for row in rows
            if (number := row.approves) is not None
        ],
    )


def kept_of(row: RuleRow) -> int:
    """Turns with a logged winner that a rule can keep."""
    return row.turns if row.compared is None else row.compared


def _within(found: RecountResult, number: Approvals) -> int:
    """Logged approval ballots of so many candidates."""
    most = number.most or max(found.approved)
    return sum(n for size, n in found.approved.items() if number.least <= size <= most)


def _approved_words(found: RecountResult) -> str:
    """What logged approval ballots say of how many a voter approves of; empty without any."""
    if not found.approved:
        return ""
    least, most = min(found.approved), max(found.approved)
    span = f"{least} to {most}" if least < most else f"{most}"
    return (
        f"The last column counts logged approval ballots: {sum(found.approved.values()):,} approve "
        f"of {span}. "
    )


def dial_table(rows: Rows, reading: TieReading, pairs: Pairs, tested: str) -> Table | None:
    """Turns with one possible winner as voters are exempt from the assumption.

    `pairs`: which logged protocols under which targets. `tested`: how far the assumption was
    tested, in words.
    """
    cells: dict[tuple[str, str, int], RuleRow] = {
        (r.logged_protocol, r.target, r.exempt): r for r in rows if r.reading == reading
    }
    exempt = sorted({r.exempt for r in rows})
    lines = []
    for logged, target in pairs:
        own = [cells[logged, target, k] for k in exempt]
        if own[0].point_only:
            continue
        lines.append(
            (
                *(logged, target),
                *(part_of(row.identified, row.turns) for row in own),
                *(part_of(row.agreement.lower, row.turns) for row in own),
            )
        )
    return table(
        "dial",
        "What is left when voters are exempt",
        f"Recounted. {tested} With "
        "k voters exempt, any k of them may have cast any ballot at all under the other protocol; "
        "the breakdown point of a vote is the smallest k at which its one possible winner is "
        f"lost. {'A tie stays a tie.' if reading == 'set' else 'Ties go to the order.'} {HELD}",
        [
            *("logged", "counted as"),
            *(f"one possible winner, k = {k}" for k in exempt),
            *(f"logged winner certain, k = {k}" for k in exempt),
        ],
        lines,
    )


def breakdown_table(rows: Rows, reading: TieReading) -> Table | None:
    """Turns by the number of exempt voters that it takes to lose their one possible winner."""
    least = min((r.exempt for r in rows), default=0)
    own = [r for r in rows if (r.reading, r.exempt, r.point_only) == (reading, least, False)]
    kinds = dict.fromkeys(kind for row in own for kind, n in row.breakdown.items() if n)
    numbers = sorted((kind for kind in kinds if kind.isdecimal()), key=int)
    heads = [*numbers, *(kind for kind in ("never", "not_settled") if kind in kinds)]
    return table(
        "breakdown",
        "Exempt voters that it takes to lose the winner",
        "Turns by the fewest exempt voters with whom a second winner is possible. 0: two were "
        "possible to begin with. Never: no number of them does it. Not settled: finding it takes "
        f"too much work. {_TIES[reading]} {_conventions(own)}{HELD}",
        [*_COUNTED, *heads],
        [
            (row.logged_protocol, row.target, *(row.breakdown.get(kind, 0) for kind in heads))
            for row in own
        ],
    )


def rule_wins_table(rows: Rows, reading: TieReading) -> Table | None:
    """Wins of every candidate under every rule, with the fewest exempt voters."""
    least = min((r.exempt for r in rows), default=0)
    own = [r for r in rows if (r.reading, r.exempt) == (reading, least)]
    names = list(dict.fromkeys(name for row in own for name in row.wins))
    said = dict.fromkeys(f"{r.logged_protocol} as {r.target} by {r.projection}" for r in own)
    return table(
        "rule-wins",
        "Wins under other rules",
        f"Turns, in brackets what is certain and what is possible. {_TIES[reading]} Projections: "
        f"{'; '.join(said)}. {_conventions(own)}{captions(own)}",
        [*_COUNTED, *names],
        [
            (
                *(row.logged_protocol, row.target),
                *(
                    _within_bounds(row, row.wins[name]) if name in row.wins else ""
                    for name in names
                ),
            )
            for row in own
        ],
    )


# --- Recount sections ----------------------------------------------------------------------------

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
    yield approvals_table(found)
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
