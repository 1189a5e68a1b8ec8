"""Question 3: every logged protocol under every target, aggregated to intervals."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from analysis.identify import NOBODY, READINGS_OF_TIES, Possible
from analysis.identify.projection import projection_name
from analysis.recount.answers import Named, Projection, Recounter
from analysis.recount.combos import RuleCombo, RuleKey
from analysis.recount.per_turn import NOBODY_NAME
from analysis.recount.result import Interval, RuleRow
from analysis.rules import Target
from tutorsim.types import BALLOT_FORMATS

__all__ = ["combos_of", "rule_rows"]


def combos_of(
    named: Named, recounter: Recounter, *, targets: Sequence[Target], exempt: Sequence[int]
) -> Iterator[tuple[RuleKey, RuleCombo]]:
    """What a turn adds to each row of the table."""
    shape = named.shape
    for target in targets:
        for reading in READINGS_OF_TIES:
            for k in exempt:
                answer = recounter.answer(shape, target, exempt=k, reading=reading)
                first = recounter.first_vote(shape, target, exempt=k, reading=reading)
                yield (
                    RuleKey(shape.final.protocol, target, reading, k),
                    RuleCombo(
                        named.candidates,
                        named.logged,
                        answer._replace(projected=_short(answer.projected)),
                        first and (first[0], _short(first[1])),
                    ),
                )


def _short(projected: Projection) -> Projection:
    """Without the tie before it was broken, which no row counts."""
    return projected._replace(tied=())


def rule_rows(
    rules: Mapping[RuleKey, Mapping[RuleCombo, int]],
    *,
    order: Sequence[str],
    targets: Sequence[Target],
    exempt: Sequence[int],
) -> tuple[RuleRow, ...]:
    """One row per logged protocol, target, reading of ties and number of exempt voters."""
    voted = {key.protocol for key in rules}
    keys = [
        RuleKey(protocol, target, reading, k)
        for protocol in BALLOT_FORMATS
        if protocol in voted
        for target in targets
        for reading in READINGS_OF_TIES
        for k in exempt
    ]
    return tuple(_rule_row(key, rules[key], order) for key in keys)


class _End(NamedTuple):
    """What a row counts of a turn's winner."""

    candidates: tuple[str, ...]
    logged: str
    possible: Possible
    point: int | None


class _Flip(NamedTuple):
    """What a row counts of the first vote beside the last."""

    possible: Possible
    outcome: tuple[int, ...]
    first: Possible
    led: tuple[int, ...]


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


def _rule_row(key: RuleKey, combos: Mapping[RuleCombo, int], order: Sequence[str]) -> RuleRow:
    totals, breakdown = Counter[str](), Counter[str]()
    ends, flips = Counter[_End](), Counter[_Flip]()
    for (candidates, logged, answer, first), n in combos.items():
        projected = answer.projected
        totals["point_moved"] += n * projected.moved
        breakdown["never" if answer.breakdown is None else str(answer.breakdown)] += n
        ends[_End(candidates, logged, answer.possible, projected.winner)] += n
        if first is not None:
            flips[_Flip(answer.possible, projected.outcome, first[0], first[1].outcome)] += n
    counts, widths = _Counts(), Counter[int]()
    for end, n in ends.items():
        totals["turns"] += n
        totals["not_settled"] += n * (not end.possible.settled)
        totals["identified"] += n * (end.possible.necessary is not None)
        totals["point_ties"] += n * (end.point is None)
        if end.possible.settled:
            widths[len(end.possible.winners)] += n
        _count_wins(counts, end, n)
    for flip, n in flips.items():
        totals["flip_turns"] += n
        _count_flip(counts, flip, n)
    protocol, target, reading, exempt = key
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


def _count_wins(counts: _Counts, end: _End, n: int) -> None:
    possible = end.possible
    for c in (NOBODY, *range(len(end.candidates))):
        name = NOBODY_NAME if c == NOBODY else end.candidates[c]
        may = c in possible.winners or (not possible.settled and c != NOBODY)
        must = possible.necessary == c
        counts.add(f"win {name}", n, lower=must, point=end.point == c, upper=may)
        if c != NOBODY and name == end.logged:
            counts.add("agreement", n, lower=must, point=end.point == c, upper=may)


def _count_flip(counts: _Counts, flip: _Flip, n: int) -> None:
    now, first = flip.possible, flip.first
    settled = now.settled and first.settled
    same = settled and first.necessary is not None and first.necessary == now.necessary
    apart = settled and set(first.winners).isdisjoint(now.winners)
    point = set(flip.led).isdisjoint(flip.outcome)
    counts.add("flip", n, lower=apart, point=point, upper=not same)
