"""Every logged protocol under every target, once for each different panel, and as a table."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

import numpy as np

from tutorsim.analysis.ballots.distinct_panels import (
    DistinctPanels,
    count_rows,
    distinct_rows,
    set_columns,
)
from tutorsim.analysis.counting.decisions_in_arrays import only
from tutorsim.analysis.counting.rule_definitions import (
    ANY_NUMBER,
    Approvals,
    RankVector,
    Rule,
    rank_scores,
)
from tutorsim.analysis.counting.rules_in_arrays import ProjectedPanels
from tutorsim.analysis.identify import (
    NEVER,
    NO_BOUNDS,
    NOBODY,
    NOT_SETTLED,
    READINGS_OF_TIES,
    Possible,
    TieReading,
)
from tutorsim.analysis.identify.possible_winners import (
    PanelAnswers,
    PanelWinners,
    answer_panels,
    table_ends,
)
from tutorsim.analysis.identify.small_panel_winners import Ends
from tutorsim.analysis.recount.counted_turns import (
    Answer,
    AnswerCount,
    FirstVotes,
    FlipCount,
    Projection,
    RecountCounts,
    RuleKey,
    TurnGroup,
)
from tutorsim.analysis.recount.recount_plan import (
    NOBODY_NAME,
    FunctionRule,
    NamedVotes,
    Plan,
    named_votes,
)
from tutorsim.analysis.recount.result_models import Agreed, Interval, RuleRow
from tutorsim.analysis.statistics.arrays import Bools, Ints
from tutorsim.vocabularies import BALLOT_FORMATS, Protocol

# --- Rule answers --------------------------------------------------------------------------------


class Classes(NamedTuple):
    """Answers that differ, and which one each row has."""

    of: Ints
    """Shape (rows,)."""
    answers: list[Answer]


class _Cases(NamedTuple):
    """Different panels with their winner: all that the answers about a final vote depend on."""

    panel: Ints
    winner: Ints
    """Position of the winner of the tie round or the order."""
    tied: Bools
    """Shape (cases, candidates): the last tie."""
    open: Bools
    """Shape (cases,): counting left several, and no order is logged: then they all stand."""
    of: Ints
    """Shape (turns,)."""


class RuleAnswers(NamedTuple):
    """The answers about one group of turns under one target, reading and number of exempt voters.

    Final and first votes are answered by class; of first votes there is one for each size.
    """

    key: RuleKey
    last: Classes
    """Rows are the turns of the group."""
    firsts: tuple[Classes, ...]
    """Rows are the first votes of each size."""


def answer_rules(group: TurnGroup, plan: Plan) -> Iterator[RuleAnswers]:
    """Everything that is asked about a group of turns."""
    bounded = [target for target in plan.targets if target not in plan.functions]
    bounded += plan.dialled
    for form in dict.fromkeys(map(plan.form, bounded)):
        targets = [target for target in bounded if plan.form(target) == form]
        parts = [group.panels(form), *(first.panels(form) for first in group.firsts)]
        last, *firsts = _tabled(parts, targets, plan)
        for target in targets:
            m = last.panels.m
            own = _decided(plan.rule(target, m), group.rule, m) and not group.incomplete
            stage = (
                _own_stage(last, target, plan, _cases(group, form))
                if own
                else _stage(last, target, plan)
            )
            first_stages = [_stage(first, target, plan, breakdown=False) for first in firsts]
            yield from _by_reading(group, plan, target, stage, first_stages)
    for target, function in plan.functions.items():
        stages = [_point_stage(votes, function, plan) for votes in named_votes(group)]
        yield from _by_reading(group, plan, target, stages[0], stages[1:])


def _by_reading(
    group: TurnGroup, plan: Plan, target: str, last: "_Stage", firsts: Sequence["_Stage"]
) -> Iterator[RuleAnswers]:
    for reading in plan.readings:
        r = READINGS_OF_TIES.index(reading)
        for k, exempt in enumerate(plan.exempt):
            yield RuleAnswers(
                RuleKey(group.protocol, target, reading, exempt),
                _classes(last, r, k),
                tuple(_classes(first, r, k) for first in firsts),
            )


def _decided(rule: Rule, protocol: Protocol, m: int) -> bool:
    """Whether votes under a protocol were decided by a rule: its tie rounds are the rule's.

    Scores by rank may be Borda's, or those of one vote for the first.
    """
    if isinstance(rule, RankVector):
        logged = (1, *[0] * (m - 1)) if protocol == "simple" else rank_scores(protocol, m)
        return logged is not None and RankVector.of(logged) == rule
    return rule == protocol or (protocol == "approval" and isinstance(rule, Approvals))


class _Tabled(NamedTuple):
    """Panels with what tables say of them."""

    panels: DistinctPanels
    ends: dict[Rule, Ends]


def _tabled(parts: Sequence[DistinctPanels], targets: Sequence[str], plan: Plan) -> list[_Tabled]:
    """Ask the tables about several targets and parts; panels that parts share are asked once."""
    same: dict[tuple[int, int, str], list[int]] = {}
    for i, part in enumerate(parts):
        same.setdefault((part.m, part.panels.shape[1], part.protocol), []).append(i)
    found: dict[int, _Tabled] = {}
    for first, *others in same.values():
        joint, places = parts[first].union([parts[i] for i in others])
        rules = list(dict.fromkeys(plan.rule(target, joint.m) for target in targets))
        ends = table_ends(joint, rules, budget=plan.points(targets[0]))
        for i, place in zip((first, *others), places, strict=True):
            of_part = {rule: every[:, place] for rule, every in ends.items()}
            found[i] = _Tabled(parts[i], of_part)
    return [found[i] for i in range(len(parts))]


def _cases(group: TurnGroup, form: Protocol) -> _Cases:
    decided = group.decided
    panels = group.panels(form)
    winner = decided.winner
    several = decided.undecided.sum(axis=1, keepdims=True) > 1
    tied = np.where(several, decided.undecided, decided.led)
    tied = tied & (decided.led.sum(axis=1, keepdims=True) > 1)
    first, of = distinct_rows([panels.of, winner, *set_columns(tied), group.logged])
    return _Cases(panels.of[first], winner[first], tied[first], group.logged[first] < 0, of)


class _Stage(NamedTuple):
    """What is known of one stage under one target, row by row: panels, or cases."""

    possible: Bools
    """Shape (2, numbers of exempt voters, rows, m + 1); see `PanelAnswers`."""
    settled: Bools
    breakdown: Ints
    """Shape (2, rows)."""
    led: Bools
    """Shape (rows, m): the projection's leaders; of cases, the last tie."""
    winner: Ints
    """Shape (rows,): the winner of a case; -1 for a panel."""
    of: Ints
    """Shape (turns,): the row of each turn."""


def _stage(tabled: _Tabled, target: str, plan: Plan, *, breakdown: bool = True) -> _Stage:
    """Of panels that another rule decided, or of first votes, whose winner nothing can lose."""
    panels = tabled.panels
    answers = _asked(tabled, target, plan, None, breakdown=breakdown)
    points = answers.breakdown if breakdown else np.zeros((2, len(panels.panels)), dtype=np.int64)
    projected = ProjectedPanels(
        panels.panels,
        panels.ballots,
        m=panels.m,
        protocol=panels.protocol,
        target=plan.rule(target, panels.m),
        budget=plan.budget,
    )
    nobody = np.full(len(panels.panels), -1)
    return _Stage(
        answers.possible,
        answers.settled,
        points,
        projected.leaders(),
        nobody,
        panels.of,
    )


def _point_stage(votes: NamedVotes, rule: FunctionRule, plan: Plan) -> _Stage:
    """Of votes under an own function of ballots: who leads, and nothing else."""
    led, of = votes.leaders(rule)
    rows, m = led.shape
    shape = (2, len(plan.exempt), rows)
    return _Stage(
        possible=np.zeros((*shape, m + 1), dtype=np.bool_),
        settled=np.zeros(shape, dtype=np.bool_),
        breakdown=np.full((2, rows), NO_BOUNDS),
        led=led,
        winner=np.full(rows, -1),
        of=of,
    )


def _own_stage(tabled: _Tabled, target: str, plan: Plan, cases: _Cases) -> _Stage:
    """Of turns that the target itself decided.

    Nobody exempt, the logged ballots and their tie round decide under both readings. With exempt
    voters that winner stays possible, and ties of other ballots are read as under any other
    target. A tie that no logged order decides stays one, and nobody can be lost in it.
    """
    answers = _asked(tabled, target, plan, PanelWinners(cases.panel, cases.winner))
    alone = only(cases.winner, cases.tied.shape[1])
    stands = np.where(cases.open[:, None], cases.tied, alone)
    possible, settled = answers.possible[:, :, cases.panel], answers.settled[:, :, cases.panel]
    for k, exempt in enumerate(plan.exempt):
        if exempt == 0:
            possible[:, k], settled[:, k] = False, True
        possible[:, k, :, 1:] |= stands
    points = np.where(cases.open, 0, answers.breakdown)
    winner = np.where(cases.open, -1, cases.winner)
    return _Stage(possible, settled, points, cases.tied, winner, cases.of)


def _asked(
    tabled: _Tabled,
    target: str,
    plan: Plan,
    winners: PanelWinners | None,
    *,
    breakdown: bool = True,
) -> PanelAnswers:
    rule = plan.rule(target, tabled.panels.m)
    return answer_panels(
        tabled.panels,
        rule,
        exempt=plan.exempt,
        budget=plan.points(target),
        limit=plan.limit,
        ends=tabled.ends.get(rule),
        winners=winners,
        breakdown=breakdown,
        readings=plan.readings,
    )


def _classes(stage: _Stage, reading: int, exempt: int) -> Classes:
    """The different answers under one reading and number of exempt voters."""
    possible, settled = stage.possible[reading, exempt], stage.settled[reading, exempt]
    point = stage.breakdown[reading]
    columns = [*set_columns(possible), settled, *set_columns(stage.led), stage.winner]
    first, number = distinct_rows([*columns, point - NO_BOUNDS])
    answers = []
    for row in first.tolist():
        outcomes = tuple((np.flatnonzero(possible[row]) - 1).tolist())
        led = tuple(np.flatnonzero(stage.led[row]).tolist())
        found = Possible(outcomes, bool(settled[row]))
        winner = int(stage.winner[row])
        projected = (
            _projection(led, found, READINGS_OF_TIES[reading])
            if winner < 0
            else Projection(led, (winner,), impossible=False)
        )
        answers.append(Answer(found, projected, int(point[row])))
    return Classes(number[stage.of], answers)


def _projection(led: tuple[int, ...], possible: Possible, reading: TieReading) -> Projection:
    """The projection's outcome, and whether it can be.

    A projected ballot with shared places or split votes could not have been cast as it is,
    so its winner need not be possible.
    """
    outcome = (NOBODY,) if not led else led[:1] if reading == "fallback" else led
    impossible = possible.settled and not set(outcome) <= set(possible.winners)
    return Projection(led if len(led) > 1 else (), outcome, impossible)


class RuleCounts(NamedTuple):
    """What turns add to the rules' table."""

    answers: dict[RuleKey, Counter[AnswerCount]]
    flips: dict[RuleKey, Counter[FlipCount]]
    agreed: Counter[Agreed]


def rule_counts(
    group: TurnGroup, plan: Plan, tick: Callable[[int], None] = lambda _: None
) -> RuleCounts:
    """What the turns of a group add to each row of the rules' table.

    Args:
        group: The turns.
        plan: What is asked.
        tick: Is told, target by target, how many turns were counted.
    """
    names, of_names = group.candidates
    first, fixed = distinct_rows([of_names, group.logged])
    turns = [(names[of_names[row]], group.logged_name(row)) for row in first.tolist()]
    counts = RuleCounts({}, {}, Counter())
    others: dict[TieReading, list[Classes]] = {}
    for key, last, firsts in answer_rules(group, plan):
        counts.answers[key] = Counter[AnswerCount]()
        for (turn, answer), n in count_rows([fixed, last.of]):
            counts.answers[key][AnswerCount(*turns[turn], _untied(last.answers[answer]))] += n
        counts.flips[key] = Counter[FlipCount]()
        for votes, classes in zip(group.firsts, firsts, strict=True):
            counts.flips[key].update(_flips(group, last, votes, classes))
        if (key.reading, key.exempt) == (plan.readings[-1], plan.exempt[-1]):
            tick(len(group.logged))
        counts_too = key.target not in (*plan.functions, *plan.dialled)
        if key.exempt == 0 and key.target != group.protocol and counts_too:
            others.setdefault(key.reading, []).append(last)
    for reading, under in others.items():
        flags = _kept_and_changed(group, under)
        for (keeps, changes), n in count_rows(flags):
            counts.agreed[Agreed(reading, bool(keeps), bool(changes))] += n
    return counts


def _kept_and_changed(group: TurnGroup, under: Sequence[Classes]) -> tuple[Bools, Bools]:
    """Of turns with a logged winner: all targets certainly elect it; some certainly does not."""
    rows = np.flatnonzero(group.logged >= 0)
    logged = group.logged[rows]
    keeps, changes = np.ones(len(rows), dtype=np.bool_), np.zeros(len(rows), dtype=np.bool_)
    for last in under:
        settled = np.array([a.possible.settled for a in last.answers])
        possible = np.zeros((len(last.answers), group.decided.led.shape[1]), dtype=np.bool_)
        for i, answer in enumerate(last.answers):
            possible[i, [c for c in answer.possible.winners if c != NOBODY]] = True
        alone = np.array([a.possible.necessary not in (None, NOBODY) for a in last.answers])
        elected = np.array([NOBODY not in a.possible.winners for a in last.answers])
        of = last.of[rows]
        stands = possible[of, logged]
        keeps &= alone[of] & stands
        changes |= settled[of] & ~stands & elected[of]
    return keeps, changes


def _untied(answer: Answer) -> Answer:
    """Without the tie before it was broken, which no row counts."""
    return answer._replace(projected=answer.projected._replace(tied=()))


def _flips(
    group: TurnGroup, last: Classes, votes: FirstVotes, first: Classes
) -> Counter[FlipCount]:
    """Turns by whether the leader of the first vote is certainly, by the point, or possibly not
    the winner."""
    places = {name: i for i, name in enumerate((NOBODY_NAME, *group.order))}
    (names, of_names), (first_names, of_first_names) = group.candidates, votes.candidates
    ended = _Sides.find(last, last.of[votes.rows], names, of_names[votes.rows], places)
    led = _Sides.find(first, first.of, first_names, of_first_names, places)
    settled = ended.settled[:, None] & led.settled
    apart = settled & ~_meet(ended.possible, led.possible)
    alone = (ended.possible.sum(axis=1) == 1)[:, None] & (led.possible.sum(axis=1) == 1)
    same = settled & alone & ~apart
    pointed = ended.pointed[:, None] & led.pointed
    point = np.where(pointed, ~_meet(ended.point, led.point), apart)
    flags = [flag[ended.of, led.of] for flag in (apart, point, ~same)]
    return Counter({FlipCount(*map(bool, row)): n for row, n in count_rows(flags)})


def _meet(one: Bools, other: Bools) -> Bools:
    """Shape (rows of one, rows of the other): whether two sets have a member in common."""
    return np.asarray(one.astype(np.int64) @ other.T.astype(np.int64) > 0)


class _Sides(NamedTuple):
    """What one vote of a turn adds to the count of flips: different sides, and which each has."""

    settled: Bools
    """Shape (sides,)."""
    possible: Bools
    """Shape (sides, names)."""
    pointed: Bools
    """Shape (sides,): the projection has a point."""
    point: Bools
    """Shape (sides, names): its outcome."""
    of: Ints
    """Shape (votes,)."""

    @staticmethod
    def find(
        classes: Classes,
        of: Ints,
        lists: Sequence[tuple[str, ...]],
        of_lists: Ints,
        places: Mapping[str, int],
    ) -> "_Sides":
        """The sides of some votes.

        Args:
            classes: The different answers.
            of: The class of each vote.
            lists: The different lists of candidates.
            of_lists: The list of each vote.
            places: Places of names in a side.
        """
        first, number = distinct_rows([of, of_lists])
        numbers: dict[tuple[Possible, tuple[int, ...] | None, int], int] = {}
        at = []
        for row in first.tolist():
            possible, projected, _ = classes.answers[of[row]]
            point = None if projected.impossible else projected.outcome
            at.append(numbers.setdefault((possible, point, int(of_lists[row])), len(numbers)))
        sets = np.zeros((2, len(numbers), len(places)), dtype=np.bool_)
        for i, (possible, point, one) in enumerate(numbers):
            where = [places[NOBODY_NAME], *(places[name] for name in lists[one])]
            sets[0, i, [where[c + 1] for c in possible.winners]] = True
            sets[1, i, [where[c + 1] for c in point or ()]] = True
        return _Sides(
            np.array([possible.settled for possible, *_ in numbers], dtype=np.bool_),
            sets[0],
            np.array([point is not None for _, point, _ in numbers], dtype=np.bool_),
            sets[1],
            np.array(at, dtype=np.int64)[number],
        )


# --- Rules table ---------------------------------------------------------------------------------


def rule_rows(counts: RecountCounts, plan: Plan) -> tuple[RuleRow, ...]:
    """One row per logged protocol, target, reading of ties and number of exempt voters."""
    return _rows_under(counts, plan, plan.targets)


def approval_rows(counts: RecountCounts, plan: Plan) -> tuple[RuleRow, ...]:
    """The same of approval voting, by how many candidates each voter approves of."""
    names = {number: name for name, number in plan.dialled.items()}
    rows = _rows_under(counts, plan, [names.get(number, "approval") for number in plan.dial])
    return tuple(row.model_copy(update={"approves": row.approves or ANY_NUMBER}) for row in rows)


def _rows_under(counts: RecountCounts, plan: Plan, targets: Sequence[str]) -> tuple[RuleRow, ...]:
    voted = {key.protocol for key in counts.rules}
    keys = [
        RuleKey(protocol, target, reading, k)
        for protocol in BALLOT_FORMATS
        if protocol in voted
        for target in targets
        for reading in plan.readings
        for k in plan.exempt
    ]
    return tuple(_rule_row(key, counts.rules[key], counts.flips[key], plan) for key in keys)


def numbers_approved(group: TurnGroup) -> Counter[int]:
    """Candidates approved → approval ballots of the final votes, also of rich ones."""
    panels = group.panels("approval")
    if panels.protocol != "approval":
        return Counter()
    sizes = np.array([*map(sum, panels.ballots), -1], dtype=np.int64)
    times = np.bincount(panels.of, minlength=len(panels.panels))
    numbers = np.bincount(sizes[panels.panels].ravel() + 1, times.repeat(panels.panels.shape[1]))
    return Counter({size: int(n) for size, n in enumerate(numbers[1:]) if n})


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
        totals["changes"] += n * _changes(one)
        totals["point_ties"] += n * (projected.winner is None and not projected.impossible)
        totals["point_impossible"] += n * projected.impossible
        if possible.settled:
            widths[len(possible.winners)] += n
        _count_wins(counts, one, n, key.target)
    for flip, n in flips.items():
        totals["flip_turns"] += n
        counts.add("flip", n, lower=flip.lower, point=flip.point, upper=flip.upper)
    protocol, target, reading, exempt = key
    number = plan.number(target)
    names = [*([NOBODY_NAME] if target == "condorcet" else []), *plan.order]
    return RuleRow(
        logged_protocol=protocol,
        target=target if number is None else "approval",
        approves=None if number == ANY_NUMBER else number,
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
        changes=totals["changes"],
        compared=totals["compared"] if plan.own_order is None else None,
        flips=counts.interval("flip") if totals["flip_turns"] else None,
        flip_turns=totals["flip_turns"],
        breakdown=dict(sorted(breakdown.items())),
    )


def _changes(one: AnswerCount) -> bool:
    """Whether a turn certainly has another winner than logged; no winner is no other one."""
    possible = one.answer.possible
    if one.logged is None or not possible.settled or NOBODY in possible.winners:
        return False
    return one.candidates.index(one.logged) not in possible.winners


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
