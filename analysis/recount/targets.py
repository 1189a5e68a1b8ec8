"""Question 3: every logged protocol under every target, with bounds and breakdown points."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple

import polars as pl

from analysis.identify import (
    NOBODY,
    READINGS_OF_TIES,
    Identifier,
    Possible,
    TieReading,
    breakdown_point,
)
from analysis.identify.projection import project, projected_winners, projection_name
from analysis.profiles import Profile
from analysis.recount.cases import Case, Cases, decided
from analysis.recount.result import Interval, RuleRow
from analysis.rules import Target
from tutorsim.types import PROTOCOLS, Protocol

__all__ = ["NOBODY_NAME", "PER_TURN_SCHEMA", "Answer", "Recounter", "per_turn_frame", "rule_rows"]

NOBODY_NAME: Final = "none"
"""The outcome "no Condorcet winner" in lists of winners."""

PER_TURN_SCHEMA: Final = pl.Schema(
    {
        "episode_id": pl.String(),
        "turn": pl.Int64(),
        "logged_protocol": pl.String(),
        "logged_winner": pl.String(),
        "target": pl.String(),
        "fallback_order": pl.List(pl.String()),  # the turn's candidates in the order used
        "tied_set": pl.List(pl.String()),  # under the projection; empty: one led alone
        "possible_winners": pl.List(pl.String()),  # null: not settled
        "necessary_winner": pl.String(),  # null: several are possible, or not settled
        "point_winner": pl.String(),  # null: a tie that stays a tie
        "projection": pl.String(),
        "exempt": pl.Int64(),
        "breakdown": pl.Int64(),  # null: never lost, or not settled
        "settled": pl.Boolean(),
        "reading": pl.String(),  # what a tie means: set or fallback
        "point_moved": pl.Boolean(),  # the projected winner itself is not possible
    }
)
"""One row per turn, target, number of exempt voters and reading of ties."""


class Answer(NamedTuple):
    """What is said of one case under one target, reading and number of exempt voters."""

    possible: Possible
    projected: "Projection"
    breakdown: int | None


class Projection(NamedTuple):
    """What the named projection says."""

    tied: tuple[int, ...]
    """The tied set under it; empty when one leads alone, or nobody."""
    outcome: tuple[int, ...]
    """The point winner, or the tie that stays one."""
    moved: bool
    """The projected winner is not possible, so the outcome is sought among those that are."""

    @property
    def winner(self) -> int | None:
        """The point winner; `None` for a tie that stays one."""
        return self.outcome[0] if len(self.outcome) == 1 else None


class Recounter:
    """Recounts cases under targets, each question once.

    Args:
        budget: Points of a cumulative ballot.
        identifier: Answers about profiles; keeps them for all cases.
    """

    def __init__(self, *, budget: int, identifier: Identifier) -> None:
        self._budget = budget
        self._identifier = identifier
        self._led: dict[tuple[Profile, Target, tuple[int, ...]], tuple[int, ...]] = {}
        self._answers: dict[tuple[Case, Target, int, TieReading], Answer] = {}
        self._breakdowns: dict[tuple[Case, Target, TieReading], int | None] = {}

    def answer(self, case: Case, target: Target, *, exempt: int, reading: TieReading) -> Answer:
        """Everything about one question.

        Where the target is the logged protocol and nobody is exempt, the logged ballots and their
        tie round decide under both readings. With exempt voters that winner stays possible, and
        ties of other ballots are read as under any other target.
        """
        key = (case, target, exempt, reading)
        if key not in self._answers:
            self._answers[key] = self._answered(case, target, exempt, reading)
        return self._answers[key]

    def _answered(self, case: Case, target: Target, exempt: int, reading: TieReading) -> Answer:
        profile = case.final.profile
        own = self._own(case) if target == case.protocol else None
        possible = self._possible(profile, target, exempt, reading, own)
        projected = own or self._projected(profile, target, possible, reading)
        asked = (case, target, reading)
        if asked not in self._breakdowns:
            self._breakdowns[asked] = breakdown_point(
                lambda k: self._possible(profile, target, k, reading, own),
                voters=len(profile.ballots),
            )
        return Answer(possible, projected, self._breakdowns[asked])

    def first_vote(
        self, case: Case, target: Target, *, exempt: int, reading: TieReading
    ) -> tuple[Possible, Projection] | None:
        """Leaders of the first vote; `None` without such a vote. Its ties had no tie round."""
        if case.initial is None:
            return None
        profile = case.initial.profile
        possible = self._identifier.possible(profile, target, exempt=exempt, reading=reading)
        return possible, self._projected(profile, target, possible, reading)

    def _own(self, case: Case) -> Projection:
        """What the case's own ballots and tie round give."""
        candidates = case.final.candidates
        outcome = decided(case, order=candidates)
        tied = tuple(candidates.index(c) for c in outcome.tied_set)
        return Projection(tied, (candidates.index(outcome.winner),), moved=False)

    def _possible(
        self,
        profile: Profile,
        target: Target,
        exempt: int,
        reading: TieReading,
        own: Projection | None,
    ) -> Possible:
        if own is None:
            return self._identifier.possible(profile, target, exempt=exempt, reading=reading)
        if exempt == 0:
            return Possible(own.outcome, settled=True)
        found = self._identifier.possible(profile, target, exempt=exempt, reading=reading)
        return Possible(tuple(sorted({*own.outcome, *found.winners})), found.settled)

    def _projected(
        self, profile: Profile, target: Target, possible: Possible, reading: TieReading
    ) -> Projection:
        """The projection's outcome, if need be among the possible winners only.

        A projected ballot with shared places or split votes could not have been cast as it is,
        so its winner need not be possible.
        """
        led = self._leaders(profile, target, tuple(range(profile.size)))
        outcome = _outcome(led, reading)
        tied = led if len(led) > 1 else ()
        if not possible.settled or set(outcome) <= set(possible.winners):
            return Projection(tied, outcome, moved=False)
        standing = tuple(c for c in possible.winners if c != NOBODY)
        among = _outcome(self._leaders(profile, target, standing), reading)
        within = among if set(among) <= set(possible.winners) else _outcome(standing, reading)
        return Projection(tied, within, moved=True)

    def _leaders(self, profile: Profile, target: Target, among: tuple[int, ...]) -> tuple[int, ...]:
        key = (profile, target, among)
        if key not in self._led:
            projected = project(profile, target, budget=self._budget)
            self._led[key] = projected_winners(projected, target, among)
        return self._led[key]


def _outcome(led: tuple[int, ...], reading: TieReading) -> tuple[int, ...]:
    if not led:
        return (NOBODY,)
    return led[:1] if reading == "fallback" else led


def rule_rows(
    cases: Cases,
    recounter: Recounter,
    *,
    logged: Mapping[Case, str],
    order: Sequence[str],
    targets: Sequence[Target],
    exempt: Sequence[int],
) -> tuple[RuleRow, ...]:
    """One row per logged protocol, target, reading of ties and number of exempt voters."""
    protocols = sorted({case.protocol for case in cases}, key=_PROTOCOL_ORDER.__getitem__)
    return tuple(
        _rule_row(protocol, target, reading, k, cases, recounter, logged, order)
        for protocol in protocols
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
_PROTOCOL_ORDER: Final = {protocol: i for i, protocol in enumerate(PROTOCOLS)}


def _rule_row(
    protocol: Protocol,
    target: Target,
    reading: TieReading,
    exempt: int,
    cases: Cases,
    recounter: Recounter,
    logged: Mapping[Case, str],
    order: Sequence[str],
) -> RuleRow:
    counts, totals = _Counts(), Counter[str]()
    widths, breakdown = Counter[int](), Counter[str]()
    for case, keys in cases.items():
        if case.protocol != protocol:
            continue
        n = len(keys)
        answer = recounter.answer(case, target, exempt=exempt, reading=reading)
        totals["turns"] += n
        totals["not_settled"] += n * (not answer.possible.settled)
        totals["identified"] += n * (answer.possible.necessary is not None)
        totals["point_ties"] += n * (answer.projected.winner is None)
        totals["point_moved"] += n * answer.projected.moved
        if answer.possible.settled:
            widths[len(answer.possible.winners)] += n
        breakdown["never" if answer.breakdown is None else str(answer.breakdown)] += n
        _count_wins(counts, answer, case, n, logged[case])
        first = recounter.first_vote(case, target, exempt=exempt, reading=reading)
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


def _count_wins(counts: _Counts, answer: Answer, case: Case, n: int, logged: str) -> None:
    possible, point = answer.possible, answer.projected.winner
    for c in (NOBODY, *range(len(case.final.candidates))):
        name = NOBODY_NAME if c == NOBODY else case.final.candidates[c]
        may = c in possible.winners or (not possible.settled and c != NOBODY)
        must = possible.necessary == c
        counts.add(f"win {name}", n, lower=must, point=point == c, upper=may)
        if c != NOBODY and name == logged:
            counts.add("agreement", n, lower=must, point=point == c, upper=may)


def _count_flip(counts: _Counts, answer: Answer, first: Possible, led: Projection, n: int) -> None:
    now, settled = answer.possible, answer.possible.settled and first.settled
    same = settled and first.necessary is not None and first.necessary == now.necessary
    apart = settled and set(first.winners).isdisjoint(now.winners)
    point = set(led.outcome).isdisjoint(answer.projected.outcome)
    counts.add("flip", n, lower=apart, point=point, upper=not same)


def per_turn_frame(
    cases: Cases,
    recounter: Recounter,
    *,
    logged: Mapping[Case, str],
    targets: Sequence[Target],
    exempt: Sequence[int],
) -> pl.DataFrame:
    """Every turn under every target; see `PER_TURN_SCHEMA`. Turns keep their order."""
    rows: list[tuple[object, ...]] = []
    place: list[tuple[str, int, int]] = []
    for i, (case, keys) in enumerate(cases.items()):
        place += [(key.episode_id, key.turn, i) for key in keys]
        for target in targets:
            for k in exempt:
                for reading in READINGS_OF_TIES:
                    answer = recounter.answer(case, target, exempt=k, reading=reading)
                    cells = _cells(case, answer, target, k, reading)
                    rows.append((i, logged[case], *cells))
    schema = {"case": pl.Int64(), **dict(list(PER_TURN_SCHEMA.items())[2:])}
    names = ["case", "logged_winner", "logged_protocol", *list(schema)[3:]]
    found = pl.DataFrame(rows, schema={n: schema[n] for n in names}, orient="row")
    turns = pl.DataFrame(
        place, schema={"episode_id": pl.String, "turn": pl.Int64, "case": pl.Int64}, orient="row"
    )
    return turns.join(found, on="case", maintain_order="left_right").select(*PER_TURN_SCHEMA)


def _cells(
    case: Case, answer: Answer, target: Target, exempt: int, reading: TieReading
) -> Iterator[object]:
    candidates = case.final.candidates

    def name(c: int | None) -> str | None:
        return None if c is None else NOBODY_NAME if c == NOBODY else candidates[c]

    possible, projected = answer.possible, answer.projected
    yield case.protocol
    yield target
    yield list(candidates)
    yield [name(c) for c in projected.tied]
    yield [name(c) for c in possible.winners] if possible.settled else None
    yield name(possible.necessary)
    yield name(projected.winner)
    yield projection_name(case.final.profile.protocol, target)
    yield exempt
    yield answer.breakdown
    yield possible.settled
    yield reading
    yield projected.moved
