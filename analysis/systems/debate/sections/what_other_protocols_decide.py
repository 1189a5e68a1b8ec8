"""What other protocols would have decided, and other rules on the votes that decided."""

import textwrap
from collections.abc import Mapping, Sequence
from typing import Final

from tutorsim.analysis.report.document import Section, Table
from tutorsim.analysis.statistics.intervals_and_tests import Estimate, PermutationTest
from tutorsim.analysis.systems.debate.answer_scores import grouped
from tutorsim.analysis.systems.debate.charts import protocols_figure
from tutorsim.analysis.systems.debate.recounted import (
    Changes,
    Contrast,
    Outcome,
    ProtocolRow,
    Rule,
    accounts,
    contrasts,
    possible_outcomes,
    recounted,
    told,
)
from tutorsim.analysis.systems.debate.sections.shared_cells import (
    STUDY_RULES,
    one_number,
    percent_estimate,
    slim,
)
from tutorsim.analysis.views.cells import p_value, present, table
from tutorsim.analysis.views.condition_contrasts import chance_words
from tutorsim.records.debate import DebateRecord
from tutorsim.vocabularies import PROTOCOLS
from tutorsim.voting import MAJORITIES

__all__ = [
    "deciding_section",
    "protocol_chance",
    "protocols_section",
    "rows_section",
]

_MOST_DIFFERING: Final = 20
"""Debates that are shown one by one."""
_LONGEST_ANSWER: Final = 24
"""Characters of an answer without a letter that a cell shows."""


def protocols_section(
    records: Sequence[DebateRecord],
    *,
    seed: int,
    whole: bool = True,
) -> Section:
    """What every protocol would have decided.

    Args:
        records: Complete debates; those that never stopped if there are any, otherwise all.
        seed: Of the draws.
        whole: With differences and further settings; otherwise the first table alone.
    """
    variants = dict.fromkeys(record.variant for record in records)
    further: dict[str, list[Table | None]] = {}
    rows_by_variant: dict[str, list[ProtocolRow]] = {}
    for variant in variants:
        part = [record for record in records if record.variant == variant]
        rows_by_variant[variant] = accounts(part)
        if whole:
            further[variant] = [
                _differing_table(variant, part),
                _contrasts_table(variant, part, seed),
                _settings_table(variant, part),
            ]
    return rows_section(rows_by_variant, further=further, drawn=whole)


def rows_section(
    rows_by_variant: Mapping[str, Sequence[ProtocolRow]],
    *,
    further: Mapping[str, Sequence[Table | None]] = {},
    drawn: bool = False,
) -> Section:
    """The section of rows that are known.

    Args:
        rows_by_variant: Variant → what each protocol makes of its debates.
        further: Variant → tables after that of its protocols.
        drawn: With a chart.
    """
    tables: list[Table | None] = []
    for variant, found in rows_by_variant.items():
        tables += [_protocols_table(variant, found), *further.get(variant, ())]
    exact = all(row.exact == row.debates for found in rows_by_variant.values() for row in found)
    return Section(
        "protocols",
        "Every protocol on the same debates",
        "What each protocol would have decided on the same messages, answers and ballots. Until "
        "it ends, a debate does not depend on its protocol: no prompt names it, and no agent sees "
        "a vote. So each is applied afterwards, without a call: a vote ends the debate at the "
        "first turn with a single winner, a consensus rule as soon as enough agents agree. "
        + (
            "These debates went on to their last turn and voted in every format after each, so "
            "every line is exact."
            if exact
            else "Not every line is exact: these debates stopped where their own protocol stopped "
            "them, or no vote was held over merged answers. Open: the ballots leave several "
            "answers. Beyond: not decided by the logged end, so that any score is possible. The "
            "range is an outer bound, never narrower than the truth."
        ),
        figures=(protocols_figure(rows_by_variant),) if drawn else (),
        tables=present(*tables),
    )


def _protocols_table(variant: str, found: Sequence[ProtocolRow]) -> Table | None:
    """With counts of what is known, unless all of it is."""
    exact = all(row.exact == row.debates for row in found)
    rows = [
        (
            row.rule.replace("_", " "),
            row.debates,
            *(() if exact else (row.exact, row.open, row.beyond)),
            _range(row),
            "–" if row.decided is None else f"{100 * row.decided:.0f} %",
            one_number(row.turns, digits=2),
            row.ties,
        )
        for row in found
        if row.debates
    ]
    return table(
        f"protocols_{variant}",
        f"Variant {variant}: every protocol",
        "n: debates that the protocol applies to; solution counting takes questions with options "
        "only. Score: percent right, with a 95 % interval over tasks where every outcome is exact, "
        "otherwise its least and largest value. Decided: debates that the protocol ended, and not "
        "the limit of turns. Turns: the turn in which the debate ends, on average. Ties: votes on "
        "the way that had no single winner. The last three are of exact outcomes.",
        [
            *("protocol", "n"),
            *(() if exact else ("exact", "open", "beyond")),
            *("score", "decided", "turns", "ties"),
        ],
        rows,
    )


def _range(row: ProtocolRow) -> str:
    if isinstance(row.score, Estimate):
        return percent_estimate(row.score)
    if row.low is None or row.high is None:
        return "–"
    if row.low == row.high:
        return one_number(row.low)
    return f"{row.low:.1f} to {row.high:.1f}"


def _differing_table(variant: str, records: Sequence[DebateRecord]) -> Table | None:
    """What each protocol delivers, debate by debate, where it is known and not the same."""
    rows, unknown = [], 0
    for record in records:
        found = [recounted(record, rule) for rule in STUDY_RULES]
        if any(one.certainty in ("open", "beyond") for one in found):
            unknown += 1
            continue
        texts = [one.answers[0] for one in found if one.certainty == "exact"]
        if len({None if one is None else _short(record, one).casefold() for one in texts}) > 1:
            right = ", ".join(record.gold[:1]) or "no answer"
            rows.append((record.task_id, right, *(_delivered_cell(record, one) for one in found)))
    shown = rows[:_MOST_DIFFERING]
    same = len(records) - len(rows) - unknown
    left = f"; {unknown} leave some outcome open" if unknown else ""
    more = "" if len(shown) == len(rows) else f" The first {len(shown)} of {len(rows)} stand here."
    return table(
        f"differing_{variant}",
        f"Variant {variant}: debates on which the protocols differ",
        "What each protocol delivers and, in brackets, in which turn; a star: undecided at the "
        f"limit of turns. Of {len(records)} debates, {same} end with the same answer under all "
        f"that apply{left}.{more}",
        ["task", "right", *STUDY_RULES],
        shown,
    )


def _delivered_cell(record: DebateRecord, outcome: Outcome) -> str:
    if outcome.certainty != "exact":
        return "–"
    text = outcome.answers[0]
    said = "nothing" if text is None else _short(record, text)
    return f"{said} ({outcome.turn}{'' if outcome.decided else '*'})"


def _short(record: DebateRecord, answer: str) -> str:
    """The letter of an answer that chooses an option; of others the beginning."""
    letter = record.worth(answer).letter
    return letter or textwrap.shorten(answer, _LONGEST_ANSWER, placeholder=" …")


def _contrasts_table(variant: str, records: Sequence[DebateRecord], seed: int) -> Table | None:
    tested = contrasts([told(record) for record in records], STUDY_RULES, seed=seed)
    rows = [
        (
            f"{one.first} − {one.second}",
            one.test.tasks,
            f"{one.test.difference:+.1f}".replace("-", "−"),
            p_value(one.test.p_value),
            p_value(one.p_holm),
        )
        for one in tested
        if isinstance(one.test, PermutationTest) and one.p_holm is not None
    ]
    return table(
        f"contrasts_{variant}",
        f"Variant {variant}: paired differences",
        "In points, on debates whose outcome is exact under both. p by flipping the signs of "
        "tasks, all debates of a task together, then Holm's correction over all pairs of the "
        f"table. {protocol_chance(tested)}",
        ["pair", "tasks", "difference", "p", "p (Holm)"],
        rows,
    )


def protocol_chance(found: Sequence[Contrast]) -> str:
    """Which differences between protocols are beyond chance."""
    return chance_words(found, _told, lambda row: "points", between="protocols")


def _told(row: Contrast) -> str:
    value = row.test.difference if isinstance(row.test, PermutationTest) else 0.0
    return f"{row.first} − {row.second} {value:+.1f} points".replace("-", "−")


def _settings_table(variant: str, records: Sequence[DebateRecord]) -> Table | None:
    """Further settings that one recording answers exactly."""
    if not records or any(record.ended_by != "full" for record in records):
        return None
    wanted: list[tuple[str, Changes, Sequence[Rule]]] = [
        *(
            (f"undecided = {name}", Changes(undecided=name), PROTOCOLS)
            for name in ("first_agent", "leader", "none")
        ),
        ("merge_identical = true", Changes(merge_identical=True), PROTOCOLS),
        *((f"majority = {name}", Changes(majority=name), ("majority",)) for name in MAJORITIES),
    ]
    rows = []
    for words, changes, rules in wanted:
        for row in accounts(records, changes=changes, rules=rules):
            if row.debates:
                decided = "–" if row.decided is None else f"{100 * row.decided:.0f} %"
                told = (words, row.rule, row.debates, _range(row), decided)
                rows.append((*told, one_number(row.turns, digits=2)))
    return table(
        f"settings_{variant}",
        f"Variant {variant}: other settings of the same protocols",
        "From the same recording. Exact, but for merged answers where some agents of a debate gave "
        "equal answers and others did not: a vote over fewer candidates would have had other "
        "ballots, so that the score is a range.",
        ["setting", "protocol", "debates", "score", "decided", "turns"],
        rows,
    )


def deciding_section(records: Sequence[DebateRecord]) -> Section | None:
    """What other voting rules may make of the votes that decided; `None` without such votes."""
    rows = []
    for (benchmark, variant, condition), group in grouped(records).items():
        votes = [
            (turn, record.setup.cumulative_budget)
            for record in group
            for turn in record.turns
            if turn.decision is not None and turn.ballots_final
        ]
        for rule in PROTOCOLS:
            if not votes or rule == condition:
                continue
            same = open_ = other = 0
            for turn, budget in votes:
                winners = possible_outcomes(
                    turn.ballots_final, turn.candidates, rule, budget=budget
                )
                winner = turn.decision.winner if turn.decision else ""
                same += winners == (winner,)
                other += winner not in winners
                open_ += winner in winners and len(winners) > 1
            counts = (len(votes), same, open_, other)
            rows.append((benchmark, variant, condition, rule, *counts))
    if not rows:
        return None
    return Section(
        "deciding",
        "Deciding ballots under other rules",
        "The votes whose winner was delivered, counted under other rules as far as their ballots "
        "say. `tutorsim recount RUN` asks more of them: orders, electorates, readings.",
        tables=present(
            slim(
                "deciding",
                "Winners of deciding votes",
                "Same: no other winner is possible. Open: the ballots also fit another one. Other: "
                "the delivered answer cannot win.",
                ["benchmark", "variant", "logged", "counted as", "votes", "same", "open", "other"],
                rows,
            )
        ),
    )
