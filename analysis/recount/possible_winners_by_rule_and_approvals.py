"""Every logged protocol under every target, once for each different panel, and as a table."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

import numpy as np

from tutorsim.analysis.ballots.vote_arrays import (
    DistinctPanels,
    count,
    count_rows,
    distinct_rows,
    set_columns,
)
from tutorsim.analysis.counting.rule_definitions import (
    ANY_NUMBER,
    Approvals,
    RankVector,
    Rule,
    ballot_format,
    rank_scores,
)
from tutorsim.analysis.counting.rules_in_arrays import ProjectedPanels
from tutorsim.analysis.counting.turn_winners_in_arrays import only
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
from tutorsim.analysis.recount.recount_plan_and_own_rules import (
    NOBODY_NAME,
    FunctionRule,
    NamedVotes,
    Plan,
    named_votes,
)
from tutorsim.analysis.recount.result_models import Agreed, Interval, RuleRow
from tutorsim.analysis.recount.turn_groups import (
    Answer,
    AnswerCount,
    FirstVotes,
    FlipCount,
    Projection,
    RecountCounts,
    RuleKey,
    TurnGroup,
)
from tutorsim.analysis.statistics.array_types import Bools, Ints
from tutorsim.vocabularies import BALLOT_FORMATS, Protocol

# --- Rule answers --------------------------------------------------------------------------------


class DifferentAnswers(NamedTuple):
    """(votes,): the answers that differ, and which of them each vote has."""

    number: Ints
    """Shape (votes,): a place in `answers`."""
    answers: list[Answer]


class _DecidedPanels(NamedTuple):
    """(cases,): different panels, each with the winner that its turns had: nothing else matters."""

    panel: Ints
    """Shape (cases,): a place among the panels."""
    winner: Ints
    """Shape (cases,): position of the winner of the tie round or the order."""
    tied: Bools
    """Shape (cases, candidates): the last tie."""
    undecided: Bools
    """Shape (cases,): counting left several, and no order is logged: then they all stand."""
    case_of_turn: Ints
    """Shape (turns,)."""


class RuleAnswers(NamedTuple):
    """The answers about one group of turns under one target, reading and number of exempt voters.

    Of first votes there are answers for each size.
    """

    key: RuleKey
    final: DifferentAnswers
    """Of the turns of the group."""
    firsts: tuple[DifferentAnswers, ...]
    """Of the first votes of each size."""


def answer_rules(group: TurnGroup, plan: Plan) -> Iterator[RuleAnswers]:
    """Everything that is asked about a group of turns."""
    bounded = [target for target in plan.targets if target not in plan.functions]
    bounded += plan.dialled
    for form in dict.fromkeys(map(plan.form, bounded)):
        targets = [target for target in bounded if plan.form(target) == form]
        before_it = group.firsts if plan.whole else ()
        parts = [group.panels(form), *(first.panels(form) for first in before_it)]
        final, *firsts = _tabled(parts, targets, plan)
        for target in targets:
            m = final.panels.m
            own = _decides(plan.rule(target, m), group.rule, m) and not group.incomplete
            last = (
                _answers_of_own_rule(final, target, plan, _decided_panels(group, form))
                if own
                else _answers_of_panels(final, target, plan)
            )
            before = [_answers_of_panels(first, target, plan, breakdown=False) for first in firsts]
            yield from _by_reading(group, plan, target, last, before)
    for target, function in plan.functions.items():
        votes = named_votes(group)[: None if plan.whole else 1]
        last, *before = (_answers_of_function(v, function, plan) for v in votes)
        yield from _by_reading(group, plan, target, last, before)


def _by_reading(
    group: TurnGroup, plan: Plan, target: str, final: "_VoteAnswers", firsts: "list[_VoteAnswers]"
) -> Iterator[RuleAnswers]:
    for reading in plan.readings:
        asked = [_Different(votes, READINGS_OF_TIES.index(reading)) for votes in (final, *firsts)]
        for k, exempt in enumerate(plan.exempt):
            answers = [votes.at(k) for votes in asked]
            key = RuleKey(group.protocol, target, reading, exempt)
            yield RuleAnswers(key, answers[0], tuple(answers[1:]))


def _decides(rule: Rule, protocol: Protocol, m: int) -> bool:
    """Whether votes under a protocol were decided by a rule: its tie rounds are the rule's.

    Scores by rank may be Borda's, or those of one vote for the first.
    """
    if isinstance(rule, RankVector):
        logged = (1, *[0] * (m - 1)) if protocol == "simple" else rank_scores(protocol, m)
        return logged is not None and RankVector.of(logged) == rule
    return rule == protocol or (isinstance(rule, Approvals) and protocol == ballot_format(rule))


class _TabledPanels(NamedTuple):
    """Different panels, with what a table says of them under each rule."""

    panels: DistinctPanels
    outcomes: dict[Rule, Ends]
    """What the panels may end in, of the rules that have a table."""


def _tabled(
    parts: Sequence[DistinctPanels], targets: Sequence[str], plan: Plan
) -> list[_TabledPanels]:
    """Ask the tables about several targets and parts; panels that parts share are asked once."""
    same: dict[tuple[int, int, str], list[int]] = {}
    for i, part in enumerate(parts):
        same.setdefault((part.m, part.panels.shape[1], part.protocol), []).append(i)
    found: dict[int, _TabledPanels] = {}
    for first, *others in same.values():
        joint, places = parts[first].union([parts[i] for i in others])
        rules = list(dict.fromkeys(plan.rule(target, joint.m) for target in targets))
        most = None if plan.whole else plan.exempt[-1]
        outcomes = table_ends(joint, rules, budget=plan.points(targets[0]), exempt=most)
        for i, place in zip((first, *others), places, strict=True):
            of_part = {rule: every[:, place] for rule, every in outcomes.items()}
            found[i] = _TabledPanels(parts[i], of_part)
    return [found[i] for i in range(len(parts))]


def _decided_panels(group: TurnGroup, form: Protocol) -> _DecidedPanels:
    decided = group.decided
    panels = group.panels(form)
    winner = decided.winner
    several = count(decided.undecided, 1)[:, None] > 1
    tied = np.where(several, decided.undecided, decided.led)
    tied = tied & (count(decided.led, 1)[:, None] > 1)
    first, case_of_turn = distinct_rows([panels.of, winner, *set_columns(tied), group.logged])
    return _DecidedPanels(
        panels.of[first], winner[first], tied[first], group.logged[first] < 0, case_of_turn
    )


class _VoteAnswers(NamedTuple):
    """(readings, exempt, rows, outcomes): what votes may end in under one target.

    Rows are different panels, or panels with their winners; the axes are readings of ties, numbers
    of exempt voters, rows, and outcomes, of which the first is nobody.
    """

    possible: Bools
    """Shape (2, exempt, rows, m + 1); see `PanelAnswers`."""
    settled: Bools
    """Shape (2, exempt, rows)."""
    breakdown: Ints
    """Shape (2, rows)."""
    leaders: Bools
    """Shape (rows, m): who leads under the projection; of a decided panel, the last tie."""
    winner: Ints
    """Shape (rows,): the winner of a decided panel; -1 for any other."""
    row_of_vote: Ints
    """Shape (votes,)."""


def _answers_of_panels(
    tabled: _TabledPanels, target: str, plan: Plan, *, breakdown: bool = True
) -> _VoteAnswers:
    """Of panels that another rule decided, or of first votes, whose winner nothing can lose."""
    panels, breakdown = tabled.panels, breakdown and plan.whole
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
    return _VoteAnswers(
        answers.possible, answers.settled, points, projected.leaders(), nobody, panels.of
    )


def _answers_of_function(votes: NamedVotes, rule: FunctionRule, plan: Plan) -> _VoteAnswers:
    """Of votes under an own function of ballots: who leads, and nothing else."""
    leaders, vote = votes.leaders(rule)
    rows, m = leaders.shape
    shape = (2, len(plan.exempt), rows)
    return _VoteAnswers(
        possible=np.zeros((*shape, m + 1), dtype=np.bool_),
        settled=np.zeros(shape, dtype=np.bool_),
        breakdown=np.full((2, rows), NO_BOUNDS),
        leaders=leaders,
        winner=np.full(rows, -1),
        row_of_vote=vote,
    )


def _answers_of_own_rule(
    tabled: _TabledPanels, target: str, plan: Plan, decided: _DecidedPanels
) -> _VoteAnswers:
    """Of turns that the target itself decided.

    Nobody exempt, the logged ballots and their tie round decide under both readings. With exempt
    voters that winner stays possible, and ties of other ballots are read as under any other
    target. A tie that no logged order decides stays one, and nobody can be lost in it.
    """
    winners = PanelWinners(decided.panel, decided.winner)
    answers = _asked(tabled, target, plan, winners, breakdown=plan.whole)
    alone = only(decided.winner, decided.tied.shape[1])
    stands = np.where(decided.undecided[:, None], decided.tied, alone)
    possible, settled = answers.possible[:, :, decided.panel], answers.settled[:, :, decided.panel]
    for k, exempt in enumerate(plan.exempt):
        if exempt == 0:
            possible[:, k], settled[:, k] = False, True
        possible[:, k, :, 1:] |= stands
    lost = answers.breakdown if plan.whole else 0
    points = np.where(decided.undecided, 0, np.broadcast_to(lost, (2, len(decided.winner))))
    winner = np.where(decided.undecided, -1, decided.winner)
    return _VoteAnswers(possible, settled, points, decided.tied, winner, decided.case_of_turn)


def _asked(
    tabled: _TabledPanels, target: str, plan: Plan, winners: PanelWinners | None, *, breakdown: bool
) -> PanelAnswers:
    rule = plan.rule(target, tabled.panels.m)
    return answer_panels(
        tabled.panels,
        rule,
        exempt=plan.exempt,
        budget=plan.points(target),
        limit=plan.limit,
        ends=tabled.outcomes.get(rule),
        winners=winners,
        breakdown=breakdown,
        readings=plan.readings,
    )


class _Different:
    """The different answers about votes under one reading of ties."""

    def __init__(self, votes: _VoteAnswers, reading: int) -> None:
        self._votes, self._reading = votes, reading
        columns = [*set_columns(votes.leaders), votes.winner, votes.breakdown[reading] - NO_BOUNDS]
        self._projected = distinct_rows(columns)[1]

    def at(self, exempt: int) -> DifferentAnswers:
        """With one of the numbers of exempt voters, by its place among them."""
        votes, reading = self._votes, self._reading
        possible, settled = votes.possible[reading, exempt], votes.settled[reading, exempt]
        first, number = distinct_rows([*set_columns(possible), settled, self._projected])
        answers = []
        for row in first.tolist():
            outcomes = tuple((np.flatnonzero(possible[row]) - 1).tolist())
            leaders = tuple(np.flatnonzero(votes.leaders[row]).tolist())
            found = Possible(outcomes, bool(settled[row]))
            winner = int(votes.winner[row])
            projected = (
                _projection(leaders, found, READINGS_OF_TIES[reading])
                if winner < 0
                else Projection(leaders, (winner,), impossible=False)
            )
            answers.append(Answer(found, projected, int(votes.breakdown[reading, row])))
        return DifferentAnswers(number[votes.row_of_vote], answers)


def _projection(leaders: tuple[int, ...], possible: Possible, reading: TieReading) -> Projection:
    """The projection's outcome, and whether it can be.

    A projected ballot with shared places or split votes could not have been cast as it is,
    so its winner need not be possible.
    """
    outcome = (NOBODY,) if not leaders else leaders[:1] if reading == "fallback" else leaders
    impossible = possible.settled and not set(outcome) <= set(possible.winners)
    return Projection(leaders if len(leaders) > 1 else (), outcome, impossible)


class RuleCounts(NamedTuple):
    """What turns add to the rules' table."""

    answers: dict[RuleKey, Counter[AnswerCount]]
    flips: dict[RuleKey, Counter[FlipCount]]
    agreed: Counter[Agreed]


def rule_counts(
    group: TurnGroup, plan: Plan, tick: Callable[[int], None] = lambda _: None
) -> RuleCounts:
    """What the turns of a group add to each row of the rules' table.

    `tick`: is told, target by target, how many turns were counted.
    """
    names, of_names = group.candidates
    first, fixed = distinct_rows([of_names, group.logged])
    turns = [(names[of_names[row]], group.logged_name(row)) for row in first.tolist()]
    counts = RuleCounts({}, {}, Counter())
    others: dict[TieReading, list[DifferentAnswers]] = {}
    for key, final, firsts in answer_rules(group, plan):
        counts.answers[key] = Counter[AnswerCount]()
        for (turn, answer), n in count_rows([fixed, final.number]):
            counts.answers[key][AnswerCount(*turns[turn], _untied(final.answers[answer]))] += n
        counts.flips[key] = Counter[FlipCount]()
        for votes, answers in zip(group.firsts, firsts, strict=plan.whole):
            counts.flips[key].update(_flips(group, final, votes, answers))
        if (key.reading, key.exempt) == (plan.readings[-1], plan.exempt[-1]):
            tick(len(group.logged))
        counts_too = key.target not in (*plan.functions, *plan.dialled)
        if key.exempt == 0 and key.target != group.protocol and counts_too:
            others.setdefault(key.reading, []).append(final)
    for reading, under in others.items():
        flags = _kept_and_changed(group, under)
        for (keeps, changes), n in count_rows(flags):
            counts.agreed[Agreed(reading, bool(keeps), bool(changes))] += n
    return counts


def _kept_and_changed(group: TurnGroup, under: Sequence[DifferentAnswers]) -> tuple[Bools, Bools]:
    """Of turns with a logged winner: all targets certainly elect it; some certainly does not."""
    rows = np.flatnonzero(group.logged >= 0)
    logged = group.logged[rows]
    keeps, changes = np.ones(len(rows), dtype=np.bool_), np.zeros(len(rows), dtype=np.bool_)
    for final in under:
        settled = np.array([a.possible.settled for a in final.answers])
        possible = np.zeros((len(final.answers), group.decided.led.shape[1]), dtype=np.bool_)
        for i, answer in enumerate(final.answers):
            possible[i, [c for c in answer.possible.winners if c != NOBODY]] = True
        alone = np.array([a.possible.necessary not in (None, NOBODY) for a in final.answers])
        elected = np.array([NOBODY not in a.possible.winners for a in final.answers])
        answer_of = final.number[rows]
        stands = possible[answer_of, logged]
        keeps &= alone[answer_of] & stands
        changes |= settled[answer_of] & ~stands & elected[answer_of]
    return keeps, changes


def _untied(answer: Answer) -> Answer:
    """Without the tie before it was broken, which no row counts."""
    return answer._replace(projected=answer.projected._replace(tied=()))


def _flips(
    group: TurnGroup, final: DifferentAnswers, votes: FirstVotes, first: DifferentAnswers
) -> Counter[FlipCount]:
    """Turns by whether the leader of the first vote is certainly, by the point, or possibly not
    the winner."""
    places = {name: i for i, name in enumerate((NOBODY_NAME, *group.order))}
    (names, of_names), (first_names, of_first_names) = group.candidates, votes.candidates
    won = _Elected.find(final, final.number[votes.rows], names, of_names[votes.rows], places)
    led = _Elected.find(first, first.number, first_names, of_first_names, places)
    settled = won.settled[:, None] & led.settled
    apart = settled & ~_meet(won.possible, led.possible)
    alone = (won.possible.sum(axis=1) == 1)[:, None] & (led.possible.sum(axis=1) == 1)
    same = settled & alone & ~apart
    pointed = won.pointed[:, None] & led.pointed
    point = np.where(pointed, ~_meet(won.point, led.point), apart)
    flags = [flag[won.set_of_vote, led.set_of_vote] for flag in (apart, point, ~same)]
    return Counter({FlipCount(*map(bool, row)): n for row, n in count_rows(flags)})


def _meet(one: Bools, other: Bools) -> Bools:
    """Shape (rows of one, rows of the other): whether two sets have a member in common."""
    return np.asarray(one.astype(np.int64) @ other.T.astype(np.int64) > 0)


class _Elected(NamedTuple):
    """(sets, names): who a vote may have elected, by name, so that two votes can be compared."""

    settled: Bools
    """Shape (sets,)."""
    possible: Bools
    """Shape (sets, names)."""
    pointed: Bools
    """Shape (sets,): the projection has a point."""
    point: Bools
    """Shape (sets, names): its outcome."""
    set_of_vote: Ints
    """Shape (votes,)."""

    @staticmethod
    def find(
        answers: DifferentAnswers,
        answer_of_vote: Ints,
        lists: Sequence[tuple[str, ...]],
        of_lists: Ints,
        places: Mapping[str, int],
    ) -> "_Elected":
        """Of some votes: the different answers and lists of candidates, and which of them each has.

        `places`: places of names in a set.
        """
        first, number = distinct_rows([answer_of_vote, of_lists])
        numbers: dict[tuple[Possible, tuple[int, ...] | None, int], int] = {}
        at = []
        for row in first.tolist():
            possible, projected, _ = answers.answers[answer_of_vote[row]]
            point = None if projected.impossible else projected.outcome
            at.append(numbers.setdefault((possible, point, int(of_lists[row])), len(numbers)))
        sets = np.zeros((2, len(numbers), len(places)), dtype=np.bool_)
        for i, (possible, point, one) in enumerate(numbers):
            where = [places[NOBODY_NAME], *(places[name] for name in lists[one])]
            sets[0, i, [where[c + 1] for c in possible.winners]] = True
            sets[1, i, [where[c + 1] for c in point or ()]] = True
        return _Elected(
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
        self._counts: defaultdict[str, list[int]] = defaultdict(lambda: [0, 0, 0])

    def add(self, name: str, n: int, *, lower: bool, point: bool, upper: bool) -> None:
        bounds = self._counts[name]
        bounds[0] += n * lower
        bounds[1] += n * point
        bounds[2] += n * upper

    def interval(self, name: str) -> Interval:
        lower, point, upper = self._counts[name]
        return Interval(lower=lower, point=point, upper=upper)


_NAMED: Final = {NEVER: "never", NOT_SETTLED: "not_settled", NO_BOUNDS: "point_only"}
"""Breakdown points that are no number, by name."""


def _rule_row(
    key: RuleKey, answers: Mapping[AnswerCount, int], flips: Mapping[FlipCount, int], plan: Plan
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
