"""Every logged protocol under every target, once for each different panel, and as a table."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import product
from typing import Final, NamedTuple

import numpy as np

from tutorsim.analysis.ballots.vote_arrays import (
    DistinctPanels,
    count,
    count_rows,
    distinct_rows,
    fold,
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
    Plan,
    function_leaders,
)
from tutorsim.analysis.recount.result_models import Agreed, Holds, Interval, RuleRow
from tutorsim.analysis.recount.turn_groups import (
    Answer,
    AnswerCount,
    FlipCount,
    RecountCounts,
    RuleKey,
    StageVotes,
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
    votes = (group.final, *(group.firsts if plan.whole else ()))
    bounded = [target for target in plan.asked if target not in plan.functions]
    for form in dict.fromkeys(map(plan.form, bounded)):
        targets = [target for target in bounded if plan.form(target) == form]
        final, *firsts = _tabled([one.panels(form) for one in votes], targets, plan)
        for target in targets:
            m = final.panels.m
            own = _decides(plan.rule(target, m), group.final.rule, m) and not group.incomplete
            last = (
                _answers_of_own_rule(final, target, plan, _decided_panels(group, form))
                if own
                else _answers_of_panels(final, target, plan)
            )
            before = [_answers_of_panels(first, target, plan, breakdown=False) for first in firsts]
            yield from _by_reading(group, plan, target, [last, *before])
    for target, function in plan.functions.items():
        every = [_answers_of_function(function, group, one, plan) for one in votes]
        yield from _by_reading(group, plan, target, every)


def _by_reading(
    group: TurnGroup, plan: Plan, target: str, votes: Sequence["_VoteAnswers"]
) -> Iterator[RuleAnswers]:
    """`votes`: the answers about the final vote, then about the first votes of each size."""
    for reading in plan.readings:
        every = zip(*(_different(answers, reading) for answers in votes), strict=True)
        for exempt, (final, *firsts) in zip(plan.exempt, every, strict=True):
            key = RuleKey(group.final.protocol, target, reading, exempt)
            yield RuleAnswers(key, final, tuple(firsts))


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
    decided, panels = group.decided, group.final.panels(form)
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


def _answers_of_function(
    rule: FunctionRule, group: TurnGroup, votes: StageVotes, plan: Plan
) -> _VoteAnswers:
    """Of votes under an own function of ballots: who leads, and nothing else."""
    leaders, vote = function_leaders(rule, group, votes)
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


def _different(votes: _VoteAnswers, reading: TieReading) -> Iterator[DifferentAnswers]:
    """The different answers about votes under one reading of ties, for each number of exempt
    voters.

    A projected ballot with shared places or split votes could not have been cast as it is, so the
    projection's winner need not be possible.
    """
    place = READINGS_OF_TIES.index(reading)
    breakdown = votes.breakdown[place]
    columns = [*set_columns(votes.leaders), votes.winner, breakdown - NO_BOUNDS]
    projected = distinct_rows(columns)[1]
    for possible, settled in zip(votes.possible[place], votes.settled[place], strict=True):
        first, number = distinct_rows([*set_columns(possible), settled, projected])
        answers = []
        for row in first.tolist():
            winners = tuple((np.flatnonzero(possible[row]) - 1).tolist())
            found = Possible(winners, bool(settled[row]))
            leaders = tuple(np.flatnonzero(votes.leaders[row]).tolist())
            outcome = (
                (NOBODY,) if not leaders else leaders[:1] if reading == "fallback" else leaders
            )
            tied = leaders if len(leaders) > 1 else ()
            impossible = found.settled and not set(outcome) <= set(winners)
            if votes.winner[row] >= 0:
                tied, outcome, impossible = leaders, (int(votes.winner[row]),), False
            answers.append(Answer(found, tied, outcome, impossible, int(breakdown[row])))
        yield DifferentAnswers(number[votes.row_of_vote], answers)


def rule_counts(
    group: TurnGroup, plan: Plan, tick: Callable[[int], None] = lambda _: None
) -> RecountCounts:
    """What the turns of a group add to each row of the rules' table.

    `tick`: is told, target by target, how many turns were counted.
    """
    names, of_names = group.final.candidates
    first, fixed = distinct_rows([of_names, group.logged])
    turns = [(names[of_names[row]], group.logged_name(row)) for row in first.tolist()]
    counts = RecountCounts(approved=_numbers_approved(group) if plan.dial else Counter())
    others: dict[TieReading, list[DifferentAnswers]] = {}
    for key, final, firsts in answer_rules(group, plan):
        for (turn, answer), n in count_rows([fixed, final.number]):
            told = final.answers[answer]._replace(tied=())
            counts.answers[AnswerCount(key, *turns[turn], told)] += n
        for votes, answers in zip(group.firsts, firsts, strict=plan.whole):
            for flipped, n in _flips(group, final, votes, answers):
                counts.flips[FlipCount(key, flipped)] += n
        if (key.reading, key.exempt) == (plan.readings[-1], plan.exempt[-1]):
            tick(len(group.logged))
        counts_too = key.target in plan.rules and key.target not in plan.functions
        if key.exempt == 0 and key.target != key.protocol and counts_too:
            others.setdefault(key.reading, []).append(final)
    for reading, under in others.items():
        for (keeps, changes), n in count_rows(_kept_and_changed(group, under)):
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


def _flips(
    group: TurnGroup, final: DifferentAnswers, votes: StageVotes, first: DifferentAnswers
) -> Iterator[tuple[Holds, int]]:
    """Whether the leader of a first vote is not the winner, and of how many turns."""
    places = {name: i for i, name in enumerate((NOBODY_NAME, *votes.order))}
    names, of_names = group.final.candidates
    won = _Elected.find(final, final.number[votes.rows], names, of_names[votes.rows], places)
    led = _Elected.find(first, first.number, *votes.candidates, places)
    settled = won.settled[:, None] & led.settled
    apart = settled & ~_meet(won.possible, led.possible)
    alone = (won.possible.sum(axis=1) == 1)[:, None] & (led.possible.sum(axis=1) == 1)
    same = settled & alone & ~apart
    pointed, other = (fold(np.logical_or, votes.point, 1) for votes in (won, led))
    pointed = pointed[:, None] & other
    point = np.where(pointed, ~_meet(won.point, led.point), apart)
    flags = [flag[won.set_of_vote, led.set_of_vote] for flag in (apart, point, ~same)]
    for (certain, by_points, possible), n in count_rows(flags):
        yield (bool(certain), bool(by_points), bool(possible)), n


def _meet(one: Bools, other: Bools) -> Bools:
    """Shape (rows of one, rows of the other): whether two sets have a member in common."""
    return np.asarray(one.astype(np.int64) @ other.T.astype(np.int64) > 0)


class _Elected(NamedTuple):
    """(sets, names): who a vote may have elected, by name, so that two votes can be compared."""

    settled: Bools
    """Shape (sets,)."""
    possible: Bools
    """Shape (sets, names)."""
    point: Bools
    """Shape (sets, names): the projection's outcome; nobody at all where it has no point."""
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
        first, set_of_vote = distinct_rows([answer_of_vote, of_lists])
        told = [answers.answers[answer] for answer in answer_of_vote[first].tolist()]
        possible = np.zeros((len(first), len(places)), dtype=np.bool_)
        point = np.zeros_like(possible)
        for i, (answer, of) in enumerate(zip(told, of_lists[first].tolist(), strict=True)):
            where = [places[NOBODY_NAME], *(places[name] for name in lists[of])]
            possible[i, [where[c + 1] for c in answer.possible.winners]] = True
            if not answer.impossible:
                point[i, [where[c + 1] for c in answer.outcome]] = True
        settled = np.array([answer.possible.settled for answer in told], dtype=np.bool_)
        return _Elected(settled, possible, point, set_of_vote)


# --- Rules table ---------------------------------------------------------------------------------


def rule_rows(counts: RecountCounts, plan: Plan) -> tuple[tuple[RuleRow, ...], tuple[RuleRow, ...]]:
    """One row per logged protocol, target, reading of ties and number of exempt voters.

    And the same of approval voting, by how many candidates each voter approves of.
    """
    answers: dict[RuleKey, list[tuple[AnswerCount, int]]] = {}
    flips: dict[RuleKey, list[tuple[Holds, int]]] = {}
    for one, n in counts.answers.items():
        answers.setdefault(one.key, []).append((one, n))
    for flip, n in counts.flips.items():
        flips.setdefault(flip.key, []).append((flip.flipped, n))
    rows = {key: _rule_row(key, of, flips.get(key, ()), plan) for key, of in answers.items()}

    def under(targets: Iterable[str]) -> Iterator[RuleRow]:
        for protocol, target in product(BALLOT_FORMATS, targets):
            for asked in product(plan.readings, plan.exempt):
                row = rows.get(RuleKey(protocol, target, *asked))
                if row is not None:
                    yield row

    along = (
        row.model_copy(update={"approves": row.approves or ANY_NUMBER}) for row in under(plan.dial)
    )
    return tuple(under(plan.rules)), tuple(along)


def _numbers_approved(group: TurnGroup) -> Counter[int]:
    """Candidates approved → approval ballots of the final votes, also of rich ones."""
    panels = group.final.panels("approval")
    if panels.protocol != "approval":
        return Counter()
    sizes = np.array([*map(sum, panels.ballots), -1], dtype=np.int64)
    times = np.bincount(panels.of, minlength=len(panels.panels))
    numbers = np.bincount(sizes[panels.panels].ravel() + 1, times.repeat(panels.panels.shape[1]))
    return Counter({size: int(n) for size, n in enumerate(numbers[1:]) if n})


_NAMED: Final = {NEVER: "never", NOT_SETTLED: "not_settled", NO_BOUNDS: "point_only"}
"""Breakdown points that are no number, by name."""


def _rule_row(
    key: RuleKey,
    answers: Sequence[tuple[AnswerCount, int]],
    flips: Sequence[tuple[Holds, int]],
    plan: Plan,
) -> RuleRow:
    protocol, target, reading, exempt = key
    totals, widths, breakdown = Counter[str](), Counter[int](), Counter[str]()
    names = [*([NOBODY_NAME] if target == "condorcet" else []), *plan.order]
    wins: dict[str, list[tuple[Holds, int]]] = {name: [] for name in names}
    kept: list[tuple[Holds, int]] = []
    for one, n in answers:
        answer, possible = one.answer, one.answer.possible
        breakdown[_NAMED.get(answer.breakdown) or str(answer.breakdown)] += n
        totals["turns"] += n
        totals["compared"] += n * (one.logged is not None)
        totals["not_settled"] += n * (not possible.settled)
        totals["identified"] += n * (possible.necessary is not None)
        totals["changes"] += n * _changes(one)
        totals["point_ties"] += n * (answer.point is None and not answer.impossible)
        totals["point_impossible"] += n * answer.impossible
        if possible.settled:
            widths[len(possible.winners)] += n
        if target == "condorcet":
            wins[NOBODY_NAME].append((_wins(answer, NOBODY), n))
        for c, name in enumerate(one.candidates):
            holds = _wins(answer, c)
            wins[name].append((holds, n))
            if name == one.logged:
                kept.append((holds, n))
    number = plan.number(target)
    return RuleRow(
        logged_protocol=protocol,
        target=target if number is None else "approval",
        approves=None if number == ANY_NUMBER else number,
        convention=plan.convention(target, [len(one.candidates) for one, _ in answers]),
        projection=plan.projection(protocol, target),
        reading=reading,
        exempt=exempt,
        point_only=target in plan.functions,
        turns=totals["turns"],
        not_settled=totals["not_settled"],
        identified=totals["identified"],
        widths=dict(sorted(widths.items())),
        wins={name: Interval.of(turns) for name, turns in wins.items()},
        point_ties=totals["point_ties"],
        point_impossible=totals["point_impossible"],
        agreement=Interval.of(kept),
        changes=totals["changes"],
        compared=totals["compared"] if plan.own_order is None else None,
        flips=Interval.of(flips) if flips else None,
        flip_turns=sum(n for _, n in flips),
        breakdown=dict(sorted(breakdown.items())),
    )


def _changes(one: AnswerCount) -> bool:
    """Whether a turn certainly has another winner than logged; no winner is no other one."""
    possible = one.answer.possible
    if one.logged is None or not possible.settled or NOBODY in possible.winners:
        return False
    return one.candidates.index(one.logged) not in possible.winners


def _wins(answer: Answer, c: int) -> Holds:
    """Whether a candidate, or nobody, is the outcome; what is not settled may be."""
    possible = answer.possible
    certain = possible.necessary == c
    point = certain if answer.impossible else answer.point == c
    return certain, point, not possible.settled or c in possible.winners
