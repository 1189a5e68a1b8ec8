"""A recount by section, as texts and tables: orders, tie policies, rules, electorates."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, TypeVar

from tutorsim.analysis.identify.possible_winners import TieReading
from tutorsim.analysis.pages.cells_and_tables import (
    DASH,
    Part,
    Table,
    Written,
    bounds_of,
    number,
    of_rows,
    part_of,
)
from tutorsim.analysis.pages.decorators_to_declare_tables_and_charts import Row, table
from tutorsim.analysis.recount.result_models import (
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

R = TypeVar("R", PolicyRow, ElectorateRow, ReadingRow)

# --- Counterfactual captions ---------------------------------------------------------------------

HELD: Final = "All that came before a vote is held fixed."
"""Ends the caption of every counterfactual; the head of a recount says it in full."""


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


def _of(rows: Sequence[R], protocol: str | None) -> list[R]:
    """Rows with turns of one protocol's ballots, or of all."""
    return [row for row in rows if row.protocol == protocol and row.turns]


def _named(name: str, title: str, protocol: str | None) -> tuple[str, str]:
    """Name and title of a table of one protocol's ballots, or of all."""
    return (f"{name}-{protocol}", f"{title}, {protocol} ballots") if protocol else (name, title)


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
    logged = found.logged_order
    said = (
        f". Logged order: {' > '.join(logged)}."
        if logged
        else f", of which counting leaves {found.decided_by_order:,} tied; an order would decide "
        "those."
    )
    owed = " Owed: turns of “logged” that the order decided." if logged else ""
    return of_rows(
        "order-wins",
        "Wins under every fallback order" if logged else "Wins whatever the order",
        f"Turns won, of {found.turns:,}{said} Robust: won under every order. By lot: mean over "
        f"all orders.{owed} {found.asks} {HELD}",
        [
            {
                "candidate": r.candidate,
                **({"logged": r.logged} if logged else {}),
                "robust": r.robust,
                "at most": r.most,
                "by lot": exact(r.expected),
                **(
                    {
                        "owed": r.by_order,
                        "share owed": _share_owed(r.share_by_order),
                    }
                    if logged
                    else {}
                ),
            }
            for r in found.candidates
        ],
    )


def _share_owed(found: Exact | None) -> str:
    return f"{found.value:.2f}" if found else "–"


@table("by-order", "What the order decides", held=HELD)
def by_order_table(found: Sequence[OrderTable]) -> Iterator[Row]:
    """Turns. By lot: changed on average under an order drawn at random. At most: under the order
    that changes the most turns. {held}"""
    for of in found:
        yield {
            "protocol": of.protocol or "all",
            "turns": of.turns,
            "decided by the order": of.decided_by_order,
            "changed by lot": exact(of.changed_expected) if of.changed_expected else "–",
            "changed at most": of.changed_most,
        }


def listed_orders(found: Sequence[OrderTable]) -> Iterator[Part | None]:
    """Wins under each single order, for all protocols and each of them."""
    for of in found:
        many = of.orders if isinstance(of.orders, str) else f"{of.orders:,}"
        title = f"Wins under each of {many} orders, {of.protocol or 'all protocols'}"
        if not of.listed:
            yield f"{title}: too many orders to list."
            continue
        short = {row.candidate: str(place) for place, row in enumerate(of.candidates, start=1)}
        yield of_rows(
            f"orders-{of.protocol or 'all'}",
            title,
            f"{', '.join(f'{place}: {name}' for name, place in short.items())}. {of.asks} {HELD}",
            [
                {
                    "order": " > ".join(short[name] for name in row.order),
                    **{place: row.wins[name] for name, place in short.items()},
                    "changed": row.changed,
                }
                for row in of.listed
            ],
        )


def policies_table(rows: Sequence[PolicyRow], protocol: str | None = None) -> Table | None:
    """Wins under other ways to break ties, expected ones where a lot is drawn."""
    own = [r for r in _of(rows, protocol) if r.policy != "tie_round" or r.changed.value]
    if not own:
        return None
    turns, compared = own[0].turns, own[0].compared
    of = "" if compared is None else f" (compared: the {compared:,} that counting decided)"
    return of_rows(
        *_named("policies", "Other ways to break ties", protocol),
        f"Votes whose winner changes{of}, and wins of each candidate, of {turns:,}: as logged in "
        f"the row of that name, recounted in the others; expectations where a lot is drawn. Exact. "
        f"{HELD}",
        [
            {
                "tie policy": _POLICIES[r.policy],
                "turns changed": f"{r.changed.value:.1f}",
                **{f"wins of {name}": f"{won.value:.1f}" for name, won in r.wins.items()},
            }
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
    """Winners that change when other ballots, or fewer, are counted."""
    own = _of(rows, protocol)
    compared = any(r.compared is not None for r in own)
    said = "Compared with logged winners are those that counting decided. " if compared else ""
    decide = "has a figure where they meet" if compared else "lets the fallback order decide them"
    return of_rows(
        *_named("electorates", "Other electorates", protocol),
        "Recounted: votes whose winner changes. Bounds leave ties open that nobody was asked to "
        f"vote on; the last column {decide}. Left out: votes that "
        f"lack a first vote, the voter or a stated confidence. {said}{HELD}",
        [
            {
                "counted": f"without {r.voter}" if r.voter else _SCENARIOS[r.scenario],
                "turns": r.turns,
                "left out": r.not_computable,
                **({"compared": r.compared} if compared else {}),
                "winners changed": bounds_of(r.changed.lower, r.changed.upper),
                "ties to the order": r.changed.point,
            }
            for r in own
        ],
    )


def readings_table(rows: Sequence[ReadingRow], protocol: str | None = None) -> Table | None:
    """Winners when the raw replies are read more strictly or more leniently."""
    return of_rows(
        *_named("readings", "Ballots read again", protocol),
        "The raw replies of the recording, read by a stricter and by a more lenient reader; runs "
        "use the standard one. What a reader refuses counts as an abstention, since nobody asked "
        f"again. {HELD}",
        [
            {
                "reading": r.reading,
                "turns": r.turns,
                "ballots read otherwise": part_of(r.ballots_changed, r.ballots),
                "unreadable ballots": r.abstained,
                "winners changed": bounds_of(r.changed.lower, r.changed.upper),
            }
            for r in rows
            if r.protocol == protocol
        ],
    )


# --- Other rules ---------------------------------------------------------------------------------

_TIES: Final = {"fallback": "Ties go to the fallback order.", "set": "A tie stays a tie."}


def _with_fewest_exempt(rows: Sequence[RuleRow], reading: TieReading) -> list[RuleRow]:
    """Rows of one reading of ties, with the fewest exempt voters that were asked about."""
    least = min((row.exempt for row in rows), default=0)
    return [row for row in rows if (row.reading, row.exempt) == (reading, least)]


def _counted(row: RuleRow) -> dict[str, Any]:
    """The first cells of a row."""
    return {"ballots": row.logged_protocol, "counted as": row.target}


def _conventions(rows: Sequence[RuleRow]) -> str:
    """Under which conventions a single winner is single."""
    return "".join(dict.fromkeys(f"{row.convention} " for row in rows if row.convention))


def protocols_table(found: RecountResult, told: Sequence[str]) -> Table | None:
    """Each protocol's ballots under some rules, a tie staying a tie."""
    rows = [r for r in _with_fewest_exempt(found.rules, "set") if r.target in told and r.other]
    own = [row for row in rows if row.target not in PROTOCOLS]
    points = any(row.point_only for row in rows)
    return of_rows(
        "protocols",
        f"Under {'other rules' if own else 'the other protocols'}",
        "Turns; a tie stays a tie. Single winner: the ballots leave one. "
        f"{_conventions(own)}{HELD}",
        [
            {
                **_counted(row),
                "turns": row.turns,
                "single winner": _bound(row, row.identified),
                "logged winner surely": _bound(row, row.agreement.lower),
                "logged winner possibly": _bound(row, row.agreement.upper),
                **({"logged winner, a point": row.agreement.point} if points else {}),
            }
            for row in rows
        ],
    )


def _bound(row: RuleRow, cell: object) -> object:
    """A cell that says what bounds say; of a rule that gives a point alone there is none."""
    return Written("–", None) if row.point_only else cell


def _within_bounds(row: RuleRow, found: Interval | None) -> Written | int | None:
    """A count with what is certain and possible around it, if anything bounds it."""
    return found.point if row.point_only and found is not None else interval(found)


def rules_table(found: RecountResult, reading: TieReading) -> Table | None:
    """What every rule would have chosen with the fewest exempt voters, under a reading of ties."""
    rows = _with_fewest_exempt(found.rules, reading)
    compared = any(row.compared is not None for row in rows)
    least = min(found.exempt)
    exempt = f", {least} exempt voters" if least else ""
    ties = "ties to the order" if reading == "fallback" else "a tie stays a tie"
    said = ", of those compared, which counting decided" if compared else ""
    return of_rows(
        f"rules-{reading}",
        f"The same ballots under other rules, {ties}{exempt}",
        "Turns. Single: their ballots leave one winner. Same: with the logged winner"
        f"{said}. Flips: the first leader did not win. The figure is the named projection's, in "
        "brackets what is certain and what is possible. Not settled: too costly to decide, "
        f"counted as open. {_conventions(rows)}{RuleRow.asks} {HELD}",
        [
            {
                **_counted(row),
                "turns": row.turns,
                "single": _bound(row, row.identified),
                **({"compared": row.compared} if compared else {}),
                "same": _within_bounds(row, row.agreement),
                "flips": _within_bounds(row, row.flips),
                "not settled": _bound(row, row.not_settled),
            }
            for row in rows
        ],
    )


def approvals_table(found: RecountResult) -> Table | None:
    """Approval voting of ballots of other formats, by how many candidates each voter approves of,
    beside what logged approvals say of that; `None` where one number alone is asked about, or no
    winner is there to be kept."""
    rows = [
        (row, row.approves)
        for row in _with_fewest_exempt(found.approvals, "set")
        if row.other and row.with_winner and row.approves is not None
    ]
    if len({number for _, number in rows}) < 2:
        return None
    logged, told = found.approved, ""
    ballots = sum(logged.values())
    if logged:
        least, most = min(logged), max(logged)
        span = f"{least} to {most}" if least < most else f"{most}"
        told = f"The last column counts logged approval ballots: {ballots:,} approve of {span}. "

    def within(least: int, most: int | None) -> Written:
        """Logged approval ballots of so many candidates."""
        sizes = [size for size in logged if least <= size <= (most or size)]
        return part_of(sum(logged[size] for size in sizes), ballots)

    return of_rows(
        "approvals",
        "Approval voting, by how many candidates each voter approves of",
        "A tie stays a tie. How many each voter approves of is an assumption of its own. In a "
        "range a voter may approve of one of two equal candidates, under “any number” of both or "
        f"neither. {told}{HELD}",
        [
            {
                "ballots": row.logged_protocol,
                "each approves of": number.words,
                "surely kept": row.agreement.lower,
                "surely changed": row.changes,
                "open": row.with_winner - row.agreement.lower - row.changes,
                "turns": row.with_winner,
                **({"logged ballots": within(*number)} if ballots else {}),
            }
            for row, number in rows
        ],
    )


def dial_table(
    rows: Sequence[RuleRow], reading: TieReading, pairs: Iterable[tuple[str, str]], tested: str
) -> Table | None:
    """Turns with one possible winner as voters are exempt from the assumption.

    `pairs`: which logged protocols under which targets. `tested`: how far the assumption was
    tested, in words.
    """
    found = {(r.logged_protocol, r.target, r.exempt): r for r in rows if r.reading == reading}
    exempt = sorted({r.exempt for r in rows})
    lines = []
    for logged, target in pairs:
        own = {k: found[logged, target, k] for k in exempt}
        single = {k: part_of(row.identified, row.turns) for k, row in own.items()}
        certain = {k: part_of(row.agreement.lower, row.turns) for k, row in own.items()}
        if not own[exempt[0]].point_only:
            lines.append(
                {
                    "logged": logged,
                    "counted as": target,
                    **{f"one possible winner, k = {k}": cell for k, cell in single.items()},
                    **{f"logged winner certain, k = {k}": cell for k, cell in certain.items()},
                }
            )
    return of_rows(
        "dial",
        "What is left when voters are exempt",
        f"Recounted. {tested} With "
        "k voters exempt, any k of them may have cast any ballot at all under the other protocol; "
        "the breakdown point of a vote is the smallest k at which its one possible winner is "
        f"lost. {'A tie stays a tie.' if reading == 'set' else 'Ties go to the order.'} {HELD}",
        lines,
    )


def breakdown_table(rows: Sequence[RuleRow], reading: TieReading) -> Table | None:
    """Turns by the number of exempt voters that it takes to lose their one possible winner."""
    own = [row for row in _with_fewest_exempt(rows, reading) if not row.point_only]
    kinds = dict.fromkeys(kind for row in own for kind, n in row.breakdown.items() if n)
    numbers = sorted((kind for kind in kinds if kind.isdecimal()), key=int)
    heads = [*numbers, *(kind for kind in ("never", "not_settled") if kind in kinds)]
    return of_rows(
        "breakdown",
        "Exempt voters that it takes to lose the winner",
        "Turns by the fewest exempt voters with whom a second winner is possible. 0: two were "
        "possible to begin with. Never: no number of them does it. Not settled: finding it takes "
        f"too much work. {_TIES[reading]} {_conventions(own)}{HELD}",
        [{**_counted(row), **{kind: row.breakdown.get(kind, 0) for kind in heads}} for row in own],
    )


def rule_wins_table(rows: Sequence[RuleRow], reading: TieReading) -> Table | None:
    """Wins of every candidate under every rule, with the fewest exempt voters."""
    own = _with_fewest_exempt(rows, reading)
    names = list(dict.fromkeys(name for row in own for name in row.wins))
    said = dict.fromkeys(f"{r.logged_protocol} as {r.target} by {r.projection}" for r in own)
    return of_rows(
        "rule-wins",
        "Wins under other rules",
        f"Turns, in brackets what is certain and what is possible. {_TIES[reading]} Projections: "
        f"{'; '.join(said)}. {_conventions(own)}{RuleRow.asks} {HELD}",
        [
            {
                **_counted(row),
                **{
                    name: _within_bounds(row, row.wins[name]) if name in row.wins else ""
                    for name in names
                },
            }
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


def _by_protocol(
    rows: Sequence[R], full: bool, shown: Callable[[Sequence[R], str | None], Table | None]
) -> Parts:
    """A table of all protocols together; in full also of each of them, if there are several."""
    protocols = list(dict.fromkeys(row.protocol for row in rows))
    for protocol in protocols:
        if protocol is None or (full and len(protocols) > 2):
            yield shown(rows, protocol)


def _readings(found: RecountResult, _: str, full: bool) -> Parts:
    if not found.readings:
        yield "Ballots read again: there are no raw replies to read."
    yield from _by_protocol(found.readings, full, readings_table)


SECTIONS: Final[Mapping[str, Callable[[RecountResult, str, bool], Parts]]] = {
    "orders": _orders,
    "policies": lambda found, _, full: _by_protocol(found.policies, full, policies_table),
    "rules": _rules,
    "electorates": lambda found, _, full: _by_protocol(found.electorates, full, electorates_table),
    "readings": _readings,
}
"""Name → what a recount shows of it, in the order of the questions.

Given: the recount; in words, how far the assumption behind the sets was tested; whether to show
every order, every protocol and all wins."""
