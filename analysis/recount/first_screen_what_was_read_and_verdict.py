"""What a recount says first: what was read, then a sentence and a row for every rule asked."""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final

import polars as pl

from tutorsim.analysis.ballots.recount_source import Source
from tutorsim.analysis.ballots.vote_arrays_and_profiles import BALLOT
from tutorsim.analysis.counting.names_and_parameters_of_rules import TARGETS
from tutorsim.analysis.pages.decorators_to_declare_tables_and_charts import Row, table
from tutorsim.analysis.pages.words_and_safe_text import counted, listed, share
from tutorsim.analysis.recount.result_models import RecountResult, RuleRow
from tutorsim.analysis.recount.tables import HELD, fewest_exempt
from tutorsim.analysis.statistics import by_key
from tutorsim.vocabularies import PROTOCOLS

# --- What was read ------------------------------------------------------------------------------

_NAMED, _FEW = 8, 4
"""Candidates that are named, and votes whose winners are."""
_LOOKED_AT: Final = 10_000
"""Rows among which a ballot is looked for that puts somebody first."""
_BEST: Final = {
    "ranked": "A ranking is read best first",
    "cumulative": "The most points are the best",
    "score": "The highest score is the best",
}


def read_words(source: Source, found: RecountResult) -> tuple[str, ...]:
    """Sentences on ballots from elsewhere: votes, voters, candidates, which end is best, who won.

    No sentence has more than two numbers. Of a run, without a vote, and where `found` lacks
    the table `orders`, nothing is said.
    """
    if source.run is not None or not found.turns or not found.orders:
        return ()
    low = {"score": "The lowest score is the best"} if source.low_is_best else {}
    names, best = sorted(source.order), {**_BEST, **low}
    some = [*names[:_NAMED], f"{len(names) - _NAMED:,} more"] if len(names) > _NAMED else names
    forms = [row.protocol for row in found.orders if row.protocol]
    rows = source.ballots if source.batches is None else None
    return (
        f"{counted(found.turns, 'vote')} {_voters(source, found.turns)}, {listed(forms)} ballots"
        f"{_abstentions(rows)}. Candidates: {listed(some)}.",
        *(f"{best[form]}{_put_first(rows, form)}." for form in forms if form in best),
        _wins(found, forms),
    )


def _voters(source: Source, votes: int) -> str:
    """`of 12 voters`, `of 3 voters each`, or `of up to 3 voters each`."""
    if source.batches is not None:
        return f"by {counted(len(source.batches.voters), 'voter')}"
    final = source.ballots.filter(pl.col("stage") == "vote_final")
    each = final.group_by("episode_id", "turn").agg(pl.col("voter").n_unique())["voter"].to_list()
    most = "of " if min(each) == max(each) else "of up to "
    return f"{most}{counted(max(each), 'voter')}{' each' if votes > 1 else ''}"


def _abstentions(rows: pl.DataFrame | None) -> str:
    if rows is None or not rows.get_column("mass").null_count():
        return ""
    empty = pl.col("mass").is_null().all().over(BALLOT)
    n = rows.filter(empty).select(BALLOT).unique().height
    return f". {counted(n, 'ballot')} {'is' if n == 1 else 'are'} without a mark" if n else ""


def _put_first(rows: pl.DataFrame | None, form: str) -> str:
    """Whom a ballot of a form puts first and last: the first ballot that puts one there each."""
    if rows is None:
        return ""
    mass = pl.col("mass")
    rows = rows.filter(pl.col("protocol") == form).head(_LOOKED_AT)
    best, worst = mass.max().over(BALLOT), mass.min().over(BALLOT)
    one_each = [(mass == end).sum().over(BALLOT) == 1 for end in (best, worst)]
    marked = rows.filter(*one_each, best > worst)
    ballot = marked.join(marked.head(1).select(BALLOT), on=BALLOT).drop_nulls("mass").sort("mass")
    if not ballot.height:
        return ""
    last, *_, first = ballot.get_column("candidate")
    return f": voter {ballot['voter'][0]} puts {first} first and {last} last"


def _wins(found: RecountResult, forms: Sequence[str]) -> str:
    """Who won a single vote, or each of a few, or who won most often."""
    every = found.orders[0]
    wins = {c.candidate: c.least if c.logged is None else c.logged for c in every.candidates}
    open_ties = 0 if every.logged_order else every.decided_by_order
    led = sorted((name for name, n in wins.items() if n), key=lambda name: (-wins[name], name))
    if every.turns == 1:
        tied = [c.candidate for c in every.candidates if c.most]
        by = ", by Borda points" if "ranked" in forms else ""
        return f"Winner{by}: {led[0]}." if led else f"Tied for the win{by}: {listed(tied)}."
    if every.turns <= _FEW:
        each = found.turns_under("simple").unique(["episode_id", "turn"], maintain_order=True)
        cells = each.select("episode_id", "turn", "logged_winner").rows()
        again = each["episode_id"].is_duplicated().any()
        won = (f"{name or 'a tie'} in {e}{f', {t}' * again}" for e, t, name in cells)
        return f"Winners: {'; '.join(won)}."
    most = ", ".join(f"{name} in {wins[name]:,}" for name in led[:2])
    others = f"; {counted(len(led) - 2, 'other candidate')} won too" if len(led) > 2 else ""
    ties = f" {counted(open_ties, 'vote')} ended in a tie." if led and open_ties else ""
    return f"Won most often: {most}{others}.{ties}" if led else "Every vote ended in a tie."


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
        _under(rule, _other_than_logged(found.rules, rule, min(found.exempt))) + _taken(rule, found)
        for rule in told_rules(found)
    )
    only_points = all(row.point_only for row in found.rules)
    return (*by_order, *sentences, *(() if only_points else (_untested(found),)))


def told_rules(found: RecountResult) -> tuple[str, ...]:
    """The rules that a first screen tells of: those asked, or the protocols and own rules."""
    asked = tuple(dict.fromkeys(row.target for row in found.rules))
    if not _asks_every_rule(found):
        return asked
    logged = {row.logged_protocol for row in found.rules}
    return tuple(r for r in asked if {r} != logged and (r in PROTOCOLS or r not in TARGETS))


def told_rows(found: RecountResult) -> list[RuleRow]:
    """Rows of those rules for ballots logged under another, a tie staying a tie."""
    told = told_rules(found)
    return [row for row in fewest_exempt(found.rules, "set") if row.target in told and row.other]


def _asks_every_rule(found: RecountResult) -> bool:
    """Whether no rule in particular was asked: of those shipped all, or the protocols alone."""
    shipped = {row.target for row in found.rules}.intersection(TARGETS)
    return not found.rules or shipped in (set(TARGETS), set(PROTOCOLS))


def _other_than_logged(rows: Sequence[RuleRow], target: str, exempt: int) -> list[RuleRow]:
    """Rows of ballots logged under any other rule, both readings of ties."""
    return [r for r in rows if (r.target, r.exempt) == (target, exempt) and r.other]


def _by_order(found: RecountResult) -> str:
    everything = found.orders[0]
    tied, turns = everything.decided_by_order, everything.turns
    if not everything.logged_order:
        return f"Counting leaves {share(tied, turns, 'turn')} tied, and no order is logged."
    if not tied:
        return f"No fallback order would change a winner of {counted(turns, 'turn')}."
    return (
        f"The fallback order decided {share(tied, turns, 'turn')}: another order may give them to "
        "another candidate."
    )


def _under(target: str, every: Sequence[RuleRow]) -> str:
    rows = [row for row in every if row.reading == "set"]
    turns = sum(row.with_winner for row in rows)
    rule = f"{target.capitalize()} voting" if target in PROTOCOLS else f"The rule {target}"
    if not every:
        return f"{rule}: every turn was logged under it, so there is nothing to recount."
    if not turns:
        return f"{rule}: no turn has a logged winner to compare with."
    if not rows[0].point_only:
        kept = sum(row.agreement.lower for row in rows)
        return f"{rule} surely keeps the winner of {kept:,} of {counted(turns, 'turn')}."
    points = Counter[str]()
    for row in every:
        points[row.reading] += row.agreement.point or 0
    said = (
        f"{rule} keeps the winner of {share(points['set'], turns, 'turn')}, as long as a tie "
        "counts as nobody's win: a point, which nothing bounds."
    )
    if "fallback" not in points:
        return said
    return f"{said} With ties given to the fallback order it keeps {points['fallback']:,}."


def _taken(target: str, found: RecountResult) -> str:
    """How many candidates each voter is taken to approve of, where one number was asked about."""
    numbers = {row.approves for row in found.approvals}
    if target != "approval" or len(numbers) != 1:
        return ""
    [number] = numbers
    return f" Each voter is taken to approve of {number.words}." if number else ""


# --- Table ---------------------------------------------------------------------------------------


def _ordered(found: RecountResult) -> bool:
    return any(row.reading == "fallback" for row in found.rules)


@table(
    "kept",
    "What other rules keep of the logged winners",
    ties=lambda of: "In the last column the fallback order decides ties. " * _ordered(of),
    held=HELD,
)
def verdict_table(found: RecountResult) -> Iterator[Row]:
    """Votes with a logged winner, logged under another rule. Open: the ballots allow both.
    {ties}{held}"""
    # approval voting has a row for every range of approvals; what gives points alone has none
    for rule in told_rules(found):
        asked = found.approvals if rule == "approval" else found.rules
        every = _other_than_logged(asked, rule, min(found.exempt))
        for number, of in by_key((row.approves, row) for row in every).items():
            rows = [row for row in of if row.reading == "set"]
            turns = sum(row.with_winner for row in rows)
            if not turns or rows[0].point_only:
                continue
            keeps, changes = sum(r.agreement.lower for r in rows), sum(r.changes for r in rows)
            by_order = sum(row.agreement.lower for row in of if row.reading == "fallback")
            yield {
                "rule": f"{rule}, {number.words}" if number else rule,
                "surely kept": keeps,
                "surely changed": changes,
                "open": turns - keeps - changes,
                "turns": turns,
                **({"kept, ties to the order": by_order} if _ordered(found) else {}),
            }


# --- What it assumes -----------------------------------------------------------------------------


def _untested(found: RecountResult) -> str:
    """Sentence on ties, on what “surely” assumes, and on what stays with exempt voters."""
    ties = "A tie counts as nobody's win."
    more = [k for k in found.exempt if k]
    if not more:
        return f"{ties} “Surely” holds while every voter prefers the same in every format."
    sure = [
        sum(
            row.agreement.lower
            for rule in told_rules(found)
            for row in _other_than_logged(found.rules, rule, exempt)
            if row.reading == "set"
        )
        for exempt in (min(found.exempt), more[0])
    ]
    assumed = (
        f"{ties} “Surely” holds while every voter prefers the same in every format, which these "
        "ballots do not test"
    )
    if not sure[0]:
        return f"{assumed}."
    return (
        f"{assumed}. Winners surely kept over all rules: {sure[0]:,}. If any "
        f"{counted(more[0], 'voter')} of a turn may have cast another ballot: {sure[1]:,}."
    )
