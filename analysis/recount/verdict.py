"""The summary of a panel's run or of ballots: its first sentences, texts, tables and costs."""

from collections.abc import Sequence

from tutorsim.analysis.counting.rule_definitions import TARGETS, Approvals
from tutorsim.analysis.pages.words import counted, listed, share
from tutorsim.analysis.recount import RecountResult, RuleRow
from tutorsim.vocabularies import PROTOCOLS

# --- Verdicts -----------------------------------------------------------------------------------


def recount_verdict(found: RecountResult) -> tuple[str, ...]:
    """What every rule that was asked surely keeps and changes, and what the ballots leave open.

    Where no rule in particular was asked, the order's part comes first, and of the shipped rules
    the protocols alone are told.
    """
    if not found.turns:
        return ("There is no voting turn to recount.",)
    by_order = (_by_order(found),) if found.orders and _asks_every_rule(found) else ()
    sentences = tuple(
        _under(rule, _other_than_logged(found, rule)) + _along(rule, found)
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
    return tuple(r for r in asked if {r} != logged and (r in PROTOCOLS or _is_own(r)))


def _asks_every_rule(found: RecountResult) -> bool:
    return not found.rules or {row.target for row in found.rules}.issuperset(TARGETS)


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


def _is_own(target: str) -> bool:
    return target not in TARGETS


def _under(target: str, every: Sequence[RuleRow]) -> str:
    rows = [row for row in every if row.reading == "set"]
    by_order = [row.agreement.lower for row in every if row.reading == "fallback"]
    turns = sum(row.turns if row.compared is None else row.compared for row in rows)
    keeps = sum(row.agreement.lower for row in rows)
    changes = sum(row.changes for row in rows)
    is_protocol = target in PROTOCOLS
    rule = f"{target.capitalize()} voting" if is_protocol else f"The rule {target}"
    if not every:
        return f"{rule}: every turn was logged under it, so there is nothing to recount."
    if not turns:
        return f"{rule}: no turn has a logged winner to compare with."
    if rows[0].point_only:
        return f"{rule} keeps the winner of {_points(every, turns)}: a point, which nothing bounds."
    logged = " logged under another protocol" if is_protocol else ""
    return (
        f"{rule} surely keeps the winner of {keeps:,} of {counted(turns, 'turn')}{logged}; "
        f"it surely changes {changes:,}, and {turns - keeps - changes:,} are open. A tie counts "
        "here as nobody's win." + _ties_to_the_order(by_order)
    )


def _along(target: str, found: RecountResult) -> str:
    """What approval voting keeps, by how many candidates each voter approves of; else empty."""
    kept: dict[Approvals, int] = {}
    least = min(found.exempt)
    for row in found.approvals:
        asked = (row.reading, row.exempt) == ("set", least) and row.logged_protocol != target
        if target == "approval" and asked and row.approves is not None:
            kept[row.approves] = kept.get(row.approves, 0) + row.agreement.lower
    if not kept:
        return ""
    if len(kept) == 1:
        return f" Each voter is taken to approve of {next(iter(kept)).words}."
    numbers = listed([number.words for number in kept])
    counts = ", ".join(f"{n:,}" for n in kept.values())
    return f" If each voter approves of {numbers}, it surely keeps {counts}."


def _points(every: Sequence[RuleRow], turns: int) -> str:
    """Of a rule that gives points alone: turns that keep their winner, by each reading of ties."""
    of = {
        reading: sum(row.agreement.point or 0 for row in every if row.reading == reading)
        for reading in dict.fromkeys(row.reading for row in every)
    }
    kept = f"{share(of['set'], turns, 'turn')}, as long as a tie counts as nobody's win"
    if "fallback" not in of:
        return kept
    return f"{kept}, and of {of['fallback']:,} with ties given to the fallback order"


def _ties_to_the_order(keeps: Sequence[int]) -> str:
    """What is sure once the order decides ties; empty where no order is logged."""
    if not keeps:
        return ""
    return f" With ties given to the fallback order it surely keeps {sum(keeps):,}."


def _untested(found: RecountResult) -> str:
    more = [k for k in found.exempt if k]
    if not more:
        return "This holds while every voter prefers the same in every format."
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
        "“Surely” holds while every voter prefers the same in every format, which these ballots "
        "do not test"
    )
    if not sure[0]:
        return f"{assumed}."
    return (
        f"{assumed}. Where {counted(k, 'voter')} of a turn may have cast anything, {sure[1]:,} of "
        f"the {sure[0]:,} answers “surely keeps” are left (a turn has one for each rule)."
    )
