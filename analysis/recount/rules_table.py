"""Question 3, as a table: the counts of answers aggregated to intervals."""

from collections import Counter
from collections.abc import Mapping
from typing import Final

from tutorsim.analysis.identify import NEVER, NO_BOUNDS, NOBODY, NOT_SETTLED
from tutorsim.analysis.recount.mergeable_counts import (
    AnswerCount,
    FlipCount,
    RecountCounts,
    RuleKey,
)
from tutorsim.analysis.recount.recount_plan import NOBODY_NAME, Plan
from tutorsim.analysis.recount.result_models import Interval, RuleRow
from tutorsim.vocabularies import BALLOT_FORMATS

__all__ = ["rule_rows"]


def rule_rows(counts: RecountCounts, plan: Plan) -> tuple[RuleRow, ...]:
    """One row per logged protocol, target, reading of ties and number of exempt voters."""
    voted = {key.protocol for key in counts.rules}
    keys = [
        RuleKey(protocol, target, reading, k)
        for protocol in BALLOT_FORMATS
        if protocol in voted
        for target in plan.targets
        for reading in plan.readings
        for k in plan.exempt
    ]
    return tuple(_rule_row(key, counts.rules[key], counts.flips[key], plan) for key in keys)


class _Counts:
    """Running intervals, one per name."""

    def __init__(self) -> None:
        self._counts: dict[str, Counter[str]] = {bound: Counter() for bound in _BOUNDS}

    def add(self, name: str, n: int, *, lower: bool, point: bool, upper: bool) -> None:
        for bound, holds in zip(_BOUNDS, (lower, point, upper), strict=True):
            self._counts[bound][name] += n * holds

    def interval(self, name: str) -> Interval:
        lower, point, upper = (self._counts[bound][name] for bound in _BOUNDS)
        return Interval(lower=lower, point=point, upper=upper)


_BOUNDS: Final = ("lower", "point", "upper")
_NAMED: Final = {NEVER: "never", NOT_SETTLED: "not_settled", NO_BOUNDS: "point_only"}
"""Breakdown points that are no number, by name."""


def _rule_row(
    key: RuleKey,
    answers: Mapping[AnswerCount, int],
    flips: Mapping[FlipCount, int],
    plan: Plan,
) -> RuleRow:
    totals, breakdown = Counter[str](), Counter[str]()
    counts, widths = _Counts(), Counter[int]()
    for one, n in answers.items():
        possible, projected, point = one.answer
        breakdown[_NAMED.get(point) or str(point)] += n
        totals["turns"] += n
        totals["compared"] += n * (one.logged is not None)
        totals["not_settled"] += n * (not possible.settled)
        totals["identified"] += n * (possible.necessary is not None)
        totals["point_ties"] += n * (projected.winner is None and not projected.impossible)
        totals["point_impossible"] += n * projected.impossible
        if possible.settled:
            widths[len(possible.winners)] += n
        _count_wins(counts, one, n, key.target)
    for flip, n in flips.items():
        totals["flip_turns"] += n
        counts.add("flip", n, lower=flip.lower, point=flip.point, upper=flip.upper)
    protocol, target, reading, exempt = key
    names = [*([NOBODY_NAME] if target == "condorcet" else []), *plan.order]
    return RuleRow(
        logged_protocol=protocol,
        target=target,
        convention=plan.convention(target, [len(one.candidates) for one in answers]),
        projection=plan.projection(protocol, target),
        reading=reading,
        exempt=exempt,
        point_only=target in plan.functions,
        turns=totals["turns"],
        not_settled=totals["not_settled"],
        identified=totals["identified"],
        widths=dict(sorted(widths.items())),
        wins={name: counts.interval(f"win {name}") for name in names},
        point_ties=totals["point_ties"],
        point_impossible=totals["point_impossible"],
        agreement=counts.interval("agreement"),
        compared=totals["compared"] if plan.own_order is None else None,
        flips=counts.interval("flip") if totals["flip_turns"] else None,
        flip_turns=totals["flip_turns"],
        breakdown=dict(sorted(breakdown.items())),
    )


def _count_wins(counts: _Counts, one: AnswerCount, n: int, target: str) -> None:
    possible, projected, _ = one.answer
    for c in (NOBODY, *range(len(one.candidates))):
        name = NOBODY_NAME if c == NOBODY else one.candidates[c]
        open_ = not possible.settled and (c != NOBODY or target == "condorcet")
        may = open_ or c in possible.winners
        must = possible.necessary == c
        point = must if projected.impossible else projected.winner == c
        counts.add(f"win {name}", n, lower=must, point=point, upper=may)
        if c != NOBODY and name == one.logged:
            counts.add("agreement", n, lower=must, point=point, upper=may)
