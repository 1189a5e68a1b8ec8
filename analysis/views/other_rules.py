"""The same ballots under other rules, as tables: what is certain or possible, and how long."""

from collections.abc import Iterable, Sequence
from typing import Final

from tutorsim.analysis.identify import TieReading
from tutorsim.analysis.recount import RecountResult, RuleRow
from tutorsim.analysis.views.cells import Table, part_of, table
from tutorsim.analysis.views.counterfactual_captions import HELD, captions, interval
from tutorsim.vocabularies import PROTOCOLS

__all__ = [
    "breakdown_table",
    "dial_table",
    "protocols_table",
    "rule_wins_table",
    "rules_table",
]

Rows = Sequence[RuleRow]
Pairs = Iterable[tuple[str, str]]
"""Logged protocol and target."""

_TIES: Final = {
    "fallback": "Ties go to the fallback order.",
    "set": "A tie stays a tie.",
}
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
    return table(
        "protocols",
        f"Under {'other rules' if own else 'the other protocols'}",
        "Turns; a tie stays a tie. Single winner: the ballots leave one. "
        f"{_conventions(own)}{HELD}",
        [*_COUNTED, "turns", "single winner", "logged winner surely", "logged winner possibly"],
        [
            (
                *(row.logged_protocol, row.target, row.turns, row.identified),
                *(row.agreement.lower, row.agreement.upper),
            )
            for row in rows
        ],
    )


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
                *(row.logged_protocol, row.target, row.turns, row.identified),
                *((row.compared,) if compared else ()),
                *(interval(row.agreement), interval(row.flips), row.not_settled),
            )
            for row in rows
        ],
    )


def dial_table(rows: Rows, reading: TieReading, pairs: Pairs, tested: str) -> Table | None:
    """Turns with one possible winner as voters are exempt from the assumption.

    Args:
        rows: Of a recount.
        reading: What a tie means.
        pairs: Which logged protocols under which targets.
        tested: How far the assumption was tested, in words.
    """
    cells: dict[tuple[str, str, int], RuleRow] = {
        (r.logged_protocol, r.target, r.exempt): r for r in rows if r.reading == reading
    }
    exempt = sorted({r.exempt for r in rows})
    lines = []
    for logged, target in pairs:
        own = [cells[logged, target, k] for k in exempt]
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
        "the breakdown point of a turn is the smallest k at which its one possible winner is "
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
    own = [r for r in rows if (r.reading, r.exempt) == (reading, least)]
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
                *(interval(row.wins[name]) if name in row.wins else "" for name in names),
            )
            for row in own
        ],
    )
