"""Every logged protocol under every target, once for each different panel; as a table, and turn by
turn."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import product
from typing import Any, Final, NamedTuple

import numpy as np
import polars as pl

from tutorsim.analysis.ballots.vote_arrays_and_profiles import (
    TURN,
    DistinctPanels,
    count,
    count_rows,
    distinct_rows,
    fold,
    set_columns,
)
from tutorsim.analysis.counting.names_and_parameters_of_rules import (
    ANY_NUMBER,
    Approvals,
    RankVector,
    Rule,
    ballot_format,
    rank_scores,
)
from tutorsim.analysis.counting.voting_rules_in_arrays import projected_leaders
from tutorsim.analysis.counting.winners_as_logged_and_with_votes_changed import only
from tutorsim.analysis.identify.possible_winners import (
    NO_BOUNDS,
    READINGS_OF_TIES,
    PanelAnswers,
    PanelWinners,
    Possible,
    TieReading,
    answer_panels,
    table_ends,
)
from tutorsim.analysis.identify.win_conditions import NOBODY
from tutorsim.analysis.recount.decided_turns_of_one_format_and_outcome_counts import (
    BREAKDOWN_STATES,
    Answer,
    AnswerCount,
    RecountCounts,
    RuleKey,
    StageVotes,
    TurnGroup,
)
from tutorsim.analysis.recount.recount_plan_and_own_rules import (
    NOBODY_NAME,
    FunctionRule,
    Plan,
    function_leaders,
)
from tutorsim.analysis.recount.result_models import Agreed, Holds, Interval, RuleRow
from tutorsim.analysis.statistics import by_key
from tutorsim.analysis.statistics.array_types import Bools, Ints, OutcomeBits
from tutorsim.vocabularies import BALLOT_FORMATS, Protocol

# --- Rule answers --------------------------------------------------------------------------------


class DifferentAnswers(NamedTuple):
    """(votes,): the answers that differ, and which of them each vote has."""

    number: Ints
    """Shape (votes,): a place in `answers`."""
    answers: list[Answer]


RuleAnswers = tuple[RuleKey, list[DifferentAnswers]]
"""What was asked about a group of turns, and the answers: of its turns, then of the first votes of
each size."""


def answer_rules(group: TurnGroup, plan: Plan) -> Iterator[RuleAnswers]:
    """Everything that is asked about a group of turns."""
    votes = (group.final, *(group.firsts if plan.whole else ()))
    bounded = [target for target in plan.asked if target not in plan.functions]
    for form in dict.fromkeys(map(plan.form, bounded)):
        targets = [target for target in bounded if plan.form(target) == form]
        panels = [one.panels(form) for one in votes]
        ends = _table_ends(panels, targets, plan)
        for target in targets:
            m = panels[0].m
            own = _decides(plan.rule(target, m), group.final.rule, m) and not group.incomplete
            every = [
                _answers_of_own_rule(group, panels[0], ends[0], target, plan)
                if own
                else _answers_of_panels(panels[0], ends[0], target, plan)
            ]
            for one, of in zip(panels[1:], ends[1:], strict=True):
                every.append(_answers_of_panels(one, of, target, plan, breakdown=False))
            yield from _by_reading(group, plan, target, every)
    for target, function in plan.functions.items():
        every = [_answers_of_function(function, group, one, plan) for one in votes]
        yield from _by_reading(group, plan, target, every)


def _by_reading(
    group: TurnGroup, plan: Plan, target: str, votes: Sequence["_VoteAnswers"]
) -> Iterator[RuleAnswers]:
    """`votes`: the answers about the final vote, then about the first votes of each size."""
    for reading in plan.readings:
        every = zip(*(_different(one, reading) for one in votes), strict=True)
        for exempt, answers in zip(plan.exempt, every, strict=True):
            yield RuleKey(group.final.protocol, target, reading, exempt), list(answers)


def _decides(rule: Rule, protocol: Protocol, m: int) -> bool:
    """Whether votes under a protocol were decided by a rule: its tie rounds are the rule's.

    Scores by rank may be Borda's, or those of one vote for the first.
    """
    if isinstance(rule, RankVector):
        logged = (1, *[0] * (m - 1)) if protocol == "simple" else rank_scores(protocol, m)
        return logged is not None and RankVector.of(logged) == rule
    return rule == protocol or (isinstance(rule, Approvals) and protocol == ballot_format(rule))


def _table_ends(
    parts: Sequence[DistinctPanels], targets: Sequence[str], plan: Plan
) -> list[dict[Rule, OutcomeBits]]:
    """What the panels of each part may end in, of the rules that have a table.

    Panels that parts share are asked once.
    """
    same = by_key(
        ((part.m, part.panels.shape[1], part.protocol), i) for i, part in enumerate(parts)
    )
    found: dict[int, dict[Rule, OutcomeBits]] = {}
    for alike in same.values():
        first, *others = (parts[i] for i in alike)
        joint, places = first.union(others)
        rules = list(dict.fromkeys(plan.rule(target, joint.m) for target in targets))
        most = None if plan.whole else plan.exempt[-1]
        ends = table_ends(joint, rules, budget=plan.points(targets[0]), exempt=most)
        for i, place in zip(alike, places, strict=True):
            found[i] = {rule: every[:, place] for rule, every in ends.items()}
    return [found[i] for i in range(len(parts))]


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
    panels: DistinctPanels,
    ends: Mapping[Rule, OutcomeBits],
    target: str,
    plan: Plan,
    *,
    breakdown: bool = True,
) -> _VoteAnswers:
    """Answers about panels of another rule, or first votes, whose winner nothing can lose."""
    answers = _asked(panels, ends, target, plan, breakdown=breakdown)
    leaders = projected_leaders(
        panels.panels,
        panels.ballots,
        m=panels.m,
        protocol=panels.protocol,
        target=plan.rule(target, panels.m),
        budget=plan.budget,
    )
    nobody = np.full(len(panels.panels), -1)
    return _VoteAnswers(*answers, leaders, nobody, panels.of)


def _answers_of_function(
    rule: FunctionRule, group: TurnGroup, votes: StageVotes, plan: Plan
) -> _VoteAnswers:
    """Answers about votes under an own function of ballots: who leads, and nothing else."""
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
    group: TurnGroup,
    panels: DistinctPanels,
    ends: Mapping[Rule, OutcomeBits],
    target: str,
    plan: Plan,
) -> _VoteAnswers:
    """Answers about turns that the target decided: different panels, each with its logged winner.

    Nobody exempt, the logged ballots and their tie round decide under both readings. With exempt
    voters that winner stays possible, and ties of other ballots are read as under any other
    target. A tie that no logged order decides stays one, and nobody can be lost in it.
    """
    decided = group.decided
    several, led = (count(who, 1)[:, None] > 1 for who in (decided.undecided, decided.led))
    tied = np.where(several, decided.undecided, decided.led) & led
    first, row_of_turn = distinct_rows(
        [panels.of, decided.winner, *set_columns(tied), group.logged]
    )
    panel, winner, tied = panels.of[first], decided.winner[first], tied[first]
    undecided = group.logged[first] < 0
    winners = PanelWinners(panel, winner)
    possible, settled, breakdown = _asked(panels, ends, target, plan, winners)
    possible, settled = possible[:, :, panel], settled[:, :, panel]
    stands = np.where(undecided[:, None], tied, only(winner, panels.m))
    for k, exempt in enumerate(plan.exempt):
        if exempt == 0:
            possible[:, k], settled[:, k] = False, True
        possible[:, k, :, 1:] |= stands
    return _VoteAnswers(
        possible,
        settled,
        np.where(undecided, 0, breakdown),
        tied,
        np.where(undecided, -1, winner),
        row_of_turn,
    )


def _asked(
    panels: DistinctPanels,
    ends: Mapping[Rule, OutcomeBits],
    target: str,
    plan: Plan,
    winners: PanelWinners | None = None,
    *,
    breakdown: bool = True,
) -> PanelAnswers:
    rule = plan.rule(target, panels.m)
    return answer_panels(
        panels,
        rule,
        exempt=plan.exempt,
        budget=plan.points(target),
        limit=plan.limit,
        ends=ends.get(rule),
        winners=winners,
        breakdown=breakdown and plan.whole,
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
    others: dict[TieReading, list[Bools]] = {}
    for key, (final, *firsts) in answer_rules(group, plan):
        first, number = distinct_rows([fixed, final.number])
        told = []
        for turn, answer in zip(fixed[first].tolist(), final.number[first].tolist(), strict=True):
            candidates, logged = turns[turn]
            untied = final.answers[answer]._replace(tied=())
            told.append(AnswerCount(key, candidates, logged, untied))
        for one, n in zip(told, np.bincount(number).tolist(), strict=True):
            counts.answers[one] += n
        for votes, answers in zip(group.firsts, firsts, strict=plan.whole):
            for flipped, n in _flips(group, final, votes, answers):
                counts.flips[key, flipped] += n
        if (key.reading, key.exempt) == (plan.readings[-1], plan.exempt[-1]):
            tick(len(group.logged))
        counts_too = key.target in plan.rules and key.target not in plan.functions
        if key.exempt == 0 and key.target != key.protocol and counts_too:
            flags = np.array([(one.keeps, one.changes) for one in told])
            others.setdefault(key.reading, []).append(flags[number])
    known = group.logged >= 0
    for reading, under in others.items():
        keeps, changes = np.moveaxis(np.stack(under)[:, known], 2, 0)
        columns = [fold(np.logical_and, keeps, 0), fold(np.logical_or, changes, 0)]
        for (all_keep, some_change), n in count_rows(columns):
            counts.agreed[Agreed(reading, bool(all_keep), bool(some_change))] += n
    return counts


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
        """Different answers and lists of candidates of some votes, and which of them each has.

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
    answers = by_key((one.key, (one, n)) for one, n in counts.answers.items())
    flips = by_key((key, (flipped, n)) for (key, flipped), n in counts.flips.items())
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
        breakdown[BREAKDOWN_STATES.get(answer.breakdown) or str(answer.breakdown)] += n
        totals["turns"] += n
        totals["compared"] += n * (one.logged is not None)
        totals["not_settled"] += n * (not possible.settled)
        totals["identified"] += n * (possible.necessary is not None)
        totals["changes"] += n * one.changes
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
    rule = plan.asked[target]
    number = rule if isinstance(rule, Approvals) else None
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


def _wins(answer: Answer, c: int) -> Holds:
    """Whether a candidate, or nobody, is the outcome; what is not settled may be."""
    possible = answer.possible
    certain = possible.necessary == c
    point = certain if answer.impossible else answer.point == c
    return certain, point, not possible.settled or c in possible.winners


# --- Per-turn table ------------------------------------------------------------------------------

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
        "point_winner": pl.String(),  # null: no point, see the next column
        "point_state": pl.String(),  # winner, tie (stays one) or impossible (not a possible winner)
        "projection": pl.String(),
        "exempt": pl.Int64(),
        "breakdown": pl.Int64(),  # null: no number, see the next column
        "breakdown_state": pl.String(),  # number, never, not_settled or point_only
        "settled": pl.Boolean(),
        "reading": pl.String(),  # what a tie means: set or fallback
    }
)
"""One row per turn, target, number of exempt voters and reading of ties."""

_LISTS: Final = [name for name, dtype in PER_TURN_SCHEMA.items() if dtype == pl.List(pl.String())]
_KEYS: Final = 2
"""Columns that name the turn."""
_TOGETHER: Final = 500_000
"""Rows of a frame, as long as one turn has no more."""


def per_turn_frames(
    groups: Sequence[TurnGroup], turns: pl.DataFrame, plan: Plan
) -> Iterator[pl.DataFrame]:
    """Every turn under every target, in frames that memory holds; see `PER_TURN_SCHEMA`.

    Answers that are alike are written once, and turns refer to them by number.

    `turns`: episode, turn and protocol of each, in the order of the table.
    """
    plan = replace(plan, dial={})
    every = product(plan.rules, plan.exempt, plan.readings)
    columns = {asked: column for column, asked in enumerate(every)}
    asked = len(columns)
    which = np.zeros((turns.height, asked), dtype=np.int64)
    rows: list[tuple[Any, ...]] = []
    for group in groups:
        names, of_names = group.final.candidates
        _, fixed = distinct_rows([of_names, group.logged])
        for key, (final, *_) in answer_rules(group, plan):
            kinds, of = distinct_rows([fixed, final.number])
            column = columns[key.target, key.exempt, key.reading]
            which[group.decided.final.turn, column] = len(rows) + of
            for kind in kinds.tolist():
                candidates = names[of_names[kind]]
                answer = final.answers[final.number[kind]]
                logged = group.logged_name(kind)
                projection = plan.projection(key.protocol, key.target)
                rows.append(tuple(_cells(key, candidates, logged, answer, projection)))
    named, answers_by_number = turns.select(TURN[:_KEYS]), _with_lists(rows)
    together = max(1, _TOGETHER // max(1, asked))
    for start in range(0, max(1, turns.height), together):
        some = which[start : start + together]
        repeated = np.repeat(np.arange(start, start + len(some)), asked)
        frame = named[repeated].hstack(answers_by_number[some.ravel()])
        yield frame.cast(dict(PER_TURN_SCHEMA))  # type: ignore[arg-type]


def _with_lists(rows: Sequence[tuple[Any, ...]]) -> pl.DataFrame:
    """Rows as a frame; each distinct list of names is made once and referred to by number."""
    names = PER_TURN_SCHEMA.names()[_KEYS:]
    numbers: dict[tuple[str, ...] | None, int] = {}
    columns = {name: [row[i] for row in rows] for i, name in enumerate(names)}
    for name in _LISTS:
        columns[name] = [numbers.setdefault(x, len(numbers)) for x in columns[name]]
    made = [None if x is None else list(x) for x in numbers]
    lists = pl.Series(made, dtype=pl.List(pl.String))
    return pl.DataFrame(
        [
            pl.Series(name, lists.gather(columns[name]))
            if name in _LISTS
            else pl.Series(name, columns[name], dtype=PER_TURN_SCHEMA[name])
            for name in names
        ]
    )


def _cells(
    key: RuleKey, candidates: tuple[str, ...], logged: str | None, answer: Answer, projection: str
) -> Iterator[Any]:
    def name(c: int | None) -> str | None:
        return None if c is None else NOBODY_NAME if c == NOBODY else candidates[c]

    possible, breakdown = answer.possible, answer.breakdown
    yield key.protocol
    yield logged
    yield key.target
    yield candidates
    yield tuple(name(c) for c in answer.tied)
    yield tuple(name(c) for c in possible.winners) if possible.settled else None
    yield name(possible.necessary)
    yield name(answer.point)
    yield "impossible" if answer.impossible else "tie" if len(answer.outcome) > 1 else "winner"
    yield projection
    yield key.exempt
    yield None if breakdown < 0 else breakdown
    yield BREAKDOWN_STATES.get(breakdown, "number")
    yield possible.settled
    yield key.reading
