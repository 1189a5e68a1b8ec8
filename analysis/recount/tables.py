"""A recount by section, as texts and tables: orders, tie policies, rules, electorates."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any, Final, NamedTuple, TypeVar

import polars as pl

from tutorsim.analysis.identify.possible_winners import TieReading
from tutorsim.analysis.pages.cells_and_tables import DASH, Part, Written, bounds_of, number, part_of
from tutorsim.analysis.pages.decorators_to_declare_tables_and_charts import (
    DeclaredTable,
    Rows,
    RowsOf,
    table,
)
from tutorsim.analysis.recount.result_models import (
    ElectorateRow,
    Interval,
    OrderTable,
    PolicyRow,
    ReadingRow,
    RecountResult,
    RuleRow,
)
from tutorsim.analysis.statistics import by_key
from tutorsim.vocabularies import PROTOCOLS

R = TypeVar("R", PolicyRow, ElectorateRow, ReadingRow)

# --- Counterfactual captions ---------------------------------------------------------------------

HELD: Final = "All that came before a vote is held fixed."
"""Ends the caption of every counterfactual; the head of a recount says it in full."""


def exact(found: Fraction | None) -> Written:
    """An exact number, whole where it is one; a dash if there is none."""
    if found is None:
        return number(None)
    return number(float(found), digits=0 if found.denominator == 1 else 1)


def rounded(found: Fraction | None, digits: int = 1) -> Written:
    """An exact number to so many digits; a dash if there is none."""
    return number(None if found is None else round(float(found), digits), digits=digits)


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


@table(
    "order-wins",
    "Wins {under}",
    under=lambda of: "under every fallback order" if of.logged_order else "whatever the order",
    order=lambda of: (
        f". Logged order: {' > '.join(of.logged_order)}."
        if of.logged_order
        else f", of which counting leaves {of.decided_by_order:,} tied; an order would decide "
        "those."
    ),
    owed=lambda of: " Owed: turns of “logged” that the order decided." if of.logged_order else "",
    held=HELD,
)
def order_wins_table(found: OrderTable) -> Rows:
    """Turns won, of {turns}{order} Robust: won under every order. By lot: mean over all
    orders.{owed} {asks} {held}"""
    for row in found.candidates:
        yield {
            "candidate": row.candidate,
            **({"logged": row.logged} if found.logged_order else {}),
            "robust": row.robust,
            "at most": row.most,
            "by lot": exact(row.expected),
            **(
                {"owed": row.by_order, "share owed": rounded(row.share_by_order, 2)}
                if found.logged_order
                else {}
            ),
        }


@table("by-order", "What the order decides", held=HELD)
def by_order_table(found: Sequence[OrderTable]) -> Rows:
    """Turns. By lot: changed on average under an order drawn at random. At most: under the order
    that changes the most turns. {held}"""
    for of in found:
        yield {
            "protocol": of.protocol or "all",
            "turns": of.turns,
            "decided by the order": of.decided_by_order,
            "changed by lot": exact(of.changed_expected),
            "changed at most": of.changed_most,
        }


def _places(found: OrderTable) -> dict[str, str]:
    """Candidate → its short name in a list of orders."""
    return {row.candidate: str(place) for place, row in enumerate(found.candidates, start=1)}


@table(
    "orders-{whose}",
    "{wins}",
    whose=lambda of: of.protocol or "all",
    wins=lambda of: _listed_title(of),
    places=lambda of: ", ".join(f"{place}: {name}" for name, place in _places(of).items()),
    held=HELD,
)
def listed_orders_table(found: OrderTable) -> Rows:
    """{places}. {asks} {held}"""
    short = _places(found)
    for row in found.listed:
        yield {
            "order": " > ".join(short[name] for name in row.order),
            **{place: row.wins[name] for name, place in short.items()},
            "changed": row.changed,
        }


def _listed_title(found: OrderTable) -> str:
    return f"Wins under each of {found.many} orders, {found.protocol or 'all protocols'}"


def _of_ballots(name: str, title: str, **words: Any) -> Callable[[RowsOf[Any]], DeclaredTable[Any]]:
    """Declares a table of one protocol's ballots, as its name and title say, or of all."""

    def said(text: str) -> Callable[[Sequence[R]], str]:
        return lambda rows: text.format(rows[0].protocol) if rows[0].protocol else ""

    return table(
        f"{name}{{which}}", f"{title}{{ballots}}",
        which=said("-{}"), ballots=said(", {} ballots"), held=HELD, **words,
    )  # fmt: skip


def of_protocol(rows: Sequence[R], protocol: str | None = None) -> list[R]:
    """Rows with turns of one protocol's ballots, or of all."""
    return [row for row in rows if row.protocol == protocol and row.turns]


@_of_ballots(
    "policies",
    "Other ways to break ties",
    turns=lambda rows: f"{rows[0].turns:,}",
    compared=lambda rows: (
        ""
        if rows[0].compared is None
        else f" (compared: the {rows[0].compared:,} that counting decided)"
    ),
    logged=lambda rows: (
        "as logged in the row of that name, recounted in the others; "
        if any(row.policy == "logged" for row in rows)
        else ""
    ),
)
def policies_table(rows: Sequence[PolicyRow]) -> Rows:
    """Votes whose winner changes{compared}, and wins of each candidate, of {turns}:
    {logged}expectations where a lot is drawn. Exact. {held}"""
    for row in rows:
        if row.policy != "tie_round" or row.changed:
            yield {
                "tie policy": _POLICIES[row.policy],
                "turns changed": rounded(row.changed),
                **{f"wins of {name}": rounded(won) for name, won in row.wins.items()},
            }


# --- Other electorates ---------------------------------------------------------------------------

_SCENARIOS: Final = {
    "without_deliberation": "the first vote decides",
    "leave_one_out": "without one voter",
    "no_own_votes": "no votes for one's own draft",
    "confidence_weighted": "votes weighted by stated confidence",
}


def _compared(rows: Sequence[ElectorateRow | RuleRow]) -> bool:
    """Whether some turns have no logged winner to compare with."""
    return any(row.compared is not None for row in rows)


@_of_ballots(
    "electorates",
    "Other electorates",
    decide=lambda rows: (
        "has a figure where they meet" if _compared(rows) else "lets the fallback order decide them"
    ),
    compared=lambda rows: (
        "Compared with logged winners are those that counting decided. " * _compared(rows)
    ),
)
def electorates_table(rows: Sequence[ElectorateRow]) -> Rows:
    """Recounted: votes whose winner changes. Bounds leave ties open that nobody was asked to vote
    on; the last column {decide}. Left out: votes that lack a first vote, the voter or a stated
    confidence. {compared}{held}"""
    for row in rows:
        yield {
            "counted": f"without {row.voter}" if row.voter else _SCENARIOS[row.scenario],
            "turns": row.turns,
            "left out": row.not_computable,
            **({"compared": row.compared} if _compared(rows) else {}),
            "winners changed": bounds_of(row.changed.lower, row.changed.upper),
            "ties to the order": row.changed.point,
        }


@_of_ballots("readings", "Ballots read again")
def readings_table(rows: Sequence[ReadingRow]) -> Rows:
    """The raw replies of the recording, read by a stricter and by a more lenient reader; runs use
    the standard one. What a reader refuses counts as an abstention, since nobody asked again.
    {held}"""
    for row in rows:
        yield {
            "reading": row.reading,
            "turns": row.turns,
            "ballots read otherwise": part_of(row.ballots_changed, row.ballots),
            "unreadable ballots": row.abstained,
            "winners changed": bounds_of(row.changed.lower, row.changed.upper),
        }


# --- Other rules ---------------------------------------------------------------------------------

_TIES: Final = {"fallback": "Ties go to the fallback order.", "set": "A tie stays a tie."}


def fewest_exempt(rows: Sequence[RuleRow], reading: TieReading) -> list[RuleRow]:
    """Rows of one reading of ties, with the fewest exempt voters that were asked about."""
    least = min((row.exempt for row in rows), default=0)
    return [row for row in rows if (row.reading, row.exempt) == (reading, least)]


def _counted(row: RuleRow) -> dict[str, Any]:
    """The first cells of a row."""
    return {"ballots": row.logged_protocol, "counted as": row.target}


def _conventions(rows: Sequence[RuleRow]) -> str:
    """Under which conventions a single winner is single."""
    return "".join(dict.fromkeys(f"{row.convention} " for row in rows if row.convention))


def _ties(rows: Sequence[RuleRow]) -> str:
    return _TIES[rows[0].reading]


def _if_bounded(text: str) -> Callable[[Sequence[RuleRow]], str]:
    """What is said of bounds; of rules that give a point alone there are none."""
    return lambda rows: "" if all(row.point_only for row in rows) else text


def _bound(row: RuleRow, cell: object) -> object:
    """A cell that says what bounds say; of a rule that gives a point alone there is none."""
    return Written("–", None) if row.point_only else cell


def _within_bounds(row: RuleRow, found: Interval | None) -> Written | int | None:
    """A count with what is certain and possible around it, if anything bounds it."""
    return found.point if row.point_only and found is not None else interval(found)


def _own(rows: Sequence[RuleRow]) -> list[RuleRow]:
    return [row for row in rows if row.target not in PROTOCOLS]


@table(
    "protocols",
    "Under {others}",
    others=lambda rows: "other rules" if _own(rows) else "the other protocols",
    conventions=lambda rows: _conventions(_own(rows)),
    held=HELD,
)
def protocols_table(rows: Sequence[RuleRow]) -> Rows:
    """Turns; a tie stays a tie. Single winner: the ballots leave one. {conventions}{held}"""
    points = any(row.point_only for row in rows)
    for row in rows:
        yield {
            **_counted(row),
            "turns": row.turns,
            "single winner": _bound(row, row.identified),
            "logged winner surely": _bound(row, row.agreement.lower),
            "logged winner possibly": _bound(row, row.agreement.upper),
            **({"logged winner, a point": row.agreement.point} if points else {}),
        }


_OF_READING: Final = {"fallback": "ties to the order", "set": "a tie stays a tie"}


@table(
    "rules-{reading}",
    "The same ballots under other rules, {ties}{exempt}",
    reading=lambda rows: rows[0].reading,
    ties=lambda rows: _OF_READING[rows[0].reading],
    exempt=lambda rows: f", {rows[0].exempt} exempt voters" if rows[0].exempt else "",
    single=_if_bounded("Single: their ballots leave one winner. "),
    compared=lambda rows: ", of those compared, which counting decided" * _compared(rows),
    bounded=_if_bounded(
        "The figure is the named projection's, in brackets what is certain and what is possible. "
        "Not settled: too costly to decide, counted as open. "
    ),
    conventions=_conventions,
    asks=_if_bounded(f"{RuleRow.asks} "),
    held=HELD,
)
def rules_table(rows: Sequence[RuleRow]) -> Rows:
    """Turns. {single}Same: with the logged winner{compared}. Flips: the first leader did not win.
    {bounded}{conventions}{asks}{held}"""
    for row in rows:
        yield {
            **_counted(row),
            "turns": row.turns,
            "single": _bound(row, row.identified),
            **({"compared": row.compared} if _compared(rows) else {}),
            "same": _within_bounds(row, row.agreement),
            "flips": _within_bounds(row, row.flips),
            "not settled": _bound(row, row.not_settled),
        }


def _logged_numbers(found: RecountResult) -> str:
    """What logged approval ballots say of how many candidates a voter approves of."""
    if not found.approved:
        return ""
    least, most = min(found.approved), max(found.approved)
    span = f"{least} to {most}" if least < most else f"{most}"
    ballots = sum(found.approved.values())
    return f"The last column counts logged approval ballots: {ballots:,} approve of {span}. "


@table(
    "approvals",
    "Approval voting, by how many candidates each voter approves of",
    logged=_logged_numbers,
    held=HELD,
)
def approvals_table(found: RecountResult) -> Rows:
    """A tie stays a tie. How many each voter approves of is an assumption of its own. In a range a
    voter may approve of one of two equal candidates, under “any number” of both or neither.
    {logged}{held}"""
    rows = [
        (row, row.approves)
        for row in fewest_exempt(found.approvals, "set")
        if row.other and row.with_winner and row.approves is not None
    ]
    logged = found.approved

    def within(least: int, most: int | None) -> Written:
        """Logged approval ballots of so many candidates."""
        sizes = [size for size in logged if least <= size <= (most or size)]
        return part_of(sum(logged[size] for size in sizes), sum(logged.values()))

    # one number alone is no range to compare with another
    for row, each in rows if len({each for _, each in rows}) > 1 else ():
        yield {
            "ballots": row.logged_protocol,
            "each approves of": each.words,
            "surely kept": row.agreement.lower,
            "surely changed": row.changes,
            "open": row.with_winner - row.agreement.lower - row.changes,
            "turns": row.with_winner,
            **({"logged ballots": within(*each)} if logged else {}),
        }


class Dial(NamedTuple):
    """Rows of one reading of ties, with every number of exempt voters."""

    rows: Sequence[RuleRow]
    tested: str
    """How far the assumption was tested from which voters are exempt, in words."""


@table(
    "dial",
    "What is left when voters are exempt",
    ties=lambda of: (
        "A tie stays a tie." if of.rows[0].reading == "set" else "Ties go to the order."
    ),
    held=HELD,
)
def dial_table(of: Dial) -> Rows:
    """Recounted. {tested} With k voters exempt, any k of them may have cast any ballot at all under
    the other protocol; the breakdown point of a vote is the smallest k at which its one possible
    winner is lost. {ties} {held}"""
    bounded = (((r.logged_protocol, r.target), r) for r in of.rows if not r.point_only)
    for (logged, target), rows in by_key(bounded).items():
        yield {
            "logged": logged,
            "counted as": target,
            **{
                f"one possible winner, k = {row.exempt}": part_of(row.identified, row.turns)
                for row in rows
            },
            **{
                f"logged winner certain, k = {row.exempt}": part_of(row.agreement.lower, row.turns)
                for row in rows
            },
        }


@table(
    "breakdown",
    "Exempt voters that it takes to lose the winner",
    ties=_ties,
    conventions=lambda rows: _conventions([row for row in rows if not row.point_only]),
    held=HELD,
)
def breakdown_table(rows: Sequence[RuleRow]) -> Rows:
    """Turns by the fewest exempt voters with whom a second winner is possible. 0: two were possible
    to begin with. Never: no number of them does it. Not settled: finding it takes too much work.
    {ties} {conventions}{held}"""
    bounded = [row for row in rows if not row.point_only]
    kinds = dict.fromkeys(kind for row in bounded for kind, n in row.breakdown.items() if n)
    numbers = sorted((kind for kind in kinds if kind.isdecimal()), key=int)
    heads = [*numbers, *(kind for kind in ("never", "not_settled") if kind in kinds)]
    for row in bounded:
        yield {**_counted(row), **{kind: row.breakdown.get(kind, 0) for kind in heads}}


@table(
    "rule-wins",
    "Wins under other rules",
    bounded=_if_bounded(", in brackets what is certain and what is possible"),
    ties=_ties,
    projections=lambda rows: "; ".join(
        dict.fromkeys(f"{r.logged_protocol} as {r.target} by {r.projection}" for r in rows)
    ),
    conventions=_conventions,
    asks=_if_bounded(f"{RuleRow.asks} "),
    held=HELD,
)
def rule_wins_table(rows: Sequence[RuleRow]) -> Rows:
    """Turns{bounded}. {ties} Projections: {projections}. {conventions}{asks}{held}"""
    names = list(dict.fromkeys(name for row in rows for name in row.wins))
    for row in rows:
        wins = row.wins
        yield {
            **_counted(row),
            **{name: _within_bounds(row, wins[name]) if name in wins else "" for name in names},
        }


def turns_table(per_turn: pl.DataFrame) -> pl.DataFrame:
    """Every turn under every target, as other programs read it.

    `fallback_order` is null where a tie stays a tie, and given where ties go to its first.
    """
    goes = pl.col("reading") == "fallback"
    ordered = pl.when(goes).then(pl.col("fallback_order")).alias("fallback_order")
    return per_turn.with_columns(ordered).drop("reading")


# --- Recount sections ----------------------------------------------------------------------------

Parts = Iterator[Part | None]


def _orders(found: RecountResult, _: str, full: bool) -> Parts:
    yield order_wins_table(found.orders[0])
    if found.orders[0].logged_order:
        yield by_order_table(found.orders)
    for of in found.orders if full else ():
        yield listed_orders_table(of) or f"{_listed_title(of)}: too many orders to list."


def _rules(found: RecountResult, tested: str, full: bool) -> Parts:
    readings = dict.fromkeys(row.reading for row in found.rules)
    yield from (rules_table(fewest_exempt(found.rules, reading)) for reading in readings)
    reading: TieReading = "fallback" if "fallback" in readings else "set"
    yield dial_table(Dial([row for row in found.rules if row.reading == reading], tested))
    yield approvals_table(found)
    rows = fewest_exempt(found.rules, reading)
    yield breakdown_table(rows)
    if full:
        yield rule_wins_table(rows)


def _by_protocol(rows: Sequence[R], full: bool, shown: DeclaredTable[Sequence[R]]) -> Parts:
    """A table of all protocols together; in full also of each of them, if there are several."""
    protocols = list(dict.fromkeys(row.protocol for row in rows))
    for protocol in protocols:
        if protocol is None or (full and len(protocols) > 2):
            yield shown(of_protocol(rows, protocol))


def _readings(found: RecountResult, _: str, full: bool) -> Parts:
    if not of_protocol(found.readings):
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
