"""What a recount says first: a sentence and a row for every rule that was asked."""

from collections.abc import Sequence

from tutorsim.analysis.counting.rule_definitions import TARGETS
from tutorsim.analysis.pages.cells import DASH, Table, table
from tutorsim.analysis.pages.words import counted, share
from tutorsim.analysis.recount import RecountResult, RuleRow
from tutorsim.analysis.recount.tables import HELD
from tutorsim.vocabularies import PROTOCOLS

# --- Verdicts -----------------------------------------------------------------------------------


def recount_verdict(found: RecountResult) -> tuple[str, ...]:
    """What the order decided, and what every rule that was asked surely keeps.

    No sentence has more than two numbers; `verdict_table` has the others. Where no rule in
    particular was asked, the order's part comes first, and of the shipped rules the protocols
    alone are told.
    """
    if not found.turns:
        return ("There is no voting turn to recount.",)
    by_order = (_by_order(found),) if found.orders and _asks_every_rule(found) else ()
    sentences = tuple(
        _under(rule, _other_than_logged(found, rule)) + _taken(rule, found)
        for rule in told_rules(found)
    )
    if all(row.point_only for row in found.rules):
        return (*by_order, *sentences)
    return (*by_order, *sentences, _untested(found))


def told_rules(found: RecountResult) -> tuple[str, ...]:
    """The rules that a first screen tells of: those asked, or the protocols and own rules."""
    asked = tuple(dict.fromkeys(row.target for row in found.rules))
    if not _asks_every_rule(found):
        return asked
    logged = {row.logged_protocol for row in found.rules}
    return tuple(r for r in asked if {r} != logged and (r in PROTOCOLS or r not in TARGETS))


def _asks_every_rule(found: RecountResult) -> bool:
    """Whether no rule in particular was asked: of those shipped all, or the protocols alone."""
    shipped = {row.target for row in found.rules}.intersection(TARGETS)
    return not found.rules or shipped in (set(TARGETS), set(PROTOCOLS))


def _other_than_logged(found: RecountResult, target: str) -> list[RuleRow]:
    """Over all logged protocols, with the fewest exempt voters, both readings of ties."""
    least = min(found.exempt)
    return [
        row
        for row in found.rules
        if (row.target, row.exempt) == (target, least) and row.logged_protocol != target
    ]


def _by_order(found: RecountResult) -> str:
    everything = found.orders[0]
    tied, turns = everything.decided_by_order, everything.turns
    if not everything.logged_order:
        return f"Counting leaves {share(tied, turns, 'turn')} tied, and no order is logged."
    if not tied:
        return f"No fallback order would change a winner of {counted(turns, 'turn')}."
    return (
        f"The fallback order decided {share(tied, turns, 'turn')}: under another one they may "
        "be won by another candidate."
    )


def _under(target: str, every: Sequence[RuleRow]) -> str:
    rows = [row for row in every if row.reading == "set"]
    turns = _turns(rows)
    rule = f"{target.capitalize()} voting" if target in PROTOCOLS else f"The rule {target}"
    if not every:
        return f"{rule}: every turn was logged under it, so there is nothing to recount."
    if not turns:
        return f"{rule}: no turn has a logged winner to compare with."
    if rows[0].point_only:
        return f"{rule} keeps the winner of {_points(every, turns)}"
    kept = sum(row.agreement.lower for row in rows)
    return f"{rule} surely keeps the winner of {kept:,} of {counted(turns, 'turn')}."


def _turns(rows: Sequence[RuleRow]) -> int:
    """Turns that have a logged winner to compare with."""
    return sum(row.turns if row.compared is None else row.compared for row in rows)


def _taken(target: str, found: RecountResult) -> str:
    """How many candidates each voter is taken to approve of, where one number was asked about."""
    numbers = {row.approves for row in found.approvals}
    if target != "approval" or len(numbers) != 1:
        return ""
    [number] = numbers
    return f" Each voter is taken to approve of {number.words}." if number else ""


def _points(every: Sequence[RuleRow], turns: int) -> str:
    """Of a rule that gives points alone: turns that keep their winner, by each reading of ties."""
    of = {
        reading: sum(row.agreement.point or 0 for row in every if row.reading == reading)
        for reading in dict.fromkeys(row.reading for row in every)
    }
    kept = (
        f"{share(of['set'], turns, 'turn')}, as long as a tie counts as nobody's win: a point, "
        "which nothing bounds."
    )
    if "fallback" not in of:
        return kept
    return f"{kept} With ties given to the fallback order it keeps {of['fallback']:,}."


# --- Table ---------------------------------------------------------------------------------------


def verdict_table(found: RecountResult) -> Table | None:
    """Turns that every rule told of surely keeps, surely changes and leaves open.

    Approval voting has a row for every range of approvals; a rule that gives points alone has
    none.
    """
    least, kept = min(found.exempt), {}
    for rule in told_rules(found):
        if rule != "approval" or not found.approvals:
            kept[rule] = _kept(_other_than_logged(found, rule))
            continue
        for number in dict.fromkeys(row.approves for row in found.approvals):
            asked = [r for r in found.approvals if (r.approves, r.exempt) == (number, least)]
            named = f"{rule}, {number.words}" if number else rule
            kept[named] = _kept([row for row in asked if row.logged_protocol != rule])
    cells = [(rule, *numbers) for rule, numbers in kept.items() if numbers is not None]
    ordered = any(row.reading == "fallback" for row in found.rules)
    last = ("kept, ties to the order",) if ordered else ()
    return table(
        "kept",
        "What other rules keep of the logged winners",
        "Votes with a logged winner, logged under another rule. Open: the ballots allow both."
        + (" In the last column the fallback order decides ties." if ordered else "")
        + f" {HELD}",
        ["rule", "turns", "surely kept", "surely changed", "open", *last],
        [row if ordered else row[:-1] for row in cells],
    )


def _kept(every: Sequence[RuleRow]) -> tuple[object, ...] | None:
    """Turns, and of them surely kept, changed, open, and kept with ties to the order."""
    rows = [row for row in every if row.reading == "set"]
    turns = _turns(rows)
    if not turns or rows[0].point_only:
        return None
    keeps, changes = sum(r.agreement.lower for r in rows), sum(r.changes for r in rows)
    by_order = [row.agreement.lower for row in every if row.reading == "fallback"]
    return (turns, keeps, changes, turns - keeps - changes, sum(by_order) if by_order else DASH)


# --- What it assumes -----------------------------------------------------------------------------


def _untested(found: RecountResult) -> str:
    """That a tie is nobody's win, what “surely” assumes, and what stays with exempt voters."""
    ties = "A tie counts as nobody's win."
    more = [k for k in found.exempt if k]
    if not more:
        return f"{ties} “Surely” holds while every voter prefers the same in every format."
    k, told = more[0], told_rules(found)
    sure = [
        sum(
            row.agreement.lower
            for row in found.rules
            if (row.reading, row.exempt) == ("set", exempt)
            and row.target in told
            and row.logged_protocol != row.target
        )
        for exempt in (min(found.exempt), k)
    ]
    assumed = (
        f"{ties} “Surely” holds while every voter prefers the same in every format, which these "
        "ballots do not test"
    )
    if not sure[0]:
        return f"{assumed}."
    return (
        f"{assumed}. Over all rules {sure[0]:,} winners are surely kept. Where "
        f"{counted(k, 'voter')} of a turn may have cast anything, {sure[1]:,} still are."
    )
