"""Every protocol on the same debates: accuracy, turns, ties, and paired differences."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from statistics import mean
from typing import NamedTuple

from tutorsim.analysis.statistics.intervals_and_tests import (
    Estimate,
    NotEstimable,
    PermutationTest,
    cluster_bootstrap,
    holm,
    paired_permutation,
)
from tutorsim.analysis.systems.debate.recount_one_debate import (
    AS_LOGGED,
    RULES,
    Certainty,
    Changes,
    Outcome,
    Rule,
    recounted,
)
from tutorsim.records.debate import DebateRecord
from tutorsim.vocabularies import Scoring

__all__ = [
    "Contrast",
    "ProtocolRow",
    "Told",
    "accounts",
    "accounts_of",
    "contrasts",
    "family",
    "score_bounds",
    "told",
]


@dataclass(frozen=True)
class ProtocolRow:
    """What one protocol makes of a set of debates."""

    rule: Rule
    debates: int
    """Those that the rule applies to."""
    exact: int
    open: int
    beyond: int
    low: float | None
    """Mean score in percent if every unknown answer is worth least; `None` without debates."""
    high: float | None
    score: Estimate | NotEstimable
    """With an interval from resampled tasks; only where every outcome is exact."""
    decided: float | None
    """Share of exact outcomes that the protocol decided, and not the limit."""
    turns: float | None
    """Mean turn of exact outcomes."""
    ties: int
    """Votes that tied on the way."""


@dataclass(frozen=True)
class Contrast:
    """Two protocols on the same debates."""

    first: Rule
    second: Rule
    test: PermutationTest | NotEstimable
    """Of the difference in percent, first minus second."""
    adjusted: float | None
    """The p-value after Holm's correction over all pairs shown."""


def family(rule: str) -> str:
    """`voting`, `consensus` or `counting`."""
    if rule in ("simple", "ranked", "cumulative", "approval"):
        return "voting"
    return "counting" if rule == "solution_counting" else "consensus"


def score_bounds(
    record: DebateRecord, outcome: Outcome, scoring: Scoring = "standard"
) -> tuple[float, float]:
    """The least and the largest score that an outcome may have, in percent."""
    values = [100 * record.worth(answer, scoring).value for answer in outcome.answers]
    if outcome.certainty == "beyond" or not values:
        return 0.0, 100.0
    return min(values), max(values)


def accounts(
    records: Sequence[DebateRecord],
    *,
    seed: int,
    changes: Changes = AS_LOGGED,
    rules: Sequence[Rule] = RULES,
    scoring: Scoring = "standard",
) -> list[ProtocolRow]:
    """One row per protocol over the same debates."""
    return accounts_of([told(one, rules, changes, scoring) for one in records], rules, seed=seed)


class Told(NamedTuple):
    """What one protocol makes of one debate."""

    task_id: str
    certainty: Certainty
    low: float
    """The least score that the outcome may have, in percent."""
    high: float
    decided: bool | None
    turn: int | None
    ties: int


def told(
    record: DebateRecord,
    rules: Sequence[Rule] = RULES,
    changes: Changes = AS_LOGGED,
    scoring: Scoring = "standard",
) -> tuple[Told, ...]:
    """What each protocol makes of a debate, in the order of `rules`; small, whatever was said."""
    found = []
    for rule in rules:
        one = recounted(record, rule, changes)
        low, high = score_bounds(record, one, scoring)
        found.append(
            Told(record.task_id, one.certainty, low, high, one.decided, one.turn, one.ties)
        )
    return tuple(found)


def accounts_of(
    debates: Sequence[Sequence[Told]], rules: Sequence[Rule] = RULES, *, seed: int
) -> list[ProtocolRow]:
    """One row per protocol, from what each makes of each debate."""
    return [_row(rule, [one[i] for one in debates], seed) for i, rule in enumerate(rules)]


def _row(rule: Rule, debates: Sequence[Told], seed: int) -> ProtocolRow:
    told = [one for one in debates if one.certainty != "not_applicable"]
    exact = [one for one in told if one.certainty == "exact"]
    whole = bool(told) and len(exact) == len(told)
    return ProtocolRow(
        rule=rule,
        debates=len(told),
        exact=len(exact),
        open=sum(one.certainty == "open" for one in told),
        beyond=sum(one.certainty == "beyond" for one in told),
        low=mean(one.low for one in told) if told else None,
        high=mean(one.high for one in told) if told else None,
        score=cluster_bootstrap([one.low for one in told], [one.task_id for one in told], seed=seed)
        if whole
        else NotEstimable("not every outcome is known"),
        decided=mean(one.decided is True for one in exact) if exact else None,
        turns=mean(one.turn or 0 for one in exact) if exact else None,
        ties=sum(one.ties for one in told),
    )


def contrasts(
    records: Sequence[DebateRecord],
    rules: Sequence[Rule],
    *,
    seed: int,
    changes: Changes = AS_LOGGED,
    scoring: Scoring = "standard",
) -> list[Contrast]:
    """Paired differences of every two protocols, on debates whose outcome both know exactly.

    The debates of one task are averaged first, so that a pair is a task.
    """
    scores = {rule: _exact_scores(records, rule, changes, scoring) for rule in rules}
    tests: dict[tuple[Rule, Rule], PermutationTest | NotEstimable] = {}
    for first, second in combinations(rules, 2):
        by_task: dict[str, list[float]] = {}
        for number, record in enumerate(records):
            if number in scores[first] and number in scores[second]:
                difference = scores[first][number] - scores[second][number]
                by_task.setdefault(f"{record.benchmark}.{record.task_id}", []).append(difference)
        tests[first, second] = paired_permutation(
            [mean(values) for values in by_task.values()], seed=seed
        )
    adjusted = holm({k: t.p_value for k, t in tests.items() if isinstance(t, PermutationTest)})
    return [Contrast(*pair, test, adjusted.get(pair)) for pair, test in tests.items()]


def _exact_scores(
    records: Sequence[DebateRecord], rule: Rule, changes: Changes, scoring: Scoring
) -> dict[int, float]:
    found = {}
    for number, record in enumerate(records):
        outcome = recounted(record, rule, changes)
        if outcome.certainty == "exact":
            found[number] = score_bounds(record, outcome, scoring)[0]
    return found
