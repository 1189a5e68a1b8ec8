"""Question 3: every logged protocol under every target, aggregated to intervals."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final

from analysis.identify import NOBODY, READINGS_OF_TIES, Possible, TieReading
from analysis.identify.projection import projection_name
from analysis.profiles import TurnKey
from analysis.recount.answers import Answer, Named, Projection, Recounter
from analysis.recount.per_turn import NOBODY_NAME
from analysis.recount.result import Interval, RuleRow
from analysis.rules import Target
from tutorsim.types import BALLOT_FORMATS, BallotFormat

__all__ = ["rule_rows"]


def rule_rows(
    turns: Mapping[Named, Sequence[TurnKey]],
    recounter: Recounter,
    *,
    order: Sequence[str],
    targets: Sequence[Target],
    exempt: Sequence[int],
) -> tuple[RuleRow, ...]:
    """One row per logged protocol, target, reading of ties and number of exempt voters."""
    voted = {named.shape.final.protocol for named in turns}
    return tuple(
        _rule_row(protocol, target, reading, k, turns, recounter, order)
        for protocol in BALLOT_FORMATS
        if protocol in voted
        for target in targets
        for reading in READINGS_OF_TIES
        for k in exempt
    )


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


def _rule_row(
    protocol: BallotFormat,
    target: Target,
    reading: TieReading,
    exempt: int,
    turns: Mapping[Named, Sequence[TurnKey]],
    recounter: Recounter,
    order: Sequence[str],
) -> RuleRow:
    counts, totals = _Counts(), Counter[str]()
    widths, breakdown = Counter[int](), Counter[str]()
    for named, keys in turns.items():
        shape, n = named.shape, len(keys)
        if shape.final.protocol != protocol:
            continue
        answer = recounter.answer(shape, target, exempt=exempt, reading=reading)
        totals["turns"] += n
        totals["not_settled"] += n * (not answer.possible.settled)
        totals["identified"] += n * (answer.possible.necessary is not None)
        totals["point_ties"] += n * (answer.projected.winner is None)
        totals["point_moved"] += n * answer.projected.moved
        if answer.possible.settled:
            widths[len(answer.possible.winners)] += n
        breakdown["never" if answer.breakdown is None else str(answer.breakdown)] += n
        _count_wins(counts, answer, named, n)
        first = recounter.first_vote(shape, target, exempt=exempt, reading=reading)
        if first is not None:
            totals["flip_turns"] += n
            _count_flip(counts, answer, *first, n)
    names = [*([NOBODY_NAME] if target == "condorcet" else []), *order]
    return RuleRow(
        logged_protocol=protocol,
        target=target,
        projection=projection_name(protocol, target),
        reading=reading,
        exempt=exempt,
        turns=totals["turns"],
        not_settled=totals["not_settled"],
        identified=totals["identified"],
        widths=dict(sorted(widths.items())),
        wins={name: counts.interval(f"win {name}") for name in names},
        point_ties=totals["point_ties"],
        point_moved=totals["point_moved"],
        agreement=counts.interval("agreement"),
        flips=counts.interval("flip") if totals["flip_turns"] else None,
        flip_turns=totals["flip_turns"],
        breakdown=dict(sorted(breakdown.items())),
    )


def _count_wins(counts: _Counts, answer: Answer, named: Named, n: int) -> None:
    possible, point = answer.possible, answer.projected.winner
    for c in (NOBODY, *range(len(named.candidates))):
        name = NOBODY_NAME if c == NOBODY else named.candidates[c]
        may = c in possible.winners or (not possible.settled and c != NOBODY)
        must = possible.necessary == c
        counts.add(f"win {name}", n, lower=must, point=point == c, upper=may)
        if c != NOBODY and name == named.logged:
            counts.add("agreement", n, lower=must, point=point == c, upper=may)


def _count_flip(counts: _Counts, answer: Answer, first: Possible, led: Projection, n: int) -> None:
    now, settled = answer.possible, answer.possible.settled and first.settled
    same = settled and first.necessary is not None and first.necessary == now.necessary
    apart = settled and set(first.winners).isdisjoint(now.winners)
    point = set(led.outcome).isdisjoint(answer.projected.outcome)
    counts.add("flip", n, lower=apart, point=point, upper=not same)
